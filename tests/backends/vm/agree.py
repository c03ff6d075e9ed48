"""Whether two values of programs are the same, and a program compiled for the VM beside the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter.evaluate import Evaluator
from relaylang.interpreter.values import Closure, ConstructorValue, RefValue, is_tensor
from relaylang.ir import IRModule
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.machine import VMClosure


def assert_same(got: Any, wanted: Any, rtol: float = 1e-5) -> None:
    """Two values are the same; floats up to rounding."""
    stack = [(got, wanted)]
    while stack:
        x, y = stack.pop()
        if is_tensor(y):
            assert is_tensor(x) and x.dtype == y.dtype and x.shape == y.shape
            if y.dtype.kind == "f":
                np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-5)
            else:
                assert np.array_equal(x, y)
        elif isinstance(y, tuple):
            assert isinstance(x, tuple) and len(x) == len(y)
            stack += zip(x, y)
        elif isinstance(y, ConstructorValue):
            assert isinstance(x, ConstructorValue) and x.tag == y.tag and len(x.fields) == len(y.fields)
            stack += zip(x.fields, y.fields)
        elif isinstance(y, RefValue):
            assert isinstance(x, RefValue)
            stack.append((x.value, y.value))
        elif isinstance(y, Closure):
            assert isinstance(x, VMClosure)
        else:
            assert x is None and y is None


def outcome(run: Callable[[], Any]) -> tuple[Any, str | None]:
    """A run's value, or the code of its error."""
    try:
        return run(), None
    except RelayError as failed:
        return None, failed.diagnostics[0].code


def assert_agrees(mod: IRModule, *args: Any, entry: str = "main", native: bool = False) -> VMExecutable:
    """A function gives what the interpreter gives, or fails as it does; the machine holds nothing afterwards."""
    executable = compile_vm(mod, native=native, entries=[entry])
    with np.errstate(all="ignore"):
        wanted, failure = outcome(lambda: Evaluator(mod).call(entry, args))
    got, code = outcome(lambda: executable.call(entry, args))
    assert code == failure
    if failure is None:
        assert_same(got, wanted)
    return executable
