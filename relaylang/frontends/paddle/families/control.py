"""Control flow: branches and loops, whose blocks are inside of the operation, and arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, lists
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.frontends.paddle.program import Block, Key
from relaylang.ir import Expr


def _test(b: Builder, x: Expr) -> Expr:
    """A condition as a bool scalar."""
    x = b.scalar(x)
    return x if b.dtype(x) == "bool" else b.op("not_equal", x, b.const(0, b.dtype(x)))


def _blocks(n: Node, count: int) -> list[Block]:
    blocks = n.operation.blocks
    if len(blocks) != count:
        raise Malformed(f"it has {len(blocks)} blocks inside; it must have {count}")
    return blocks


def _values(n: Node, scope: Any, keys: list[Key]) -> list[Any]:
    """The values of keys behind a block. Raises `Skipped` where one was not converted."""
    return [n.importer.found(scope, key) for key in keys]


def if_(n: Node, condition: Expr) -> Any:
    """The results of one block or the other."""
    b, blocks = n.b, _blocks(n, 2)
    kept = _replaced(n, blocks)
    then, other = (n.importer.yielded(n, block, kept=kept) for block in blocks)
    if len(then) != len(other):
        raise Malformed(f"its branches have {len(then)} and {len(other)} results")
    for at, (left, right) in enumerate(zip(then, other)):
        if isinstance(left, list) or isinstance(right, list):
            ty = lists.wider(lists.kind(b, left), lists.kind(b, right))
            then[at], other[at] = (lists.fit(b, v, ty) for v in (left, right))
    results = b.fields(b.if_(_test(b, condition), b.tuple(then), b.tuple(other))) if then else []
    count = len(results) - len(kept)
    n.scope.values.update(zip(kept, results[count:]))
    return results[:count]


def while_(n: Node, condition: Expr, *variables: Expr) -> Any:
    """A block whose results are the next condition and the next variables."""
    b, (body,) = n.b, _blocks(n, 1)
    kept, count = _replaced(n, [body]), len(variables)

    def turn(values: list[Any]) -> list[Any]:
        yielded = n.importer.yielded(n, body, values[1 : 1 + count], dict(zip(kept, values[1 + count :])), kept)
        if len(yielded) != len(values):
            raise Malformed(f"its block has {len(yielded) - len(kept)} results, and the loop {1 + count} variables")
        return [_test(b, yielded[0]), *yielded[1:]]

    initial = [_test(b, condition), *variables, *_values(n, n.scope, kept)]
    if len(initial) == 1:
        raise Unsupported("it has no variables")
    results = _loop(b, turn, initial, ["more"])[1:]
    n.scope.values.update(zip(kept, results[count:]))
    return results[:count]


def _replaced(n: Node, blocks: Sequence[Block]) -> list[Key]:
    """The keys of values around the blocks that operations inside of them change in place."""
    waiting, changed = list(blocks), dict[Key, None]()
    while waiting:
        for operation in waiting.pop().operations:
            if operation.changed is not None and n.scope.get(operation.changed) is not None:
                changed[operation.changed] = None
            waiting += operation.blocks
    return list(changed)


def _loop(b: Builder, turn: Callable[[list[Any]], list[Any]], initial: Sequence[Any], names: Sequence[str]) -> list[Expr]:
    """The variables behind a loop, whose first one is the condition. Arrays of tensors become lists, which may grow."""
    if any(isinstance(x, list) for x in initial):
        types = [lists.kind(b, x) for x in initial]
        if not all(map(lists.whole, types)):
            shapes = [b.variable("state", t) if lists.whole(t) else x for x, t in zip(initial, types)]
            types = [t if lists.whole(t) else lists.wider(t, lists.kind(b, x)) for t, x in zip(types, turn(shapes))]
        initial = [lists.fit(b, x, t) for x, t in zip(initial, types)]

    def again(values: list[Expr]) -> list[Expr]:
        results = turn(values)
        return [lists.fit(b, x, v.checked_type) if lists.is_list(v) and v.checked_type else x for x, v in zip(results, values)]

    return while_loop(b, lambda v: v[0], again, initial, names)


def _assigned(block: Block) -> dict[Key, None]:
    """The keys that a block and those inside of it assign."""
    keys: dict[Key, None] = {}
    waiting = [block]
    while waiting:
        for operation in waiting.pop().operations:
            for key in operation.results:
                keys.update(dict.fromkeys(key if isinstance(key, list) else [] if key is None else [key]))
            waiting += operation.blocks
    return keys


def while_block(n: Node, condition: Expr) -> Any:
    """A block that assigns variables around it, the condition among them."""
    b, (body,) = n.b, _blocks(n, 1)
    test = n.operation.operands[0]
    keys = [test, *[k for k in _assigned(body) if k != test and n.scope.get(k) is not None]]
    initial = _values(n, n.scope, keys)

    def turn(values: list[Any]) -> list[Any]:
        scope = n.importer.body(n, body, [], dict(zip(keys, values)))
        assigned = _values(n, scope, keys)
        return [_test(b, assigned[0]), *assigned[1:]]

    names = ["more", *[str(k) for k in keys[1:]]]
    results = _loop(b, turn, [_test(b, condition), *initial[1:]], names)
    n.scope.values.update(zip(keys, results))
    return []


def conditional_block(n: Node, conditions: Tensors, inputs: Any = None) -> Any:
    """A block whose results hold where the condition does; else those before it. `select_input` takes those that are new."""
    b, (body,) = n.b, _blocks(n, 1)
    (condition,) = n.list(conditions)[:1]
    scope = n.importer.body(n, body, [])
    results = []
    for key in n.operation.results[0] if n.operation.results else []:
        new, old = n.importer.found(scope, key), n.scope.get(key)
        both = isinstance(new, Expr) and isinstance(old, Expr) and new is not old
        results.append(b.if_(_test(b, condition), new, old) if both else new)
    return [results]


def select_input(n: Node, xs: Tensors, mask: Expr) -> Any:
    """The tensor of a list that a number names."""
    b, parts = n.b, n.list(xs)
    if len(parts) != 2:
        raise Unsupported(f"it selects one of {len(parts)} tensors")
    return b.if_(_test(b, mask), parts[1], parts[0])


# ---- arrays of tensors: lists of Python where their lengths are known, else those of the Prelude


def _place(n: Node, at: Expr) -> int | None:
    """A place in an array; None where it is computed."""
    return n.number(at, "the place in an array") if n.b.value(at) is not None else None


def write_array(n: Node, x: Expr, at: Expr) -> Any:
    """The array with a tensor at a place."""
    key = n.operation.results[0]
    before = n.scope.get(key) if key is not None else None
    return [_written(n, before if isinstance(before, list) or lists.is_list(before) else [], x, at)]


def _written(n: Node, array: Any, x: Expr, at: Expr) -> Any:
    b, place = n.b, _place(n, at)
    if isinstance(array, list) and place is not None:
        if not 0 <= place <= len(array):
            raise Malformed(f"it writes the tensor {place} of an array of {len(array)}")
        return [*array[:place], x, *array[place + 1 :]]
    if array == []:
        return [x]  # no other place fits
    xs = lists.as_list(b, array)
    ty = lists.list_of(b, lists.wider(lists.element(xs), lists.kind(b, x)))
    xs, index = lists.fit(b, xs, ty), b.cast(b.scalar(at), "int32")
    longer = b.op("greater_equal", index, lists.length(b, xs))
    return b.if_(longer, lists.append(b, xs, x), lists.call(b, "update", [xs, index, x], ty))


def read_array(n: Node, xs: Tensors, at: Expr) -> Any:
    b, place = n.b, _place(n, at)
    if place is None or lists.is_list(xs):
        array = lists.as_list(b, xs)
        return lists.call(b, "nth", [array, b.cast(b.scalar(at), "int32")], lists.element(array))
    parts = n.list(xs)
    if not 0 <= place < len(parts):
        raise Malformed(f"it reads the tensor {place} of an array of {len(parts)}")
    return parts[place]


def array_length(n: Node, xs: Tensors) -> Any:
    b = n.b
    if lists.is_list(xs):
        return b.reshape_exactly(b.cast(lists.length(b, xs), "int64"), [1])
    return b.const([len(xs) if isinstance(xs, list) else 1], "int64")


def array_to_tensor(n: Node, xs: Tensors) -> Any:
    """The tensors of an array stacked, or behind each other; and the extent of each along the axis, where their number is known."""
    b, axis, new = n.b, n.int("axis", 0), n.bool("use_stack", False)
    if lists.is_list(xs):
        return [lists.concat(b, xs, axis, new)]
    parts = n.list(xs)
    joined = b.op("stack", b.tuple(parts), axis=axis) if new else b.concat(parts, axis % b.rank(parts[0]))
    extents = [b.shape(p)[axis % b.rank(p)] if b.rank(p) else 1 for p in parts]
    return [joined, b.const(extents, "int32") if all(isinstance(d, int) for d in extents) else None]


RULES = (
    Rule("array_length", array_length),
    Rule("array_read", read_array),
    Rule("array_to_tensor", array_to_tensor),
    Rule("array_write", lambda n, array, x, at: [_written(n, array, x, at)]),
    Rule("conditional_block", conditional_block),
    Rule("create_array", lambda n: [[]]),
    Rule("if", if_),
    Rule("read_array", read_array),
    Rule("select_input", select_input),
    Rule("while", while_),
    Rule("while_block", while_block),
    Rule("write_array", write_array),
)
