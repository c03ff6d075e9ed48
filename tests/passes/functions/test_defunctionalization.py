"""Functions as data."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Function, FuncType, IRModule, Var, post_order
from relaylang.testing.generators.programs import Programs
from relaylang.transform import Defunctionalization, InferType
from tests.passes.meaning import keeps_meaning

PROGRAMS = [
    """import "prelude.rly"
    def @main(%n: int32) -> int32 {
      let %add = fn (%x: int32) { add(%x, %n) };
      let %list = @map(%add, Cons(1, Cons(2, Nil)));
      @foldl(fn (%a: int32, %b: int32) { add(multiply(%a, 10), %b) }, 0, %list)
    }""",
    """import "prelude.rly"
    def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
    def @next(%x: int32) -> int32 { add(%x, 1) }
    def @main(%n: int32) {
      let %more = fn (%k: int32) -> fn (int32) -> int32 { fn (%x: int32) { add(%x, multiply(%k, %n)) } };
      let %r = ref(@next);
      let %a = @twice(ref_read(%r), 3);
      ref_write(%r, %more(7));
      let %loop = fn (%i: int32, %f: fn (int32) -> int32) -> int32 {
        if (less(%i, 1)) { %f(%a) } else { %loop(subtract(%i, 1), %more(%f(%i))) }
      };
      let %some = match (@map(Some, Cons(%a, Nil))) { Cons(Some(%y), _) => %y, _ => 0 };
      (@twice(fn (%p: (int32, int32)) { (%p.1, add(%p.0, %n)) }, (%a, 2)), @twice(ref_read(%r), %loop(3, @next)), %some)
    }""",
]


def first_order(mod: IRModule) -> bool:
    return not any(
        (isinstance(n, Function) and n is not f) or (isinstance(n, Var) and isinstance(n.checked_type, FuncType))
        for f in mod.functions.values()
        for n in post_order(f)
    )


def run(mod: IRModule) -> IRModule:
    new = InferType()(Defunctionalization()(mod))
    assert first_order(new)
    return new


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs(text: str) -> None:
    mod = InferType()(relay.parse(text))
    assert evaluate(run(mod), np.int32(4)) == evaluate(mod, np.int32(4))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(25))
def test_meaning(seed: int) -> None:
    keeps_meaning(run, Programs(seed).module(), seed)


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%f: fn (int32) -> int32) { %f(1) }",
        "def @main(%x: int32) { fn () { %x } }",
        "type Box { B(fn (int32) -> int32) } def @main(%x: int32) { match (B(fn (%y: int32) { %y })) { B(%f) => %f(%x) } }",
    ],
)
def test_other_forms_are_told(text: str) -> None:
    mod = InferType()(relay.parse(text))
    with pytest.raises(RelayError) as wrong:
        Defunctionalization()(mod)
    assert wrong.value.diagnostics[0].code == "R0515"


def test_a_type_of_functions_without_a_function() -> None:
    text = """
    def @unused(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%x) }
    def @main(%n: int32) -> int32 { let %g = fn (%a: bool) { %a }; if (%g(True)) { %n } else { 0 } }
    """
    new = run(InferType()(relay.parse(text)))
    assert evaluate(new, np.int32(4)) == 4
    assert relay.parse(relay.astext(new)) is not None
