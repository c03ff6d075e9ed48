"""What all readers of model files need: packages of extras, damaged files as diagnostics."""

from __future__ import annotations

import importlib
from typing import Any

from relaylang.diagnostics import RelayError, error


def need_package(package: str, extra: str, what: str) -> Any:
    """An optional package. Raises `RelayError` (R0803) that names the `pip install` line."""
    try:
        return importlib.import_module(package)
    except ImportError:
        notes = [f"pip install 'relaylang[{extra}]'"]
        raise RelayError(error("R0803", f"{what} needs the package {package}", notes=notes)) from None


def damaged(file: str, what: str, *notes: str) -> RelayError:
    """The error for a model file that cannot be read (R0802); `what` says where it is wrong."""
    return RelayError(error("R0802", f"{file}: {what}", notes=notes))


def check_version(file: str, what: str, version: int, newest: int) -> None:
    """Raises `RelayError` (R0802) for a file of a later version than the newest one that the importer knows."""
    if version > newest:
        raise damaged(file, f"{what} has the version {version}; relaylang knows versions up to {newest}")


__all__ = ["check_version", "damaged", "need_package"]
