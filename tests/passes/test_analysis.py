"""Analyses: variables, operators, features, work."""

from __future__ import annotations

import pytest

import relaylang as relay
from relaylang.analysis import (
    Feature,
    all_dtypes,
    all_type_vars,
    bound_type_vars,
    call_graph,
    check_basic_block_normal_form,
    check_constant,
    detect_feature,
    extract_fused_functions,
    extract_intermdeiate_expr,
    extract_operators,
    free_type_vars,
    get_total_mac_number,
    unmatched_cases,
    well_formed,
)
from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Function,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternWildcard,
    TensorType,
    Tuple,
    TypeVar,
    Var,
    const,
    post_order,
)
from relaylang.ops.build import op_call
from relaylang.passes.analysis import reachable, recursive_functions, well_formed_problems
from relaylang.transform import InferType

NET = """
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(6, 4, 3, 3), float32], %d: Tensor[(10, 384), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3]);
  nn.dense(nn.batch_flatten(nn.relu(%0)), %d, units=10)
}
"""
CALLS = """
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
def @alone() { 1 }
def @main() { (@even(4), @even(5)) }
"""


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def test_operators_and_work_are_counted() -> None:
    mod = module(NET)
    assert extract_operators(mod) == {"nn.conv2d": 1, "nn.relu": 1, "nn.batch_flatten": 1, "nn.dense": 1}
    assert get_total_mac_number(mod["main"]) == 6 * 8 * 8 * 4 * 9 + 384 * 10
    assert all_dtypes(mod) == {"float32"}
    assert len(extract_fused_functions(mod)) == 3


def test_the_call_graph_and_its_circles() -> None:
    mod = module(CALLS)
    graph = {gv.name_hint: {c.name_hint: n for c, n in calls.items()} for gv, calls in call_graph(mod).items()}
    assert graph == {"even": {"odd": 1}, "odd": {"even": 1}, "alone": {}, "main": {"even": 2}}
    assert {gv.name_hint for gv in recursive_functions(mod)} == {"even", "odd"}
    assert [gv.name_hint for gv in reachable(mod, [mod.get_global_var("main")])] == ["even", "odd", "main"]


def test_features() -> None:
    found = detect_feature(module(CALLS))
    assert {Feature.fIf, Feature.fGlobalVar, Feature.fOp, Feature.fTuple} <= found and Feature.fLet not in found
    loop = "def @main(%x: int32) { let %f = fn (%y: int32) -> int32 { %f(%y) }; %f(%x) }"
    assert {Feature.fLetRec, Feature.fLet, Feature.fFunction} <= detect_feature(module(loop))
    assert Feature.fGraph in detect_feature(module("def @main(%x: int32) { %0 = add(%x, 1); multiply(%0, %0) }"))


def test_variables_that_are_not_bound_right() -> None:
    x = Var("x", TensorType((), "int32"))
    assert well_formed(Function([x], op_call("negative", [x])))
    assert not well_formed(Function([x], Let(x, const(1), x)))
    y = Var("y")
    outside = Tuple([Let(y, const(1), y), op_call("negative", [y])])
    assert not well_formed(Function([], outside))
    (problem,) = well_formed_problems(IRModule.from_expr(Function([], y)))
    assert problem.code == "R0509" and well_formed(y)


def test_type_variables() -> None:
    a = TypeVar("A")
    func = Function([Var("x", a)], Var("y", TypeVar("B")), None, [a])
    assert bound_type_vars(func) == [a]
    assert [t.name_hint for t in free_type_vars(func)] == ["B"] and [t.name_hint for t in all_type_vars(func)] == ["A", "B"]


def test_matches_that_miss_a_value() -> None:
    text = "type List { Cons(int32, List), Nil }\ndef @main(%l: List[]) { match? (%l) { Cons(%x, Nil) => { %x } } }"
    mod = relay.parse(text)
    (node,) = [n for n in post_order(mod["main"]) if isinstance(n, Match)]
    empty, longer = unmatched_cases(node, mod)
    assert isinstance(empty, PatternConstructor) and empty.constructor.name_hint == "Nil" and not empty.patterns
    assert isinstance(longer, PatternConstructor) and longer.constructor.name_hint == "Cons"
    assert isinstance(longer.patterns[0], PatternWildcard) and isinstance(longer.patterns[1], PatternConstructor)
    assert longer.patterns[1].constructor.name_hint == "Cons" and len(longer.patterns[1].patterns) == 2
    assert [type(p) for p in unmatched_cases(Match(node.data, []), mod)] == [PatternWildcard]


def test_parts_and_forms() -> None:
    mod = module(NET)
    part = extract_intermdeiate_expr(mod, 1)
    assert extract_operators(part) == {"nn.conv2d": 1, "nn.relu": 1}
    with pytest.raises(RelayError):
        extract_intermdeiate_expr(mod, 9)
    assert check_constant(Tuple([const(1), const(2)])) and not check_constant(Var("x"))
    shared = "def @main(%c: bool, %x: int32) { %0 = add(%x, 1); if (%c) { %0 } else { negative(%0) } }"
    assert not check_basic_block_normal_form(module(shared)["main"])
    assert check_basic_block_normal_form(mod["main"])


def test_visits_and_variables_come_in_tvms_order() -> None:
    text = "def @main(%x: float32, %f: fn (float32) -> float32) { let %a = add(%x, 1f); tanh(%f(%a)) }"
    main = module(text)["main"]
    kinds: list[str] = []
    relay.analysis.post_order_visit(main, lambda n: kinds.append(getattr(n, "name_hint", getattr(n, "name", type(n).__name__))))
    assert kinds == ["x", "f", "add", "Constant", "Call", "a", "tanh", "Call", "Call", "Let", "Function"]
    assert [v.name_hint for v in relay.analysis.bound_vars(main)] == ["x", "f", "a"]
    assert [v.name_hint for v in relay.analysis.free_vars(main.body.body)] == ["f", "a"]
    assert [v.name_hint for v in relay.analysis.all_vars(main.body)] == ["a", "x", "f"]


def test_type_variables_are_free_where_no_function_around_them_binds_them() -> None:
    mod = module("def @each[A, B](%f: fn (A) -> B, %x: A) -> B { @each(%f, %x) }")
    each = mod["each"]
    assert [t.name_hint for t in free_type_vars(each.body)] == ["A", "B"] and free_type_vars(each) == []


def test_a_value_that_two_blocks_need_is_no_basic_block_normal_form() -> None:
    shared = op_call("tanh", [x := Var("x", TensorType((2,)))])
    y = Var("y")
    nested = Let(y, op_call("exp", [shared]), op_call("add", [y, shared]))
    assert check_basic_block_normal_form(Function([x], nested))
    inner = Let(Var("z"), Let(y, op_call("exp", [shared]), y), shared)
    assert not check_basic_block_normal_form(Function([x], inner))


def test_type_variables_of_what_is_bound() -> None:
    a, b, c = (relay.TypeVar(name) for name in "abc")
    x, y, z = (relay.Var(name, t) for name, t in zip("xyz", (a, b, c)))
    assert set(all_type_vars(relay.Function([x], relay.Let(y, x, z)))) == {a, b, c}
    match = relay.Match(x, [relay.Clause(relay.PatternVar(y), z)])
    assert set(all_type_vars(match)) == {a, b, c}


def test_types_that_are_shared_again_and_again_are_seen_once() -> None:
    ty: relay.Type = relay.TensorType((2,), "int8")
    for _ in range(200):
        ty = relay.TupleType([ty, ty])
    x = relay.Var("x", ty)
    assert all_dtypes(relay.transform.InferType()(relay.IRModule.from_expr(x))) == {"int8"}
