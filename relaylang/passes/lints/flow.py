"""Lints on control flow: clauses that no value reaches, and conditions that never change."""

from __future__ import annotations

from collections.abc import Iterator

from relaylang.diagnostics import Diagnostic
from relaylang.ir import Call, Constant, Expr, If, Match
from relaylang.ops.record import Op
from relaylang.passes.lints.view import View, finding
from relaylang.passes.simplify.fold_constant import evaluator, fold_expr
from relaylang.typing.exhaustive import Undecided, unreachable

#: The most nodes of a condition that is computed.
_MOST_NODES = 64


def unreachable_clauses(view: View) -> Iterator[Diagnostic]:
    """R1005: clauses of a match whose values earlier clauses take."""
    for node in view.nodes:
        if isinstance(node, Match):
            try:
                found = unreachable(node.clauses, view.module.type_definitions)
            except Undecided:
                continue
            for number in found:
                span = node.clauses[number].span
                yield finding("R1005", "no value reaches this clause", span, "the clauses above take its values")


def constant_conditions(view: View) -> Iterator[Diagnostic]:
    """R1006: conditions that are made of constants alone."""
    for node in view.nodes:
        if isinstance(node, If) and _is_constant(node.cond):
            value = fold_expr(node.cond, evaluator())
            if not isinstance(value, Constant):
                continue
            branch = "first" if value.data else "second"
            title = f"the condition is always {'true' if value.data else 'false'}"
            yield finding("R1006", title, node.cond.span, f"only the {branch} branch runs")


def _is_constant(expr: Expr) -> bool:
    """Whether an expression is a small one of constants and operators without state."""
    stack, seen = [expr], 0
    while stack:
        node = stack.pop()
        seen += 1
        if seen > _MOST_NODES:
            return False
        if isinstance(node, Call) and isinstance(node.op, Op) and not node.op.stateful:
            stack.extend(node.args)
        elif not isinstance(node, Constant):
            return False
    return True
