"""Types of calls, one at a time, for programs that are built from their inputs on."""

from __future__ import annotations

from relaylang.diagnostics import RelayError
from relaylang.ir.expr import Call, Expr
from relaylang.ir.typed import typed
from relaylang.ir.types import Type
from relaylang.ops.record import Op
from relaylang.typing.operators import Operators
from relaylang.typing.program import Program
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver


class CallTyper:
    """Gives calls of operators their types as they are built. The arguments must have theirs.

    A call costs the same at the end of a long program as at its beginning.
    """

    def __init__(self) -> None:
        self._types: dict[Expr, Type] = {}
        self._solver = Solver()
        self._report = Report(self._solver, self._types, Program())
        self._operators = Operators(self._solver, self._report, self._types)

    def give(self, call: Call) -> Call:
        """Give a call its type, and return it. Raises `RelayError` where the operator does not take these arguments."""
        op = call.op
        assert isinstance(op, Op)
        types = self._types
        for argument in call.args:
            assert argument.checked_type is not None, "an argument has no type yet"
            types[argument] = argument.checked_type
        result = self._operators.call(call, op)
        types.clear()
        said = self._report.diagnostics
        if said:
            wrong = list(said)
            said.clear()
            if any(d.severity == "error" for d in wrong):
                raise RelayError(wrong)
        return typed(call, self._solver.resolve(result))


__all__ = ["CallTyper"]
