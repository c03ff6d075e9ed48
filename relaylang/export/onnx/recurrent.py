"""Recurrent layers in a program: all steps or the loop of an LSTM, GRU or RNN as one call, which is one layer of ONNX.

Steps over all parts of a sequence are a layer, as is a loop over it (`relaylang.frontends.common.recurrent` writes both).
Two layers over the same sequence in opposite directions are one in both directions. Where another operator uses a value
between the steps, they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.export.onnx.cells import Gate, Mask, Part, Step, called, extents, in_order, last_cell, masked, step_of
from relaylang.export.onnx.loops import NoLoop, Turn, overwritten, row_of, turns_of
from relaylang.export.onnx.packing import Direction, layer_call
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Constant, Expr, Function, Let, TensorType, Tuple, TupleGetItem, Var, children, post_order, rebuilt
from relaylang.ir.typed import retype, typed_constant
from relaylang.passes.needs import Needs
from relaylang.passes.normal_forms import to_graph_normal_form

#: The operands of two directions are looked through this far for a way from one to the other.
_LOOKED = 1000


#: The element types that onnxruntime has these layers for; a loop computes the others.
_TAKEN = ("float32", "float16")
#: Layers whose inner values are used are found again without them so often.
_ROUNDS = 3


@dataclass(frozen=True)
class Found(Direction):
    """A layer in one direction in the program.

    `outputs` are its outputs in the order of the steps, `last` each state after the last step. `inner` are the values that
    nothing else may use, and all results depend on `start`. `turned` are its outputs in the opposite order. `end` gives what
    replaces the values of a loop, by id, from the outputs in one order or the opposite one (True) and the last states.
    """

    outputs: list[Expr]
    last: list[list[Expr]]
    inner: list[Expr]
    start: Expr
    turned: list[Expr] = field(default_factory=list)
    end: Callable[[Callable[[bool], Expr], Sequence[Expr]], dict[int, Expr]] | None = None


def with_layers(function: Expr, builder: Callable[[], Builder], callee: Callable[[Expr], Function | None]) -> Expr:
    """A typed function with its recurrent layers as calls of `onnx.LSTM`, `onnx.GRU` and `onnx.RNN`.

    `callee` gives the function that a call calls, in graph normal form; None for others.
    """
    shared = to_graph_normal_form.convert(function)
    graph = Graph(shared)
    layers = [*graph.unrolled(), *graph.loops(callee)]
    for _ in range(_ROUNDS if layers else 0):
        results: dict[int, Expr] = {}
        b = builder()
        for group in graph.groups(layers):
            results.update(graph.results(b, group))
        result, left = _replaced(shared, results)
        complete = [layer for layer in layers if not any(id(x) in left for x in layer.inner)]
        if len(complete) == len(layers):
            return result
        layers = complete
    return function


def _replaced(expr: Expr, replacements: Mapping[int, Expr]) -> tuple[Expr, set[int]]:
    """An expression with others in the place of some nodes, by id; and the nodes that are left, by id."""
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        new = replacements.get(id(node))
        if id(node) in done:
            continue
        if not ready:
            inner = children(node) if new is None else (new,)
            stack.append((node, True))
            stack += [(child, False) for child in reversed(inner) if id(child) not in done]
        else:
            done[id(node)] = done[id(new)] if new is not None else retype(rebuilt(node, done), node)
    return done[id(expr)], {key for key in done if key not in replacements}


class Graph:
    """The nodes of a function: their order, their users, and the steps of recurrent layers."""

    def __init__(self, function: Expr) -> None:
        self.order: dict[int, int] = {}
        self.users: dict[int, list[Expr]] = {}
        self.steps: dict[int, Step] = {}
        self.nodes = list(post_order(function))
        self.tokens: dict[Any, int] = {}
        self.keys: dict[int, Any] = {}
        for node in self.nodes:
            self.order[id(node)] = len(self.order)
            for child in children(node):
                self.users.setdefault(id(child), []).append(node)
            step = self._step(node)
            if step is not None:
                self.steps[id(node)] = step
        cells = {id(s.states[-1]) for s in self.steps.values()}
        for node in [x for x in self.nodes if called(x, "add") and id(x) not in cells] if self.steps else []:
            step = last_cell(node, lambda x: self.steps.get(id(m.new if (m := masked(x)) is not None else x)))
            if step is not None and len({_source(g) for g in step.gates}) == 1:
                self.steps[id(step.states[0])] = step

    # ---- comparison of steps

    def token(self, x: Any) -> int:
        """A number that is the same for equal constants, for the same node, and for equal views of it."""
        views = []
        while id(x) not in self.keys and called(x, "transpose", "reshape", "reverse"):
            views.append(x)
            (x,) = x.args
        if id(x) not in self.keys:
            key = (x.data.tobytes(), x.data.shape, x.data.dtype) if isinstance(x, Constant) else x
            self.keys[id(x)] = self.tokens.setdefault(key, len(self.tokens))
        number = self.keys[id(x)]
        for view in reversed(views):
            key = view.op.name, repr(view.attrs), number
            number = self.keys[id(view)] = self.tokens.setdefault(key, len(self.tokens))
        return number

    def alike(self, a: Step, b: Step) -> bool:
        """Whether two steps are of one layer, but for their states."""
        return self._form(a) == self._form(b)

    def _form(self, step: Step) -> Any:
        def weights(parts: Iterable[Part | None]) -> Any:
            return tuple([(self.token(p.expr), p.low, p.high) for p in parts if p is not None])

        gates = [
            (weights([g.weights, g.recurrent]), weights(g.biases), weights(g.late), weights([g.peephole and g.peephole[0]]))
            for g in step.gates
        ]
        columns = [g.columns for g in step.gates]
        return step.kind, step.activations, step.clip, step.attrs, self.token(step.gates[0].at.sequence), gates, columns

    # ---- layers

    def unrolled(self) -> Iterator[Found]:
        """Layers whose steps are all there."""
        for step in list(self.steps.values()):
            at = step.gates[0].at
            if at.steps is None or at.turn != at.steps - 1:
                continue
            chain, masks = [step], []
            while chain[-1].gates[0].at.turn:
                before, mask = self._before(chain[-1])
                if before is None:
                    break
                chain.append(before)
                masks.append(mask)
            else:
                layer = self._steps_of(chain[::-1], masks[::-1])
                if layer is not None:
                    yield layer

    def _before(self, step: Step) -> tuple[Step | None, Mask | None]:
        """The step before one, and the mask of its first state."""
        masks = [masked(x) for x in step.before]
        raw = [x if m is None else m.new for x, m in zip(step.before, masks)]
        before = self.steps.get(id(raw[0]))
        if before is None or not self.alike(before, step) or before.gates[0].at.turn != step.gates[0].at.turn - 1:  # type: ignore[operator]
            return None, None
        same = all(x is y for x, y in zip(raw, before.states))
        held = all((m is None) == (masks[0] is None) and (m is None or m.old is y) for m, y in zip(masks, before.before))
        alive = len({(self.token(m.lengths), m.turn and self.token(m.turn)) for m in masks if m is not None}) <= 1
        return (before, masks[0]) if same and held and alive else (None, None)

    def _steps_of(self, chain: list[Step], masks: list[Mask | None]) -> Found | None:
        last = chain[-1]
        held = [m for u in self.users.get(id(last.states[0]), []) if (m := masked(u)) is not None and m.new is last.states[0]]
        masks = [*masks, held[0] if held else None]
        lengths = None
        if any(masks):
            lengths = self._lengths(masks)
            if lengths is None:
                return None
        raw = [s.states[0] for s in chain]
        states: list[list[Expr]] = [[x] for x in last.states]
        outputs = [[x] for x in raw]
        if lengths is not None:
            states = [list(self._where(x, old)) for x, old in zip(last.states, last.before)]
            outputs = [list(self._where(x, None)) for x in raw]
        inner = [x for s in chain for x in s.states if lengths is not None or s is not last]
        inner += [x for s in chain[1:] for x in s.before]
        return self._checked(Found(last, lengths, chain[0].before, self._joined(outputs), states, inner, raw[0]))

    def _where(self, new: Expr, old: Expr | None) -> Iterator[Expr]:
        """The users of a state that hold it, or 0 where `old` is None, for sequences that have ended."""
        for user in self.users.get(id(new), []):
            mask = masked(user)
            if mask is not None and mask.new is new:
                zero = isinstance(mask.old, Constant) and not mask.old.data.any()
                if mask.old is old or (old is None and zero):
                    yield user

    def _lengths(self, masks: Sequence[Mask | None]) -> Expr | None:
        """The lengths that the masks of all steps come from; None where they differ."""
        all_ = [m for m in masks if m is not None]
        if len(all_) < len(masks):
            return None
        if all(m.turn is None for m in all_):
            alive = np.stack([m.lengths.data[:, 0] for m in all_])  # type: ignore[attr-defined]
            lengths = alive.sum(0).astype(np.int32)
            return typed_constant(lengths) if (alive == (np.arange(len(alive))[:, None] < lengths)).all() else None
        turns = [m.turn for m in all_]
        known = all(isinstance(t, Constant) and t.data == i for i, t in enumerate(turns))
        return all_[0].lengths if known and len({self.token(m.lengths) for m in all_}) == 1 else None

    def _joined(self, outputs: list[list[Expr]]) -> list[Expr]:
        """The outputs of all steps as one tensor, wherever they are joined."""
        joins = []
        rows = [{id(u) for x in of for u in self._unsqueezed(x, 0)} for of in outputs]
        for row in [u for x in outputs[-1] for u in self._unsqueezed(x, 0)]:
            if len(outputs) == 1:
                joins.append(row)
            for parts in self.users.get(id(row), []):
                if isinstance(parts, Tuple) and len(parts.fields) == len(rows) and all(id(f) in r for f, r in zip(parts.fields, rows)):
                    joins += [u for u in self.users.get(id(parts), []) if called(u, "concatenate") and u.attrs.axis == 0]  # type: ignore[attr-defined]
        return list(dict.fromkeys(joins))

    def _unsqueezed(self, x: Expr, axis: int) -> list[Expr]:
        return [u for u in self.users.get(id(x), []) if called(u, "expand_dims") and u.attrs.axis == axis and u.attrs.num_newaxis == 1]  # type: ignore[attr-defined]

    def _checked(self, layer: Found) -> Found | None:
        """A layer whose reversal fits its lengths, and whose weights come in rows; else None."""
        reverse, lengths = layer.step.gates[0].reverse, layer.lengths
        if isinstance(reverse, Expr) and (lengths is None or not self._same_lengths(reverse, lengths)):
            return None
        if reverse is True and lengths is not None:
            return None
        return layer

    def _same_lengths(self, a: Expr, b: Expr) -> bool:
        if isinstance(a, Constant) and isinstance(b, Constant):
            return bool(np.array_equal(a.data, b.data))
        return a is b

    def loops(self, callee: Callable[[Expr], Function | None]) -> Iterator[Found]:
        """Layers that are loops."""
        for turn in turns_of(self.nodes, Needs(), callee):
            layer = self._loop(turn)
            if layer is not None and self._checked(layer) is not None:
                yield layer

    def _loop(self, turn: Turn) -> Found | None:
        masks = {p: masked(x) for p, x in turn.after.items()}
        raw = {p: x if (m := masks[p]) is None else m.new for p, x in turn.after.items()}
        step = next((s for p, x in raw.items() if (s := self._step(x)) is not None and s.before[0] is p), None)
        if step is None or any(raw.get(p) is not x for p, x in zip(step.before, step.states)):  # type: ignore[call-overload]
            return None
        way = turn.direction(step.gates[0].at.turn, step.gates[0].at.sequence)  # type: ignore[arg-type]
        if not way or not turn.is_counted(step.gates[0].at.sequence) or any(map(turn.changes, _operands(step))):
            return None
        held = [masks[p] for p in step.before]  # type: ignore[index]
        lengths = held[0].lengths if held[0] is not None else None
        outputs: dict[Expr, bool] = {}
        rest: dict[Expr, Expr] = {}
        for p, x in turn.after.items():
            row = row_of(x, p) if extents(turn.first[p])[:1] == (0,) else None
            if row is not None:
                outputs[p], mask = row[1], masked(row[0])
                held += [mask] if lengths is not None else []
                if (row[0] if mask is None or lengths is None else mask.new) is not step.states[0]:
                    return None
            elif p not in step.before:
                rest[p] = overwritten(x)
        if lengths is not None and (way < 0 or True in outputs.values() or not self._are_held(held, lengths, step.before, turn)):
            return None
        if way < 0:
            gates = [g._replace(reverse=not g.reverse) if isinstance(g.reverse, bool) else g for g in step.gates]
            step = step._replace(gates=tuple(gates))
        return self._found(turn, step, lengths, outputs, rest)

    def _found(
        self, turn: Turn, step: Step, lengths: Expr | None, outputs: Mapping[Expr, bool], rest: Mapping[Expr, Expr]
    ) -> Found | None:
        """The layer of a loop, where its results follow from those of the layer.

        `outputs` are the parameters that collect outputs, each with whether the last comes first. `rest` are others, each with
        its value behind a turn.
        """
        new = dict(zip(map(id, step.states), step.before))

        places = self._places(turn)

        def end(sequence: Callable[[bool], Expr], last: Sequence[Expr]) -> dict[int, Expr]:
            values: dict[Any, Expr] = {p: sequence(front) for p, front in outputs.items()} | dict(zip(step.before, last))
            for p, x in rest.items():
                number = turn.constant(p) if isinstance(p, Var) else None
                if number is not None:
                    assert isinstance(p.checked_type, TensorType)
                    values[p] = typed_constant(np.asarray(number, p.checked_type.dtype))
                elif lengths is None and turn.turns() is not None and turn.only(x, step.states):
                    values[p] = turn.substituted(x, {key: values[before] for key, before in new.items()})
            ends = {id(result): turn.value(result, values) for result, _ in places}
            return {id(place): ends[id(result)] for result, place in places}

        try:
            end(lambda front: next(p for p, f in outputs.items() if f is front), step.before)
        except NoLoop:
            return None
        fields: dict[int, list[Expr]] = {}
        for result, place in places:
            fields.setdefault(id(result), []).append(place)
        collected: dict[bool, list[Expr]] = {
            front: [y for p, f in outputs.items() if f is front for y in fields.get(id(p), [])] for front in (False, True)
        }
        every = {front: [y for x in places for y in (x, *self._refined(x))] for front, places in collected.items()}
        last = [fields.get(id(p), []) for p in step.before]
        initial = tuple([turn.first[p] for p in step.before])  # type: ignore[index]
        return Found(step, lengths, initial, every[False], last, [], turn.call, every[True], end)

    def _places(self, turn: Turn) -> list[tuple[Expr, Expr]]:
        """The values that a loop gives, each with a node that stands for it: fields of its call, or the call."""
        holders: list[Expr] = [turn.call]
        for x in holders:
            holders += [u for u in self.users.get(id(x), []) if isinstance(u, Let) and u.body is x]
        users = [u for x in holders for u in self.users.get(id(x), []) if u not in holders]
        if isinstance(turn.end, Tuple) and all(isinstance(u, TupleGetItem) for u in users):
            return [(turn.end.fields[u.index], u) for u in users]  # type: ignore[attr-defined]
        return [(turn.end, x) for x in holders]

    def _step(self, x: Expr) -> Step | None:
        step = step_of(x)
        return step if step is not None and step.dtype in _TAKEN and len({_source(g) for g in step.gates}) == 1 else None

    def _are_held(self, masks: Sequence[Mask | None], lengths: Expr, before: Sequence[Expr], turn: Turn) -> bool:
        """Whether after the end of a sequence its states stay, and its outputs, the last of the masks, are 0."""
        for number, mask in enumerate(masks):
            if mask is None or self.token(mask.lengths) != self.token(lengths) or mask.turn is None:
                return False
            zero = isinstance(mask.old, Constant) and not mask.old.data.any()
            if turn.direction(mask.turn, lengths) != 1 or not (mask.old is before[number] if number < len(before) else zero):
                return False
        return not turn.changes(lengths)

    def _refined(self, x: Expr) -> list[Expr]:
        """The reshapes of a sequence that state its extents alone."""
        reshapes: list[Any] = [u for u in self.users.get(id(x), []) if called(u, "reshape") and len(extents(u)) == 3]
        return [u for u in reshapes if all(n == m or n == 0 for n, m in zip(u.attrs.newshape, extents(u)))]

    def _reaches(self, operands: Sequence[Expr], target: Expr) -> bool:
        """Whether operands depend on a node; also where it would take long to tell."""
        least, seen = self.order.get(id(target), 0), set[int]()
        stack = list(operands)
        while stack:
            node = stack.pop()
            if node is target or len(seen) > _LOOKED:
                return True
            if id(node) not in seen and self.order.get(id(node), -1) > least:
                seen.add(id(node))
                stack += children(node)
        return False

    # ---- layers in both directions, and their results

    def groups(self, layers: Sequence[Found]) -> list[list[Found]]:
        """The layers, those in opposite directions together. A layer goes with one over the same sequence."""
        groups: list[list[Found]] = []
        waiting: dict[Any, list[Found]] = {}
        for layer in layers:
            step, lengths = layer.step, layer.lengths
            peepholes = [g.peephole is None for g in step.gates]
            length = None if lengths is None else self.token(lengths)
            form = step.kind, step.attrs, step.clip, step.units, self.token(step.gates[0].data), length, *peepholes
            others = waiting.setdefault(form, [])
            other = next((o for o in others if o.reverse != layer.reverse and not self._depend(o, layer)), None)
            if other is None:
                others.append(layer)
                groups.append([layer])
                continue
            others.remove(other)
            group = next(g for g in groups if g[0] is other)
            group[:] = [layer, other] if other.reverse else [other, layer]
        return groups

    def _depend(self, a: Found, b: Found) -> bool:
        """Whether the operands of one of two layers may depend on the results of the other."""
        return self._reaches(a.initial, b.start) or self._reaches(b.initial, a.start)

    def results(self, b: Builder, group: Sequence[Found]) -> dict[int, Expr]:
        """The expressions that replace the results of a layer."""
        b.span = group[0].step.states[0].span
        call = layer_call(b, group)
        outputs, *states = [b.field(call, i) for i in range(1 + len(group[0].last))]
        count = len(group)
        replacements: dict[int, Expr] = {}
        ordered: list[list[Expr]] = []
        owns: list[Expr] = []
        ends: list[list[Expr]] = [[] for _ in group]
        for number, layer in enumerate(group):
            own = b.squeeze(outputs if count == 1 else b.slice(outputs, [number], [number + 1], [1]), [1])
            owns.append(own)
            right = list(layer.turned if layer.reverse else layer.outputs)
            against: Expr | None = None
            for old in layer.outputs if layer.reverse else layer.turned:
                against = against or _reversed(b, own, layer.lengths)
                replacements[id(old)] = against
                for user in self.users.get(id(old), []):
                    right += [user] if in_order(user)[0] is old else []
                    for back in self._reversed_along(user):
                        replacements[id(back)] = b.transpose(own, user.attrs.axes)  # type: ignore[attr-defined]
            replacements.update({id(old): own for old in right})
            ordered.append(right)
        for joined in self._together(ordered, 1):
            replacements[id(joined)] = outputs
        if count == 2:
            for parts in self._tuples(ordered):
                for user in self.users.get(id(parts), []):
                    if called(user, "concatenate") and user.attrs.axis in (2, -1):  # type: ignore[attr-defined]
                        replacements[id(user)] = b.reshape(b.transpose(outputs, [0, 2, 1, 3]), [0, 0, -1])
        for which, state in enumerate(states):
            olds = [layer.last[which] for layer in group]
            for number, places in enumerate(olds):
                own = b.squeeze(state if count == 1 else b.slice(state, [number], [number + 1], [0]), [0])
                replacements.update({id(x): own for x in places})
                ends[number].append(own)
            for joined in self._together(olds, 0):
                replacements[id(joined)] = state
        for layer, own, last in zip(group, owns, ends):
            if layer.end is not None:
                orders = {layer.reverse: own, not layer.reverse: _reversed(b, own, layer.lengths)}
                replacements = layer.end(orders.__getitem__, last) | replacements
        return replacements

    def _reversed_along(self, turned: Expr) -> list[Expr]:
        """Where the first axis before a transposition is reversed behind it."""
        axes: Any = turned.attrs.axes if called(turned, "transpose") else None  # type: ignore[attr-defined]
        users = self.users.get(id(turned), []) if axes else []
        return [u for u in users if called(u, "reverse") and int(axes[u.attrs.axis]) % len(axes) == 0]  # type: ignore[attr-defined]

    def _together(self, parts: Sequence[Sequence[Expr]], axis: int) -> Iterator[Expr]:
        """Where results of all directions lie along a new axis."""
        rows = [[u for x in of for u in self._unsqueezed(x, axis)] for of in parts]
        if len(parts) == 1:
            yield from rows[0]
        for joined, name in ((rows, "concatenate"), (parts, "stack")):
            for fields in self._tuples(joined):
                yield from [u for u in self.users.get(id(fields), []) if called(u, name) and u.attrs.axis == axis]  # type: ignore[attr-defined]

    def _tuples(self, parts: Sequence[Sequence[Expr]]) -> Iterator[Tuple]:
        """The tuples of one of each of these expressions, in order."""
        ids = [{id(x) for x in of} for of in parts]
        for x in parts[0]:
            for user in self.users.get(id(x), []):
                if isinstance(user, Tuple) and len(user.fields) == len(ids) and all(id(f) in of for f, of in zip(user.fields, ids)):
                    yield user


def _source(gate: Gate) -> Any:
    """The step of a sequence that a gate takes."""
    return id(gate.at.sequence), gate.at.turn, id(gate.data), gate.reverse if isinstance(gate.reverse, bool) else id(gate.reverse)


def _reversed(b: Builder, x: Expr, lengths: Expr | None) -> Expr:
    """Steps in the opposite order, of each element of a batch within its length."""
    if lengths is None:
        return b.op("reverse", x, axis=0)
    return b.op("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)


def _operands(step: Step) -> list[Expr]:
    """The data, weights and biases of a step."""
    parts = [p for g in step.gates for p in (g.weights, g.recurrent, *g.biases, *g.late, *(g.peephole or ())[:1])]
    return [step.gates[0].data, *[p.expr for p in parts]]


__all__ = ["with_layers"]
