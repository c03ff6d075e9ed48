"""Layout rules of operators on any tensor: element by element, broadcasts, reductions, parts, orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.ir.extents import OpenExtent
from relaylang.ir.types import Type
from relaylang.ops import Trait, having
from relaylang.ops.layouts import (
    block,
    fitted,
    has_blocks,
    is_split,
    parts,
    places,
    rank,
    sub,
    text,
    transformed_like,
    whole,
)
from relaylang.rules.layout.rule import (
    KEEP,
    PLAIN,
    InferCorrectLayoutOutput,
    Layouts,
    Rule,
    changed,
    field_types,
    shape_at,
)

Out = InferCorrectLayoutOutput
Types = Sequence["Type | None"]


def elementwise(count: int = 1, results: int = 1, others: str = PLAIN) -> Rule:
    """The first operand's layout, whatever it is; the other operands stay as they are."""

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
        layout = (new or old)[0]
        if layout is None:
            return None
        return Out([layout, *[others] * (count - 1)], [layout] * results, attrs)

    return rule


def _size(shape: Sequence[Any]) -> int:
    total = 1
    for extent in shape:
        if not isinstance(extent, int):
            return 1 << 62
        total *= extent
    return total


def _both(old: Layouts, ranks: Sequence[int]) -> list[str] | None:
    """The layouts of two operands, of which the smaller one may have none; None where neither has one that fits."""
    first, second = old[:2]
    if first is not None and second is not None:
        return [first, second]
    known = 0 if second is None else 1
    layout = old[known]
    if layout is None or ranks[known] < ranks[1 - known] or rank(layout) != ranks[known]:
        return None
    other = sub(layout, ranks[known] - ranks[1 - known], ranks[1 - known])
    return [layout, other] if known == 0 else [other, layout]


def _is_larger(one: Sequence[int], two: Sequence[int]) -> bool:
    """Whether the first of two shapes that broadcast has more elements. Extents that a run knows are larger than 1."""
    if any(isinstance(extent, OpenExtent) for extent in (*one, *two)):
        return any(a != 1 and b == 1 for a, b in zip(one, two))
    return _size(one) > _size(two)


def two_layouts(new: Layouts | None, old: Layouts, types: Types) -> tuple[list[str], str] | None:
    """The layouts of two operands that broadcast, and that of their result."""
    shapes = [shape_at(types, 0), shape_at(types, 1)]
    if shapes[0] is None or shapes[1] is None:
        return None
    ranks = [len(s) for s in shapes if s is not None]
    before = _both(old, ranks)
    if before is None:
        return None
    larger = 0 if ranks[0] >= ranks[1] else 1
    if new is None:
        return before, before[larger]
    now = [str(new[0]), str(new[1])]
    wholes = [len(whole(n)) for n in now]
    lead = 0 if wholes[0] > wholes[1] else 1 if wholes[1] > wholes[0] else larger
    if wholes[0] == wholes[1] and ranks[0] == ranks[1]:
        # The result is as large as the larger operand, and the other one follows.
        lead = 1 if _is_larger(shapes[1], shapes[0]) else 0
    if ranks[lead] < ranks[1 - lead]:
        return None
    own = before[1 - lead]
    if now[lead] == before[lead]:
        return before, now[lead]
    follower = transformed_like(own, before[lead], now[lead])
    if follower is None:
        return None
    follower = fitted(follower, own, shapes[1 - lead] or ())
    return ([now[0], follower] if lead == 0 else [follower, now[1]]), now[lead]


def broadcast(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """The larger operand's layout; the other one follows, with blocks of 1 where its extent is 1."""
    layouts = two_layouts(new, old, types)
    return None if layouts is None else Out(layouts[0], [layouts[1]], attrs)


def concatenate(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """The layout that all operands have, else their layout in the program."""
    count = len(field_types(types, 0))
    layouts = joined(attrs, new and new[:count], old[:count], types)
    return None if layouts is None else Out([layouts[0]] * count, [layouts[0]], layouts[1])


def joined(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> tuple[str, Any] | None:
    """The layout in which tensors are joined, and the attributes of the operator that does it."""
    before = next((layout for layout in old if layout is not None), None)
    if before is None or len(old) != len(field_types(types, 0)):
        return None
    axes = parts(before)
    axis = attrs.axis % len(axes) if axes else 0
    if axis >= len(axes) or axes[axis][1]:
        return None
    first = new[0] if new is not None else None
    if new is None or first in (None, before) or any(layout != first for layout in new) or any(b != before for b in old):
        return before, attrs
    assert first is not None
    at = places(first, axes[axis][0])
    return (first, changed(attrs, axis=at[0])) if at else None


def split(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """A split along an axis of blocks goes between the blocks."""
    sections = attrs.indices_or_sections
    count = sections if isinstance(sections, int) else len(sections) + 1
    shape = shape_at(types, 0)
    if old[0] is None or shape is None or rank(old[0]) != len(shape):
        return None
    if new is None or new[0] is None or new[0] == old[0]:
        return Out([old[0]], [old[0]] * count, attrs)
    axis = attrs.axis % len(shape)
    letter, size = parts(old[0])[axis]
    at, of = places(new[0], letter), block(new[0], letter)
    cuts = [shape[axis]] if isinstance(sections, int) else sections
    if isinstance(sections, int) and isinstance(shape[axis], int) and shape[axis] % sections == 0:
        cuts = [shape[axis] // sections]
    fits = bool(at) and not size and (of == 1 or all(isinstance(c, int) and c % of == 0 for c in cuts))
    if not fits:
        return Out([old[0]], [old[0]] * count, attrs)
    places_of = sections if isinstance(sections, int) else [c // of for c in sections]
    return Out([new[0]], [new[0]] * count, changed(attrs, axis=at[0], indices_or_sections=places_of))


def transpose(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """The result's axes are the operand's in another order, so that its layout names them in that order."""
    before = old[0]
    if before is None:
        return None
    axes = parts(before)
    order = [a % len(axes) for a in attrs.axes] if attrs.axes else list(range(len(axes)))[::-1]
    if len(order) != len(axes):
        return None
    layout = before
    if new is not None and new[0] is not None and rank(new[0]) == len(axes):
        at = [places(new[0], axes[a][0]) for a in order]
        if not has_blocks(before) and all(at):
            layout, order = new[0], [a[0] for a in at]
    result = text([parts(layout)[a] for a in order])
    return Out([layout], [result], attrs if layout == before else changed(attrs, axes=order))


def squeeze(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """The axes that are dropped go by their letters, with their blocks."""
    shape = shape_at(types, 0)
    before = old[0]
    if before is None or shape is None or rank(before) != len(shape):
        return None
    if attrs.axis is None:
        gone = [i for i, extent in enumerate(shape) if extent == 1]
    else:
        gone = [a % len(shape) for a in attrs.axis]
    letters = [parts(before)[a][0] for a in gone]
    if new is None or new[0] is None or new[0] == before:
        return Out([before], [_without(before, gone)], attrs)
    drop = [p for letter in letters for p in places(new[0], letter)]
    return Out([new[0]], [_without(new[0], drop)], changed(attrs, axis=drop))


def take(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """Elements along an axis, by a vector of numbers."""
    shape, numbers = shape_at(types, 0), shape_at(types, 1)
    before = old[0]
    if before is None or shape is None or numbers is None or rank(before) != len(shape) or len(numbers) != 1:
        return None
    if attrs.axis is None or attrs.batch_dims:
        return None
    letter, size = parts(before)[attrs.axis % len(shape)]
    layout = new[0] if new is not None and new[0] is not None else before
    at = places(layout, letter)
    if layout == before or size or len(at) != 1:
        return Out([before, PLAIN], [before], attrs)
    return Out([layout, PLAIN], [layout], changed(attrs, axis=at[0]))


def _without(layout: str, gone: Sequence[int]) -> str:
    return text([part for i, part in enumerate(parts(layout)) if i not in set(gone)])


def strided_slice(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """A slice along an axis of blocks takes whole blocks."""
    shape = shape_at(types, 0)
    before = old[0]
    if before is None or shape is None or rank(before) != len(shape) or attrs.begin is None or attrs.end is None or len(old) > 1:
        return None
    if new is None or new[0] is None or new[0] == before:
        return Out([before], [before], attrs)
    layout, by_size = new[0], attrs.slice_mode == "size"
    letters = [letter for letter, _ in parts(before)]
    bounds = _bounds(attrs, shape)
    if bounds is None or has_blocks(before):
        return None
    slices = _slices(layout, letters, bounds, shape, by_size)
    if slices is None:
        return None
    order = None
    if attrs.axes:
        order = [places(layout, letters[axis])[0] for axis, _ in bounds]
        rows = [slices[p] for p in order]
    else:
        full = _extents(shape, before, layout)
        if full is None:
            return None
        count = max(slices, default=-1) + 1 if has_blocks(layout) else len(full)
        rows = [slices.get(p, (0, -1 if by_size else full[p], 1)) for p in range(count)]
    fields = {"begin": [r[0] for r in rows], "end": [r[1] for r in rows], "strides": [r[2] for r in rows]}
    if has_blocks(layout) and all(r[2] == 1 for r in rows):
        fields["strides"] = list(attrs.strides or ())
    return Out([layout], [layout], changed(attrs, **fields, axes=order))


def _slices(
    layout: str, letters: Sequence[str], bounds: Sequence[tuple[int, tuple[int, int, int]]], shape: Sequence[Any], by_size: bool
) -> dict[int, tuple[int, int, int]] | None:
    """The begin, end and step of each axis of a layout; None where the layout lacks an axis, or blocks are cut."""
    slices = {}
    for axis, (begin, end, step) in bounds:
        at = places(layout, letters[axis])
        row: tuple[int, int, int] | None = (begin, end, 1 if by_size else step)
        if at and is_split(layout, letters[axis]):
            row = _of_blocks(begin, end, 1 if by_size else step, shape[axis], block(layout, letters[axis]), by_size)
        if not at or row is None:
            return None
        slices[at[0]] = row
    return slices


def _bounds(attrs: Any, shape: Sequence[Any]) -> list[tuple[int, tuple[int, int, int]]] | None:
    """The begin, end and step of each axis that a slice names; None where one has no bound."""
    starts, ends, strides = list(attrs.begin), list(attrs.end), list(attrs.strides or ())
    if attrs.axes:
        axes = [a % len(shape) for a in attrs.axes]
    else:
        axes = list(range(max(len(starts), len(ends), len(strides))))
    strides += [1] * (len(axes) - len(strides))
    for axis in range(min(len(starts), len(ends)), len(axes)):  # an axis without a bound is taken whole
        if attrs.slice_mode == "size" or strides[axis] < 0 or not isinstance(shape[axis], int):
            return None
        starts += [0] * (axis == len(starts))
        ends += [shape[axis]] * (axis == len(ends))
    if len(starts) != len(ends) or len(axes) != len(starts):
        return None
    return list(zip(axes, zip(starts, ends, strides)))


def _of_blocks(begin: Any, end: Any, step: int, extent: Any, size: int, by_size: bool) -> tuple[int, int, int] | None:
    """A slice of an axis as one of its blocks of `size`; None where it cuts one."""
    if step != 1 or not isinstance(extent, int) or begin is None or end is None:
        return None
    if by_size:
        end = extent if end < 0 else begin + end
    begin, end = [min(max(v + extent if v < 0 else v, 0), extent) for v in (begin, end)]
    if begin % size or end % size:
        return None
    return begin // size, (end - begin if by_size else end) // size, 1


def _extents(shape: Sequence[Any], old: str, layout: str) -> list[int] | None:
    """The extents in a layout, where they are known."""
    by = {letter: extent for (letter, _), extent in zip(parts(old), shape)}
    out = []
    for letter, size in parts(layout):
        extent = size or by.get(letter)
        if not isinstance(extent, int):
            return None
        out.append(extent if size else extent // block(layout, letter))
    return out


def slice_like(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    if old[0] is None or old[0] != old[1] or has_blocks(old[0]):
        return None
    shape = shape_at(types, 0)
    if new is None or new[0] is None or new[0] != new[1] or not attrs.axes or shape is None:
        return Out([old[0], old[0]], [old[0]], attrs)
    positions = [places(new[0], parts(old[0])[a % len(shape)][0]) for a in attrs.axes]
    if not all(positions):
        return Out([old[0], old[0]], [old[0]], attrs)
    return Out([new[0], new[0]], [new[0]], changed(attrs, axes=[f[0] for f in positions]))


def reduction(position: bool = False) -> Rule:
    """Reduced axes go by their letters, with their blocks. Where the result is a `position` among the reduced elements,
    their order is kept."""

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
        before, shape = old[0], shape_at(types, 0)
        if before is None or shape is None or rank(before) != len(shape) or not shape:
            return None
        layout = new[0] if new is not None and new[0] is not None else before
        letters = {parts(before)[a][0] for a in attrs.axis or range(len(shape))}
        gone = {c for c, _ in parts(before)} - letters if attrs.exclude and attrs.axis else letters
        if layout != before and (has_blocks(before) or (position and not _same_order(before, layout, gone))):
            return None
        left = _reduced(layout, gone, attrs.keepdims)
        if layout != before:
            attrs = changed(attrs, axis=[i for i, (c, _) in enumerate(parts(layout)) if {c, c.upper()} & letters])
        inputs = [layout]
        if len(old) == 2:  # variance, and the mean that it takes
            mean = shape_at(types, 1) or ()
            inputs.append(fitted(layout, before, mean) if len(mean) == rank(before) else PLAIN)
        return Out(inputs, [left], attrs)

    return rule


def _reduced(layout: str, gone: set[str], keepdims: bool) -> str:
    """A layout without some axes and their blocks, or with blocks of 1 of them."""
    left = []
    for c, size in parts(layout):
        if not {c, c.upper()} & gone:
            left.append((c, size))
        elif keepdims:
            left.append((c, min(size, 1)))
    return text(left)


def _same_order(old: str, new: str, letters: set[str]) -> bool:
    """Whether the elements along some axes are counted in the same order in both layouts."""
    before = [c for c, _ in parts(old) if c in letters]
    after = [c for c, _ in parts(new) if c in letters or c.upper() in letters]
    if len(before) == 1:
        return after[0].isupper() and {c.upper() for c in after} == set(before)
    return before == after


def topk(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    shape = shape_at(types, 0)
    if old[0] is None or shape is None or rank(old[0]) != len(shape):
        return None
    results = 2 if attrs.ret_type == "both" else 1
    moved = moved_axis(attrs.axis, len(shape), old[0], new[0] if new else None)
    if moved is None:
        return Out([old[0]], [old[0]] * results, attrs)
    return Out([moved[0]], [moved[0]] * results, changed(attrs, axis=moved[1]))


def moved_axis(axis: int, count: int, old: str, new: str | None) -> tuple[str, int] | None:
    """The new layout and where an axis is in it; None where it is in blocks there."""
    if new is None or new == old or has_blocks(old) or rank(old) != count:
        return None
    letter = parts(old)[axis % count][0]
    at = places(new, letter)
    return (new, at[0]) if len(at) == 1 else None


def per_axis_multiply(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """fixed_point_multiply_per_axis: the factors lie along the axes that they are for, in blocks where these are."""
    shape = shape_at(types, 0)
    if old[0] is None or shape is None or rank(old[0]) != len(shape) or len(attrs.axes) != 1 or has_blocks(old[0]):
        return None
    letter = parts(old[0])[attrs.axes[0] % len(shape)][0]
    layout = new[0] if new is not None and new[0] is not None else old[0]
    at = places(layout, letter)
    along = text([parts(layout)[p] for p in at])
    if layout != old[0]:
        attrs = changed(attrs, axes=at)
    return Out([layout, along, along, along], [layout], attrs)


#: Marks and copies, which leave their operand as it is.
_MARKS = (
    "on_device",
    "device_copy",
    "annotation.stop_fusion",
    "annotation.cast_hint",
    "annotation.bitpack_start",
    "annotation.bitpack_end",
    "annotation.checkpoint",
    "annotation.compiler_begin",
    "annotation.compiler_end",
)

RULES: dict[str, Rule] = {
    **dict.fromkeys([*having(Trait.UNARY), *_MARKS], elementwise()),
    **dict.fromkeys(having(Trait.BINARY), broadcast),
    "cast_like": elementwise(2, others=KEEP),
    "full_like": elementwise(2),
    "nn.dropout": elementwise(results=2),
    "relay.op.annotation.simulated_quantize": elementwise(4),
    "concatenate": concatenate,
    "split": split,
    "transpose": transpose,
    "squeeze": squeeze,
    "strided_slice": strided_slice,
    "slice_like": slice_like,
    "take": take,
    **dict.fromkeys(having(Trait.REDUCTION, without=[Trait.ARG_REDUCTION]), reduction()),
    **dict.fromkeys(having(Trait.ARG_REDUCTION), reduction(position=True)),
    "topk": topk,
    "fixed_point_multiply_per_axis": per_axis_multiply,
}
