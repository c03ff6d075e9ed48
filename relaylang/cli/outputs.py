"""Values as files."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib.format import write_array

from relaylang.cli.common import write_bytes
from relaylang.cli.inputs import bad_value
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.params import save_params


def named_arrays(value: Any) -> dict[str, np.ndarray]:
    """A value's tensors by name: `output`, or `output_0`, `output_1_0` for the fields of tuples."""
    arrays: dict[str, np.ndarray] = {}
    stack: list[tuple[str, Any]] = [("output", value)]
    while stack:
        name, item = stack.pop()
        if isinstance(item, np.ndarray):
            arrays[name] = item
        elif isinstance(item, tuple):
            stack += reversed([(f"{name}_{i}", field) for i, field in enumerate(item)])
        else:
            raise bad_value(
                "--output takes tensors and tuples of them, and the value holds something else",
                ["without --output the value is shown as text"],
            )
    return arrays


def check_arrays(path: str | None) -> None:
    """Raises `RelayError` (R0014) for a file of tensors whose suffix is another format's."""
    suffix = Path(path or "-").suffix.lower()
    if suffix not in ("", ".npz", ".safetensors"):
        raise RelayError(error("R0014", f"{path} is not a .npz or .safetensors file"))


def write_arrays(path: str, value: Any) -> None:
    """Write a value's tensors, in the format of safetensors for that suffix, else as .npz."""
    if path.lower().endswith(".safetensors"):
        save_params(path, named_arrays(value))
    else:
        write_bytes(path, archive(named_arrays(value)))


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
