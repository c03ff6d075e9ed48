"""Values for parameters, and the compiler, under the names that they have in `tvm.relay.build_module`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.target import Target
from relaylang.ir import Expr, IRModule, TensorType
from relaylang.ir.binding import bind, bind_params_by_name
from relaylang.ir.missing import refuse_missing
from relaylang.runtime.artifact import Artifact
from relaylang.tvm.arrays import arrays_by_name
from relaylang.tvm.executor import create_executor
from relaylang.tvm.relay.backend.executor import check_interface
from relaylang.tvm.runtime.program import ExecutorFactoryModule
from relaylang.tvm.target.chosen import accelerators_of, targets_of
from relaylang.typing import check


def build(
    ir_mod: IRModule | Expr,
    target: str | Target | Sequence[Any] | Mapping[Any, Any] | None = None,
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> ExecutorFactoryModule:
    """Compile a module. Returns the program: `lib["default"](tvm.cpu())`, `graph_json, lib, params = ...`, `.run(name=array)`.

    `params` have values by name: numpy arrays, `tvm.nd` arrays or constants. `Executor("aot")` with `Runtime("crt")` gives C
    for a microcontroller (`relaylang.backends.bare_metal`), with the accelerators that the module is partitioned for. Other
    executors and runtimes give a library. What only TVM's runtimes know is accepted and has no effect. Raises `RelayError`.
    """
    check_interface(executor, runtime)
    mod = ir_mod if isinstance(ir_mod, IRModule) else IRModule.from_expr(ir_mod)
    check(mod)
    targets = targets_of(target)
    values: dict[str, np.ndarray] = arrays_by_name({} if params is None else params)
    refuse_missing(mod, values, _ADVICE)
    warn_of_names(mod, values)
    artifact: Artifact
    if getattr(executor, "name", "") == "aot" and getattr(runtime, "name", "") == "crt":
        targets = [*accelerators_of(mod, targets), *targets]
        artifact = compile_bare_metal(mod, targets, values, name=mod_name)
    else:
        artifact = compile_module(mod, targets, params=values)
    return ExecutorFactoryModule(artifact, mod, targets, values, mod_name, executor, runtime)


#: How a user of TVM's names gives a constant its value.
_ADVICE = """give it to build: params={"NAME": array}
or to the reader: relay.parse(text, init_meta_table={"KEY": [relay.const(array)]})"""


def warn_of_names(mod: IRModule, values: Mapping[str, np.ndarray]) -> None:
    """Warn of names that no parameter of @main has, where a parameter of the same type has no value.

    As in TVM, such values have no effect: a script may give those of parameters that a pass has bound.
    """
    if "main" not in mod:
        return
    params = {p.name_hint: p.checked_type or p.type_annotation for p in mod["main"].params}
    unset = [(name, ty) for name, ty in params.items() if name not in values and isinstance(ty, TensorType)]
    for name, array in values.items():
        fits = [p for p, ty in unset if (tuple(ty.shape), ty.dtype) == (array.shape, array.dtype.name)]
        if name not in params and fits:
            warnings.warn(f"params has {name}, which no parameter of @main is called; {fits[0]} has no value", stacklevel=3)


__all__ = ["bind", "bind_params_by_name", "build", "create_executor"]
