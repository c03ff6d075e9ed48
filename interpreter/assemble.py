"""From instructions to steps: the second of the two passes over a function, once the slots have their places."""

from __future__ import annotations

from relaylang.interpreter.code import Block
from relaylang.interpreter.memory import type_bytes
from relaylang.interpreter.onlookers import Onlookers
from relaylang.interpreter.steps import (
    Step,
    drop_step,
    enter_step,
    joined_step,
    limited,
    looked_at,
    observed,
    watched,
)
from relaylang.interpreter.translate import Instruction, Translation
from relaylang.interpreter.watch import Site
from relaylang.ir import Call, Constructor, Function
from relaylang.ir.tensors import static_shape
from relaylang.ops.record import Op


def assemble(translation: Translation, onlookers: Onlookers) -> Block:
    """Fill the blocks of a translated function with steps, and its code. Returns the first block."""
    frame, code = translation.frame, translation.code
    drops = translation.lifetimes.drops()
    entry = translation.blocks[0]
    if onlookers.watch is not None:
        entry.steps.append(enter_step(code, onlookers.watch))
        entry.nodes.append(None)
    for block in translation.blocks:
        listed = translation.instructions[id(block)]
        for i in range(len(listed) + 1):
            dead = drops.get((id(block), i))
            if dead:
                block.steps.append(drop_step([frame.final(s) for s in dead]))
                block.nodes.append(None)
            if i < len(listed):
                _add(block, listed[i], translation, onlookers)
        end = translation.ends.get(id(block))
        if end is not None:
            end()
    code.entry = entry
    code.template = frame.template()
    return entry


def _add(block: Block, one: Instruction, translation: Translation, onlookers: Onlookers) -> None:
    """Add the step of an instruction, with what its onlookers add to it."""
    into, args = translation.frame.final(one.into), translation.frame.finals(one.args)
    step = one.make(into, args)
    if one.timer is None:
        step = _within_memory(block, step, one, into, args, onlookers)
    if not onlookers.plain:
        step = _attended(step, one, into, args, translation, onlookers)
    block.steps.append(step)
    block.nodes.append((one.node, args))


def _attended(step: Step, one: Instruction, into: int, args: tuple[int, ...], translation: Translation, onlookers: Onlookers) -> Step:
    """The step as an observer and a watch see it."""
    if onlookers.observer is not None and one.binding is not None:
        step = observed(step, into, one.binding, onlookers.observer)
    if onlookers.watch is not None and one.variable is not None:
        frame = translation.frame
        site = Site(one.variable, one.node, translation.code, into, args, frame.variables)
        if one.timer is not None:
            return joined_step(frame.final(one.timer), site, onlookers.watch)
        return watched(step, site, onlookers.watch)
    return step


def _within_memory(block: Block, step: Step, one: Instruction, into: int, args: tuple[int, ...], onlookers: Onlookers) -> Step:
    """The step as the limit to memory allows it.

    A step in front of one that makes values of any lifetime looks at memory now and then.
    """
    limit, node = onlookers.limit, one.node
    if isinstance(node, Call) and isinstance(node.op, Op):
        coming = type_bytes(node.checked_type)
        if limit.concerns(coming):
            return limited(step, node, coming, limit)
        if not coming and static_shape(node.checked_type) is None:  # the type does not tell the size
            return looked_at(step, node, into, limit)
    if limit.given or isinstance(node, Function) or (isinstance(node, Call) and isinstance(node.op, Constructor)):
        block.steps.append(onlookers.tick)
        block.nodes.append((node, args))
    return step


__all__ = ["assemble"]
