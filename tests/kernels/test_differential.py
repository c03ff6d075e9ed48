"""Random kernels: the evaluator's results are those of the C, of each compiler, to the bit.

So are those of a kernel that is read back from its text, and of one after rewrites and schedules.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.cpu.cc import Compiler
from relaylang.kernels import ir, render
from relaylang.kernels.check import check, check_function
from tests.kernels.differential import SANITIZED, compiled, differences, evaluated, machine, prepared
from tests.kernels.generator import Buffer, Generated, generate
from tests.kernels.values import FLOATS, INTS

#: Kernels of a C file: of a test, and of a search for 20 000.
FEW, MANY = 25, 200


def compilers() -> list[tuple[str, Compiler, tuple[str, ...]]]:
    """The compilers of this machine, with options of their own."""
    found = {name: Compiler({"cc": name}) for name in ("gcc", "clang") if shutil.which(name) is not None}
    if not found:
        pytest.skip("neither gcc nor clang is on this machine")
    sanitized = [("gcc with sanitizers", found["gcc"], SANITIZED)] if "gcc" in found else []
    return [*((name, compiler, ()) for name, compiler in found.items()), *sanitized]


def compare(first: int, count: int, folder: Path, each: int = 10) -> None:
    """Compare so many kernels from a seed on, by the compilers up to a number."""
    wrong: list[str] = []
    chosen = compilers()[:each]
    _, compiler, _ = chosen[0]
    # Where scalars are not fused, vectors may be: such kernels have none.
    fused = "__FP_FAST_FMAF" in (compiler.macros or "")
    lanes = compiler.isa.lanes if fused else 0
    with machine(compiler, folder):
        made = [prepared(generate(seed, lanes if seed % 2 else 0), lanes, fused) for seed in range(first, first + count)]
    wrong += [line for _, _, lines in made for line in lines]
    made = [one for one in made if not one[2]]
    for name, own, extra in chosen:
        results = compiled([k for k, _, _ in made], own, lanes, folder, extra)
        wrong += [f"{name}: {line}" for line in differences([k for k, _, _ in made], [e for _, e, _ in made], results)]
    assert not wrong, "\n".join(wrong)


def test_some(tmp_path: Path) -> None:
    compare(0, FEW, tmp_path, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(2))
def test_hundreds(part: int, tmp_path: Path) -> None:
    compare(part * MANY, MANY, tmp_path)


@pytest.mark.sweep
@pytest.mark.search
@pytest.mark.parametrize("part", range(5, 105))
def test_many(part: int, tmp_path: Path) -> None:
    compare(part * MANY, MANY, tmp_path)


def test_kernels_obey_the_rules() -> None:
    for seed in range(100):
        k = generate(seed, 8)
        assert check(k.body, {b.name for b in k.buffers}) == [], seed
        assert [p for f in k.functions for p in check_function(f)] == [], seed


def test_a_seed_gives_the_same_kernel() -> None:
    assert render.lines(generate(7, 8).body) == render.lines(generate(7, 8).body)


def of_constants(values: list[float]) -> list[Generated]:
    """Kernels that convert constants of floats to integers and back, beside elements that compilers know nothing of."""
    out = []
    for seed, source in enumerate(FLOATS):
        buffers = [Buffer("a", source, np.asarray(values, source), False)]
        buffers.append(Buffer("back", source, np.zeros(2 * len(values) * len(INTS), source), True))
        body: ir.Body = []
        for row, dtype in enumerate(INTS):
            buffers.append(Buffer(f"z{dtype}", dtype, np.zeros(2 * len(values), dtype), True))
            for n, value in enumerate(values):
                known = ir.Const(value, source)
                either = ir.select(ir.Load("a", ir.number(n), source).eq(3), ir.Load("a", ir.number(n), source), known)
                for m, v in enumerate((known, either)):
                    body.append(ir.Store(f"z{dtype}", ir.number(2 * n + m), ir.cast(v, dtype)))
                    body.append(ir.Store("back", ir.number(2 * (row * len(values) + n) + m), ir.cast(ir.cast(v, dtype), source)))
        out.append(Generated(seed, body, [], buffers))
    return out


def test_floats_as_integers_and_back(tmp_path: Path) -> None:
    limits = [sign * 2.0**bits for bits in (31, 63) for sign in (1, -1)]
    values = [1e10, -1e10, float("nan"), float("inf"), -float("inf"), *limits, 1e30, -1e30, 255.5, -0.5, 0.5, -0.0]
    made = of_constants(values)
    expected = [evaluated(k) for k in made]
    for name, compiler, extra in compilers():
        assert differences(made, expected, compiled(made, compiler, 0, tmp_path, extra)) == [], name
