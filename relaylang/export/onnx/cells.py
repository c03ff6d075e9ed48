"""One step of an LSTM, GRU or RNN in a program, found by what it computes.

Each gate is an activation of a sum: of a product of the step's data, of a product of the state, and of biases. Sums are taken
apart into terms, so that the order of gates and operands does not matter, nor whether gates are split before or after an
activation. The equations are those of ONNX's LSTM, GRU and RNN (https://onnx.ai/onnx/operators/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from relaylang.export.attributes import cuts, slices
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleGetItem
from relaylang.ir.typed import typed_constant, typed_var
from relaylang.ops.record import Op

#: The activations of new values, and those of gates, by ONNX's names.
_NEW, _GATE = ("Tanh", "Relu", "LeakyRelu"), ("Sigmoid", "HardSigmoid")
#: The names of activations that are one operator.
_NAMES = {"tanh": "Tanh", "nn.relu": "Relu", "nn.leaky_relu": "LeakyRelu", "sigmoid": "Sigmoid"}
#: The sum of a gate has no more terms.
_MOST = 8


class Part(NamedTuple):
    """The elements `low` to `high` of an expression's last axis."""

    expr: Expr
    low: int
    high: int


class Activation(NamedTuple):
    """An activation by ONNX's name, with the numbers that it takes."""

    name: str
    alpha: float | None = None
    beta: float | None = None


class At(NamedTuple):
    """One step of a sequence (steps, batch, ...): its number, or the variable of a loop that counts steps."""

    sequence: Expr
    turn: int | Expr
    steps: int | None


class Gate(NamedTuple):
    """The sum of a gate: `weights` and `recurrent` are rows of the weights of `data` (steps, batch, inputs) and of the state.

    The steps of `data` come in the opposite order where there is `reverse`: all of them (True), or those within lengths.
    `late` are the biases that GRU's reset gate scales. `peephole` are the weights of a cell state, and that state.
    Where one tensor has the weights of the data and of the state, `columns` are the first and the last of each.
    """

    at: At
    data: Expr
    reverse: Expr | bool
    weights: Part
    state: Expr
    recurrent: Part
    biases: tuple[Part, ...]
    late: tuple[Part, ...] = ()
    peephole: tuple[Part, Expr] | None = None
    columns: tuple[tuple[int, int], tuple[int, int]] | None = None


class Step(NamedTuple):
    """A step: its states, those before it, and its gates in ONNX's order."""

    kind: str
    states: tuple[Expr, ...]
    before: tuple[Expr, ...]
    gates: tuple[Gate, ...]
    activations: tuple[Activation, ...]
    clip: float
    attrs: tuple[tuple[str, int], ...] = ()

    @property
    def units(self) -> int:
        return int(extents(self.states[0])[-1])

    @property
    def dtype(self) -> str:
        assert isinstance(self.states[0].checked_type, TensorType)
        return self.states[0].checked_type.dtype


class _No(Exception):
    """An expression is no part of a step."""


def called(expr: Expr, *names: str) -> tuple[Expr, ...]:
    """The operands of a call of one of these operators; () for other expressions."""
    return expr.args if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names else ()


def extents(expr: Expr) -> tuple[Any, ...]:
    """A tensor's shape; () for a value of another type."""
    return tuple(expr.checked_type.shape) if isinstance(expr.checked_type, TensorType) else ()


def part_of(expr: Expr) -> Part:
    """All elements of the last axis, as a part of the tensor that slices and splits took them from."""
    shape = extents(expr)
    if not shape or not isinstance(shape[-1], int):
        raise _No
    return _narrowed(Part(expr, 0, shape[-1]))


def _narrowed(part: Part) -> Part:
    while True:
        expr, low, high = part
        if called(expr, "strided_slice"):
            (data,) = expr.args  # type: ignore[attr-defined]
            cut = slices(expr, len(extents(data)))  # type: ignore[arg-type]
            if len(cut) != 1 or cut[0][0] != len(extents(data)) - 1 or cut[0][3] != 1:
                return part
            begin = cut[0][1] or 0
        elif isinstance(expr, TupleGetItem) and called(expr.tuple_value, "split"):
            (data,) = expr.tuple_value.args  # type: ignore[attr-defined]
            rank, extent = len(extents(data)), extents(data)[-1]
            if expr.tuple_value.attrs.axis % rank != rank - 1 or not isinstance(extent, int):  # type: ignore[attr-defined]
                return part
            begin = cuts(expr.tuple_value, extent)[expr.index][0]  # type: ignore[arg-type]
        else:
            return part
        if begin < 0:
            raise _No
        part = Part(data, low + begin, high + begin)


def _terms(part: Part) -> list[Part]:
    """The terms of a sum."""
    terms: list[Part] = []
    stack = [_narrowed(part)]
    while stack:
        expr, low, high = stack.pop()
        operands = called(expr, "add", "nn.bias_add")
        rank, width = len(extents(expr)), extents(expr)[-1:]
        if len(terms) + len(stack) > _MOST:
            raise _No
        along = called(expr, "add") or (operands and expr.attrs.axis % rank == rank - 1)  # type: ignore[attr-defined]
        if along and all(extents(x)[-1:] == width or _number(x) is not None for x in operands):
            stack += [_narrowed(Part(_spread(x, width), low, high)) for x in reversed(operands)]
        else:
            terms.append(Part(expr, low, high))
    return terms


def _number(expr: Expr) -> float | None:
    """The value of a constant of one element; None for others."""
    return float(expr.data.reshape(-1)[0]) if isinstance(expr, Constant) and expr.data.size == 1 else None


def _spread(expr: Expr, width: tuple[Any, ...]) -> Expr:
    """A constant of one element as a vector; other tensors as they are."""
    if extents(expr)[-1:] == width or not isinstance(expr, Constant):
        return expr
    return typed_constant(np.full(width, expr.data.reshape(-1)[0], expr.data.dtype))


def at_step(expr: Expr) -> At | None:
    """The sequence that an expression is a step of: a squeezed part of a split along the first axis, or a `take`."""
    if called(expr, "squeeze"):
        (row,) = expr.args  # type: ignore[attr-defined]
        if len(extents(row)) != 3 or [int(a) % 3 for a in expr.attrs.axis or ()] != [0]:  # type: ignore[attr-defined]
            return None
        if isinstance(row, TupleGetItem) and called(row.tuple_value, "split"):
            split: Any = row.tuple_value
            (data,) = split.args
            if split.attrs.axis % 3 == 0 and len(split.checked_type.fields) == extents(data)[0]:
                return At(data, row.index, extents(data)[0])
        return At(row, 0, 1)
    operands = called(expr, "take")
    if operands and expr.attrs.axis == 0 and len(extents(operands[0])) == 3 and not extents(operands[1]):  # type: ignore[attr-defined]
        return At(operands[0], operands[1], None)
    return None


def in_order(sequence: Expr) -> tuple[Expr, Expr | bool]:
    """A sequence before its steps were reversed, and how they were."""
    operands = called(sequence, "reverse", "reverse_sequence")
    attrs: Any = sequence.attrs if operands else None  # type: ignore[attr-defined]
    if len(operands) == 1 and attrs.axis % 3 == 0:
        return operands[0], True
    if len(operands) == 2 and attrs.seq_axis % 3 == 0 and attrs.batch_axis % 3 == 1:
        return operands[0], operands[1]
    return sequence, False


def _product(expr: Expr) -> tuple[Expr, Expr] | None:
    """A sequence and the weights that multiply it; its steps may be rows meanwhile."""
    if len(called(expr, "nn.dense")) == 2:
        return expr.args if len(extents(expr)) == 3 else None  # type: ignore[attr-defined]
    (rows,) = called(expr, "reshape") or (None,)
    product = called(rows, "nn.dense") if rows is not None else ()
    (data,) = (product and called(product[0], "reshape")) or (None,)
    if data is None or extents(data)[:2] != extents(expr)[:2] or extents(data)[2:] != extents(product[0])[1:]:
        return None
    return data, product[1]


def _pairs(expr: Expr, name: str) -> Iterator[tuple[Expr, Expr]]:
    """The operands of a commutative operator in both orders."""
    operands = called(expr, name)
    if operands:
        yield operands[0], operands[1]
        yield operands[1], operands[0]


def _function(expr: Expr) -> tuple[Activation, Part]:
    """An activation and its operand. Raises `_No` for other expressions."""
    part = part_of(expr)
    call: Any = part.expr
    if called(call, "clip") and (call.attrs.a_min, call.attrs.a_max) == (0, 1):
        for line, beta in _pairs(call.args[0], "add"):
            for x, alpha in _pairs(line, "multiply"):
                if (a := _number(alpha)) is not None and (b := _number(beta)) is not None:
                    return Activation("HardSigmoid", a, b), _narrowed(part._replace(expr=x))
    if not called(call, *_NAMES):
        raise _No
    name = _NAMES[call.op.name]
    return Activation(name, float(call.attrs.alpha) if name == "LeakyRelu" else None), _narrowed(part._replace(expr=call.args[0]))


def _is(expr: Expr, names: tuple[str, ...]) -> bool:
    try:
        return _function(expr)[0].name in names
    except _No:
        return False


def _activated(expr: Expr, *names: str) -> tuple[Activation, list[Part], float]:
    """An activation, the terms of its operand, and the bound that this is held to (0: none)."""
    activation, part = _function(expr)
    bound = 0.0
    if activation.name not in names:
        raise _No
    if called(part.expr, "clip"):
        limits: Any = part.expr.attrs  # type: ignore[attr-defined]
        if limits.a_min != -limits.a_max:
            raise _No
        bound = float(limits.a_max)
        part = Part(part.expr.args[0], part.low, part.high)  # type: ignore[attr-defined]
    return activation, _terms(part), bound


def _vector(expr: Expr) -> bool:
    return len(extents(expr)) == 1


def _joined(rows: Expr) -> tuple[At, Expr, tuple[tuple[int, int], tuple[int, int]]] | None:
    """The data and the state that are one row, and the columns of the weights of each; None for other rows."""
    (both,) = called(rows, "concatenate") or (None,)
    if not isinstance(both, Tuple) or not len(both.fields) == len(extents(rows)) == 2 or rows.attrs.axis not in (1, -1):  # type: ignore[attr-defined]
        return None
    width = extents(both.fields[0])[1]
    spans = [(0, width), (width, extents(rows)[1])]
    for number in (0, 1):
        if (at := at_step(both.fields[number])) is not None:
            return at, both.fields[1 - number], (spans[number], spans[1 - number])
    return None


def _gate(
    sum_: Sequence[Part], state: Expr | None = None, product: tuple[Expr, Part] | None = None, late: Sequence[Part] = ()
) -> Gate:
    """The gate of a sum's terms. `state` is the state before the step, and `product` its product, where they are known."""
    at: At | None = None
    weights: Part | None = None
    biases, dense, peephole = [], [], None
    for term in sum_:
        scaled = called(term.expr, "multiply")
        if called(term.expr, "nn.dense"):
            dense.append(term)
        elif _vector(term.expr):
            biases.append(term)
        elif at is None and (at := at_step(term.expr)) is not None:
            weights = term
        elif scaled and peephole is None and sorted(map(_vector, scaled)) == [False, True]:
            vector, cell = scaled if _vector(scaled[0]) else scaled[::-1]
            peephole = part_of(vector), cell
        else:
            raise _No
    columns = None
    for expr, low, high in dense:
        data, rows = expr.args  # type: ignore[attr-defined]
        if joined := _joined(data):
            at, other, columns = joined
            if len(dense) > 1 or state not in (None, other) or product is not None:
                raise _No
            weights = Part(rows, low, high)
            product = other, weights
            continue
        if at is None and data is not state and (at := at_step(data)) is not None:
            weights = Part(rows, low, high)
        elif product is None and state in (None, data):
            product = data, Part(rows, low, high)
        else:
            raise _No
    if at is None or weights is None or product is None:
        raise _No
    data, reverse = in_order(at.sequence)
    if columns is None and weights in sum_ and not called(weights.expr, "nn.dense"):  # the sequence was multiplied at once
        terms = _terms(Part(data, weights.low, weights.high))
        products = [(p, term) for term in terms if (p := _product(term.expr)) is not None]
        biases += [term for term in terms if _vector(term.expr)]
        if len(products) != 1 or sum(_vector(t.expr) for t in terms) + 1 != len(terms):
            raise _No
        (data, rows), (_, low, high) = products[0]
        weights = Part(rows, low, high)
    return Gate(at, data, reverse, weights, *product, tuple(biases), tuple(late), peephole, columns)


class Mask(NamedTuple):
    """`where` of the elements of a batch whose sequences have a step.

    It has the number of steps before, the lengths or the elements that are known to have the step, and the states.
    """

    turn: Expr | None
    lengths: Expr
    new: Expr
    old: Expr


def masked(expr: Expr) -> Mask | None:
    """A state, or an output, that is another one where a sequence has ended; None for other expressions."""
    operands = called(expr, "where")
    if not operands:
        return None
    condition, new, old = operands
    if isinstance(condition, Constant) and condition.data.dtype == bool and condition.data.shape[1:] == (1,):
        return Mask(None, condition, new, old)
    (alive,) = called(condition, "expand_dims") or (None,)
    compared = called(alive, "less") if alive is not None else ()
    if not compared or condition.attrs.axis not in (1, -1) or len(extents(condition)) != 2:  # type: ignore[attr-defined]
        return None
    (turn,) = called(compared[0], "cast") or (compared[0],)
    return Mask(turn, compared[1], new, old)


# ---- the kinds


def step_of(expr: Expr) -> Step | None:
    """The step whose first state after it is this expression; None for other expressions."""
    for find in _FINDERS.get(expr.op.name, ()) if isinstance(expr, Call) and isinstance(expr.op, Op) else ():
        try:
            return find(expr)
        except _No:
            continue
    return None


def _rnn(expr: Expr) -> Step:
    activation, sum_, clip = _activated(expr, *_NEW, *_GATE)
    gate = _gate(sum_)
    if gate.peephole or (gate.recurrent.low, gate.recurrent.high) != (0, extents(gate.recurrent.expr)[0]):
        raise _No  # the sum of one gate among others is none of an RNN
    return Step("RNN", (expr,), (gate.state,), (gate,), (activation,), clip)


def _gru(expr: Expr) -> Step:
    """`new + update * (state - new)`, or `(1 - update) * new + update * state`."""
    for new, kept in _pairs(expr, "add"):
        for update, apart in _pairs(kept, "multiply"):
            operands = called(apart, "subtract")
            if operands and operands[1] is new:
                return _gru_of(expr, new, update, operands[0])
            for rest, value in _pairs(new, "multiply"):
                if _coupled(rest, update):
                    return _gru_of(expr, value, update, apart)
    raise _No


def _gru_of(expr: Expr, new: Expr, update: Expr, state: Expr) -> Step:
    activation, sum_, clip = _activated(new, *_NEW)
    gate, update_sum, update_clip = _activated(update, *_GATE)
    for term in sum_:
        reset_parts = _reset(term, state)
        if reset_parts is not None:
            reset, product, late, attrs = reset_parts
            other, reset_sum, reset_clip = _activated(reset, *_GATE)
            if not clip == update_clip == reset_clip or other != gate:
                raise _No
            rest = [t for t in sum_ if t is not term]
            gates = _gate(update_sum, state), _gate(reset_sum, state), _gate(rest, state, product, late)
            return Step("GRU", (expr,), (state,), gates, (gate, activation), clip, attrs)
    raise _No


def _reset(term: Part, state: Expr) -> tuple[Expr, tuple[Expr, Part], list[Part], tuple[tuple[str, int], ...]] | None:
    """The reset gate of a term, and the product of the state: that of the scaled state, or a scaled product with biases."""
    dense = called(term.expr, "nn.dense")
    if dense:
        for reset, scaled in _pairs(dense[0], "multiply"):
            if scaled is state:
                return reset, (state, Part(dense[1], term.low, term.high)), [], ()
    if (term.low, term.high) == (0, extents(term.expr)[-1]):
        for reset, scaled in _pairs(term.expr, "multiply"):
            if _is(reset, _GATE):
                inner = _terms(part_of(scaled))
                products = [t for t in inner if called(t.expr, "nn.dense") and t.expr.args[0] is state]  # type: ignore[attr-defined]
                late = [t for t in inner if _vector(t.expr)]
                if len(products) == 1 and len(late) + 1 == len(inner):
                    (call, low, high), attrs = products[0], (("linear_before_reset", 1),)
                    return reset, (state, Part(call.args[1], low, high)), late, attrs  # type: ignore[attr-defined]
    return None


def _lstm(expr: Expr) -> Step:
    """`output * activation(cell)`."""
    for out, shown in _pairs(expr, "multiply"):
        if _is(shown, _NEW) and _is(out, _GATE):
            activation, (cell, _, _) = _function(shown)
            for take, forget, new, state in _cells(cell):
                return _lstm_of(expr, cell, state, (take, out, forget, new), activation)
    raise _No


def _cells(cell: Expr) -> Iterator[tuple[Expr, Expr, Expr, Expr]]:
    """The input gate, the forget gate, the new value and the state of `forget * state + input * new`."""
    for left, right in _pairs(cell, "add"):
        for forget, state in _pairs(left, "multiply"):
            for take, new in _pairs(right, "multiply"):
                gates = [take] if _coupled(forget, take) else [take, forget]
                if _is(new, _NEW) and all(_is(g, _GATE) for g in gates):
                    yield take, forget, new, state


def last_cell(cell: Expr, before: Callable[[Expr], Step | None]) -> Step | None:
    """The step that makes a cell state, where nothing uses its output, so that the output gate is not there. `before` gives
    the step that makes a state; that gate is as in the step before."""
    try:
        for take, forget, new, state in _cells(cell):
            step = before(_gate(_activated(take, *_GATE)[1]).state)
            if step is None or step.kind != "LSTM":
                return None
            unused = typed_var("unused", step.states[0].checked_type)
            lstm = _lstm_of(unused, cell, state, (take, take, forget, new), step.activations[2])
            out = lstm.gates[0]._replace(
                weights=step.gates[1].weights,
                recurrent=step.gates[1].recurrent,
                biases=step.gates[1].biases,
                peephole=step.gates[1].peephole,
            )
            return lstm._replace(gates=(lstm.gates[0], out, *lstm.gates[2:]))
    except _No:
        pass
    return None


def _coupled(forget: Expr, take: Expr) -> bool:
    """Whether a forget gate is 1 less the input gate."""
    operands = called(forget, "subtract")
    if not operands or operands[1] is not take:
        return False
    one = operands[0]
    return bool(called(one, "ones_like")) or (isinstance(one, Constant) and bool((one.data == 1).all()))


def _lstm_of(expr: Expr, cell: Expr, state: Expr, gates: Sequence[Expr], shown: Activation) -> Step:
    """The step of the input gate, the output gate, the forget gate and the new value."""
    coupled = _coupled(gates[2], gates[0])
    activated = [_activated(gates[0] if coupled and i == 2 else g, *_NEW, *_GATE) for i, g in enumerate(gates)]
    parts = [_gate(sum_) for _, sum_, _ in activated]
    for gate, seen in zip(parts, (state, state if gates[1] is gates[0] else cell, state, None)):
        if gate.peephole is not None and gate.peephole[1] is not seen:
            raise _No
    clips, peepholes = {bound for _, _, bound in activated}, {gate.peephole is None for gate in parts[:3]}
    kinds = {activation for activation, _, _ in activated[:3]}
    if not len(clips) == len(kinds) == len({id(gate.state) for gate in parts}) == len(peepholes) == 1:
        raise _No
    attrs = (("input_forget", 1),) if coupled else ()
    return Step("LSTM", (expr, cell), (parts[0].state, state), tuple(parts), (*kinds, activated[3][0], shown), clips.pop(), attrs)


_FINDERS = {**dict.fromkeys((*_NAMES, "clip"), (_rnn,)), "add": (_gru,), "multiply": (_lstm,)}

__all__ = [
    "Activation",
    "At",
    "Gate",
    "Mask",
    "Part",
    "Step",
    "at_step",
    "called",
    "extents",
    "in_order",
    "last_cell",
    "masked",
    "step_of",
]
