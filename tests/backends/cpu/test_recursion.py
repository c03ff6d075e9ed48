"""Recursion that constants decide: the compiler writes out its calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.flatten import MAX_CALLS
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.pipeline import Setting, graph_after
from relaylang.backends.cpu.program import Run
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, IRModule, post_order
from relaylang.ops.record import Op
from relaylang.syntax import parse

QUICK = "c -num-threads=2 -cflags=-O1"

POWER = """
def @power(%base: Tensor[(3), float32], %n: int32) -> Tensor[(3), float32] {
  if (%n <= 0) { ones_like(%base) } else { multiply(%base, @power(%base, %n - 1)) }
}
"""

#: A loop that collects its results. Of its body, `dense` is the same in each turn.
LOOP = """
def @main(%x: Tensor[(TURNS, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %loop = fn (%i: int32, %made: Tensor[(?, 4), float32], %state: Tensor[(1, 4), float32])
      -> (int32, Tensor[(?, 4), float32], Tensor[(1, 4), float32]) {
    if (less(%i, TURNS)) {
      %0 = nn.dense(%x, %w, units=4);
      %1 = tanh(add(expand_dims(take(%0, %i, axis=0), axis=0), nn.dense(%state, %w, units=4)));
      %loop(%i + 1, concatenate((%made, %1)), %1)
    } else {
      (%i, %made, %state)
    }
  };
  %2 = %loop(0, zeros(shape=[0, 4], dtype="float32"), zeros(shape=[1, 4], dtype="float32"));
  (%2.0, reshape(%2.1, newshape=[TURNS, 4]), %2.2)
}
"""


def module(text: str) -> IRModule:
    found = parse('#[version = "0.0.5"]\n' + text).module
    assert found is not None
    return found


def operators(mod: IRModule) -> list[str]:
    graph = graph_after("relay", Setting(mod, "main", GENERIC))
    return [n.op.name for n in post_order(graph) if isinstance(n, Call) and isinstance(n.op, Op)]


def refusal(text: str) -> Any:
    with pytest.raises(RelayError) as caught:
        compile_module(module(text), QUICK)
    (found,) = caught.value.diagnostics
    assert found.code == "R0636" and any("--runtime vm" in note for note in found.notes)
    return found


def test_a_recursion_becomes_its_calls() -> None:
    mod = module(POWER + "def @main(%x: Tensor[(3), float32]) { @power(%x, 5) }")
    x = np.array([2, -3, 0.5], np.float32)
    assert operators(mod).count("multiply") == 5
    np.testing.assert_array_equal(compile_module(mod, QUICK).run(x), x**5)


def test_functions_that_call_each_other() -> None:
    text = "".join(
        f"def @{a}(%x: Tensor[(2), float32], %n: int64) -> Tensor[(2), float32] {{\n"
        f"  if (greater(%n, 0i64)) {{ @{b}({f}(%x), subtract(%n, 1i64)) }} else {{ %x }}\n}}\n"
        for a, b, f in (("even", "odd", "exp"), ("odd", "even", "negative"))
    )
    mod = module(text + "def @main(%x: Tensor[(2), float32]) { @even(%x, 3i64) }")
    assert operators(mod) == ["exp", "negative", "exp"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("turns", [1, 2, 40])
def test_a_loop_that_collects_results(turns: int) -> None:
    mod = module(LOOP.replace("TURNS", str(turns)))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((turns, 4), np.float32), rng.standard_normal((4, 4), np.float32)
    count, made, state = compile_module(mod, QUICK, params={"w": w}).run(x)
    wanted = evaluate(mod, x, w)
    assert count == turns
    np.testing.assert_allclose(made, np.asarray(wanted[1]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state, np.asarray(wanted[2]), rtol=1e-5, atol=1e-6)


def test_what_a_loop_does_not_change_is_computed_once() -> None:
    names = operators(module(LOOP.replace("TURNS", "40")))
    # One product of all inputs. That of the state is inside the loop, whose rows need no concatenation.
    assert names.count("nn.dense") == 1
    assert names.count("concatenate") == 0


@pytest.mark.sweep
def test_turns_share_their_kernels() -> None:
    x, w = "Tensor[(2, 4), float32]", "Tensor[(4, 4), float32]"
    text = f"""
def @again(%x: {x}, %n: int32, %w: {w}) -> {x} {{ if (%n <= 0) {{ %x }} else {{ tanh(nn.dense(@again(%x, %n - 1, %w), %w)) }} }}
def @main(%x: {x}, %w: {w}) {{ @again(%x, 400, %w) }}"""
    runs = [item.kernel for item in lower_module(module(text), "main", ["w"], GENERIC).run if isinstance(item, Run)]
    assert len(runs) >= 400 > 4 * len({id(kernel) for kernel in runs})


def test_an_end_that_data_decide() -> None:
    found = refusal(POWER + "def @main(%x: Tensor[(3), float32], %n: int32) { @power(%x, %n) }")
    assert found.title == "the recursion of @power is no loop: it needs memory without a bound"
    assert found.span is not None


def test_a_decided_recursion_in_a_branch() -> None:
    mod = module(POWER + "def @main(%x: Tensor[(3), float32], %c: bool) { if (%c) { @power(%x, 3) } else { @power(%x, 2) } }")
    x = np.array([2, -3, 0.5], np.float32)
    compiled = compile_module(mod, QUICK)
    np.testing.assert_array_equal(compiled.run(x, np.array(True)), x**3)
    np.testing.assert_array_equal(compiled.run(x, np.array(False)), x**2)


@pytest.mark.sweep
def test_a_recursion_of_too_many_calls() -> None:
    text = POWER + "def @main(%x: Tensor[(3), float32]) { @power(%x, COUNT) }"
    assert operators(module(text.replace("COUNT", str(MAX_CALLS - 1)))).count("multiply") == MAX_CALLS - 1
    for count in (MAX_CALLS, 10**9):
        assert "the recursion of @power is no loop" in refusal(text.replace("COUNT", str(count))).title


def test_a_recursion_without_end() -> None:
    assert refusal("def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { @main(nn.relu(%x)) }").title == "@main never returns"
