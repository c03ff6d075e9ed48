"""Element types that are stored only: float16 and bfloat16, whose operators compute in float32 and round their results.

Operators that move elements move them as they are. Products take bfloat16 as they are where the machine multiplies them,
and sum in float32. A graph without such types stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.backends.cpu.arith import BFLOATS, has_bfloats
from relaylang.backends.cpu.external import OpaqueOp
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.lower import nn_conv, nn_dense, nn_pool, transform
from relaylang.backends.cpu.lower.common import HALVES
from relaylang.backends.cpu.lower.texts import with_texts
from relaylang.ir import Call, Expr, TensorType, Tuple, TupleType, Type, children, post_order, rebuild
from relaylang.ir.typed import retype, typed, typed_field, typed_tuple
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op

_STORED, _COMPUTED = HALVES.keys(), "float32"
#: Operators that move elements, or convert them.
_MOVES = (transform.RECIPES.keys() - {"arange", "nn.dilate", "one_hot", "sequence_mask"}) | {"cast", "copy", "reinterpret"}
#: Operators whose result without any data is the least number of the type.
_PEAKS = frozenset(name for name in nn_pool.ANCHORS if "max" in name) | {"image.dilation2d"}
#: Numbers among the attributes that are of the data's type.
_FACTORS = {"nn.leaky_relu": "alpha"}
#: Operators whose results out of the type's range become the nearest number in it.
_HELD = frozenset({"qnn.dequantize"})


def _stored(ty: Any) -> bool:
    """Whether a type is of elements that are stored only, or has such parts."""
    if isinstance(ty, TupleType):
        return any(_stored(f) for f in ty.fields)
    return isinstance(ty, TensorType) and ty.dtype in _STORED


def _computed(ty: Any) -> Any:
    """A type with the elements that it is computed in."""
    if isinstance(ty, TupleType):
        return TupleType([_computed(f) for f in ty.fields])
    return TensorType(ty.shape, _COMPUTED) if _stored(ty) else ty


def _as(x: Expr, wanted: Any) -> Expr:
    """A value with its parts cast to those of the type `wanted`."""
    ty = x.checked_type
    if isinstance(ty, TupleType):
        parts: Sequence[Expr] = x.fields if isinstance(x, Tuple) else [typed_field(x, n) for n in range(len(ty.fields))]
        return typed_tuple([_as(part, w) for part, w in zip(parts, wanted.fields)])
    if not isinstance(ty, TensorType) or ty.dtype == wanted.dtype:
        return x
    return op_call("cast", [x], TensorType(ty.shape, wanted.dtype), dtype=wanted.dtype)


def _multiplied(call: Call) -> bool:
    """Whether a product can take bfloat16 as they are: both factors are, and neighbours of the sum make pairs."""
    name = call.op.name  # type: ignore[attr-defined]
    if name not in nn_dense.ANCHORS and not (name in nn_conv.ANCHORS and nn_conv.has_pairs(call)):
        return False
    types = [a.checked_type for a in call.args]
    stored = all(isinstance(t, TensorType) and t.dtype == BFLOATS.data for t in types)
    return stored and _computed(call.checked_type).dtype == _COMPUTED


def _held(name: str, computed: Expr, ty: Any) -> Expr:
    """The result of an operator, held to the range of the type `ty` where the operator does so."""
    if name not in _PEAKS | _HELD or not _stored(ty):
        return computed
    ends = ml_dtypes.finfo(ty.dtype)
    # A nan is neither greater nor less, so the second operand stays.
    computed = op_call("maximum", [scalar(float(ends.min), _COMPUTED), computed], computed.checked_type)
    return computed if name in _PEAKS else op_call("minimum", [scalar(float(ends.max), _COMPUTED), computed], computed.checked_type)


def through_float32(expr: Expr, isa: Isa) -> Expr:
    """A typed expression whose operators compute in types that the machine has."""
    order = list(post_order(expr))
    if not any(_stored(node.checked_type) for node in order):
        return expr
    moves = _MOVES | with_texts()
    done: dict[int, Expr] = {}
    for old in order:
        new = retype(rebuild(old, tuple([done[id(c)] for c in children(old)])), old)
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name not in moves and not isinstance(new.op, OpaqueOp):
            if _stored(new.checked_type) or any(_stored(a.checked_type) for a in new.args):
                new = _widened(new, old.checked_type, isa)
        done[id(old)] = new
    return done[id(expr)]


def _widened(call: Call, ty: Type | None, isa: Isa) -> Expr:
    """A call that computes in float32, where the machine has no better type, and gives a value of a type."""
    assert isinstance(call.op, Op)
    attrs: Any = call.attrs
    multiplied = has_bfloats(isa) and _multiplied(call)
    args = call.args if multiplied else [_as(a, _computed(a.checked_type)) for a in call.args]
    if is_dataclass(attrs) and not isinstance(attrs, type):
        changed: dict[str, Any] = {f.name: _COMPUTED for f in fields(attrs) if getattr(attrs, f.name) in HALVES}
        changed |= {"out_dtype": _COMPUTED} if multiplied else {}
        if (factor := _FACTORS.get(call.op.name)) is not None:
            changed[factor] = float(np.dtype(ty.dtype).type(getattr(attrs, factor)))  # type: ignore[union-attr]
        attrs = replace(attrs, **changed) if changed else attrs
    wide: Expr = typed(Call(call.op, args, attrs, (), call.span), _computed(call.checked_type))
    return _as(_held(call.op.name, wide, ty), ty)
