"""Recurrent layers. Their operands are steps (steps, batch, ...), and numbers (steps, batch) that are 0 where a sequence begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.caffe.node import Node, product
from relaylang.frontends.common import Malformed, Rule, recurrent
from relaylang.ir import Expr


def _dense(n: Node, x: Expr, weight: Expr, shift: Expr | None = None) -> Expr:
    dense = n.b.op("nn.dense", x, weight, units=n.b.extent(weight, 0))
    return dense if shift is None else n.b.op("nn.bias_add", dense, shift, axis=1)


def _recurrent(gates: int, states: int) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, going: Expr, *more: Expr) -> Any:
        """Caffe keeps states from call to call, and they count where `going` is not 0. Here a call begins with zeros.

        Further operands are one for all steps, and the first states with `expose_hidden`. Then the last states are results.
        """
        b, p = n.b, n.params("recurrent_param")
        width = p.num_output
        if not width:
            raise Malformed("it has no results")
        shown = states if p.expose_hidden else 0
        if not shown <= len(more) <= shown + 1:
            raise Malformed(f"it has {2 + len(more)} operands")
        steps, batch = b.extent(x, 0), b.shape(x)[1]
        size = product([b.extent(x, i) for i in range(2, b.rank(x))])
        index = 0

        def take(shape: tuple[int, ...], name: str) -> Expr:
            nonlocal index
            index += 1
            return n.weight(n.array(index - 1, shape, name), name)

        flat = n.reshape(x, [product([steps, batch]), size])
        inner = _dense(n, flat, take((gates * width, size), "input_weight"), take((gates * width,), "bias"))
        inner = n.reshape(inner, [steps, batch, gates * width])
        if len(more) > shown:
            once = b.op("nn.batch_flatten", more[0]) if b.rank(more[0]) > 2 else more[0]
            part = _dense(n, once, take((gates * width, b.extent(once, 1)), "static_weight"))
            inner = b.op("add", inner, b.unsqueeze(part, [0]))
        hidden = take((gates * width, width), "hidden_weight")
        first = [b.squeeze(value, [0]) for value in more[len(more) - shown :]] if shown else []
        first = first or [recurrent.zeros(b, x, 1, width) for _ in range(states)]
        data = b.concat([inner, b.unsqueeze(b.of_rank(going, 2), [2])], 2)
        result = (take((width, width), "result_weight"), take((width,), "result_bias")) if states == 1 else None

        def step(value: Expr, before: list[Expr]) -> list[Expr]:
            own, goes = b.slice(value, [0], [gates * width], [1]), b.slice(value, [gates * width], [gates * width + 1], [1])
            total = b.op("add", _dense(n, b.op("multiply", before[0], goes), hidden), own)
            if states == 1:
                return [b.op("tanh", total)]
            enter, forget, leave, new = b.fields(b.op("split", total, indices_or_sections=4, axis=1))
            forget = b.op("multiply", b.op("sigmoid", forget), goes)
            kept = b.op("multiply", forget, before[1])
            cell = b.op("add", kept, b.op("multiply", b.op("sigmoid", enter), b.op("tanh", new)))
            return [b.op("multiply", b.op("sigmoid", leave), b.op("tanh", cell)), cell]

        outputs, last = recurrent.recurrence(b, data, first, step)
        if result is not None:
            projected = b.op("tanh", _dense(n, n.reshape(outputs, [product([steps, batch]), width]), *result))
            outputs = n.reshape(projected, [steps, batch, width])
        return [outputs, *[b.unsqueeze(state, [0]) for state in last]] if shown else outputs

    return convert


RULES = (
    Rule("LSTM", _recurrent(4, 2)),
    Rule("RNN", _recurrent(1, 1)),
)
