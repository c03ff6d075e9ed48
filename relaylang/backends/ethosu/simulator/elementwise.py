"""The elementwise unit: two operands, of which the second may be broadcast or a number, or one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import feature_map, ofm_extents
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import DOUBLE, TRUNCATE, finish, scaled
from relaylang.backends.ethosu.simulator.state import State

_NAMES = {0: "MUL", 1: "ADD", 2: "SUB", 3: "MIN", 4: "MAX", 5: "LRELU", 6: "ABS", 7: "CLZ", 8: "SHR", 9: "SHL"}
_UNARY = frozenset({"LRELU", "ABS", "CLZ"})
#: `SET_IFM2_BROADCAST`: the axes along which the second operand has one element, the order, and a number in its place.
_REVERSED, _SCALAR = 1 << 6, 1 << 7
#: `SET_IFM_PRECISION`, bits 8 and 9: both operands have a multiplier of 16 bits, or one has one of 32 bits.
_BOTH, _FIRST, _SECOND = 0, 1, 2
#: Bits by which the operand without a multiplier is raised, by the bytes of the operands.
_RAISED = {1: 19, 2: 14}


def _shifted_right(a: np.ndarray, b: np.ndarray, rounding: int) -> np.ndarray:
    down = a >> b
    if rounding == TRUNCATE:
        return down
    half = np.where(b > 0, a >> np.maximum(b - 1, 0) & 1, 0)
    if rounding == DOUBLE:
        exact = (down << b) + (np.int64(1) << np.maximum(b - 1, 0)) == a
        half = np.where((a < 0) & exact, 0, half)
    return np.asarray(down + half)


def _leading_zeros(a: np.ndarray) -> np.ndarray:
    bits = a & 0xFFFFFFFF
    return 32 - np.ceil(np.log2(bits.astype(np.float64) + 1)).astype(np.int64)


def elementwise(state: State, memory: Memory) -> None:
    """`OP_ELEMENTWISE`."""
    name = _NAMES.get(state.command.param)
    if name is None:
        raise state.fault(f"has the mode {state.command.param}, which the simulator does not know")
    extents = ofm_extents(state)
    ifm = feature_map(state, "IFM")
    a = ifm.read(memory, extents) - ifm.zero_point
    rounding = state["OFM_PRECISION"] >> 14 & 3
    if name in _UNARY:
        finish(state, memory, _of_one(state, name, a, rounding))
        return
    b = _second(state, memory)
    if state["IFM2_BROADCAST"] & _REVERSED:
        a, b = b, a
    if name in ("ADD", "SUB"):
        a, b = _on_one_scale(state, a, b, ifm.dtype.itemsize)
    found = _OF_TWO[name](a, b, rounding)
    if name in ("MUL", "ADD", "SUB"):
        multiplier, shift = state.scale("OFM_SCALE")
        if name == "MUL" and ifm.dtype.itemsize == 4:  # the product has 64 bits, which only shift
            found = _shifted_right(found, np.asarray(shift), rounding)
        else:
            found = scaled(found, multiplier, shift, rounding)
    finish(state, memory, np.broadcast_to(found, extents))


_OF_TWO: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "MUL": lambda a, b, rounding: a * b,
    "ADD": lambda a, b, rounding: a + b,
    "SUB": lambda a, b, rounding: a - b,
    "MIN": lambda a, b, rounding: np.minimum(a, b),
    "MAX": lambda a, b, rounding: np.maximum(a, b),
    "SHR": _shifted_right,
    "SHL": lambda a, b, rounding: a << b,
}


def _of_one(state: State, name: str, a: np.ndarray, rounding: int) -> np.ndarray:
    if name == "CLZ":
        return _leading_zeros(a)
    multiplier, shift = state.scale("OFM_SCALE")
    if name == "ABS":
        return scaled(np.abs(a), multiplier, shift, rounding)
    return np.where(a >= 0, a, scaled(a, multiplier, shift, rounding))


def _second(state: State, memory: Memory) -> np.ndarray:
    """The second operand without its zero point."""
    broadcast = state["IFM2_BROADCAST"]
    if broadcast & _SCALAR:
        signed = state["IFM2_PRECISION"] & 1
        value = state.signed("IFM2_SCALAR") if signed else state["IFM2_SCALAR"]
        zero = state.signed("IFM2_ZERO_POINT") if signed else state["IFM2_ZERO_POINT"]
        return np.full((1, 1, 1), value - zero, np.int64)
    ifm2 = feature_map(state, "IFM2")
    height, width, channels = ofm_extents(state)
    extents = (1 if broadcast & 1 else height, 1 if broadcast & 2 else width, 1 if broadcast & 4 else channels)
    return ifm2.read(memory, extents) - ifm2.zero_point


def _on_one_scale(state: State, a: np.ndarray, b: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The operands of a sum as numbers of one scale."""
    mode = state["IFM_PRECISION"] >> 8 & 3
    first, shift = state.scale("OPA_SCALE")
    if mode == _BOTH:
        second, _ = state.scale("OPB_SCALE")
        return a * (first & 0xFFFF), b * (second & 0xFFFF)
    if size not in _RAISED:
        raise state.fault("scales one operand of 32 bits, which the accelerator cannot")
    if mode == _FIRST:
        return scaled(a, first, shift, DOUBLE), b << _RAISED[size]
    return a << _RAISED[size], scaled(b, first, shift, DOUBLE)

