"""Attributes of every operator, each with another value than its default, which the reader must keep.

A case is a map of JSON. `{"int": 3}` stands for an object of that kind, so TVM and relaylang build the same object.
"""

from __future__ import annotations

from typing import Any

from relaylang.ops import OPS
from relaylang.ops.record import AttrField, Op
from relaylang.syntax.attribute_strings import CHOICES

#: Values of fields that hold more than a number, a text or a list, by type key and name.
SPECIAL: dict[tuple[str, str], Any] = {
    ("relay.attrs.AllocStorageAttrs", "virtual_device"): {"device": [2, 3, "global.vtcm"]},
    ("relay.attrs.OnDeviceAttrs", "virtual_device"): {"device": [1, 4, ""]},
    ("relay.attrs.DeviceCopyAttrs", "src_virtual_device"): {"device": [2, 0, "texture"]},
    ("relay.attrs.DeviceCopyAttrs", "dst_virtual_device"): {"device": [1, 0, ""]},
    ("relay.attrs.AllocTensorAttrs", "const_shape"): {"constant": [2, 3]},
    ("relay.attrs.ArangeAttrs", "start"): {"constant": 2},
    ("relay.attrs.ArangeAttrs", "stop"): {"constant": 9},
    ("relay.attrs.ArangeAttrs", "step"): {"constant": 3},
    ("relay.attrs.CallLoweredAttrs", "metadata"): {"map": {"a": "b", "n": 5}},
    ("relay.attrs.SplitAttrs", "indices_or_sections"): [3, 5],
}
#: Another layout for that of the default.
LAYOUTS = {"NCW": "NWC", "NCHW": "NHWC", "NHWC": "NCHW", "NCDHW": "NDHWC", "OIHW": "HWIO"}
#: Fields whose value cannot be made without the compiler that uses them.
LEFT_OUT = {("relay.attrs.DebugAttrs", "debug_func"), ("relay.attrs.MetaScheduleLayoutTransformAttrs", "index_map")}


def _value(op: Op, field: AttrField, at: int) -> Any:
    special = SPECIAL.get((op.attrs.type_key, field.name))  # type: ignore[union-attr]
    if special is not None:
        return special
    words = CHOICES.get((op.name, field.name))
    if words is not None:
        return next(w for w in reversed(words) if w and w != field.default)
    match field.kind:
        case "int":
            return at + 7
        case "bool":
            return not field.default
        case "float":
            return at + 0.375
        case "Ints":
            return [at + 2, at + 5]
        case "NestedInts":
            return [[at + 1, at + 2], [at + 3, at + 4]]
        case "Floats":
            return [at + 0.5, at + 0.125]
    if "dtype" in field.name or field.name == "pack_type":
        return "int16"
    if "layout" in field.name:
        return LAYOUTS.get(str(field.default), f"NCHW{at + 2}c")
    return "7" if field.name in ("compiler", "equation") else f"word{at}"


def cases() -> dict[str, dict[str, Any]]:
    """By operator: its attributes' type key, how many arguments it takes, and the values by name."""
    out = {}
    for name, op in OPS.items():
        if op.attrs is None or not op.schema or op.attrs.type_key == "DictAttrs":  # type: ignore[attr-defined]
            continue
        key = op.attrs.type_key  # type: ignore[attr-defined]
        fields = [f for f in op.schema.values() if (key, f.name) not in LEFT_OUT]
        values = {f.name: _value(op, f, at) for at, f in enumerate(fields)}
        kinds = {f.name: f.kind for f in fields}
        out[name] = {"key": key, "args": len(op.args), "values": values, "kinds": kinds}
    return out
