"""The vector instructions of the machine that code is made for, as the C compiler names them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """An instruction set: 32-bit lanes in a vector, and vector registers."""

    name: str
    lanes: int
    registers: int

    def of(self, dtype: str) -> Isa:
        """The instruction set as it is for elements of a type: half as many of 64 bits fit a vector."""
        return Isa(self.name, self.lanes // 2, self.registers) if dtype == "float64" else self

    def blocks(self, columns: int) -> tuple[int, int]:
        """Vectors a row and rows a block of the matrix kernel, for a product with `columns` columns.

        All accumulators, one row of weights and two broadcast values must fit the registers.
        """
        vectors = 4 if self.registers >= 32 and self.lanes <= 4 else 2
        while vectors > 1:
            half = vectors // 2
            padded = [-(-columns // (v * self.lanes)) * v * self.lanes for v in (vectors, half)]
            if padded[1] >= 0.9 * padded[0]:
                break
            vectors = half
        spare = 2 if self.registers >= 32 else 1
        return vectors, max(1, (self.registers - vectors - spare) // vectors)


AVX512 = Isa("avx512", 16, 32)
AVX2 = Isa("avx2", 8, 16)
NEON = Isa("neon", 4, 32)
GENERIC = Isa("generic", 4, 16)
BY_NAME: Mapping[str, Isa] = {isa.name: isa for isa in (AVX512, AVX2, NEON, GENERIC)}


def from_macros(macros: str) -> Isa:
    """The instruction set that a compiler's predefined macros announce (`cc -dM -E`)."""
    if "__AVX512F__" in macros:
        return AVX512
    if "__AVX2__" in macros and "__FMA__" in macros:
        return AVX2
    if "__ARM_NEON" in macros:
        return NEON
    return GENERIC
