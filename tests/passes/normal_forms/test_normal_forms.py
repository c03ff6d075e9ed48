"""Graph and basic block normal form; what holds for all three forms on generated programs, some of them with effects."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang import transform
from relaylang.interpreter import evaluate
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    const,
    free_vars,
    post_order,
)
from relaylang.ir.structural import assert_structural_equal
from relaylang.ops import get
from relaylang.ops.record import Op
from relaylang.passes.normal_forms.to_a_normal_form import is_anf, to_anf
from relaylang.passes.normal_forms.to_basic_block_normal_form import is_bbnf, to_bbnf
from relaylang.passes.normal_forms.to_graph_normal_form import to_gnf
from relaylang.syntax import astext, parse
from relaylang.testing.generators.any_ir import AnyPrograms
from relaylang.testing.generators.graphs import Effects, Graphs
from relaylang.typing import infer
from tests.cli.command import relay
from tests.growth import assert_linear
from tests.passes.normal_forms.test_to_a_normal_form import check_scopes
from tests.shared import few, golden, needs_shared, networks

INT = TensorType((), "int32")
FORMS: list[Callable[[Any], Any]] = [to_anf, to_gnf, to_bbnf]


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    return found


def text_of(node: Any) -> str:
    return astext(node, show_types=False).split("\n", 1)[1].strip()


def lets(expr: Expr) -> list[Let]:
    return [n for n in post_order(expr) if isinstance(n, Let)]


@needs_shared
@pytest.mark.parametrize("path", networks(), ids=lambda p: p.name.split(".")[0])
def test_the_command_prints_what_tvm_made_of_the_golden_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = relay(capsys, "print", path, "--anf", "--style", "tvm")
    assert (ran.status, ran.err) == (0, "")
    ours, theirs = module(ran.out), module(path.with_name(path.name.replace("typed", "anf")).read_text())
    assert_structural_equal(ours, theirs)
    assert infer(ours) == infer(theirs) == []
    assert_structural_equal(ours, theirs)


@needs_shared
def test_the_graphs_of_golden_programs_come_back() -> None:
    for path in golden("typed"):
        typed = module(path.read_text())
        anf = module(path.with_name(path.name.replace("typed", "anf")).read_text())
        assert infer(typed) == []
        assert_structural_equal(to_gnf(anf), to_gnf(typed))
        if not any(lets(f) for f in typed.functions.values()):
            assert_structural_equal(to_gnf(anf), typed)
            assert to_gnf(typed) is typed


# What each form says.


def test_lets_dissolve_into_shared_nodes() -> None:
    found = to_gnf(parse("fn (%x: int32) { let %y = add(%x, %x); let %dead = negative(%y); multiply(%y, %y) }").expr)
    assert isinstance(found, Function) and isinstance(found.body, Call)
    assert found.body.args[0] is found.body.args[1]
    assert not lets(found)


def test_functions_that_call_themselves_keep_their_let() -> None:
    text = """fn (%n: int32) {
      let %one = 1;
      let %f = fn (%i: int32) -> int32 { if (less(%i, %one)) { 0 } else { add(%i, %f(subtract(%i, %one))) } };
      add(%f(%n), %one)
    }"""
    found = to_gnf(parse(text).expr)
    assert [let.variable.name_hint for let in lets(found)] == ["f"]
    assert evaluate(found, 4) == 11


REFERENCES = """fn (%x: int32) {
  let %r = ref(%x);
  let %old = ref_read(%r);
  let %w = ref_write(%r, 5);
  let %y = add(%old, 1);
  (%y, %old, ref_read(%r))
}"""


def test_what_touches_references_keeps_its_let() -> None:
    found = to_gnf(parse(REFERENCES).expr)
    assert [let.variable.name_hint for let in lets(found)] == ["w", "old", "r"]
    assert [int(v) for v in evaluate(found, 2)] == [3, 2, 5]


def test_a_function_without_effects_is_told_from_one_with() -> None:
    m = module("""
    def @pure(%x: int32) -> int32 { add(%x, 1) }
    def @write(%r: ref(int32)) -> int32 { let %w = ref_write(%r, 9); 1 }
    def @main(%x: int32) {
      let %r = ref(%x);
      let %a = @pure(%x);
      let %b = @write(%r);
      let %c = ref_read(%r);
      (%a, %b, %c)
    }""")
    found = to_gnf(m)
    assert [let.variable.name_hint for let in lets(found["main"])] == ["c", "b", "r"]
    assert [int(v) for v in evaluate(found, 1)] == [2, 1, 9]


def test_basic_blocks_bind_what_both_branches_need() -> None:
    text = """fn (%c: bool, %x: float32) {
      %0 = add(%x, 1f);
      if (%c) { %1 = multiply(%0, 2f); add(%1, %1) } else { multiply(%0, 3f) }
    }"""
    found = to_bbnf(parse(text).expr)
    assert text_of(found) == (
        "fn (%c: bool, %x: float32) {\n"
        "  let %x_0 = add(%x, 1f);\n"
        "  if (%c) {\n"
        "    %0 = multiply(%x_0, 2f);\n"
        "    add(%0, %0)\n"
        "  } else {\n"
        "    multiply(%x_0, 3f)\n"
        "  }\n"
        "}"
    )
    assert is_bbnf(found) and to_bbnf(found) is found


def test_basic_blocks_bind_in_the_innermost_block_around_all_uses() -> None:
    text = """fn (%a: bool, %b: bool, %y: float32, %z: float32) {
      %0 = add(%y, %y);
      %1 = add(%z, %z);
      if (%a) { if (%b) { add(%1, %0) } else { add(3f, %0) } } else { if (%b) { %1 } else { 1f } }
    }"""
    found = to_bbnf(parse(text).expr)
    assert isinstance(found, Function) and isinstance(found.body, Let)
    assert isinstance(found.body.body, If)
    inner = found.body.body.true_branch
    assert isinstance(inner, Let) and isinstance(inner.body, If) and isinstance(inner.value, Call)
    assert inner.value.args[0] is found.params[2]


def test_basic_blocks_leave_what_one_block_needs() -> None:
    m = module("def @main(%x: int32) { %0 = add(%x, 1); let %y = multiply(%0, %0); subtract(%y, %0) }")
    assert to_bbnf(m) is m


def test_closures_share_what_is_computed_before_them() -> None:
    found = to_bbnf(parse("fn (%x) { %0 = add(%x, %x); (fn (%y) { add(%0, %y) }, fn (%z) { add(%0, %z) }) }").expr)
    assert len(lets(found)) == 1 and is_bbnf(found)


@pytest.mark.parametrize("seed", few(range(0, 300, 6), *range(0, 300, 60)))
def test_programs_of_every_kind_of_node(seed: int) -> None:
    """Well-scoped, not well-typed: matches, attributes and names of every kind."""
    m = AnyPrograms(random.Random(seed)).module()
    for form, check in ((to_anf, is_anf), (to_gnf, None), (to_bbnf, is_bbnf)):
        found = form(m)
        for name, function in found.functions.items():
            assert isinstance(function, Function)
            assert set(free_vars(function)) <= set(free_vars(m.functions[name]))
            assert check is None or function.attrs.get("Primitive") or check(function)
        again = module(astext(found))
        assert_structural_equal(again, found)


@pytest.mark.parametrize("name", ["ToANormalForm", "ToGraphNormalForm", "ToBasicBlockNormalForm"])
def test_they_are_passes(name: str) -> None:
    m = module("def @main(%c: bool, %x: int32) { %0 = add(%x, 1); if (%c) { let %y = %0; %y } else { %0 } }")
    found = getattr(transform, name)()(m)
    assert isinstance(found, IRModule) and found is not m
    assert infer(found) == []
    assert evaluate(found, True, 4) == evaluate(found, False, 4) == 5


@pytest.mark.parametrize("form", FORMS)
def test_primitive_and_foreign_functions_stay(form: Callable[[Any], Any]) -> None:
    m = module("""
    def @f(%x: int32, Compiler="c") -> int32 { let %y = add(%x, 1); %y }
    def @main(%x: int32) { %0 = fn (%p: int32, Primitive=1) { let %q = add(%p, %p); multiply(%q, %q) }; %0(%x) }""")
    found = form(m)
    assert found["f"] is m["f"]
    inner = next(n for n in post_order(found["main"]) if isinstance(n, Function) and n.attrs.get("Primitive"))
    assert len(lets(inner)) == 1


@pytest.mark.parametrize("option", ["--gnf", "--bbnf"])
def test_the_command_prints_each_form(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.relay"
    path.write_text("def @main(%c: bool, %x: int32) { %0 = add(%x, 1); if (%c) { let %y = %0; %y } else { %0 } }")
    ran = relay(capsys, "print", path, option, "--no-types")
    assert ran.status == 0
    assert ("let" in ran.out) == (option == "--bbnf")
    assert_structural_equal(module(ran.out), (to_gnf if option == "--gnf" else to_bbnf)(module(path.read_text())))
    both = relay(capsys, "print", path, "--anf", option)
    assert both.status == 2 and "not allowed with" in both.err


# Generated programs with a reference, and what they mean by a definition of its own.


def meaning(expr: Expr, env: dict[Var, Any], done: dict[int, Any]) -> Any:
    """The value of an expression: operands from left to right, each node of a block once."""
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
            value = {"add": np.add, "subtract": np.subtract, "less": np.less}[expr.op.name](*args)
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
        env[expr.variable] = meaning(expr.value, env, done)
        value = meaning(expr.body, env, done)
    elif isinstance(expr, RefCreate):
        value = [meaning(expr.value, env, done)]
    elif isinstance(expr, RefRead):
        value = meaning(expr.ref, env, done)[0]
    elif isinstance(expr, RefWrite):
        cell, new = meaning(expr.ref, env, done), meaning(expr.value, env, done)
        cell[0] = new
        value = ()
    else:
        assert isinstance(expr, Function)
        body, params = expr.body, expr.params
        value = lambda *args: meaning(body, {**env, **dict(zip(params, args))}, {})  # noqa: E731
    done[id(expr)] = value
    return value


@pytest.mark.parametrize("seed", few(range(80), *range(10)))
def test_generated_programs_keep_their_meaning_and_the_order_of_effects(seed: int) -> None:
    function = Effects(seed).function()
    with np.errstate(all="ignore"):
        wanted = meaning(function.body, {function.params[0]: np.int32(7)}, {})
    for form in FORMS:
        found = form(function)
        assert tuple(evaluate(found, 7)) == wanted, form
        assert (
            sum(isinstance(n, RefWrite) for n in post_order(found)) == sum(isinstance(n, RefWrite) for n in post_order(function))
            or form is to_gnf
        )
    anf, bbnf = to_anf(function), to_bbnf(function)
    assert is_anf(anf) and is_bbnf(bbnf)
    check_scopes(anf)
    assert to_anf(anf) is anf and to_bbnf(bbnf) is bbnf


@pytest.mark.parametrize("seed", few(range(40), *range(5)))
def test_there_and_back_is_stable(seed: int) -> None:
    for function in (Effects(seed).function(), Graphs(seed).function()):
        once = to_anf(to_gnf(to_anf(function)))
        assert_structural_equal(to_anf(to_gnf(once)), once)
        assert_structural_equal(to_gnf(to_gnf(once)), to_gnf(once))
        if not lets(function):
            assert_structural_equal(once, to_anf(function))


def test_random_keys_are_drawn_in_dataflow_order() -> None:
    m = module("""def @main(%key: Tensor[(10), uint64]) {
      %0 = random.threefry_split(%key);
      %1 = random.uniform(%0.0, 0f, 1f, out_shape=[3], out_dtype="float32");
      %2 = random.uniform(%1.0, 0f, 1f, out_shape=[3], out_dtype="float32");
      (%2.1, %1.1, %0.1)
    }""")
    assert infer(m) == []
    for form in FORMS:
        assert infer(form(m)) == []
        names = [n.op.name for n in post_order(form(m)["main"]) if isinstance(n, Call) and isinstance(n.op, Op)]
        assert names == ["random.threefry_split", "random.uniform", "random.uniform"]


@pytest.mark.sweep
@pytest.mark.parametrize("form", few(FORMS, FORMS[0]))
def test_time_is_linear_and_depth_no_matter(form: Callable[[Any], Any]) -> None:
    def program(n: int) -> Function:
        x, c = Var("x", INT), Var("c", TensorType((), "bool"))
        expr: Expr = x
        one = const(1)
        for _ in range(n):
            expr = Call(get("add"), (expr, one))
        for _ in range(n // 4):
            expr = If(c, expr, Call(get("add"), (x, one)))
        for i in range(n):
            expr = Let(Var(f"v{i}", INT), Call(get("add"), (x, one)), expr)
        for i in range(n):
            expr = Let(Var(f"w{i}", INT), expr, x)
        return Function((c, x), expr, INT)

    def prepare(n: int) -> Callable[[], object]:
        function = program(n)
        return lambda: form(function)

    assert_linear(prepare)
    prepare(20_000)()
