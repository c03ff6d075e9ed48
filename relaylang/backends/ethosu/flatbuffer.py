"""Writing a TOSA graph as the flatbuffer that Arm's tools read.

Needs the `flatbuffers` package, which both `ethos-u-vela` and `tosa-tools` bring along, and the schema's modules of `tosa-tools`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.backends.ethosu.tools import load
from relaylang.backends.ethosu.tosa import DTYPES, VERSION, Graph, Operator, Shape, Tensor

_IDENTIFIER = b"TOSA"


def serialize(graph: Graph) -> bytes:
    """The `.tosa` file of one graph: one region, one block, version 1.0.0."""
    flatbuffers = load("flatbuffers", "writing TOSA")
    builder = flatbuffers.Builder(1024 + sum(t.data.nbytes for t in graph.tensors.values() if t.data is not None))
    operators = _offsets(builder, [_operator(builder, op) for op in graph.operators])
    tensors = _offsets(builder, [_tensor(builder, t) for t in graph.tensors.values()])
    shapes = _offsets(builder, [_shape(builder, s) for s in graph.shapes.values()])
    block = _table(
        builder,
        6,
        (0, builder.CreateString(graph.name)),
        (1, operators),
        (2, tensors),
        (3, _strings(builder, graph.inputs)),
        (4, _strings(builder, graph.outputs)),
        (5, shapes),
    )
    region = _table(builder, 2, (0, builder.CreateString(graph.name)), (1, _offsets(builder, [block])))
    regions = _offsets(builder, [region])
    builder.StartObject(4)
    for slot, number in enumerate(VERSION):
        builder.PrependInt32Slot(slot, number, -1)
    builder.PrependBoolSlot(3, False, True)
    version = builder.EndObject()
    root = _table(builder, 2, (0, version), (1, regions))
    builder.Finish(root, file_identifier=_IDENTIFIER)
    return bytes(builder.Output())


def _table(builder: Any, slots: int, *fields: tuple[int, int]) -> int:
    builder.StartObject(slots)
    for slot, offset in fields:
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return builder.EndObject()


def _offsets(builder: Any, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _strings(builder: Any, names: list[str] | tuple[str, ...]) -> int:
    return _offsets(builder, [builder.CreateSharedString(name) for name in names])


def _bytes(builder: Any, data: bytes) -> int:
    """A byte vector whose first element lies on 8 bytes, as the schema asks."""
    padded = np.frombuffer(data, np.uint8)
    builder.StartVector(1, len(padded), 8)
    builder.head -= len(padded)
    builder.Bytes[builder.head : builder.head + len(padded)] = data
    return builder.EndVector()


def _int32s(builder: Any, values: tuple[int, ...]) -> int:
    return builder.CreateNumpyVector(np.array(values, "<i4"))


def _tensor(builder: Any, tensor: Tensor) -> int:
    name = builder.CreateString(tensor.name)
    shape = _int32s(builder, tensor.shape)
    data = None
    if tensor.data is not None:
        raw = tensor.data.astype(tensor.data.dtype.newbyteorder("<"))
        if tensor.dtype == "int48":
            raw = raw.reshape(-1, 1).view(np.uint8)[:, :6]
        data = _bytes(builder, raw.tobytes())
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(1, shape, 0)
    builder.PrependUint32Slot(2, DTYPES[tensor.dtype], 0)
    if data is not None:
        builder.PrependUOffsetTRelativeSlot(3, data, 0)
    return builder.EndObject()


def _shape(builder: Any, shape: Shape) -> int:
    name = builder.CreateString(shape.name)
    data = _bytes(builder, np.array(shape.values, "<i8").tobytes())
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUint32Slot(1, len(shape.values), 0)
    builder.PrependUOffsetTRelativeSlot(2, data, 0)
    return builder.EndObject()


def _operator(builder: Any, op: Operator) -> int:
    number = getattr(load("tosa.Op", "writing TOSA").Op, op.op)
    attribute = _attribute(builder, op)
    inputs = _strings(builder, op.inputs)
    outputs = _strings(builder, op.outputs)
    builder.StartObject(6)
    builder.PrependUint32Slot(0, number, 0)
    builder.PrependUint8Slot(1, number, 0)
    builder.PrependUOffsetTRelativeSlot(2, attribute, 0)
    builder.PrependUOffsetTRelativeSlot(3, inputs, 0)
    builder.PrependUOffsetTRelativeSlot(4, outputs, 0)
    return builder.EndObject()


def _attribute(builder: Any, op: Operator) -> int:
    vectors = {}
    for slot, kind, value in op.attributes:
        if kind == "int32s":
            vectors[slot] = _int32s(builder, value)  # type: ignore[arg-type]
        elif kind == "bytes":
            vectors[slot] = _bytes(builder, value)  # type: ignore[arg-type]
    builder.StartObject(5)
    for slot, kind, value in op.attributes:
        if slot in vectors:
            builder.PrependUOffsetTRelativeSlot(slot, vectors[slot], 0)
        elif kind == "bool":
            builder.PrependBoolSlot(slot, value, False)
        elif kind == "uint32":
            builder.PrependUint32Slot(slot, value, 0)
        elif kind == "int32":
            builder.PrependInt32Slot(slot, value, 0)
    return builder.EndObject()
