"""`tvm.target.codegen`: relaylang writes C, and has no LLVM of its own."""

from __future__ import annotations


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The version of LLVM: 0, or None with `allow_none`, as there is none."""
    return None if allow_none else 0


__all__ = ["llvm_version_major"]
