"""TFLite files as plain values: the flatbuffer of schema 3, checked against the bytes that are there."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from relaylang.frontends.common.files import check_version, damaged, need_package
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.tflite.flat import Flat
from relaylang.frontends.tflite.tensors import array_of, dtype_of
from relaylang.runtime.budget import Budget

#: Names in option classes that are not fields.
_NOT_FIELDS = re.compile(r"_|GetRootAs|Init$|.*(Length|IsNone|AsNumpy|HasIdentifier)$")
#: What flatbuffers raises where offsets lead outside the file.
_WRONG = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, AssertionError, KeyError, MemoryError)


@dataclass(frozen=True)
class Quantization:
    """Real value = scale * (stored value - zero point); one pair, or one per index of `axis`."""

    scales: np.ndarray
    zero_points: np.ndarray
    axis: int = 0

    @property
    def per_tensor(self) -> bool:
        return self.scales.size == 1


@dataclass(frozen=True)
class Tensor:
    """A tensor of a subgraph: `shape` has -1 for unknown extents; `data` is its constant value, if it has one."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    data: np.ndarray | None = None
    quantization: Quantization | None = None
    is_variable: bool = False


class Settings(dict[str, Any]):
    """The options of a layer by name. A conversion that asks for another one shows a wrong layer."""

    def __missing__(self, name: str) -> Any:
        has = f"it has {', '.join(self)}" if self else "it has no options"
        raise Malformed(f"the option {name} is missing: {has}")


@dataclass(frozen=True)
class Operator:
    """A layer: `name` is the builtin operator's name in the schema, or the custom operator's own. -1 is no tensor.

    `intermediates` are tensors that only have scales, for values inside of a quantised layer.
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=Settings)
    custom: bytes = b""
    version: int = 1
    intermediates: tuple[int, ...] = ()


@dataclass(frozen=True)
class Subgraph:
    """A graph: its tensors, its inputs and outputs by index, its layers in the order of their computation."""

    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Model:
    """A file: the first subgraph is the network."""

    subgraphs: tuple[Subgraph, ...]
    description: str = ""
    metadata: dict[str, bytes] = field(default_factory=dict)


def read_model(data: bytes, file: str, budget: Budget | None = None) -> Model:
    """The model in a file's contents. Raises `RelayError` for a damaged file (R0802), or one beyond its budget (R0016)."""
    schema = need_package("tflite", "tflite", "the TFLite reader")
    if data[4:8] != b"TFL3":
        raise damaged(file, "this is not a TFLite model of schema 3")
    try:
        return _Reader(schema, data, file, budget or Budget(file, len(data))).model()
    except _WRONG:
        raise damaged(file, "the file is cut short, or an offset in it leads nowhere") from None


#: The newest version of the format.
SCHEMA = 3
#: The numbers of fields in schema 3, of the tables that every layer and tensor has.
_MODEL = {"version": 0, "operator_codes": 1, "subgraphs": 2, "description": 3, "buffers": 4, "metadata": 6}
_METADATA = {"name": 0, "buffer": 1}
_CODE = {"deprecated_builtin_code": 0, "custom_code": 1, "version": 2, "builtin_code": 3}
_GRAPH = {"tensors": 0, "inputs": 1, "outputs": 2, "operators": 3, "name": 4}
_TENSOR = {"shape": 0, "type": 1, "buffer": 2, "name": 3, "quantization": 4, "is_variable": 5, "sparsity": 6, "shape_signature": 7}
_QUANTIZATION = {"scale": 2, "zero_point": 3, "quantized_dimension": 6}
_BUFFER = {"data": 0, "offset": 1, "size": 2}
_OPERATOR = {"opcode_index": 0, "inputs": 1, "outputs": 2, "custom_options": 5, "intermediates": 8}
#: The unions of options: the numbers of the kind and of the table.
_UNIONS = (("BuiltinOptions", 3, 4), ("BuiltinOptions2", 11, 12))
_I8, _U8, _I32, _U32, _U64 = (struct.Struct(f"<{c}") for c in "bBiIQ")


class _Reader:
    def __init__(self, schema: ModuleType, data: bytes, file: str, budget: Budget) -> None:
        self.budget = budget
        self.schema = schema
        self.data = data
        self.file = file
        self.raw = Flat(data, _U32.unpack_from(data, 0)[0])
        self.codes = [self._code(Flat(data, place)) for place in self.raw.tables(_MODEL["operator_codes"])]
        self.buffers = self.raw.tables(_MODEL["buffers"])
        self.known: dict[tuple[str, bytes], dict[str, Any]] = {}

    def model(self) -> Model:
        version = self.raw.number(_MODEL["version"], _U32)
        check_version(self.file, "its schema", version, SCHEMA)
        graphs = tuple([self._subgraph(Flat(self.data, place)) for place in self.raw.tables(_MODEL["subgraphs"])])
        if not graphs:
            raise damaged(self.file, "the model has no graph")
        metadata = {}
        for place in self.raw.tables(_MODEL["metadata"]):
            entry = Flat(self.data, place)
            content = self._buffer(entry.number(_METADATA["buffer"], _U32))
            metadata[entry.text(_METADATA["name"])] = b"" if content is None else bytes(content)
        return Model(graphs, self.raw.text(_MODEL["description"]), metadata)

    def _code(self, code: Flat) -> tuple[str, int]:
        number = max(code.number(_CODE["builtin_code"], _I32), code.number(_CODE["deprecated_builtin_code"], _I8))
        name = _names(self.schema, "BuiltinOperator").get(number)
        if name is None:
            raise damaged(self.file, f"the operator number {number} is newer than the schema")
        version = code.number(_CODE["version"], _I32, 1)
        return (code.text(_CODE["custom_code"]) if name == "CUSTOM" else name), version

    def _subgraph(self, graph: Flat) -> Subgraph:
        places = graph.tables(_GRAPH["tensors"])
        tensors = tuple([self._tensor(i, place) for i, place in enumerate(places)])
        operators = tuple([self._operator(Flat(self.data, o), len(tensors)) for o in graph.tables(_GRAPH["operators"])])
        inputs, outputs = (self._indices(graph, _GRAPH[name], len(tensors)) for name in ("inputs", "outputs"))
        return Subgraph(graph.text(_GRAPH["name"]), tensors, inputs, outputs, operators)

    def _indices(self, table: Flat, number: int, count: int) -> tuple[int, ...]:
        indices = tuple(table.vector(number, np.int32).tolist())
        if indices and (min(indices) < -1 or max(indices) >= count):
            raise damaged(self.file, f"a layer uses the tensor {max(indices)} of {count}")
        return indices

    def _tensor(self, index: int, place: int) -> Tensor:
        tensor = Flat(self.data, place)
        name = tensor.text(_TENSOR["name"]) or f"tensor_{index}"
        dtype = dtype_of(tensor.number(_TENSOR["type"], _I8), self.file, name)
        shape = tuple(tensor.vector(_TENSOR["shape"], np.int32).tolist())
        signature = tuple(tensor.vector(_TENSOR["shape_signature"], np.int32).tolist())
        number = tensor.number(_TENSOR["buffer"], _U32)
        if not number < max(len(self.buffers), 1):
            raise damaged(self.file, f"{name} is in the buffer {number} of {len(self.buffers)}")
        raw = self._buffer(number)
        data = array_of(raw, shape, dtype, self._sparsity(tensor), self.file, name, self.budget) if raw is not None else None
        stated = signature if len(signature) == len(shape) and data is None else shape
        quantization = self._quantization(tensor.table(_TENSOR["quantization"]))
        return Tensor(index, name, stated, dtype, data, quantization, bool(tensor.number(_TENSOR["is_variable"], _U8)))

    def _sparsity(self, tensor: Flat) -> Any:
        """The description of a sparse tensor as the schema's class reads it."""
        place = tensor.target(_TENSOR["sparsity"])
        if not place:
            return None
        sparsity = self.schema.SparsityParameters()
        sparsity.Init(self.data, place)
        return sparsity

    def _buffer(self, number: int) -> np.ndarray | None:
        """The bytes of a buffer; None for the empty one, which all computed tensors share."""
        if not self.buffers or number == 0:
            return None
        if number >= len(self.buffers):
            raise damaged(self.file, f"there is no buffer {number}, of {len(self.buffers)}")
        buffer = Flat(self.data, self.buffers[number])
        offset, size = buffer.number(_BUFFER["offset"], _U64), buffer.number(_BUFFER["size"], _U64)
        if offset > 1:
            if offset + size > len(self.data):
                raise damaged(self.file, f"the buffer {number} lies behind the end of the file")
            return np.frombuffer(self.data, np.uint8, size, offset)
        content = buffer.vector(_BUFFER["data"], np.uint8)
        return content if content.size else None

    def _quantization(self, flat: Flat | None) -> Quantization | None:
        scales = flat.vector(_QUANTIZATION["scale"], np.float32) if flat is not None else np.zeros(0)
        if flat is None or not scales.size:
            return None
        zeros = flat.vector(_QUANTIZATION["zero_point"], np.int64)
        if zeros.size not in (0, 1, scales.size):
            raise damaged(self.file, "a tensor has other numbers of scales and zero points")
        zeros = np.broadcast_to(zeros if zeros.size else np.zeros(1, np.int64), scales.shape)
        return Quantization(scales, zeros, flat.number(_QUANTIZATION["quantized_dimension"], _I32))

    def _operator(self, operator: Flat, tensors: int) -> Operator:
        number = operator.number(_OPERATOR["opcode_index"], _U32)
        if not number < len(self.codes):
            raise damaged(self.file, f"a layer has the operator {number} of {len(self.codes)}")
        name, version = self.codes[number]
        inputs, outputs, inner = (self._indices(operator, _OPERATOR[n], tensors) for n in ("inputs", "outputs", "intermediates"))
        custom = bytes(operator.vector(_OPERATOR["custom_options"], np.uint8))
        return Operator(name, inputs, outputs, self._options(operator), custom, version, inner)

    def _options(self, operator: Flat) -> dict[str, Any]:
        """The fields of a layer's options by name, as in the schema: `stride_w`."""
        for union, number, place in _UNIONS:
            kind = _names(self.schema, union).get(operator.number(number, _U8), "NONE")
            table = operator.table(place)
            if kind == "NONE" or table is None or not hasattr(self.schema, kind):
                continue
            key = (kind, table.inline())
            if key in self.known:
                return self.known[key]
            options = getattr(self.schema, kind)()
            options.Init(self.data, table.place)
            fields = _fields(options.__class__)
            settings = Settings({snake: _option(options, name) for snake, name in fields})
            if all(isinstance(v, (bool, int, float)) for v in settings.values()):
                self.known[key] = settings
            return settings
        return Settings()


def _option(options: Any, name: str) -> Any:
    if hasattr(options, name + "AsNumpy"):
        return _vector(options, name).tolist()
    value = getattr(options, name)()
    return _text(value) if isinstance(value, bytes) else value


def _vector(table: Any, name: str) -> np.ndarray:
    """A vector of numbers; flatbuffers gives 0 for one that is missing."""
    vector = getattr(table, name + "AsNumpy")()
    return vector if isinstance(vector, np.ndarray) else np.zeros(0, np.int64)


def _text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value else ""


@cache
def _fields(options: type) -> tuple[tuple[str, str], ...]:
    """The fields of an options class: the name in the schema, the method."""
    names = [n for n in vars(options) if not _NOT_FIELDS.match(n)]
    return tuple([(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n).lower(), n) for n in names if callable(getattr(options, n))])


@cache
def _names(schema: ModuleType, enum: str) -> dict[int, str]:
    """The names of an enum's values."""
    return {v: n for n, v in vars(getattr(schema, enum)).items() if isinstance(v, int)}


__all__ = ["Model", "Operator", "Quantization", "Subgraph", "Tensor", "read_model"]
