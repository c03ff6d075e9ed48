"""DeadCodeElimination: lets that go, and those that stay."""

from __future__ import annotations

import relaylang as relay
from relaylang.ir import Let, post_order
from relaylang.ir.structural import assert_structural_equal, structural_equal
from tests.passes.texts import after, main, module, ops


def test_dead_lets_go_and_effects_stay() -> None:
    assert ops(after("DeadCodeElimination", main("let %a = exp(%x); let %b = nn.relu(%a); let %c = tanh(%x); %c"))) == ["tanh"]
    loop = "let %f = fn (%y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { %f(%y) }; %x"
    assert not any(isinstance(n, Let) for n in post_order(after("DeadCodeElimination", main(loop))["main"]))
    write = "let %r = ref(%x); let %u = ref_write(%r, exp(%x)); ref_read(%r)"
    mod = after("DeadCodeElimination(inline_once=True)", main(write))
    assert sum(isinstance(n, Let) for n in post_order(mod["main"])) == 2
    gone = relay.transform.DeadCodeElimination(ignore_impurity=True)(module(main(write)))
    assert sum(isinstance(n, Let) for n in post_order(gone["main"])) == 1
    once = after("DeadCodeElimination(inline_once=True)", main("let %a = exp(%x); let %b = nn.relu(%a); add(%b, %b)"))
    assert sum(isinstance(n, Let) for n in post_order(once["main"])) == 1


def test_references_that_nobody_needs_and_loops_without_effects_go() -> None:
    text = main("""
      let %r = ref(%x);
      let %loop = fn (%i: int32, %a: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
        if (less(%i, 1)) { %a } else { %loop(subtract(%i, 1), exp(%a)) }
      };
      let %dead = %loop(2, %x);
      tanh(%x)""")
    assert_structural_equal(after("DeadCodeElimination", text), module(main("tanh(%x)")))
    kept = text.replace("%a } else", "ref_write(%r, %a); %a } else")
    assert not structural_equal(after("DeadCodeElimination", kept), module(main("tanh(%x)")))


def test_what_stands_once_is_put_there_also_beside_effects() -> None:
    text = main("let %r = ref(%x); let %a = exp(%x); ref_write(%r, tanh(%x)); let %b = negative(%a); add(%b, ref_read(%r))")
    mod = after("DeadCodeElimination(inline_once=True)", text)
    assert [n.variable.name_hint for n in post_order(mod["main"]) if isinstance(n, Let)] == ["_", "r"]


def test_calls_that_change_a_state_stay() -> None:
    core = relay.IRModule()
    core.import_from_std("core.rly")
    text = "let %s = memory.alloc_storage(8i64, 4, 1i64); let %k = memory.kill(%s); 0"
    mod = relay.parse(f"def @f(%x: int32) -> int32 {{ {text} }} def @main() -> int32 {{ let %y = @f(1); 0 }}", "f", core)
    mod = relay.transform.DeadCodeElimination()(relay.transform.InferType()(mod))
    assert [len([n for n in post_order(mod[name]) if isinstance(n, Let)]) for name in ("f", "main")] == [2, 1]
    none = relay.transform.DeadCodeElimination(ignore_impurity=True)(mod)
    assert not any(isinstance(n, Let) for name in ("f", "main") for n in post_order(none[name]))
