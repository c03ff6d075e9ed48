"""Loops whose length depends on data: what the body changes becomes the variables of a recursive function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relaylang.frontends.common import Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.torch.torchscript.branches import Journal
from relaylang.frontends.torch.torchscript.plain_values import number
from relaylang.frontends.torch.torchscript.values import BIRTHS, Tensor
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.torch.torchscript.machine import Frame, Machine


class _Writes(Exception):
    """The body of a loop writes into tensors that are older than the loop."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors


def loop(
    m: Machine,
    frame: Frame,
    body: Sequence[ast.stmt],
    test: Callable[[], Any],
    run: Callable[[], None],
    first: str = "",
    written: Sequence[Tensor] = (),
) -> None:
    """`while test(): run()`. `first` is the name of a number that `run` counts up. The body writes into `written` tensors,
    which are variables of the loop, too.
    """
    names = [n for n in _assigned(body) if n in frame.names and n != first]
    names = [first, *names] if first else names
    before, start = dict(frame.names), next(BIRTHS)
    kinds = [isinstance(before[n], Tensor) for n in names]
    outer = m.journal

    def bind(values: Sequence[Expr]) -> None:
        frame.names = dict(before)
        for name, tensor, value in zip(names, kinds, values):
            frame.names[name] = Tensor(value) if tensor else value
        put(values[len(names) :])

    def put(values: Sequence[Expr]) -> None:
        for tensor, value in zip(written, values):
            tensor.value = value
            tensor.version += 1

    def cond(values: list[Expr]) -> Expr:
        bind(values)
        return number(m.b, test())

    def turn(values: list[Expr]) -> list[Expr]:
        bind(values)
        m.journal = Journal()
        try:
            run()
            last = [_expression(m, n, frame.names[n]) for n in names] + [t.read() for t in written]
            effects = m.journal.undo()
        finally:
            m.journal = outer
        older = [t for t, _ in effects.tensors.values() if t.base is None and t.birth < start and t not in written]
        if effects.fields or any(t.quant is not None or not isinstance(t.value, Expr) for t in older):
            raise Unsupported("its loop of unknown length writes into fields, or into quantised or complex tensors")
        if older:
            raise _Writes(older)
        return last

    values = [t.read() for t in written]
    more: list[Tensor] = []
    try:
        initial = [_expression(m, n, before[n]) for n in names] + values
        results = while_loop(m.b, cond, turn, initial, [*names, *(f"written{i}" for i in range(len(written)))])
    except _Writes as why:
        more = why.tensors
    finally:
        put(values)
    if more:
        frame.names = before
        return loop(m, frame, body, test, run, first, [*written, *more])
    bind(results[: len(names)])
    for tensor, value in zip(written, results[len(names) :]):
        if outer is not None:
            outer.note_tensor(tensor)
        tensor.write(value)
    return None


def _expression(m: Machine, name: str, value: Any) -> Expr:
    value = m.tensors(value)
    if isinstance(value, Tensor) and value.quant is None:
        return value.read()
    if isinstance(value, (Expr, int, float)):
        return number(m.b, value)
    raise Unsupported(f"its loop of unknown length changes {name}, which is no tensor and no number")


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """The names that a block assigns, in their order."""
    names: dict[str, None] = {}
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        stack += reversed(list(ast.iter_child_nodes(node)))
    return list(names)


__all__ = ["loop"]
