"""Arithmetic on shapes that type relations share: broadcasting, axes, layouts, extents that may be unknown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from relaylang.ir.extents import OpenExtent, agree, combine, names_in, never_agree
from relaylang.ir.types import ANY, Dim, Extent, SymbolicDim, TensorType, Type, TypeVar, dim_text
from relaylang.ops.record import RelationContext, tensor

FLOATS = ("float16", "float32", "float64", "bfloat16")
#: The classes of extents that broadcast to themselves where they are equal, with nothing to remember.
_PLAIN = frozenset({int, type(ANY)})


def shape_text(shape: Sequence[Dim]) -> str:
    """A shape as an error shows it: `(1, ?, 3)`."""
    return "(" + ", ".join(map(dim_text, shape)) + ")"


def is_int_dtype(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def is_float_dtype(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def bits_of(dtype: str) -> int | None:
    """The number of bits of an element; None where its type does not give it."""
    number = dtype.lstrip("abcdefghijklmnopqrstuvwxyz")
    return 1 if dtype == "bool" else int(number) if number.isdigit() else None


def same_dim(left: Dim, right: Dim) -> bool:
    """Whether two extents may be the same. One that is not known, or that has a name, may be any."""
    if left is right or left == right:
        return True
    if left is ANY or right is ANY:
        return True
    if not isinstance(left, TypeVar) and not isinstance(right, TypeVar):
        return False
    if any(isinstance(name, SymbolicDim) for name in (*names_in(left), *names_in(right))):
        return not never_agree(left, right)
    return agree(left, right) is not False


def add_dim(dim: Dim, amount: Dim) -> Dim:
    return combine("tir.Add", dim, amount)


def mul_dim(dim: Dim, factor: Dim) -> Dim:
    return combine("tir.Mul", dim, factor)


def div_dim(dim: Dim, divisor: int) -> Dim:
    return combine("tir.FloorDiv", dim, divisor)


def divided(dim: Dim, divisor: int, what: str, ctx: RelationContext, arg: int = 0) -> Dim:
    """An extent divided; an error where there is a rest. `what` names the divisor (`block_size=2`)."""
    if isinstance(dim, int) and dim % divisor:
        ctx.fail(f"{what} does not divide the extent {dim}", arg)
    return div_dim(dim, divisor)


def product(shape: Sequence[Dim]) -> Dim:
    """The number of elements, `ANY` where an extent is unknown."""
    total: Dim = 1
    for dim in shape:
        total = mul_dim(total, dim)
    return total


def broadcast_shapes(left: Sequence[Dim], right: Sequence[Dim], ctx: RelationContext, arg: int | None = 1) -> tuple[Dim, ...]:
    """The shape that two broadcast to, aligned at the last axis. An extent of 1 yields to any, `?` to a known one."""
    if len(left) == len(right) and _PLAIN.issuperset(map(type, (*left, *right))) and left == right:
        return tuple(left)
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    skip = len(longer) - len(shorter)
    out = list(longer[:skip])
    for axis, (a, b) in enumerate(zip(left[len(left) - len(shorter) :], right[len(right) - len(shorter) :])):
        if a == 1:
            out.append(b)
        elif b == 1:
            out.append(a)
        elif (isinstance(a, OpenExtent) or isinstance(b, OpenExtent)) and (wide := broadcast_open(a, b)) is not None:
            out.append(wide)
        elif a == b:
            out.append(a)
        elif a is ANY:
            out.append(b)
        elif b is ANY or ((isinstance(a, TypeVar) or isinstance(b, TypeVar)) and agree(a, b) is not False):
            out.append(a)
        else:
            mine, other = (left, right) if arg == 0 else (right, left)
            at = axis + skip - len(longer)
            ctx.fail(
                f"has the shape {shape_text(mine)}, which does not broadcast with {shape_text(other)}: "
                f"axis {at} is {dim_word(mine, at)}, not {dim_word(other, at)}, and neither is 1",
                arg,
                notes=[_broadcastable(mine, other)],
            )
    return tuple(out)


def broadcast_open(left: Dim, right: Dim) -> int | None:
    """What two extents broadcast to of which a kernel's run knows one; None for others, and where they must be equal."""
    one, other = (left, right) if isinstance(left, OpenExtent) else (right, left)
    return one.broadcast(other) if isinstance(one, OpenExtent) else None


def fits(own: Dim, wide: Dim) -> bool:
    """Whether an operand's extent broadcasts to that of a result, as far as they are known."""
    return own == 1 or (isinstance(own, OpenExtent) and own.yields_to(wide)) or same_dim(own, wide)


def _broadcastable(mine: Sequence[Dim], other: Sequence[Dim]) -> str:
    """The note on a shape that does not broadcast with another: the nearest one that does."""
    short, long = sorted((mine, other), key=len)
    widened = [*short, *[1] * (len(long) - len(short))]
    if len(short) < len(long) and all(1 in pair or same_dim(*pair) for pair in zip(widened, long)):
        return f"shapes are compared from the last axis on: {shape_text(widened)} in place of {shape_text(short)} broadcasts"
    equal, ones = list(mine), list(mine)
    for at in range(-1, -1 - min(len(mine), len(other)), -1):
        if 1 not in (mine[at], other[at]) and not same_dim(mine[at], other[at]):
            equal[at], ones[at] = other[at], 1
    return f"{shape_text(equal)} and {shape_text(ones)} broadcast with {shape_text(other)}"


def dim_word(shape: Sequence[Dim], axis: int) -> str:
    return dim_text(shape[axis])


def out_of_range(rank: int) -> str:
    """The words about an axis that a tensor does not have."""
    limits = f": its axes are {-rank} to {rank - 1}" if rank else ""
    return f"is out of range for a tensor of {rank} dimension{'s' * (rank != 1)}{limits}"


def norm_axis(axis: int, rank: int, ctx: RelationContext, name: str = "axis", arg: int | None = 0) -> int:
    """An axis counted from the front; an error where the tensor has no such axis."""
    if not -rank <= axis < rank:
        ctx.fail(f"{name}={axis} {out_of_range(rank)}", arg)
    return axis + rank if axis < 0 else axis


def distinct_axes(axes: Sequence[int], rank: int, ctx: RelationContext, name: str = "axis", whole: bool = False) -> list[int]:
    """Axes counted from the front; an error where one comes twice. A `whole` list names each axis of the tensor."""
    positions = [norm_axis(a, rank, ctx, f"{name}: axis" if whole else name) for a in axes]
    once = dict.fromkeys(positions)
    if len(once) != len(positions):
        missing = ", ".join(str(a) for a in range(rank) if a not in once)
        note = f"each axis stands once in `{name}`; missing: {missing}" if whole else f"`{name}={list(once)}` has each axis once"
        ctx.fail(f"{name}={list(axes)} names a dimension twice", notes=[note])
    return positions


def need_rank(ty: TensorType, rank: int, arg: int, ctx: RelationContext) -> None:
    if len(ty.shape) != rank:
        ctx.fail(f"must have {rank} dimensions, but `{ty!r}` has {len(ty.shape)}", arg)


def need_entries(taken: Sequence[Dim], result: Sequence[Dim], ty: TensorType, arg: int, ctx: RelationContext, where: str = "") -> None:
    """Refuse a result with entries from an argument that has none along the axes `taken`."""
    if 0 in taken and all(isinstance(d, int) and d > 0 for d in result):
        ctx.fail(f"has no entries to choose from{where}, in `{ty!r}`", arg)


def need_dtype(ty: TensorType, dtypes: Sequence[str], arg: int, ctx: RelationContext) -> None:
    if ty.dtype not in dtypes:
        ctx.fail(f"must be of {' or '.join(dtypes)}, not {ty.dtype}", arg)


def need_int(ty: TensorType, arg: int, ctx: RelationContext) -> None:
    if not is_int_dtype(ty.dtype):
        ctx.fail(f"must be a tensor of whole numbers, not of {ty.dtype}", arg)


def need_scalar(types: Sequence[Type], arg: int, dtype: str | None, ctx: RelationContext) -> None:
    """Argument `arg` is a scalar, of `dtype` where one is given."""
    ty = tensor(types, arg, ctx)
    if ty.shape or (dtype is not None and ty.dtype != dtype):
        ctx.fail(f"must be a scalar{f' of {dtype}' if dtype else ''}, not `{ty!r}`", arg)


def split_layout(layout: str) -> list[tuple[str, int]]:
    """The axes of a layout such as `NCHW4c`, in order: letter and extent. A whole axis has the extent 0; a split part
    has its own.

    An axis may be split several times (`OIHW4i16o4i`); of its parts each one is inside those before it.
    """
    return list(_axes(layout))


@lru_cache(4096)
def _axes(layout: str) -> tuple[tuple[str, int], ...]:
    """Programs have few layouts, and ask for them often."""
    axes: list[tuple[str, int]] = []
    number = ""
    for char in layout:
        if char.isdigit():
            number += char
        elif char.isalpha():
            if char.isupper() == bool(number) or (number and not int(number)):
                raise ValueError(layout)
            axes.append((char, int(number or 0)))
            number = ""
        else:
            raise ValueError(layout)
    letters = [a for a, _ in axes]
    primal = [a for a in letters if a.isupper()]
    if number or len(set(primal)) != len(primal) or any(a.islower() and a.upper() not in primal for a in letters):
        raise ValueError(layout)
    return tuple(axes)


Axis = tuple[str, int]


@lru_cache(4096)
def _order(source: str, target: str) -> tuple[int, ...] | None:
    """Where the axes of a layout without split parts come from in another one; None for other layouts."""
    if not (source.isalpha() and source.isupper() and len(set(source)) == len(source)) or sorted(source) != sorted(target):
        return None
    return tuple([source.index(letter) for letter in target])


def _split_layouts(source: str, target: str, rank: int, ctx: RelationContext, arg: int) -> tuple[list[Axis], list[Axis]]:
    """The axes of two layouts of the same letters; a tensor of `rank` axes has the first."""
    try:
        have, want = split_layout(source), split_layout(target)
    except ValueError as problem:
        ctx.fail(f"`{problem}` is not a layout", arg)
        raise
    if {a.upper() for a, _ in have} != {a.upper() for a, _ in want}:
        ctx.fail(f"layout `{source}` cannot be changed to `{target}`: they have other axes", arg)
    if len(have) != rank:
        ctx.fail(f"has {rank} dimensions, but the layout `{source}` has {len(have)}", arg)
    return have, want


def change_layout(shape: Sequence[Dim], source: str, target: str, ctx: RelationContext, arg: int = 0) -> list[Dim]:
    """The extents of a tensor in another layout. A split axis has its extent divided by the split's factor.

    They are int32, whatever those of the tensor are, as TVM's maps between layouts make them.
    """
    shape = [int(d) if isinstance(d, Extent) else d for d in shape]
    if source == target and len(source) == len(shape):
        return shape
    order = _order(source, target)
    if order is not None and len(order) == len(shape) and all([isinstance(d, int) for d in shape]):
        return [shape[i] for i in order]
    have, want = _split_layouts(source, target, len(shape), ctx, arg)
    sizes: dict[str, Dim] = {}
    for (letter, factor), extent in zip(have, shape):
        key = letter.upper()
        if factor and isinstance(extent, int) and extent != factor:
            ctx.fail(f"has blocks of {extent} along {letter}, but the layout `{source}` has blocks of {factor}", arg)
        sizes[key] = mul_dim(sizes.get(key, 1), factor or extent)
    factors: dict[str, int] = {}
    for letter, factor in want:
        factors[letter.upper()] = factors.get(letter.upper(), 1) * (factor or 1)
    return [factor or _whole(sizes[letter], factors.get(letter, 1)) for letter, factor in want]


def need_pixels(shape: Sequence[Dim], layout: str, reference: str, ctx: RelationContext) -> None:
    """Refuse to resize data without a pixel along a spatial axis."""
    for letter, extent in zip(reference[2:], change_layout(shape, layout, reference, ctx)[2:]):
        if extent == 0:
            ctx.fail(f"has no pixels along {letter}, from which others could be made", 0)


def need_images(images: Dim, parts: Dim, ctx: RelationContext) -> None:
    """Refuse to take parts of images where there is no image."""
    if images == 0 and parts != 0:
        ctx.fail("has no images, from which parts could be taken", 0)


def _whole(extent: Dim, factor: int) -> Dim:
    """How many blocks of a split axis there are; the last one may not be full."""
    return extent if factor == 1 else div_dim(add_dim(extent, factor - 1), factor)


def split_factor(layout: str, letter: str) -> int:
    """The factor by which a layout splits an axis: 4 for `C` in `NCHW4c`, 1 for a whole axis."""
    factor = 1
    for axis, extent in split_layout(layout):
        if axis.islower() and axis.upper() == letter:
            factor *= extent
    return factor


def axis_of(layout: str, letter: str) -> int:
    """The position of a whole axis in a layout, or -1."""
    for i, (axis, _) in enumerate(split_layout(layout)):
        if axis == letter:
            return i
    return -1
