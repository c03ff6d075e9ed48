"""Random programs of loops: the VM and target `c` give the interpreter's values."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.target import Target
from relaylang.backends.vm.build import make_program
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.vm.agree import assert_same
from tests.shared import check_each

T = "Tensor[(2, 3), float32]"
ROWS = "Tensor[(?, 2, 3), float32]"


class Generator:
    """Writes a program whose loops lie inside each other and behind each other, end in several ways, and keep rows."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = 0
        #: functions of the module that are loops
        self.functions: list[str] = []

    def name(self, kind: str) -> str:
        self.count += 1
        return f"%{kind}{self.count}"

    def value(self, tensors: list[str]) -> str:
        a, b = (str(self.rng.choice(tensors)) for _ in range(2))
        ways = [f"tanh({a})", f"add({a}, {b})", f"multiply({a}, sigmoid({b}))", f"subtract({a}, multiply({b}, 0.5f))"]
        return str(self.rng.choice([*ways, f"if (greater(max({a}), 0.5f)) {{ {b} }} else {{ negative({a}) }}"]))

    def loop(self, tensors: list[str], limits: list[str], depth: int) -> tuple[list[str], str]:
        """The lines that bind a loop and its call, and the name of a tensor that comes of it."""
        rng = self.rng
        loop, turn, state, other, rows = (self.name(kind) for kind in ("loop", "i", "s", "t", "rows"))
        kept = depth == 0 and rng.random() < 0.4
        inside = [*tensors, state, other]
        body: list[str] = []
        for _ in range(rng.integers(1, 4)):
            if depth < 2 and rng.random() < 0.4:
                lines, name = self.loop(inside, limits, depth + 1)
                body += lines
            else:
                name = self.name("v")
                body.append(f"let {name} = {self.value(inside)};")
            inside.append(name)
        states = [inside[-1], str(rng.choice(inside))]
        again = [f"add({turn}, 1)", *states, *([f"concatenate(({rows}, expand_dims({states[0]}, axis=0)))"] if kept else [])]
        params = [f"{turn}: int32", f"{state}: {T}", f"{other}: {T}", *([f"{rows}: {ROWS}"] if kept else [])]
        names = [turn, state, other, *([rows] if kept else [])]
        sums = f"add({state}, sum({rows}, axis=[0]))" if kept else f"add({state}, {other})"
        ends = [(f"({', '.join(names)})", f"(int32, {T}, {T}{f', {ROWS}' if kept else ''})", ".1"), (sums, T, "")]
        end, ty, field = ends[int(rng.integers(2))]
        first, limit = int(rng.integers(-2, 3)), str(rng.choice(limits))
        begin = [str(first), *rng.choice(tensors, 2), *(['zeros(shape=[0, 2, 3], dtype="float32")'] if kept else [])]
        result = self.name("r")
        lines = [
            f"let {loop} = fn ({', '.join(params)}) -> {ty} {{",
            f"if (less({turn}, {limit})) {{ {' '.join(body)} {loop}({', '.join(again)}) }} else {{ {end} }} }};",
            f"let {result} = {loop}({', '.join(begin)}){field};",
        ]
        return lines, result

    def function(self, tensors: list[str], limits: list[str]) -> tuple[str, str]:
        """The line that calls a loop that is a function of the module, and its result. It passes its limit on, or has one."""
        name, result = self.name("loop").replace("%", "@"), self.name("r")
        passed = self.rng.random() < 0.5
        limit, more = ("%m", f", %m: int32, %u: {T}") if passed else ("5", f", %u: {T}")
        again = f"{name}(add(%i, 1), {self.value(['%s', '%u'])}{', %m' if passed else ''}, %u)"
        end = self.value(["%s", "%u"])
        self.functions.append(
            f"def {name}(%i: int32, %s: {T}{more}) -> {T} {{ if (less(%i, {limit})) {{ {again} }} else {{ {end} }} }}"
        )
        a, b = (str(self.rng.choice(tensors)) for _ in range(2))
        return f"let {result} = {name}(0, {a}{f', {self.rng.choice(limits)}' if passed else ''}, {b});", result

    def program(self) -> str:
        tensors, lines = ["%x", "%w"], []
        limits = ["%n", "4", "6"] if self.rng.random() < 0.5 else ["4", "7"]
        for _ in range(self.rng.integers(1, 3)):
            more, name = self.loop(tensors, limits, 0)
            lines += more
            tensors.append(name)
        for _ in range(self.rng.integers(0, 3)):
            line, name = self.function(tensors, limits)
            lines.append(line)
            tensors.append(name)
        main = f"def @main(%x: {T}, %w: {T}, %n: int32) {{ {' '.join(lines)} ({', '.join(tensors[2:])},) }}"
        return "\n".join([*self.functions, main])


def agrees(seed: int) -> None:
    mod = parse(Generator(seed).program()).module
    assert mod is not None
    check(mod)
    rng = np.random.default_rng(seed)
    x, w = (rng.standard_normal((2, 3), "float32") for _ in range(2))
    programs = [make_program(mod, Target("c", {"num-threads": 1}), ["main"], True).run]
    try:
        programs.append(compile_module(mod, "c -num-threads=1").run)  # type: ignore[attr-defined]
    except RelayError as refused:  # rows whose number an input gives
        assert refused.diagnostics[0].code == "R0634"
    for limit in (3, 0):
        wanted = evaluate(mod, x, w, np.int32(limit))
        for run in programs:
            assert_same(run(x, w, np.int32(limit)), wanted)


def test_random_loops() -> None:
    check_each(agrees, range(2))


@pytest.mark.sweep
@pytest.mark.search
@pytest.mark.parametrize("part", range(10))
def test_many_random_loops(part: int) -> None:
    check_each(agrees, range(10 + 10 * part, 20 + 10 * part))
