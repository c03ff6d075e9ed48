"""Small networks in Core ML's files, with what PyTorch computes for them; scripts/coreml_results.py records them."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "recorded.zip"


@cache
def members() -> dict[str, bytes]:
    """Every file by its name: `lenet.program`, `lenet.half`, `lenet.network`, packed ones, and `.plain` ones."""
    with zipfile.ZipFile(DATA) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "arrays.npz"}


@cache
def _arrays() -> dict[str, np.ndarray]:
    with zipfile.ZipFile(DATA) as archive, np.load(io.BytesIO(archive.read("arrays.npz"))) as found:
        return dict(found)


def arrays(name: str, kind: str) -> list[np.ndarray]:
    """The operands ("x") or the results ("y") of a network, in order."""
    found = {key.rpartition("/")[2]: value for key, value in _arrays().items() if key.startswith(f"{name}/{kind}")}
    return [found[f"{kind}{i}"] for i in range(len(found))]
