"""The operands of a contraction: their multiply-add, and their conversions for it.

Quantised products sum `(x - zero) * (w - weight_zero)`. Where the machine can, it multiplies the bytes unchanged. A
column's results then begin with minus the zero point times the column's sum of weights. Code for any processor does the
same, and widens numbers as it loads them. Else both factors become int16, their zero points taken off, or the type of the
sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relaylang.backends.cpu.arith import (
    BFLOATS,
    PLAIN,
    Arith,
    bytes_of,
    has_bfloats,
    keeps_narrow,
    pairs_of,
    singles_of,
)
from relaylang.backends.cpu.dtypes import int_range
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.lower.sums import LIMBS, Sum

#: A zero point: a number that is known, or C of one that is known when the program runs.
Zero = int | str
#: The types that may hold weights, from the shortest on.
_SHORT = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Factors:
    """How operands are read.

    `value` is C of what the data become, from `{0}`, and `fill` C of the zero among them. `weight` is C of
    what the weights become. `begin` is as in `sums.Weights`. `zero` is the data's zero point. Weights of two `limbs` are read
    twice: their lower 8 bits, then the higher ones (C's `k0` tells).
    """

    arith: Arith
    value: str
    fill: str
    weight: str
    begin: int = 0
    zero: Zero = 0
    limbs: int = 1

    def sums(self, axes: Sequence[Sum]) -> list[Sum]:
        """The axes of a sum, with one of limbs in front where there are several."""
        return [LIMBS, *axes] if self.limbs > 1 else list(axes)

    def converts(self, dtype: str) -> bool:
        """Whether data of a type have to be written out for the product."""
        return self.arith.data != dtype or self.value != "{0}"


def _less(zero: Zero) -> str:
    return "{0}" if zero == 0 else f"({{0}} - {zero if isinstance(zero, str) or zero >= 0 else f'({zero})'})"


def _less_range(dtype: str, zero: int) -> tuple[int, int]:
    """The least and the greatest value less a zero point."""
    low, high = int_range(dtype)
    return low - zero, high - zero


def _holds(low: int, high: int, dtype: str) -> bool:
    least, most = int_range(dtype)
    return least <= low and high <= most


def short_of(dtype: str, zero: Zero) -> str | None:
    """The shortest type that holds integers of a type less a zero point; None where none of 16 bits does."""
    if dtype not in _SHORT or not isinstance(zero, int):
        return None
    return next((short for short in _SHORT if _holds(*_less_range(dtype, zero), short)), None)


def plain_factors(total: str, zero: Zero = 0, weight_zero: Zero = 0) -> Factors:
    """Both operands become the type of the sum."""
    return Factors(PLAIN[total], _less(zero), "0", _less(weight_zero))


def factors_of(isa: Isa, data: str, weight: str, total: str, zero: Zero = 0, weight_zero: Zero = 0) -> Factors:
    """How a product of `data` and `weight` (dtypes) that sums in `total` is computed."""
    if data == weight == BFLOATS.data and total == BFLOATS.total and has_bfloats(isa):
        return Factors(BFLOATS, "{0}", "0", "{0}")
    if total not in ("int32", "int64") or not {data, weight} <= {"int8", "uint8", "int16"}:
        return plain_factors(total, zero, weight_zero)
    if keeps_narrow(isa):
        return _singles(data, weight, total, zero, weight_zero) or plain_factors(total, zero, weight_zero)
    found = _bytes(isa, data, weight, zero, weight_zero) if total == "int32" else None
    return found or _pairs(isa, data, weight, total, zero, weight_zero) or plain_factors(total, zero, weight_zero)


def _singles(data: str, weight: str, total: str, zero: Zero, weight_zero: Zero) -> Factors | None:
    """The product of short integers, which stay as short as they can be; None for longer ones."""
    short = short_of(weight, weight_zero)
    if short is None:
        return None
    if total == "int64":
        return _wide(singles_of("int16", short), data, weight, zero, weight_zero)
    if isinstance(zero, int) and _holds(zero, zero, data):
        return Factors(singles_of(data, short), "{0}", str(zero), _less(weight_zero), zero, zero)
    if data == "int16":
        return None
    return Factors(singles_of("int16", short), _less(zero), "0", _less(weight_zero), zero=zero)


def _bytes(isa: Isa, data: str, weight: str, zero: Zero, weight_zero: Zero) -> Factors | None:
    """The product of bytes, summed in int32; None where there is no instruction for these."""
    if not isinstance(weight_zero, int):
        return None
    ends = _less_range(weight, weight_zero)
    form = bytes_of(isa, data, next((t for t in ("int8", "uint8") if _holds(*ends, t)), ""))
    # A zero point beyond the data's range is no value that a border can have.
    if form is None or data == "int16" or not isinstance(zero, int) or not _holds(zero, zero, data):
        return None
    # Data are shifted into the range of the instruction's own bytes.
    shift = int_range(form.data)[0] - int_range(data)[0]
    value = f"({{0}} {'+' if shift > 0 else '-'} {abs(shift)})" if shift else "{0}"
    return Factors(form, value, str(zero + shift), _less(weight_zero), zero + shift)


def _pairs(isa: Isa, data: str, weight: str, total: str, zero: Zero, weight_zero: Zero) -> Factors | None:
    """The product of pairs of int16; None where there is no instruction, or operands less their zero points are longer."""
    form = pairs_of(isa)
    operands = ((data, zero), (weight, weight_zero))
    short = [_holds(*_less_range(dtype, z), "int16") if isinstance(z, int) else dtype != "int16" for dtype, z in operands]
    if form is None or not short[1]:
        return None
    if total == "int64":
        return _wide(form, data, weight, zero, weight_zero)
    if short[0]:
        return Factors(form, _less(zero), "0", _less(weight_zero), zero=zero)
    if isinstance(zero, int) and _holds(zero, zero, "int16"):
        return Factors(form, "{0}", str(zero), _less(weight_zero), zero, zero)
    return None


def _wide(form: Arith, data: str, weight: str, zero: Zero, weight_zero: Zero) -> Factors | None:
    """Products of int16 that are summed in int32 as long as the bounds of operands allow, then in int64.

    Weights of 16 bits are two numbers of 8 bits, which are multiplied apart.
    """
    if not isinstance(zero, int) or not isinstance(weight_zero, int) or not _holds(*_less_range(data, zero), form.data):
        return None
    value = max(map(abs, _less_range(data, zero)))
    other = max(map(abs, _less_range(weight, weight_zero)))
    limbs = 1 if other < 512 else 2
    if limbs == 2 and weight_zero:
        return None
    wide = replace(form, total="int64", held=form.total, limit=(2**31 - 1) // (form.steps * value * (other if limbs == 1 else 255)))
    text = _less(weight_zero) if limbs == 1 else "(k0 ? {0} >> 8 : {0} & 255)"
    return Factors(wide, _less(zero), "0", text, zero=zero, limbs=limbs)
