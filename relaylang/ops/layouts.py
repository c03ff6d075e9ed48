"""Layouts as texts: `NCHW` names the axes of a tensor, and in `NCHW4c` the channels come in blocks of 4.

An upper-case letter is a whole axis, or the number of its blocks. A lower-case letter with a number is a block of it.
The layout of a scalar is empty. An unknown layout is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

from relaylang.ir.types import Dim
from relaylang.ops.shapes import split_layout

Parts = tuple[tuple[str, int], ...]


@lru_cache(maxsize=4096)
def parts(layout: str) -> Parts:
    """The axes in order: the letter, and a block's size (0 for a whole axis). Raises `ValueError`."""
    return tuple(split_layout(layout))


def is_layout(layout: object) -> bool:
    """Whether a text is a layout."""
    if not isinstance(layout, str):
        return False
    try:
        parts(layout)
    except ValueError:
        return False
    return True


def text(axes: Sequence[tuple[str, int]]) -> str:
    """The layout of axes as `parts` lists them."""
    return "".join([f"{size}{letter}" if size else letter for letter, size in axes])


def usual(layout: str) -> tuple[str, ...]:
    """The layouts that programs use for a tensor of these whole axes, the given one first: `NCHW`, `NHWC`, `NCHW16c`."""
    spatial = "".join([letter for letter in layout if letter in "DHW"])
    others = "".join([letter for letter in layout if letter not in "DHW"])
    if not spatial or not others:
        return (layout,)
    if others == "NC":
        return tuple(dict.fromkeys([layout, f"NC{spatial}", f"N{spatial}C", f"NC{spatial}16c"]))
    last = ["".join([spatial, *order]) for order in permutations(others[::-1])]
    return tuple(dict.fromkeys([layout, *last, others[0] + spatial + others[1:]]))


def rank(layout: str) -> int:
    """How many axes a tensor of the layout has."""
    return len(parts(layout))


@lru_cache(maxsize=4096)
def whole(layout: str) -> str:
    """The whole axes in their order: `NCHW` of `NCHW4c`."""
    return "".join([letter for letter, size in parts(layout) if not size])


def places(layout: str, letter: str) -> list[int]:
    """Where an axis and its blocks stand, from the outermost to the innermost; empty where it is not there."""
    upper, lower = letter.upper(), letter.lower()
    axes = parts(layout)
    return [i for i, (a, _) in enumerate(axes) if a == upper] + [i for i, (a, _) in enumerate(axes) if a == lower]


def block(layout: str, letter: str) -> int:
    """The size of an axis's blocks: 4 for `C` in `NCHW4c`, 1 where it is not split."""
    size = 1
    lower = letter.lower()
    for a, n in parts(layout):
        if a == lower:
            size *= n
    return size


def is_split(layout: str, letter: str) -> bool:
    """Whether an axis has blocks, even of 1."""
    lower = letter.lower()
    return any(a == lower for a, _ in parts(layout))


def has_blocks(layout: str) -> bool:
    return any(size for _, size in parts(layout))


def sub(layout: str, begin: int, count: int) -> str:
    """The layout of some neighbouring axes."""
    return text(parts(layout)[begin : begin + count])


def turned_shape(shape: Sequence[Dim], source: str, target: str) -> tuple[Dim, ...] | None:
    """The extents in another layout; None where it has other axes, or an axis does not divide into its blocks."""
    have, want = parts(source), parts(target)
    if len(have) != len(shape) or sorted(whole(source)) != sorted(whole(target)):
        return None
    if source == target:
        return tuple(shape)
    sizes: dict[str, Dim] = {}
    for (letter, size), extent in zip(have, shape):
        if size and extent != size:
            return None
        known = sizes.get(letter.upper(), 1)
        if not isinstance(known, int) or not isinstance(extent, int):
            if letter in sizes or letter.upper() in sizes:
                return None  # blocks of an axis of unknown extent
            sizes[letter.upper()] = extent
        else:
            sizes[letter.upper()] = known * extent
    out: list[Dim] = []
    for letter, size in want:
        if size:
            out.append(size)
            continue
        extent, of = sizes[letter], block(target, letter)
        if of != 1:
            if not isinstance(extent, int) or extent % of:
                return None
            extent //= of
        out.append(extent)
    return tuple(out)


def expanded(layout: str, like: str) -> str:
    """The layout, with the whole axes that it lacks of another one put in front."""
    have = whole(layout)
    return "".join([letter for letter in whole(like) if letter not in have]) + layout


def alike(left: Parts, right: Parts) -> bool:
    """Whether two layouts differ in the names of their axes only."""
    if len(left) != len(right):
        return False
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for (a, size), (b, other) in zip(left, right):
        if size != other or there.setdefault(a, b) != b or back.setdefault(b, a) != a:
            return False
    return True


@lru_cache(maxsize=4096)
def transformed_like(old: str, like_old: str, like_new: str) -> str | None:
    """The new layout of a tensor that broadcasts to another one, which gets a new layout. Last axes are aligned.

    The tensor has the layout `old`, the other one `like_old` and then `like_new`. `NW` beside `NC` that becomes `NC4c`
    is `NW4w`. None where they do not fit together.
    """
    small, large = parts(old), parts(like_old)
    if len(small) <= len(large):
        rest, tail = large[: len(large) - len(small)], large[len(large) - len(small) :]
        other = small
    else:
        rest, tail = small[: len(small) - len(large)], small[len(small) - len(large) :]
        other = large
    within = {letter.upper() for letter, _ in tail}
    if any(letter.upper() in within for letter, _ in rest) or not alike(tail, other):
        return None
    if not small:
        return old
    names = {b.upper(): a.upper() for (a, _), (b, _) in zip(reversed(small), reversed(large))}
    used = set(names.values())
    for letter, _ in reversed(large):
        upper = letter.upper()
        if upper not in names:
            spare = upper if upper not in used else next(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in used)
            names[upper] = spare
            used.add(spare)
    axes: list[tuple[str, int]] = []
    for letter, size in parts(like_new):
        name = names.get(letter.upper())
        if name is None:
            return None
        axes.append((name if letter.isupper() else name.lower(), size))
    return text(axes)


def fitted(layout: str, old: str, shape: Sequence[Dim]) -> str:
    """The layout with blocks of 1 for axes of extent 1, and for axes that the layout `old` lacks."""
    axes: list[tuple[str, int]] = []
    for letter, size in parts(layout):
        if size:
            at = places(old, letter)
            missing = not at or not parts(old)[at[0]][0].isupper()
            if missing or (shape[at[0]] == 1 and not is_split(old, letter)):
                size = 1
        axes.append((letter, size))
    return text(axes)
