"""Code: functions as blocks of steps, which the linker makes and the evaluator's loop runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.interpreter.values import Value
from relaylang.ir import Expr, Function, Var

#: The values of a frame; and what computes one of them from others.
Slots = list[Any]
Step = Callable[[Slots], None]

#: How a block ends.
RETURN, JUMP, BRANCH, MATCH, CALL, TAIL_CALL = range(6)


class Block:
    """Steps and an end. `nodes` gives each step's expression and operand slots, for errors."""

    __slots__ = ("arms", "callee", "code", "end", "fetch", "into", "next", "node", "nodes", "other", "slot", "steps")

    def __init__(self, code: Code) -> None:
        self.code = code
        self.steps: list[Step] = []
        self.nodes: list[tuple[Expr, tuple[int, ...]] | None] = []
        self.end = RETURN
        self.node: Expr | None = None
        #: the value to return, the condition, the matched value, or the callee's slot
        self.slot = 0
        #: where control goes (the branch taken for True), where it goes for False
        self.next: Block | None = None
        self.other: Block | None = None
        self.arms: list[tuple[Callable[[Value, Slots], bool], Block]] = []
        #: for calls: the callee where it is known, how to fetch the arguments, where the result goes
        self.callee: Code | None = None
        self.fetch: Callable[[Slots], Slots] = list
        self.into = 0


class Code:
    """A function ready to run. `template` is what follows the arguments and captured values in a frame."""

    __slots__ = ("arity", "captured", "entry", "function", "name", "template")

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        #: the variables whose values a closure captures, in their order
        self.captured: list[Var] = []
        self.function = function
        self.arity = len(function.params)
        self.entry: Block | None = None
        self.template: Slots = []
