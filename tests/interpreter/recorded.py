"""TVM's results of the kernels' cases, kept in one file for comparison without TVM.

`scripts/record_kernels.py` writes the file. It holds numbers only: the results one behind the other, and an index. The
index, as JSON, has the place of each case's results by key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.interpreter.values import Case

FILE = Path(__file__).parent / "recorded.npz"


def flat(args: Iterable[Any]) -> list[np.ndarray]:
    return [part for arg in args for part in (arg if isinstance(arg, tuple) else (arg,))]


def keys(cases: Iterable[Case]) -> list[str]:
    """A short name for each case: from its operator, attributes and arguments' types, counted where these repeat."""
    seen: dict[str, int] = {}
    out = []
    for name, attrs, args, constant in cases:
        said = [name, sorted((k, repr(v)) for k, v in attrs.items()), sorted(constant)]
        said.append([(x.dtype.name, x.shape) for x in flat(args)])
        key = f"{name}-{hashlib.sha1(repr(said).encode()).hexdigest()[:8]}"
        seen[key] = seen.get(key, 0) + 1
        out.append(f"{key}-{seen[key]}")
    return out


def save(results: Mapping[str, Any]) -> None:
    """Results by key: arrays, nested tuples of arrays, or a text where TVM refused."""
    data = bytearray()

    def place(value: Any) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, tuple):
            return {"tuple": [place(v) for v in value]}
        at = len(data)
        data.extend(np.ascontiguousarray(value).tobytes())
        return [at, value.dtype.name, list(value.shape)]

    index = json.dumps({key: place(value) for key, value in sorted(results.items())}, separators=(",", ":"))
    np.savez_compressed(FILE, index=np.frombuffer(index.encode(), np.uint8), data=np.frombuffer(bytes(data), np.uint8))


def load() -> dict[str, Any]:
    with np.load(FILE) as file:
        index, data = json.loads(file["index"].tobytes()), file["data"].tobytes()

    def value(entry: Any) -> Any:
        if isinstance(entry, str):
            return entry
        if isinstance(entry, dict):
            return tuple(value(v) for v in entry["tuple"])
        at, dtype, shape = entry
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(data, np.dtype(dtype), count, at).reshape(shape)

    return {key: value(entry) for key, entry in index.items()}
