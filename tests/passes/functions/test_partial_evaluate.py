"""PartialEvaluate: the meaning stays, and known values are computed."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, GlobalVar, If, IRModule, Match, RefRead, TensorType, Var, post_order
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.testing.generators.programs import Programs
from relaylang.transform import InferType, PartialEvaluate
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning

T = "Tensor[(2), float32]"
POWER = f"""
def @power(%n: int32, %x: {T}) -> {T} {{
  if (equal(%n, 0)) {{ ones_like(%x) }} else {{ multiply(%x, @power(subtract(%n, 1), %x)) }}
}}
"""
#: The rest of a program: the number of calls of operators, and whether it has other nodes.
PROGRAMS = {
    "power": (POWER + f"def @main(%x: {T}) {{ @power(4, %x) }}", 5, ()),
    "lists": (
        f"""import "prelude.rly"
        def @main(%x: {T}) {{
          @foldl(fn (%a: {T}, %b: {T}) {{ add(%a, %b) }}, %x, @map(fn (%a: {T}) {{ exp(%a) }}, Cons(%x, Cons(%x, Nil))))
        }}""",
        4,
        (),
    ),
    "references": (
        f"""def @main(%x: {T}) {{
          let %r = ref(1);
          ref_write(%r, add(ref_read(%r), 2));
          if (less(ref_read(%r), 2)) {{ exp(%x) }} else {{ tanh(%x) }}
        }}""",
        1,
        (),
    ),
    "unknown branches": (
        f"""def @main(%x: {T}, %c: bool) {{
          let %r = ref(1f);
          if (%c) {{ ref_write(%r, 2f) }} else {{ () }};
          multiply(%x, ref_read(%r))
        }}""",
        1,
        (If, RefRead),
    ),
    "branches that know what was there before": (
        f"""def @main(%x: {T}, %c: bool) {{
          let %r = ref(fn (%y: {T}) {{ exp(%y) }});
          let %s = ref(%x);
          if (%c) {{ ref_write(%s, tanh(%x)); ref_read(%r)(ref_read(%s)) }} else {{ ref_read(%r)(ref_read(%s)) }}
        }}""",
        3,
        (If,),
    ),
    "branches do not see each other": (
        f"""def @main(%x: {T}, %c: bool) {{
          let %r = ref(1f);
          %0 = if (%c) {{ ref_write(%r, 2f); ref_read(%r) }} else {{ ref_read(%r) }};
          (multiply(%x, %0), ref_read(%r))
        }}""",
        1,
        (If, RefRead),
    ),
    "unknown functions": (
        f"""def @main(%x: {T}, %f: fn () -> ()) {{
          let %r = ref(%x);
          let %g = fn () {{ ref_write(%r, exp(%x)) }};
          let %h = if (less(sum(%x), 1f)) {{ %g }} else {{ %f }};
          %h();
          ref_read(%r)
        }}""",
        3,
        (If, RefRead, Function),
    ),
    "loops": (
        f"""def @main(%x: {T}, %n: int32) {{
          let %loop = fn (%i: int32, %a: {T}) -> {T} {{
            if (less(%i, 1)) {{ %a }} else {{ %loop(subtract(%i, 1), multiply(%a, add(2f, 3f))) }}
          }};
          %loop(%n, %loop(2, %x))
        }}""",
        5,
        (If, Function),
    ),
    "no end": (
        f"""def @up(%i: int32, %x: {T}) -> {T} {{ if (less(10, %i)) {{ %x }} else {{ @up(add(%i, 1), exp(%x)) }} }}
        def @main(%x: {T}) {{ @up(0, %x) }}""",
        1,
        (),
    ),
    "captured": (
        f"""def @main(%x: {T}, %c: bool) {{
          let %pair = (%x, 2f);
          let %f = fn (%y: {T}) {{ (multiply(%y, %pair.1), %pair) }};
          let %g = if (%c) {{ %f }} else {{ fn (%y: {T}) {{ (%y, (%y, 1f)) }} }};
          (%pair, %g(%x), %f(%x))
        }}""",
        2,
        (If, Function),
    ),
}


def run(mod: IRModule) -> IRModule:
    return InferType()(PartialEvaluate()(mod))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(40))
def test_meaning(seed: int) -> None:
    keeps_meaning(run, Programs(seed).module(), seed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_remains(name: str) -> None:
    text, calls, more = PROGRAMS[name]
    mod = InferType()(relay.parse(text))
    new = run(mod)
    x, y = np.array([0.25, 0.5], "float32"), np.array([1.5, 2], "float32")
    for given in ([x], [y]) if len(mod["main"].params) == 1 else ():
        np.testing.assert_allclose(evaluate(new, *given), evaluate(mod, *given), rtol=1e-6)
    if name in ("unknown branches", "captured") or name.startswith("branches"):
        for c in (True, False):
            assert str(evaluate(new, x, np.array(c))) == str(evaluate(mod, x, np.array(c)))
    if name == "loops":
        assert str(evaluate(new, x, np.int32(3))) == str(evaluate(mod, x, np.int32(3)))
    nodes = [n for n in post_order(new["main"].body)]
    assert sum(isinstance(n, Call) and isinstance(n.op, Op) for n in nodes) == calls
    kinds = {type(n) for n in nodes if isinstance(n, (If, Match, RefRead, Function))}
    assert kinds == set(more)


def test_unfolding_has_a_bound() -> None:
    """Each function calls the one before it twice: whole, that would be 2 ** 60 calls."""
    x = Var("x", TensorType((), "float32"))
    functions = {GlobalVar("f0"): Function([x], op_call("exp", [x]), TensorType((), "float32"))}
    for i in range(60):
        last, y = list(functions)[-1], Var("y", TensorType((), "float32"))
        functions[GlobalVar(f"f{i + 1}")] = Function([y], Call(last, [Call(last, [y])]), TensorType((), "float32"))
    new = run(InferType()(IRModule(functions)))
    assert sum(1 for f in new.functions.values() for _ in post_order(f)) < 100_000


def test_a_countdown_that_is_long() -> None:
    mod = InferType()(relay.parse(POWER + f"def @main(%x: {T}) {{ @power(700, %x) }}"))
    new = run(mod)
    given = np.array([0.5, 1], "float32")
    np.testing.assert_allclose(evaluate(new, given), evaluate(mod, given))
    assert not any(isinstance(n, If) for n in post_order(new["main"]))


@pytest.mark.sweep
def test_work_is_linear() -> None:
    def prepare(size: int):  # type: ignore[no-untyped-def]
        x = Var("x", TensorType((), "float32"))
        body: Expr = x
        for _ in range(size):
            body = op_call("multiply", [body, op_call("tanh", [body])])
        mod = InferType()(IRModule.from_expr(Function([x], body)))
        return lambda: PartialEvaluate()(mod)

    assert_linear(prepare)
