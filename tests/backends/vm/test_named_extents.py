"""Extents that functions name, when a program runs: in the interpreter and on the VM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.runtime.vm.executable import load
from tests.backends.vm.test_programs import module

Run = Callable[[IRModule, tuple[np.ndarray, ...]], Any]

RUNS: dict[str, Run] = {
    "interpreter": lambda mod, args: evaluate(mod, *args),
    "vm": lambda mod, args: compile_vm(mod).run(*args),
}


def zeros(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple([np.zeros(shape, "float32") for shape in shapes])


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("text", "shapes", "code", "said"),
    [
        (
            "def @main[b](%x: Tensor[(b, 4), float32],\n  %y: Tensor[(b, 4), float32]) { add(%x, %y) }",
            [(2, 4), (3, 4)],
            "R0402",
            "the argument for %y has the shape (3, 4): axis 0 is 3, but `b` is 2 in %x",
        ),
        (
            "def @main[b](%x: Tensor[(b, 4), float32],\n  %y: Tensor[(2 * b, 4), float32]) { concatenate((%x, %y)) }",
            [(2, 4), (3, 4)],
            "R0402",
            "the argument for %y has the shape (3, 4): axis 0 is 3, but `2 * b` is 4 (`b` is 2 in %x)",
        ),
        (
            "def @main[b](%x: int32,\n  %y: Tensor[(2 * b, 4), float32]) { %y }",
            [(), (3, 4)],
            "R0402",
            "the argument for %y has the shape (3, 4): axis 0 is 3, which is no `2 * b`",
        ),
        (
            "def @main[b, c](%x: Tensor[(b / c), float32], %z: Tensor[(b), float32],\n  %y: Tensor[(c), float32]) { %y }",
            [(2,), (3,), (0,)],
            "R0402",
            "the argument for %x has the shape (2,): axis 0 is 2, but `b / c` divides by 0",
        ),
        (
            "def @main(%x: Tensor[(?, ?), float32])\n  -> Tensor[(3, ?), float32] { nn.relu(%x) }",
            [(2, 3)],
            "R0414",
            "the result of @main has the shape (2, 3) instead of (3, ?)",
        ),
        (
            "def @main(%x: Tensor[(?, ?), float32])\n  -> (Tensor[(?, ?), float32], Tensor[(3), float32]) { (%x, sum(%x, axis=[0])) }",
            [(2, 2)],
            "R0414",
            "the result of @main has the shape (2,) instead of (3,) in field 1",
        ),
        (
            "def @main[b](%x: Tensor[(b, 2), float32], %y: Tensor[(?, 2), float32])\n  -> Tensor[(2 * b, 2), float32] { nn.relu(%y) }",
            [(2, 2), (3, 2)],
            "R0414",
            "the result of @main has the shape (3, 2): axis 0 is 3, but `2 * b` is 4 (`b` is 2 in %x)",
        ),
    ],
)
def test_contradictions(run: Run, text: str, shapes: list[tuple[int, ...]], code: str, said: str) -> None:
    args = zeros(*shapes)
    args = tuple([arg.astype("int32") if not arg.ndim else arg for arg in args])
    with pytest.raises(RelayError) as wrong:
        run(module(text), args)
    (found,) = wrong.value.diagnostics
    assert (found.code, found.title) == (code, said)
    line = 1 if "%x has" in said else 2
    assert found.labels[0].span is not None and found.labels[0].span.line == line


ENCODER = """
def @main[b, t](%x: Tensor[(b, t, 8), float32], %past: Tensor[(b, 2 * t, 8), float32], %w: Tensor[(6, 8), float32])
  -> Tensor[(b, t, 3 * t), float32] {
  %0 = concatenate((%past, %x), axis=1);
  %1 = reshape(%x, newshape=[-1, 8]);
  %2 = nn.dense(%1, %w, units=6);
  %3 = reshape(%2, newshape=[-1, 2, 3]);
  %4 = nn.batch_matmul(%x, %0, transpose_b=True);
  add(nn.softmax(%4), mean(%3))
}
"""


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 7)])
def test_the_vm_gives_what_the_interpreter_gives(shape: tuple[int, int]) -> None:
    b, t = shape
    random = np.random.default_rng(b)
    x, past, w = (random.standard_normal(s).astype("float32") for s in ((b, t, 8), (b, 2 * t, 8), (6, 8)))
    mod = module(ENCODER)
    wanted = evaluate(mod, x, past, w)
    made = compile_vm(mod)
    np.testing.assert_allclose(made.run(x, past, w), wanted, rtol=1e-5, atol=1e-6)
    assert wanted.shape == (b, t, 3 * t) and made.fallbacks() == []


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("function", "call", "shapes", "said"),
    [
        (
            "@f[n](%p: Tensor[(n, 4), float32], %q: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32] { %p }",
            "@f(%x,\n  %y)",
            [(2, 4), (3, 4)],
            "@f: the argument for %q has the shape (3, 4): axis 0 is 3, but `n` is 2 in %p",
        ),
        (
            "@f[n](%p: (Tensor[(n, 4), float32], int32), %q: Tensor[(2 * n, 4), float32]) -> Tensor[(n, 4), float32] { %p.0 }",
            "@f((%x, 3), %y)",
            [(2, 4), (3, 4)],
            "@f: the argument for %q has the shape (3, 4): axis 0 is 3, but `2 * n` is 4 (`n` is 2 in %p)",
        ),
        (
            "@f(%p: Tensor[(2, 4), float32]) -> Tensor[(2, 4), float32] { %p }",
            "@f(%y)",
            [(2, 4), (3, 4)],
            "@f: the argument for %p has the shape (3, 4) instead of (2, 4)",
        ),
    ],
)
def test_contradictions_of_inner_calls(run: Run, function: str, call: str, shapes: list[tuple[int, ...]], said: str) -> None:
    text = f"def {function}\ndef @main(%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32]) {{\n  {call} }}"
    with pytest.raises(RelayError) as wrong:
        run(module(text), zeros(*shapes))
    (found,) = wrong.value.diagnostics
    assert (found.code, found.title) == ("R0402", said)
    assert found.labels[0].span is not None and found.labels[0].span.line == 3
    assert found.notes[-1].startswith("in @main at ")
    assert run(module(text), zeros((2, 4), (4, 4) if "2 *" in function else (2, 4))).shape == (2, 4)


CONTRACT = """
def @f[n, m](%p: Tensor[(n, m), float32], %q: (Tensor[(m, n + 2 * m), float32], int32), %i: int32) -> Tensor[(n, m), float32] {
  if (less(%i, 3)) { @f(tanh(%p), %q, add(%i, 1)) } else { %p } }
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) { @f(@g(%x), (%y, 2), 0) }
def @g(%x: Tensor[(?, ?), float32]) -> Tensor[(?, ?), float32] { concatenate((%x, %x)) }
"""


def test_contracts_are_checked_in_code(tmp_path: Path) -> None:
    """A right call never asks the interpreter, and a wrong one fails in a file and where nothing may fall back, too."""
    made = compile_vm(module(CONTRACT))
    made.save(tmp_path / "program.vm")
    for program in (made, load(tmp_path / "program.vm")):
        program.loaded.fallback = False
        assert program.run(*zeros((1, 3), (3, 8))).shape == (2, 3) and program.fallbacks() == []
        with pytest.raises(RelayError) as wrong:
            program.run(*zeros((1, 3), (3, 7)))
        (found,) = wrong.value.diagnostics
        assert found.title.startswith(
            "@f: the argument for %q has the shape (3, 7): axis 1 is 7, but `2 * m + n` is 8 (`m` is 3 in %p"
        )
        assert found.labels[0].span is not None and found.labels[0].span.text == "@f(@g(%x), (%y, 2), 0)"
        assert program.run(*zeros((1, 3), (3, 8))).shape == (2, 3)


def test_an_equation_of_an_extent_is_solved_by_the_interpreter() -> None:
    text = """def @f[n](%p: Tensor[(2 * n), float32]) -> Tensor[(2 * n), float32] { %p }
def @main(%x: Tensor[(?), float32]) { @f(%x) }"""
    made = compile_vm(module(text))
    assert made.run(*zeros((4,))).shape == (4,)
    with pytest.raises(RelayError, match=r"axis 0 is 3, which is no `2 \* n`"):
        made.run(*zeros((3,)))


def test_calls_that_fit_are_checked_once_and_others_each_time() -> None:
    """Arrays of a form that fitted are not looked at again: other shapes, element types and values are."""
    text = "def @main[b](%x: Tensor[(b, 4), float32], %y: Tensor[(b, 4), float32]) { add(%x, %y) }"
    executable = compile_vm(module(text))
    x, y, z = zeros((2, 4), (2, 4), (3, 4))
    for _ in range(2):
        assert executable.run(x, y).shape == (2, 4)
        assert executable.run(z, z).shape == (3, 4)
        assert executable.run(x[:, ::-1], y.tolist()).shape == (2, 4)
        for wrong in ((x, z), (x, y.astype("float64")), (x, x[0]), (x, y.astype(">f4")[:1])):
            with pytest.raises(RelayError) as failed:
                executable.run(*wrong)
            assert failed.value.diagnostics[0].code == "R0402"
        with pytest.raises(RelayError) as failed:
            executable.run(x)
        assert failed.value.diagnostics[0].code == "R0401"


def test_calls_with_scalars_and_results_of_tuples_are_checked_once_and_others_each_time() -> None:
    text = """
    def @main[b](%x: Tensor[(b, 4), float32], %n: int64, %y: Tensor[(b, 4), float32]) {
      (add(%x, %y), %n, multiply(%x, cast(%n, dtype="float32")))
    }"""
    executable = compile_vm(module(text))
    x, y, z = zeros((2, 4), (2, 4), (3, 4))
    for n in (3, np.int64(-7), np.array(1 << 62), np.array([5, 6])[1, ...]):
        for one in (x + 1, z + 1):
            total, count, product = executable.run(one, n, one)
            np.testing.assert_array_equal(total, one + one)
            assert (count.dtype, count.shape, count.item()) == (np.int64, (), int(n))
            np.testing.assert_array_equal(product, one * np.float32(n))
        for wrong in ((x, n, z), (x, np.int32(n % 9), y), (x, x, y), (x, np.array([3]), y), (x, np.float64(n), y)):
            with pytest.raises(RelayError) as failed:
                executable.run(*wrong)
            assert failed.value.diagnostics[0].code == "R0402"


def test_a_result_is_checked_for_each_of_its_forms() -> None:
    text = "def @main(%x: Tensor[(?, ?), float32])\n  -> Tensor[(3, ?), float32] { nn.relu(%x) }"
    executable = compile_vm(module(text))
    good, wrong = zeros((3, 2), (2, 3))
    for _ in range(2):
        assert executable.run(good).shape == (3, 2)
        with pytest.raises(RelayError) as failed:
            executable.run(wrong)
        assert failed.value.diagnostics[0].code == "R0414"
