"""DynamicToStatic: the static form of each operator that takes shapes as operands.

A rule gets a call, and the arrays of its operands (None for one that is not constant). It returns the static operator's
name, its operands, and the attributes that it has beside the call's own. It returns None where an operand is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr
from relaylang.ops import OPS, get
from relaylang.ops.record import Op, make_attrs

Made = tuple[str, list[Expr], dict[str, Any]]
Rule = Callable[[Call, list[Any]], "Made | None"]


def _ints(value: Any) -> list[int] | None:
    # `__index__`, not `int`: extents that are known in a run stay what they are.
    return None if value is None else [v.__index__() for v in np.asarray(value).reshape(-1)]


def _int(value: Any) -> int:
    return np.asarray(value).reshape(()).item().__index__()  # type: ignore[no-any-return]


def _shaped(name: str, attr: str) -> Rule:
    """An operator whose second operand is the attribute `attr` of the static one."""

    def make(call: Call, values: list[Any]) -> Made | None:
        shape = _ints(values[1])
        return None if shape is None else (name, [call.args[0]], {attr: shape})

    return make


def _init(name: str) -> Rule:
    def make(call: Call, values: list[Any]) -> Made | None:
        shape = _ints(values[-1])
        return None if shape is None else (name, list(call.args[:-1]), {"shape": shape})

    return make


def _strided_slice(call: Call, values: list[Any]) -> Made | None:
    begin, end, strides = (_ints(v) for v in values[1:4])
    if begin is None or end is None or strides is None:
        return None
    return "strided_slice", [call.args[0]], {"begin": begin, "end": end, "strides": strides}


def _topk(call: Call, values: list[Any]) -> Made | None:
    return None if values[1] is None else ("topk", [call.args[0]], {"k": _int(values[1])})


def _one_hot(call: Call, values: list[Any]) -> Made | None:
    return None if values[3] is None else ("one_hot", list(call.args[:3]), {"depth": _int(values[3])})


def _pad(call: Call, values: list[Any]) -> Made | None:
    if values[1] is None:
        return None
    widths = [_ints(row) for row in np.asarray(values[1])]
    return "nn.pad", [call.args[0], call.args[2]], {"pad_width": widths}


def _upsampling(name: str, scales: tuple[str, ...]) -> Rule:
    def make(call: Call, values: list[Any]) -> Made | None:
        if any(v is None for v in values[1:]):
            return None
        return name, [call.args[0]], {s: float(v) for s, v in zip(scales, values[1:])}

    return make


def _resize2d(call: Call, values: list[Any]) -> Made | None:
    size = _ints(values[1])
    if size is None or values[2] is None:
        return None
    return "image.resize2d", [call.args[0]], {"size": size, "roi": [float(v) for v in np.asarray(values[2]).reshape(-1)]}


def _sparse_to_dense(call: Call, values: list[Any]) -> Made | None:
    shape = _ints(values[3])
    return None if shape is None else ("sparse_to_dense", list(call.args[:3]), {"output_shape": shape})


RULES: Mapping[str, Rule] = {
    "dyn.reshape": _shaped("reshape", "newshape"),
    "dyn.broadcast_to": _shaped("broadcast_to", "shape"),
    "dyn.tile": _shaped("tile", "reps"),
    "dyn.squeeze": _shaped("squeeze", "axis"),
    "dyn.zeros": _init("zeros"),
    "dyn.ones": _init("ones"),
    "dyn.full": _init("full"),
    "dyn.strided_slice": _strided_slice,
    "dyn.topk": _topk,
    "dyn.one_hot": _one_hot,
    "dyn.expand_dims": lambda call, values: None if values[1] is None else ("expand_dims", [call.args[0]], {"axis": _int(values[1])}),
    "dyn.nn.pad": _pad,
    "dyn.nn.upsampling": _upsampling("nn.upsampling", ("scale_h", "scale_w")),
    "dyn.nn.upsampling3d": _upsampling("nn.upsampling3d", ("scale_d", "scale_h", "scale_w")),
    "dyn.image.resize2d": _resize2d,
    "dyn.sparse_to_dense": _sparse_to_dense,
}


def static_call(call: Call, values: list[Any] | None = None) -> Call | None:
    """The static form of a call of the dyn dialect, without a type. None where a needed operand is not constant.

    `values` are its operands' arrays; by default those of its constants.
    """
    assert isinstance(call.op, Op)
    if values is None:
        values = [a.data if isinstance(a, Constant) else None for a in call.args]
    static = RULES[call.op.name](call, values)
    if static is None or static[0] not in OPS:
        return None
    name, args, attrs = static
    op = get(name)
    kept = {k: getattr(call.attrs, k) for k in op.schema if call.attrs is not None and hasattr(call.attrs, k)}
    assert op.attrs is not None
    return Call(op, args, make_attrs(op.attrs, {**kept, **attrs}), (), call.span)
