"""Recurrent layers, cells, and the wrappers around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import padding_of, same_padding
from relaylang.frontends.common.recurrent import recurrence, zeros
from relaylang.frontends.keras.families.activation import function
from relaylang.frontends.keras.families.conv import LETTERS, layout
from relaylang.frontends.keras.node import Node, Tensor
from relaylang.frontends.keras.spec import Spec
from relaylang.ir import Expr

#: The states after one step, from the step's operand and the states before it. The first one is the step's output.
Step = Callable[[Expr, list[Expr]], list[Expr]]


@dataclass
class Cell:
    """A cell: its step, the widths of its states, and what it makes of all steps' operands at once."""

    step: Step
    widths: list[int]
    before: Callable[[Expr], Expr]


def _old_weights(n: Node, gates: int) -> list[np.ndarray] | None:
    """Keras 1's weights of each gate in the form of Keras 2; None where the layer has that form.

    LSTM has its gates in the order input, cell, forget, output, and Keras 2 has input, forget, cell, output.
    """
    if n.count() != 3 * gates or gates == 1:
        return None
    order = [0, 2, 1, 3] if gates == 4 else [0, 1, 2]
    arrays = [[n.array(3 * i + j) for i in order] for j in range(3)]
    return [np.concatenate(part, axis=-1) for part in arrays]


def _weights(n: Node, gates: int, units: int, use_bias: bool) -> tuple[Expr, Expr, Expr | None]:
    """The kernels as `nn.dense` takes them, (gates * units, inputs), and the bias."""
    old = _old_weights(n, gates)
    wanted = gates * units
    if (old[0] if old else n.array(0, 2)).shape[-1] != wanted:
        raise Malformed(f"its kernel has the shape {n.array(0).shape}, and it must have {wanted} columns")
    if (old[1] if old else n.array(1, 2)).shape != (units, wanted):
        raise Malformed(f"its recurrent kernel has the shape {n.array(1).shape}, and it must have {(units, wanted)}")

    def part(index: int, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Expr:
        return n.weight(0 if old else index, name, lambda w: change(old[index] if old else w), key=name)

    kernel = part(0, "kernel", lambda w: w.T)
    recurrent = part(1, "recurrent_kernel", lambda w: w.T)
    return kernel, recurrent, part(2, "bias", lambda w: w) if use_bias else None


def simple_cell(n: Node) -> Cell:
    b, units = n.b, n.int("units", least=1)
    act = function(n, "activation", "tanh")
    kernel, recurrent, bias = _weights(n, 1, units, n.bool("use_bias", True))

    def before(x: Expr) -> Expr:
        products = b.op("nn.dense", x, kernel, units=units)
        return products if bias is None else b.op("nn.bias_add", products, bias, axis=-1)

    def step(x: Expr, states: list[Expr]) -> list[Expr]:
        return [act(b.op("add", x, b.unfolded("nn.dense", states[0], recurrent, units=units)))]

    return Cell(step, [units], before)


def lstm_cell(n: Node) -> Cell:
    """Gates are in the order input, forget, cell, output."""
    b, units = n.b, n.int("units", least=1)
    act, gate = function(n, "activation", "tanh"), function(n, "recurrent_activation", _gate(n))
    kernel, recurrent, bias = _weights(n, 4, units, n.bool("use_bias", True))

    def before(x: Expr) -> Expr:
        products = b.op("nn.dense", x, kernel, units=4 * units)
        if bias is None:
            return products
        flat = bias
        if b.extent(flat, 0) == 8 * units:  # cuDNN's two biases
            flat = b.op("sum", b.reshape(flat, [2, 4 * units]), axis=[0])
        return b.op("nn.bias_add", products, flat, axis=-1)

    def step(x: Expr, states: list[Expr]) -> list[Expr]:
        h, c = states
        total = b.op("add", x, b.unfolded("nn.dense", h, recurrent, units=4 * units))
        i, f, new, o = b.fields(b.op("split", total, indices_or_sections=4, axis=-1))
        c = b.op("add", b.op("multiply", gate(f), c), b.op("multiply", gate(i), act(new)))
        return [b.op("multiply", gate(o), act(c)), c]

    return Cell(step, [units, units], before)


def _gate(n: Node) -> str:
    return "sigmoid" if n.spec.major >= 3 else "hard_sigmoid"


def gru_cell(n: Node) -> Cell:
    """Gates are in the order update, reset, new. With `reset_after`, the reset gate applies to the product with the state."""
    b, units = n.b, n.int("units", least=1)
    act, gate = function(n, "activation", "tanh"), function(n, "recurrent_activation", _gate(n))
    after = n.bool("reset_after", n.spec.major >= 3)
    kernel, recurrent, bias = _weights(n, 3, units, n.bool("use_bias", True))
    own = other = None
    if bias is not None and after:
        pair = b.reshape(bias, [2, 3 * units])
        own, other = (b.reshape(b.slice(pair, [i], [i + 1], [0]), [3 * units]) for i in (0, 1))
    elif bias is not None:
        own = bias
    both, last = (b.slice(recurrent, [0], [2 * units], [0]), b.slice(recurrent, [2 * units], [3 * units], [0]))

    def before(x: Expr) -> Expr:
        products = b.op("nn.dense", x, kernel, units=3 * units)
        return products if own is None else b.op("nn.bias_add", products, own, axis=-1)

    def step(x: Expr, states: list[Expr]) -> list[Expr]:
        (h,) = states
        z, r, new = b.fields(b.op("split", x, indices_or_sections=3, axis=-1))
        if after:
            product = b.unfolded("nn.dense", h, recurrent, units=3 * units)
            product = product if other is None else b.op("nn.bias_add", product, other, axis=-1)
            hz, hr, hn = b.fields(b.op("split", product, indices_or_sections=3, axis=-1))
            z, r = gate(b.op("add", z, hz)), gate(b.op("add", r, hr))
            candidate = act(b.op("add", new, b.op("multiply", r, hn)))
        else:
            product = b.unfolded("nn.dense", h, both, units=2 * units)
            hz, hr = b.fields(b.op("split", product, indices_or_sections=2, axis=-1))
            z, r = gate(b.op("add", z, hz)), gate(b.op("add", r, hr))
            candidate = act(b.op("add", new, b.unfolded("nn.dense", b.op("multiply", r, h), last, units=units)))
        return [b.op("add", candidate, b.op("multiply", z, b.op("subtract", h, candidate)))]

    return Cell(step, [units], before)


_CELLS = {
    "SimpleRNN": simple_cell,
    "SimpleRNNCell": simple_cell,
    "LSTM": lstm_cell,
    "LSTMCell": lstm_cell,
    "GRU": gru_cell,
    "GRUCell": gru_cell,
}


def stacked(n: Node, spec: Spec) -> Cell:
    """Cells on top of each other. The output is that of the last one, and comes first among the states."""
    cells = []
    for key, inner in spec.children():
        if inner.kind not in _CELLS:
            raise Unsupported(f"it stacks cells of the class {inner.kind}")
        cells.append(_CELLS[inner.kind](Node(n.importer, inner, (*n.path, "cell", *key.split("/")), [], [], {})))
    if not cells:
        raise Malformed("it has no cells")

    def step(x: Expr, states: list[Expr]) -> list[Expr]:
        new_states, at = [], 0
        for cell in cells:
            new = cell.step(cell.before(x), states[1 + at : 1 + at + len(cell.widths)])
            at += len(cell.widths)
            new_states += new
            x = new[0]
        return [x, *new_states]

    widths = [w for cell in cells for w in cell.widths]
    return Cell(step, [cells[-1].widths[0], *widths], lambda x: x)


def _states(n: Node, stated: Any) -> list[Expr]:
    """The initial states of a call: a tensor, or lists of them."""
    tensors, stack = [], [stated]
    while stack:
        part = stack.pop()
        if isinstance(part, (list, tuple)):
            stack += reversed(part)
        elif isinstance(part, Tensor):
            tensors.append(part.x)
        elif isinstance(part, Expr):
            tensors.append(part)
        elif part is not None:
            raise Unsupported("its initial state is no tensor")
    return [n.b.cast(x, n.dtype) for x in tensors]


def rnn(n: Node, x: Any, initial: Any = None) -> Any:
    """A recurrent layer on (batch, steps, width): the output of all steps or of the last one, and the states."""
    b, kind = n.b, n.spec.kind
    extra = 0
    if kind == "RNN":
        ((_, inner),) = n.spec.children()
        if inner.kind == "StackedRNNCells":
            cell, extra = stacked(n, inner), 1
        elif inner.kind in _CELLS:
            cell = _CELLS[inner.kind](Node(n.importer, inner, (*n.path, "cell"), [], [], {}))
        else:
            raise Unsupported(f"its cell is of the class {inner.kind}")
    else:
        cell = _CELLS[kind](n)
    if isinstance(x, list):  # Keras 2 hands the states on behind the operand.
        x, stated = x[0], _states(n, [x[1:], initial])
    else:
        stated = _states(n, [initial, n.kwargs.get("initial_state")])
    x = batch = n.real(b.of_rank(x, 3))
    if n.config.get("stateful"):
        b.report.warn(f"the layer {n.spec.name} is stateful, and each call of the program begins with its first state", b.span)
    if n.config.get("time_major"):
        raise Unsupported("its operand has the steps first")
    seq = b.transpose(x, [1, 0, 2])
    if stated and len(stated) != len(cell.widths) - extra:
        raise Malformed(f"it gets {len(stated)} states, and it has {len(cell.widths) - extra}")
    states = stated or [zeros(b, batch, 0, w) for w in cell.widths[extra:]]
    if extra:
        states = [zeros(b, batch, 0, cell.widths[0]), *states]
    return _unrolled(n, cell.before(seq), states, cell.step, extra)


def _unrolled(n: Node, seq: Expr, states: list[Expr], step: Step, extra: int) -> list[Any]:
    """The results of a recurrence over the first axis."""
    b = n.b
    back = n.bool("go_backwards", False)
    mask = n.mask
    if back:
        seq = b.op("reverse", seq, axis=0)
    count, run = len(states), step
    if mask is not None:
        # The mask travels as one more column of the operand, the last output as one more state.
        rank = b.rank(seq)
        if rank != 3:
            raise Unsupported("it has a mask, and its steps are no vectors")
        column = b.cast(b.unsqueeze(b.transpose(mask, [1, 0]), [2]), b.dtype(seq))
        width = b.extent(seq, 2)
        seq = b.concat([seq, b.op("reverse", column, axis=0) if back else column], 2)
        empty = n.config.get("zero_output_for_mask")

        def masked(x: Expr, before: list[Expr]) -> list[Expr]:
            own, kept = b.slice(x, [0], [width], [1]), b.op("greater", b.slice(x, [width], [width + 1], [1]), 0.0)
            new = step(own, before[1:])
            last = b.const(0.0, b.dtype(new[0])) if empty else before[0]
            return [b.op("where", kept, new[0], last), *[b.op("where", kept, a, o) for a, o in zip(new, before[1:])]]

        states = [b.op("zeros_like", states[0]), *states]
        run = masked
    outputs, last = recurrence(b, seq, states, run)
    ends = last[1:] if mask is not None else last
    assert len(ends) == count
    if n.bool("return_sequences", False):
        sequence = Tensor(b.transpose(outputs, [1, 0, *range(2, b.rank(outputs))]), mask)
    else:
        sequence = Tensor(last[0])
    return [sequence, *ends[extra:]] if n.bool("return_state", False) else [sequence]


def bidirectional(n: Node, x: Any, initial: Any = None) -> Any:
    """A layer in each direction; the backward one's outputs come in the order of the steps."""
    b = n.b
    (key, forward), (other, backward) = n.spec.children()
    stated = n.kwargs.get("initial_state", initial)
    states = _states(n, stated)
    if isinstance(x, list):
        x, more = x[0], _states(n, x[1:])
        states = more or states
    half = len(states) // 2
    results = []
    for name, layer, own in ((key, forward, states[:half]), (other, backward, states[half:])):
        if layer.kind not in _CELLS and layer.kind not in ("RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"):
            raise Unsupported(f"it wraps a layer of the class {layer.kind}")
        config = {**layer.config, "zero_output_for_mask": bool(layer.config.get("return_sequences"))}
        inner = Spec(layer.kind, layer.name, config, [], layer.major, False, layer.file, layer.depth)
        kwargs = {"initial_state": [Tensor(s) for s in own]} if own else {}
        results.append(n.inner(name, inner, Tensor(x, n.mask), **kwargs))
    (y, *ends), (z, *others) = results
    sequences = bool(forward.config.get("return_sequences"))
    turned = b.op("reverse", z.x, axis=1) if sequences else z.x
    mode = n.value("merge_mode", "concat")
    mask = n.mask if sequences else None
    if mode is None:
        return [Tensor(y.x, mask), Tensor(turned, mask), *ends, *others]
    if mode == "concat":
        merged = b.concat([y.x, turned], -1)
    elif mode in ("sum", "ave", "mul"):
        merged = b.op("multiply" if mode == "mul" else "add", y.x, turned)
        merged = b.op("divide", merged, 2.0) if mode == "ave" else merged
    else:
        raise Malformed(f"its merge_mode is {repr(mode)[:40]}")
    return [Tensor(merged, mask), *ends, *others]


def time_distributed(n: Node, x: Expr) -> Any:
    """A layer on each step: on all steps of the batch at once."""
    b = n.b
    ((key, layer),) = n.spec.children()
    shape = b.shape(x)
    if len(shape) < 2:
        raise Malformed("its operand has no steps")
    rest = shape[2:]
    if not all(isinstance(d, int) for d in rest):
        raise Unsupported("the extents of its operand are not known; --shape gives them")
    flat = b.op("reshape", x, newshape=[-3, -2] if rest else [-3])
    mask = n.mask
    inner_mask = None
    if mask is not None and b.rank(mask) > 2:
        inner_mask = b.op("reshape", mask, newshape=[-3, -2])
    results = n.inner(key, layer, Tensor(flat, inner_mask))
    outputs = []
    for result in results:
        rank = b.rank(result.x)
        like = b.shape(x)
        if isinstance(like[1], int):
            steps = b.op("reshape", result.x, newshape=[-4, -1, int(like[1]), *([-2] if rank > 1 else [])])
            steps = b.refine(steps, [int(like[0]) if isinstance(like[0], int) else None, *[None] * rank])
        else:
            steps = b.op("reshape_like", result.x, x, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
        outputs.append(Tensor(steps, mask))
    return outputs


def conv_lstm(rank: int) -> Callable[[Node, Any, Any], Any]:
    """An LSTM whose products are convolutions."""

    def convert(n: Node, x: Any, initial: Any = None) -> Any:
        b, first = n.b, n.channels_first()
        stated = _states(n, [x[1:], initial] if isinstance(x, list) else [initial, n.kwargs.get("initial_state")])
        x = n.real(b.of_rank(x[0] if isinstance(x, list) else x, rank + 3))
        filters = n.int("filters", least=1)
        act, gate = function(n, "activation", "tanh"), function(n, "recurrent_activation", _gate(n))
        steps, dilation = n.ints("strides", rank, 1, 1), n.ints("dilation_rate", rank, 1, 1)
        kernel, inner = n.array(0, rank + 2).shape, n.array(1, rank + 2).shape
        if kernel[-1] != 4 * filters or inner[rank:] != (filters, 4 * filters):
            raise Malformed(f"its kernels have the shapes {kernel} and {inner}, and {filters} filters")
        letters = LETTERS[rank]
        order = (rank + 1, rank, *range(rank)) if first else tuple(range(rank + 2))
        form = {"data_layout": layout(rank, first), "kernel_layout": f"OI{letters}" if first else f"{letters}IO"}
        own = n.weight(0, "kernel", lambda w: w.transpose(order))
        recurrent = n.weight(1, "recurrent_kernel", lambda w: w.transpose(order))
        shape = b.static_shape(x, "the operand")
        sizes = shape[3:] if first else shape[2:-1]
        same = n.choice("padding", "valid", ("valid", "same")) == "same"
        pairs = same_padding(sizes, kernel[:rank], steps, dilation) if same else [(0, 0)] * rank
        flat = b.op("reshape", x, newshape=[-3, -2])
        gates = b.op(
            f"nn.conv{rank}d",
            flat,
            own,
            strides=steps,
            dilation=dilation,
            padding=padding_of(pairs),
            channels=4 * filters,
            kernel_size=list(kernel[:rank]),
            **form,
        )
        if n.bool("use_bias", True):
            gates = b.op("nn.bias_add", gates, n.weight(2, "bias", rank=1), axis=1 if first else -1)
        rest = [int(d) for d in b.static_shape(gates)[1:]]
        seq = b.transpose(b.reshape(gates, [shape[0], shape[1], *rest]), [1, 0, *range(2, rank + 3)])
        state = list(rest)
        state[0 if first else -1] = filters
        axis = 1 if first else rank + 1
        around = same_padding(rest[1:] if first else rest[:-1], inner[:rank], [1] * rank, [1] * rank)

        def step(y: Expr, states: list[Expr]) -> list[Expr]:
            h, c = states
            product = b.unfolded(
                f"nn.conv{rank}d",
                h,
                recurrent,
                padding=padding_of(around),
                channels=4 * filters,
                kernel_size=list(inner[:rank]),
                **form,
            )
            total = b.op("add", y, product)
            i, f, new, o = b.fields(b.op("split", total, indices_or_sections=4, axis=axis))
            c = b.op("add", b.op("multiply", gate(f), c), b.op("multiply", gate(i), act(new)))
            return [b.op("multiply", gate(o), act(c)), c]

        empty = b.const(b.arrays.zeros([shape[0], *state], np.dtype(n.dtype)))
        return _unrolled(n, seq, stated or [empty, empty], step, 0)

    return convert


RULES = (
    Rule("Bidirectional", bidirectional),
    *(Rule(name, rnn) for name in ("GRU", "LSTM", "RNN", "SimpleRNN")),
    *(Rule(f"ConvLSTM{rank}D", conv_lstm(rank)) for rank in (1, 2, 3)),
    Rule("TimeDistributed", time_distributed),
)
