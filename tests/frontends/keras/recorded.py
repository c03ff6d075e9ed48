"""Small networks in Keras's files, with what Keras computes for them; scripts/keras_networks.py records them."""

from __future__ import annotations

import io
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data" / "recorded.tar.xz"


@cache
def _members() -> dict[str, bytes]:
    with tarfile.open(DATA, "r:xz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}  # type: ignore[union-attr]


def files() -> list[tuple[str, bytes]]:
    """Every network's file by its name: `lstm.3.keras`, `lstm.3.h5`, `lstm.2.h5`."""
    return [(name, data) for name, data in _members().items() if not name.endswith(".npz")]


def results(name: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The operands of a network by name, and its results."""
    with np.load(io.BytesIO(_members()[f"{name.rpartition('.')[0]}.npz"])) as arrays:
        found: dict[str, Any] = dict(arrays)
    names = [str(n) for n in found["names"]]
    wanted = [found[k] for k in sorted((k for k in found if k.startswith("out")), key=lambda k: int(k[3:]))]
    return {n: found[f"in{i}"] for i, n in enumerate(names)}, wanted
