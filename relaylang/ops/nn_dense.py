"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import ANY, Dim, TensorType, Type, TypeVar
from relaylang.ops.record import Integer, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import broadcast_open, need_rank, same_dim
from relaylang.ops.traits import Trait

F = OpPattern.OUT_ELEMWISE_FUSABLE


@attrs_class("relay.attrs.DenseAttrs")
class DenseAttrs:
    units: Integer | None
    out_dtype: str | None = None


@attrs_class("relay.attrs.MatmulAttrs")
class MatmulAttrs:
    units: Integer | None
    out_dtype: str | None = None
    transpose_a: bool = False
    transpose_b: bool = False


@attrs_class("relay.attrs.BatchMatmulAttrs")
class BatchMatmulAttrs:
    out_dtype: str | None = None
    transpose_a: bool = False
    transpose_b: bool = False


def _repairs(weight: Type, wanted: TensorType, axis: int) -> list[str]:
    """What may be meant by a weight of another shape; `axis` is that of its units."""
    if not isinstance(weight, TensorType) or len(weight.shape) != 2:
        return []
    if weight.shape == wanted.shape[::-1]:
        return ["this weight has its axes the other way round: transpose it"]
    differs = [i for i in range(2) if weight.shape[i] != wanted.shape[i]]
    return [f"`units={weight.shape[axis]}` takes this weight"] if differs == [axis] else []


def product_of(types: Sequence[Type], attrs: AnyValue, transpose_a: bool, transpose_b: bool, ctx: RelationContext) -> Type | None:
    """The product of a tensor's last axes with a matrix, whose type follows from `units` where it is given."""
    left, right = tensor(types, 0, ctx), types[1]
    if len(left.shape) < (2 if transpose_a else 1):
        ctx.fail(f"must have at least {2 if transpose_a else 1} dimensions, not `{left!r}`", 0)
    shape = list(left.shape)
    reduced = shape[-2] if transpose_a else shape[-1]
    if transpose_a:
        shape[-2] = shape[-1]
    if attrs.units is not None:
        dtype = right.dtype if isinstance(right, TensorType) else left.dtype
        wanted = TensorType((attrs.units, reduced) if transpose_b else (reduced, attrs.units), dtype)
        ctx.unify(1, wanted, lambda: _repairs(right, wanted, 0 if transpose_b else 1))
        shape[-1] = attrs.units
    else:
        if not isinstance(right, TensorType):
            return None
        need_rank(right, 2, 1, ctx)
        inner, units = (right.shape[1], right.shape[0]) if transpose_b else right.shape
        if not same_dim(reduced, inner):
            turned = transpose_b and same_dim(reduced, units)
            notes = ["this weight has its axes the other way round: transpose it"] if turned else []
            ctx.fail(f"sums over {inner} numbers, but the first argument `{left!r}` has {reduced} there", 1, notes)
        shape[-1] = units
    return TensorType(shape, attrs.out_dtype or left.dtype)


def dense(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (..., n), weight (units, n); the result is (..., units) of out_dtype, or else of the data's element
    type.
    """
    return product_of(types, attrs, False, True, ctx)


def matmul(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes tensor_a (..., m, n) and tensor_b (n, units). Where transpose_a or transpose_b is set, its last axes are
    exchanged. The result is (..., m, units) of out_dtype, or else of the first argument's element type.
    """
    return product_of(types, attrs, attrs.transpose_a, attrs.transpose_b, ctx)


def batch_matmul(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes tensor_a (b, m, n) and tensor_b (b, n, k); one b may be 1. Where transpose_a or transpose_b is set, its
    last axes are exchanged. The result is (b, m, k) of out_dtype, or else of the first argument's element type.
    """
    left, right = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(left, 3, 0, ctx)
    need_rank(right, 3, 1, ctx)
    rows, inner = (left.shape[2], left.shape[1]) if attrs.transpose_a else left.shape[1:]
    other, columns = (right.shape[2], right.shape[1]) if attrs.transpose_b else right.shape[1:]
    a, b = left.shape[0], right.shape[0]
    wide = broadcast_open(a, b)
    a, b = (a, b) if wide is None else (wide, wide)
    dims = (*left.shape, *right.shape)
    if all(isinstance(d, int) for d in dims) or any(isinstance(d, TypeVar) for d in dims):
        if not same_dim(a, b) and a != 1 and b != 1:
            ctx.fail(f"has a batch of {b}, but the first argument has {a}, and neither is 1", 1)
        if not same_dim(inner, other):
            agrees = not attrs.transpose_b and inner == columns
            hint = ("`transpose_b=True` makes them agree: TVM 0.7 and older, which did not write it, meant it so",)
            what = f"sums over {other} numbers, but the first argument `{left!r}` has {inner} there"
            ctx.fail(what, 1, hint if agrees else ())
    known = isinstance(a, int) and isinstance(b, int)
    batch: Dim = b if a == 1 else a if known or a is b or b == 1 else ANY
    return TensorType((batch, rows, columns), attrs.out_dtype or left.dtype)


OPS = (
    Op(
        "nn.dense",
        ("data", "weight"),
        DenseAttrs,
        dense,
        F,
        1,
        needs=(0,),
        doc="data times the weight, transposed.",
        traits={Trait.MATMUL},
        python="(..., units=None, out_dtype='')",
    ),
    Op(
        "nn.matmul",
        ("tensor_a", "tensor_b"),
        MatmulAttrs,
        matmul,
        F,
        1,
        needs=(0,),
        doc="The product of two matrices, each as it is or transposed.",
        traits={Trait.MATMUL},
        python="(..., units=None, out_dtype='')",
    ),
    Op(
        "nn.batch_matmul",
        ("tensor_a", "tensor_b"),
        BatchMatmulAttrs,
        batch_matmul,
        F,
        10,
        doc="The products of two batches of matrices; the second's are transposed by default.",
        traits={Trait.PARTS_BROADCAST, Trait.MATMUL},
        python="(..., out_dtype='', transpose_b=True)",
    ),
)
