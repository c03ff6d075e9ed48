"""The worklist: nodes whose types depend on an unknown, looked at again once it is bound."""

from __future__ import annotations

from collections.abc import Callable

from relaylang.ir.expr import Expr
from relaylang.ir.types import Type
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import Unknown
from relaylang.typing.texts import name_of


class Waiting:
    """A node that waits: `result` stands for its type until `again` gives it. None from `again`: it waits on."""

    __slots__ = ("again", "done", "node", "result")

    def __init__(self, node: Expr, result: Unknown, again: Callable[[Waiting], Type | None]) -> None:
        self.node = node
        self.result = result
        self.again = again
        self.done = False


class Worklist:
    """Runs what the solver says is ready."""

    def __init__(self, solver: Solver, report: Report) -> None:
        self._solver = solver
        self._report = report

    def work(self) -> None:
        """Look again at each node that waited for a type which is known now."""
        ready = self._solver.ready
        while ready:
            waiting = ready.pop()
            assert isinstance(waiting, Waiting)
            if waiting.done:
                continue
            result = waiting.again(waiting)
            if result is not None and not self._solver.unify(waiting.result, result):
                node = waiting.node
                actual = self._solver.resolve(waiting.result)
                self._report.cannot_be(node, f"the result of {name_of(node)}", actual, result)


__all__ = ["Waiting", "Worklist"]
