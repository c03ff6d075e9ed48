"""The rounding of requantization for programs that leave it open, as in TVM's `requantize_config`."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.rules.quantization.scoped import Scoped


@dataclass(frozen=True)
class RequantizeConfig(Scoped):
    """`rounding` is UPWARD or TONEAREST (halves away from zero), `compute_dtype` int64 (fixed point), float32 or float64.

    In force inside `with`. It is for `QnnCanonicalizeOps` alone: what the interpreter makes of `rounding="None"` is
    always UPWARD in int64. (TVM's default on x86 is float32.)
    """

    rounding: str = "UPWARD"
    compute_dtype: str = "int64"


def requantize_config(*, rounding: str = "UPWARD", compute_dtype: str = "int64") -> RequantizeConfig:
    """A configuration, to be used by `with`."""
    return RequantizeConfig(rounding, compute_dtype)


def current_requantize_config() -> RequantizeConfig:
    """The configuration that is in force."""
    return RequantizeConfig.current() or RequantizeConfig()
