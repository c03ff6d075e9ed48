"""Parameters in TVM's binary format (`.params`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import read_file
from relaylang.runtime.files import atomic_write
from relaylang.runtime.params import params_bytes, parse_params
from relaylang.runtime.text import reason
from relaylang.syntax.tensorblob import BlobError
from relaylang.tvm.arrays import from_python
from relaylang.tvm.runtime.ndarray import NDArray


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The bytes of tensors by name: numpy arrays, `tvm.nd` arrays or constants. Raises `RelayError` (R0013)."""
    try:
        return bytearray(params_bytes({name: np.asarray(from_python(value)) for name, value in params.items()}))
    except BlobError as e:
        raise RelayError(error("R0013", f"the parameters cannot be written: {e}")) from None


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """The same to a file, whole or not at all. Raises `RelayError` (R0013)."""
    content = save_param_dict(params)
    try:
        atomic_write(path, bytes(content))
    except OSError as e:
        raise RelayError(error("R0013", f"cannot write {os.fspath(path)}: {reason(e)}")) from None


def load_param_dict(param_bytes: Any) -> dict[str, NDArray]:
    """The tensors of such bytes by name. Raises `RelayError` (R0012) for damaged ones."""
    if isinstance(param_bytes, str):  # what old scripts read with open(path).read()
        param_bytes = param_bytes.encode("latin-1", "replace")
    try:
        return {name: NDArray(value) for name, value in parse_params(bytes(param_bytes)).items()}
    except BlobError as e:
        raise RelayError(error("R0012", f"the parameters cannot be read: {e}")) from None


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """The tensors of a file by name. Raises `RelayError` (R0001, R0012)."""
    return load_param_dict(read_file(path))


__all__ = ["load_param_dict", "load_param_dict_from_file", "save_param_dict", "save_param_dict_to_file"]
