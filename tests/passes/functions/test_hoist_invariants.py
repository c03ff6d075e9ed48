"""Values that the turns of a recursive function do not change are computed before its first call."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule, post_order
from relaylang.passes.functions.hoist_invariants import hoist_invariants
from relaylang.passes.rewriting import is_call
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.vm.agree import assert_same
from tests.backends.vm.test_programs import module
from tests.backends.vm.test_random_loops import Generator
from tests.shared import check_each, few

T, W = "Tensor[(2, 3), float32]", "Tensor[(3, 3), float32]"


def products(mod: IRModule, name: str) -> int:
    """How many products a function of the module computes."""
    return sum(is_call(node, "nn.dense") for node in post_order(mod[name]))


def arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 3), "float32"), rng.standard_normal((3, 3), "float32")


def loop(body: str, more: str = "", args: str = "", params: str = "") -> str:
    """A module with a loop of four turns over `%h`, whose other parameters are static."""
    return f"""
{more}
def @loop(%i: int32, %h: {T}, %x: {T}, %w: {W}{params}) -> {T} {{
  if (less(%i, 4)) {{ {body} @loop(add(%i, 1), %next, %x, %w{args}) }} else {{ %h }}
}}
def @main(%x: {T}, %w: {W}) {{ @loop(0, %x, %x, %w{args}) }}"""


HOISTED = {
    "product": loop("let %next = tanh(add(nn.dense(%x, %w, units=3), %h));"),
    "what follows it": loop("let %next = add(%h, tanh(nn.dense(tanh(%x), %w, units=3)));"),
    "lets": loop("let %a = tanh(%x); let %b = nn.dense(%a, %w, units=3); let %c = sigmoid(%b); let %next = add(%h, %c);"),
    "branch": loop("let %next = if (less(%i, 2)) { add(%h, nn.dense(%x, %w, units=3)) } else { %h };"),
    "callee": loop(
        "let %next = @cell(%h, %x, %w);",
        f"def @cell(%h: {T}, %x: {T}, %w: {W}) -> {T} {{ tanh(add(nn.dense(%x, %w, units=3), %h)) }}",
    ),
    "callee of a callee": loop(
        "let %next = @cell(%h, %x, %w);",
        f"def @cell(%h: {T}, %x: {T}, %w: {W}) -> {T} {{ tanh(@sum(%h, %x, %w)) }}"
        f"def @sum(%h: {T}, %x: {T}, %w: {W}) -> {T} {{ add(nn.dense(%x, %w, units=3), %h) }}",
    ),
    "let's function": f"""
def @main(%x: {T}, %w: {W}) {{
  let %loop = fn (%i: int32, %h: {T}) -> {T} {{
    if (less(%i, 4)) {{ %loop(add(%i, 1), tanh(add(nn.dense(%x, %w, units=3), %h))) }} else {{ %h }}
  }};
  %loop(0, %x) }}""",
}


@pytest.mark.parametrize("name", HOISTED)
def test_values_leave_the_loop(name: str) -> None:
    mod = module(HOISTED[name])
    hoisted = hoist_invariants(mod, ["main"])
    assert [gv.name_hint for gv in hoisted.functions if products(hoisted, gv.name_hint)] == ["main"]
    check(parse(str(hoisted)).module)  # type: ignore[arg-type]
    x, w = arguments()
    np.testing.assert_array_equal(evaluate(hoisted, x, w), evaluate(mod, x, w))
    assert_same(compile_vm(mod, entries=["main"]).run(x, w), evaluate(mod, x, w))


KEPT = {
    "changes": loop("let %next = nn.dense(%h, %w, units=3);"),
    "cheap": loop("let %next = add(%h, tanh(%x));"),
    "whole numbers": loop(
        'let %next = add(%h, cast(nn.dense(cast(%x, dtype="int32"), cast(%w, dtype="int32"), units=3), dtype="float32"));'
    ),
    "unknown extents": loop("let %next = tanh(add(nn.dense(%x, %w, units=3), %h));").replace("(2, 3)", "(?, 3)"),
    "used as a value": loop("let %next = tanh(add(nn.dense(%x, %w, units=3), %h));") + "\ndef @other() { @loop }",
    "several calls of a callee": loop(
        "let %next = @cell(@cell(%h, %x, %w), %x, %w);",
        f"def @cell(%h: {T}, %x: {T}, %w: {W}) -> {T} {{ tanh(add(nn.dense(%x, %w, units=3), %h)) }}",
    ),
    "no recursion": f"def @f(%x: {T}, %w: {W}) {{ nn.dense(%x, %w, units=3) }}\ndef @main(%x: {T}, %w: {W}) {{ @f(%x, %w) }}",
}


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    mod = module(KEPT[name])
    assert hoist_invariants(mod, ["main", "other"]) is mod


def test_entries_keep_their_parameters() -> None:
    mod = module(HOISTED["product"])
    assert hoist_invariants(mod, ["main", "loop"]) is mod


def test_shared_values_are_visited_once() -> None:
    lines = "".join(f"let %v{n + 1} = add(%v{n}, %v{n});" for n in range(30))
    mod = module(loop(f"let %v0 = nn.dense(%x, %w, units=3); {lines} let %next = add(%h, multiply(%v30, 1e-9f));"))
    hoisted = hoist_invariants(mod, ["main"])
    assert (products(hoisted, "loop"), products(hoisted, "main")) == (0, 1)
    x, w = arguments()
    assert_same(compile_vm(mod, entries=["main"]).run(x, w), evaluate(mod, x, w))


def _agrees(seed: int) -> None:
    mod = module(Generator(seed).program())
    hoisted = hoist_invariants(mod, ["main"])
    check(parse(str(hoisted)).module)  # type: ignore[arg-type]
    x, w = (np.random.default_rng(seed).standard_normal((2, 3), "float32") for _ in range(2))
    for got, wanted in zip(evaluate(hoisted, x, w, np.int32(3)), evaluate(mod, x, w, np.int32(3)), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("first", few(range(0, 400, 40), 1))
def test_random_loops(first: int) -> None:
    check_each(_agrees, range(first, first + 40))
