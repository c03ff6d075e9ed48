"""LazyGradientInit: zeros and ones that nobody makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.interpreter import evaluate
from relaylang.interpreter.kernels import KERNELS
from relaylang.ir import IRModule, types_equal
from relaylang.testing.generators.programs import Programs
from relaylang.transform import InferType, LazyGradientInit
from tests.passes.gradient.test_higher_order_gradient import PROGRAMS, against_differences, differentiated
from tests.passes.meaning import keeps_meaning


def run(mod: IRModule) -> IRModule:
    return InferType()(LazyGradientInit()(mod))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(25))
def test_meaning(seed: int) -> None:
    keeps_meaning(run, Programs(seed).module(), seed)


@pytest.mark.parametrize("name", ["operators", "branches", "references", "closures", "tuples"])
def test_gradients(name: str) -> None:
    mod = InferType()(relay.parse(PROGRAMS[name]))
    plain = differentiated(mod)
    new = run(plain)
    assert new is not plain
    assert types_equal(new["main"].checked_type, plain["main"].checked_type)
    against_differences(mod, new)


def test_what_nobody_needs_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """def @main(%x: Tensor[(2), float32]) {
      let %z = zeros_like(%x);
      let %o = ones(shape=[2], dtype="float32");
      add(multiply(add(%z, %x), %o), multiply(%z, %x))
    }"""
    mod = InferType()(relay.parse(text))
    new = run(mod)
    made: list[str] = []
    for name in ("zeros_like", "ones", "add", "multiply"):

        def kernel(attrs: Any, *args: Any, _name: str = name, _kernel: Any = KERNELS[name]) -> Any:
            made.append(_name)
            return _kernel(attrs, *args)

        monkeypatch.setitem(KERNELS, name, kernel)
    x = np.array([1, 2], "float32")
    np.testing.assert_array_equal(evaluate(new, x), x)
    assert made == []


def test_without_zeros_nothing_changes() -> None:
    mod = InferType()(relay.parse("def @main(%x: float32) { add(%x, 1f) }"))
    assert LazyGradientInit()(mod) is mod
