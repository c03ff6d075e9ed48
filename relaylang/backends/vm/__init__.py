"""The compiled Relay VM: programs with recursion, data types, closures and references.

    executable = compile_vm(mod, "c")
    executable.call("main", (x,))

A function becomes bytecode (`translate`, `operands`, `branches`, `code`). Tensor operators between two places of control
flow become one kernel of the CPU backend (`operators`, `regions`). Numbers stay in registers (`scalars`). The machine that
runs the code is a loop in C (`csrc`), compiled together with the kernels (`source`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.registry import parse_target, with_options
from relaylang.backends.target import Target
from relaylang.backends.vm.binding import bound
from relaylang.backends.vm.build import make_program
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, IRModule
from relaylang.ir.bulk import gc_paused
from relaylang.passes.functions.hoist_invariants import hoist_invariants
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.typing import check

__all__ = ["compile_vm"]


def compile_vm(
    mod: IRModule | Expr,
    target: str | Target = "c",
    params: Mapping[str, np.ndarray] | None = None,
    options: Mapping[str, Any] | None = None,
    entries: Sequence[str] | None = None,
    native: bool = True,
) -> VMExecutable:
    """Compile functions of a module and all that they call (by default all functions of the module).

    `params` gives values for parameters of the first of them, or of `@main`; they become part of the program. Without
    `native` the interpreter computes tensors, and only control flow is compiled. Raises `RelayError`.
    """
    targets = parse_target(target) if isinstance(target, str) else [target]
    first = with_options(targets[0], options) if options else targets[0]
    if first.name != "c":
        raise RelayError(error("R0602", f"the VM runs on the CPU (target c), not on {first.name}"))
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    check(mod)
    mod = bound(mod, params or {}, entries[0] if entries else "main")
    if entries is None:
        entries = [gv.name_hint for gv, function in mod.functions.items() if function.body is not None]
    with gc_paused():
        return make_program(hoist_invariants(mod, entries), first, entries, native)
