"""The type checker.

`infer` finds the type of every node, writes it into `checked_type` and returns diagnostics. `check` raises where these
hold errors. `InferType()` is the same as a pass. A node that has its type already costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relaylang.diagnostics import Diagnostic, RelayError, by_place
from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import Expr, Var
from relaylang.ir.module import IRModule
from relaylang.ir.types import Type
from relaylang.typing.checker import Checker
from relaylang.typing.inference import Inference
from relaylang.typing.program import Program
from relaylang.typing.reuse import Stale


def infer(
    program: IRModule | Expr,
    *,
    fragment: bool = False,
    module: IRModule | None = None,
    assume: Mapping[Var, Type] | None = None,
    fresh: bool = False,
    partial: bool = False,
    beside_errors: bool = False,
) -> list[Diagnostic]:
    """Find the type of every node of a module or an expression, and fill `checked_type` in place.

    Returns errors and warnings by place, then notes. Where there are errors no type is written. In a `fragment` what stays unknown is
    a note, and such nodes have an `IncompleteType`; elsewhere it is an error.
    `module` gives the functions and type definitions that an expression refers to. `assume` gives types to variables
    that have no annotation. `fresh` looks at every node again, whatever type it has. A `partial`
    program is the readable part of a wrong text. Names that it lacks are not reported again. With `beside_errors`, nodes of a
    wrong program get their types, too, for tools that show them.
    """
    if assume:
        fresh = True
    while True:
        around = Program.of(program if isinstance(program, IRModule) else module, partial)
        inference = Inference(around, fragment=fragment, fresh=fresh, assume=assume)
        try:
            with gc_paused():
                if isinstance(program, IRModule):
                    inference.run_module(program)
                else:
                    inference.run_expr(program)
            inference.results.report_unknown()
            wrong = any(d.severity == "error" for d in inference.diagnostics)
            if wrong and inference.earlier.used:
                raise Stale  # errors are found in the whole program
            if not wrong and not fresh:
                inference.earlier.check_names()
            if not wrong or beside_errors:
                inference.results.store()
            return by_place(inference.diagnostics)
        except Stale:
            fresh = True


def check(program: IRModule | Expr, **options: object) -> list[Diagnostic]:
    """As `infer`, but raises `RelayError` where there are errors; returns the warnings and notes."""
    diagnostics = infer(program, **options)  # type: ignore[arg-type]
    if any(d.severity == "error" for d in diagnostics):
        raise RelayError(diagnostics)
    return diagnostics


def type_of(expr: Expr, module: IRModule | None = None) -> Type:
    """The type of an expression, found where it has none yet. Raises `RelayError`."""
    if expr.checked_type is None:
        check(expr, module=module, fragment=True)
    assert expr.checked_type is not None
    return expr.checked_type


def InferType() -> Callable[[IRModule], IRModule]:
    """The pass that types a module in place and returns it. Raises `RelayError`."""

    def infer_type(mod: IRModule) -> IRModule:
        check(mod)
        return mod

    return infer_type


__all__ = ["Checker", "InferType", "check", "infer", "type_of"]
