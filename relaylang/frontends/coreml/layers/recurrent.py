"""Recurrent layers. Their operands are (sequence, batch, elements, 1, 1), and by the older rule (sequence, elements)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, recurrent
from relaylang.frontends.coreml.families.recurrent import from_input, gru_step, lstm_step, run
from relaylang.frontends.coreml.layer import LayerNode
from relaylang.frontends.coreml.layers.neurons import function
from relaylang.ir import Expr


def _three(n: LayerNode, x: Expr) -> Expr:
    """An operand as (sequence, batch, elements)."""
    b, shape = n.b, n.b.static_shape(x)
    if n.old and len(shape) in (2, 4):
        return b.reshape_exactly(n.real(x), [shape[0], 1, int(np.prod(shape[1:]))])
    if len(shape) == 3:
        return n.real(x)
    if len(shape) != 5 or shape[3:] != (1, 1):
        raise Malformed(f"its operand has the shape {tuple(shape)}, and it must be (sequence, batch, elements, 1, 1)")
    return b.reshape_exactly(n.real(x), list(shape[:3]))


def _like(n: LayerNode, result: Expr, x: Expr) -> Expr:
    """A result (sequence, batch, elements) with the axes of the operand."""
    b, shape = n.b, n.b.static_shape(result)
    if n.old and n.b.rank(x) in (2, 4):
        return b.reshape_exactly(result, [shape[0], shape[2]])
    return result if b.rank(x) == 3 else b.unsqueeze(result, [3, 4])


def _states(n: LayerNode, x: Expr, states: Sequence[Expr], count: int, width: int) -> list[Expr]:
    """The first states (batch, elements): operands, or zeros."""
    if states and len(states) != count:
        raise Malformed(f"it has {len(states)} states, and {count} are its own")
    if not states:
        return [recurrent.zeros(n.b, x, 1, width) for _ in range(count)]
    batch = n.b.extent(x, 1)
    return [n.b.reshape_exactly(n.real(v), [batch, width]) for v in states]


def _stacked(n: LayerNode, matrices: Sequence[Any], shape: tuple[int, int], what: str) -> Expr:
    """The weights of gates behind each other."""
    return n.weight(np.concatenate([n.array(part, shape, what) for part in matrices]), what)


def _vector(n: LayerNode, vectors: Sequence[Any], width: int, what: str, more: Sequence[float] = ()) -> Expr:
    parts = [n.array(part, (width,), what) for part in vectors]
    return n.weight(np.concatenate([part + extra for part, extra in zip(parts, more or [0.0] * len(parts))]).astype(np.float32), what)


def _functions(n: LayerNode, activations: Sequence[Any], count: int) -> list[Callable[[Expr], Expr]]:
    if len(activations) != count:
        raise Malformed(f"it has {len(activations)} activations, and {count} are its own")
    return [function(n, part) for part in activations]


def _results(n: LayerNode, x: Expr, outputs: Expr, states: Sequence[Expr]) -> list[Expr]:
    return [_like(n, v, x) for v in (outputs, *[n.b.unsqueeze(state, [0]) for state in states])]


def simple(n: LayerNode, x: Expr, *states: Expr) -> Any:
    b, p, data = n.b, n.p, _three(n, x)
    width, size = p.outputVectorSize, p.inputVectorSize
    weight, inner = n.param(p.weightMatrix, (width, size), "weight"), n.param(p.recursionMatrix, (width, width), "recursion")
    shift = n.param(p.biasVector, (width,), "bias") if p.hasBiasVector else None
    last = function(n, p.activation)

    def step(value: Expr, before: list[Expr]) -> list[Expr]:
        return [last(b.op("add", value, b.unfolded("nn.dense", before[0], inner, units=width)))]

    first = _states(n, data, states, 1, width)
    outputs, *after = run(n, from_input(n, data, weight, shift), first, step, p.reverseInput, p.sequenceOutput)
    return _results(n, x, outputs, after)


def gru(n: LayerNode, x: Expr, *states: Expr) -> Any:
    p, data = n.p, _three(n, x)
    width, size = p.outputVectorSize, p.inputVectorSize
    gates = ("resetGate", "outputGate", "updateGate")
    weight = _stacked(n, [getattr(p, f"{g}WeightMatrix") for g in gates], (width, size), "weight")
    inner = _stacked(n, [getattr(p, f"{g}RecursionMatrix") for g in gates], (width, width), "recursion")
    shift = _vector(n, [getattr(p, f"{g}BiasVector") for g in gates], width, "bias") if p.hasBiasVectors else None
    step = gru_step(n, inner, _functions(n, p.activations, 2))
    first = _states(n, data, states, 1, width)
    outputs, *after = run(n, from_input(n, data, weight, shift), first, step, p.reverseInput, p.sequenceOutput)
    return _results(n, x, outputs, after)


def _lstm(
    n: LayerNode, data: Expr, p: Any, weights: Any, activations: Sequence[Any], states: Sequence[Expr], back: bool
) -> list[Expr]:
    """One direction: the results, the hidden state, and the memory."""
    width, size = p.outputVectorSize, p.inputVectorSize
    gates = ("inputGate", "forgetGate", "outputGate", "blockInput")
    end = "_back" if back and hasattr(p, "activationsBackwardLSTM") else ""
    weight = _stacked(n, [getattr(weights, f"{g}WeightMatrix") for g in gates], (width, size), f"weight{end}")
    inner = _stacked(n, [getattr(weights, f"{g}RecursionMatrix") for g in gates], (width, width), f"recursion{end}")
    how, forget = p.params, [0.0, 1.0 if p.params.forgetBias else 0.0, 0.0, 0.0]
    shift, eyes = None, None
    if how.hasBiasVectors:
        shift = _vector(n, [getattr(weights, f"{g}BiasVector") for g in gates], width, f"bias{end}", forget)
    elif how.forgetBias:
        shift = n.weight(n.b.arrays.repeat(np.array(forget, np.float32), width), f"bias{end}")
    if how.hasPeepholeVectors:
        eyes = _vector(n, [getattr(weights, f"{g}PeepholeVector") for g in gates[:3]], width, f"peephole{end}")
    clip = float(how.cellClipThreshold)
    step = lstm_step(n, inner, _functions(n, activations, 3), eyes, clip if 0 < clip < 50 else None, how.coupledInputAndForgetGate)
    return run(n, from_input(n, data, weight, shift), states, step, back, how.sequenceOutput)


def lstm(n: LayerNode, x: Expr, *states: Expr) -> Any:
    p, data = n.p, _three(n, x)
    first = _states(n, data, states, 2, p.outputVectorSize)
    outputs, *after = _lstm(n, data, p, p.weightParams, p.activations, first, p.reverseInput)
    return _results(n, x, outputs, after)


def lstm_both(n: LayerNode, x: Expr, *states: Expr) -> Any:
    """Both directions: their results behind each other, and the states of each."""
    p, data = n.p, _three(n, x)
    if len(p.weightParams) != 2:
        raise Malformed(f"it has the weights of {len(p.weightParams)} directions")
    first = _states(n, data, states, 4, p.outputVectorSize)
    ways = ((p.activationsForwardLSTM, first[:2], False), (p.activationsBackwardLSTM, first[2:], True))
    directions = [_lstm(n, data, p, own, acts, state, back) for own, (acts, state, back) in zip(p.weightParams, ways)]
    outputs = n.b.concat([way[0] for way in directions], 2)
    return _results(n, x, outputs, [state for way in directions for state in way[1:]])


RULES = (
    Rule("biDirectionalLSTM", lstm_both),
    Rule("gru", gru),
    Rule("simpleRecurrent", simple),
    Rule("uniDirectionalLSTM", lstm),
)
