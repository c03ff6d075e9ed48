"""Lints on control flow: clauses that no value reaches, and conditions that never change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from relaylang.diagnostics import Diagnostic, Fix
from relaylang.diagnostics.source import Span
from relaylang.ir import Call, Constant, Expr, If, Let, Match, Var
from relaylang.ir.typed import typed
from relaylang.ops.record import Op
from relaylang.passes.lints.repairs import Repair, past_blanks
from relaylang.passes.lints.view import View, finding
from relaylang.passes.simplify.fold_constant import evaluator, fold_expr
from relaylang.typing.exhaustive import Undecided, unreachable

#: The most nodes of a condition that is computed.
_MOST_NODES = 64
#: The steps that all constant conditions of a text may take. An editor asks with every change.
_MOST_STEPS = 1 << 24


def unreachable_clauses(view: View) -> Iterator[Diagnostic]:
    """R1005: clauses of a match whose values earlier clauses take."""
    for node in view.nodes:
        if isinstance(node, Match):
            try:
                numbers = unreachable(node.clauses, view.module.type_definitions)
            except Undecided:
                continue
            for number in numbers:
                span = node.clauses[number].span
                fix = _removal(view, span) if span is not None else None
                yield finding("R1005", "no value reaches this clause", span, "the clauses above take its values", fix=fix)


def _removal(view: View, clause: Span) -> Fix | None:
    """The repair that takes a clause out, with a comma beside it. A comment in it keeps it."""
    code, text = view.symbols.code, view.source.text
    start, end = clause.start, clause.end
    first, after = bisect_left(view.starts, start), bisect_left(view.starts, end)
    if after < len(code) and code[after].text == ",":
        end = code[after].end
        line = text.rfind("\n", 0, start) + 1
        rest = past_blanks(text, end)
        alone = not text[line:start].strip() and text[rest : rest + 1] == "\n"
        start, end = (line, rest + 1) if alone else (start, rest)
    elif first and code[first - 1].text == ",":
        start = code[first - 1].start
    else:
        return None
    return Repair(view.span(start, end), "", "remove the clause") if not view.has_comment(start, end) else None


def constant_conditions(view: View) -> Iterator[Diagnostic]:
    """R1006: conditions that are made of constants alone, also of those that lets name."""
    compute = evaluator(_MOST_STEPS)
    for node in view.nodes:
        if not isinstance(node, If):
            continue
        cond = _constant(view, node.cond)
        value = fold_expr(cond, compute) if cond is not None else None
        if isinstance(value, Constant):
            branch = "first" if value.data else "second"
            title = f"the condition is always {'true' if value.data else 'false'}"
            yield finding("R1006", title, node.cond.span, f"only the {branch} branch runs")


def _constant(view: View, expr: Expr) -> Expr | None:
    """An expression with the lets of the names in it. None where it has more than constants and operators without state."""
    names: dict[Var, None] = {}  # in order of first use: the values of names read only those behind them
    stack, seen = [expr], 0
    while stack:
        node = stack.pop()
        seen += 1
        if seen > _MOST_NODES:
            return None
        if isinstance(node, Call) and isinstance(node.op, Op) and not node.op.stateful:
            stack.extend(node.args)
        elif isinstance(node, Var) and node in view.bound:
            names.pop(node, None)
            names[node] = None
            stack.append(view.bound[node])
        elif not isinstance(node, Constant):
            return None
    for var in names:
        expr = typed(Let(var, view.bound[var], expr), expr.checked_type)
    return expr
