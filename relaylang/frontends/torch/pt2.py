"""Exported programs as plain values: a `.pt2` file is a zip archive with a graph in JSON and weights as raw bytes.

No code of the file runs, and torch is not needed. Source: the schema in torch/_export/serde/schema.py of PyTorch 2.13.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes  # noqa: F401  (gives numpy the name bfloat16)
import numpy as np

from relaylang.frontends.common.files import check_version, damaged
from relaylang.runtime.budget import Budget
from relaylang.runtime.params import UNZIPPING

#: ScalarType of the schema to element types.
DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
#: The newest major version of the schema.
_SCHEMA = 8
#: What a byte of JSON may take as lists and numbers.
JSON_BYTES = 8
#: What reading JSON of another structure raises.
_WRONG = (StopIteration, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError)


def _text(value: Any) -> str:
    """A name of the file. Raises `TypeError` for anything else."""
    if not isinstance(value, str):
        raise TypeError("a name is no text")
    return value


@dataclass(frozen=True)
class Ref:
    """A value of the graph by name: a tensor, or a number that depends on extents."""

    name: str

    def __post_init__(self) -> None:
        _text(self.name)


@dataclass(frozen=True)
class DType:
    """An element type as an argument."""

    name: str


@dataclass(frozen=True)
class Meta:
    """What the file says about a tensor: extents (None: not known), the element type, steps in memory.

    `extents` has the expressions of SymPy for those that are not known, "" for the others.
    """

    shape: tuple[int | None, ...]
    dtype: str
    strides: tuple[int | None, ...] | None = None
    extents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """A call: `aten.add.Tensor`, its arguments by the names of the operator's schema, and the names of its results."""

    target: str
    args: Mapping[str, Any]
    outputs: tuple[Any, ...]
    layer: str = ""


@dataclass(frozen=True)
class Graph:
    """A graph: inputs by name, results, calls in order, and the facts about each tensor."""

    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Meta]


@dataclass(frozen=True)
class Program:
    """An exported program. `weights` has the values of those inputs of the graph that are no inputs of the program."""

    graph: Graph
    inputs: tuple[str, ...]
    weights: Mapping[str, tuple[str, np.ndarray]]
    constants: Mapping[str, Any] = field(default_factory=dict)
    mutations: tuple[tuple[str, str], ...] = ()
    outputs: tuple[Any, ...] = ()


def read_program(data: bytes, file: str, budget: Budget) -> Program:
    """The program in a file's contents. Raises `RelayError` for a damaged file (R0802), or one beyond its budget (R0016)."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (*UNZIPPING, ValueError):
        raise damaged(file, "this is not a zip archive, or it is cut short") from None
    try:
        return _Reader(archive, file, budget).program()
    except (*UNZIPPING, *_WRONG):
        raise damaged(file, "the archive is damaged, or its graph has another structure") from None


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, file: str, budget: Budget) -> None:
        self.archive = archive
        self.file = file
        self.budget = budget
        self.names = set(archive.namelist())

    def _member(self, name: str) -> bytes:
        if name not in self.names:
            raise damaged(self.file, f"the archive has no member {name}")
        return self.budget.unpack(self.archive, self.archive.getinfo(name))

    def _json(self, name: str) -> Any:
        text = self._member(name)
        self.budget.take_bytes(JSON_BYTES * len(text), f"reading {name[:60]!r}")
        return json.loads(text)

    def program(self) -> Program:
        models = sorted(n for n in self.names if "/models/" in n and n.endswith(".json"))
        if not models:
            saved = any(n.endswith("/data.pkl") for n in self.names)
            notes = ["torch.save wrote it; torch.jit.save and torch.export.save write programs"] if saved else []
            raise damaged(self.file, "the archive holds no program", *notes)
        root = models[0].split("/models/")[0]
        name = models[0].rsplit("/", 1)[1].removesuffix(".json")
        model = self._json(models[0])
        check_version(self.file, "its schema", int(model.get("schema_version", {}).get("major", _SCHEMA)), _SCHEMA)
        module = model["graph_module"]
        weights = self._tensors(f"{root}/data/weights", f"{name}_weights_config.json")
        constants = self._tensors(f"{root}/data/constants", f"{name}_constants_config.json")
        graph = _graph(module["graph"], self.file)
        signature = module["signature"]
        inputs: list[str] = []
        values: dict[str, tuple[str, np.ndarray]] = {}
        plain: dict[str, Any] = {}
        for spec in signature["input_specs"]:
            self._input(spec, weights, constants, inputs, values, plain)
        outputs, mutations = _outputs(signature["output_specs"])
        return Program(graph, tuple(inputs), values, plain, mutations, outputs)

    def _input(self, spec: Any, weights: Any, constants: Any, inputs: Any, values: Any, plain: Any) -> None:
        """Sort one input of the graph: a weight, a constant, or an input of the program."""
        ((kind, entry),) = spec.items()
        if kind == "user_input":
            ((what, arg),) = entry["arg"].items()
            if what in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
                inputs.append(_text(arg.get("name") or arg.get("as_name")))
            return
        if kind == "constant_input":
            plain[entry["name"]] = next(iter(entry["value"].values()))
            return
        if kind == "token":  # it orders effects
            plain[_text(entry["arg"]["name"])] = 0
            return
        keys = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
        if kind not in keys:
            raise damaged(self.file, f"the program has an input of the kind {kind}")
        name = entry[keys[kind]]
        value = weights.get(name, constants.get(name))
        if value is None:
            raise damaged(self.file, f"the archive has no value for {name}")
        values[_text(entry["arg"]["name"])] = (_text(name), value)

    def _tensors(self, folder: str, config: str) -> dict[str, np.ndarray]:
        """The tensors of a folder by their names in the program."""
        if f"{folder}/{config}" not in self.names:
            return {}
        stores: dict[str, bytes] = {}
        tensors = {}
        for name, entry in self._json(f"{folder}/{config}")["config"].items():
            if entry.get("use_pickle") or entry.get("tensor_meta") is None:
                continue  # a script object; it is missed only where the graph uses it
            path = f"{folder}/{entry['path_name']}"
            if path not in stores:
                stores[path] = self._member(path)
            tensors[name] = self._tensor(stores[path], entry["tensor_meta"], name)
        return tensors

    def _tensor(self, store: bytes, meta: Any, name: str) -> np.ndarray:
        """A strided view of a storage's bytes; every element lies inside."""
        if meta["dtype"] not in DTYPES:
            raise damaged(self.file, f"{name} has the element type number {meta['dtype']}, which Relay lacks")
        kind = np.dtype(DTYPES[meta["dtype"]])
        sizes, strides = ([int(d["as_int"]) for d in meta[k]] for k in ("sizes", "strides"))
        offset = int(meta["storage_offset"]["as_int"])
        flat = np.frombuffer(store, kind, len(store) // kind.itemsize)
        if any(s < 0 for s in sizes) or len(sizes) != len(strides) or offset < 0 or any(s < 0 for s in strides):
            raise damaged(self.file, f"{name} has the impossible shape {sizes}")
        if 0 in sizes:
            return flat[:0].reshape(sizes)
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides))
        if last >= flat.size:
            raise damaged(self.file, f"{name} has {flat.size} elements, but its shape {tuple(sizes)} needs {last + 1}")
        self.budget.take_bytes(math.prod(sizes) * kind.itemsize, "laying its weights out")
        view = np.lib.stride_tricks.as_strided(flat[offset:], sizes, [s * kind.itemsize for s in strides], writeable=False)
        return np.ascontiguousarray(view).reshape(sizes)


def _outputs(specs: Any) -> tuple[tuple[Any, ...], tuple[tuple[str, str], ...]]:
    """The results of the program, and the new values of buffers and inputs by name."""
    outputs, mutations = [], []
    for spec in specs:
        ((kind, entry),) = spec.items()
        if kind in ("user_output", "loss_output"):
            arg = entry["arg"]
            outputs.append(_argument(arg) if kind == "user_output" else Ref(arg["name"]))
        elif kind.endswith("_mutation"):
            name = next(v for k, v in entry.items() if k.endswith("_name"))
            mutations.append((_text(name), _text(entry["arg"]["name"])))
    return tuple(outputs), tuple(mutations)


def _graph(graph: Any, file: str, depth: int = 0) -> Graph:
    if depth > 64:
        raise damaged(file, "graphs are nested more than 64 deep")
    inputs = tuple([_input_name(next(iter(i.values()))) for i in graph["inputs"]])
    nodes = []
    for node in graph["nodes"]:
        args = {}
        for number, entry in enumerate(node["inputs"]):
            args[entry["name"] or str(number)] = _argument(entry["arg"], file, depth)
        outputs = tuple([_argument(o) for o in node["outputs"]])
        stack = (node.get("metadata") or {}).get("nn_module_stack", "")
        nodes.append(Node(node["target"].removeprefix("torch.ops."), args, outputs, _layer(stack)))
    tensors = {n: _meta(m) for n, m in graph["tensor_values"].items()}
    return Graph(inputs, tuple([_argument(o) for o in graph["outputs"]]), tuple(nodes), tensors)


def _input_name(argument: Any) -> str:
    """The name of a graph's input; "" for a number, which nothing names."""
    if not isinstance(argument, Mapping):
        return ""
    return _text(argument.get("name") or argument.get("as_name") or "")


def _layer(stack: str) -> str:
    """The path of the innermost module: "layer1.0.conv1" of `L__self__,,M;L__self__layer1_0,layer1.0,...`."""
    parts = stack.split(";")[-1].split(",")
    return parts[1] if len(parts) > 2 else ""


def _meta(meta: Any) -> Meta:
    sizes, strides = (tuple([int(d["as_int"]) if "as_int" in d else None for d in meta[k]]) for k in ("sizes", "strides"))
    extents = tuple([_text(d["as_expr"]["expr_str"]) if "as_expr" in d else "" for d in meta["sizes"]])
    return Meta(sizes, DTYPES.get(meta["dtype"], ""), strides, extents)


def _number(argument: Any) -> Any:
    """A number that may depend on extents."""
    return Ref(argument["as_name"]) if "as_name" in argument else next(iter(argument.values()))


def _argument(argument: Any, file: str = "", depth: int = 0) -> Any:
    """An argument: numbers, texts, lists of them, `Ref`, `DType`, `Graph` or None."""
    ((kind, value),) = argument.items()
    match kind:
        case "as_none" | "as_layout" | "as_device" | "as_memory_format":
            return None
        case "as_tensor":
            return Ref(value["name"])
        case "as_tensors":
            return [Ref(v["name"]) for v in value]
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return _number(value)
        case "as_sym_ints" | "as_sym_floats" | "as_sym_bools":
            return [_number(v) for v in value]
        case "as_scalar_type":
            return DType(DTYPES.get(value, ""))
        case "as_optional_tensor":
            return _argument(value)
        case "as_optional_tensors":
            return [_argument(v) for v in value]
        case "as_graph":
            return _graph(value["graph"], file, depth + 1)
        case "as_complex":
            return complex(value["real"], value["imag"])
        case "as_float":
            return float(value)
        case "as_nested_tensors":
            return [[Ref(v["name"]) for v in row] for row in value]
    return value


__all__ = ["DTYPES", "DType", "Graph", "Meta", "Node", "Program", "Ref", "read_program"]
