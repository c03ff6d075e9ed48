"""The multiply-adds of contractions: which types they take, and the intrinsics that do them."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.backends.cpu.isa import Isa


@dataclass(frozen=True)
class Arith:
    """A vector multiply-add: each lane of the sum adds up products of `steps` neighbouring pairs.

    `data` and `weight` are the dtypes of its operands, `total` that of the sum. The intrinsic `splat` repeats `steps`
    values in each lane; `fma` adds the products. With `halves`, a vector of weights has the first factors of all lanes, then
    the second ones.

    With `square`, an instruction multiplies two rows of data and two columns of weights, and adds to four sums.
    `splat` then takes two rows.

    Registers may hold sums of another type, `held`. After `limit` steps at most, these are added to the total.

    Where an operand has fewer bits than the sum, and `steps` is 1, it is widened as it is loaded.
    """

    data: str
    weight: str
    total: str
    steps: int = 1
    splat: str = "splat"
    fma: str = "fma"
    halves: bool = False
    held: str = ""
    limit: int = 0
    square: bool = False

    @property
    def registers(self) -> str:
        """The type of sums in registers."""
        return self.held or self.total

    @property
    def loaded(self) -> str:
        """The type of weights in registers."""
        return self.weight if self.steps > 1 else self.registers


#: One product a lane, in the sum's own type.
PLAIN = {dtype: Arith(dtype, dtype, dtype) for dtype in ("float32", "float64", "int32", "int64")}
#: Pairs of int16. Sums wrap, as those of single products do.
PAIRS = Arith("int16", "int16", "int32", 2, "splat_pair", "dot_pair")
#: The same, where an instruction takes half a vector of weights.
HALVES = Arith("int16", "int16", "int32", 2, "splat_pair", "dot_halves", halves=True)
#: Pairs of bfloat16, summed in float32. The instruction takes numbers below the least normal one for zero.
BFLOATS = Arith("bfloat16", "bfloat16", "float32", 2, "splat_pair", "dot_bfloat")
#: Unsigned by signed bytes, four a lane.
BYTES = Arith("uint8", "int8", "int32", 4, "splat_quad", "dot_quad")
#: Signed bytes, likewise.
SIGNED_BYTES = Arith("int8", "int8", "int32", 4, "splat_quad", "dot_signed")


#: Two rows by two columns of bytes, eight products each.
SQUARES = Arith("int8", "int8", "int32", 8, "two_rows", "square", square=True)
MIXED_SQUARES = Arith("uint8", "int8", "int32", 8, "two_rows", "square_mixed", square=True)
UNSIGNED_SQUARES = Arith("uint8", "uint8", "int32", 8, "two_rows", "square_unsigned", square=True)


def keeps_narrow(isa: Isa) -> bool:
    """Whether short integers lie as they are in memory, and single ones are widened as they are loaded.

    Code for any processor does so: microcontrollers have little memory, and no instruction for several products.
    """
    return isa.name == "generic"


def singles_of(data: str, weight: str) -> Arith:
    """The multiply-add of short integers that are widened."""
    return Arith(data, weight, "int32", 1, "splat_single", "fma_single")


def pairs_of(isa: Isa) -> Arith | None:
    """How pairs of int16 are multiplied and added without widening them first; None where they are not."""
    if isa.name == "neon":
        return HALVES
    return PAIRS if isa.name == "avx2" or "bw" in isa.features else None


def has_bfloats(isa: Isa) -> bool:
    """Whether a vector's pairs of bfloat16 are multiplied and added in one instruction."""
    return (isa.name == "avx512" and "avx512bf16" in isa.features) or (isa.name == "neon" and "bf16" in isa.features)


def has_tiles(isa: Isa) -> bool:
    """Whether there may be registers that hold tiles of bytes. A program asks the system when it runs."""
    return isa.name == "avx512" and {"vnni", "amx-int8"} <= isa.features


def bytes_of(isa: Isa, data: str, weight: str) -> Arith | None:
    """How products of bytes are added in one instruction, without an intermediate limit; None where they are not."""
    if isa.name == "neon" and "i8mm" in isa.features:
        return {("int8", "int8"): SQUARES, ("uint8", "int8"): MIXED_SQUARES, ("uint8", "uint8"): UNSIGNED_SQUARES}.get((data, weight))
    if weight != "int8":
        return None
    if (isa.name == "avx512" and "vnni" in isa.features) or (isa.name == "avx2" and "avxvnni" in isa.features):
        return BYTES
    return SIGNED_BYTES if isa.name == "neon" and "dotprod" in isa.features else None
