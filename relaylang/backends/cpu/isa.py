"""The vector instructions of the machine that code is made for, as the C compiler names them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The most tiles of a line in a block of memory for results.
_SEGMENT = 8


@dataclass(frozen=True)
class Tiling:
    """How a product is cut: `vectors` of columns by `rows` of `lines` lines a block; a line's `segments` of `tiles`."""

    vectors: int
    rows: int
    lines: int
    tiles: int
    segments: int


@dataclass(frozen=True)
class Isa:
    """An instruction set: 32-bit lanes in a vector, and vector registers."""

    name: str
    lanes: int
    registers: int

    def of(self, dtype: str) -> Isa:
        """The instruction set as it is for elements of a type: half as many of 64 bits fit a vector."""
        return Isa(self.name, self.lanes // 2, self.registers) if dtype in ("float64", "int64") else self

    def tiling(self, columns: int, length: int, lines: int = 1) -> Tiling:
        """The block of the matrix kernel that does least work for `columns` by `length` results.

        `lines` is how many lines of that length may be taken together, where several fit one block.
        """
        # Beyond three quarters of the registers, compilers spill or stall (measured with gcc 12 on AVX-512).
        limit = self.registers * 3 // 4
        best: tuple[float, int] | None = None
        found = Tiling(1, 1, 1, 1, 1)
        for vectors in (1, 2, 4):
            width = vectors * self.lanes
            padded = -(-columns // width) * width
            if vectors > 1 and padded - columns >= self.lanes:
                continue
            for rows in range(1, limit // vectors + 1):
                together = 1
                work: float
                if rows < length:
                    tiles = -(-length // rows)
                    segments = -(-tiles // _SEGMENT)
                    each = -(-tiles // segments)
                    work = segments * each * rows
                else:
                    if rows % length or rows // length > lines:
                        continue
                    together, segments, each = rows // length, 1, 1
                    work = -(-lines // together) * together * length / lines
                # A block's beginning and end take the time of a third of a row. With fewer than five rows, the weights
                # wait for the second cache. With fewer than eight sums, the latency of the sums shows. With few
                # vectors, inputs are read again and again.
                cost = padded * work * (1 + 0.35 / rows) * (1 + 0.08 / vectors)
                cost *= max(1.0, 1 + (5 - rows) * 0.15) * max(1.0, 1 + (8 - vectors * rows) * 0.06)
                if best is None or (cost, -vectors * rows) < best:
                    best = cost, -vectors * rows
                    found = Tiling(vectors, rows // together, together, each, segments)
        return found


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
