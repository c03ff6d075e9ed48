"""The devices of values, as a planned program says them."""

from __future__ import annotations

import relaylang as relay
from relaylang.ir import Call, Let, Tuple, Var, post_order
from relaylang.passes.devices.lexical import devices_of
from tests.growth import Run, assert_linear
from tests.passes.devices.test_plan_devices import HEAD, planned


def test_marks_functions_and_variables() -> None:
    mod = planned(
        HEAD
        + """ {
      let %f = fn (%a: Tensor[(2), float32]) { on_device(exp(%a), virtual_device="cpu") };
      let %b = %f(%x);
      add(on_device(%b, virtual_device="cpu"), @g(%y))
    } def @g(%p: Tensor[(2), float32]) -> Tensor[(2), float32] { negative(%p) }"""
    )
    found = devices_of(mod["main"], mod)
    named = {n.name_hint: found[n].device_type for n in found if isinstance(n, Var)}
    assert named == {"f": 1, "a": 1, "b": 1, "x": 1, "y": 2}
    calls = {getattr(n.op, "name", ""): found[n].device_type for n in found if isinstance(n, Call)}
    assert calls["exp"] == 1 and calls["add"] == 2
    assert {found[n].device_type for n in found if isinstance(n, Let)} == {2}
    assert found[mod.get_global_var("g")].device_type == 2 and found[mod["main"]].device_type == 2


def test_nothing_is_said() -> None:
    mod = relay.transform.InferType()(relay.parse(HEAD + " { (exp(%x), %y) }"))
    assert {d.device_type for d in devices_of(mod["main"]).values()} == {-1}
    assert sum(isinstance(n, Tuple) for n in devices_of(mod["main"])) == 1 and len(list(post_order(mod["main"]))) == 6


def test_sharing_costs_nothing() -> None:
    def doubled(n: int) -> relay.IRModule:
        x = relay.var("x", shape=(2,))
        body: relay.Expr = x
        for _ in range(n):
            body = Call(relay.ops.get("add"), [body, body])
        return relay.IRModule.from_expr(relay.Function([x], body))

    def prepare(n: int) -> Run:
        mod = doubled(n)
        return lambda: devices_of(mod["main"], mod)

    assert_linear(prepare)
