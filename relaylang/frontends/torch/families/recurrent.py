"""LSTM, GRU and plain recurrent layers, stacked, in one direction or both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.torch.families.packed import sequences
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

#: One step of a cell: input, states, the weights of a direction.
Cell = Callable[[Builder, Expr, list[Expr], list[Expr]], list[Expr]]
#: The same from the products of the input and of the first state with their weights.
Step = Callable[[Builder, Expr, Expr, list[Expr]], list[Expr]]


def _gates(b: Builder, x: Expr, weight: Expr, bias: Expr | None) -> Expr:
    product = b.unfolded("nn.dense", x, weight, units=b.extent(weight, 0))  # all steps have one form, whatever the first state is
    return b.op("add", product, bias) if bias is not None else product


def _parts(b: Builder, x: Expr, count: int) -> list[Expr]:
    size = b.extent(x, 1) // count
    return [b.slice(x, [i * size], [(i + 1) * size], [1]) for i in range(count)]


def _complete(states: list[Expr], weights: list[Expr], count: int) -> None:
    """Raises `Malformed` for another number of states, and where weights or biases are missing."""
    if len(states) != count:
        raise Malformed(f"it has {len(states)} states; it must have {count}")
    if len(weights) not in ((2, 4) if count == 1 else (2, 3, 4, 5)):
        raise Malformed(f"it has {len(weights)} weights and biases; it must have 2 or 4")


def lstm_step(b: Builder, from_x: Expr, from_h: Expr, states: list[Expr]) -> list[Expr]:
    """The states after a step, from the two products with the weights. Gates: input, forget, cell, output."""
    i, f, g, o = _parts(b, b.op("add", from_x, from_h), 4)
    fresh = b.op("multiply", b.op("sigmoid", i), b.op("tanh", g))
    c = b.op("add", b.op("multiply", b.op("sigmoid", f), states[1]), fresh)
    return [b.op("multiply", b.op("sigmoid", o), b.op("tanh", c)), c]


def gru_step(b: Builder, from_x: Expr, from_h: Expr, states: list[Expr]) -> list[Expr]:
    """The state after a step. Gates: reset, update, new. The reset is applied behind the product."""
    (xr, xz, xn), (hr, hz, hn) = _parts(b, from_x, 3), _parts(b, from_h, 3)
    reset, update = (b.op("sigmoid", b.op("add", p, q)) for p, q in ((xr, hr), (xz, hz)))
    new = b.op("tanh", b.op("add", xn, b.op("multiply", reset, hn)))
    return [b.op("add", new, b.op("multiply", update, b.op("subtract", states[0], new)))]


def plain_step(activation: str) -> Step:
    """The state after a step of a plain layer."""
    return lambda b, from_x, from_h, states: [b.op(activation, b.op("add", from_x, from_h))]


def _cell(step: Step, count: int) -> Cell:
    """A cell of `count` states with real weights and biases. An odd weight at the end projects the first state."""

    def cell(b: Builder, x: Expr, states: list[Expr], weights: list[Expr]) -> list[Expr]:
        _complete(states, weights, count)
        weights, projection = (weights[:-1], weights[-1]) if len(weights) % 2 else (weights, None)
        bias_x, bias_h = (weights[2], weights[3]) if len(weights) > 2 else (None, None)
        new_states = step(b, _gates(b, x, weights[0], bias_x), _gates(b, states[0], weights[1], bias_h), states)
        return new_states if projection is None else [_gates(b, new_states[0], projection, None), *new_states[1:]]

    return cell


lstm_cell, gru_cell = _cell(lstm_step, 2), _cell(gru_step, 1)


def _plain(activation: str) -> Cell:
    return _cell(plain_step(activation), 1)


def _step(b: Builder, cell: Cell, weights: list[Expr], x: Expr, states: list[Expr]) -> list[Expr]:
    return cell(b, x, states, weights)


def _states(n: Node) -> list[Expr]:
    states = n.get("hx")
    return list(states) if isinstance(states, list) else [states]


def stacked(cell: Cell, states: int) -> Callable[[Node], Any]:
    """Layers above each other; each direction has its own weights and initial states."""

    def convert(n: Node) -> Any:
        b, packed = n.b, "batch_sizes" in n.call.args
        x = n.x("data" if packed else "input")
        initial = _states(n)
        ways, count = 2 if n.get("bidirectional") else 1, n.int("num_layers")
        weights = n.get("params")
        each = len(weights) // max(count * ways, 1)
        lone = not packed and b.rank(x) == 2
        x, initial = (b.unsqueeze(x, [1]), [b.unsqueeze(s, [1]) for s in initial]) if lone else (x, initial)
        first = bool(n.get("batch_first")) and not lone
        packing = sequences(b, n.x("batch_sizes"), b.shape(initial[0])[1]) if packed else None
        steps, lengths = b.transpose(x, [1, 0, 2]) if first else x, None
        if packing is not None:
            initial = [b.refine(s, [None, packing.batch, None]) for s in initial]
            steps, lengths = packing.padded(x), packing.lengths()
        last: list[list[Expr]] = []
        for layer in range(count):
            outputs = []
            for way in range(ways):
                at = layer * ways + way
                begin = [b.squeeze(b.slice(s, [at], [at + 1], [0]), [0]) for s in initial]
                step = partial(_step, b, cell, weights[at * each : (at + 1) * each])
                outs, after = recurrence(b, steps, begin, step, lengths, reverse=way == 1)
                outputs.append(outs)
                last.append(after)
            steps = b.concat(outputs, 2)
        out = packing.packed(steps) if packing is not None else b.transpose(steps, [1, 0, 2]) if first else steps
        results = [out, *(b.op("stack", b.tuple([after[i] for after in last]), axis=0) for i in range(states))]
        return [b.squeeze(r, [1]) for r in results] if lone else results

    return convert


def single(cell: Cell, states: int) -> Callable[[Node], Any]:
    """One step of a cell, with or without a batch."""

    def convert(n: Node) -> Any:
        b, x, before = n.b, n.x("input"), _states(n)
        lone = b.rank(x) == 1
        if lone:
            x, before = b.unsqueeze(x, [0]), [b.unsqueeze(s, [0]) for s in before]
        weights = [n.x(name) for name in ("w_ih", "w_hh", "b_ih", "b_hh") if n.has(name)]
        new_states = cell(b, x, before, weights)
        new_states = [b.squeeze(m, [0]) for m in new_states] if lone else new_states
        return new_states if states > 1 else new_states[0]

    return convert


RULES = (
    Rule("aten.gru_cell", single(gru_cell, 1)),
    Rule("aten.lstm_cell", single(lstm_cell, 2)),
    Rule("aten.rnn_relu_cell", single(_plain("nn.relu"), 1)),
    Rule("aten.rnn_tanh_cell", single(_plain("tanh"), 1)),
    Rule("aten.gru", stacked(gru_cell, 1)),
    Rule("aten.lstm", stacked(lstm_cell, 2)),
    Rule("aten.rnn_relu", stacked(_plain("nn.relu"), 1)),
    Rule("aten.rnn_tanh", stacked(_plain("tanh"), 1)),
)
