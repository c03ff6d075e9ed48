"""Random programs over tensors of several shapes, some of whose extents are unknown, beside the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.interpreter import evaluate
from relaylang.ir import ANY, Expr, Function, IRModule, Let, TensorType, Var, substitute
from relaylang.testing.generators.shapes import Program
from relaylang.typing import check
from tests.backends.cpu.test_random import flat
from tests.shared import few


def opened(program: Program, rng: np.random.Generator) -> IRModule:
    """The program with `?` for about half of its inputs' extents. Types of `let` are inferred anew."""
    unknown = {p: [ANY if rng.random() < 0.5 else extent for extent in program.shape(p)] for p in program.params}
    fresh = {p: Var(p.name_hint, TensorType(shape, program.dtype(p))) for p, shape in unknown.items()}
    names = {**fresh, **{variable: Var(variable.name_hint) for variable, _ in program.lets}}
    body: Expr = program.function.body
    while isinstance(body, Let):
        body = body.body
    body = substitute(body, names)
    for variable, value in reversed(program.lets):
        body = Let(names[variable], substitute(value, names), body)
    made = IRModule.from_expr(Function([*fresh.values(), program.flag], body))
    check(made, fresh=True)
    return made


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", few(range(0, 500, 5), 0))
def test_random_programs_of_unknown_extents(first: int) -> None:
    for seed in range(first, first + 5):
        program, rng = Program(seed, 20 + seed % 3 * 10), np.random.default_rng(seed)
        mod = opened(program, rng)
        made = compile_vm(mod, "c -num-threads=1 -cflags=-O0")
        args = []
        for param in program.params:
            shape, dtype = program.shape(param), program.dtype(param)
            args.append(np.asarray(rng.integers(-9, 9, shape) if dtype == "int32" else rng.standard_normal(shape), dtype))
        for flag in (np.asarray(True), np.asarray(False)):
            for ours, theirs in zip(flat(made.run(*args, flag)), flat(evaluate(mod, *args, flag)), strict=True):
                assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), seed
                if theirs.dtype.kind == "f":
                    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4, err_msg=f"seed {seed}")
                else:  # a float one rounding off a whole number is cut to the next one
                    assert np.abs(ours.astype("int64") - theirs).max(initial=0) <= 1, seed
