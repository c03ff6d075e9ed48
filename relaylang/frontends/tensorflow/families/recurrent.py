"""Recurrent layers: blocks of LSTM and GRU, one step or a whole sequence.

Source: TensorFlow, core/ops/rnn_ops.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.common.nn import clip, matmul
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr


def _step(n: Node, sums: Expr, cell: Expr, peepholes: Sequence[Expr], forget: float, limit: float, second: bool) -> list[Expr]:
    """The values of an LSTM's step from the sums of its gates, in the order i cs f o ci co h.

    `peepholes` are the weights of the input, forget and output gates, or none. The sums' order is input, cell, forget and
    output; `second` is the form in which the forget gate comes before the cell.
    """
    b = n.b
    parts = b.fields(b.op("split", sums, indices_or_sections=4, axis=1))
    i, c, f, o = parts if not second else [parts[0], parts[2], parts[1], parts[3]]
    f = b.op("add", f, forget) if forget else f
    if peepholes:
        i = b.op("add", i, b.op("multiply", cell, peepholes[0]))
        f = b.op("add", f, b.op("multiply", cell, peepholes[1]))
    i, f, c = b.op("sigmoid", i), b.op("sigmoid", f), b.op("tanh", c)
    new = b.op("add", b.op("multiply", c, i), b.op("multiply", cell, f))
    new = clip(b, new, -limit, limit) if limit > 0 else new
    if peepholes:
        o = b.op("add", o, b.op("multiply", new, peepholes[2]))
    o, out = b.op("sigmoid", o), b.op("tanh", new)
    return [i, new, f, o, c, out, b.op("multiply", out, o)]


def _weights(n: Node, w: Expr, bias: Expr, depth: int, units: int, gates: int = 4) -> None:
    if tuple(n.b.shape(w)) != (depth + units, gates * units) or tuple(n.b.shape(bias)) != (gates * units,):
        shapes = tuple(n.b.shape(w)), tuple(n.b.shape(bias))
        raise Malformed(f"its weights and bias have the shapes {shapes[0]} and {shapes[1]}, for {units} units and {depth} inputs")


def lstm_cell(n: Node, x: Expr, cell: Expr, hidden: Expr, w: Expr, wci: Expr, wcf: Expr, wco: Expr, bias: Expr) -> Any:
    b = n.b
    units = b.extent(b.of_rank(cell, 2), 1, "the number of units")
    _weights(n, w, bias, b.extent(b.of_rank(x, 2), 1), units)
    sums = b.op("add", matmul(b, b.concat([x, hidden], 1), w), bias)
    peepholes = [wci, wcf, wco] if n.bool("use_peephole") else []
    return _step(n, sums, cell, peepholes, n.float("forget_bias", 1.0), n.float("cell_clip", 3.0), second=False)


def lstm(n: Node, most: Expr, x: Expr, cell: Expr, hidden: Expr, w: Expr, wci: Expr, wcf: Expr, wco: Expr, bias: Expr) -> Any:
    """A sequence (steps, batch, depth). Its results are those of all steps; steps behind the given number are 0."""
    b, second = n.b, n.op.endswith("V2")
    units = b.extent(b.of_rank(cell, 2), 1, "the number of units")
    depth = b.extent(b.of_rank(x, 3), 2, "the depth")
    _weights(n, w, bias, depth, units)
    peepholes = [wci, wcf, wco] if n.bool("use_peephole") else []
    forget = 0.0 if second else n.float("forget_bias", 1.0)
    limit = n.float("cell_clip", 0.0 if second else 3.0)
    steps = b.extent(x, 0, "the number of steps")
    count = n.ints_of(most, "the number of steps")[0]
    count = min(max(count, 0), steps)
    shape = [steps, *b.static_shape(cell, "the state")]
    if not count:
        return [b.const(b.arrays.zeros(shape), b.dtype(x))] * 7
    upper, lower = b.slice(w, [0], [depth], [0]), b.slice(w, [depth], [depth + units], [0])
    rows = b.reshape(b.slice(x, [0], [count], [0]), [-1, depth])
    sums = b.reshape(b.op("add", matmul(b, rows, upper), bias), [count, -1, 4 * units])

    def step(now: Expr, before: list[Expr]) -> list[Expr]:
        products = b.op("add", now, matmul(b, before[2], lower))
        cell = _step(n, products, before[1], peepholes, forget, limit, second)
        return [b.concat(cell, 1), cell[1], cell[6]]

    start = b.concat([cell] * 7, 1)
    outputs, _ = recurrence(b, sums, [start, cell, hidden], step)
    if count < steps:
        zeros = b.op("nn.pad", outputs, b.const(0.0, b.dtype(x)), pad_width=[[0, steps - count], [0, 0], [0, 0]])
        outputs = zeros
    return b.fields(b.op("split", outputs, indices_or_sections=7, axis=2))


def gru_cell(n: Node, x: Expr, hidden: Expr, w: Expr, wc: Expr, bias: Expr, bias_c: Expr) -> Any:
    """The results: the gates r and u, the candidate, and the state."""
    b = n.b
    units, depth = b.extent(b.of_rank(hidden, 2), 1, "the number of units"), b.extent(b.of_rank(x, 2), 1)
    _weights(n, w, bias, depth, units, 2)
    _weights(n, wc, bias_c, depth, units, 1)
    gates = b.op("sigmoid", b.op("add", matmul(b, b.concat([x, hidden], 1), w), bias))
    r, u = b.fields(b.op("split", gates, indices_or_sections=2, axis=1))
    joined = b.concat([x, b.op("multiply", hidden, r)], 1)
    c = b.op("tanh", b.op("add", matmul(b, joined, wc), bias_c))
    rest = b.op("multiply", b.op("subtract", b.const(1.0, b.dtype(u)), u), c)
    return [r, u, c, b.op("add", b.op("multiply", u, hidden), rest)]


RULES = (
    Rule("BlockLSTM", lstm),
    Rule("BlockLSTMV2", lstm),
    Rule("GRUBlockCell", gru_cell),
    Rule("LSTMBlockCell", lstm_cell),
)
