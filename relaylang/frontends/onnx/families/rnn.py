"""Recurrent layers: RNN, GRU, LSTM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.recurrent import Step, recurrence, zeros
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr

#: A function of one tensor.
Function = Callable[[Expr], Expr]
#: A product with weights: `(x, direction)` to `x * weights of the direction`.
Product = Callable[[Expr, int], Expr]

#: The activations that take alpha and beta, with ONNX's defaults.
_ALPHA = {"affine": 1.0, "elu": 1.0, "hardsigmoid": 0.2, "leakyrelu": 0.01, "scaledtanh": 1.0, "thresholdedrelu": 1.0}
_BETA = {"affine": 0.0, "hardsigmoid": 0.5, "scaledtanh": 1.0}


def activation(b: Builder, name: str, alpha: float, beta: float) -> Function:
    """An activation function of ONNX's recurrent layers by its name in small letters."""
    functions: dict[str, Function] = {
        "relu": lambda x: b.op("nn.relu", x),
        "tanh": lambda x: b.op("tanh", x),
        "sigmoid": lambda x: b.op("sigmoid", x),
        "affine": lambda x: b.op("add", b.op("multiply", x, alpha), beta),
        "leakyrelu": lambda x: b.op("nn.leaky_relu", x, alpha=alpha),
        "thresholdedrelu": lambda x: b.op("where", b.op("greater_equal", x, alpha), x, b.const(0.0, b.dtype(x))),
        "scaledtanh": lambda x: b.op("multiply", b.op("tanh", b.op("multiply", x, beta)), alpha),
        "hardsigmoid": lambda x: nn.hard_sigmoid(b, x, alpha, beta),
        "elu": lambda x: nn.elu(b, x, alpha),
        "softsign": lambda x: nn.softsign(b, x),
        "softplus": lambda x: nn.softplus(b, x),
    }
    if name not in functions:
        raise Unsupported(f"the activation {name} is unknown")
    return functions[name]


def _activations(n: Node, names: list[str], directions: int) -> list[list[Function]]:
    """The activation functions of each direction. The functions that take alpha and beta receive them one after the other."""
    stated = [s.lower() for s in n.strings("activations", names * directions)]
    if len(stated) != len(names) * directions:
        raise Unsupported(f"it has {len(stated)} activations, not {len(names) * directions}")
    alphas: Iterator[float] = iter(n.floats("activation_alpha", []) if n.has("activation_alpha") else [])
    betas: Iterator[float] = iter(n.floats("activation_beta", []) if n.has("activation_beta") else [])
    functions = []
    for name in stated:
        alpha = next(alphas, _ALPHA[name]) if name in _ALPHA else 0.0
        beta = next(betas, _BETA[name]) if name in _BETA else 0.0
        functions.append(activation(n.b, name, alpha, beta))
    return [functions[i * len(names) : (i + 1) * len(names)] for i in range(directions)]


@dataclass
class Layer:
    """What the three kinds have in common: the operands in the layout (steps, batch, ...), one entry per direction."""

    n: Node
    x: Expr
    hidden: int
    gates: int
    ways: list[bool]
    input: Product
    recurrent: Product
    bias: Expr | None
    lengths: Expr | None
    states: list[list[Expr]]

    def biases(self, way: int) -> tuple[Expr | None, list[Expr | None]]:
        """The bias of the input's product for all gates, and those of the recurrent product gate by gate."""
        if self.bias is None:
            return None, [None] * self.gates
        b = self.n.b
        bias = _of_direction(b, self.bias, way)
        width = self.gates * self.hidden
        parts = [b.slice(bias, [width + i * self.hidden], [width + (i + 1) * self.hidden], [0]) for i in range(self.gates)]
        return b.slice(bias, [0], [width], [0]), list(parts)

    def whole_bias(self, way: int) -> Expr | None:
        """The sum of both biases for all gates."""
        first, rest = self.biases(way)
        if first is None:
            return None
        return self.n.b.op("add", first, self.n.b.concat([r for r in rest if r is not None], 0))

    def held(self, x: Expr) -> Expr:
        """Held to the range of the attribute `clip`, which applies to the inputs of activations."""
        bound = self.n.float("clip", 0.0) if self.n.has("clip") else 0.0
        return self.n.b.op("clip", x, a_min=-bound, a_max=bound) if bound else x

    def split(self, x: Expr, parts: int) -> list[Expr]:
        """The gates of a product."""
        b = self.n.b
        return b.fields(b.op("split", x, indices_or_sections=parts, axis=-1)) if parts > 1 else [x]


def _of_direction(b: Builder, x: Expr, way: int) -> Expr:
    """A direction's part of a tensor whose first axis is the directions."""
    return b.squeeze(b.slice(x, [way], [way + 1], [0]), [0])


def weights(b: Builder, w: Expr) -> Product:
    """The product with weights (directions, units, in). It stays a product where the initial state is a constant, so that
    all steps have the same form."""
    parts = [_of_direction(b, w, way) for way in range(b.extent(w, 0))]

    def product(x: Expr, way: int) -> Expr:
        if way >= len(parts):
            raise Malformed(f"its weights are for {len(parts)} direction, and its direction is bidirectional")
        product: Expr = b.unfolded("nn.dense", x, parts[way], units=b.extent(parts[way], 0))
        return product

    return product


#: Whether each direction goes from the last step to the first.
_WAYS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


def layer(
    n: Node,
    x: Expr,
    hidden: int,
    gates: int,
    products: tuple[Product, Product],
    bias: Expr | None,
    lengths: Expr | None,
    initial: list[Expr | None],
) -> Layer:
    """The operands of a recurrent layer; missing initial states are 0."""
    b = n.b
    batch_first = bool(n.int("layout", 0))
    if batch_first:
        x = b.transpose(x, [1, 0, 2])
    ways = _WAYS[n.choice("direction", "forward", [*_WAYS, *map(str.upper, _WAYS)]).lower()]
    states = []
    for way in range(len(ways)):
        initial_states = []
        for state in initial:
            if state is None:
                initial_states.append(zeros(b, x, 1, hidden))
            else:
                initial_states.append(b.squeeze(b.slice(state, [way], [way + 1], [int(batch_first)]), [int(batch_first)]))
        states.append(initial_states)
    return Layer(n, x, hidden, gates, ways, *products, bias, lengths, states)


def results(of: Layer, steps: Sequence[Step], inputs: list[Expr]) -> list[Expr]:
    """The outputs of all steps (steps, directions, batch, hidden), then the last states (directions, batch, hidden)."""
    b, batch_first = of.n.b, bool(of.n.int("layout", 0))
    outputs, lasts = [], []
    for way, reverse in enumerate(of.ways):
        y, last = recurrence(b, inputs[way], of.states[way], steps[way], of.lengths, reverse)
        outputs.append(b.unsqueeze(y, [1]))
        lasts.append([b.unsqueeze(s, [0]) for s in last])
    y = b.concat(outputs, 1)
    ends = [b.concat([last[i] for last in lasts], 0) for i in range(len(lasts[0]))]
    if batch_first:
        return [b.transpose(y, [2, 0, 1, 3]), *[b.transpose(e, [1, 0, 2]) for e in ends]]
    return [y, *ends]


def _plus(b: Builder, x: Expr, bias: Expr | None) -> Expr:
    return x if bias is None else b.op("add", x, bias)


def rnn(n: Node, x: Expr, w: Expr, r: Expr, bias: Expr | None = None, lengths: Expr | None = None, h: Expr | None = None) -> Any:
    b = n.b
    of = layer(n, x, b.extent(r, 2), 1, (weights(b, w), weights(b, r)), bias, lengths, [h])
    functions = _activations(n, ["Tanh"], len(of.ways))
    steps, inputs = [], []
    for way in range(len(of.ways)):
        inputs.append(_plus(b, of.input(of.x, way), of.whole_bias(way)))

        def step(x: Expr, states: list[Expr], way: int = way) -> list[Expr]:
            return [functions[way][0](of.held(b.op("add", x, of.recurrent(states[0], way))))]

        steps.append(step)
    return results(of, steps, inputs)


def gru(n: Node, x: Expr, w: Expr, r: Expr, bias: Expr | None = None, lengths: Expr | None = None, h: Expr | None = None) -> Any:
    b, hidden = n.b, n.b.extent(r, 2)
    of = layer(n, x, hidden, 3, (weights(b, w), weights(b, r)), bias, lengths, [h])
    functions = _activations(n, ["Sigmoid", "Tanh"], len(of.ways))
    late = bool(n.int("linear_before_reset", 0))
    gate_weights = weights(b, b.slice(r, [0], [2 * hidden], [1]))
    new_weights = weights(b, b.slice(r, [2 * hidden], [3 * hidden], [1]))
    steps, inputs = [], []
    for way in range(len(of.ways)):
        first, rest = of.biases(way)
        if first is not None and rest[0] is not None and rest[1] is not None and rest[2] is not None:
            last = b.op("zeros_like", rest[2]) if late else rest[2]
            first = b.op("add", first, b.concat([rest[0], rest[1], last], 0))
        inputs.append(_plus(b, of.input(of.x, way), first))

        def step(x: Expr, states: list[Expr], way: int = way, inner: Expr | None = rest[2]) -> list[Expr]:
            f, g = functions[way]
            before = states[0]
            own = b.slice(x, [0], [2 * hidden], [1])
            both = b.op("add", own, gate_weights(before, way))
            update, reset = of.split(f(of.held(both)), 2)
            new = b.slice(x, [2 * hidden], [3 * hidden], [1])
            if late:
                part = b.op("multiply", reset, _plus(b, new_weights(before, way), inner))
            else:
                part = new_weights(b.op("multiply", reset, before), way)
            candidate = g(of.held(b.op("add", new, part)))
            kept = b.op("multiply", update, b.op("subtract", before, candidate))
            return [b.op("add", candidate, kept)]

        steps.append(step)
    return results(of, steps, inputs)


def lstm(
    n: Node,
    x: Expr,
    w: Expr,
    r: Expr,
    bias: Expr | None = None,
    lengths: Expr | None = None,
    h: Expr | None = None,
    c: Expr | None = None,
    peepholes: Expr | None = None,
) -> Any:
    b = n.b
    of = layer(n, x, b.extent(r, 2), 4, (weights(b, w), weights(b, r)), bias, lengths, [h, c])
    return lstm_of(of, peepholes)


def lstm_of(of: Layer, peepholes: Expr | None) -> list[Expr]:
    """The results of an LSTM, whatever its products are. Gates are in the order input, output, forget, cell."""
    n, b, hidden = of.n, of.n.b, of.hidden
    functions = _activations(n, ["Sigmoid", "Tanh", "Tanh"], len(of.ways))
    coupled = bool(n.int("input_forget", 0))
    steps, inputs = [], []
    for way in range(len(of.ways)):
        inputs.append(_plus(b, of.input(of.x, way), of.whole_bias(way)))
        peep = None
        if peepholes is not None:
            peephole_weights = _of_direction(b, peepholes, way)
            peep = [b.slice(peephole_weights, [i * hidden], [(i + 1) * hidden], [0]) for i in range(3)]

        def step(x: Expr, states: list[Expr], way: int = way, peep: list[Expr] | None = peep) -> list[Expr]:
            f, g, last = functions[way]
            h, c = states
            i, o, forget, new = of.split(b.op("add", x, of.recurrent(h, way)), 4)
            if peep is not None:
                i = b.op("add", i, b.unfolded("multiply", peep[0], c))
                forget = b.op("add", forget, b.unfolded("multiply", peep[2], c))
            i = f(of.held(i))
            forget = b.op("subtract", b.op("ones_like", i), i) if coupled else f(of.held(forget))
            c = b.op("add", b.op("multiply", forget, c), b.op("multiply", i, g(of.held(new))))
            if peep is not None:
                o = b.op("add", o, b.op("multiply", peep[1], c))
            return [b.op("multiply", f(of.held(o)), last(c)), c]

        steps.append(step)
    return results(of, steps, inputs)


RULES = (
    Rule("RNN", rnn, since=7),
    Rule("GRU", gru, since=7),
    Rule("LSTM", lstm, since=7),
)

__all__ = ["RULES", "Layer", "Product", "layer", "lstm_of"]
