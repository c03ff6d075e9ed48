"""The integer arithmetic of `qnn.requantize`, and when a rescale with one rounding gives the same integers.

Relay turns the ratio of two scales into a 31-bit multiplier and an exponent, and computes

    out = (v * multiplier + 2^(shift - 1)) >> shift          rounding UPWARD: midpoints go up

in 64 bits. TOSA's RESCALE with `scale32` and SINGLE_ROUND is this very formula for 2 <= shift <= 62 and -2^(shift-1) <=
v < 2^(shift-1). So the two are equal wherever a bound of |v| keeps to that. Rounding TONEAREST differs at negative
midpoints only. If the multiplier has t trailing zeros, no v with |v| < 2^(shift-1-t) is a midpoint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported

MIN_SHIFT, MAX_SHIFT = 2, 62
#: Multiplier and shift that leave a value as it is.
IDENTITY = (1 << 30, 30)


@dataclass(frozen=True)
class Rescale:
    """Multipliers and shifts, one for the tensor or one for each channel along `axis`; `output_zp` is added behind."""

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    output_zp: int
    axis: int | None = None

    def apply(self, value: np.ndarray, axis: int = -1) -> np.ndarray:
        """The rescaled integers, not saturated, in int64. `axis` is the channel's where there are several scales."""
        shape = [1] * value.ndim
        if len(self.shifts) > 1:
            shape[axis] = -1
        multiplier = np.array(self.multipliers, np.int64).reshape(shape if value.ndim else ())
        shift = np.array(self.shifts, np.int64).reshape(shape if value.ndim else ())
        half = np.left_shift(np.int64(1), shift - 1)
        return ((value.astype(np.int64) * multiplier + half) >> shift) + self.output_zp


def unscaled(output_zp: int = 0) -> Rescale:
    """A rescale by 1."""
    return Rescale((IDENTITY[0],), (IDENTITY[1],), output_zp)


def shifted(multipliers: np.ndarray, shifts: np.ndarray, bounds: np.ndarray) -> Rescale:
    """`(v * multiplier + 2^(shift - 1)) >> shift` of int64 numbers as TOSA rescales those of int48, by 15 bits.

    `bounds` is the largest |v|, one for each channel. The accelerator's sums have 40 bits.
    """
    if np.any(multipliers < 0) or np.any(multipliers >= 1 << 15):
        raise Unsupported("a multiplier of int64 sums is negative, or has more than 15 bits")
    if np.any(shifts < MIN_SHIFT) or np.any(shifts > MAX_SHIFT):
        raise Unsupported(f"a shift of int64 sums is not one of {MIN_SHIFT} to {MAX_SHIFT} bits")
    if np.any(bounds >= 1 << 39):
        raise Unsupported("its sums may leave the range of 40 bits")
    if np.any((bounds * multipliers >> shifts) + 1 >= 1 << 31):
        raise Unsupported("the rescaled value may leave the range of int32")
    pairs = list(zip(multipliers.tolist(), shifts.tolist()))
    if len(set(pairs)) == 1:
        pairs = pairs[:1]
    return Rescale(tuple([m for m, _ in pairs]), tuple([s for _, s in pairs]), 0, -1 if len(pairs) > 1 else None)


def averaging(numbers: int) -> Rescale:
    """The rescale of a sum by 1 / `numbers` in TOSA's AVG_POOL2D."""
    shift = (numbers - 1).bit_length()
    return Rescale(((((1 << 30) + 1) << shift) // numbers,), (30 + shift,), 0)


def multiplier_and_shift(ratio: float) -> tuple[int, int]:
    """`ratio` as multiplier / 2^shift with 2^30 <= multiplier < 2^31, rounded half away from zero, as Relay does."""
    if ratio == 0:
        return 0, 31
    significand, exponent = math.frexp(ratio)
    multiplier = math.floor(significand * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier >>= 1
        exponent += 1
    return multiplier, 31 - exponent


def make_rescale(
    input_scale: np.ndarray,
    output_scale: np.ndarray,
    output_zp: int,
    bounds: np.ndarray,
    *,
    rounding: str = "UPWARD",
    axis: int | None = None,
) -> Rescale:
    """The rescale of a requantize, or `Unsupported` where TOSA's would not give the same integers.

    `input_scale` is float32, one or one for each channel. `bounds` is the largest |v| that can occur, one or one for
    each channel. Here v is the value less its zero point.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.atleast_1d(input_scale).astype(np.float32).astype(np.float64) / float(np.float32(output_scale))
    if not np.all(np.isfinite(ratios)) or np.any(ratios <= 0):
        raise Unsupported("a scale is not a positive finite number")
    pairs = [multiplier_and_shift(ratio) for ratio in ratios.tolist()]
    per_channel = np.ndim(input_scale) == 1 and len(pairs) > 1
    limits = np.broadcast_to(np.atleast_1d(np.asarray(bounds, dtype=object)), (max(len(pairs), np.size(bounds)),))
    spread = pairs * len(limits) if len(pairs) == 1 else pairs
    if len(spread) != len(limits):
        raise Unsupported(f"{len(pairs)} scales for {len(limits)} channels")
    for (multiplier, shift), limit in zip(spread, limits.tolist()):
        _check(multiplier, shift, int(limit), output_zp, rounding)
    return Rescale(tuple(m for m, _ in pairs), tuple(s for _, s in pairs), output_zp, axis if per_channel else None)


def power_rescale(multiplier: int, shift: int, bound: int) -> Rescale:
    """The rescale `v * multiplier * 2^(shift - 31)` of a `fixed_point_multiply`, for |v| up to `bound`."""
    if multiplier <= 0:
        raise Unsupported(f"the multiplier {multiplier}")
    spare = max(31 - multiplier.bit_length(), 0)
    multiplier, shift = multiplier << spare, 31 - shift + spare
    _check(multiplier, shift, bound, 0, "UPWARD")
    return Rescale((multiplier,), (shift,), 0)


def _check(multiplier: int, shift: int, limit: int, output_zp: int, rounding: str) -> None:
    if shift > MAX_SHIFT:
        raise Unsupported("the input scale is more than 2^31 times smaller than the output scale")
    if shift < MIN_SHIFT:
        raise Unsupported("the input scale is more than 2^28 times larger than the output scale")
    if limit >= 1 << (shift - 1):
        raise Unsupported(
            f"values up to {limit} times the scale ratio {multiplier / 2.0**shift:.6g} may leave the range in which a "
            "TOSA rescale is defined"
        )
    if ((limit * multiplier) >> shift) + 1 + abs(output_zp) >= 1 << 31:
        raise Unsupported("the rescaled value may leave the range of int32")
    if rounding == "TONEAREST":
        zeros = (multiplier & -multiplier).bit_length() - 1
        if limit >= 1 << (shift - 1 - zeros):
            raise Unsupported("rounding TONEAREST and this scale meet at negative midpoints, which a TOSA rescale rounds up")
