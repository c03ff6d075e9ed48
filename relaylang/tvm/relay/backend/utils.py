"""Of `tvm.relay.backend.utils` there are the names of generated modules."""

from __future__ import annotations


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of a module's C symbols. Raises `ValueError` for a name with other characters than letters, digits and "_"."""
    name = mod_name or ""
    if not (name.isascii() and name.replace("_", "a").isalnum()) and name:
        raise ValueError(f"{name} contains invalid characters")
    return f"tvmgen_{name}" if name else "tvmgen"


__all__ = ["mangle_module_name"]
