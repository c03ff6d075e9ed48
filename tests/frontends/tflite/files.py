"""Small TFLite files for tests, written with flatbuffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "complex64": 8,
    "int8": 9,
    "float64": 10,
    "resource": 13,
    "uint32": 15,
    "uint16": 16,
    "int4": 17,
}
#: A graph: tensors, layers, names of inputs and of outputs.
Graph = tuple[Mapping[str, "T"], Sequence["Op"], Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class T:
    """A tensor: a shape, or the array of a constant; scales and zero points where it is quantised."""

    shape: Sequence[int] = ()
    dtype: str = "float32"
    data: np.ndarray | None = None
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()
    axis: int = 0
    variable: bool = False


def const(array: Any, **more: Any) -> T:
    """A constant tensor."""
    array = np.asarray(array)
    return T(array.shape, array.dtype.name, array, **more)


@dataclass(frozen=True)
class Op:
    """A layer; names of tensors; the options' class and values by the schema's names."""

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str] = ("y",)
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    version: int = 1
    intermediates: Sequence[str] = ()


def _vector(b: Any, kind: str, values: Sequence[int]) -> int:
    array = np.asarray(values, kind)
    made: int = b.CreateNumpyVector(array)
    return made


def _tables(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    made: int = b.EndVector()
    return made


def _table(b: Any, schema: Any, kind: str, **fields: Any) -> int:
    """A table of the schema's class; fields by the names of its Add functions."""
    getattr(schema, kind + "Start")(b)
    for name, value in fields.items():
        getattr(schema, f"{kind}Add{name}")(b, value)
    made: int = getattr(schema, kind + "End")(b)
    return made


def _options(b: Any, schema: Any, op: Op) -> dict[str, int]:
    if not op.kind:
        return {}
    table = _table(b, schema, op.kind, **{n: _value(b, v) for n, v in op.options.items()})
    union = "BuiltinOptions" if hasattr(schema.BuiltinOptions, op.kind) else "BuiltinOptions2"
    return {union + "Type": getattr(getattr(schema, union), op.kind), union: table}


def _value(b: Any, value: Any) -> Any:
    """A field of options: a text, an array, a list of int32, or a number itself."""
    if isinstance(value, str):
        return b.CreateString(value)
    if isinstance(value, np.ndarray):
        return b.CreateNumpyVector(value)
    return _vector(b, "int32", value) if isinstance(value, (list, tuple)) else value


def _quantization(b: Any, schema: Any, t: T) -> dict[str, int]:
    if not t.scale:
        return {}
    scale, zero = _vector(b, "float32", t.scale), _vector(b, "int64", t.zero or [0] * len(t.scale))
    return {"Quantization": _table(b, schema, "QuantizationParameters", Scale=scale, ZeroPoint=zero, QuantizedDimension=t.axis)}


def file(tensors: Mapping[str, T], ops: Sequence[Op], inputs: Sequence[str], outputs: Sequence[str], *others: Graph) -> bytes:
    """A model of one graph, and of `others` that its layers run by their numbers, from 1."""
    schema = pytest.importorskip("tflite")
    flatbuffers = pytest.importorskip("flatbuffers")
    b = flatbuffers.Builder(1024)
    buffers, codes = [_table(b, schema, "Buffer")], []
    graphs = [_graph(b, schema, g, buffers, codes) for g in [(tensors, ops, inputs, outputs), *others]]
    model = _table(
        b,
        schema,
        "Model",
        Version=3,
        OperatorCodes=_tables(b, codes),
        Subgraphs=_tables(b, graphs),
        Buffers=_tables(b, buffers),
    )
    b.Finish(model, b"TFL3")
    return bytes(b.Output())


def _graph(b: Any, schema: Any, graph: Graph, buffers: list[int], codes: list[int]) -> int:
    tensors, ops, inputs, outputs = graph
    index = {name: i for i, name in enumerate(tensors)}
    made = []
    for name, t in tensors.items():
        number = 0
        if t.data is not None:
            data = _vector(b, "uint8", np.frombuffer(np.ascontiguousarray(t.data).tobytes(), np.uint8))
            number = len(buffers)
            buffers.append(_table(b, schema, "Buffer", Data=data))
        text, shape, scales = b.CreateString(name), _vector(b, "int32", t.shape), _quantization(b, schema, t)
        more = {**scales, "IsVariable": t.variable}
        made.append(_table(b, schema, "Tensor", Shape=shape, Type=TYPES[t.dtype], Buffer=number, Name=text, **more))
    layers = []
    for op in ops:
        number = getattr(schema.BuiltinOperator, op.name, schema.BuiltinOperator.CUSTOM)
        own = {"CustomCode": b.CreateString(op.name)} if number == schema.BuiltinOperator.CUSTOM else {}
        low = min(number, 127)
        codes.append(_table(b, schema, "OperatorCode", DeprecatedBuiltinCode=low, BuiltinCode=number, Version=op.version, **own))
        parts = _options(b, schema, op)
        if op.custom:
            parts["CustomOptions"] = _vector(b, "uint8", np.frombuffer(op.custom, np.uint8))
        ins = _vector(b, "int32", [index[n] if n else -1 for n in op.inputs])
        outs = _vector(b, "int32", [index[n] for n in op.outputs])
        if op.intermediates:
            parts["Intermediates"] = _vector(b, "int32", [index[n] for n in op.intermediates])
        layers.append(_table(b, schema, "Operator", OpcodeIndex=len(codes) - 1, Inputs=ins, Outputs=outs, **parts))
    lists = {"Tensors": _tables(b, made), "Operators": _tables(b, layers)}
    ends = {
        "Inputs": _vector(b, "int32", [index[n] for n in inputs]),
        "Outputs": _vector(b, "int32", [index[n] for n in outputs]),
    }
    table: int = _table(b, schema, "SubGraph", **lists, **ends)
    return table
