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
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import BufTensor, Tensor
from relaylang.backends.cpu.lower.sums import LIMBS, Sum, Weights
from relaylang.kernels import ir
from relaylang.kernels.dtypes import int_range
from relaylang.kernels.nest import Buf

#: A zero point: a number, or where memory has one when the program runs. There may be one for each column.
Zero = int | Buf
#: The types that may hold weights, from the shortest on.
_SHORT = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Factors:
    """How operands are read.

    `less` is taken off the data, and `fill` is the zero among them then. `weight_less` is taken off the weights. `begin` is
    as in `sums.Weights`. `zero` is the data's zero point. Weights of two `limbs` are read twice: their lower 8 bits, then
    the higher ones (the variable `k0` tells).
    """

    arith: Arith
    less: Zero
    fill: int
    weight_less: Zero
    begin: int = 0
    zero: Zero = 0
    limbs: int = 1

    def sums(self, axes: Sequence[Sum]) -> list[Sum]:
        """The axes of a sum, with one of limbs in front where there are several."""
        return [LIMBS, *axes] if self.limbs > 1 else list(axes)

    def weights(self, tensor: Tensor, as_is: bool = False) -> Weights:
        """The weights of a product by these factors."""

        def value(element: ir.Expr, column: ir.Expr) -> ir.Expr:
            wide = ir.cast(element, self.arith.total)
            if self.limbs > 1:
                return ir.select(ir.Var("k0").ne(0), wide >> 8, wide & 255)
            return less(wide, self.weight_less, column) if takes_off(self.weight_less) else element

        extra = [BufTensor(self.weight_less)] if isinstance(self.weight_less, Buf) else []
        return Weights(tensor, value, extra, self.begin, as_is)

    def converts(self, dtype: str) -> bool:
        """Whether data of a type have to be written out for the product."""
        return self.arith.data != dtype or takes_off(self.less)


def takes_off(zero: Zero) -> bool:
    """Whether a zero point changes what it is taken off."""
    return isinstance(zero, Buf) or zero != 0


def less(value: ir.Expr, zero: Zero, column: ir.Expr | int = 0) -> ir.Expr:
    """A value less its zero point, as expressions of the loop language."""
    if isinstance(zero, Buf):
        return value - ir.cast(ir.load(zero, column if zero.size != 1 else 0), value.type)
    return value - zero if zero else value


def zero_of(zero: Zero) -> ir.Expr:
    """A zero point as an int32."""
    return ir.cast(ir.load(zero, 0), "int32") if isinstance(zero, Buf) else ir.Const(zero, "int32")


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
    return Factors(PLAIN[total], zero, 0, weight_zero)


def factors_of(isa: Isa, data: str, weight: str, total: str, zero: Zero = 0, weight_zero: Zero = 0) -> Factors:
    """How a product of `data` and `weight` (dtypes) that sums in `total` is computed."""
    if data == weight == BFLOATS.data and total == BFLOATS.total and has_bfloats(isa):
        return Factors(BFLOATS, 0, 0, 0)
    if total not in ("int32", "int64") or not {data, weight} <= {"int8", "uint8", "int16"}:
        return plain_factors(total, zero, weight_zero)
    if keeps_narrow(isa):
        return _singles(data, weight, total, zero, weight_zero) or plain_factors(total, zero, weight_zero)
    factors = _bytes(isa, data, weight, zero, weight_zero) if total == "int32" else None
    return factors or _pairs(isa, data, weight, total, zero, weight_zero) or plain_factors(total, zero, weight_zero)


def _singles(data: str, weight: str, total: str, zero: Zero, weight_zero: Zero) -> Factors | None:
    """The product of short integers, which stay as short as they can be; None for longer ones."""
    short = short_of(weight, weight_zero)
    if short is None:
        return None
    if total == "int64":
        return _wide(singles_of("int16", short), data, weight, zero, weight_zero)
    if isinstance(zero, int) and _holds(zero, zero, data):
        return Factors(singles_of(data, short), 0, zero, weight_zero, zero, zero)
    if data == "int16":
        return None
    return Factors(singles_of("int16", short), zero, 0, weight_zero, zero=zero)


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
    return Factors(form, -shift, zero + shift, weight_zero, zero + shift)


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
        return Factors(form, zero, 0, weight_zero, zero=zero)
    if isinstance(zero, int) and _holds(zero, zero, "int16"):
        return Factors(form, 0, zero, weight_zero, zero, zero)
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
    return Factors(wide, zero, 0, weight_zero, zero=zero, limbs=limbs)
