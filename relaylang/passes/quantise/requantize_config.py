"""The rounding of requantization for programs that leave it open, as in TVM's `requantize_config`."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class RequantizeConfig:
    """`rounding` is UPWARD or TONEAREST (halves away from zero), `compute_dtype` int64 (fixed point), float32 or float64.

    In force inside `with`. It is for `QnnCanonicalizeOps` alone: what the interpreter makes of `rounding="None"` is
    always UPWARD in int64. (TVM's default on x86 is float32.)
    """

    rounding: str = "UPWARD"
    compute_dtype: str = "int64"

    def __enter__(self) -> RequantizeConfig:
        _STACK.set((*_STACK.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        _STACK.set(_STACK.get()[:-1])


#: The configurations in force, the innermost last.
_STACK: ContextVar[tuple[RequantizeConfig, ...]] = ContextVar("requantize_config", default=())


def requantize_config(*, rounding: str = "UPWARD", compute_dtype: str = "int64") -> RequantizeConfig:
    """A configuration, to be used by `with`."""
    return RequantizeConfig(rounding, compute_dtype)


def current_requantize_config() -> RequantizeConfig:
    """The configuration that is in force."""
    stack = _STACK.get()
    return stack[-1] if stack else RequantizeConfig()
