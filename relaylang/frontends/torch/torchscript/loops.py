"""Loops whose length depends on data: what the body changes becomes the variables of a recursive function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relaylang.frontends.common import Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.torch.torchscript.branches import Journal
from relaylang.frontends.torch.torchscript.plain import number
from relaylang.frontends.torch.torchscript.values import Tensor
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.torch.torchscript.machine import Frame, Machine


def loop(
    m: Machine, frame: Frame, body: Sequence[ast.stmt], test: Callable[[], Any], run: Callable[[], None], first: str = ""
) -> None:
    """`while test(): run()`. `first` is the name of a number that `run` counts up."""
    names = [n for n in _assigned(body) if n in frame.names and n != first]
    names = [first, *names] if first else names
    before = dict(frame.names)
    kinds = [isinstance(before[n], Tensor) for n in names]
    outer = m.journal

    def bind(values: Sequence[Expr]) -> None:
        frame.names = dict(before)
        for name, tensor, value in zip(names, kinds, values):
            frame.names[name] = Tensor(value) if tensor else value

    def cond(values: list[Expr]) -> Expr:
        bind(values)
        return number(m.b, test())

    def turn(values: list[Expr]) -> list[Expr]:
        bind(values)
        m.journal = Journal()
        try:
            run()
            made = [_expression(m, n, frame.names[n]) for n in names]
            effects = m.journal.undo()
        finally:
            m.journal = outer
        if effects.fields or any(t.base is None and id(t) in kept for t, _ in effects.tensors.values()):
            raise Unsupported("its loop of unknown length writes into fields or tensors")
        return made

    kept = {id(v) for v in before.values() if isinstance(v, Tensor)}
    found = while_loop(m.b, cond, turn, [_expression(m, n, before[n]) for n in names], names)
    bind(found)


def _expression(m: Machine, name: str, value: Any) -> Expr:
    value = m.tensors(value)
    if isinstance(value, Tensor) and value.quant is None:
        return value.read()
    if isinstance(value, (Expr, int, float)):
        return number(m.b, value)
    raise Unsupported(f"its loop of unknown length changes {name}, which is no tensor and no number")


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """The names that a block assigns, in their order."""
    found: dict[str, None] = {}
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        stack += reversed(list(ast.iter_child_nodes(node)))
    return list(found)


__all__ = ["loop"]
