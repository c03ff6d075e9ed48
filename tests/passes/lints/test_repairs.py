"""Repairs of random programs: these stay well-typed, keep their comments, and give the same values."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.diagnostics.source import SourceFile
from relaylang.interpreter import Evaluator
from relaylang.ir import IRModule, type_text
from relaylang.passes.lints import lint, repaired
from relaylang.syntax import parse
from relaylang.testing.generators.functional import Functional
from relaylang.testing.generators.typed import PRELUDE, Typed
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome
from tests.shared import few


def read(text: str) -> tuple[IRModule, list[Diagnostic]]:
    """A program and its findings."""
    mod = parse(text, "net.relay").module
    assert mod is not None
    check(mod)
    return mod, lint(mod, SourceFile("net.relay", text))


def repair(text: str) -> tuple[IRModule, IRModule]:
    """A program before and after its repairs. None is left, and the types are the same."""
    before, _ = read(text)
    source = SourceFile("net.relay", text)
    after, left = read(repaired(source, lint, lambda source: read(source.text)[0])[0])
    assert not [d for d in left if d.fix is not None]
    old, new = before["main"].checked_type, after["main"].checked_type
    assert old is not None and new is not None and type_text(old) == type_text(new)
    return before, after


@pytest.mark.parametrize("seed", few(range(0, 500, 10), 80))
def test_types_stay(seed: int) -> None:
    repair(PRELUDE + Typed(seed, "", sums=True).text())


@pytest.mark.parametrize("seed", few(range(100), 3, 7))
def test_values_stay(seed: int) -> None:
    before, after = repair(Functional(seed, references=seed % 2 == 1, data=seed % 3 != 0).text(3 + seed % 14))
    rng = np.random.default_rng(seed)
    args = [(rng.integers(-8, 9, (2, 3)) / 4).astype("float32") for _ in range(2)]
    with np.errstate(all="ignore"):
        (old, failure), (new, failed) = (outcome(lambda mod=mod: Evaluator(mod).call("main", args)) for mod in (before, after))
    assert (failure and failure[:2]) == (failed and failed[:2])
    if failure is None:
        assert_same(new, old, 0, 0)


class Idle:
    """Random arithmetic in signs, with calls that change nothing, names that nobody uses, and comments."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = 0

    def text(self) -> str:
        return f"def @main(%a: {_T}, %b: {_T}, %c: bool) {{\n  {self.block(4, ['%a', '%b'])}\n}}\n"

    def block(self, depth: int, names: list[str]) -> str:
        lines = []
        for _ in range(self.rng.randrange(3)):
            value = self.expr(depth - 1, names)
            self.names += 1
            names = [*names, f"%v{self.names}"]
            lines.append(f"let {names[-1]} = {value};{self.rng.choice(['', ' ', chr(10)])}{self.comment()}")
        return " ".join([*lines, self.expr(depth, names)])

    def expr(self, depth: int, names: list[str]) -> str:
        if depth <= 0:
            return self.comment() + self.rng.choice([*names, *names, "2f", "-1f", 'cast(0.1f64, dtype="float32")'])
        one, two = self.expr(depth - 1, names), self.expr(depth - 2, names)
        made = self.rng.choice(
            [
                f"{one} {self.rng.choice('+-*/')} {two}",
                f"{two} {self.rng.choice('+-*/')} {one}",
                f"-{one}",
                f"({one})",
                f'cast({one}, dtype="float32")',
                f"negative(negative({one}))",
                f"nn.relu(nn.relu({one}))",
                f"reverse(reverse(reshape({one}, newshape=[2, 3]), axis=1), axis=1)" if self.rng.random() < 0.3 else f"abs({one})",
                f"(if (%c) {{ {self.block(depth - 2, names)} }} else {{ {two} }})",
                f"({self.block(depth - 2, names)})",
                f"({one}, {two}).{self.rng.randrange(2)}",
            ]
        )
        return made + self.comment()

    def comment(self) -> str:
        self.names += 1
        return self.rng.choice([""] * 12 + [f" /* {self.names} */ ", f" // {self.names}\n"])


_T = "Tensor[(2, 3), float32]"
_COMMENTS = re.compile(r"/\* \d+ \*/|// \d+")


@pytest.mark.parametrize("seed", few(range(1_000), 40, 5))
def test_signs_and_comments_stay(seed: int) -> None:
    text = Idle(seed).text()
    try:
        read(text)
    except RelayError:
        return  # a scalar cannot be reversed
    source = SourceFile("net.relay", text)
    made, _ = repaired(source, lint, lambda source: read(source.text)[0])
    assert _COMMENTS.findall(made) == _COMMENTS.findall(text)
    before, after = repair(text)
    rng = np.random.default_rng(seed)
    args = [*[(rng.integers(-8, 9, (2, 3)) / 4).astype("float32") for _ in range(2)], np.bool_(seed % 2)]
    with np.errstate(all="ignore"):
        old, new = (Evaluator(mod).call("main", args) for mod in (before, after))
    assert np.asarray(old).dtype == np.asarray(new).dtype
    assert np.asarray(old).tobytes() == np.asarray(new).tobytes()
