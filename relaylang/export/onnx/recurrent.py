"""Recurrent layers in a program: all steps or the loop of an LSTM, GRU or RNN as one call, which is one layer of ONNX.

Steps over all parts of a sequence are a layer, as is a loop over it (`relaylang.frontends.common.recurrent` writes both).
Two layers over the same sequence in opposite directions are one in both directions. Where another operator uses a value
between the steps, they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relaylang.export.attributes import slices
from relaylang.export.onnx.cells import Gate, Part, Step, called, extents, in_order, last_cell, step_of
from relaylang.export.onnx.packing import Direction, layer_call
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, children, post_order, rebuilt
from relaylang.ir.typed import retype, typed_constant
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
    nothing else may use, and `start` is one of them, on which all results depend.
    """

    outputs: list[Expr]
    last: list[list[Expr]]
    inner: list[Expr]
    start: Expr


def with_layers(function: Expr, builder: Callable[[], Builder]) -> Expr:
    """A typed function with its recurrent layers as calls of `onnx.LSTM`, `onnx.GRU` and `onnx.RNN`."""
    shared = to_graph_normal_form.convert(function)
    graph = Graph(shared)
    layers = [*graph.unrolled(), *graph.loops()]
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


class Mask(NamedTuple):
    """`where` of the elements of a batch whose sequences have a step.

    It has the number of steps before, the lengths or the elements that are known to have the step, and the states.
    """

    turn: Expr | None
    lengths: Expr
    new: Expr
    old: Expr


def _masked(expr: Expr) -> Mask | None:
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


class Graph:
    """The nodes of a function: their order, their users, and the steps of recurrent layers."""

    def __init__(self, function: Expr) -> None:
        self.order: dict[int, int] = {}
        self.users: dict[int, list[Expr]] = {}
        self.steps: dict[int, Step] = {}
        self.lets: list[Let] = []
        self.tokens: dict[Any, int] = {}
        self.keys: dict[int, Any] = {}
        for node in post_order(function):
            self.order[id(node)] = len(self.order)
            for child in children(node):
                self.users.setdefault(id(child), []).append(node)
            if isinstance(node, Let):
                self.lets.append(node)
            step = step_of(node)
            if step is not None and step.dtype in _TAKEN and len({_source(g) for g in step.gates}) == 1:
                self.steps[id(node)] = step
        cells = {id(s.states[-1]) for s in self.steps.values()}
        for node in [x for x in post_order(function) if called(x, "add") and id(x) not in cells] if self.steps else []:
            step = last_cell(node, lambda x: self.steps.get(id(m.new if (m := _masked(x)) is not None else x)))
            if step is not None and len({_source(g) for g in step.gates}) == 1:
                self.steps[id(step.states[0])] = step

    # ---- comparison of steps

    def token(self, x: Any) -> int:
        """A number that is the same for equal constants, and for the same node."""
        if id(x) not in self.keys:
            key = (x.data.tobytes(), x.data.shape, x.data.dtype) if isinstance(x, Constant) else x
            self.keys[id(x)] = self.tokens.setdefault(key, len(self.tokens))
        return self.keys[id(x)]

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
        return step.kind, step.activations, step.clip, step.attrs, self.token(step.gates[0].at.sequence), gates

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
        masks = [_masked(x) for x in step.before]
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
        held = [m for u in self.users.get(id(last.states[0]), []) if (m := _masked(u)) is not None and m.new is last.states[0]]
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
            states = [[u for u in self._where(x, old)] for x, old in zip(last.states, last.before)]
            outputs = [[u for u in self._where(x, None)] for x in raw]
        inner = [x for s in chain for x in s.states if lengths is not None or s is not last]
        inner += [x for s in chain[1:] for x in s.before]
        return self._checked(Found(last, lengths, chain[0].before, self._joined(outputs), states, inner, raw[0]))

    def _where(self, new: Expr, old: Expr | None) -> Iterator[Expr]:
        """The users of a state that hold it, or 0 where `old` is None, for sequences that have ended."""
        for user in self.users.get(id(new), []):
            mask = _masked(user)
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

    def loops(self) -> Iterator[Found]:
        """Layers that are loops."""
        for let in self.lets:
            layer = self._loop(let)
            if layer is not None and (checked := self._checked(layer)) is not None:
                yield checked

    def _loop(self, let: Let) -> Found | None:
        function, begin = let.value, let.body
        if not isinstance(function, Function) or not isinstance(begin, Call) or begin.op is not let.variable:
            return None
        params, body = list(function.params), function.body
        if len(params) not in (3, 4) or not isinstance(body, If) or not isinstance(body.true_branch, Call):
            return None
        again, leave = body.true_branch, body.false_branch
        if again.op is not let.variable or not isinstance(leave, Tuple) or list(leave.fields) != params:
            return None
        turn, joined, *after = again.args
        masks = [_masked(x) for x in after]
        raw = [x if m is None else m.new for x, m in zip(after, masks)]
        step = self.steps.get(id(raw[0]))
        if step is None or list(step.states) != raw or list(step.before) != params[2:] or step.gates[0].at.turn is not params[0]:
            return None
        (parts,) = called(joined, "concatenate") or (None,)
        if not isinstance(parts, Tuple) or len(parts.fields) != 2 or parts.fields[0] is not params[1]:
            return None
        (output,) = called(parts.fields[1], "expand_dims") or (None,)
        lengths = None
        if any(masks):
            every = self._all_masks([*masks, _masked(output) if output is not None else None], params)
            if every is None:
                return None
            lengths, output = every[0].lengths, every[-1].new
        sequence = step.gates[0].at.sequence
        counted = _one_more(turn, params[0]) and _below(body.cond, params[0], sequence)
        empty = extents(begin.args[1])[:1] == (0,) and isinstance(begin.args[0], Constant) and not begin.args[0].data.any()
        if output is not raw[0] or not counted or not empty or self._uses(step, lengths, params):
            return None
        users = self.users.get(id(let), [])
        fields: list[list[Expr]] = [[u for u in users if isinstance(u, TupleGetItem) and u.index == i] for i in range(len(params))]
        outputs = [y for x in fields[1] for y in (x, *self._refined(x))]
        return Found(step, lengths, tuple(begin.args[2:]), outputs, fields[2:], [let], let)

    def _all_masks(self, masks: Sequence[Mask | None], params: Sequence[Expr]) -> list[Mask] | None:
        """The masks of a loop's states and of its output, the last, where all have the same lengths; else None.

        After the end of a sequence, its states stay, and its output is 0.
        """
        every = [m for m in masks if m is not None]
        if len(every) != len(masks):
            return None
        lengths = self.token(every[0].lengths)
        *states, rest = [m.old for m in every]
        zero = isinstance(rest, Constant) and not rest.data.any()
        same = all(m.turn is params[0] and self.token(m.lengths) == lengths for m in every)
        return every if same and zero and states == list(params[2:]) else None

    def _refined(self, x: Expr) -> list[Expr]:
        """The reshapes of a sequence that state its extents alone."""
        reshapes: list[Any] = [u for u in self.users.get(id(x), []) if called(u, "reshape") and len(extents(u)) == 3]
        return [u for u in reshapes if all(n == m or n == 0 for n, m in zip(u.attrs.newshape, extents(u)))]

    def _uses(self, step: Step, lengths: Expr | None, params: Sequence[Expr]) -> bool:
        """Whether the operands of a layer may depend on the variables of its loop."""
        parts = [p for g in step.gates for p in (g.weights, g.recurrent, *g.biases, *g.late, *(g.peephole or ())[:1])]
        operands = [step.gates[0].data, *[p.expr for p in parts], *([lengths] if lengths is not None else [])]
        return any(self._reaches(operands, p) for p in params)

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
            length = None if lengths is None else (lengths.data.tobytes() if isinstance(lengths, Constant) else id(lengths))
            peepholes = [g.peephole is None for g in step.gates]
            form = step.kind, step.attrs, step.clip, step.units, id(step.gates[0].data), length, peepholes
            others = waiting.setdefault(repr(form), [])
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
        for number, layer in enumerate(group):
            own = b.squeeze(outputs if count == 1 else b.slice(outputs, [number], [number + 1], [1]), [1])
            right: list[Expr] = []
            for old in layer.outputs:
                if layer.reverse:
                    turned = [u for u in self.users.get(id(old), []) if in_order(u)[0] is old]
                    replacements[id(old)] = (
                        b.op("reverse", own, axis=0)
                        if layer.lengths is None
                        else b.op("reverse_sequence", own, layer.lengths, seq_axis=0, batch_axis=1)
                    )
                    right += turned
                else:
                    right.append(old)
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
            for joined in self._together(olds, 0):
                replacements[id(joined)] = state
        return replacements

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


def _one_more(expr: Expr, turn: Expr) -> bool:
    operands = called(expr, "add")
    return bool(operands) and operands[0] is turn and isinstance(operands[1], Constant) and bool((operands[1].data == 1).all())


def _below(condition: Expr, turn: Expr, sequence: Expr) -> bool:
    """Whether a condition is `turn < steps of the sequence`."""
    operands = called(condition, "less")
    if not operands or operands[0] is not turn:
        return False
    count = operands[1]
    if isinstance(count, Constant):
        return bool(count.data == extents(sequence)[0])
    for name in ("reshape", "cast", "strided_slice", "shape_of"):
        operands = called(count, name)
        if not operands or (name == "strided_slice" and slices(count, 1) != [(0, 0, 1, 1)]):  # type: ignore[arg-type]
            return False
        (count,) = operands
    return count is sequence


__all__ = ["with_layers"]
