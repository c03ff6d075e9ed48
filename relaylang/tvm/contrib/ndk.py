"""`tvm.contrib.ndk`: linking with the Android NDK's compiler, which `TVM_NDK_CC` names."""

from __future__ import annotations

import os
from collections.abc import Sequence

from relaylang.diagnostics import RelayError, error
from relaylang.tvm.contrib import cc


def create_shared(output: str, objects: Sequence[str] | str, options: Sequence[str] | str | None = None) -> None:
    """Link objects to a shared library for Android. Raises `RelayError` (R0630, R0631)."""
    compiler = os.environ.get("TVM_NDK_CC")
    if not compiler:
        notes = ["export TVM_NDK_CC=.../aarch64-linux-android24-clang", "or compile for it directly: -mtriple=aarch64-linux-android"]
        raise RelayError(error("R0630", "the environment variable TVM_NDK_CC names no compiler", notes=notes))
    cc.create_shared(output, objects, options, cc=compiler)


create_shared.output_format = "so"  # type: ignore[attr-defined]

__all__ = ["create_shared"]
