"""Programs of StableHLO with what JAX computes for them; scripts/stablehlo_results.py records them.

Operands are random numbers of a seed, which a text such as "normal 2x3 float32" describes. So the data has no weights.
"""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "recorded.tar.xz"


def operands(described: list[str]) -> list[np.ndarray]:
    """The operands that texts describe: "normal SHAPE DTYPE [SCALE]", "whole LOW HIGH SHAPE DTYPE", "value JSON DTYPE"."""
    rng, made = np.random.default_rng(len(described)), []
    for text in described:
        kind, *rest = text.split(" ")
        if kind == "value":
            made.append(np.array(json.loads(rest[0]), np.dtype(rest[1])))
            continue
        shape = [int(n) for n in rest[-2 if kind == "whole" else 0].split("x") if n]
        if kind == "whole":
            made.append(rng.integers(int(rest[0]), int(rest[1]), shape).astype(np.dtype(rest[-1])))
        else:
            scale = float(rest[2]) if len(rest) > 2 else 1.0
            made.append(np.asarray(rng.normal(size=shape) * scale).astype(np.dtype(rest[1])))
    return made


@cache
def members() -> dict[str, bytes]:
    """The files of the archive by name."""
    with tarfile.open(DATA, "r:xz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}  # type: ignore[union-attr]


def names() -> list[str]:
    """The cases."""
    return sorted(name.removesuffix(".mlir") for name in members() if name.endswith(".mlir"))


def case(name: str) -> tuple[bytes, list[np.ndarray], list[np.ndarray]]:
    """The text of a program, its operands, and JAX's results."""
    described = json.loads(members()[f"{name}.json"])
    with np.load(io.BytesIO(members()[f"{name}.npz"])) as arrays:
        wanted = [arrays[f"out{i}"] for i in range(len(arrays.files))]
    return members()[f"{name}.mlir"], operands(described), wanted
