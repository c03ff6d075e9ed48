"""Large programs and large values: linear work, and no recursion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.interpreter.values import ConstructorValue, RefValue
from relaylang.ir import Call, Expr, Function, GlobalVar, If, IRModule, TensorType, Tuple, TupleGetItem, Var
from relaylang.ops.build import op_call
from relaylang.typing import check
from tests.backends.vm.programs import LISTS
from tests.backends.vm.test_programs import module
from tests.growth import Run, assert_linear
from tests.shared import few

NEXT = GlobalVar("next")
#: A program's step: from a value and the input to the next value.
STEPS: dict[str, tuple[str, Callable[[Expr, Var], Expr]]] = {
    "scalars": ("int32", lambda v, x: op_call("add", [v, x])),
    "branches": ("bool", lambda v, x: If(v, x, op_call("logical_not", [x]))),
    "tuples": ("int32", lambda v, x: TupleGetItem(Tuple([v, x]), 0)),
    "calls": ("int32", lambda v, x: Call(NEXT, [v])),
    "a value that is used twice": ("int32", lambda v, x: op_call("add", [v, v])),
}


def made(name: str, size: int) -> IRModule:
    dtype, step = STEPS[name]
    x, y = Var("x", TensorType((), dtype)), Var("y", TensorType((), dtype))
    value: Expr = x
    for _ in range(size):
        value = step(value, x)
    mod = IRModule({NEXT: Function([y], y), GlobalVar("main"): Function([x], value)})
    check(mod)
    return mod


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", STEPS)
def test_compilation_is_linear(name: str) -> None:
    def prepare(size: int) -> Run:
        mod = made(name, size)
        return lambda: compile_vm(mod, native=False)

    assert_linear(prepare)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.sweep
def test_a_hundred_thousand_nodes(name: str) -> None:
    one = True if STEPS[name][0] == "bool" else 1
    wanted = {"scalars": 100_001, "a value that is used twice": 0}.get(name, 1)
    assert compile_vm(made(name, 100_000)).run(one) == wanted


def test_values_pass_in_linear_work() -> None:
    mod = module(LISTS + "def @same(%l: List[(int32, float32)]) { %l }")
    executable = compile_vm(mod, entries=["same"])
    _, cons, nil = mod.get_type("List")

    def prepare(size: int) -> Run:
        item = ConstructorValue(nil)
        for number in range(size):
            item = ConstructorValue(cons, ((np.int32(number), np.float32(number)), item))
        return lambda: executable.call("same", (item,))

    assert_linear(prepare)


def test_a_million_nested_calls() -> None:
    text = "def @deep(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { add(1, @deep(subtract(%n, 1))) } }"
    assert compile_vm(module(text)).call("deep", (1_000_000,)) == 1_000_000


@pytest.mark.sweep
@pytest.mark.parametrize("size", few([50_000, 1_000_000], 50_000))
def test_a_long_list(size: int) -> None:
    """It is built, mapped, folded, turned round and appended to; it goes out to Python and comes back."""
    mod = module(
        LISTS
        + """
def @turn[A](%l: List[A], %done: List[A]) -> List[A] {
  match (%l) { Cons(%h, %t) => @turn(%t, Cons(%h, %done)), Nil => %done } }
def @append[A](%l: List[A], %m: List[A]) -> List[A] { match (%l) { Cons(%h, %t) => Cons(%h, @append(%t, %m)), Nil => %m } }
def @work(%l: List[int32]) { let %more = @map(fn (%x: int32) -> (int32, bool) { (add(%x, 1), less(%x, 3)) }, %l);
  let %turned = @turn(%more, Nil);
  (@foldl(fn (%a: int64, %p: (int32, bool)) -> int64 { add(%a, cast(%p.0, dtype="int64")) }, 0i64, @append(%turned, %more)),
   %turned) }
"""
    )
    executable = compile_vm(mod)
    made = executable.call("build", (size, ConstructorValue(mod.get_type("List")[2])))
    assert repr(made).startswith("Cons(1, Cons(2, Cons(3") and len(repr(made)) < 10_000
    total, item = executable.call("work", (made,))
    assert total == 2 * sum(range(2, size + 2))
    for number in range(size, 0, -1):
        (value, small), item = item.fields
        assert number % 999 or (value == number + 1 and small == (number < 3))
    assert not item.fields


def test_values_are_shared_as_they_were() -> None:
    """A value of 2**40 paths goes in and comes out with its forty objects, a cycle through a cell too."""
    mod = module("type Twin { Both(Twin, Twin), Knot(ref(Twin)) }\ndef @same(%t: Twin) { %t }")
    _, both, knot = mod.get_type("Twin")
    cell = RefValue()
    given = ConstructorValue(knot, (cell,))
    for _ in range(40):
        given = ConstructorValue(both, (given, given))
    cell.value = given
    found = top = compile_vm(mod).call("same", (given,))
    for _ in range(40):
        left, right = found.fields
        assert left is right
        found = left
    assert found.fields[0].value is top
