"""The evaluator's loop: runs blocks of steps with a stack of its own.

No program recurses on Python's stack. A tail call reuses nothing but also leaves nothing behind, so a loop written as
recursion runs in constant memory; any other call leaves one small entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.compiler import BRANCH, CALL, JUMP, MATCH, RETURN, Block, Code, Linker
from relaylang.interpreter.errors import Trap, evaluation_error
from relaylang.interpreter.values import Builtin, Closure, Value, value_type
from relaylang.ir.bulk import gc_relaxed
from relaylang.source import Span


def run(linker: Linker, code: Code, args: list[Value], captured: list[Value] | None = None) -> Value:
    """The value of a function for arguments. Raises `RelayError` for what goes wrong on the way."""
    with np.errstate(all="ignore"), gc_relaxed():
        return _loop(linker, code, [*args, *(captured or [])])


def _loop(linker: Linker, code: Code, frame: list[Value]) -> Value:
    stack: list[tuple[Block, list[Value], int]] = []
    push, pop = stack.append, stack.pop
    steps: Any = iter(())
    block = code.entry or linker.link(code)
    slots = frame + code.template
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
                value = slots[block.slot]
                for fits, arm in block.arms:
                    if fits(value, slots):
                        block = arm
                        break
                else:
                    raise Trap("R0405", f"no clause of this match fits {_short(value)}", block.node)
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
                            raise Trap(
                                "R0401", f"{called.name} takes {called.arity} arguments, not {len(frame)}", block.node
                            )
                        frame += callee.captured
                    elif not isinstance(callee, Builtin):
                        raise Trap("R0407", f"{value_type(callee)} is no function to call", block.node)
                if called is not None:
                    if end == CALL:
                        push((block, slots, block.into))
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
    except Trap as trap:
        span = trap.node.span if trap.node is not None else None
        raise evaluation_error(trap.code, trap.message, span, None, _frames(block, span, stack)) from None
    except MemoryError:
        frames = _frames(block, None, stack)
        del stack[:]
        raise evaluation_error("R0408", "there is not enough memory to go on", frames[0][1], None, frames) from None
    except (ValueError, TypeError, IndexError, ArithmeticError, AttributeError, AssertionError) as problem:
        raise _failure(problem, block, steps, slots, stack) from problem


def _failure(problem: Exception, block: Block, steps: Any, slots: list[Value], stack: list[Any]) -> Exception:
    """The diagnostic for a kernel that gave up: which step it was is what the iterator has left."""
    state = steps.__reduce__()  # (iter, (list,), index) while it goes on, (iter, ((),)) once it is through
    found = block.nodes[state[2] - 1] if len(state) == 3 and state[2] else None
    node, args = found if found is not None else (block.node, ())
    span = node.span if node is not None else None
    name = getattr(getattr(node, "op", None), "name", None) or getattr(getattr(node, "op", None), "name_hint", "this")
    given = [slots[i] for i in args]
    return evaluation_error("R0404", f"{name}: {problem}", span, given, _frames(block, span, stack))


def _frames(block: Block, span: Span | None, stack: list[Any]) -> list[tuple[str, Span | None]]:
    """The active calls, innermost first: each function and the place in it."""
    frames = [(block.code.name, span)]
    for caller, _, _ in reversed(stack):
        frames.append((caller.code.name, caller.node.span if caller.node is not None else None))
    return frames


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
