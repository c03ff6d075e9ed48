"""Kernels that get code for the extents that they meet often, beside the code for any extents."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params
from relaylang.runtime import interrupts
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.host import MOST_SPECIAL, OFTEN
from tests.backends.vm.agree import assert_same
from tests.backends.vm.test_programs import module


def images(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def heated(executable: VMExecutable, *args: object) -> None:
    """Run a program whose one kernel looks at its extents each time, until it has code for these, or will have none."""
    for _ in range(OFTEN):
        executable.loaded.heat[0].left = -1
        executable.run(*args)
    (host,) = executable.loaded.hosts.values()
    assert host.compiling is not None
    host.compiling.join()


def is_special(executable: VMExecutable, *args: object) -> bool:
    """Whether a run takes code for its extents: that has no clock."""
    executable.loaded.heat[0].left = 1 << 60
    executable.run(*args)
    return bool(executable.loaded.heat[0].left == 1 << 60)


@pytest.fixture
def program() -> tuple[IRModule, VMExecutable]:
    mod = module("def @main(%x: Tensor[(?, ?), float32], %w: Tensor[(8, 8), float32]) { nn.softmax(nn.dense(tanh(%x), %w)) }")
    return mod, compile_vm(mod)


def test_extents_that_are_met_often_get_code(program: tuple[IRModule, VMExecutable]) -> None:
    mod, executable = program
    often, seldom, w = images(5, 8), images(6, 8), images(8, 8)
    assert not is_special(executable, often, w)
    heated(executable, often, w)
    assert is_special(executable, often, w) and not is_special(executable, seldom, w)
    for x in (often, seldom):
        assert_same(executable.run(x, w), evaluate(mod, x, w))
    assert executable.fallbacks() == []


def test_a_look_changes_nothing(program: tuple[IRModule, VMExecutable]) -> None:
    mod, executable = program
    for rows in (1, 2, 3, 1, 2, 3):
        executable.loaded.heat[0].left = -1
        x, w = images(rows, 8), images(8, 8)
        assert_same(executable.run(x, w), evaluate(mod, x, w))
    (host,) = executable.loaded.hosts.values()
    assert host.compiling is None and executable.loaded.heat[0].left > 0


def test_few_extents_get_code(program: tuple[IRModule, VMExecutable]) -> None:
    mod, executable = program
    w = images(8, 8)
    for rows in range(2, MOST_SPECIAL + 4):
        heated(executable, images(rows, 8), w)
    (host,) = executable.loaded.hosts.values()
    assert [shapes[0][0] for shapes in host.special] == [*range(2, MOST_SPECIAL + 2)]
    for rows in range(1, MOST_SPECIAL + 4):
        assert is_special(executable, images(rows, 8), w) == (2 <= rows < MOST_SPECIAL + 2)
        assert_same(executable.run(images(rows, 8), w), evaluate(mod, images(rows, 8), w))


def test_code_for_extents_has_the_weights() -> None:
    text = """
def @main(%x: Tensor[(?, 3, ?, ?), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])) }
"""
    mod = bind_params(module(text), {"w": images(4, 3, 3, 3)})
    executable = compile_vm(mod)
    x = images(2, 3, 9, 7)
    before = executable.run(x)
    heated(executable, x)
    assert is_special(executable, x)
    np.testing.assert_array_equal(executable.run(x), before)
    assert_same(executable.run(images(1, 3, 5, 5)), evaluate(mod, images(1, 3, 5, 5)))


def test_numbers_and_several_results() -> None:
    mod = module(
        "def @main(%x: Tensor[(?, 4), float32], %n: int32, %y: Tensor[(?, 4), float32]) {"
        ' (multiply(%x, cast(%n, dtype="float32")), max(%y), concatenate((%x, %y))) }'
    )
    executable = compile_vm(mod)
    args = (images(3, 4), 7, images(5, 4))
    heated(executable, *args)
    assert is_special(executable, *args)
    assert_same(executable.run(*args), evaluate(mod, *args))


def test_kernels_that_can_fail_stay_as_they_are() -> None:
    v = "Tensor[(2), int32]"
    mod = module(
        f"def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(1, 4), float32], %b: {v}, %e: {v}, %s: {v}) {{"
        " strided_set(%x, %y, %b, %e, %s) }"
    )
    executable = compile_vm(mod)
    args = images(3, 4), images(1, 4), np.array([1, 0], "int32"), np.array([2, 4], "int32"), np.ones(2, "int32")
    assert [item.fails for item in executable.program.packed] == [True]
    heated(executable, *args)
    assert not is_special(executable, *args)
    assert_same(executable.run(*args), evaluate(mod, *args))
    with pytest.raises(RelayError) as refused:
        executable.run(*args[:2], np.array([3, 0], "int32"), np.array([4, 4], "int32"), args[-1])
    assert refused.value.diagnostics[0].code == "R0404"


def test_a_library_that_another_one_runs_ends_with_it() -> None:
    inner, outer = interrupts._answers(), interrupts._answers()
    assert (next(inner), next(outer)) == (0, 0)
    assert inner.throw(KeyboardInterrupt()) == 1  # as a handler raises it
    assert (next(outer), next(inner)) == (1, 1)
    with pytest.raises(KeyboardInterrupt):
        interrupts.check()
    assert (next(outer), next(inner)) == (0, 0)
