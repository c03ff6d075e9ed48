"""VTA, TVM's open accelerator: int8 subgraphs become its instructions, and a simulator runs them.

    artifact = compile_module(mod, "vta -config=vta_config.json, c")
    print(artifact.report())
    artifact.save("net.tar")
    artifact.run(x=x)            # regions in the simulator

The package depends on nothing but numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from relaylang.backends.hosted import compiled, saved_step
from relaylang.backends.target import CompileRest, Target
from relaylang.backends.vta import artifact, driver
from relaylang.backends.vta.artifact import VTAArtifact
from relaylang.ir import IRModule

__all__ = ["VTAArtifact", "compile_for", "loads"]


def compile_for(
    mod: IRModule,
    target: Target,
    fallback: Sequence[Target],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_rest: CompileRest | None,
) -> VTAArtifact:
    """The backend's door; see `relaylang.backends`. What stays on the host is compiled for the first of `fallback`."""
    host = None if compile_rest is None else partial(compiled, compile_rest)
    return driver.compile_module(mod, target.options, params, entry, host)


def loads(content: bytes, threads: int | None = None, source: str = "what was given") -> VTAArtifact:
    """Read an archive that `save` has written. `source` is what messages call it. Raises `RelayError`."""
    return artifact.loads(content, partial(saved_step, threads=threads), source)
