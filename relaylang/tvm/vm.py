"""`relay.vm`: compile programs for the VM, with TVM's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.backends.target import Target
from relaylang.backends.vm import compile_vm
from relaylang.ir import Expr, IRModule
from relaylang.tvm.arrays import arrays_by_name
from relaylang.tvm.build_module import warn_of_names
from relaylang.tvm.relay.optimising import optimize
from relaylang.tvm.runtime.vm import Executable, VirtualMachine
from relaylang.tvm.target.chosen import targets_of


def compile(mod: IRModule | Expr, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> Executable:
    """A module, or one function, as a program of the VM. `params` are values for parameters of `@main`. Raises `RelayError`."""
    compiler = VMCompiler()
    compiler.set_params(params or {})
    compiler.lower(mod, target, target_host)
    compiler.codegen()
    return compiler.get_exec()


class VMCompiler:
    """Compiles modules step by step: `lower`, `codegen`, `get_exec`. `optimize` shows what the passes make of one."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._lowered: tuple[IRModule | Expr, Target] | None = None
        self._made: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Give parameters of `@main` values."""
        self._params = arrays_by_name(params)

    def get_params(self) -> dict[str, Any]:
        """The values of `set_params`."""
        return dict(self._params)

    def lower(self, mod: IRModule | Expr, target: Any = None, target_host: Any = None) -> None:
        """Take a module and a target (default: `c`, the CPU). Of several targets, the first one counts."""
        self._lowered = mod, targets_of(target)[0]

    def optimize(
        self, mod: IRModule, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None
    ) -> tuple[IRModule, dict[str, Any]]:
        """The module after the passes of the current context's level, and the parameters that are left: none.

        `params`, and those of `set_params`, become constants of @main. Raises `RelayError`.
        """
        return optimize(mod, target, {**self._params, **(params or {})})

    def codegen(self) -> None:
        """Compile the module of `lower`. Raises `RelayError`."""
        if self._lowered is None:
            raise RuntimeError("lower(mod, target) comes before codegen()")
        mod, target = self._lowered
        if isinstance(mod, IRModule):
            warn_of_names(mod, self._params)
        self._made = Executable(compile_vm(mod, target, self._params))

    def get_exec(self) -> Executable:
        """The program of `codegen`."""
        if self._made is None:
            raise RuntimeError("codegen() comes before get_exec()")
        return self._made


__all__ = ["Executable", "VMCompiler", "VirtualMachine", "compile"]
