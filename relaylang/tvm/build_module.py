"""Values for parameters, and the compiler, under the names that they have in `tvm.relay.build_module`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.ir import IRModule
from relaylang.ir.binding import bind, bind_params_by_name
from relaylang.runtime.artifact import Artifact
from relaylang.tvm.executor import create_executor
from relaylang.typing import check


def build(
    ir_mod: IRModule,
    target: str = "c",
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, np.ndarray] | None = None,
    mod_name: str = "default",
) -> Artifact:
    """Compile a module. Returns the artifact: `.run(name=array)`, `.save(path)`. Raises `RelayError`.

    The parameters that only TVM's runtimes know are accepted and have no effect.
    """
    check(ir_mod)
    return compile_module(ir_mod, target, params=params)


__all__ = ["bind", "bind_params_by_name", "build", "create_executor"]
