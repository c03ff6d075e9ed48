"""Arm Ethos-U: int8 subgraphs become TOSA, and Arm's Vela compiles them to command streams.

    artifact = compile_module(mod, "ethos-u -accelerator=ethos-u55-256, c")
    print(artifact.report())
    artifact.save("net.tar")
    artifact.run(x=x)            # regions on the TOSA reference model

Needs `pip install "relaylang[ethosu]"`.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang import backends
from relaylang.backends.ethosu import artifact, driver
from relaylang.backends.ethosu.artifact import EthosUArtifact
from relaylang.backends.target import Target
from relaylang.ir import IRModule, Tuple
from relaylang.syntax import parse

__all__ = ["EthosUArtifact", "compile", "compile_for", "load"]


def compile_for(
    mod: IRModule, target: Target, fallback: Sequence[Target], params: Mapping[str, np.ndarray], entry: str
) -> EthosUArtifact:
    """The backend's door; see `relaylang.backends`. What stays on the host is compiled for the first of `fallback`."""
    if not fallback:
        return driver.compile_module(mod, target.options, params, entry, None)
    return driver.compile_module(mod, target.options, params, entry, lambda module: _compiled(module, fallback))


def compile(
    mod: IRModule,
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
    entry: str = "main",
) -> EthosUArtifact:
    """Compile with the interpreter as the host: no C compiler is needed. `options` as in the target string."""
    return driver.compile_module(mod, options or {}, params or {}, entry, driver.interpreted)


def load(path: str | os.PathLike[str]) -> EthosUArtifact:
    """Read an archive that `save` has written. What is on the host is run by the interpreter."""

    def make_runner(texts: dict[str, str]) -> artifact.HostRunner:
        functions: dict[str, driver.HostFunction] = {}

        def run(name: str, arguments: list[Any]) -> list[Any]:
            if name not in functions:
                module = parse(texts[name], name=f"host/{name}.relay").module
                functions[name] = driver.interpreted(driver.check(module))
            return functions[name](arguments)

        return run

    return artifact.load(path, make_runner)


def _compiled(module: IRModule, fallback: Sequence[Target]) -> driver.HostFunction:
    """A host step, compiled for the targets behind ours."""
    main = module["main"]
    code = backends.compile_module(module, fallback)
    names = [p.name_hint for p in main.params]

    def run(arguments: list[Any]) -> list[Any]:
        value = code.run(**dict(zip(names, arguments)))
        return list(value) if isinstance(main.body, Tuple) else [value]

    return run
