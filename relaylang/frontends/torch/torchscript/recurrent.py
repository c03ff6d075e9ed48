"""Recurrent layers whose weights are quantised, and whose data are quantised by their own range at each product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.torch.families.recurrent import Step, gru_step, lstm_step, plain_step
from relaylang.frontends.torch.torchscript.packed import dynamic_product, packed
from relaylang.frontends.torch.torchscript.values import Packed, Record, Tensor
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.torch.torchscript.operators import Operators


def _weights(record: Any) -> tuple[Packed, Packed, bool]:
    """The weights of one direction for the input and the state, and whether their data lose a bit."""
    if not isinstance(record, Record) or not isinstance(record.state, (list, tuple)) or len(record.state) != 5:
        raise Unsupported("its weights are not quantised by torch.ao")
    _, _, _, flags, parts = record.state
    if len(parts) != 2:
        raise Unsupported("its weights are not quantised by torch.ao")
    x, h = (packed(p) if isinstance(p, Record) else p for p in parts)
    return x, h, bool(flags[0]) if flags else False


def layers(step: Step) -> Callable[..., Any]:
    """`quantized_lstm` and `quantized_gru`: layers above each other, each in one direction or both.

    The input of a layer is multiplied at once, so that all its steps have one range.
    """

    def convert(m: Operators, x: Tensor, hx: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(hx, Tensor) and rest and not isinstance(rest[0], (list, tuple)):
            raise Unsupported("it takes packed sequences")
        params, _, count, _, _, bidirectional, batch_first, *_ = [*rest, *named.values()]
        m.place(m.layer)
        b = m.b
        initial = [h.read() for h in (hx if isinstance(hx, (list, tuple)) else [hx])]
        steps = b.transpose(x.read(), [1, 0, 2]) if batch_first else x.read()
        ways = 2 if bidirectional else 1
        last: list[list[Expr]] = [[] for _ in initial]
        for layer in range(count):
            outputs = []
            for way in range(ways):
                at = layer * ways + way
                weight, own, reduced = _weights(params[at])
                begin = [b.squeeze(b.slice(s, [at], [at + 1], [0]), [0]) for s in initial]
                gates = dynamic_product(b, steps, weight, reduced)
                outs, after = recurrence(b, gates, begin, partial(_step, b, step, own, reduced), reverse=way == 1)
                outputs.append(outs)
                for states, state in zip(last, after):
                    states.append(state)
            steps = b.concat(outputs, 2)
        out = b.transpose(steps, [1, 0, 2]) if batch_first else steps
        return [Tensor(out), *(Tensor(b.op("stack", b.tuple(states), axis=0)) for states in last)]

    return convert


def _step(b: Builder, step: Step, weight: Packed, reduced: bool, gates: Expr, states: list[Expr]) -> list[Expr]:
    return step(b, gates, dynamic_product(b, states[0], weight, reduced), states)


def cell(step: Step) -> Callable[..., Any]:
    """One step of a dynamic cell; the packed weights have the biases, and data loses a bit."""

    def convert(b: Builder, x: Tensor, hx: Any, w_ih: Packed, w_hh: Packed, *biases: Any) -> Any:
        states = [h.read() for h in (hx if isinstance(hx, (list, tuple)) else [hx])]
        new_states = step(b, dynamic_product(b, x.read(), w_ih, True), dynamic_product(b, states[0], w_hh, True), states)
        results: Sequence[Tensor] = [Tensor(v) for v in new_states]
        return list(results) if len(results) > 1 else results[0]

    return convert


#: The cells of `torch.ops.quantized` by name.
CELLS = {
    "quantized_lstm_cell_dynamic": cell(lstm_step),
    "quantized_gru_cell_dynamic": cell(gru_step),
    "quantized_rnn_relu_cell_dynamic": cell(plain_step("nn.relu")),
    "quantized_rnn_tanh_cell_dynamic": cell(plain_step("tanh")),
}
LSTM, GRU = layers(lstm_step), layers(gru_step)

__all__ = ["CELLS", "GRU", "LSTM", "cell", "layers"]
