"""Recurrent operators over (steps, batch, elements)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.recurrent import Step, recurrence
from relaylang.frontends.coreml.node import Node
from relaylang.ir import Expr

#: A function of one tensor.
Function = Callable[[Expr], Expr]


def function(n: Node, name: str) -> Function:
    """An activation by its name."""
    b = n.b
    known: dict[str, Function] = {
        "hard_sigmoid": lambda x: nn.hard_sigmoid(b, x, 0.2, 0.5),
        "sigmoid_hard": lambda x: nn.hard_sigmoid(b, x, 0.2, 0.5),
        "linear": lambda x: x,
        "relu": lambda x: b.op("nn.relu", x),
        "scaled_tanh": lambda x: b.op("multiply", b.op("tanh", b.op("multiply", x, 2 / 3)), 1.7159),
        "sigmoid": lambda x: b.op("sigmoid", x),
        "tanh": lambda x: b.op("tanh", x),
    }
    if name not in known:
        raise Unsupported(f"the activation {name[:40]!r}")
    return known[name]


def _dense(n: Node, x: Expr, weight: Expr) -> Expr:
    """A product with a weight (results, elements). It stays one where the first state is a constant, for all steps alike."""
    product: Expr = n.b.unfolded("nn.dense", x, weight, units=n.b.extent(weight, 0))
    return product


def _gates(n: Node, x: Expr, count: int) -> list[Expr]:
    return n.b.fields(n.b.op("split", x, indices_or_sections=count, axis=-1)) if count > 1 else [x]


def from_input(n: Node, x: Expr, weight: Expr, bias: Expr | None) -> Expr:
    """The input's products for all steps at once."""
    products = n.b.op("nn.dense", x, weight, units=n.b.extent(weight, 0))
    return products if bias is None else n.b.op("nn.bias_add", products, bias, axis=-1)


def lstm_step(
    n: Node,
    weight_hh: Expr,
    functions: Sequence[Function],
    peephole: Expr | None = None,
    clip: float | None = None,
    coupled: bool = False,
) -> Step:
    """One step of gates i, f, o, z. The functions are those of gates, of z, and of the memory's result.

    `clip` holds what the functions of gates take. Where the gates are `coupled`, f is 1 - i."""
    b, (gate, cell, last) = n.b, functions
    eyes = b.fields(b.op("split", peephole, indices_or_sections=3, axis=0)) if peephole is not None else []

    def held(x: Expr) -> Expr:
        return x if clip is None else b.op("clip", x, a_min=-clip, a_max=clip)

    def step(value: Expr, before: list[Expr]) -> list[Expr]:
        hidden, memory = before
        i, f, o, z = _gates(n, b.op("add", value, _dense(n, hidden, weight_hh)), 4)
        if eyes:
            i, f = (b.op("add", v, b.op("multiply", memory, eye)) for v, eye in zip((i, f), eyes))
        enter, new = gate(held(i)), cell(held(z))
        forget = b.op("subtract", b.const(1.0, b.dtype(enter)), enter) if coupled else gate(held(f))
        new_memory = b.op("add", b.op("multiply", forget, memory), b.op("multiply", enter, new))
        if eyes:
            o = b.op("add", o, b.op("multiply", new_memory, eyes[2]))
        return [b.op("multiply", gate(held(o)), last(new_memory)), new_memory]

    return step


def gru_step(n: Node, weight_hh: Expr, functions: Sequence[Function], reset_after: bool = False, bias_hh: Expr | None = None) -> Step:
    """One step of gates r, o, z. The reset gate is applied to the state, or to its product where `reset_after`."""
    b, (gate, last) = n.b, functions
    width = b.extent(weight_hh, 1)
    parts = [b.slice(weight_hh, [first], [end], [0]) for first, end in ((0, width), (width, 2 * width), (2 * width, 3 * width))]

    def step(value: Expr, before: list[Expr]) -> list[Expr]:
        hidden = before[0]
        r, o, z = _gates(n, value, 3)
        if reset_after:
            products = _dense(n, hidden, weight_hh)
            own = _gates(n, products if bias_hh is None else b.op("add", products, bias_hh), 3)
            reset = gate(b.op("add", r, own[0]))
            inner = b.op("multiply", reset, own[1])
            update = gate(b.op("add", z, own[2]))
        else:
            reset = gate(b.op("add", r, _dense(n, hidden, parts[0])))
            inner = _dense(n, b.op("multiply", reset, hidden), parts[1])
            update = gate(b.op("add", z, _dense(n, hidden, parts[2])))
        new = last(b.op("add", o, inner))
        keep = b.op("multiply", update, hidden)
        return [b.op("add", b.op("multiply", b.op("subtract", b.const(1.0, b.dtype(new)), update), new), keep)]

    return step


def run(n: Node, data: Expr, states: Sequence[Expr], step: Step, backward: bool, every: bool) -> list[Expr]:
    """The results of all steps, or of the last with its axis, and the last states."""
    outputs, last = recurrence(n.b, data, states, step, reverse=backward)
    return [outputs if every else n.b.unsqueeze(last[0], [0]), *last]


def _check(n: Node, x: Expr, weight_ih: Expr, weight_hh: Expr, gates: int) -> None:
    b = n.b
    wide, high = b.static_shape(weight_ih, "its weight", 2), b.static_shape(weight_hh, "its weight", 2)
    if wide[0] != high[0] or high[0] != gates * high[1] or b.extent(b.of_rank(x, 3), 2) != wide[1]:
        raise Malformed(f"its weights have the shapes {tuple(wide)} and {tuple(high)}")


def _way(direction: str) -> bool:
    if direction not in ("forward", "reverse"):
        raise Malformed(f"its direction is {direction[:40]!r}")
    return direction == "reverse"


def lstm(
    n: Node,
    x: Expr,
    initial_h: Expr,
    initial_c: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    peephole: Expr | None = None,
    weight_ih_back: Expr | None = None,
    weight_hh_back: Expr | None = None,
    bias_back: Expr | None = None,
    peephole_back: Expr | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    recurrent_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    activation: str = "tanh",
    clip: float | None = None,
) -> Any:
    """Results, hidden state and memory; those of both directions behind each other where it is bidirectional."""
    b = n.b
    functions = [function(n, name) for name in (recurrent_activation, cell_activation, activation)]
    ways = [(weight_ih, weight_hh, bias, peephole, direction == "reverse")]
    if direction == "bidirectional":
        if weight_ih_back is None or weight_hh_back is None:
            raise Malformed("it has no weights for the way back")
        ways.append((weight_ih_back, weight_hh_back, bias_back, peephole_back, True))
    else:
        _way(direction)
    runs = []
    for at, (wide, high, shift, eyes, backward) in enumerate(ways):
        _check(n, x, wide, high, 4)
        width = b.extent(high, 1)
        states = [b.slice(v, [at * width], [(at + 1) * width], [1]) for v in (initial_h, initial_c)] if len(ways) > 1 else None
        first = states or [initial_h, initial_c]
        step = lstm_step(n, high, functions, eyes, clip)
        runs.append(run(n, from_input(n, x, wide, shift), first, step, backward, output_sequence))
    if len(runs) == 1:
        return runs[0]
    return [b.concat(list(parts), 2 if i == 0 else 1) for i, parts in enumerate(zip(*runs))]


def gru(
    n: Node,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    recurrent_activation: str = "sigmoid",
    activation: str = "tanh",
    reset_after: bool = False,
    input_bias: Expr | None = None,
) -> Any:
    """With `reset_after`, `bias` is that of the state's products, and `input_bias` that of the input's."""
    _check(n, x, weight_ih, weight_hh, 3)
    functions = [function(n, name) for name in (recurrent_activation, activation)]
    step = gru_step(n, weight_hh, functions, reset_after, bias if reset_after else None)
    shift = input_bias if reset_after else bias
    if input_bias is not None and not reset_after and bias is not None:
        shift = n.b.op("add", bias, input_bias)
    return run(n, from_input(n, x, weight_ih, shift), [initial_h], step, _way(direction), output_sequence)


def rnn(
    n: Node,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    activation: str = "tanh",
) -> Any:
    _check(n, x, weight_ih, weight_hh, 1)
    last = function(n, activation)

    def step(value: Expr, before: list[Expr]) -> list[Expr]:
        return [last(n.b.op("add", value, _dense(n, before[0], weight_hh)))]

    return run(n, from_input(n, x, weight_ih, bias), [initial_h], step, _way(direction), output_sequence)


RULES = (
    Rule("gru", gru),
    Rule("lstm", lstm),
    Rule("rnn", rnn),
)
