"""Programs with loops as libraries: what they compute, their weights and files, and how they fail."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.diagnostics import RelayError
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from relaylang.runtime.cpu import load
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.aot.programs import PROGRAMS
from tests.backends.vm.agree import assert_same, outcome
from tests.shared import few

QUICK = "c -num-threads=2 -cflags=-O1"
STEPS = """
def @steps(%n: int32, %x: Tensor[(2, 32), float32], %w: Tensor[(32, 32), float32]) -> (int32, Tensor[(2, 32), float32]) {
  if (less(%n, 1)) { (%n, %x) } else { @steps(subtract(%n, 1), tanh(nn.dense(%x, %w)), %w) }
}
def @main(%n: int32, %x: Tensor[(2, 32), float32], %w: Tensor[(32, 32), float32]) { @steps(%n, %x, %w) }
"""
DIVISION = """
def @f(%n: int32, %k: int32) -> int32 { if (less(%n, 1)) { %k } else { @f(subtract(%n, 1), divide(%k, subtract(%n, 3))) } }
def @main(%n: int32) { @f(%n, 100) }
"""


def module(text: str) -> IRModule:
    found = parse('#[version = "0.0.5"]\n' + text).module
    assert found is not None
    check(found)
    return found


def tensors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 32), np.float32), rng.standard_normal((32, 32), np.float32)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", few(PROGRAMS, *list(PROGRAMS)[::3]))
def test_programs(name: str) -> None:
    text, *args = PROGRAMS[name]
    mod = module(text)
    program = compile_module(mod, QUICK)
    wanted, failure = outcome(lambda: Evaluator(mod).call("main", args))
    for _ in range(2):
        got, found = outcome(lambda: program.run(*args))
        assert (found and found[0]) == (failure and failure[0])
        if failure is None:
            assert_same(got, wanted)


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_weights_are_parameters(turns: int, tmp_path: Path) -> None:
    mod, (x, w) = module(STEPS), tensors()
    program = compile_module(mod, QUICK, params={"w": w})
    n = np.int32(turns)
    assert_same(program.run(n, x), Evaluator(mod).call("main", [n, x, w]))
    program.set_params({"w": w / 2})
    wanted = Evaluator(mod).call("main", [n, x, w / 2])
    assert_same(program.run(n, x), wanted)
    program.save(tmp_path / "net.so")
    for again in (load(tmp_path / "net.so"), pickle.loads(pickle.dumps(program))):
        assert_same(again.run(n, x), wanted)


def test_turns_beyond_what_could_be_written_out() -> None:
    program = compile_module(module(STEPS), QUICK)
    x, w = tensors()
    count, state = program.run(np.int32(20_000), x, w / 64)
    assert count == 0 and not state.any()


def test_a_number_in_the_code_cannot_change() -> None:
    program = compile_module(module(STEPS), QUICK, params={"n": np.int32(3)})
    with pytest.raises(RelayError, match="the value of n cannot change"):
        program.set_params({"n": np.int32(4)})


def test_a_division_by_zero() -> None:
    program = compile_module(module(DIVISION), QUICK)
    assert program.run(np.int32(2)) == 50
    with pytest.raises(RelayError, match="division by zero") as caught:
        program.run(np.int32(5))
    assert caught.value.diagnostics[0].code == "R0404"
    assert program.run(np.int32(2)) == 50


def test_the_loop_stands_in_each_text() -> None:
    mod = module(STEPS)
    assert "for (;;)" in emit(mod, "c", isa="generic")
    listing = emit(mod, "loops", isa="generic")
    assert "functions(" in listing and "run_0" in listing
    assert '"name":"tvmgen_default_loops"' in compile_module(mod, QUICK).graph


@pytest.mark.parametrize("op", ["sum", "max", "prod", "mean"])
def test_values_that_are_the_same_along_the_axis(op: str) -> None:
    """Their names stand in front of the loops over whole groups, and of those over the rest."""
    for count in (3, 16, 35, 70):
        text = f"def @main(%x: Tensor[(3, 1), float32]) {{ {op}(broadcast_to(tanh(%x), shape=[3, {count}]), axis=[1]) }}"
        mod = module(text)
        x = np.linspace(-1, 1, 3, dtype="float32").reshape(3, 1)
        np.testing.assert_allclose(compile_module(mod, QUICK).run(x), Evaluator(mod).call("main", [x]), rtol=1e-5)
