"""Recurrent layers: LSTM, GRU and plain ones, of several layers and both directions."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.recurrent import Step, recurrence
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Expr

#: The modes with the number of their gates.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _step(b: Builder, mode: str, weight: Expr, bias: Expr | None) -> Step:
    """One step, whose input is the product with the input's weights already. `weight` is (hidden, gates * hidden)."""

    def product(hidden: Expr) -> Expr:
        product = nn.matmul(b, hidden, weight)
        return product if bias is None else b.op("add", product, bias)

    def plain(x: Expr, states: list[Expr]) -> list[Expr]:
        return [b.op("tanh" if mode == "RNN_TANH" else "nn.relu", b.op("add", x, product(states[0])))]

    def lstm(x: Expr, states: list[Expr]) -> list[Expr]:
        """The gates are those of input, forgetting, the candidate and output."""
        gates = b.fields(b.op("split", b.op("add", x, product(states[0])), indices_or_sections=4, axis=-1))
        into, forget, out = (b.op("sigmoid", gates[i]) for i in (0, 1, 3))
        cell = b.op("add", b.op("multiply", forget, states[1]), b.op("multiply", into, b.op("tanh", gates[2])))
        return [b.op("multiply", out, b.op("tanh", cell)), cell]

    def gru(x: Expr, states: list[Expr]) -> list[Expr]:
        """The gates are those of resetting, updating and the candidate."""
        own, other = (b.fields(b.op("split", v, indices_or_sections=3, axis=-1)) for v in (x, product(states[0])))
        reset, update = (b.op("sigmoid", b.op("add", own[i], other[i])) for i in (0, 1))
        new = b.op("tanh", b.op("add", own[2], b.op("multiply", reset, other[2])))
        return [b.op("add", b.op("multiply", b.op("subtract", states[0], new), update), new)]

    return {"LSTM": lstm, "GRU": gru}.get(mode, plain)


def rnn(n: Node, x: Expr, states: Tensors, weights: Tensors, lengths: Expr | None = None, dropped: Any = None) -> Any:
    """The outputs (steps, batch, directions * hidden), and the last states (layers * directions, batch, hidden).

    The weights are those of the input and of the state for each layer and direction, then the biases in the same order.
    """
    b, mode = n.b, n.text("mode", "RNN_TANH")
    layers, ways = n.int("num_layers", 1), 1 + n.bool("is_bidirec", False)
    initial, parts = n.list(states), n.list(weights)
    if mode not in _GATES:
        raise Unsupported(f"its mode is {mode[:40]!r}")
    count = layers * ways
    if not 1 <= layers < 1 << 10 or len(parts) not in (2 * count, 4 * count) or len(initial) != (2 if mode == "LSTM" else 1):
        raise Malformed(f"it has {len(parts)} weights and {len(initial)} states for {layers} layers and {ways} directions")
    if b.extent(initial[0], 0) != count:
        raise Malformed(f"its states are those of {b.extent(initial[0], 0)} layers and directions, not {count}")
    spans = [b.fields(b.op("split", s, indices_or_sections=count, axis=0)) if count > 1 else [s] for s in initial]
    firsts = [[b.squeeze(s, [0]) for s in span] for span in spans]
    last: list[list[Expr]] = []
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            at = layer * ways + way
            own, state = (b.transpose(b.of_rank(parts[2 * at + i], 2), [1, 0]) for i in (0, 1))
            biases = [parts[2 * count + 2 * at + i] if len(parts) > 2 * count else None for i in (0, 1)]
            inputs = nn.matmul(b, x, own)
            inputs = inputs if biases[0] is None else b.op("add", inputs, biases[0])
            step = _step(b, mode, state, biases[1])
            direction, ends = recurrence(b, inputs, [f[at] for f in firsts], step, lengths, reverse=way == 1)
            outputs.append(direction)
            last.append(ends)
        x = b.concat(outputs, 2)
    final: list[Expr] = [b.op("stack", b.tuple(list(column)), axis=0) for column in zip(*last)]
    return [x, None, final]


RULES = (Rule("rnn", rnn),)
