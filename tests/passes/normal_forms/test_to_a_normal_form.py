"""A-normal form: TVM's on the golden programs; scopes, sharing and meaning on random ones; time and depth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import evaluate
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    children,
    const,
    pattern_vars,
    post_order,
)
from relaylang.ir.structural import assert_structural_equal, structural_equal
from relaylang.ops import get
from relaylang.ops.record import Op
from relaylang.passes.normal_forms.to_a_normal_form import ToANormalForm, is_anf, let_bindings, to_anf
from relaylang.syntax import astext, parse
from relaylang.testing.generators.graphs import Graphs
from relaylang.typing import infer
from tests.growth import assert_linear
from tests.shared import FRAGMENTS, golden, needs_shared

INT = TensorType((), "int32")


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    return found


def anf_text(text: str) -> str:
    return astext(to_anf(parse(text).expr), show_types=False).split("\n", 1)[1].strip()


@needs_shared
@pytest.mark.parametrize("path", golden("typed"), ids=lambda p: p.name.split(".")[0])
def test_golden_programs_become_what_tvm_made_of_them(path: Path) -> None:
    program = module(path.read_text())
    infer(program)
    ours = to_anf(program)
    theirs = module(path.with_name(path.name.replace("typed", "anf")).read_text())
    assert infer(ours) == infer(theirs) == []
    assert_structural_equal(ours, theirs)


@needs_shared
@pytest.mark.parametrize("kind", ["typed", "simplified", "fused"])
def test_golden_programs_are_well_formed_and_stay_as_they_are(kind: str) -> None:
    for path in golden(kind):
        once = to_anf(module(path.read_text()))
        assert all(is_anf(f) for f in once.functions.values())
        for function in once.functions.values():
            check_scopes(function)
        assert to_anf(once) is once
        assert to_anf(module(astext(once))) is not None


@needs_shared
def test_what_only_a_closure_uses_is_computed_in_it() -> None:
    text = (FRAGMENTS / "closure.relay").read_text()
    assert anf_text(text) == (
        "fn (%x) {\n  let %x_2 = fn (%y) {\n    let %x_0 = log(%x);\n    let %x_1 = add(%y, %x_0);\n    %x_1\n  };\n  %x_2\n}"
    )


def test_what_a_closure_and_others_use_is_computed_outside() -> None:
    found = to_anf(parse("fn (%x) { %1 = log(%x); %2 = fn (%y) { add(%y, %1) }; (%1, %2) }").expr)
    assert isinstance(found, Function)
    values = [value for _, value in let_bindings(found.body)]
    assert isinstance(values[0], Call) and values[0].op is get("log")
    assert isinstance(values[1], Function)


def test_what_both_branches_use_is_computed_before_them() -> None:
    text = "fn (%c: bool, %x: int32) { %0 = add(%x, 1); %1 = multiply(%x, %x); if (%c) { subtract(%0, %1) } else { %0 } }"
    function = to_anf(parse(text).expr)
    assert isinstance(function, Function)
    bound = dict(let_bindings(function.body))
    branch = next(v for v in bound.values() if isinstance(v, If))
    before = [v.op.name for v in bound.values() if isinstance(v, Call) and isinstance(v.op, Op)]
    inside = [v.op.name for _, v in let_bindings(branch.true_branch) if isinstance(v, Call) and isinstance(v.op, Op)]
    assert before == ["add"]
    assert inside == ["multiply", "subtract"]


def test_constants_are_bound_and_other_atoms_stay() -> None:
    text = "def @f(%x: int32) -> int32 { %x }\ndef @main(%x: int32) -> int32 { @f(add(%x, 1)) }"
    assert astext(to_anf(module(text)), show_types=False).count("let") == 3


def test_primitive_functions_are_values() -> None:
    text = "fn (%x: int32) { %0 = fn (%p: int32, Primitive=1) { add(add(%p, %p), %p) }; %0(%x) }"
    program = parse(text).expr
    inner = next(n for n in post_order(program) if isinstance(n, Function) and n.attrs.get("Primitive"))
    function = to_anf(program)
    assert isinstance(function, Function)
    assert next(v for _, v in let_bindings(function.body)) is inner


def test_functions_of_other_compilers_are_left_alone() -> None:
    m = module('def @f(%x: int32, Compiler="c") -> int32 { add(add(%x, 1), 2) }\ndef @main(%x: int32) { @f(add(%x, 1)) }')
    assert to_anf(m)["f"] is m["f"]
    assert to_anf(m)["main"] is not m["main"]


def test_types_and_places_are_kept() -> None:
    m = module("def @main(%x: Tensor[(2), float32]) { nn.relu(add(%x, %x)) }")
    infer(m)
    found = to_anf(m)["main"]
    bindings = list(let_bindings(found.body))
    assert [v.type_annotation for v, _ in bindings] == [TensorType((2,), "float32")] * 2
    assert all(v.checked_type is not None and e.checked_type is not None for v, e in bindings)
    assert [e.span.text for _, e in bindings] == ["add(%x, %x)", "nn.relu(add(%x, %x))"]
    assert found.checked_type == m["main"].checked_type
    assert infer(to_anf(m)) == []


def test_an_expression_that_is_no_function() -> None:
    assert anf_text("if (less(1, 2)) { add(1, 2) } else { 3 }").count("let") == 8
    assert to_anf(Var("x")).name_hint == "x"


def test_new_names_avoid_those_that_are_taken() -> None:
    function = to_anf(parse("fn (%x_0: int32, %x_2: int32) { let %x_1 = add(%x_0, %x_2); multiply(%x_1, %x_1) }").expr)
    names = [v.name_hint for n in post_order(function) if isinstance(n, Let) for v in [n.variable]]
    assert len({*names, "x_0", "x_2"}) == len(names) + 2


def test_recursive_lets_stay_recursive() -> None:
    text = """fn (%n: int32) {
      let %f = fn (%i: int32) -> int32 { if (less(%i, 1)) { 0 } else { add(%i, %f(subtract(%i, 1))) } };
      add(%f(%n), 1)
    }"""
    assert evaluate(to_anf(parse(text).expr), 4) == 11


def test_it_is_a_pass() -> None:
    m = module("def @main(%x: int32) { add(add(%x, 1), 2) }")
    assert structural_equal(ToANormalForm()(m), to_anf(m))


# Random programs, and a meaning of programs that is written down another way.


def scopes_of(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Function):
        return (node.body,)
    if isinstance(node, If):
        return (node.true_branch, node.false_branch)
    return tuple(c.rhs for c in node.clauses) if isinstance(node, Match) else ()


def check_scopes(function: Function) -> None:
    """Every variable is used where it is bound, bound once, and no operand is anything but an atom."""
    bound: set[Var] = set()
    work: list[tuple[Expr, frozenset[Var]]] = [(function.body, frozenset(function.params))]
    while work:
        scope, known = work.pop()
        names = set(known)

        def use(atom: Expr, names: set[Var] = names) -> None:
            assert isinstance(atom, (Var, GlobalVar, Op, Constructor))
            assert not isinstance(atom, Var) or atom in names

        while isinstance(scope, Let):
            value = scope.value
            assert scope.variable not in bound
            bound.add(scope.variable)
            if isinstance(value, Function):
                names.add(scope.variable)
                inner = frozenset(names | set(value.params))
                work += [] if value.attrs.get("Primitive") else [(value.body, inner)]
            elif isinstance(value, If):
                use(value.cond)
                work += [(body, frozenset(names)) for body in scopes_of(value)]
            elif isinstance(value, Match):
                use(value.data)
                work += [(c.rhs, frozenset(names | set(pattern_vars(c.lhs)))) for c in value.clauses]
            elif isinstance(value, Var):
                use(value)
            elif not isinstance(value, (Constant, GlobalVar, Op, Constructor)):
                for operand in children(value):
                    use(operand)
            names.add(scope.variable)
            scope = scope.body
        use(scope)


def meaning(expr: Expr, env: dict[Var, Any], done: dict[int, Any]) -> Any:
    """The value of an expression as a tree; `done` keeps a scope's shared nodes."""
    if isinstance(expr, Var):
        return env[expr]
    if id(expr) in done:
        return done[id(expr)]
    value: Any
    if isinstance(expr, Constant):
        value = expr.data[()]
    elif isinstance(expr, Call):
        args = [meaning(a, env, done) for a in expr.args]
        if isinstance(expr.op, Op):
            name = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "less": "__lt__"}[expr.op.name]
            value = getattr(args[0], name)(args[1])
        else:
            value = meaning(expr.op, env, done)(*args)
    elif isinstance(expr, Tuple):
        value = tuple(meaning(f, env, done) for f in expr.fields)
    elif isinstance(expr, TupleGetItem):
        value = meaning(expr.tuple_value, env, done)[expr.index]
    elif isinstance(expr, If):
        taken = expr.true_branch if meaning(expr.cond, env, done) else expr.false_branch
        value = meaning(taken, env, dict(done))
    elif isinstance(expr, Let):
        inside = {**env, expr.variable: meaning(expr.value, env, done)}
        value = meaning(expr.body, inside, dict(done))
    else:
        assert isinstance(expr, Function)
        body, params = expr.body, expr.params
        value = lambda *args: meaning(body, {**env, **dict(zip(params, args))}, {})  # noqa: E731
    done[id(expr)] = value
    return value


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_meaning(seed: int) -> None:
    function = Graphs(seed).function()
    with np.errstate(all="ignore"):
        wanted = meaning(function.body, dict(zip(function.params, (np.int32(3), np.int32(-2)))), {})
    for let_results in (True, False):
        found = to_anf(function, let_results=let_results)
        assert isinstance(found, Function)
        check_scopes(found)
        assert is_anf(found)
        assert to_anf(found) is found
        assert evaluate(found, 3, -2) == wanted
    assert evaluate(function, 3, -2) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_every_node_is_bound_once(seed: int) -> None:
    function = Graphs(seed).function()
    wanted = sum(1 for n in post_order(function.body) if isinstance(n, Call))
    found = to_anf(function)
    assert isinstance(found, Function)
    assert sum(1 for n in post_order(found.body) if isinstance(n, Call)) == wanted


@pytest.mark.sweep
def test_time_is_linear_and_depth_no_matter() -> None:
    def program(n: int) -> Function:
        x = Var("x", INT)
        expr: Expr = x
        one = const(1)
        for _ in range(n):
            expr = Call(get("add"), (expr, one))
        for i in range(n):
            expr = Let(Var(f"v{i}", INT), Call(get("add"), (x, one)), expr)
        for _ in range(n // 10):
            expr = If(Call(get("less"), (x, one)), expr, x)
        return Function((x,), expr, INT)

    def prepare(n: int) -> Callable[[], object]:
        function = program(n)
        return lambda: to_anf(function)

    assert_linear(prepare)
    assert is_anf(to_anf(program(20_000)))
