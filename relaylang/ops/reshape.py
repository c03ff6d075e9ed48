"""The shapes that `reshape` and its like make.

The numbers of a new shape:

- a positive one is the extent
- 0 copies the extent of the data's next axis, where `allowzero` is not set
- -1 takes the elements that are left over
- -2 copies all remaining axes
- -3 joins the next two axes
- -4 splits the next axis into the two numbers that follow, one of which may be -1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.extents import exact_quotient
from relaylang.ir.types import ANY, Dim, TensorType, Type, TypeVar
from relaylang.ops.record import RelationContext, tensor
from relaylang.ops.relations import check_same_size
from relaylang.ops.shapes import div_dim, mul_dim, product, shape_text


def _with_one_left(shape: Sequence[Dim], wanted: Sequence[Dim]) -> str:
    """The note on a shape with more than one `-1`: a shape that fits, if one is near."""
    at = wanted.index(-1)
    rest = product([d for d in wanted if d != -1])
    total = product(shape)
    if isinstance(rest, int) and isinstance(total, int) and rest > 0 and list(wanted).count(-1) == 2 and total:
        for d in shape:
            if isinstance(d, int) and not total % (rest * d):
                return f"`newshape={[*wanted[:at], d, *wanted[at + 1 :]]}` fits: write a number for all `-1` but one"
    return "write a number for all `-1` but one"


def new_shape(shape: Sequence[Dim], wanted: Sequence[Dim], allowzero: bool, ctx: RelationContext) -> list[Dim]:
    """The shape that `wanted` describes for data of `shape`."""

    out: list[Dim] = []
    used_in: set[int] = set()
    used_out: set[int] = set()
    source = 0
    inferred = -1

    def take_axis(word: str) -> Dim:
        nonlocal source
        if source >= len(shape):
            ctx.fail(f"newshape={list(wanted)}: {word} finds no axis left in {shape_text(shape)}", 0)
        used_in.add(source)
        source += 1
        return shape[source - 1]

    i = 0
    while i < len(wanted):
        value = wanted[i]
        if not isinstance(value, int):
            out.append(value if isinstance(value, TypeVar) else ANY)
            source += 1
        elif value > 0 or (value == 0 and allowzero):
            out.append(value)
            source += 1
        elif value == 0:
            used_out.add(len(out))
            out.append(take_axis("0"))
        elif value == -1:
            if inferred >= 0:
                ctx.fail(
                    f"newshape={list(wanted)}: only one extent can be left to be found (-1)", notes=[_with_one_left(shape, wanted)]
                )
            inferred = len(out)
            out.append(1)
            source += 1
        elif value == -2:
            while source < len(shape):
                used_out.add(len(out))
                out.append(take_axis("-2"))
        elif value == -3:
            first, second = take_axis("-3"), take_axis("-3")
            used_out.add(len(out))
            out.append(mul_dim(first, second))
        elif value == -4:
            if i + 2 >= len(wanted):
                ctx.fail(f"newshape={list(wanted)}: -4 needs two numbers behind it")
            split, left, right = take_axis("-4"), wanted[i + 1], wanted[i + 2]
            i += 2
            if left == -1 and right == -1:
                ctx.fail(f"newshape={list(wanted)}: only one of the two numbers behind -4 can be -1")
            if left == 0 or right == 0:
                ctx.fail(f"newshape={list(wanted)}: the numbers behind -4 must not be 0")
            used_out.update((len(out), len(out) + 1))
            out.append(div_dim(split, right) if left == -1 and isinstance(right, int) else left)
            out.append(div_dim(split, left) if right == -1 and isinstance(left, int) else right)
        else:
            ctx.fail(f"newshape={list(wanted)}: {value} has no meaning")
        i += 1
    if inferred >= 0:
        rest = product([d for i, d in enumerate(shape) if i not in used_in])
        count = product([d for i, d in enumerate(out) if i not in used_out])
        if isinstance(rest, int) and isinstance(count, int):
            if count == 0:
                ctx.fail(f"newshape={list(wanted)}: -1 has no definite value beside an extent of 0")
            out[inferred] = rest // count
        else:
            out[inferred] = exact_quotient(rest, count)
    return out


def reshape(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result has its element type and as many elements, in the shape newshape. There 0
    takes the data's extent at this place (where not allowzero), and -1 is found. Further -2 takes all that remain, -3
    the product of two, -4 splits one into the two numbers behind it.
    """
    data = tensor(types, 0, ctx)
    shape = new_shape(data.shape, attrs.newshape, attrs.allowzero, ctx)
    check_same_size(data.shape, shape, ctx)
    return TensorType(shape, data.dtype)


def reverse_reshape(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """As `reshape`, but the numbers of newshape are taken from the right."""
    data = tensor(types, 0, ctx)
    shape = new_shape(data.shape[::-1], attrs.newshape[::-1], attrs.allowzero, ctx)[::-1]
    check_same_size(data.shape, shape, ctx)
    return TensorType(shape, data.dtype)


def reshape_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data and shape_like, with as many elements where they meet. The axes from lhs_begin to lhs_end are replaced
    by those from rhs_begin to rhs_end of shape_like. The result has the data's element type.
    """
    data, like = tensor(types, 0, ctx), tensor(types, 1, ctx)
    bounds = []
    for value, rank, default in (
        (attrs.lhs_begin, len(data.shape), 0),
        (attrs.lhs_end, len(data.shape), len(data.shape)),
        (attrs.rhs_begin, len(like.shape), 0),
        (attrs.rhs_end, len(like.shape), len(like.shape)),
    ):
        at = default if value is None else value + rank if value < 0 else min(value, rank)
        if at < 0:
            ctx.fail(f"lhs_begin, lhs_end, rhs_begin and rhs_end must be axes, but {value} is none of {rank}")
        bounds.append(at)
    a, b, c, d = bounds
    shape = (*data.shape[:a], *like.shape[c:d], *data.shape[b:])
    check_same_size(data.shape, shape, ctx)
    return TensorType(shape, data.dtype)
