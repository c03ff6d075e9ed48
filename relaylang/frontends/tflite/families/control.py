"""Control flow and variables: conditionals become `if`, loops become recursive functions, other graphs are put in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.recurrent import UNROLLED
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.states import Variable, handle_of
from relaylang.ir import Expr


def _operands(n: Node, first: int = 0) -> list[Any]:
    return [n.x(i) for i in range(first, len(n))]


def if_(n: Node) -> Any:
    """A condition that is known leaves one branch. Variables that a branch assigns are results of both."""
    b, importer, o = n.b, n.importer, n.options
    cond, operands = b.scalar(n.x(0)), _operands(n, 1)
    graphs = [o["then_subgraph_index"], o["else_subgraph_index"]]
    known = b.value(cond)
    if known is not None:
        return importer.convert_subgraph(n, graphs[0 if bool(known) else 1], operands)
    changed = list(dict.fromkeys(v for g in graphs for v in importer.assigned_by(g, operands)))
    before = [importer.read(v) for v in changed]
    branches = []
    for graph in graphs:
        importer.assign(changed, before)
        results = importer.convert_subgraph(n, graph, operands)
        branches.append([*results, *[importer.read(v) for v in changed]])
    results = _chosen(n, cond, *branches)
    importer.assign(changed, results[len(results) - len(changed) :])
    return results[: len(results) - len(changed)]


def _chosen(n: Node, cond: Expr, then: list[Any], other: list[Any]) -> list[Any]:
    """The results of one of two branches. A handle must be the same in both."""
    b = n.b
    at = [i for i, x in enumerate(then) if isinstance(x, Expr)]
    for x, y in zip(then, other, strict=True):
        if not (isinstance(x, Expr) and isinstance(y, Expr)) and not (isinstance(x, Variable) and x == y):
            raise Unsupported("its branches give different variables, or complex numbers")
    results = list(then)
    if len(at) == 1:
        results[at[0]] = b.if_(cond, then[at[0]], other[at[0]])
    elif at:
        branch = b.if_(cond, b.tuple([then[i] for i in at]), b.tuple([other[i] for i in at]))
        for i, x in zip(at, b.fields(branch)):
            results[i] = x
    return results


def while_(n: Node) -> Any:
    """A loop of known turns is written out. Variables that the body assigns are loop variables, too."""
    b, importer, o = n.b, n.importer, n.options
    operands = _operands(n)
    cond, body = o["cond_subgraph_index"], o["body_subgraph_index"]
    if importer.assigned_by(cond, operands):
        raise Unsupported("its condition assigns a variable")
    changed = list(importer.assigned_by(body, operands))
    before = [importer.read(v) for v in changed]
    written = _written_out(n, cond, body, operands)
    if written is not None:
        return written
    importer.assign(changed, before)
    at = [i for i, x in enumerate(operands) if isinstance(x, Expr)]
    if not all(isinstance(x, (Expr, Variable)) for x in operands):
        raise Unsupported("its variables are complex numbers")

    def filled(values: Sequence[Expr]) -> list[Any]:
        importer.assign(changed, values[len(at) :])
        variables = list(operands)
        for i, x in zip(at, values):
            variables[i] = x
        return variables

    def test(values: list[Expr]) -> Expr:
        return b.scalar(importer.convert_subgraph(n, cond, filled(values))[0])

    def turn(values: list[Expr]) -> list[Expr]:
        results = importer.convert_subgraph(n, body, filled(values))
        if any(results[i] != x for i, x in enumerate(operands) if i not in at):
            raise Unsupported("its body gives other variables")
        return [*[n.refined(results[i], i) for i in at], *[importer.read(v) for v in changed]]

    names = [importer.tensor_name(body, i) for i in at] + [v.name for v in changed]
    variables = while_loop(b, test, turn, [*[operands[i] for i in at], *before], names)
    results = filled(variables)
    return results


def _written_out(n: Node, cond: int, body: int, values: list[Any]) -> list[Any] | None:
    """The results of a loop whose condition is known in each of a few turns; None for other loops."""
    for _ in range(UNROLLED + 1):
        test = n.b.value(n.importer.convert_subgraph(n, cond, values)[0])
        if test is None or test.size != 1:
            return None
        if not test.item():
            return values
        values = n.importer.convert_subgraph(n, body, values)
    return None


def called(option: str) -> Callable[[Node], Any]:
    """A graph that is put in the place of the layer."""
    return lambda n: n.importer.convert_subgraph(n, n.options[option], _operands(n))


def call_once(n: Node) -> Any:
    """The first values of variables."""
    n.importer.run_once(n, n.options["init_subgraph_index"])
    return []


def _variable(n: Node) -> Variable:
    handle = n.x(0)
    if not isinstance(handle, Variable):
        raise Unsupported("its first operand is not a variable")
    return handle


def assign_variable(n: Node) -> Any:
    n.importer.assign([_variable(n)], [n.x(1)])
    return []


RULES = (
    Rule("ASSIGN_VARIABLE", assign_variable),
    Rule("CALL", called("subgraph")),
    Rule("CALL_ONCE", call_once),
    Rule("IF", if_),
    Rule("READ_VARIABLE", lambda n: n.importer.read(_variable(n))),
    Rule("STABLEHLO_COMPOSITE", called("decomposition_subgraph_index")),
    Rule("STABLEHLO_WHILE", while_),
    Rule("VAR_HANDLE", lambda n: [handle_of(n.operator)]),
    Rule("WHILE", while_),
)
