"""Requantization on an ALU of 32 bits: `(v * m + 2^(s - 1)) >> s` with a multiplier m of up to 31 bits, exact to the integer.

Relay computes it in 64 bits. Where v * m' fits 32 bits, m' being m without its trailing zeros, it is one multiplication and
one shift. Otherwise v = vh * 2^11 + vl and m = mh * 2^16 + ml, with vl and ml signed, and

    v * m = vh * mh * 2^27 + vh * ml * 2^11 + vl * mh * 2^16 + vl * ml.

Each partial product fits 32 bits. Shifts of partial sums keep the floor: floor((x * 2^k + y) / 2^k) = x + floor(y / 2^k).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from relaylang.backends.vta.steps import FULL, Slots, Step
from relaylang.diagnostics.unsupported import Unsupported

#: Appends a step with a constant, one number or one for each channel.
Apply = Callable[[str, int, Any], None]
#: The bits of v and m below the split.
_LOW_V, _LOW_M = 11, 16


class _Bounded(Protocol):
    @property
    def slot(self) -> int: ...

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...


def requantize(slots: Slots, apply: Apply, value: _Bounded, multipliers: np.ndarray, shifts: np.ndarray) -> tuple[int, int]:
    """Append the steps that scale a value in its slot. Returns the bounds of the result.

    `multipliers` and `shifts` are int64, one or one for each channel. Raises `Unsupported`.
    """
    multipliers, shifts = np.asarray(multipliers, np.int64), np.asarray(shifts, np.int64)
    if (multipliers < 0).any() or (multipliers >= 1 << 31).any():
        raise Unsupported("a multiplier is negative, or has more than 31 bits")
    if not multipliers.any():
        apply("MUL", value.slot, 0)
        return 0, 0
    zeros = np.array([(int(m) & -int(m)).bit_length() - 1 if m else 31 for m in multipliers], np.int64)
    zeros = np.where(multipliers == 0, 0, np.minimum(zeros, shifts - 1))
    short, by = multipliers >> np.maximum(zeros, 0), shifts - np.maximum(zeros, 0)
    most = max(abs(value.low), abs(value.high))
    bounds = [_scaled(v, int(m), int(s)) for v in (value.low, value.high) for m, s in zip(multipliers, shifts)]
    if min(bounds) < FULL[0] or max(bounds) > FULL[1]:
        raise Unsupported("the scaled value may leave the range of int32")
    if (shifts < 1).any():
        raise Unsupported("its scale enlarges values more than 2^30 times")
    exact = all(0 < s < 32 and most * int(m) + (1 << int(s) - 1) <= FULL[1] for m, s in zip(short, by))
    if exact:
        if (short != 1).any():
            apply("MUL", value.slot, _one(short))
        apply("ADD", value.slot, _one(np.left_shift(np.int64(1), by - 1)))
        apply("SHR", value.slot, _one(by))
    else:
        _wide(slots, apply, value.slot, most, multipliers, shifts)
    return min(bounds), max(bounds)


def _scaled(v: int, m: int, s: int) -> int:
    return (v * m + (1 << s - 1)) >> s if s > 0 else (v * m) << -s


def _one(values: np.ndarray) -> Any:
    """A number where all are equal."""
    return int(values[0]) if (values == values[0]).all() else values


def _wide(slots: Slots, apply: Apply, v: int, most: int, multipliers: np.ndarray, shifts: np.ndarray) -> None:
    low = ((multipliers + (1 << 15)) & 0xFFFF) - (1 << 15)
    high = (multipliers - low) >> _LOW_M
    if most >= 1 << 26 or (high >= 1 << 15).any():
        raise Unsupported(f"values up to {most} times a multiplier of 31 bits need more than two numbers of 32 bits")
    if (shifts < _LOW_V + _LOW_M + 1).any() or (shifts > 57).any():
        raise Unsupported("its scale is above 8, or below 2^-26")
    steps, mh, ml = slots.steps, _one(high), _one(low)
    imm = lambda operation, slot, number: steps.append(Step(operation, slot, "imm", number))  # noqa: E731
    upper = slots.copy(v)
    imm("ADD", upper, 1 << _LOW_V - 1)
    imm("SHR", upper, _LOW_V)  # vh
    imm("SHR", v, _LOW_V - 32)
    imm("SHR", v, 32 - _LOW_V)  # vl
    sums = slots.copy(v)
    apply("MUL", sums, ml)
    imm("SHR", sums, _LOW_V)  # vl * ml / 2^11
    apply("MUL", v, mh)  # vl * mh, in units of 2^16
    part = slots.copy(upper)
    apply("MUL", part, ml)  # vh * ml, in units of 2^11
    steps.append(Step("ADD", sums, "slot", part))
    apply("MUL", upper, mh)  # vh * mh, in units of 2^27
    steps += [Step("reset", part), Step("ADD", part, "slot", v)]
    imm("SHR", part, _LOW_V - 32)
    imm("SHR", part, 32 - _LOW_M)  # the low 11 bits of vl * mh, in units of 2^11
    steps.append(Step("ADD", sums, "slot", part))
    imm("SHR", sums, _LOW_M)
    imm("ADD", v, 1 << _LOW_V - 1)
    imm("SHR", v, _LOW_V)
    steps += [Step("ADD", v, "slot", upper), Step("ADD", v, "slot", sums)]
    rest = shifts - _LOW_V - _LOW_M
    apply("ADD", v, _one(np.left_shift(np.int64(1), rest - 1)))
    apply("SHR", v, _one(rest))
    for slot in (upper, sums, part):
        slots.free(slot)


__all__ = ["requantize"]
