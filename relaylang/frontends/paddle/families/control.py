"""Control flow: branches and loops, whose blocks are inside of the operation, and arrays of tensors."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.frontends.paddle.program import Block, Key
from relaylang.ir import Expr


def _test(b: Builder, x: Expr) -> Expr:
    """A condition as a bool scalar."""
    x = b.scalar(x)
    return x if b.dtype(x) == "bool" else b.op("not_equal", x, b.const(0, b.dtype(x)))


def _blocks(n: Node, count: int) -> list[Block]:
    found = n.operation.blocks
    if len(found) != count:
        raise Malformed(f"it has {len(found)} blocks inside; it must have {count}")
    return found


def _values(n: Node, scope: Any, keys: list[Key]) -> list[Any]:
    """The values of keys behind a block. Raises `Skipped` where one was not converted."""
    return [n.importer.found(scope, key) for key in keys]


def if_(n: Node, condition: Expr) -> Any:
    """The results of one block or the other."""
    b = n.b
    then, other = (n.importer.yielded(n, block) for block in _blocks(n, 2))
    if len(then) != len(other):
        raise Malformed(f"its branches have {len(then)} and {len(other)} results")
    return b.fields(b.if_(_test(b, condition), b.tuple(then), b.tuple(other))) if then else []


def while_(n: Node, condition: Expr, *variables: Expr) -> Any:
    """A block whose results are the next condition and the next variables."""
    b, (body,) = n.b, _blocks(n, 1)

    def turn(values: list[Expr]) -> list[Expr]:
        made = n.importer.yielded(n, body, values[1:])
        if len(made) != len(values):
            raise Malformed(f"its block has {len(made)} results, and the loop {len(values)} variables")
        return [_test(b, made[0]), *made[1:]]

    if not variables:
        raise Unsupported("it has no variables")
    return while_loop(b, lambda v: v[0], turn, [_test(b, condition), *variables], ["more"])[1:]


def _assigned(block: Block) -> dict[Key, None]:
    """The keys that a block and those inside of it assign."""
    made: dict[Key, None] = {}
    waiting = [block]
    while waiting:
        for operation in waiting.pop().operations:
            for key in operation.results:
                made.update(dict.fromkeys(key if isinstance(key, list) else [] if key is None else [key]))
            waiting += operation.blocks
    return made


def while_block(n: Node, condition: Expr) -> Any:
    """A block that assigns variables around it, the condition among them."""
    b, (body,) = n.b, _blocks(n, 1)
    test = n.operation.operands[0]
    keys = [test, *[k for k in _assigned(body) if k != test and n.scope.get(k) is not None]]
    initial = _values(n, n.scope, keys)
    if not all(isinstance(v, Expr) for v in initial):
        raise Unsupported("it appends to an array of tensors")

    def turn(values: list[Expr]) -> list[Expr]:
        scope = n.importer.body(n, body, [], dict(zip(keys, values)))
        made = _values(n, scope, keys)
        return [_test(b, made[0]), *made[1:]]

    names = ["more", *[str(k) for k in keys[1:]]]
    found = while_loop(b, lambda v: v[0], turn, [_test(b, condition), *initial[1:]], names)
    n.scope.values.update(zip(keys, found))
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


# ---- arrays of tensors, whose lengths are known


def create_array(n: Node) -> Any:
    return [[]]


def write_array(n: Node, x: Expr, at: Expr) -> Any:
    """The array with a tensor at a place."""
    key = n.operation.results[0]
    before = n.scope.get(key) if key is not None else None
    parts = list(before) if isinstance(before, list) else []
    place = n.number(at, "the place in an array")
    if not 0 <= place <= len(parts):
        raise Malformed(f"it writes the tensor {place} of an array of {len(parts)}")
    return [[*parts[:place], x, *parts[place + 1 :]]]


def read_array(n: Node, xs: Tensors, at: Expr) -> Any:
    parts, place = n.list(xs), n.number(at, "the place in an array")
    if not 0 <= place < len(parts):
        raise Malformed(f"it reads the tensor {place} of an array of {len(parts)}")
    return parts[place]


def array_length(n: Node, xs: Tensors) -> Any:
    return n.b.const([len(xs) if isinstance(xs, list) else 1], "int64")


RULES = (
    Rule("array_length", array_length),
    Rule("conditional_block", conditional_block),
    Rule("create_array", create_array),
    Rule("if", if_),
    Rule("read_array", read_array),
    Rule("select_input", select_input),
    Rule("while", while_),
    Rule("while_block", while_block),
    Rule("write_array", write_array),
)
