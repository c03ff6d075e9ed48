"""The vector instructions of the machine that code is made for, as the C compiler names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from relaylang.runtime.features import announced


@dataclass(frozen=True)
class Isa:
    """An instruction set: 32-bit lanes in a vector, vector registers, and the compiler's further features by name.

    `relaylang.runtime.features` lists the names: "f16c", "vnni" (AVX512VNNI), "bw" (AVX512BW), "dotprod", "i8mm".
    """

    name: str
    lanes: int
    registers: int
    features: frozenset[str] = frozenset()

    @property
    def explicit_lanes(self) -> int:
        """The lanes of vector loops that are written out (`relaylang.kernels.vectors`); 0 where compilers do better."""
        return self.lanes if self.name in ("avx2", "avx512") else 0

    def of(self, dtype: str) -> Isa:
        """The instruction set for elements of a type. A vector has half as many of 64 bits, and four times as many bytes."""
        if self.lanes == 1:
            return self
        if dtype in ("float64", "int64"):
            return replace(self, lanes=self.lanes // 2)
        return replace(self, lanes=self.lanes * 4) if dtype in ("int8", "uint8") else self


AVX512 = Isa("avx512", 16, 32, frozenset({"avx512f", "avx2", "fma"}))
AVX2 = Isa("avx2", 8, 16, frozenset({"avx2", "fma"}))
NEON = Isa("neon", 4, 32)
GENERIC = Isa("generic", 4, 16)
#: One number at a time, as each work item of a GPU computes.
SCALAR = Isa("scalar", 1, 16)
BY_NAME: Mapping[str, Isa] = {isa.name: isa for isa in (AVX512, AVX2, NEON, GENERIC)}


def from_macros(macros: str) -> Isa:
    """The instruction set that a compiler's predefined macros announce (`cc -dM -E`), with its features."""
    features = announced(macros)
    if "avx512f" in features:
        base = AVX512
    elif {"avx2", "fma"} <= features:
        base = AVX2
    elif "__ARM_NEON" in macros:
        base = NEON
    else:
        base = GENERIC
    return replace(base, features=features)
