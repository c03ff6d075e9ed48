"""TFLite files that Vela wrote: their layers for the Ethos-U, and how these run in the simulator.

Such a layer is the custom operator `ethos-u`. Its first operands are the command stream, the constants (region 0) and the
scratch memories (regions 1 and 2). Then come its inputs. The metadata `OfflineMemoryAllocation` says where tensors lie.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from relaylang.backends.ethosu.simulator.region import run_stream
from relaylang.backends.ethosu.stream import Command, Stream, read_stream
from relaylang.diagnostics import RelayError, error
from relaylang.frontends.options import DEFAULTS
from relaylang.frontends.tflite.importer import Importer
from relaylang.frontends.tflite.reader import Model, Operator, Subgraph, read_model
from relaylang.interpreter import Evaluator
from relaylang.runtime.artifact import Artifact, Capability, TensorSpec, bind_arguments
from relaylang.runtime.files import atomic_write
from relaylang.typing import check

#: The name of the custom operator.
OPERATOR = "ethos-u"
#: Operands in front of the inputs.
_FIXED = 4
_OFFSETS = "OfflineMemoryAllocation"
_OFFSETS_HEADER = 3


@dataclass(frozen=True)
class NpuLayer:
    """A layer for the Ethos-U: its streams, the driver's places, and its inputs and outputs by the graph's numbers."""

    name: str
    command_stream: bytes
    weights: bytes
    driver: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def stream(self) -> Stream:
        return read_stream(self.command_stream, f"the command stream of {self.name}")


class CpuLayers:
    """Layers in a row that Vela left to the CPU: imported, and computed by the interpreter."""

    def __init__(self, model: Model, operators: tuple[Operator, ...], wanted: Collection[int], file: str) -> None:
        graph = model.subgraphs[0]
        produced = {i for op in operators for i in op.outputs if i >= 0}
        taken = {i for op in operators for i in op.inputs if i >= 0 and graph.tensors[i].data is None}
        self.inputs = tuple(sorted(taken - produced))
        self.outputs = tuple(sorted(produced.intersection(wanted)))
        piece = replace(graph, inputs=self.inputs, outputs=self.outputs, operators=operators)
        imported = Importer(replace(model, subgraphs=(piece, *model.subgraphs[1:])), file, DEFAULTS).run()
        if len(imported.module["main"].params) != len(self.inputs):
            raise RelayError(error("R0616", f"{file} keeps variables in layers of the CPU, which the simulator lacks"))
        check(imported.module)
        self._evaluator = Evaluator(imported.module)

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        result = self._evaluator.call("main", tuple(values))
        return [result] if len(self.outputs) == 1 else list(result)


class NpuNetwork(Artifact):
    """A file that Vela wrote. `run` executes its layers for the Ethos-U in the simulator, the others in the interpreter."""

    capabilities: frozenset[Capability] = frozenset(["run", "simulate", "observe"])
    executors = ("ethosu-sim",)
    #: Its streams name their layers themselves.
    regions: Mapping[str, Any] = {}
    #: Who computes; the simulator alone can.
    executor = "ethosu-sim"
    #: Called for each tensor that a stream stores, with the name of its layer.
    observer: Callable[[str, Command, np.ndarray], None] | None = None

    def __init__(self, content: bytes, graph: Subgraph, steps: Sequence[NpuLayer | CpuLayers]) -> None:
        self._content = content
        self._steps = steps
        self._graph = graph
        self.inputs = tuple([(graph.tensors[i].name, self._spec(i)) for i in graph.inputs])

    def _spec(self, index: int) -> TensorSpec:
        tensor = self._graph.tensors[index]
        return TensorSpec(tensor.shape, tensor.dtype)

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, spec, ()) for name, spec in self.inputs]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write Vela's file again. Raises `OSError`."""
        atomic_write(path, self._content)

    def run(self, *args: Any, **named: Any) -> Any:
        """The outputs: an array, or a tuple of them. Arguments come in order or by name. Raises `RelayError`."""
        values: dict[int, np.ndarray] = {}
        for index, (name, spec), value in zip(self._graph.inputs, self.inputs, bind_arguments(self.input_names, args, named)):
            values[index] = spec.check(name, value)
        for step in self._steps:
            arguments = [values[i] for i in step.inputs]
            if isinstance(step, CpuLayers):
                step_results = step.run(arguments)
            else:
                outputs = [self._spec(i) for i in step.outputs]
                observer = partial(self.observer, step.name) if self.observer is not None else None
                step_results = run_stream(step.command_stream, step.weights, step.driver, arguments, outputs, observer)
            values.update(zip(step.outputs, step_results))
        results = [values[i] for i in self._graph.outputs]
        return results[0] if len(results) == 1 else tuple(results)


def npu_layers(content: bytes, file: str) -> tuple[Model, tuple[NpuLayer, ...]]:
    """The model of a file and its layers for the Ethos-U.

    Raises `RelayError`: R0802 for a damaged file, R0615 for one that Vela did not write.
    """
    model = read_model(content, file)
    graph = model.subgraphs[0]
    count = _OFFSETS_HEADER + len(graph.tensors)
    stored = model.metadata.get(_OFFSETS, b"")[: 4 * count]
    offsets = np.frombuffer(stored, "<i4") if len(stored) == 4 * count else np.zeros(0, np.int32)
    layers = [op for op in graph.operators if op.name == OPERATOR]
    if not layers:
        notes = [f"vela --accelerator-config ethos-u55-128 {file} compiles it"]
        raise RelayError(error("R0615", f"{file} has no layer for the Ethos-U: Vela did not compile it", notes=notes))
    if not len(offsets):
        raise RelayError(error("R0615", f"{file} does not say where its tensors lie: {_OFFSETS} is missing or too short"))
    return model, tuple([_layer(graph, op, offsets[_OFFSETS_HEADER:], f"layer {n}", file) for n, op in enumerate(layers)])


def _layer(graph: Subgraph, op: Operator, offsets: np.ndarray, name: str, file: str) -> NpuLayer:
    if len(op.inputs) < _FIXED or min((*op.inputs, *op.outputs)) < 0:
        raise RelayError(error("R0615", f"{name} of {file} has {len(op.inputs)} operands, at least {_FIXED} are needed"))
    stream, weights, scratch, fast = (graph.tensors[i] for i in op.inputs[:_FIXED])
    if stream.data is None:
        raise RelayError(error("R0615", f"{name} of {file} has no command stream"))

    def place(index: int) -> dict[str, int]:
        tensor = graph.tensors[index]
        size = int(np.prod(tensor.shape)) * np.dtype(tensor.dtype).itemsize
        return {"region": 1, "address": int(offsets[index]), "bytes": size}

    apart = fast.index != scratch.index
    driver = {
        "weights_region": 0,
        "scratch": {"region": 1, "bytes": int(np.prod(scratch.shape))},
        "scratch_fast": {"region": 2, "bytes": int(np.prod(fast.shape)) if apart else 0},
        "inputs": [place(i) for i in op.inputs[_FIXED:]],
        "outputs": [place(i) for i in op.outputs],
    }
    constants = b"" if weights.data is None else weights.data.tobytes()
    return NpuLayer(name, stream.data.tobytes(), constants, driver, op.inputs[_FIXED:], op.outputs)


def load_network(content: bytes, file: str) -> NpuNetwork:
    """A file that Vela wrote, ready to run. Raises `RelayError`: as `npu_layers`, and as `import_tflite` for layers of the CPU."""
    model, layers = npu_layers(content, file)
    graph = model.subgraphs[0]
    npu = iter(layers)
    wanted = {*graph.outputs, *(i for op in graph.operators for i in op.inputs)}
    steps: list[NpuLayer | CpuLayers] = []
    for is_npu, row in groupby(graph.operators, key=lambda op: op.name == OPERATOR):
        operators = tuple(row)
        steps += [next(npu) for _ in operators] if is_npu else [CpuLayers(model, operators, wanted, file)]
    produced = {*graph.inputs, *(i for step in steps for i in step.outputs)}
    missing = sorted({*graph.outputs, *(i for step in steps for i in step.inputs)} - produced)
    if missing or any(extent < 0 for i in produced for extent in graph.tensors[i].shape):
        why = f"no layer makes its tensor {missing[0]}" if missing else "a tensor of it has no static shape"
        raise RelayError(error("R0615", f"{file} cannot be run: {why}"))
    return NpuNetwork(content, graph, steps)
