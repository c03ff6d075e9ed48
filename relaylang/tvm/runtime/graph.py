"""The graph executor: a compiled program with inputs that are set, a run, and outputs that are read."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.graph import input_name
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.runtime.artifact import Artifact, TensorSpec
from relaylang.runtime.benchmark import BenchmarkResult, timed
from relaylang.runtime.cpu import CpuArtifact
from relaylang.tvm.runtime.inner import InnerValues
from relaylang.tvm.runtime.module import Module
from relaylang.tvm.runtime.ndarray import NDArray, array
from relaylang.tvm.runtime.params import load_param_dict


class _Input:
    """A tensor that the program takes: its parameter, its place in a tuple, its value, and whether that is set.

    Inputs begin with zeros. A constant whose value the program's text lacked has none until it is set.
    """

    __slots__ = ("is_set", "name", "parameter", "path", "value")

    def __init__(self, parameter: str, path: Sequence[int], value: NDArray | None) -> None:
        self.parameter = parameter
        self.path = tuple(path)
        self.name = input_name(parameter, path)
        self.value = value
        self.is_set = not self.name.startswith("meta[")

    def fill(self, value: Any) -> None:
        """Copy a value, converted to the input's element type. Raises `RelayError` (R0640)."""
        self.value = array(value) if self.value is None else filled(f"the input {self.name}", self.value, value)
        self.is_set = True


#: The most inputs that a message lists.
_SHOWN = 8


def _type_of(tensor: NDArray) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), str(tensor.dtype))


def filled(what: str, tensor: NDArray, value: Any) -> NDArray:
    """The tensor with the elements of a value. Raises `RelayError` (R0640), which names `what` and both types."""
    try:
        return tensor.copyfrom(value)
    except RelayError as wrong:
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is None or dtype is None:
            said = wrong.diagnostics[0].title
            raise RelayError(error("R0640", f"{what} is {_type_of(tensor)}: {said}")) from None
        wanted = TensorSpec(tuple(shape), str(dtype))
        raise RelayError(error("R0640", f"{what} is {_type_of(tensor)}, not {wanted}")) from None


def inputs_of(artifact: Artifact) -> list[_Input]:
    """The inputs of a program, zeros where nothing is set; without types where the artifact has none to tell."""
    return [
        _Input(name, path, None if spec is None else NDArray(np.zeros(spec.shape, np.dtype(spec.dtype))))
        for name, spec, path in artifact.tensors
    ]


def simple_graph(artifact: Artifact, function: str = "tvmgen_default_run") -> str:
    """A graph of one node, which calls a function: for a program that has no other."""
    names = artifact.input_names
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in names]
    attrs = {"num_outputs": "1", "num_inputs": str(len(names)), "flatten_data": "0", "func_name": function}
    nodes.append({"op": "tvm_op", "name": "run", "attrs": attrs, "inputs": [[n, 0, 0] for n in range(len(names))]})
    record = {
        "nodes": nodes,
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names), 0, 0]],
        "node_row_ptr": list(range(len(nodes) + 1)),
    }
    return json.dumps(record)


class GraphExecutor(Module):
    """A compiled program with memory for its inputs. Inputs come first, then the weights that are part of the program.

    Executors of one program share its weights until one of them sets its own.
    """

    def __init__(self, artifact: Artifact, keeping: Callable[[], CpuArtifact] | None = None) -> None:
        self.artifact = artifact
        self._keeping = keeping
        self.inputs = inputs_of(artifact)
        self.outputs: list[NDArray] | None = None
        self._given: dict[int, NDArray] = {}
        self._own = False
        names = (
            "set_input",
            "set_input_zero_copy",
            "set_output_zero_copy",
            "run",
            "get_output",
            "get_input",
            "get_num_outputs",
            "get_num_inputs",
            "get_input_index",
            "get_output_index",
            "get_input_info",
            "load_params",
            "share_params",
            "run_from_inputs",
            *(("debug_get_output", "get_output_by_layer") if keeping else ()),
        )
        super().__init__({name: getattr(self, name) for name in names}, "GraphExecutor", "run")

    @property
    def _params(self) -> Mapping[str, np.ndarray]:
        return getattr(self.artifact, "params", {})

    def _names(self) -> list[str]:
        return [*(i.name for i in self.inputs), *self._params]

    def get_num_inputs(self) -> int:
        """The number of inputs, weights included."""
        return len(self.inputs) + len(self._params)

    def get_input_index(self, name: str) -> int:
        """The number of an input or a weight; -1 where there is none of this name."""
        names = self._names()
        return names.index(name) if name in names else -1

    def get_output_index(self, name: str) -> int:
        """The number of an output, which is its name; -1 where there is none."""
        return int(name) if name.isdecimal() and int(name) < self.get_num_outputs() else -1

    def _index(self, key: str | int) -> int:
        """Raises `RelayError` (R0640) for an input that is not there."""
        names = self._names()
        if isinstance(key, str) and key in names:
            return names.index(key)
        if not isinstance(key, str) and 0 <= int(key) < len(names):
            return int(key)
        near = did_you_mean(str(key), names) if isinstance(key, str) else None
        shown = [i.name if i.value is None else f"{i.name}: {_type_of(i.value)}" for i in self.inputs[:_SHOWN]]
        more = f" and {len(self.inputs) - _SHOWN} more" if len(self.inputs) > _SHOWN else ""
        notes = [f"did you mean {near}?"] if near else []
        notes.append(f"its inputs: {', '.join(shown) or 'none'}{more}")
        if not isinstance(key, str):
            notes.append(f"their numbers, and those of weights, are 0 to {len(names) - 1}" if names else "it takes no inputs")
        raise RelayError(error("R0640", f"the program has no input {key}", notes=notes))

    def debug_get_output(self, node: str | int, out: NDArray | None = None) -> NDArray:
        """The first tensor of a node of the graph, by its number or name, for the present inputs; see `inner_values`."""
        values = self.inner_values()
        nodes = [n["name"] for n in values.graph["nodes"]]
        known = node in nodes if isinstance(node, str) else 0 <= int(node) < len(nodes)
        if not known:
            near = did_you_mean(node, nodes) if isinstance(node, str) else None
            notes = [f"did you mean {near}?"] if near else [f"get_graph_json() has its {len(nodes)} nodes"]
            raise RelayError(error("R0640", f"the graph has no node {node}", notes=notes))
        inner = values.tensor(nodes.index(node) if isinstance(node, str) else int(node))
        return inner.copyto(out) if out is not None else inner

    def get_output_by_layer(self, index: int, output: int = 0) -> NDArray:
        """A tensor of a node of the graph, by number. Raises `RelayError` (R0609, R0640)."""
        return self.inner_values().tensor(index, output)

    def inner_values(self) -> InnerValues:
        """All tensors of the program for the present inputs: it is compiled again, so that none of them share memory.

        Raises `RelayError` (R0609) where it cannot be, and for executors that do not debug.
        """
        if self._keeping is None:
            notes = [
                "tvm.contrib.debugger.debug_executor.create(graph, lib, dev) makes an executor that shows all values",
                "the interpreter shows every value, too: relay repl, relay run --executor interpreter",
            ]
            raise RelayError(error("R0609", "the values inside the program do not outlast the run", notes=notes))
        kept = self._keeping()
        if self._params:
            kept.set_params(self._params)
        arguments = self.arguments()
        result = kept.run(**arguments)
        return InnerValues(kept, {i.name: i.value for i in self.inputs if i.value is not None}, result)

    def set_input(self, key: str | int, value: Any) -> None:
        """Copy a value into an input, converted to its element type. Raises `RelayError` (R0640)."""
        self.set_inputs({key: value})

    def set_inputs(self, values: Mapping[Any, Any]) -> None:
        """The same for several inputs and weights, which are bound at once."""
        weights: dict[str, np.ndarray] = {}
        params = self._params
        for key, value in values.items():
            number = self._index(key)
            if number < len(self.inputs):
                self.inputs[number].fill(value)
            else:
                name = list(params)[number - len(self.inputs)]
                filled_weight = filled(f"the weight {name}", NDArray(np.empty_like(params[name])), value)
                if not np.array_equal(_bytes(filled_weight), _bytes(params[name])):
                    weights[name] = np.asarray(filled_weight)
        if weights:
            self._set_weights(weights)

    def _set_weights(self, weights: Mapping[str, np.ndarray]) -> None:
        assert isinstance(self.artifact, CpuArtifact)
        if not self._own:
            self.artifact, self._own = copy.copy(self.artifact), True
        self.artifact.set_params(weights)

    def set_input_zero_copy(self, key: str | int, value: Any) -> None:
        """Let a run read a tensor in place. Raises `RelayError` (R0640) where it does not fit."""
        number = self._index(key)
        if number >= len(self.inputs):
            raise RelayError(error("R0640", f"the weight {key} cannot be read in place: it is brought into the kernels' layouts"))
        slot, new = self.inputs[number], value if type(value) is NDArray else NDArray(np.asarray(value))
        if slot.value is not None and (new.shape, new.dtype) != (slot.value.shape, slot.value.dtype):
            wanted = f"a tensor of shape {slot.value.shape} and {slot.value.dtype}"
            raise RelayError(error("R0640", f"the input {slot.name} is {wanted}, not {new.shape} and {new.dtype}"))
        slot.value, slot.is_set = new, True

    def set_output_zero_copy(self, key: str | int, value: NDArray) -> None:
        """Let runs write an output into a tensor in place. Raises `RelayError` (R0640) where there is no such output."""
        self._given[self._output(int(key))] = value

    def get_input(self, index: str | int) -> NDArray:
        """The tensor of an input or a weight. Raises `RelayError` (R0640)."""
        number = self._index(index)
        if number >= len(self.inputs):
            return NDArray(list(self._params.values())[number - len(self.inputs)])
        value = self.inputs[number].value
        if value is None:
            raise RelayError(error("R0640", f"no value is given for the input {index}"))
        return value

    def get_input_info(self) -> dict[str, dict[str, Any]]:
        """The shapes and element types of the inputs by name, weights left out."""
        known = [(i.name, i.value) for i in self.inputs if i.value is not None]
        return {"shape": {n: v.shape for n, v in known}, "dtype": {n: v.dtype for n, v in known}}

    def arguments(self) -> dict[str, Any]:
        """The inputs as the program takes them."""
        values: dict[str, Any] = {}
        fields: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
        for slot in self.inputs:
            if not slot.is_set:
                notes = [f"set it as an input: set_input({slot.name!r}, array)"]
                raise RelayError(error("R0640", f"the constant {slot.name} has no value", notes=notes))
            value = np.asarray(self.get_input(slot.name))
            if slot.path:
                fields.setdefault(slot.parameter, {})[slot.path] = value
            else:
                values[slot.parameter] = value
        return {**values, **{name: _nested(parts) for name, parts in fields.items()}}

    def run(self) -> None:
        """Run the program with the inputs that are set."""
        values = self.arguments()
        if self._given and isinstance(self.artifact, CpuArtifact):
            rows = self.artifact.manifest["outputs"]
            arrays = [np.asarray(self._given[n]) if n in self._given else np.empty(s, np.dtype(d)) for n, (s, d) in enumerate(rows)]
            self.artifact.run(out=_structured(self.artifact.manifest["structure"], arrays), **values)
        else:
            arrays = _flat(self.artifact.run(**values))
        self.outputs = [self._given.get(n) or NDArray(a) for n, a in enumerate(arrays)]

    def run_from_inputs(self, *pairs: Any) -> None:
        """Set inputs, given as name, value, name, value, and run."""
        self.set_inputs(dict(zip(pairs[::2], pairs[1::2])))
        self.run()

    def get_num_outputs(self) -> int:
        """The number of tensors in the result."""
        if isinstance(self.artifact, CpuArtifact):
            return len(self.artifact.manifest["outputs"])
        if self.outputs is None:
            self.run()
        return len(self.outputs or ())

    def _output(self, index: int) -> int:
        count = self.get_num_outputs()
        if not 0 <= index < count:
            raise RelayError(error("R0640", f"the program has no output {index}", notes=[f"it has {count}"]))
        return index

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output of the last run, zeros before the first; copied into `out` if that is given. Raises `RelayError` (R0640)."""
        number = self._output(int(index))
        if self.outputs is None:
            rows = self.artifact.manifest["outputs"]  # type: ignore[attr-defined]
            self.outputs = [NDArray(np.zeros(shape, np.dtype(dtype))) for shape, dtype in rows]
        output = self.outputs[number]
        return output.copyto(out) if out is not None else output

    def load_params(self, params_bytes: bytes) -> None:
        """Set inputs and weights from the bytes of `save_param_dict`; other names are left out."""
        known = set(self._names())
        self.set_inputs({name: value for name, value in load_param_dict(params_bytes).items() if name in known})

    def share_params(self, other: GraphExecutor, params_bytes: bytes) -> None:
        """Take the tensors that another executor of the same program has for the names in such bytes, without copies."""
        wanted = set(load_param_dict(params_bytes))
        for slot, others in ((s, o) for s in self.inputs for o in other.inputs if s.name == o.name and s.name in wanted):
            slot.value, slot.is_set = others.value, others.is_set
        weights = {name: value for name, value in other._params.items() if name in wanted and name in self._params}
        if weights and set(weights) == set(self._params):
            self.artifact, self._own = other.artifact, False
            other._own = False
        elif weights:
            self._set_weights(weights)

    def _timed(self, function: Callable[..., Any], args: Sequence[Any], repeat: int, number: int, least: float) -> BenchmarkResult:
        own = getattr(function, "function", None) == self.run
        if own and isinstance(self.artifact, CpuArtifact):
            self.run()
            return self.artifact.benchmark(repeat=repeat, number=number, min_repeat_ms=least, inputs=self.arguments())
        return timed(lambda: function(*args), repeat, number, least)


def _bytes(value: Any) -> np.ndarray:
    return np.asarray(value).reshape(-1).view(np.uint8)


def _nested(parts: Mapping[tuple[int, ...], np.ndarray]) -> Any:
    """The tuple with tensors at paths, given in order."""
    out: list[Any] = []
    for path, value in parts.items():
        place = out
        for step in path[:-1]:
            while len(place) <= step:
                place.append([])
            place = place[step]
        while len(place) < path[-1]:
            place.append([])
        place.append(value)
    return out


def _flat(result: Any) -> list[np.ndarray]:
    """The tensors of a result in order."""
    out, stack = [], [result]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def _structured(structure: Any, arrays: Sequence[np.ndarray]) -> Any:
    return arrays[structure] if isinstance(structure, int) else tuple([_structured(part, arrays) for part in structure])


__all__ = ["GraphExecutor", "inputs_of", "simple_graph"]
