"""What programs mean: functions, closures, recursion, data types, references, arguments by order and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import Evaluator, RefValue, evaluate, value_text
from relaylang.ir import IRModule
from relaylang.syntax import parse
from tests.growth import assert_linear

LISTS = """
type List[A] { Cons(A, List[A]), Nil, }
def @build(%n: int32, %acc: List[int32]) -> List[int32] {
  if (equal(%n, 0)) { %acc } else { @build(subtract(%n, 1), Cons(%n, %acc)) }
}
def @total(%l: List[int32]) -> int32 {
  match (%l) { Cons(%h, %t) => { add(%h, @total(%t)) }, Nil => { 0 }, }
}
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil() }, }
}
def @main(%n: int32) -> int32 { @total(@build(%n, Nil())) }
"""

NUMBERS = """
def @loop(%i: int32, %acc: int64) -> int64 {
  if (equal(%i, 0)) { %acc } else { @loop(subtract(%i, 1), add(%acc, cast(%i, dtype="int64"))) }
}
def @fib(%n: int32) -> int32 {
  if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) }
}
def @sum(%n: int64) -> int64 { if (equal(%n, 0i64)) { 0i64 } else { add(%n, @sum(subtract(%n, 1i64))) } }
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
"""


def module(text: str) -> IRModule:
    found = parse(text, "test.relay").module
    assert found is not None
    return found


def run(text: str, *args: Any, **named: Any) -> Any:
    return evaluate(module(text), *args, **named)


def value(text: str, **named: Any) -> Any:
    return evaluate(parse(text).expr, **named)


def test_scalars_come_out_as_arrays_of_no_dimensions() -> None:
    result = run("def @main(%x: int8) { add(%x, %x) }", 100)
    assert isinstance(result, np.ndarray) and result.shape == () and result.dtype == np.int8 and result == -56


def test_tuples_and_projections() -> None:
    result = run("def @main(%x: int32) { let %t = (%x, (add(%x, 1), True)); (%t.1.0, %t, ()) }", 4)
    assert value_text(result) == "(5, (4, (5, True)), ())"
    assert all(isinstance(v, np.ndarray) for v in (result[0], result[1][0], result[1][1][0]))


def test_a_shared_node_is_evaluated_once() -> None:
    seen: list[str] = []
    m = module("def @main(%x: float32) { %0 = exp(%x); (add(%0, %0), multiply(%0, %0)) }")
    evaluate(m, 1.0, observer=lambda b, v, s: seen.append(b.value.op.name))
    assert seen == ["exp", "add", "multiply"]


def test_the_observer_gets_variable_value_and_time() -> None:
    told: list[Any] = []
    m = module("def @main(%x: float32) { let %y = exp(%x); let %z = log(%y); %z }")
    evaluate(m, 0.0, observer=lambda *what: told.append(what))
    assert [(b.variable.name_hint, float(v)) for b, v, _ in told] == [("y", 1.0), ("z", 0.0)]
    assert all(seconds >= 0 for _, _, seconds in told)


def test_only_the_branch_that_is_taken_is_evaluated() -> None:
    text = "def @main(%n: int32) { if (equal(%n, 0)) { 7 } else { divide(100, %n) } }"
    assert run(text, 0) == 7
    assert run(text, 3) == 33


def test_an_if_in_the_middle() -> None:
    text = """def @main(%n: int32) {
      let %a = if (less(%n, 10)) { if (less(%n, 5)) { 1 } else { 2 } } else { let %b = add(%n, 1); multiply(%b, %b) };
      add(%a, %n)
    }"""
    assert [int(run(text, n)) for n in (0, 7, 10)] == [1, 9, 131]


def test_closures_capture_values() -> None:
    text = """def @main(%x: int32) {
      let %f = fn (%y: int32) { fn (%z: int32) { add(add(%x, %y), %z) } };
      let %g = %f(10);
      let %h = %f(20);
      (%g(1), %h(2))
    }"""
    assert value_text(run(text, 100)) == "(111, 122)"


def test_a_local_function_may_call_itself() -> None:
    text = """def @main(%n: int32) {
      let %down = fn (%i: int32, %acc: int32) -> int32 {
        if (equal(%i, 0)) { %acc } else { %down(subtract(%i, 1), add(%acc, %n)) }
      };
      %down(5, 0)
    }"""
    assert run(text, 3) == 15


def test_functions_are_values() -> None:
    text = NUMBERS + "def @main(%n: int32) { let %f = if (less(%n, 3)) { @even } else { @odd }; %f(%n) }"
    assert [bool(run(text, n)) for n in (1, 2, 3, 4)] == [False, True, True, False]


def test_constructors_are_values() -> None:
    text = LISTS + "def @one() { let %c = Cons; %c(5, Nil()) }"
    assert value_text(evaluate(module(text), entry="one")) == "Cons(5, Nil)"


def test_a_closure_that_comes_out_can_be_called() -> None:
    made = Evaluator(module("def @main(%x: int32) { fn (%y: int32) { subtract(%x, %y) } }"))
    assert made.apply(made.call("main", (5,)), 3) == 2


def test_lists() -> None:
    m = module(LISTS)
    assert evaluate(m, 100) == 5050
    made = Evaluator(m)
    built = made.call("build", (3, made.expression(parse("Nil()", module=m).expr)))
    assert value_text(built) == "Cons(1, Cons(2, Cons(3, Nil)))"
    assert made.call("total", (built,)) == 6


def test_polymorphic_map() -> None:
    text = LISTS + "def @squares(%n: int32) { @map(fn (%x: int32) -> int32 { multiply(%x, %x) }, @build(%n, Nil())) }"
    assert value_text(evaluate(module(text), 4, entry="squares")) == "Cons(1, Cons(4, Cons(9, Cons(16, Nil))))"


def test_nested_patterns_take_the_first_clause_that_fits() -> None:
    text = (
        LISTS
        + """def @f(%l: List[int32]) -> int32 {
      match (%l) {
        Cons(%a, Cons(%b, _)) => { add(multiply(%a, 10), %b) },
        Cons(%a, Nil) => { %a },
        _ => { -1 },
      }
    }
    def @g(%n: int32) { @f(@build(%n, Nil())) }"""
    )
    assert [int(evaluate(module(text), n, entry="g")) for n in (0, 1, 2, 3)] == [-1, 1, 12, 12]


def test_tuple_patterns() -> None:
    text = "def @main(%x: int32) { match ((%x, (2, 3))) { (%a, (%b, _)) => { subtract(%a, %b) }, } }"
    assert run(text, 10) == 8


def test_references_are_read_and_written_in_order() -> None:
    text = """def @main(%n: int32) {
      let %r = ref(%n);
      let %old = ref_read(%r);
      ref_write(%r, add(%old, 5));
      let %loop = fn (%i: int32) -> int32 {
        if (equal(%i, 0)) { ref_read(%r) } else {
          let %now = ref_read(%r); ref_write(%r, add(%now, %i)); %loop(subtract(%i, 1))
        }
      };
      (%old, %loop(10), %r)
    }"""
    old, new, cell = run(text, 1)
    assert (old, new) == (1, 61)
    assert isinstance(cell, RefValue) and cell.value == 61


@pytest.mark.parametrize("n, wanted", [(0, 0), (1, 1), (10, 55), (15, 610)])
def test_fibonacci(n: int, wanted: int) -> None:
    assert evaluate(module(NUMBERS), n, entry="fib") == wanted


def test_mutual_recursion() -> None:
    assert evaluate(module(NUMBERS), 1001, entry="odd")


@pytest.mark.sweep
def test_a_long_loop_takes_no_memory() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert evaluate(module(NUMBERS), 300_000, 0, entry="loop") == 300_000 * 300_001 // 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_a_deep_recursion_ends() -> None:
    assert evaluate(module(NUMBERS), 200_000, entry="sum") == 200_000 * 200_001 // 2


def test_long_lists_are_built_and_taken_apart() -> None:
    assert evaluate(module(LISTS), 50_000) == np.int32(50_000 * 50_001 // 2)


@pytest.mark.sweep
def test_a_long_chain_of_lets_is_linear() -> None:
    def program(n: int) -> IRModule:
        lets = [f"let %v{i} = add(%{'x' if i == 0 else f'v{i - 1}'}, 1);" for i in range(n)]
        return module("\n".join(["def @main(%x: int32) {", *lets, f"%v{n - 1}", "}"]))

    def prepare(n: int) -> Callable[[], object]:
        mod = program(n)
        return lambda: evaluate(mod, 5)

    assert evaluate(program(20_000), 5) == 20_005
    assert_linear(prepare)


def test_deeply_nested_branches() -> None:
    n = 3_000
    text = "def @main(%x: int32) { " + "if (less(%x, 0)) { 1 } else { " * n + "%x" + " }" * n + " }"
    assert run(text, 4) == 4


def test_memory_is_let_go_of() -> None:
    """Of 60 tensors of 8 MB in a chain, few are there at a time."""
    import tracemalloc

    chain = "".join(f"let %v{i} = add(%{f'v{i - 1}' if i else 'x'}, %x);" for i in range(60))
    m = module(f"def @main(%x: Tensor[(2000000), float32]) {{ {chain} %v59 }}")
    x = np.ones(2_000_000, np.float32)
    made = Evaluator(m)
    tracemalloc.start()
    try:
        assert made.call("main", (x,))[0] == 61
        assert tracemalloc.get_traced_memory()[1] < 4 * x.nbytes
    finally:
        tracemalloc.stop()


def test_what_a_branch_uses_lives_until_then() -> None:
    text = """def @main(%x: Tensor[(100), float32], %n: int32) {
      let %a = add(%x, %x);
      let %b = multiply(%a, %a);
      let %c = if (less(%n, 0)) { %a } else { let %d = add(%a, %b); if (equal(%n, 0)) { %d } else { %b } };
      let %f = fn (%y: Tensor[(100), float32]) { add(%y, %b) };
      (%c, %f(%c), %b)
    }"""
    for n, first in ((-1, 2.0), (0, 6.0), (1, 4.0)):
        c, f, b = run(text, np.ones(100, np.float32), n)
        assert (c[0], f[0], b[0]) == (first, first + 4, 4.0)


def test_primitive_functions_are_entered() -> None:
    text = "def @main(%x: float32) { %0 = fn (%p: float32, Primitive=1) { %1 = exp(%p); add(%1, %1) }; %0(%x) }"
    assert run(text, 0.0) == 2


def test_arguments_by_name() -> None:
    text = "def @main(%x: int32, %y: int32) { subtract(%x, %y) }"
    assert run(text, 5, y=3) == 2
    assert run(text, y=3, x=5) == 2
    assert run(text, values={"x": 9, "y": 4}) == 5


def test_free_variables_by_name() -> None:
    assert value("add(%x, %y)", values={"x": np.float32(1), "y": np.ones(2, np.float32)}).tolist() == [2, 2]


def test_missing_constants_by_name() -> None:
    text = "add(%x, meta[relay.Constant][0] /* ty=Tensor[(2), float32] */)"
    values = {"x": np.ones(2, np.float32), "meta[relay.Constant][0]": np.asarray([1, 2], np.float32)}
    assert value(text, values=values).tolist() == [2, 3]


def test_an_expression_may_call_a_module() -> None:
    m = module(NUMBERS)
    assert evaluate(parse("@fib(10)", module=m).expr, module=m) == 55


def test_bfloat16() -> None:
    import ml_dtypes

    x = np.asarray([1.5, 2.25], ml_dtypes.bfloat16)
    result = run("def @main(%x: Tensor[(2), bfloat16]) { exp(add(%x, %x)) }", x)
    assert result.dtype == ml_dtypes.bfloat16
    assert np.allclose(result.astype(np.float32), np.exp([3, 4.5]), rtol=1e-2)


@pytest.mark.sample(3)
@pytest.mark.parametrize("entry, n, megabytes", [("loop", 20_000, 0.1), ("even", 20_000, 0.1), ("sum", 20_000, 8)])
def test_memory_by_count(entry: str, n: int, megabytes: float) -> None:
    """A loop by tail calls allocates the same at any length. Each call that waits takes a few hundred bytes."""
    import tracemalloc

    made = Evaluator(module(NUMBERS))
    args = (n, 0) if entry == "loop" else (n,)
    made.call(entry, (5, 0) if entry == "loop" else (5,))
    tracemalloc.start()
    try:
        made.call(entry, args)
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1_000_000
    finally:
        tracemalloc.stop()


def test_a_call_behind_a_parameter_that_nothing_uses() -> None:
    text = """def @f(%x: float32) -> float32 { add(%x, 1f) }
    def @main(%p: float32, %x: float32) { let %y = @f(%x); add(%y, %x) }"""
    assert float(run(text, np.float32(1), np.float32(2))) == 5
