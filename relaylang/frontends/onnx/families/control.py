"""Control flow: conditionals become Relay's `if`, loops become recursive functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, lists, loops
from relaylang.frontends.common.lists import NOTHING
from relaylang.frontends.common.loops import no_rows, while_loop
from relaylang.frontends.onnx.inputs import stated_value
from relaylang.frontends.onnx.node import Body, Node
from relaylang.frontends.onnx.spelled import Spelled, in_loop
from relaylang.frontends.onnx.texts import Texts, fitted
from relaylang.ir import Call, Expr, Let, TensorType, Type
from relaylang.ops import get

#: A loop of so few turns is written out turn by turn.
_UNROLLED = 8


def if_(n: Node, cond: Expr) -> Any:
    """A condition that is known leaves one branch; otherwise both are converted, and their results joined."""
    b = n.b
    cond = _condition(b, cond)
    known = b.value(cond)
    if known is not None:
        return n.body("then_branch" if known else "else_branch").convert()
    then, other = n.body("then_branch").attempt(), n.body("else_branch").attempt()
    if isinstance(then, RelayError):
        return _left(n, "then", then, other)
    if isinstance(other, RelayError):
        return _left(n, "else", other, then)
    then, other, spelled = _coded(b, then, other)
    results = _joined(b, cond, *_alike(n, then, other))
    return [Texts(r) if i in spelled else r for i, r in enumerate(results)]


def _joined(b: Builder, cond: Expr, left: list[Any], right: list[Any]) -> list[Any]:
    """The results of two branches in one structure, chosen by a condition."""
    if len(left) == 1 and isinstance(left[0], Expr):
        return [b.if_(cond, left[0], right[0])]
    if not _flat(left):
        return left
    results = iter(b.fields(b.if_(cond, b.tuple(_flat(left)), b.tuple(_flat(right)))))
    return _shaped(left, results)


def _coded(b: Builder, then: Sequence[Any], other: Sequence[Any]) -> tuple[list[Any], list[Any], set[int]]:
    """The results of two branches with the codes of texts, in one room; and the places of texts."""
    left, right = list(then), list(other)
    spelled = {i for i, pair in enumerate(zip(left, right)) if any(isinstance(x, Texts) for x in pair)}
    for i in spelled:
        if not isinstance(left[i], Texts) or not isinstance(right[i], Texts):
            raise Malformed(f"its branches give texts and no texts for the result {i}")
        left[i], right[i] = fitted(b, [left[i], right[i]])
    return left, right, spelled


def _condition(b: Builder, x: Expr) -> Expr:
    """A bool scalar."""
    if b.dtype(x) != "bool":
        raise Unsupported(f"its condition has elements of the type {b.dtype(x)}")
    return b.scalar(x)


def _left(n: Node, name: str, wrong: RelayError, kept: list[Any] | RelayError) -> list[Any]:
    """The results of the other branch, where one does not fit the shapes of its operands."""
    if isinstance(kept, RelayError):
        raise wrong
    said = f"the {name} branch of {n.name} does not fit the shapes of its operands: the import leaves it out"
    n.b.report.warn(said, n.b.span, wrong.diagnostics[0].title)
    return kept


def _alike(n: Node, then: Sequence[Any], other: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results of two branches in one structure. Sequences of different lengths become lists."""
    b = n.b
    pairs: list[tuple[Any, Any]] = []
    for x, y in zip(then, other, strict=True):
        if isinstance(x, list) and isinstance(y, list) and len(x) == len(y):
            pairs.append(_alike(n, x, y))
        elif x is NOTHING and y is NOTHING:
            pairs.append((x, y))
        elif _is_tensor(x) and _is_tensor(y):
            pairs.append(_same_rank(n, x, y))
        else:
            ty = lists.wider(lists.kind(b, x), lists.kind(b, y))
            pairs.append((lists.fit(b, x, ty), lists.fit(b, y, ty)))
    return [x for x, _ in pairs], [y for _, y in pairs]


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Expr) and isinstance(x.checked_type, TensorType)


def _flat(values: Sequence[Any]) -> list[Expr]:
    """All expressions of results; sequences of known length are lists in them."""
    expressions: list[Expr] = []
    for v in values:
        expressions += _flat(v) if isinstance(v, list) else [] if v is NOTHING else [v]
    return expressions


def _shaped(values: Sequence[Any], results: Iterator[Expr]) -> list[Any]:
    """Results in the structure of the branches."""
    return [_shaped(v, results) if isinstance(v, list) else v if v is NOTHING else next(results) for v in values]


def _same_rank(n: Node, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """The results of two branches, of one rank.

    PyTorch writes a squeeze as a conditional: an axis goes where its extent is 1. Where the extent is not known, the result
    is the squeeze, which checks the extent when it runs.
    """
    b = n.b
    if b.rank(x) == b.rank(y):
        return x, y
    for kept, other in ((x, y), (y, x)):
        if not isinstance(kept, Call) or kept.op is not get("squeeze"):
            continue
        data = kept.args[0]
        if data is other or (isinstance(data, Let) and data.value is other):  # a let takes the extent's name away
            b.report.warn(f"{n.name} removes an axis of an unknown extent: the extent must be 1", b.span, "--shape states it")
            return kept, kept
    raise Unsupported(f"its branches give tensors of {b.rank(x)} and {b.rank(y)} axes; --shape may choose one of them")


def loop(n: Node, trips: Expr | None, cond: Expr | None, *state: Any) -> Any:
    """`Loop`: a trip count, a condition, or both. Values of each turn are stacked behind each other."""
    b, body = n.b, n.body("body")
    count = None if trips is None else b.cast(b.scalar(trips), "int64")
    start = b.const(True, "bool") if cond is None else _condition(b, cond)
    known = b.value(count) if count is not None else None
    scans = len(body.proto.output) - 1 - len(state)
    if len(body.proto.input) != 2 + len(state):
        raise Malformed(f"its body has {len(body.proto.input)} inputs; it must have {2 + len(state)}")
    if scans < 0:
        raise Unsupported("its body gives too few values")
    if known is not None and int(known) <= _UNROLLED and _always(b, body, start, state):
        return _unrolled(b, body, int(known), state, scans)
    carried = slice(1, 1 + len(state))
    return in_loop(b, body, state, lambda own, v: _recursive(b, own, count, start, _carried(n, own, v), scans), carried, 2)


def _carried(n: Node, body: Spelled, state: Sequence[Any]) -> list[Expr]:
    """The loop variables as expressions. What an empty sequence may hold is stated in the body, or the first turn shows it."""
    b = n.b
    types = [lists.kind(b, x) for x in state]
    for i, proto in enumerate(body.proto.input[2:]):
        if not lists.whole(types[i]) and proto.type.WhichOneof("value") in ("sequence_type", "optional_type"):
            stated = stated_value(b, proto.type, n.importer.file, f"the loop variable {proto.name}")
            if stated is not None and lists.ranked(stated):
                types[i] = lists.wider(types[i], stated)
    if not all(map(lists.whole, types)):
        shapes = [b.variable("state", t) if lists.whole(t) else x for x, t in zip(state, types)]
        after = body.convert([b.const(0, "int64"), b.const(True, "bool"), *shapes])[1:]
        types = [t if lists.whole(t) else lists.wider(t, lists.kind(b, x)) for t, x in zip(types, after)]
    return [lists.fit(b, x, t) for x, t in zip(state, types)]


def _always(b: Builder, body: Body, start: Expr, state: Sequence[Expr]) -> bool:
    """Whether the condition stays true: the body hands it on, or makes a constant."""
    if b.value(start) is None or not bool(b.value(start)):
        return False
    first = body.convert([b.const(0, "int64"), b.const(True, "bool"), *state], True)[0]
    value = b.value(first) if isinstance(first, Expr) else None
    return value is not None and bool(value)


def _unrolled(b: Builder, body: Body, trips: int, state: Sequence[Any], scans: int) -> list[Any]:
    rows: list[list[Any]] = [[] for _ in range(scans)]
    values = list(state)
    for turn in range(trips):
        results = body.convert([b.const(turn, "int64"), b.const(True, "bool"), *values], True)
        values = results[1 : 1 + len(values)]
        for row, x in zip(rows, results[1 + len(values) :]):
            row.append(x)
    if not trips:
        first = body.convert([b.const(0, "int64"), b.const(True, "bool"), *state], True)[1 + len(state) :]
        return [*values, *(Texts(no_rows(b, x.codes)) if isinstance(x, Texts) else no_rows(b, x) for x in first)]
    return [*values, *(_stacked(b, row) for row in rows)]


def _stacked(b: Builder, row: list[Any]) -> Any:
    """Values of all turns behind each other."""
    if all(isinstance(x, Texts) for x in row):
        return Texts(b.op("stack", b.tuple(fitted(b, row)), axis=0))
    return b.op("stack", b.tuple(row), axis=0)


def _rows(b: Builder, body: Spelled, state: Sequence[Any], scans: int) -> list[Expr]:
    """What one turn adds to the stacked values: used for their types alone."""
    results = body.convert([b.const(0, "int64"), b.const(True, "bool"), *state])
    return list(results[len(results) - scans :]) if scans else []


def _recursive(b: Builder, body: Spelled, count: Expr | None, start: Expr, state: Sequence[Expr], scans: int) -> list[Any]:
    """A function that calls itself with the turn, the condition, the state and the rows so far."""
    shapes = [b.variable(f"state{i}", _type(x)) for i, x in enumerate(state)]
    stacks = [no_rows(b, x) for x in _rows(b, body, shapes, scans)] if scans else []
    names = ["turn", "go", *body.inputs[2:], *[f"rows{i}" for i in range(scans)]]

    def test(v: list[Expr]) -> Expr:
        return v[1] if count is None else b.op("logical_and", b.op("less", v[0], count), v[1])

    def turn(v: list[Expr]) -> list[Expr]:
        results = body.convert([v[0], v[1], *v[2 : 2 + len(state)]])
        go = _condition(b, results[0])
        after = [lists.fit(b, x, _type(was)) for x, was in zip(results[1:], v[2 : 2 + len(state)])]
        rows = results[1 + len(state) :]
        grown = [b.op("concatenate", b.tuple([all_, b.unsqueeze(x, [0])]), axis=0) for all_, x in zip(v[2 + len(state) :], rows)]
        return [b.op("add", v[0], b.const(1, "int64")), go, *after, *grown]

    results = while_loop(b, test, turn, [b.const(0, "int64"), start, *state, *stacks], names, "loop")
    return results[2:]


def _type(x: Expr) -> Type:
    assert x.checked_type is not None
    return x.checked_type


def scan(n: Node, *values: Any) -> Any:
    """`Scan` of opset 9 and later: the body runs over slices of its last operands, and stacks its last results."""
    carried = slice(0, max(len(values) - n.int("num_scan_inputs"), 0))
    return in_loop(n.b, n.body("body"), values, lambda body, own: _scanned(n, body, own), carried)


def _scanned(n: Node, body: Spelled, values: list[Expr]) -> list[Any]:
    b, first, count = n.b, body.carried.stop, n.int("num_scan_inputs")
    state, scanned = values[:first], values[first:]
    backwards = n.ints("scan_input_directions", [0] * count)
    # Codes have an axis more than their texts.
    ranks = [b.rank(x) - text for x, text in zip(scanned, body.takes[first:])]
    axes = [a % rank for a, rank in zip(n.ints("scan_input_axes", [0] * count), ranks)]
    scanned = [b.op("reverse", x, axis=a) if d else x for x, a, d in zip(scanned, axes, backwards)]
    results = _scan(b, body, state, scanned, axes)
    states, rows = results[: len(state)], results[len(state) :]
    out_axes = n.ints("scan_output_axes", [0] * len(rows))
    out_backwards = n.ints("scan_output_directions", [0] * len(rows))
    rows = [b.op("reverse", x, axis=0) if d else x for x, d in zip(rows, out_backwards)]
    ranks = [b.rank(x) - text for x, text in zip(rows, body.gives[len(state) :])]
    return [*states, *(_moved(b, x, a % rank) for x, a, rank in zip(rows, out_axes, ranks))]


def _moved(b: Builder, x: Expr, axis: int) -> Expr:
    """The first axis in another place."""
    order = list(range(1, b.rank(x)))
    return b.transpose(x, [*order[:axis], 0, *order[axis:]])


def _scan(b: Builder, body: Body | Spelled, state: list[Expr], scanned: list[Expr], axes: list[int]) -> list[Any]:
    return loops.scan(b, body.convert, state, scanned, axes, body.inputs[: len(state)])


def scan_8(n: Node, lengths: Expr | None, *values: Expr) -> Any:
    """`Scan` of opset 8 runs over axis 1 and has a batch axis in front; the batch is written out."""
    b, body = n.b, n.body("body")
    if lengths is not None:
        raise Unsupported("the lengths of its sequences are given")
    if any(isinstance(x, Texts) for x in values):
        raise Unsupported("its operands are texts")
    count = n.int("num_scan_inputs")
    batch = b.extent(values[0], 0, "the batch")
    backwards = n.ints("directions", [0] * count)
    rows: list[list[Expr]] = []
    for i in range(batch):
        own = [b.squeeze(b.slice(x, [i], [i + 1], [0]), [0]) for x in values]
        state, scanned = own[: len(own) - count], own[len(own) - count :]
        scanned = [b.op("reverse", x, axis=0) if d else x for x, d in zip(scanned, backwards)]
        rows.append(_scan(b, body, state, scanned, [0] * count))
    return [b.op("stack", b.tuple(list(column)), axis=0) for column in zip(*rows)]


RULES = (
    Rule("If", if_),
    Rule("Loop", loop),
    Rule("Scan", scan, since=9),
    Rule("Scan", scan_8, since=8, until=8),
)
