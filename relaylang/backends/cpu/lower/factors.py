"""The operands of a contraction: their multiply-add, and their conversions for it.

Quantised products sum `(x - zero) * (w - weight_zero)`. Where the machine can, it multiplies the bytes unchanged. A
column's results then begin with minus the zero point times the column's sum of weights. Else both factors become int16,
their zero points taken off, or the type of the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.backends.cpu.arith import BFLOATS, PAIRS, PLAIN, Arith, bytes_of, has_bfloats, has_pairs
from relaylang.backends.cpu.dtypes import int_range
from relaylang.backends.cpu.isa import Isa

#: A zero point: a number that is known, or C of one that is known when the program runs.
Zero = int | str


@dataclass(frozen=True)
class Factors:
    """How operands are read.

    `value` is C of what the data become, from `{0}`, and `fill` C of the zero among them. `weight` is C of
    what the weights become. `begin` is as in `sums.Weights`. `zero` is the data's zero point.
    """

    arith: Arith
    value: str
    fill: str
    weight: str
    begin: int = 0
    zero: Zero = 0

    def converts(self, dtype: str) -> bool:
        """Whether data of a type have to be written out for the product."""
        return self.arith.data != dtype or self.value != "{0}"


def _less(zero: Zero) -> str:
    return "{0}" if zero == 0 else f"({{0}} - {zero if isinstance(zero, str) or zero >= 0 else f'({zero})'})"


def _holds(low: int, high: int, dtype: str) -> bool:
    least, most = int_range(dtype)
    return least <= low and high <= most


def plain_factors(total: str, zero: Zero = 0, weight_zero: Zero = 0) -> Factors:
    """Both operands become the type of the sum."""
    return Factors(PLAIN[total], _less(zero), "0", _less(weight_zero))


def factors_of(isa: Isa, data: str, weight: str, total: str, zero: Zero = 0, weight_zero: Zero = 0) -> Factors:
    """How a product of `data` and `weight` (dtypes) that sums in `total` is computed."""
    if data == weight == BFLOATS.data and total == BFLOATS.total and has_bfloats(isa):
        return Factors(BFLOATS, "{0}", "0", "{0}")
    if total != "int32" or not {data, weight} <= {"int8", "uint8", "int16"}:
        return plain_factors(total, zero, weight_zero)
    low, high = int_range(weight)
    small = isinstance(weight_zero, int) and _holds(low - weight_zero, high - weight_zero, "int8")
    form = bytes_of(isa)
    # A zero point beyond the data's range is no value that a border can have.
    if form is not None and data != "int16" and small and isinstance(zero, int) and _holds(zero, zero, data):
        # Data are shifted into the range of the instruction's own bytes.
        shift = int_range(form.data)[0] - int_range(data)[0]
        value = f"({{0}} {'+' if shift > 0 else '-'} {abs(shift)})" if shift else "{0}"
        return Factors(form, value, str(zero + shift), _less(weight_zero), zero + shift)
    spread = [int_range(dtype)[1] - int_range(dtype)[0] for dtype in (data, weight)]
    narrow = [n < 256 or z == 0 for n, z in zip(spread, (zero, weight_zero))]
    # Two products of int16 exceed int32 only where all four factors are the least one.
    if has_pairs(isa) and all(narrow) and "int16" != weight:
        return Factors(PAIRS, _less(zero), "0", _less(weight_zero), zero=zero)
    return plain_factors(total, zero, weight_zero)
