"""Recurrent layers, and sequences of different lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr

#: The gates of each kind of layer.
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
#: The weights and biases of one direction of a layer: of the input's product, and of the state's.
_Weights = tuple[Expr, Expr, Expr, Expr]


class Parts(list[Expr]):
    """The weights and biases of a recurrent layer as vectors, in the order in which they make one."""


def rnn(n: Node, x: Expr, params: Any, state: Expr, *more: Expr) -> Any:
    """`RNN`: layers in one direction or both, over (steps, batch, features)."""
    b = n.b
    mode = n.choice("mode", "", _GATES)
    if n.has("projection_size") or n.has("lstm_state_clip_min") or n.has("lstm_state_clip_max"):
        raise Unsupported("its states are projected or clipped, which MXNet does on a GPU alone")
    ways, layers, hidden = 2 if n.bool("bidirectional") else 1, n.int("num_layers"), n.int("state_size")
    lengths, cell = None, None
    rest = list(more)
    if mode == "lstm":
        if not rest:
            raise Malformed("an LSTM needs its cell state")
        cell = rest.pop(0)
    if n.bool("use_sequence_length"):
        if not rest:
            raise Malformed("its lengths are missing, and use_sequence_length is True")
        lengths = b.cast(rest.pop(0), "int32")
    width = b.extent(x, 2, "the features of a recurrent layer")
    b.shape(x, 3)
    weights = _weights(b, params, _GATES[mode], hidden, width, layers, ways)
    firsts = [_states(b, s, layers * ways, x) for s in (state, cell) if s is not None]
    lasts: list[list[Expr]] = []
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            number = layer * ways + way
            direction, last = _direction(b, mode, x, [f[number] for f in firsts], weights[number], hidden, lengths, way == 1)
            outputs.append(direction)
            lasts.append(last)
        x = b.concat(outputs, 2)
    if not n.bool("state_outputs"):
        return [x]
    return [x, *[b.op("stack", b.tuple([last[i] for last in lasts]), axis=0) for i in range(len(firsts))]]


def _weights(b: Builder, params: Any, gates: int, hidden: int, width: int, layers: int, ways: int) -> list[_Weights]:
    """The weights of each direction of each layer. All weights stand before all biases."""
    if hidden < 1 or layers < 1 or layers > 1 << 12:
        raise Malformed(f"it has {layers} layers of {hidden} units")
    rows = gates * hidden
    shapes = [
        shape
        for layer in range(layers)
        for _ in range(ways)
        for shape in ((rows, width if layer == 0 else hidden * ways), (rows, hidden))
    ]
    count = len(shapes)
    shapes += [(rows,)] * count  # type: ignore[list-item]
    parts = _cut(b, params, [math.prod(shape) for shape in shapes])
    tensors = [b.reshape_exactly(part, shape) for part, shape in zip(parts, shapes)]
    return [(tensors[i], tensors[i + 1], tensors[count + i], tensors[count + i + 1]) for i in range(0, count, 2)]


def _cut(b: Builder, params: Any, sizes: Sequence[int]) -> list[Expr]:
    """Vectors of these sizes: those that were joined, or parts of one vector."""
    if isinstance(params, Parts):
        if [b.static_shape(p, "a weight") for p in params] == [(size,) for size in sizes]:
            return list(params)
        params = b.concat(params, 0)
    if b.static_shape(params, "the weights of a recurrent layer") != (sum(sizes),):
        raise Malformed(f"its weights have {math.prod(b.static_shape(params))} elements; the layer has {sum(sizes)}")
    vectors, at = [], 0
    for size in sizes:
        vectors.append(b.slice(params, [at], [at + size], [0]))
        at += size
    return vectors


def _states(b: Builder, state: Expr, count: int, x: Expr) -> list[Expr]:
    """The first state of each direction, (batch, units). A state of one row is that of each element of the batch."""
    b.shape(state, 3)
    if b.shape(state)[0] != count:
        raise Malformed(f"its state has {b.shape(state)[0]} layers; it must have {count}")
    batch = b.shape(x)[1]
    rows = [b.squeeze(b.slice(state, [i], [i + 1], [0]), [0]) for i in range(count)]
    if b.shape(state)[1] == 1 and batch != 1:
        if isinstance(batch, int):
            return [b.op("broadcast_to", row, shape=[batch, b.extent(row, 1)]) for row in rows]
        like = b.op("sum", b.op("take", x, b.const(0, "int32"), axis=0), axis=[1], keepdims=True)
        return [b.op("add", row, b.op("zeros_like", like)) for row in rows]
    return rows


def _direction(
    b: Builder, mode: str, x: Expr, states: list[Expr], weights: _Weights, hidden: int, lengths: Expr | None, reverse: bool
) -> tuple[Expr, list[Expr]]:
    """One direction of one layer: all outputs (steps, batch, units), and the last states."""
    w, r, bias, own = weights
    product = b.op("nn.dense", x, w, units=b.extent(w, 0))

    def recurrent(h: Expr, rows: Expr) -> Expr:
        return b.unfolded("nn.dense", h, rows, units=b.extent(rows, 0))

    def simple(x: Expr, before: list[Expr]) -> list[Expr]:
        return [b.op("tanh" if mode == "rnn_tanh" else "nn.relu", b.op("add", x, recurrent(before[0], r)))]

    def lstm(x: Expr, before: list[Expr]) -> list[Expr]:
        h, c = before
        i, f, g, o = b.fields(b.op("split", b.op("add", x, recurrent(h, r)), indices_or_sections=4, axis=-1))
        kept, new = b.op("multiply", b.op("sigmoid", f), c), b.op("multiply", b.op("sigmoid", i), b.op("tanh", g))
        c = b.op("add", kept, new)
        return [b.op("multiply", b.op("sigmoid", o), b.op("tanh", c)), c]

    def gru(x: Expr, before: list[Expr]) -> list[Expr]:
        """The gates reset, update, new; the reset holds for the state's own bias, too."""
        h = before[0]
        gates = b.op("add", b.slice(x, [0], [2 * hidden], [1]), recurrent(h, first))
        reset, update = b.fields(b.op("split", b.op("sigmoid", gates), indices_or_sections=2, axis=-1))
        part = b.op("multiply", reset, b.op("add", recurrent(h, last), inner))
        new = b.op("tanh", b.op("add", b.slice(x, [2 * hidden], [3 * hidden], [1]), part))
        return [b.op("add", new, b.op("multiply", update, b.op("subtract", h, new)))]

    step: Callable[[Expr, list[Expr]], list[Expr]] = {"lstm": lstm, "gru": gru}.get(mode, simple)
    if mode == "gru":
        first, last = b.slice(r, [0], [2 * hidden], [0]), b.slice(r, [2 * hidden], [3 * hidden], [0])
        inner = b.slice(own, [2 * hidden], [3 * hidden], [0])
        outer = b.concat([b.slice(own, [0], [2 * hidden], [0]), b.op("zeros_like", inner)], 0)
    else:
        outer = own
    product = b.op("add", product, b.op("add", bias, outer))
    return recurrence(b, product, states, step, lengths, reverse)


# ---- lengths


def _lengths(n: Node, lengths: Expr | None) -> Expr | None:
    if not n.bool("use_sequence_length"):
        return None
    if lengths is None:
        raise Malformed("its lengths are missing, and use_sequence_length is True")
    return n.b.cast(lengths, "int32")


def sequence_mask(n: Node, x: Expr, lengths: Expr | None = None) -> Any:
    b, lengths = n.b, _lengths(n, lengths)
    axis = n.axis("axis", 2, 0)
    if lengths is None:
        return x
    return b.op("sequence_mask", x, lengths, mask_value=n.float("value", 0.0), axis=axis)


def sequence_reverse(n: Node, x: Expr, lengths: Expr | None = None) -> Any:
    b, lengths = n.b, _lengths(n, lengths)
    if lengths is None:
        return b.op("reverse", x, axis=0)
    return b.op("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)


def sequence_last(n: Node, x: Expr, lengths: Expr | None = None) -> Any:
    """The last step of each sequence."""
    b, lengths = n.b, _lengths(n, lengths)
    axis = n.axis("axis", 2, 0)
    if lengths is None:
        return b.squeeze(b.slice(x, [-1], [b.extent(x, axis)], [axis]), [axis])
    last = b.op("subtract", lengths, 1)
    if axis == 1:
        x = b.transpose(x, [1, 0, *range(2, b.rank(x))])
    rows = b.const(b.arrays.arange(b.extent(x, 1, "the batch"), dtype="int32"))
    return b.op("gather_nd", x, b.op("stack", b.tuple([last, rows]), axis=0))


def fifo_buffer(n: Node, x: Expr, kept: Expr) -> Any:
    """The elements of a stream that are kept, without the oldest ones, and then the new ones."""
    return n.b.op("nn.fifo_buffer", x, kept, axis=n.axis("axis", n.b.rank(x), 0))


RULES = (
    Rule("fifo_buffer", fifo_buffer),
    Rule("_rnn_param_concat", lambda n, *xs: [Parts(xs)]),
    Rule("RNN", rnn),
    Rule("SequenceMask", sequence_mask),
    Rule("SequenceReverse", sequence_reverse),
    Rule("SequenceLast", sequence_last),
)
