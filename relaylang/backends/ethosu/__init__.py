"""Arm Ethos-U: int8 and int16 subgraphs become TOSA, and Arm's Vela compiles them to command streams.

    artifact = compile_module(mod, "ethos-u -accelerator=ethos-u55-256, c")
    print(artifact.report())
    artifact.save("net.tar")
    artifact.run(x=x)            # regions on the TOSA reference model

Needs `pip install "relaylang[ethosu]"`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.backends.ethosu import driver
from relaylang.backends.ethosu.artifact import EthosUArtifact, loads
from relaylang.backends.hosted import compiled, interpreted
from relaylang.backends.target import CompileRest, Target
from relaylang.ir import IRModule
from relaylang.runtime import artifact as programs

__all__ = ["EthosUArtifact", "compile", "compile_for", "load", "loads"]


def compile_for(
    mod: IRModule,
    target: Target,
    fallback: Sequence[Target],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_rest: CompileRest | None,
) -> EthosUArtifact:
    """The backend's door; see `relaylang.backends`. What stays on the host is compiled for the first of `fallback`."""
    host = None if compile_rest is None else partial(compiled, compile_rest)
    return driver.compile_module(mod, target.options, params, entry, host)


def compile(
    mod: IRModule,
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
    entry: str = "main",
) -> EthosUArtifact:
    """Compile with the interpreter as the host: no C compiler is needed. `options` as in the target string."""
    return driver.compile_module(mod, options or {}, params or {}, entry, interpreted)


def load(path: str | os.PathLike[str], threads: int | None = None) -> EthosUArtifact:
    """Read an archive that `save` has written. Host steps run compiled where the archive has their programs.

    `threads` is how many threads these may use. Raises `RelayError`: R0001 for a file that cannot be read, R0641 for one
    that is something else.
    """
    return loads(programs.read_file(path), threads, os.fspath(path))
