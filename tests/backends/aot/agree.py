"""Programs as C against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.backends.aot import compile_aot
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from relaylang.runtime.aot import AotProgram
from tests.backends.vm.agree import assert_same, outcome


def assert_c_agrees(mod: IRModule, *args: Any, target: str = "c", **named: Any) -> AotProgram:
    """The C gives what the interpreter gives, twice in the same memory, or fails as it does."""
    program = compile_aot(mod, target, **named)
    with np.errstate(all="ignore"):
        wanted, failure = outcome(lambda: Evaluator(mod).call("main", args))
    for _ in range(2):
        got, found = outcome(lambda: program.run(*args))
        assert (found and found[0]) == (failure and failure[0])  # C says a code, and no place
        if failure is None:
            assert_same(got, wanted)
    return program
