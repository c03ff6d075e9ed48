"""Element types that are stored only: bfloat16, whose operators compute in float32 and round their results.

Operators that move elements move them as they are. Products take them as they are where the machine multiplies them, and
sum in float32. A graph without such types stays as it is.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import ml_dtypes

from relaylang.backends.cpu.arith import has_bfloats
from relaylang.backends.cpu.external import ExternalOp
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.lower import nn_conv, nn_dense, nn_pool, transform
from relaylang.ir import Call, Expr, TensorType, Tuple, TupleType, children, post_order, rebuild
from relaylang.ir.typed import retype, typed, typed_field, typed_tuple
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op

_STORED, _COMPUTED = "bfloat16", "float32"
#: Operators that move elements, or convert them.
_MOVES = (transform.RECIPES.keys() - {"arange", "nn.dilate", "one_hot", "sequence_mask"}) | {"cast", "copy"}
#: Operators whose result without any data is the least number of the type.
_PEAKS = frozenset(name for name in nn_pool.ANCHORS if "max" in name)
_LOWEST = float(ml_dtypes.finfo(_STORED).min)


def _stored(ty: Any) -> bool:
    """Whether a type is of elements that are stored only, or has such parts."""
    if isinstance(ty, TupleType):
        return any(_stored(f) for f in ty.fields)
    return isinstance(ty, TensorType) and ty.dtype == _STORED


def _computed(ty: Any) -> Any:
    """A type with the elements that it is computed in."""
    if isinstance(ty, TupleType):
        return TupleType([_computed(f) for f in ty.fields])
    return TensorType(ty.shape, _COMPUTED) if _stored(ty) else ty


def _as(x: Expr, dtype: str, wanted: Any) -> Expr:
    """A value with its parts of other types than those of the type `wanted` cast to `dtype`."""
    ty = x.checked_type
    if isinstance(ty, TupleType):
        parts: Sequence[Expr] = x.fields if isinstance(x, Tuple) else [typed_field(x, n) for n in range(len(ty.fields))]
        return typed_tuple([_as(part, dtype, w) for part, w in zip(parts, wanted.fields)])
    if not isinstance(ty, TensorType) or ty.dtype == wanted.dtype:
        return x
    return op_call("cast", [x], TensorType(ty.shape, dtype), dtype=dtype)


def _multiplied(call: Call) -> bool:
    """Whether a product can take bfloat16 as they are: both factors are, and neighbours of the sum make pairs."""
    name = call.op.name  # type: ignore[attr-defined]
    if name not in nn_dense.ANCHORS and not (name in nn_conv.ANCHORS and nn_conv.has_pairs(call)):
        return False
    return all(_stored(a.checked_type) for a in call.args) and _computed(call.checked_type).dtype == _COMPUTED


def through_float32(expr: Expr, isa: Isa) -> Expr:
    """A typed expression whose operators compute in types that the machine has."""
    order = list(post_order(expr))
    if not any(_stored(node.checked_type) for node in order):
        return expr
    done: dict[int, Expr] = {}
    for old in order:
        new = retype(rebuild(old, tuple([done[id(c)] for c in children(old)])), old)
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name not in _MOVES \
                and not isinstance(new.op, ExternalOp):  # fmt: skip
            if _stored(new.checked_type) or any(_stored(a.checked_type) for a in new.args):
                attrs: Any = new.attrs
                multiplied = has_bfloats(isa) and _multiplied(new)
                args = new.args if multiplied else [_as(a, _COMPUTED, _computed(a.checked_type)) for a in new.args]
                if is_dataclass(attrs) and not isinstance(attrs, type):
                    changed = {f.name: _COMPUTED for f in fields(attrs) if getattr(attrs, f.name) == _STORED}
                    changed |= {"out_dtype": _COMPUTED} if multiplied else {}
                    attrs = replace(attrs, **changed) if changed else attrs
                made: Expr = typed(Call(new.op, args, attrs, (), new.span), _computed(new.checked_type))
                if new.op.name in _PEAKS:
                    made = op_call("maximum", [made, scalar(_LOWEST, _COMPUTED)], made.checked_type)
                new = _as(made, _STORED, old.checked_type)
        done[id(old)] = new
    return done[id(expr)]
