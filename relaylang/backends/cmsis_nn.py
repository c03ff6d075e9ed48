"""The target cmsis-nn: programs for microcontrollers, as `relaylang.backends.bare_metal` compiles them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.backends.target import CompileRest, Target
from relaylang.ir import IRModule
from relaylang.runtime.artifact import Artifact
from relaylang.services import service


def compile_for(
    mod: IRModule,
    target: Target,
    fallback: Sequence[Target],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_rest: CompileRest | None,
) -> Artifact:
    """The backend's door; see `relaylang.backends`."""
    artifact: Artifact = service("compile for bare metal")(mod, [target, *fallback], params, entry)
    return artifact


__all__ = ["compile_for"]
