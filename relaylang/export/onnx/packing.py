"""The operands of ONNX's LSTM, GRU and RNN from the gates of steps: weights of all gates and directions in one tensor each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.export.attributes import slices
from relaylang.export.onnx.cells import Gate, Part, Step, called, extents
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Call, Constant, Expr, TensorType, TupleType
from relaylang.ir.typed import typed
from relaylang.ops.record import Op

#: The operands of the layers by name, in ONNX's order.
OPERANDS = ("x", "w", "r", "b", "lengths", "h", "c", "p")


@dataclass(frozen=True)
class LayerAttrs:
    """Which of `OPERANDS` a layer has, and the attributes of ONNX."""

    operands: tuple[str, ...]
    attrs: dict[str, Any]


@dataclass(frozen=True)
class Direction:
    """A layer in one direction: a step of it, its lengths, and the states before its first step."""

    step: Step
    lengths: Expr | None
    initial: tuple[Expr, ...]

    @property
    def reverse(self) -> bool:
        return self.step.gates[0].reverse is not False


LAYERS = {
    kind: Op(f"onnx.{kind}", OPERANDS, None, lambda types, attrs, context: None, variadic=True) for kind in ("LSTM", "GRU", "RNN")
}


def layer_call(b: Builder, ways: Sequence[Direction]) -> Call:
    """A layer of one or two directions: the outputs (steps, directions, batch, units), and the last states
    (directions, batch, units)."""
    first = ways[0]
    step, data = first.step, first.step.gates[0].data
    steps, batch, _ = extents(data)
    units = step.units
    parts = [[g.peephole[0] for g in w.step.gates if g.peephole is not None] for w in ways]
    operands: dict[str, Expr | None] = {
        "x": data,
        "w": _stacked(b, [_weights(b, w.step.gates, 0) for w in ways]),
        "r": _stacked(b, [_weights(b, w.step.gates, 1) for w in ways]),
        "b": _biases(b, ways),
        "lengths": None if first.lengths is None else b.cast(first.lengths, "int32"),
        "p": _stacked(b, [_rows(b, p) for p in parts]) if all(parts) else None,
    }
    for number, name in enumerate("hc"[: len(first.initial)]):
        states = [w.initial[number] for w in ways]
        operands[name] = None if all(map(_zero, states)) else _stacked(b, states)
    names = tuple(name for name in OPERANDS if operands.get(name) is not None)
    attrs: dict[str, Any] = {"hidden_size": units, **dict(step.attrs)}
    attrs["direction"] = "bidirectional" if len(ways) == 2 else "reverse" if first.reverse else "forward"
    if step.clip:
        attrs["clip"] = step.clip
    activations = [a for w in ways for a in w.step.activations]
    if tuple(a.name for a in activations) != _USUAL[step.kind] * len(ways):
        attrs["activations"] = [a.name for a in activations]
        attrs["activation_alpha"] = [a.alpha for a in activations if a.alpha is not None] or None
        attrs["activation_beta"] = [a.beta for a in activations if a.beta is not None] or None
    state = TensorType((len(ways), batch, units), step.dtype)
    ty = TupleType([TensorType((steps, len(ways), batch, units), step.dtype), *[state] * len(first.initial)])
    present = [x for name in names if (x := operands[name]) is not None]
    return typed(Call(LAYERS[step.kind], present, LayerAttrs(names, attrs), (), step.states[0].span), ty)


#: The activations that ONNX takes where a layer says nothing.
_USUAL = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


def _weights(b: Builder, gates: Sequence[Gate], which: int) -> Expr:
    """The weights of the data (0) or of the state (1) for all gates."""
    parts = [(g.weights, g.recurrent)[which] for g in gates]
    if all(g.columns == gates[0].columns for g in gates):
        rows, columns = _rows(b, parts), gates[0].columns
        return rows if columns is None else b.slice(rows, [columns[which][0]], [columns[which][1]], [1])
    cut = [
        p.expr if g.columns is None else b.slice(p.expr, [g.columns[which][0]], [g.columns[which][1]], [1])
        for g, p in zip(gates, parts)
    ]
    return _rows(b, [p._replace(expr=x) for p, x in zip(parts, cut)])


def _rows(b: Builder, parts: Sequence[Part]) -> Expr:
    """Rows of tensors behind each other; the tensor itself where they are all of it, in order."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and last.expr is part.expr and last.high == part.low:
            joined[-1] = last._replace(high=part.high)
        else:
            joined.append(part)
    rows = [p.expr if (p.low, p.high) == (0, extents(p.expr)[0]) else b.slice(p.expr, [p.low], [p.high], [0]) for p in joined]
    return b.concat(rows, 0)


def _stacked(b: Builder, parts: Sequence[Expr]) -> Expr:
    """Tensors along a new first axis; where they are entries of one tensor, in order, the part of that tensor."""
    entries = [_entry(part) for part in parts]
    source, first = entries[0] or (None, 0)
    if source is None or any(e is None or e != (source, first + i) for i, e in enumerate(entries)):
        return b.concat([b.unsqueeze(p, [0]) for p in parts], 0)
    return source if len(parts) == extents(source)[0] else b.slice(source, [first], [first + len(parts)], [0])


def _entry(part: Expr) -> tuple[Expr, int] | None:
    """The tensor whose entry along the first axis a part is, and its number."""
    (cut,) = called(part, "squeeze") or (None,)
    (source,) = (called(cut, "strided_slice") if cut is not None else ()) or (None,)
    if source is None or tuple(part.attrs.axis or ()) != (0,):  # type: ignore[attr-defined]
        return None
    taken = slices(cut, len(extents(source)))  # type: ignore[arg-type]
    (axis, begin, end, stride), *more = taken
    return (source, begin) if not more and begin is not None and (axis, end, stride) == (0, begin + 1, 1) else None


def _biases(b: Builder, ways: Sequence[Direction]) -> Expr | None:
    """The biases of all directions (directions, 2 * gates * units); None where there are none."""
    if not any(g.biases or g.late for w in ways for g in w.step.gates):
        return None
    return _stacked(b, [_bias(b, w.step) for w in ways])


def _bias(b: Builder, step: Step) -> Expr:
    """The biases of the data's products, then those of the state's. Only that which GRU's reset gate scales must be there."""
    none = Part(b.const(np.zeros(step.units, np.dtype(step.dtype))), 0, step.units)

    def total(parts: Sequence[Part]) -> Part:
        first, *rest = parts or [none]
        for part in rest:
            first = Part(b.op("add", _rows(b, [first]), _rows(b, [part])), 0, step.units)
        return first

    scaled = [bool(step.attrs) and step.kind == "GRU" and number == 2 for number in range(len(step.gates))]
    first = [total(g.biases if late else g.biases[:1]) for g, late in zip(step.gates, scaled)]
    second = [total(g.late if late else g.biases[1:]) for g, late in zip(step.gates, scaled)]
    return b.concat([_rows(b, first), _rows(b, second)], 0)


def _zero(state: Expr) -> bool:
    """Whether a state is known to be 0."""
    if isinstance(state, Constant):
        return not state.data.any()
    (source,) = called(state, "reshape") or (state,)
    return isinstance(source, Call) and isinstance(source.op, Op) and source.op.name in ("zeros", "dyn.zeros")


__all__ = ["LAYERS", "OPERANDS", "Direction", "LayerAttrs", "layer_call"]
