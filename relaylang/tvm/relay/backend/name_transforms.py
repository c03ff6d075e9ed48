"""Names for generated C, in the styles of TVM's runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relaylang.diagnostics import RelayError, error


def _checked(name: str, what: str) -> str:
    if not name:
        raise RelayError(error("R0609", f"{what} name is empty"))
    if not name.startswith("TVM"):
        raise RelayError(error("R0609", f"{what} not TVM prefixed: {name}"))
    return name


def to_c_function_style(original_name: str) -> str:
    """ "TVM_my_name" as "TVMMyName". Raises `RelayError` for a name without TVM's prefix."""
    words = _checked(original_name, "Function")[3:].split("_")
    return "TVM" + "".join([re.sub("[^A-Za-z]", "", w).capitalize() for w in words])


def to_c_variable_style(original_name: str) -> str:
    """ "TVM_My_name" as "tvm_my_name". Raises `RelayError` for a name without TVM's prefix."""
    return _checked(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """ "TVM_my_name" as "TVM_MY_NAME". Raises `RelayError` for a name without TVM's prefix."""
    return _checked(original_name, "Constant").upper()


def _prefixed(prefix: str, names: str | Sequence[str]) -> str:
    if isinstance(names, str):
        if not names:
            raise RelayError(error("R0609", "Name is empty"))
        names = [names]
    if not names:
        raise RelayError(error("R0609", "Name segments empty"))
    if not all(names):
        raise RelayError(error("R0609", "Name segment is empty"))
    return "_".join([prefix, *names])


def prefix_name(names: str | Sequence[str]) -> str:
    """The words of a name behind "TVM_". Raises `RelayError` for empty ones."""
    return _prefixed("TVM", names)


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """The words of a name behind "TVMGen_". Raises `RelayError` for empty ones."""
    return _prefixed("TVMGen", names)


def sanitize_name(original_name: str) -> str:
    """A name with "_" for each character that C does not allow. Raises `RelayError` for an empty one."""
    if not original_name:
        raise RelayError(error("R0609", "Name is empty"))
    return re.sub("[^A-Za-z0-9]", "_", original_name)


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of a module's C symbols. Raises `ValueError` for a name with other characters than letters, digits and "_"."""
    name = mod_name or ""
    if not (name.isascii() and name.replace("_", "a").isalnum()) and name:
        raise ValueError(f"{name} contains invalid characters")
    return f"tvmgen_{name}" if name else "tvmgen"


__all__ = [
    "mangle_module_name",
    "prefix_generated_name",
    "prefix_name",
    "sanitize_name",
    "to_c_constant_style",
    "to_c_function_style",
    "to_c_variable_style",
]
