"""Control flow and calls: conditionals become `if`, loops become recursive functions, functions are put in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.recurrent import UNROLLED
from relaylang.frontends.stablehlo.node import Node
from relaylang.frontends.stablehlo.program import Op, Region
from relaylang.ir import Expr

#: A loop is written out where its turns have so many operations in all.
_WRITTEN = 1 << 12
#: Calls of other programs that give their operands: they tell where data is.
_PASSING = frozenset(
    (
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
    )
)
#: Calls of other programs that check, and give nothing.
_CHECKING = frozenset(("shape_assertion",))


def call(n: Node) -> Any:
    name = n.word("callee")
    return n.importer.call(name, [n.any(i) for i in range(len(n))])


def composite(n: Node) -> Any:
    """An operator of another library: one of CHLO by its name, others by the function that tells the meaning."""
    rule, attributes = n.importer.rules.find(n.word("name")), n.attributes.get("composite_attributes")
    if rule is not None and rule.name.startswith("chlo."):
        op = replace(n.op, name=rule.name, attributes=attributes if isinstance(attributes, dict) else {})
        return rule.convert(Node(n.importer, op))
    return n.importer.call(n.word("decomposition"), [n.any(i) for i in range(len(n))])


def custom_call(n: Node) -> Any:
    name = n.word("call_target_name")
    if name in _PASSING:
        return [n.any(i) for i in range(len(n.op.results))]
    if name in _CHECKING:
        return []
    raise Unsupported(f"it calls {name[:60] or 'another program'}")


def passed(n: Node) -> Any:
    """The operands themselves."""
    return [n.any(i) for i in range(len(n))]


def tuple_(n: Node) -> Any:
    return [[n.any(i) for i in range(len(n))]]


def get_tuple_element(n: Node) -> Any:
    fields, index = n.any(0), n.int("index")
    if not isinstance(fields, list) or not 0 <= index < len(fields):
        raise Malformed(f"its operand has no field {index}")
    return [fields[index]]


def _branch(n: Node, index: int) -> list[Any]:
    return n.importer.run_region(n.region(index), [])


def _chosen(n: Node, cond: Expr, then: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """The results of one of two branches."""
    b = n.b
    if not all(isinstance(x, Expr) for x in (*then, *other)):
        raise Unsupported("its branches give complex numbers or tuples")
    if len(then) != len(other):
        raise Malformed("its branches give different numbers of results")
    if len(then) == 1:
        return [b.if_(cond, then[0], other[0])]
    return b.fields(b.if_(cond, b.tuple(list(then)), b.tuple(list(other)))) if then else []


def if_(n: Node) -> Any:
    """The first region is for true. A condition that is known leaves one."""
    cond = n.b.scalar(n.x(0))
    known = n.b.value(cond)
    if known is not None:
        return _branch(n, 0 if bool(known) else 1)
    return _chosen(n, cond, _branch(n, 0), _branch(n, 1))


def case(n: Node) -> Any:
    """An index that is outside chooses the last region."""
    b, index, count = n.b, n.b.scalar(n.x(0)), len(n.op.regions)
    known = b.value(index)
    if known is not None:
        at = int(known)
        return _branch(n, at if 0 <= at < count else count - 1)
    chosen = _branch(n, count - 1)
    for at in reversed(range(count - 1)):
        chosen = _chosen(n, b.op("equal", index, b.const(at, b.dtype(index))), _branch(n, at), chosen)
    return chosen


def while_(n: Node) -> Any:
    """A loop of few turns is written out."""
    b, importer = n.b, n.importer
    cond, body = n.region(0), n.region(1)
    initial = [n.any(i) for i in range(len(n))]
    turns = _turns(n, cond, body, initial)
    if turns is not None and turns <= UNROLLED and turns * max(len(body.ops), 1) <= _WRITTEN:
        for _ in range(turns):
            initial = importer.run_region(body, initial)
        return initial
    if not all(isinstance(x, Expr) for x in initial):
        raise Unsupported("its variables are complex numbers or tuples")

    def test(values: list[Expr]) -> Expr:
        results = importer.run_region(cond, values)
        if len(results) != 1:
            raise Malformed(f"its condition gives {len(results)} results")
        return b.scalar(results[0])

    def turn(values: list[Expr]) -> list[Expr]:
        results = importer.run_region(body, values)
        if len(results) != len(values) or not all(isinstance(x, Expr) for x in results):
            raise Malformed(f"its body gives {len(results)} results for {len(values)} variables")
        return results

    names = [importer.program.names[p][1:] for p in cond.parameters]
    return while_loop(b, test, turn, initial, names if all(name.isidentifier() for name in names) else ())


def _turns(n: Node, cond: Region, body: Region, initial: Sequence[Any]) -> int | None:
    """How many turns a loop has that counts from a known number to a known one by a known step; None for others."""
    definitions = {v: op for op in cond.ops for v in op.results}
    ends = [definitions.get(v) for v in cond.ops[-1].operands] if cond.ops else []
    test = ends[0] if len(ends) == 1 else None
    if test is None or test.name != "stablehlo.compare" or len(test.operands) != 2:
        return None
    counter, last = test.operands
    if counter not in cond.parameters or test.attributes.get("comparison_direction") != "LT":
        return None
    at = cond.parameters.index(counter)
    if not body.ops or not at < len(initial) == len(body.parameters) == len(body.ops[-1].operands):
        return None
    if last in cond.parameters:  # a bound that the loop passes on
        place = cond.parameters.index(last)
        if body.ops[-1].operands[place] != body.parameters[place]:
            return None
        stop = _whole(n, initial[place])
    else:
        stop = _constant(n, last, definitions)
    start, by = _whole(n, initial[at]), _step(n, body, at)
    if start is None or stop is None or by is None or by < 1:
        return None
    return max(-(-(stop - start) // by), 0)


def _step(n: Node, body: Region, at: int) -> int | None:
    """What a loop's body adds to its parameter of a number; None where it does something else with it."""
    steps = {v: op for op in body.ops for v in op.results}
    step = steps.get(body.ops[-1].operands[at])
    if step is None or step.name != "stablehlo.add" or body.parameters[at] not in step.operands:
        return None
    others = [v for v in step.operands if v != body.parameters[at]]
    return _constant(n, others[0], steps) if len(others) == 1 else None


def _whole(n: Node, value: Any) -> int | None:
    known = n.b.value(value) if isinstance(value, Expr) else None
    return int(known.reshape(-1)[0]) if known is not None and known.size == 1 and known.dtype.kind in "iu" else None


def _constant(n: Node, number: int, definitions: dict[int, Op]) -> int | None:
    """The whole number of a constant in a region, or of a value outside of it."""
    op = definitions.get(number)
    if op is None:
        return _whole(n, n.importer.values.get(number))
    value: Any = op.attributes.get("value") if op.name == "stablehlo.constant" else None
    return int(value) if getattr(value, "size", 0) == 1 and value.dtype.kind in "iu" else None


RULES = (
    Rule("func.call", call),
    Rule("stablehlo.case", case),
    Rule("stablehlo.composite", composite),
    Rule("stablehlo.custom_call", custom_call),
    Rule("stablehlo.get_tuple_element", get_tuple_element),
    Rule("stablehlo.if", if_),
    Rule("stablehlo.optimization_barrier", passed),
    Rule("stablehlo.tuple", tuple_),
    Rule("stablehlo.while", while_),
    Rule("sdy.sharding_constraint", passed),
)
