"""Programs of StableHLO as bytes: text, portable artifacts of MLIR's bytecode, and what `jax.export` serialises."""

from __future__ import annotations

from importlib import import_module

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile
from relaylang.frontends.common.files import damaged
from relaylang.frontends.contents import artifact_at
from relaylang.frontends.stablehlo.program import Program
from relaylang.frontends.stablehlo.reader import read_text
from relaylang.runtime.budget import Budget


def read_model(data: bytes, file: str, budget: Budget) -> Program:
    """The program of a file's bytes. Raises `RelayError`."""
    at = artifact_at(data)
    if at >= 0:
        text = _text_of(data[at:], file)
        return read_text(SourceFile(file, text), budget)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise damaged(file, "it is neither MLIR's text nor its bytecode") from None
    return read_text(SourceFile(file, text), budget)


def _text_of(data: bytes, file: str) -> str:
    """MLIR's text of bytecode, by jaxlib's reader."""
    try:
        ir = import_module("jaxlib.mlir.ir")
        stablehlo = import_module("jaxlib.mlir.dialects.stablehlo")
    except ImportError:
        notes = ["pip install jaxlib"]
        raise RelayError(error("R0803", f"{file}: reading MLIR's bytecode needs the package jaxlib", notes=notes)) from None
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = stablehlo.deserialize_portable_artifact(context, data)
        except Exception as wrong:  # MLIR's own errors
            raise damaged(file, f"jaxlib cannot read its bytecode: {str(wrong).splitlines()[0][:200]}") from None
        return str(module.operation.get_asm())


__all__ = ["read_model"]
