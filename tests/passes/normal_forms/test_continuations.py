"""ToCPS and UnCPS."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, FuncType, IRModule, TensorType, Var, post_order
from relaylang.ops.build import op_call
from relaylang.testing.generators.programs import Programs
from relaylang.transform import InferType, ToCPS, UnCPS, to_cps, un_cps
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning

TEXT = """import "prelude.rly"
def @fact(%n: int32) -> int32 { if (less(%n, 1)) { 1 } else { multiply(%n, @fact(subtract(%n, 1))) } }
def @main(%n: int32) -> int32 {
  let %r = ref(%n);
  let %f = fn (%x: int32) { ref_write(%r, add(%x, 1)); @fact(%x) };
  let %g = @fact;
  let %k = fn (%x: int32) { %x };
  let %y = %k(match (Some(%f)) { Some(%h) => %h(ref_read(%r)), None => 0 });
  add(%g(%f(3)), add(%y, ref_read(%r)))
}
"""


def there_and_back(mod: IRModule) -> IRModule:
    return InferType()(UnCPS()(InferType()(ToCPS()(mod))))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(25))
def test_meaning(seed: int) -> None:
    keeps_meaning(there_and_back, Programs(seed).module(), seed)


def test_effects_recursion_and_functions_in_data() -> None:
    mod = InferType()(relay.parse(TEXT))
    assert int(evaluate(there_and_back(mod), np.int32(2))) == int(evaluate(mod, np.int32(2)))


def test_every_call_is_the_last_thing_done() -> None:
    mod = InferType()(ToCPS()(InferType()(relay.parse(TEXT))))
    main = mod["main"]
    assert isinstance(main.checked_type, FuncType)
    assert main.checked_type.ret_type == main.type_params[-1]
    for func in mod.functions.values():
        for node in post_order(func):
            if isinstance(node, Call) and isinstance(node.op, Var):
                assert node.checked_type == func.type_params[-1]


def test_functions_one_by_one() -> None:
    mod = InferType()(relay.parse(TEXT))
    func = un_cps(InferType()(IRModule.from_expr(to_cps(mod["fact"], mod), mod.functions))["main"])
    assert "fact_cps" in mod
    new = InferType()(IRModule.from_expr(func, {g: f for g, f in mod.functions.items() if g.name_hint != "main"}))
    assert int(evaluate(new, np.int32(5))) == 120


def test_another_form_is_told() -> None:
    mod = InferType()(relay.parse(TEXT))
    with pytest.raises(RelayError) as wrong:
        un_cps(mod["fact"])
    assert wrong.value.diagnostics[0].code == "R0515"


def test_work_is_linear() -> None:
    def prepare(size: int):  # type: ignore[no-untyped-def]
        x = Var("x", TensorType((), "float32"))
        f = Var("f", FuncType([TensorType((), "float32")], TensorType((), "float32")))
        body: relay.ir.Expr = x
        for _ in range(size):
            body = op_call("exp", [Call(f, [body])])
        mod = InferType()(IRModule.from_expr(Function([x, f], body)))
        return lambda: ToCPS()(mod)

    assert_linear(prepare)


HIGHER = """
    def @apply(%f: fn(int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
    def @both(%fs: (fn(int32) -> int32, int32), %x: int32) -> int32 { add(%fs.0(%x), %fs.1) }
    def @inc(%x: int32) -> int32 { add(%x, 1) }
    def @main(%x: int32) -> int32 { add(@apply(@inc, %x), @both((@inc, 5), %x)) }
"""


def test_functions_as_parameters_come_back_with_their_types() -> None:
    mod = InferType()(relay.parse(HIGHER))
    plain = InferType()(UnCPS()(ToCPS()(mod)))
    for gv, function in mod.functions.items():
        assert repr(plain[gv.name_hint].checked_type) == repr(function.checked_type)
    assert evaluate(plain, np.int32(3)) == evaluate(mod, np.int32(3)) == 5 + 9


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%f: fn(fn(int32) -> int32) -> int32) -> int32 { %f(fn (%x: int32) -> int32 { %x }) }",
        "def @main(%x: int32) -> fn(int32) -> int32 { fn (%y: int32) -> int32 { add(%x, %y) } }",
        "def @main(%r: ref(fn(int32) -> int32)) -> int32 { 1 }",
    ],
)
def test_functions_of_functions_have_no_plain_form(text: str) -> None:
    made = ToCPS()(InferType()(relay.parse(text)))
    with pytest.raises(RelayError) as wrong:
        UnCPS()(made)
    assert [d.code for d in wrong.value.diagnostics] == ["R0515"]
