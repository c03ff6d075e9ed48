"""Loops as recursive functions: `tvm.relay.loops.while_loop`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylang.ir import Call, Expr, Function, If, Let, Tuple, Var
from relaylang.typing import type_of


def while_loop(cond: Callable[..., Expr], loop_vars: Sequence[Expr], loop_bodies: Callable[..., Sequence[Expr]]) -> Let:
    """A function of the initial values; it returns the tuple of the last ones.

    `cond` and `loop_bodies` get the variables of one turn. They return whether to go on, and the values of the next turn.
    `loop_vars` give the variables' types, and names where they are variables.
    """
    loop = Var("while_loop")
    turn = []
    for number, initial in enumerate(loop_vars):
        name = initial.name_hint if isinstance(initial, Var) else f"arg{number}"
        known = initial.type_annotation if isinstance(initial, Var) else initial.checked_type or type_of(initial)
        turn.append(Var(name, known, initial.span))
    body = If(cond(*turn), Call(loop, tuple(loop_bodies(*turn))), Tuple(turn))
    return Let(loop, Function(turn, body), loop)


__all__ = ["while_loop"]
