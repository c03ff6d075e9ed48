"""Recurrent layers. Their states are variables, or operands of the older forms.

Source: TensorFlow Lite, kernels/lstm_eval.cc, and kernels/internal/kernel_utils.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import clip, normalise
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.tflite.hybrid import Matrix, matrix, product
from relaylang.frontends.tflite.integer_recurrent import integer_lstm, integer_svdf
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr

#: Added to variances before their roots.
_LEAST = 1e-8


@dataclass(frozen=True)
class Places:
    """The operands of an LSTM: the first of each group of four gates (input, forget, cell, output), and of the others."""

    inputs: int
    recurrent: int
    peepholes: int
    biases: int
    projection: int
    state: int
    cell: int
    norms: int = 1 << 30
    aux: int = 1 << 30


_ONE_WAY = Places(1, 5, 9, 12, 16, 18, 19, norms=20)
_FORWARD = Places(1, 5, 9, 12, 16, 35, 36, aux=40)
_BACKWARD = Places(18, 22, 26, 29, 33, 37, 38, aux=44)


def real_only(convert: Callable[[Node], Any]) -> Callable[[Node], Any]:
    def checked(n: Node) -> Any:
        if _is_stored(n):
            raise Unsupported("its operand and its result are quantised")
        return convert(n)

    return checked


def _rows(n: Node, x: Expr) -> Expr:
    """(steps, batch, depth) as rows."""
    return n.b.reshape(x, [-1, n.b.extent(x, 2, "the depth of the operand")])


def _steps(n: Node, index: int) -> Expr:
    """An operand with its steps first."""
    x = n.x(index)
    return x if n.options.get("time_major") else n.b.transpose(x, (1, 0, 2))


def _batches(n: Node, outputs: Expr) -> Expr:
    return outputs if n.options.get("time_major") else n.b.transpose(outputs, (1, 0, 2))


def _inputs(n: Node, x: Expr, by: Matrix) -> Expr:
    """The products of all steps with weights: (steps, batch, units)."""
    b = n.b
    products = product(n, _rows(n, x), by)
    return b.reshape(products, [-1, b.extent(x, 1, "the batch"), b.extent(products, 1)])


def _is_stored(n: Node) -> bool:
    return n.q(0) is not None or n.q_out() is not None


def _lstm(n: Node, x: Expr, at: Places, aux: Expr | None = None, reverse: bool = False) -> Expr:
    """The outputs of an LSTM for (steps, batch, depth); its states are assigned."""
    if at is _ONE_WAY and _is_stored(n):
        return integer_lstm(n, x)
    b, o = n.b, n.options
    gates = range(0 if n.has(at.inputs) else 1, 4)
    if b.rank(n.x(at.recurrent + 1)) != 2:
        raise Unsupported("its recurrent weights are diagonal")
    normal = n.has(at.norms + 1)
    xs = _inputs(n, x, matrix(n, [at.inputs + g for g in gates]))
    if aux is not None:
        xs = b.op("add", xs, _inputs(n, aux, matrix(n, [at.aux + g for g in gates])))
    if not normal:
        xs = b.op("add", xs, b.concat([n.real(at.biases + g) for g in gates], 0))
    recurrent = matrix(n, [at.recurrent + g for g in gates])
    project = matrix(n, [at.projection]) if n.has(at.projection) else None

    def gate(which: int, sums: Expr, cell: Expr | None) -> Expr:
        """The sums of a gate with peepholes and normalisation."""
        peephole = at.peepholes + (0, 1, -1, 2)[which]
        if cell is not None and n.has(peephole):
            sums = b.op("add", sums, b.unfolded("multiply", n.real(peephole), cell))
        if normal:
            sums = b.op("multiply", normalise(b, sums, [1], _LEAST), n.real(at.norms + which))
            sums = b.op("add", sums, n.real(at.biases + which))
        return sums

    def step(now: Expr, before: list[Expr]) -> list[Expr]:
        hidden, cell = before
        products = b.op("add", now, product(n, hidden, recurrent))
        parts = dict(zip(gates, b.fields(b.op("split", products, indices_or_sections=len(gates), axis=1))))
        forget = b.op("sigmoid", gate(1, parts[1], cell))
        take = b.op("sigmoid", gate(0, parts[0], cell)) if 0 in parts else b.op("subtract", b.const(1.0, "float32"), forget)
        new = b.op("multiply", take, n.activated(gate(2, parts[2], None)))
        new = _clipped(n, b.op("add", b.op("multiply", forget, cell), new), o["cell_clip"])
        output = b.op("multiply", b.op("sigmoid", gate(3, parts[3], new)), n.activated(new))
        if project is not None:
            output = product(n, output, project)
            if n.has(at.projection + 1):
                output = b.op("add", output, n.real(at.projection + 1))
            output = _clipped(n, output, o["proj_clip"])
        return [output, new]

    outputs, last = recurrence(b, xs, [n.x(at.state), n.x(at.cell)], step, reverse=reverse)
    n.assign(at.state, last[0])
    n.assign(at.cell, last[1])
    return outputs


def _clipped(n: Node, x: Expr, bound: float) -> Expr:
    return clip(n.b, x, -bound, bound) if bound > 0 else x


def lstm(n: Node) -> Any:
    """One step. The basic form has one matrix, and its states are operands and results."""
    b = n.b
    if n.options.get("kernel_type"):
        return real_only(_basic_lstm)(n)
    if len(n.outs) != 1:
        raise Unsupported("it is the form of early files, with states as results")
    return b.squeeze(_lstm(n, b.unsqueeze(n.x(0), [0]), _ONE_WAY), [0])


def _basic_lstm(n: Node) -> Any:
    """Operands: data, output before, weights, bias, cell before. The gates' order: input, cell, forget, output."""
    b = n.b
    rows = b.concat([n.x(0), n.x(1)], 1)
    sums = b.op("add", product(n, rows, matrix(n, [2])), n.x(3))
    take, new, forget, out = b.fields(b.op("split", sums, indices_or_sections=4, axis=1))
    kept = b.op("multiply", b.op("sigmoid", forget), n.x(4))
    cell = b.op("add", b.op("multiply", b.op("sigmoid", take), b.op("tanh", new)), kept)
    return [b.op("multiply", b.op("sigmoid", out), b.op("tanh", cell)), cell, rows, sums]


def both_lstm(n: Node) -> Any:
    """A second operand without weights of its own is the data of the backward layer."""
    x = _steps(n, 0)
    aux = _steps(n, 39) if n.has(39) else None
    own = aux is not None and n.has(_FORWARD.aux + 1)
    forward = _lstm(n, x, _FORWARD, aux if own else None)
    backward = _lstm(n, x if own or aux is None else aux, _BACKWARD, aux if own else None, reverse=True)
    return _joined(n, forward, backward)


def _joined(n: Node, forward: Expr, backward: Expr) -> list[Expr]:
    """The results of both directions, behind each other on the last axis by the option."""
    if n.options.get("merge_outputs"):
        return [n.b.concat([_batches(n, forward), _batches(n, backward)], 2)]
    return [_batches(n, forward), _batches(n, backward)]


def _rnn(n: Node, x: Expr, at: Sequence[int], aux: tuple[Expr, int] | None = None, reverse: bool = False) -> Expr:
    """The outputs of a plain layer; `at` are its weights, recurrent weights, bias and state."""
    b = n.b
    weights, recurrent, bias, state = at
    xs = b.op("add", _inputs(n, x, matrix(n, [weights])), n.real(bias))
    if aux is not None:
        xs = b.op("add", xs, _inputs(n, aux[0], matrix(n, [aux[1]])))
    by = matrix(n, [recurrent])

    def step(now: Expr, before: list[Expr]) -> list[Expr]:
        return [n.activated(b.op("add", now, product(n, before[0], by)))]

    outputs, last = recurrence(b, xs, [n.x(state)], step, reverse=reverse)
    n.assign(state, last[0])
    return outputs


def both_rnn(n: Node) -> Any:
    """As `both_lstm`: a second operand without weights is the data of the backward layer."""
    x = _steps(n, 0)
    aux = _steps(n, 9) if n.has(9) else None
    own = aux is not None and n.has(10) and n.has(11)
    forward = _rnn(n, x, (1, 2, 3, 4), (aux, 10) if own and aux is not None else None)
    other = x if own or aux is None else aux
    backward = _rnn(n, other, (5, 6, 7, 8), (aux, 11) if own and aux is not None else None, reverse=True)
    return _joined(n, forward, backward)


def svdf(n: Node) -> Any:
    """A filter over features, then one over time: operands are data, both weights, a bias, and the memory."""
    b, rank = n.b, n.options["rank"]
    filters, depth = b.static_shape(n.x(2), "the weights")
    if rank < 1 or filters % rank:
        raise Malformed(f"the option rank is {rank}; it must divide the {filters} filters")
    if _is_stored(n):
        return integer_svdf(n, filters, depth, rank)
    batch = b.extent(n.x(0), 0, "the batch")
    memory = b.reshape(n.x(4), [batch, filters, depth])
    # The last place of the memory is for this step; behind the step all places move on by one.
    now = b.unsqueeze(product(n, n.x(0), matrix(n, [1])), [2])
    window = b.concat([b.slice(memory, [0], [depth - 1], [2]), now], 2)
    sums = b.op("sum", b.op("multiply", window, n.real(2)), axis=(2,))
    outputs = b.op("sum", b.reshape(sums, [batch, filters // rank, rank]), axis=(2,))
    if n.has(3):
        outputs = b.op("add", outputs, n.real(3))
    later = b.concat([b.slice(window, [1], [depth], [2]), b.op("zeros_like", now)], 2)
    n.assign(4, b.reshape(later, b.static_shape(n.x(4))))
    return n.activated(outputs)


_LAYERS: dict[str, Callable[[Node], Any]] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": real_only(both_lstm),
    "BIDIRECTIONAL_SEQUENCE_RNN": real_only(both_rnn),
    "LSTM": lstm,
    "RNN": real_only(lambda n: n.b.squeeze(_rnn(n, n.b.unsqueeze(n.x(0), [0]), (1, 2, 3, 4)), [0])),
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda n: _batches(n, _lstm(n, _steps(n, 0), _ONE_WAY)),
    "UNIDIRECTIONAL_SEQUENCE_RNN": real_only(lambda n: _batches(n, _rnn(n, _steps(n, 0), (1, 2, 3, 4)))),
}
RULES = tuple([Rule(name, convert) for name, convert in _LAYERS.items()])
