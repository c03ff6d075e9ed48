"""Random programs over open extents: the VM and, for their numbers, target `c` give what the interpreter gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from relaylang.passes.simplify.dynamic_to_static import DynamicToStatic
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome
from tests.backends.vm.open_extents import Program, arguments

#: Programs of a module: of a test, and of the search for 50 000.
FEW, MANY = 12, 100
#: The extents of runs; target `c` is compiled for one of them.
EXTENTS = ({"b": 2, "t": 3}, {"b": 1, "t": 4}, {"b": 3, "t": 1}, {"b": 3, "t": 3})
OPTIONS = "-num-threads=1 -cflags=-O0"


def module(programs: Sequence[Program], more: str = "") -> IRModule:
    mod = parse("\n".join([*(p.text() for p in programs), more]), "programs").module
    assert mod is not None
    check(mod)
    return mod


def together(programs: Sequence[Program]) -> IRModule:
    """The programs and a function that calls all, for their extents' numbers."""
    params = [f"{p.name}: {programs[0].type(p)}" for p in programs[0].params]
    names = ", ".join([*(p.name for p in programs[0].params), "%n"])
    calls = [f"@{p.prefix}main({names})" for p in programs]
    mod = module(programs, f"def @main({', '.join(params)}, %n: int32) {{ ({', '.join(calls)},) }}")
    return DynamicToStatic()(mod)


def compare(first: int, count: int) -> None:
    """Compare the programs of so many seeds, in one module for each compiler."""
    seeds = range(first, first + count)
    # Limits that are constants, and limits that an input gives, take different ways.
    limits = ["2", "3"] if first // count % 2 else ["2", "%n"]
    pick = np.random.default_rng(first)
    chosen = [EXTENTS[int(n)] for n in pick.permutation(len(EXTENTS))[:2]]

    def programs(names: Mapping[str, int] | None = None) -> list[Program]:
        return [Program(seed, f"p{seed}_", limits, names) for seed in seeds]

    opened = programs()
    texts = {p.prefix: p.text() for p in programs()}
    mod = module(opened)
    executable = compile_vm(mod, f"c {OPTIONS}", entries=[f"{p.prefix}main" for p in opened])
    compiled = compile_module(together(programs(chosen[0])), f"c {OPTIONS}")
    evaluator = Evaluator(mod)
    wrong: list[str] = []

    def same(what: str, program: Program, got: Any, wanted: Any) -> None:
        try:
            assert_same(got, wanted)
        except AssertionError as e:
            wrong.append(f"{what}, {program.prefix}: {e}\n{texts[program.prefix]}")

    for names in chosen:
        for turns in (3, 1):
            args = [*arguments(opened[0].params, names, first + turns), np.int32(turns)]
            results = compiled.run(*args) if names is chosen[0] else None  # type: ignore[attr-defined]
            for number, program in enumerate(opened):
                entry = f"{program.prefix}main"
                wanted, failure = outcome(lambda entry=entry, args=args: evaluator.call(entry, args))
                got, found = outcome(lambda entry=entry, args=args: executable.call(entry, args))
                if failure != found:
                    wrong.append(f"{names}, {program.prefix}: {found} in place of {failure}\n{texts[program.prefix]}")
                    continue
                assert failure is None, texts[program.prefix]
                same(f"VM, {names}", program, got, wanted)
                if results is not None:
                    same(f"c, {names}", program, results[number], wanted)
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("part", range(2))
def test_random_extents(part: int) -> None:
    compare(part * FEW, FEW)


@pytest.mark.sweep
@pytest.mark.search
@pytest.mark.parametrize("part", range(1, 501))
def test_many_random_extents(part: int) -> None:
    compare(part * MANY, MANY)
