"""The evaluator's loop: runs blocks of steps with a stack of its own.

No program recurses on Python's stack. A tail call leaves nothing behind, so a loop written as recursion runs in
constant memory. Any other call leaves one small entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.diagnostics.source import Span
from relaylang.interpreter.code import BRANCH, CALL, JUMP, MATCH, RETURN, Block, Code
from relaylang.interpreter.errors import Fault, Trap, call_stack, evaluation_error
from relaylang.interpreter.kernels.common import KernelError
from relaylang.interpreter.linker import Linker
from relaylang.interpreter.memory import FIRST_DEPTH
from relaylang.interpreter.values import Builtin, Closure, Value, short_text, value_type
from relaylang.interpreter.watch import node_name, type_says
from relaylang.ir import ANY, Call, Expr, TypeVar, children, type_text
from relaylang.ir.bulk import gc_relaxed
from relaylang.ir.types import dim_text

#: Where a step failed: the place, its name for a message, its operands' types and its expression.
_Place: TypeAlias = tuple["Span | None", str, "list[str] | None", "Expr | None"]


def run(linker: Linker, code: Code, args: list[Value], captured: list[Value] | None = None) -> Value:
    """The value of a function for arguments. Raises `RelayError` where the program fails."""
    with np.errstate(all="ignore"), gc_relaxed(), linker.onlookers.limit.running():
        return _loop(linker, code, [*args, *(captured or [])])


def _loop(linker: Linker, code: Code, frame: list[Value]) -> Value:
    stack: list[tuple[Block, list[Value], int]] = []
    push, pop = stack.append, stack.pop
    deep = FIRST_DEPTH
    steps: Any = iter(())
    block = code.entry or linker.link(code)
    slots = frame + code.template
    if linker.onlookers.watch is not None:
        linker.onlookers.watch.attach(stack)
    try:
        while True:
            steps = iter(block.steps)
            for step in steps:
                step(slots)
            end = block.end
            if end == BRANCH:
                block = block.next if slots[block.slot] else block.other  # type: ignore[assignment]
                continue
            if end == JUMP:
                block = block.next  # type: ignore[assignment]
                continue
            if end == RETURN:
                value = slots[block.slot]
            elif end == MATCH:
                block = _clause(block, slots)
                continue
            else:
                called = block.callee
                if called is not None:
                    frame = block.fetch(slots)
                else:
                    callee = slots[block.slot]
                    frame = block.fetch(slots)
                    if type(callee) is Closure:
                        called = callee.code
                        if len(frame) != called.arity:
                            raise Trap("R0401", f"{called.name} takes {called.arity} arguments, not {len(frame)}", block.node)
                        frame += callee.captured
                    elif not isinstance(callee, Builtin):
                        raise Trap("R0407", f"{value_type(callee)} is no function to call", block.node)
                if called is not None:
                    if end == CALL:
                        push((block, slots, block.into))
                        if len(stack) > deep:
                            deep = linker.onlookers.limit.deeper(called.function, len(stack))
                    block = called.entry or linker.link(called)
                    slots = frame + called.template
                    continue
                value = callee.apply(*frame)
                if end == CALL:
                    slots[block.into] = value
                    block = block.next  # type: ignore[assignment]
                    continue
            if not stack:
                return value
            caller, slots, into = pop()
            slots[into] = value
            block = caller.next  # type: ignore[assignment]
    except (Trap, MemoryError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError) as problem:
        place = _place(block, steps, slots)
        if isinstance(problem, Trap) and problem.node is not None:
            place = problem.node.span, *place[1:]
        failure = _failure(problem, place, active_calls(block.code, place[0], stack))
        if isinstance(problem, (Trap, MemoryError)):
            del stack[:]
        raise failure from failure.__cause__


def _clause(block: Block, slots: list[Value]) -> Block:
    """The clause of a match that its value fits. Binds the clause's variables."""
    value = slots[block.slot]
    for fits, clause in block.arms:
        if fits(value, slots):
            return clause
    raise Trap("R0405", f"no clause of this match fits {short_text(value)}", block.node, _matched(block))


def _failure(problem: Exception, place: _Place, frames: list[str]) -> RelayError:
    """What an exception of a step means to the user; `frames` are the active calls. The cause is set for a kernel's own words."""
    span, name, types, node = place
    if isinstance(problem, Trap):
        return evaluation_error(problem.code, problem.message, span, None, frames, problem.notes)
    if isinstance(problem, MemoryError):
        why = f" for {name}: {problem}" if str(problem) else " to go on"
        return evaluation_error("R0408", f"there is not enough memory{why}", span, types, frames)
    if str(problem).startswith(_TOO_BIG):
        title = f"there is not enough memory for {name}: more than any machine can address"
        return evaluation_error("R0408", title, span, types, frames)
    kind = problem.code if isinstance(problem, Fault) else "R0404"
    reason = str(problem) if isinstance(problem, (KernelError, Fault)) else _reason(node)
    failure = evaluation_error(kind, f"{name}: {reason}", span, types, frames)
    failure.__cause__ = problem
    return failure


def _reason(node: Expr | None) -> str:
    """Why a kernel that gives no reason cannot compute: an extent among the attributes may be no number."""
    attrs = node.attrs if isinstance(node, Call) else None
    for name in getattr(type(attrs), "schema", ()):
        value = getattr(attrs, name)
        if isinstance(value, tuple) and any(d is ANY or isinstance(d, TypeVar) for d in value):
            return f"the numbers of {name}=[{', '.join(map(dim_text, value))}] are not known"
    return "these values cannot be computed with"


#: Numpy's messages about an array whose bytes do not fit an address. A MemoryError concerns this machine alone.
_TOO_BIG = ("array is too big", "Maximum allowed dimension exceeded")


def _place(block: Block, steps: Any, slots: list[Value]) -> _Place:
    """The place, the name and the operands' types of the step that failed. The iterator's state gives its number."""
    state = steps.__reduce__()  # (iter, (list,), index) while it goes on, (iter, ((),)) once it is through
    failed = block.nodes[state[2] - 1] if len(state) == 3 and state[2] else None
    node, args = failed if failed is not None else (block.node, ())
    if node is None:
        return None, "this", None, None
    if failed is None:
        return node.span, node_name(node), None, node
    operands = node.args if isinstance(node, Call) else children(node)
    types = [type_says(slots[i], e.checked_type) for i, e in zip(args, operands)]
    return node.span, node_name(node), types, node


def active_calls(code: Code, span: Span | None, stack: Sequence[Any]) -> list[str]:
    """The calls that lead to a place, innermost first, as text."""
    return call_stack((code.name, span), _Callers(stack))


class _Callers(Sequence[tuple[str, "Span | None"]]):
    """The active calls as functions and places in them, the outermost first. Each is made on demand."""

    def __init__(self, stack: Sequence[Any]) -> None:
        self.stack = stack

    def __len__(self) -> int:
        return len(self.stack)

    def __getitem__(self, index: Any) -> Any:
        caller = self.stack[index][0]
        return caller.code.name, caller.node.span if caller.node is not None else None


def _matched(block: Block) -> list[str]:
    """The type of what a match was given."""
    data = getattr(block.node, "data", None)
    ty = data.checked_type if data is not None else None
    return [f"the value is of type {type_text(ty)}"] if ty is not None else []
