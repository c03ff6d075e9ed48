"""Values as files."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib.format import write_array

from relaylang.cli.inputs import bad_value


def named_arrays(value: Any) -> dict[str, np.ndarray]:
    """A value's tensors by name: `output`, or `output_0`, `output_1_0` for the fields of tuples."""
    found: dict[str, np.ndarray] = {}
    stack: list[tuple[str, Any]] = [("output", value)]
    while stack:
        name, item = stack.pop()
        if isinstance(item, np.ndarray):
            found[name] = item
        elif isinstance(item, tuple):
            stack += reversed([(f"{name}_{i}", field) for i, field in enumerate(item)])
        else:
            raise bad_value(
                "--output takes tensors and tuples of them, and the value holds something else",
                ["without --output the value is shown as text"],
            )
    return found


def npz_bytes(value: Any) -> bytes:
    """A value's tensors as the bytes of a .npz file. Element types that numpy's files lack become float32."""
    return archive(named_arrays(value))


def archive(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of a .npz file. Element types that numpy's files lack become float32."""
    out = BytesIO()
    with ZipFile(out, "w") as file:
        for name, array in arrays.items():
            if array.dtype.kind == "V" or array.dtype.num > 255:
                array = array.astype(np.float32)
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                write_array(entry, np.asanyarray(array), allow_pickle=False)
    return out.getvalue()
