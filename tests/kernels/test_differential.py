"""Random kernels: the evaluator's results are those of the C, of each compiler, to the bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from relaylang.backends.cpu.cc import Compiler
from relaylang.kernels import render
from relaylang.kernels.check import check, check_function
from tests.kernels.differential import SANITIZED, compiled, differences, evaluated
from tests.kernels.generator import Generated, generate
from tests.shared import few

#: Kernels of a C file.
EACH = 25


def kernels(part: int, lanes: int) -> list[Generated]:
    """The kernels of a part, half of them with vectors."""
    return [generate(seed, lanes if seed % 2 else 0) for seed in range(part * EACH, (part + 1) * EACH)]


def compare(part: int, name: str, folder: Path, extra: tuple[str, ...] = ()) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on this machine")
    compiler = Compiler({"cc": name})
    # Where scalars are not fused, vectors may be: such kernels have none.
    fused = "__FP_FAST_FMAF" in (compiler.macros or "")
    lanes = compiler.isa.lanes if fused else 0
    made = kernels(part, lanes)
    assert differences(made, [evaluated(k, fused) for k in made], compiled(made, compiler, lanes, folder, extra)) == []


@pytest.mark.parametrize("part", few([*range(12), 134, 161], 0))
def test_gcc(part: int, tmp_path: Path) -> None:
    compare(part, "gcc", tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(12))
def test_clang(part: int, tmp_path: Path) -> None:
    compare(part, "clang", tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(2))
def test_no_access_is_wrong_and_nothing_undefined(part: int, tmp_path: Path) -> None:
    compare(part, "gcc", tmp_path, (*SANITIZED, "-O1"))


@pytest.mark.sweep
@pytest.mark.search
@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("part", range(100, 900))
def test_many(part: int, name: str, tmp_path: Path) -> None:
    compare(part, name, tmp_path)


def test_kernels_obey_the_rules() -> None:
    for part in range(4):
        for k in kernels(part, 8):
            assert check(k.body, {b.name for b in k.buffers}) == [], k.seed
            assert [p for f in k.functions for p in check_function(f)] == [], k.seed


def test_a_seed_gives_the_same_kernel() -> None:
    assert render.lines(generate(7, 8).body) == render.lines(generate(7, 8).body)
