"""TFLite files as plain values: the flatbuffer of schema 3, checked against the bytes that are there."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from relaylang.frontends.common.files import damaged, need_package
from relaylang.frontends.tflite.tensors import array_of, dtype_of

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


@dataclass(frozen=True)
class Operator:
    """A layer: `name` is the builtin operator's name in the schema, or the custom operator's own. -1 is no tensor."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    version: int = 1


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


def read_model(data: bytes, file: str) -> Model:
    """The model in a file's contents. Raises `RelayError` (R0802) for a damaged file."""
    schema = need_package("tflite", "tflite", "the TFLite reader")
    if data[4:8] != b"TFL3":
        raise damaged(file, "this is not a TFLite model of schema 3")
    try:
        return _Reader(schema, data, file).model()
    except _WRONG:
        raise damaged(file, "the file is cut short, or an offset in it leads nowhere") from None


class _Reader:
    def __init__(self, schema: ModuleType, data: bytes, file: str) -> None:
        self.schema = schema
        self.data = data
        self.file = file
        self.raw: Any = schema.Model.GetRootAs(data, 0)
        self.codes = [self._code(c) for c in self._each(self.raw, "OperatorCodes")]
        self.buffers = list(self._each(self.raw, "Buffers"))

    def model(self) -> Model:
        graphs = tuple([self._subgraph(g) for g in self._each(self.raw, "Subgraphs")])
        if not graphs:
            raise damaged(self.file, "the model has no graph")
        return Model(graphs, _text(self.raw.Description()))

    def _each(self, table: Any, name: str) -> Iterator[Any]:
        """The entries of a vector, whose length the file's size bounds."""
        count = getattr(table, name + "Length")()
        if not 0 <= count * 4 <= len(self.data):
            raise damaged(self.file, f"a list of {count} {name} does not fit the file")
        get = getattr(table, name)
        return (get(i) for i in range(count))

    def _code(self, code: Any) -> tuple[str, int]:
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = _names(self.schema, "BuiltinOperator").get(number)
        if name is None:
            raise damaged(self.file, f"the operator number {number} is newer than the schema")
        return (_text(code.CustomCode()) if name == "CUSTOM" else name), code.Version()

    def _subgraph(self, graph: Any) -> Subgraph:
        tensors = tuple([self._tensor(i, t) for i, t in enumerate(self._each(graph, "Tensors"))])
        operators = tuple([self._operator(o, len(tensors)) for o in self._each(graph, "Operators")])
        inputs, outputs = (self._indices(graph, name, len(tensors)) for name in ("Inputs", "Outputs"))
        return Subgraph(_text(graph.Name()), tensors, inputs, outputs, operators)

    def _indices(self, table: Any, name: str, count: int) -> tuple[int, ...]:
        found = _vector(table, name)
        if found.size and (found.min() < -1 or found.max() >= count):
            raise damaged(self.file, f"a layer uses the tensor {found.max()} of {count}")
        return tuple(found.tolist())

    def _tensor(self, index: int, tensor: Any) -> Tensor:
        name = _text(tensor.Name()) or f"tensor_{index}"
        dtype = dtype_of(tensor.Type(), self.file, name)
        shape = tuple(_vector(tensor, "Shape").tolist())
        signature = tuple(_vector(tensor, "ShapeSignature").tolist())
        number = tensor.Buffer()
        if not 0 <= number < max(len(self.buffers), 1):
            raise damaged(self.file, f"{name} is in the buffer {number} of {len(self.buffers)}")
        raw = self._buffer(number)
        data = array_of(raw, shape, dtype, tensor.Sparsity(), self.file, name) if raw is not None else None
        stated = signature if len(signature) == len(shape) and data is None else shape
        return Tensor(index, name, stated, dtype, data, self._quantization(tensor.Quantization()), tensor.IsVariable())

    def _buffer(self, number: int) -> np.ndarray | None:
        """The bytes of a buffer; None for the empty one, which all computed tensors share."""
        if not self.buffers or number == 0:
            return None
        buffer = self.buffers[number]
        offset, size = buffer.Offset(), buffer.Size()
        if offset > 1:
            if offset + size > len(self.data):
                raise damaged(self.file, f"the buffer {number} lies behind the end of the file")
            return np.frombuffer(self.data, np.uint8, size, offset)
        if not buffer.DataLength():
            return None
        found: np.ndarray = buffer.DataAsNumpy()
        return found

    def _quantization(self, given: Any) -> Quantization | None:
        if given is None or not given.ScaleLength():
            return None
        scales = _vector(given, "Scale").astype(np.float32)
        zeros = _vector(given, "ZeroPoint").astype(np.int64)
        if zeros.size not in (0, 1, scales.size):
            raise damaged(self.file, "a tensor has other numbers of scales and zero points")
        zeros = np.broadcast_to(zeros if zeros.size else np.zeros(1, np.int64), scales.shape)
        return Quantization(scales, zeros, given.QuantizedDimension())

    def _operator(self, operator: Any, tensors: int) -> Operator:
        number = operator.OpcodeIndex()
        if not 0 <= number < len(self.codes):
            raise damaged(self.file, f"a layer has the operator {number} of {len(self.codes)}")
        name, version = self.codes[number]
        inputs, outputs = (self._indices(operator, n, tensors) for n in ("Inputs", "Outputs"))
        custom = bytes(_vector(operator, "CustomOptions").astype(np.uint8))
        return Operator(name, inputs, outputs, self._options(operator), custom, version)

    def _options(self, operator: Any) -> dict[str, Any]:
        """The fields of a layer's options by name, as in the schema: `stride_w`."""
        for union, get in (("BuiltinOptions", operator.BuiltinOptions), ("BuiltinOptions2", operator.BuiltinOptions2)):
            kind = _names(self.schema, union).get(getattr(operator, union + "Type")(), "NONE")
            table = get()
            if kind == "NONE" or table is None or not hasattr(self.schema, kind):
                continue
            options = getattr(self.schema, kind)()
            options.Init(table.Bytes, table.Pos)
            return {snake: _option(options, name) for snake, name in _fields(options.__class__)}
        return {}


def _option(options: Any, name: str) -> Any:
    if hasattr(options, name + "AsNumpy"):
        return _vector(options, name).tolist()
    value = getattr(options, name)()
    return _text(value) if isinstance(value, bytes) else value


def _vector(table: Any, name: str) -> np.ndarray:
    """A vector of numbers; flatbuffers gives 0 for one that is missing."""
    found = getattr(table, name + "AsNumpy")()
    return found if isinstance(found, np.ndarray) else np.zeros(0, np.int64)


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
