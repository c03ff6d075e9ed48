"""Control flow: identities, branches, loops and functions. Loops of control flow v1 are in the importer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.tensorflow.loops import choice, loop
from relaylang.frontends.tensorflow.node import Node, Text, Value, need_tensor
from relaylang.ir import Expr


def identity(n: Node, x: Value) -> Any:
    return [x]


def switch(n: Node, x: Value, cond: Value) -> Any:
    """Both results are the operand; the Merge of the branches chooses."""
    return [x, x]


def no_op(n: Node, *xs: Value) -> Any:
    """What runs for its effect alone has no results."""
    return []


def const(n: Node) -> Any:
    return [n.importer.constant(n)]


def placeholder(n: Node) -> Any:
    raise Malformed("it is inside of a function, or no input of the signature")


def _condition(n: Node, cond: Value) -> Expr:
    """A condition as a bool scalar. Numbers hold where they are not 0, other tensors where they have elements."""
    x, b = need_tensor(cond), n.b
    if b.rank(x):
        return b.const(bool(np.prod(b.static_shape(x))), "bool")
    return x if b.dtype(x) == "bool" else b.op("not_equal", x, n.real(x, 0))


def if_(n: Node, cond: Value, *xs: Value) -> Any:
    """A condition that is known leaves one branch."""
    test = _condition(n, cond)
    branches = [n.function("then_branch"), n.function("else_branch")]
    known = n.b.value(test)
    if known is not None:
        chosen = branches[0 if known.item() else 1]
        return n.importer.call(n, chosen.name, xs, chosen.attr)
    then, other = (n.importer.call(n, f.name, xs, f.attr) for f in branches)
    return choice(n.b, test, then, other)


def case(n: Node, index: Value, *xs: Value) -> Any:
    """The branch of a number; numbers outside take the last."""
    b, place = n.b, n.b.scalar(need_tensor(index))
    functions = n.functions("branches")
    if not functions:
        raise Malformed("it has no branches")
    known = b.value(place)
    if known is not None:
        at = int(known)
        chosen = functions[at if 0 <= at < len(functions) else -1]
        return n.importer.call(n, chosen.name, xs, chosen.attr)
    results = [n.importer.call(n, f.name, xs, f.attr) for f in functions]
    branch = results[-1]
    for at in reversed(range(len(functions) - 1)):
        branch = choice(b, b.op("equal", place, n.real(place, at)), results[at], branch)
    return branch


def while_(n: Node, *xs: Value) -> Any:
    cond, body = n.function("cond"), n.function("body")

    def test(values: list[Any]) -> Any:
        results = n.importer.call(n, cond.name, values, cond.attr)
        if len(results) != 1:
            raise Malformed(f"its condition has {len(results)} results")
        return _condition(n, results[0])

    def turn(values: list[Any]) -> list[Any]:
        results = n.importer.call(n, body.name, values, body.attr)
        if len(results) != len(values):
            raise Malformed(f"its body gives {len(results)} values for {len(values)} variables")
        return results

    return loop(n.b, test, turn, xs, n.importer.names_of(body.name, len(xs)))


def called(n: Node, *xs: Value) -> Any:
    function = n.function("f")
    return n.importer.call(n, function.name, xs, function.attr)


def check(n: Node, *xs: Value) -> Any:
    """Checks of values give the value; what they would report is not computed."""
    return [xs[0]] if xs else []


def ensure_shape(n: Node, x: Value) -> Any:
    shape, x = n.shape("shape"), need_tensor(x)
    if shape is None:
        return [x]
    if len(shape) != n.b.rank(x):
        raise Malformed(f"its operand has {n.b.rank(x)} axes, and it says {len(shape)}")
    return [n.b.refine(x, [d if isinstance(d, int) else None for d in shape])]


def shape(n: Node, x: Value) -> Any:
    """The extents. Texts have a shape, too."""
    dtype = n.dtype("out_type", "int32")
    if isinstance(x, Text):
        return n.b.const(np.array(x.values.shape, dtype))
    return n.b.shape_of(need_tensor(x), dtype)


def _identities() -> dict[str, Callable[..., Any]]:
    names = (
        "CheckNumerics",
        "CheckNumericsV2",
        "DeepCopy",
        "Identity",
        "LoopCond",
        "NextIteration",
        "PreventGradient",
        "Snapshot",
        "StopGradient",
        "DebugIdentity",
        "CopyHost",
        "Copy",
    )
    return dict.fromkeys(names, identity)


RULES = (
    *[Rule(name, convert) for name, convert in _identities().items()],
    Rule("Assert", no_op),
    Rule("Case", case),
    Rule("Const", const),
    Rule("EnsureShape", ensure_shape),
    Rule("IdentityN", lambda n, *xs: list(xs)),
    Rule("If", if_),
    Rule("NoOp", no_op),
    Rule("PartitionedCall", called),
    Rule("Placeholder", placeholder),
    Rule("PlaceholderV2", placeholder),
    Rule("PlaceholderWithDefault", lambda n, x: [x]),
    Rule("Print", check),
    Rule("PrintV2", no_op),
    Rule("Shape", shape),
    Rule("StatefulPartitionedCall", called),
    Rule("StatelessCase", case),
    Rule("StatelessIf", if_),
    Rule("StatelessWhile", while_),
    Rule("Switch", switch),
    Rule("While", while_),
)
