"""The elementwise unit: two operands, of which one may be broadcast or a number, or one operand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import Extents, feature_map, ofm_extents
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import finish
from relaylang.backends.ethosu.simulator.scaling import Rounding, rounding, scaled, scaled_by
from relaylang.backends.ethosu.simulator.state import State

_U55 = {0: "MUL", 1: "ADD", 2: "SUB", 3: "MIN", 4: "MAX", 5: "LRELU", 6: "ABS", 7: "CLZ", 8: "SHR", 9: "SHL"}
_U85 = _U55 | {
    10: "LSR",
    11: "DIV",
    16: "CMP_EQ",
    17: "CMP_NE",
    18: "CMP_GE",
    19: "CMP_GT",
    33: "AND",
    34: "OR",
    35: "XOR",
    36: "NOT",
    42: "AND_NOT",
}
_UNARY = frozenset({"LRELU", "ABS", "CLZ", "NOT"})
#: Modes whose results a scale follows on the U55 and U65.
_SCALED = frozenset({"MUL", "ADD", "SUB", "ABS"})
_SHIFTS = frozenset({"SHR", "SHL", "LSR"})
#: `SET_IFM_PRECISION`, `scale_mode`: both operands have a multiplier of 16 bits, or one has one of 32 bits.
_BOTH, _FIRST, _SECOND = 0, 1, 2
#: Bits by which the operand without a multiplier is raised, by the bytes of the operands.
_RAISED = {1: 19, 2: 14}


def _shifted_right(a: np.ndarray, b: np.ndarray, kind: Rounding) -> np.ndarray:
    down = a >> b
    if kind in (Rounding.TRUNCATE_TO_ZERO, Rounding.TRUNCATE_TO_LOWER):
        return down
    half = np.where(b > 0, a >> np.maximum(b - 1, 0) & 1, 0)
    if kind == Rounding.DOUBLE_SYMMETRIC:
        exact = (down << b) + (np.int64(1) << np.maximum(b - 1, 0)) == a
        half = np.where((a < 0) & exact, 0, half)
    return np.asarray(down + half)


def _leading_zeros(a: np.ndarray) -> np.ndarray:
    bits = a & 0xFFFFFFFF
    return 32 - np.ceil(np.log2(bits.astype(np.float64) + 1)).astype(np.int64)


def _wrapped(a: np.ndarray) -> np.ndarray:
    """The lower 32 bits, with a sign."""
    return a.astype(np.int32).astype(np.int64)


def _mask(truth: np.ndarray) -> np.ndarray:
    """All bits set where something is true."""
    return -truth.astype(np.int64)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rounded towards zero."""
    quotient = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


_OF_TWO: dict[str, Callable[[np.ndarray, np.ndarray, Rounding], np.ndarray]] = {
    "MUL": lambda a, b, kind: a * b,
    "ADD": lambda a, b, kind: a + b,
    "SUB": lambda a, b, kind: a - b,
    "MIN": lambda a, b, kind: np.minimum(a, b),
    "MAX": lambda a, b, kind: np.maximum(a, b),
    "SHR": _shifted_right,
    "SHL": lambda a, b, kind: _wrapped(a << b),
    "LSR": lambda a, b, kind: _wrapped(a >> b),
    "DIV": lambda a, b, kind: _quotient(a, b),
    "CMP_EQ": lambda a, b, kind: _mask(a == b),
    "CMP_NE": lambda a, b, kind: _mask(a != b),
    "CMP_GE": lambda a, b, kind: _mask(a >= b),
    "CMP_GT": lambda a, b, kind: _mask(a > b),
    "AND": lambda a, b, kind: a & b,
    "OR": lambda a, b, kind: a | b,
    "XOR": lambda a, b, kind: a ^ b,
    "AND_NOT": lambda a, b, kind: a & ~b,
}


def elementwise(state: State, memory: Memory) -> None:
    """`OP_ELEMENTWISE`."""
    name = _mode_of(state)
    operands = [_operand(state, memory, operand) for operand in operand_names(state)]
    result = _on_u85(state, name, operands) if state.is_u85 else _on_u55(state, name, operands)
    finish(state, memory, np.broadcast_to(result, ofm_extents(state)))


def _mode_of(state: State) -> str:
    name = (_U85 if state.is_u85 else _U55).get(state.command.param)
    if name is None:
        raise state.fault(f"has the mode {state.command.param}, which the simulator does not know")
    return name


def operand_names(state: State) -> tuple[str, ...]:
    """The operands of the command that is executed now: feature maps or numbers."""
    return ("IFM",) if _mode_of(state) in _UNARY else ("IFM", "IFM2")


def operand_extents(state: State, name: str) -> Extents | None:
    """The extents of an operand, of which some are broadcast; None for a number."""
    if state.field(f"{name}_BROADCAST", "scalar"):
        return None
    axes = state.field(f"{name}_BROADCAST", "axes")
    height, width, channels = ofm_extents(state)
    return 1 if axes & 1 else height, 1 if axes & 2 else width, 1 if axes & 4 else channels


def _operand(state: State, memory: Memory, name: str) -> np.ndarray:
    """An operand without its zero point."""
    extents = operand_extents(state, name)
    if extents is None:
        is_signed = state.field(f"{name}_PRECISION", "activation_type")
        zero = state.signed(f"{name}_ZERO_POINT") if is_signed else state[f"{name}_ZERO_POINT"]
        return np.full((1, 1, 1), _scalar(state, bool(is_signed)) - zero, np.int64)
    fm = feature_map(state, name)
    return fm.read(memory, extents) - fm.zero_point


def _scalar(state: State, is_signed: bool) -> int:
    """The number in place of an operand."""
    if state.is_u85:
        value = state.payload("OP_SCALAR")
        return value - (1 << 32) if is_signed and value >> 31 else value
    return state.signed("IFM2_SCALAR") if is_signed else state["IFM2_SCALAR"]


def _of_two(state: State, name: str, operands: list[np.ndarray]) -> np.ndarray:
    a, b = operands
    if name in _SHIFTS and b.size and not (0 <= b.min() and b.max() < 64):
        raise state.fault(f"shifts by {b.min()} to {b.max()} bits")
    if name == "LSR":
        a = a & (1 << 8 * _bytes(state)) - 1
    if name == "DIV" and not b.all():
        raise state.fault("divides by zero")
    return _OF_TWO[name](a, b, rounding(state))


def _on_u85(state: State, name: str, operands: list[np.ndarray]) -> np.ndarray:
    """Operands have scales, and so has the result."""
    if name == "LRELU":  # the second scale is that of negative numbers
        (a,) = operands
        result = np.where(a >= 0, scaled_by(state, "IFM_SCALE", a), scaled_by(state, "IFM2_SCALE", a))
        return scaled_by(state, "OFM_SCALE", result)
    operands = [scaled_by(state, f"{ifm}_SCALE", a) for ifm, a in zip(("IFM", "IFM2"), operands)]
    if name in ("ABS", "CLZ", "NOT"):
        (a,) = operands
        result = np.abs(a) if name == "ABS" else _leading_zeros(a) if name == "CLZ" else ~a
    else:
        result = _of_two(state, name, operands)
    return _scaled_result(state, name, result)


def _on_u55(state: State, name: str, operands: list[np.ndarray]) -> np.ndarray:
    """The operands of sums have scales, and so have some results."""
    if name == "CLZ":
        return _leading_zeros(operands[0])
    if name == "LRELU":
        (a,) = operands
        return np.where(a >= 0, a, scaled_by(state, "OFM_SCALE", a))
    if name == "ABS":
        result = np.abs(operands[0])
    else:
        if state.field("IFM2_BROADCAST", "operand_order"):
            operands = operands[::-1]
        if name in ("ADD", "SUB"):
            operands = _on_one_scale(state, operands)
        result = _of_two(state, name, operands)
    return _scaled_result(state, name, result) if name in _SCALED else result


def _bytes(state: State) -> int:
    """The bytes of an operand's numbers."""
    return 1 << state.field("IFM_PRECISION", "activation_precision")


def _scaled_result(state: State, name: str, result: np.ndarray) -> np.ndarray:
    if name == "MUL" and _bytes(state) == 4:  # the product has 64 bits, which only shift
        shift = state.scale("OFM_SCALE")[1]
        if state.is_u85:
            return scaled(result, 1, shift, rounding(state))
        return _shifted_right(result, np.asarray(shift), rounding(state))
    return scaled_by(state, "OFM_SCALE", result)


def _on_one_scale(state: State, operands: list[np.ndarray]) -> list[np.ndarray]:
    """The operands of a sum as numbers of one scale, on the U55 and U65."""
    a, b = operands
    size = _bytes(state)
    mode = state.field("IFM_PRECISION", "scale_mode")
    first, shift = state.scale("OPA_SCALE")
    if mode == _BOTH:
        second, _ = state.scale("OPB_SCALE")
        return [a * (first & 0xFFFF), b * (second & 0xFFFF)]
    if size not in _RAISED:
        raise state.fault(f"scales one operand of {8 * size} bits, which the accelerator cannot")
    kind = rounding(state, "IFM_SCALE")
    if mode == _FIRST:
        return [scaled(a, first, shift, kind), b << _RAISED[size]]
    return [a << _RAISED[size], scaled(b, first, shift, kind)]
