"""Backends: what a program is compiled for.

    from relaylang.backends import compile_module, parse_target
    artifact = compile_module(mod, "c", params={"w": w})
    artifact.run(x=x)

`parse_target` reads a target string (`"ethos-u -accelerator=ethos-u55-256, c"`), `compile_module` compiles a module for
one. A backend is a module with a function

    compile_for(mod, target, fallback, params, entry, compile_rest) -> Artifact

`target` is the backend's own `Target`. The targets after it in the string are `fallback`, and `compile_rest(module)` is
the artifact that these make of a module. It is None where none follows. `params` has values for parameters of the entry
function by name. Backends are imported when they are first used.

An installed package adds a backend by an entry point in the group `relaylang.backends`. The entry point is a module or
an object with `compile_for`, `doc` (a line) and `options` (names and types). Its `compile_for` may leave `compile_rest`
out. Errors that its code raises are reported with the package's name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.backends.added import compile_added
from relaylang.backends.registry import BACKENDS, find_backend, parse_target, with_options
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, Function, IRModule
from relaylang.runtime.artifact import Artifact

__all__ = ["BACKENDS", "Target", "compile_module", "parse_target"]


def compile_module(
    mod: IRModule | Expr,
    target: str | Target | Sequence[Target] = "c",
    params: Mapping[str, np.ndarray] | None = None,
    options: Mapping[str, Any] | None = None,
    entry: str = "main",
    tuning: str | None = None,
) -> Artifact:
    """Compile a module (or one function or expression) for a target. Raises `RelayError`.

    The module may be unchecked: the checker runs where types are missing. `params` gives values for parameters of the
    entry function; they become part of the artifact. `options` (`{"cc": "clang", "num-threads": 1}`) are added to the
    options of the first target of the string, and win over them. An option's name may have underscores or dashes. Each
    of several targets takes the calls that it supports, in order. `"ethos-u, c"` partitions for the NPU and compiles
    the rest for the CPU. `tuning` is the path of a log of `relay tune`, for target c: kernels get the best schedules in it.
    """
    if isinstance(target, Target):
        targets = [target]
    elif isinstance(target, str):
        targets = parse_target(target)
    else:
        targets = list(target)
    first, *fallback = targets
    if options or tuning is not None:
        first = with_options(first, {**(options or {}), "tuning": tuning})
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    if entry not in mod or not isinstance(mod[entry], Function):
        names = ", ".join(f"@{gv.name_hint}" for gv in mod.get_global_vars()[:8]) or "none"
        raise RelayError(error("R0603", f"the module has no function @{entry}", notes=[f"its functions: {names}"]))
    backend = find_backend(first.name)
    if backend is None:
        raise RelayError(error("R0601", f"unknown target {first.name}"))
    compile_rest = partial(compile_module, target=fallback) if fallback else None
    arguments = (mod, first, fallback, dict(params or {}), entry, compile_rest)
    if backend.package:
        return compile_added(backend, first.name, *arguments)
    artifact: Artifact = importlib.import_module(backend.module).compile_for(*arguments)
    return artifact
