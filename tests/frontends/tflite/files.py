"""Small TFLite files for tests, written with flatbuffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9}


@dataclass(frozen=True)
class T:
    """A tensor: a shape, or the array of a constant; scales and zero points where it is quantised."""

    shape: Sequence[int] = ()
    dtype: str = "float32"
    data: np.ndarray | None = None
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()
    axis: int = 0


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
    values = {n: _vector(b, "int32", v) if isinstance(v, (list, tuple)) else v for n, v in op.options.items()}
    table = _table(b, schema, op.kind, **values)
    return {"BuiltinOptionsType": getattr(schema.BuiltinOptions, op.kind), "BuiltinOptions": table}


def _quantization(b: Any, schema: Any, t: T) -> dict[str, int]:
    if not t.scale:
        return {}
    scale, zero = _vector(b, "float32", t.scale), _vector(b, "int64", t.zero or [0] * len(t.scale))
    return {
        "Quantization": _table(
            b, schema, "QuantizationParameters", Scale=scale, ZeroPoint=zero, QuantizedDimension=t.axis
        )
    }


def file(tensors: Mapping[str, T], ops: Sequence[Op], inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """A model of one graph."""
    schema = pytest.importorskip("tflite")
    flatbuffers = pytest.importorskip("flatbuffers")
    b = flatbuffers.Builder(1024)
    index = {name: i for i, name in enumerate(tensors)}
    buffers = [_table(b, schema, "Buffer")]
    made = []
    for name, t in tensors.items():
        number = 0
        if t.data is not None:
            data = _vector(b, "uint8", np.frombuffer(np.ascontiguousarray(t.data).tobytes(), np.uint8))
            number = len(buffers)
            buffers.append(_table(b, schema, "Buffer", Data=data))
        text, shape, scales = b.CreateString(name), _vector(b, "int32", t.shape), _quantization(b, schema, t)
        made.append(_table(b, schema, "Tensor", Shape=shape, Type=TYPES[t.dtype], Buffer=number, Name=text, **scales))
    codes, layers = [], []
    for i, op in enumerate(ops):
        number = getattr(schema.BuiltinOperator, op.name, schema.BuiltinOperator.CUSTOM)
        own = {"CustomCode": b.CreateString(op.name)} if number == schema.BuiltinOperator.CUSTOM else {}
        codes.append(
            _table(
                b,
                schema,
                "OperatorCode",
                DeprecatedBuiltinCode=min(number, 127),
                BuiltinCode=number,
                Version=op.version,
                **own,
            )
        )
        parts = _options(b, schema, op)
        if op.custom:
            parts["CustomOptions"] = _vector(b, "uint8", np.frombuffer(op.custom, np.uint8))
        ins = _vector(b, "int32", [index[n] if n else -1 for n in op.inputs])
        outs = _vector(b, "int32", [index[n] for n in op.outputs])
        layers.append(_table(b, schema, "Operator", OpcodeIndex=i, Inputs=ins, Outputs=outs, **parts))
    lists = {"Tensors": _tables(b, made), "Operators": _tables(b, layers)}
    ends = {
        "Inputs": _vector(b, "int32", [index[n] for n in inputs]),
        "Outputs": _vector(b, "int32", [index[n] for n in outputs]),
    }
    graph = _table(b, schema, "SubGraph", **lists, **ends)
    model = _table(
        b,
        schema,
        "Model",
        Version=3,
        OperatorCodes=_tables(b, codes),
        Subgraphs=_tables(b, [graph]),
        Buffers=_tables(b, buffers),
    )
    b.Finish(model, b"TFL3")
    return bytes(b.Output())
