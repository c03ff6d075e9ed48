"""Tensors as pictures of a terminal: a line of bars for a vector, a heat map for a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

_BARS, _PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_SHADES, _PLAIN_SHADES = " ░▒▓█", " .:-=+*#%@"
#: The terminal's colours from the least number to the greatest; those of the second row have white for zero.
_RISING = (17, 18, 19, 25, 31, 37, 36, 35, 71, 107, 143, 179, 215, 221, 227, 230)
_AROUND_ZERO = (19, 26, 32, 38, 74, 110, 152, 195, 224, 217, 210, 203, 197, 161, 124, 88)
#: Elements that are no finite numbers.
_NOT_FINITE, _NOT_FINITE_COLOUR = "?", 201
#: The most lines of a heat map, and the most columns of one element.
_MOST_LINES, _MOST_ZOOM = 24, 8


@dataclass(frozen=True)
class Style:
    """A terminal: its columns, and whether it shows colours. `plain` ones have ASCII alone."""

    width: int = 80
    color: bool = False
    plain: bool = False


def picture(data: np.ndarray, style: Style) -> str:
    """A tensor's picture and its range. Of more than two dimensions, the last two are shown, at the first of the others.

    Several elements share a column or line where there are too many; it shows their mean.
    """
    if not data.size:
        return "no elements"
    numbers = data.astype(np.float64)
    lines = [statistics(numbers)]
    if numbers.ndim > 2:
        lines.append(f"[{', '.join(['0'] * (numbers.ndim - 2))}, :, :] of {numbers.shape}")
        numbers = numbers[(0,) * (numbers.ndim - 2)]
    room = max(1, style.width - 1)
    drawn = bars(numbers.reshape(-1), room, style.plain) if numbers.ndim < 2 else heat_map(numbers, room, style)
    return "\n".join([*lines, drawn])


def statistics(numbers: np.ndarray) -> str:
    """`least -1, mean 0.25, greatest 3`, of the finite numbers."""
    finite = numbers[np.isfinite(numbers)]
    parts = [f"{n} not finite" for n in [numbers.size - finite.size] if n]
    if finite.size:
        mean = (finite / finite.size).sum()  # no sum of finite numbers that is too great
        parts = [f"least {finite.min():.6g}", f"mean {mean:.6g}", f"greatest {finite.max():.6g}", *parts]
    return ", ".join(parts)


def bars(numbers: np.ndarray, width: int, plain: bool = False) -> str:
    """A line of bars, the lowest for the least number."""
    signs = _PLAIN_BARS if plain else _BARS
    levels = _levels(_joined(numbers[None, :], 1, width), len(signs))[0]
    return "".join(signs[level] if level >= 0 else _NOT_FINITE for level in levels)


def heat_map(numbers: np.ndarray, width: int, style: Style) -> str:
    """A matrix as colours, two rows in a line, or as shades."""
    rows, columns = numbers.shape
    lines = _MOST_LINES * 2 if style.color else _MOST_LINES
    numbers = _joined(numbers, lines, width if style.color else width // 2)
    zoom = max(1, min(_MOST_ZOOM, width // columns, lines // rows)) if style.color else 1
    if not style.color:
        signs = _PLAIN_SHADES if style.plain else _SHADES
        shown = [[signs[level] if level >= 0 else _NOT_FINITE for level in row] for row in _levels(numbers, len(signs))]
        return "\n".join("".join(sign * 2 for sign in row) for row in shown)
    finite = numbers[np.isfinite(numbers)]
    around = finite.size > 0 and finite.min() < 0 < finite.max()
    palette = (*(_AROUND_ZERO if around else _RISING), _NOT_FINITE_COLOUR)
    levels = _levels(numbers, len(palette) - 1, around).repeat(zoom, 0).repeat(zoom, 1)
    return "\n".join(_coloured(levels[i : i + 2], palette) for i in range(0, len(levels), 2))


def _coloured(pair: np.ndarray, palette: tuple[int, ...]) -> str:
    """One or two rows as a line of half blocks. A level of -1 is the last colour."""
    out = []
    for levels, equal in groupby(zip(*pair.tolist())):
        below = "".join(f";48;5;{palette[level]}" for level in levels[1:])
        out.append(f"\x1b[38;5;{palette[levels[0]]}{below}m{'▀' * len(list(equal))}")
    return "".join(out) + "\x1b[0m"


def _joined(numbers: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The matrix with at most so many rows and columns, whose elements are means."""
    for axis, most in ((0, rows), (1, columns)):
        size, most = numbers.shape[axis], max(1, most)
        if size > most:
            starts = np.arange(most) * size // most
            counts = np.diff([*starts, size])
            shares = np.repeat(counts, counts)
            with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
                numbers = np.add.reduceat(numbers / (shares[:, None] if axis == 0 else shares), starts, axis)
    return numbers


def _levels(numbers: np.ndarray, count: int, around: bool = False) -> np.ndarray:
    """The numbers as whole numbers below `count`, in their order; -1 for one that is not finite.

    `around`: zero lies between the two middle ones.
    """
    finite = np.isfinite(numbers)
    if not finite.any():
        return np.full(numbers.shape, -1)
    low, high = numbers[finite].min(), numbers[finite].max()
    if around:
        high = max(-low, high)
        low = -high
    span = high / 2 - low / 2  # half of it, as the whole may be too great
    with np.errstate(all="ignore"):
        parts = (numbers / 2 - low / 2) / span if span > 0 else np.full(numbers.shape, 0.5)
        return np.where(finite, np.clip(np.where(finite, parts, 0) * count, 0, count - 1), -1).astype(int)


__all__ = ["Style", "bars", "heat_map", "picture", "statistics"]
