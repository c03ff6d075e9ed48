"""Loops of known turns and extents are in a kernel; other loops stay instructions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends.target import Target
from relaylang.backends.vm.build import make_program
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.syntax import parse
from relaylang.typing import check

#: A loop that adds `%w` to its state in each turn, and keeps all states.
LOOP = """
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32]<more>) {
  let %loop = fn (%i: int32, %rows: Tensor[(?, 2, 3), float32], %s: Tensor[(2, 3), float32])
      -> (int32, Tensor[(?, 2, 3), float32], Tensor[(2, 3), float32]) {
    if (less(%i, <limit>)) {
      %0 = <turn>;
      %1 = (%rows, expand_dims(%0, axis=0));
      %loop(add(%i, 1), concatenate(%1), %0)
    } else { (%i, %rows, %s) }
  };
  %loop(<first>, zeros(shape=[0, 2, 3], dtype="float32"), %x)
}
"""


def program(limit: str = "9", turn: str = "tanh(add(%s, %w))", first: str = "0", more: str = "") -> IRModule:
    text = LOOP
    for name, value in (("limit", limit), ("turn", turn), ("first", first), ("more", more)):
        text = text.replace(f"<{name}>", value)
    mod = parse('#[version = "0.0.5"]' + text).module
    assert mod is not None
    check(mod)
    return mod


def compiled(mod: IRModule, native: bool = True) -> VMExecutable:
    return make_program(mod, Target("c", {"num-threads": 1}), ["main"], native)


def inputs(*more: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((2, 3), "float32"), rng.standard_normal((2, 3), "float32"), *more]


def check_run(made: VMExecutable, mod: IRModule, values: list[Any]) -> None:
    found, want = made.run(*values), evaluate(mod, *values)
    assert int(np.asarray(found[0])) == int(np.asarray(want[0]))
    for a, b in zip(list(found)[1:], list(want)[1:]):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6, atol=1e-6)


def has_calls(made: VMExecutable) -> bool:
    """Whether a program has functions beside `@main`, as loops of instructions have."""
    return len(made.program.functions) > 1


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(("first", "limit"), [("0", "9"), ("-4", "9"), ("5", "9"), ("0", "5000")])
def test_a_counted_loop_is_a_kernel(first: str, limit: str, native: bool) -> None:
    mod = program(limit, first=first)
    made = compiled(mod, native)
    assert not has_calls(made)
    check_run(made, mod, inputs())


@pytest.mark.parametrize(
    "changes, values",
    [
        ({"limit": "2"}, []),
        ({"turn": "if (less(%i, 3)) { tanh(%s) } else { let %f = fn (%y: Tensor[(2, 3), float32]) { negative(%y) }; %f(%s) }"}, []),
    ],
    ids=["short", "function"],
)
def test_other_loops_stay_instructions(changes: dict[str, str], values: list[Any]) -> None:
    mod = program(**changes)
    made = compiled(mod)
    assert has_calls(made)
    check_run(made, mod, inputs(*values))


#: A loop without rows, and what its call may stand in.
STATES = """
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32], %n: int32) {
  let %loop = fn (%i: int32, %s: Tensor[(2, 3), float32]) {
    if (less(%i, %n)) { %loop(add(%i, 1), tanh(add(%s, %w))) } else { <end> }
  };
  <call>
}
"""
#: A loop in a loop in a loop, of known turns.
NEST = """
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32]) {
  let %outer = fn (%i: int32, %s: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
    if (less(%i, 5)) {
      let %inner = fn (%j: int32, %t: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
        if (less(%j, 4)) {
          let %last = fn (%k: int32, %u: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
            if (less(%k, 3)) { %last(add(%k, 1), tanh(add(%u, %s))) } else { multiply(%u, %w) }
          };
          %inner(add(%j, 1), %last(0, %t))
        } else { %t }
      };
      %outer(add(%i, 1), add(%inner(0, %s), cast(%i, dtype="float32")))
    } else { %s }
  };
  add(%outer(0, %x), %w)
}
"""


@pytest.mark.parametrize(
    ("end", "call", "functions"),
    [
        ("(%i, %s)", "let %z = %loop(0, %x); let %y = %z.1; (%z.0, add(%y, %y))", 1),
        ("(%s, add(%s, %w))", "(%n, exp(%loop(0, %x).1))", 1),
        ("%s", "if (less(%n, 5)) { (%n, %loop(0, %x)) } else { (%n, %x) }", 1),
        ("%s", "(%n, %loop(0, %x), %loop(2, %w))", 2),  # one loop, two calls
    ],
    ids=["let", "end", "branch", "twice"],
)
def test_a_loop_anywhere(end: str, call: str, functions: int) -> None:
    mod = parse('#[version = "0.0.5"]' + STATES.replace("<end>", end).replace("<call>", call)).module
    assert mod is not None
    check(mod)
    made = compiled(mod)
    assert len(made.program.functions) == functions
    for limit in (0, 1, 4, 7):
        check_run(made, mod, inputs(np.int32(limit)))
    assert not made.fallbacks()


def test_a_nest_is_one_kernel() -> None:
    mod = parse('#[version = "0.0.5"]' + NEST).module
    assert mod is not None
    check(mod)
    made = compiled(mod)
    assert not has_calls(made) and len(made.program.packed) == 1
    np.testing.assert_allclose(made.run(*inputs()), evaluate(mod, *inputs()), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("first", ["0", "-4", "5"])
def test_a_loop_to_an_argument_is_a_kernel(first: str) -> None:
    mod = program("%n", first=first, more=", %n: int32")
    made = compiled(mod)
    assert not has_calls(made)
    for limit in (0, 1, 2, 5, 6, 7, 200):
        check_run(made, mod, inputs(np.int32(limit)))
    assert not made.fallbacks()


def test_a_loop_to_a_negative_argument_has_no_turns() -> None:
    mod = program("%n", more=", %n: int32")
    check_run(compiled(mod), mod, inputs(np.int32(-3)))


#: A loop over the steps of `%x`. `<turn>` is its state after `%v`.
STEPS = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, ?, 4), float32], %s: Tensor[(?, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %loop = fn (%i: int64, %rows: Tensor[(?, ?, 4), float32], %v: Tensor[(?, 4), float32], %on: bool)
      -> (int64, Tensor[(?, ?, 4), float32], Tensor[(?, 4), float32], bool) {
    if (logical_and(less(%i, squeeze(strided_slice(shape_of(%x, dtype="int64"), begin=[0], end=[1]))), %on)) {
      let %y = <turn>;
      let %all = concatenate((%rows, expand_dims(%y, axis=0)));
      %loop(add(%i, 1i64), %all, %y, True)
    } else { (%i, %rows, %v, %on) }
  };
  %loop(0i64, strided_slice(expand_dims(%s, axis=0), begin=[0], end=[0]), %s, True)
}
"""


@pytest.mark.parametrize(
    "turn",
    [
        "tanh(add(take(%x, %i, axis=0), nn.dense(%v, %w)))",
        "if (less(%i, 2i64)) { add(%v, take(%x, %i, axis=0)) } else { negative(%v) }",
        'where(less(broadcast_to(cast(%i, dtype="float32"), shape=[1, 4]), %w), take(%x, %i, axis=0), %v)',
    ],
    ids=["recurrence", "branches", "refused"],
)
def test_a_loop_over_open_steps_is_a_kernel(turn: str) -> None:
    mod = parse(STEPS.replace("<turn>", turn)).module
    assert mod is not None
    check(mod)
    made = compiled(mod)
    rng = np.random.default_rng(1)
    for steps, batch in ((1, 1), (2, 1), (3, 2), (40, 5), (2, 4)):
        x, s, w = (rng.standard_normal(shape, "float32") for shape in ((steps, batch, 4), (batch, 4), (4, 4)))
        if "where" in turn and batch != 4:
            continue
        for a, b in zip(made.run(x, s, w), evaluate(mod, x, s, w)):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6, atol=1e-6)
    assert "where" in turn or (not has_calls(made) and not made.fallbacks())


def test_a_loop_of_branches_is_a_kernel() -> None:
    mod = program(turn="if (less(%i, 3)) { tanh(%s) } else { add(%s, %w) }")
    check_run(compiled(mod), mod, inputs())


def test_a_loop_begins_with_the_results_of_another() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32]) {
  let %one = fn (%i: int32, %s: Tensor[(2, 3), float32]) -> (int32, Tensor[(2, 3), float32]) {
    if (less(%i, 5)) { %one(add(%i, 1), tanh(add(%s, %w))) } else { (%i, %s) }
  };
  let %a = %one(0, negative(%x));
  let %two = fn (%j: int32, %t: Tensor[(2, 3), float32]) -> (int32, Tensor[(2, 3), float32]) {
    if (less(%j, 6)) { %two(add(%j, 1), tanh(multiply(%t, %w))) } else { (%j, %t) }
  };
  %two(1, exp(%a.1))
}
"""
    mod = parse(text).module
    assert mod is not None
    check(mod)
    made = compiled(mod)
    check_run(made, mod, inputs())
