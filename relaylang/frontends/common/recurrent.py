"""Recurrences over the first axis of a tensor: unrolled where they are short, else a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.nn import front_of
from relaylang.ir import Expr

#: Sequences up to this length are unrolled.
UNROLLED = 32
#: The states behind one step, from the step's input and the states before it. The first state is the step's output.
Step = Callable[[Expr, list[Expr]], list[Expr]]


def recurrence(
    b: Builder, x: Expr, states: Sequence[Expr], step: Step, lengths: Expr | None = None, reverse: bool = False
) -> tuple[Expr, list[Expr]]:
    """The outputs of all steps, and the states behind the last one.

    `x` is (steps, batch, ...), a state (batch, ...). With `lengths` (batch), an element's states stay behind its last
    step, and its outputs are 0 there. `reverse` goes from the last step to the first.
    """
    extent = b.shape(x)[0]
    if lengths is not None and isinstance(extent, int):
        value = b.value(lengths)
        if value is not None and (value >= extent).all():
            lengths = None
    if reverse:
        x = _reversed(b, x, lengths)
    if isinstance(extent, int) and extent <= UNROLLED:
        outputs, last = _unrolled(b, x, list(states), step, lengths, extent)
    else:
        outputs, last = _loop(b, x, list(states), step, lengths)
    return (_reversed(b, outputs, lengths) if reverse else outputs), last


def _reversed(b: Builder, x: Expr, lengths: Expr | None) -> Expr:
    """The steps in the opposite order, of each element of the batch within its length."""
    if lengths is None:
        return b.op("reverse", x, axis=0)
    return b.op("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)


def _within(b: Builder, at: Expr, lengths: Expr, new: list[Expr], old: list[Expr]) -> tuple[Expr, list[Expr]]:
    """The output and the states, for the elements of the batch whose sequences have a step here."""
    alive = b.op("less", b.cast(at, b.dtype(lengths)), lengths)
    kept = []
    for n, o in zip(new, old):
        kept.append(b.op("where", b.unsqueeze(alive, list(range(1, b.rank(n)))), n, o))
    first = b.unsqueeze(alive, list(range(1, b.rank(new[0]))))
    return b.op("where", first, new[0], b.const(0.0, b.dtype(new[0]))), kept


def _unrolled(b: Builder, x: Expr, states: list[Expr], step: Step, lengths: Expr | None, count: int) -> tuple[Expr, list[Expr]]:
    outputs = []
    parts = b.fields(b.op("split", x, indices_or_sections=count, axis=0)) if count > 1 else [x]
    for i in range(count):
        new = step(b.squeeze(parts[i], [0]), states)
        output = new[0]
        if lengths is not None:
            output, new = _within(b, b.const(i, b.dtype(lengths)), lengths, new, states)
        outputs.append(b.unsqueeze(output, [0]))
        states = new
    return b.concat(outputs, 0), states


def _loop(b: Builder, x: Expr, states: list[Expr], step: Step, lengths: Expr | None) -> tuple[Expr, list[Expr]]:
    count = b.scalar(b.cast(front_of(b, x, 1), "int32"))
    none = b.unsqueeze(states[0], [0])
    none = b.slice(none, [0], [0], [0])

    def body(values: list[Expr]) -> list[Expr]:
        at, outputs, *before = values
        new = step(b.op("take", x, at, axis=0, mode="clip"), before)
        output = new[0]
        if lengths is not None:
            output, new = _within(b, at, lengths, new, before)
        joined = b.op("concatenate", b.tuple([outputs, b.unsqueeze(output, [0])]), axis=0)
        return [b.op("add", at, 1), joined, *new]

    names = ["step", "outputs", *[f"state{i}" for i in range(len(states))]]
    results = while_loop(b, lambda v: b.op("less", v[0], count), body, [b.const(0, "int32"), none, *states], names, "recurrence")
    outputs = results[1]
    extent = b.shape(x)[0]
    if isinstance(extent, int):
        outputs = b.refine(outputs, [extent, *[None] * (b.rank(outputs) - 1)])
    return outputs, results[2:]


def zeros(b: Builder, like: Expr, axis: int, width: int) -> Expr:
    """Zeros of (batch, width), where the batch is an axis of a tensor."""
    extent = b.shape(like)[axis]
    if isinstance(extent, int):
        return b.const(b.arrays.zeros((extent, width), np.dtype(b.dtype(like))))
    batch = b.slice(b.shape_of(like), [axis], [axis + 1], [0])
    filled = b.op("dyn.zeros", b.concat([batch, b.const(np.array([width], "int64"))], 0), dtype=b.dtype(like))
    return b.refine(filled, [None, width])


__all__ = ["UNROLLED", "Step", "recurrence", "zeros"]
