"""Programs of StableHLO as bytes: text, portable artifacts of MLIR's bytecode, and what `jax.export` serialises."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile
from relaylang.frontends.common.files import damaged
from relaylang.frontends.contents import artifact_at
from relaylang.frontends.stablehlo.program import Program
from relaylang.frontends.stablehlo.reader import read_text
from relaylang.runtime import processes
from relaylang.runtime.budget import Budget

#: The reader of bytecode is C++ code, which a damaged file may end. So it runs in a process of its own, for so many seconds.
_SECONDS = 300
_READER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
with ir.Context() as context:
    module = stablehlo.deserialize_portable_artifact(context, sys.stdin.buffer.read())
    sys.stdout.buffer.write(module.operation.get_asm(binary=True))
"""


def read_model(data: bytes, file: str, budget: Budget) -> Program:
    """The program of a file's bytes. Raises `RelayError`."""
    at = artifact_at(data)
    text = _text_of(data[at:], file) if at >= 0 else data
    try:
        return read_text(SourceFile(file, text.decode()), budget)
    except UnicodeDecodeError:
        raise damaged(file, "it is neither MLIR's text nor its bytecode") from None


def _text_of(data: bytes, file: str) -> bytes:
    """MLIR's text of bytecode, by jaxlib's reader."""
    if find_spec("jaxlib") is None:
        notes = ["pip install 'relaylang[stablehlo]'"]
        raise RelayError(error("R0803", f"{file}: reading MLIR's bytecode needs the package jaxlib", notes=notes))
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    try:
        done = processes.run([sys.executable, "-I", "-c", _READER, json.dumps(folders)], data, _SECONDS)
    except TimeoutError:
        raise damaged(file, f"jaxlib does not read its bytecode within {_SECONDS} s") from None
    if done.status:
        said = [line[:200] for line in done.words().splitlines() if "error:" in line]
        raise damaged(file, "jaxlib cannot read its bytecode", *said[:4])
    return done.out


__all__ = ["read_model"]
