"""Two or three independent mistakes in one program: each is found, and nothing that follows from it is shown."""

from __future__ import annotations

import pytest

from tests.typing.joined import errors, functions, measure, renamed, statements

MISSPELT = "def @main(%x: Tensor[(2, 3), float32]) {\n  nn.rellu(%x)\n}\n"
UNCLOSED = "def @main(%x: Tensor[(2, 3), float32]) {\n  add(%x, exp(%x)\n}\n"
MISTYPED = "def @main(%x: int32) {\n  %0 = add(%x, 1f);\n  %0\n}\n"


def test_programs_are_joined() -> None:
    assert renamed(MISTYPED, 1).splitlines()[:2] == ["def @main_b(%x_b: int32) {", "  %2000 = add(%x_b, 1f);"]
    for joined in (functions([MISSPELT, UNCLOSED, MISTYPED]), statements([MISSPELT, UNCLOSED, MISTYPED])):
        assert joined is not None
        assert [code for code, _, _ in joined.wanted] == ["R0202", "R0102", "R0301"]
        assert errors(joined.text) == joined.wanted


def rates(seed: int, count: int) -> tuple[float, float]:
    """The share of errors that are found, and that of follow-ups."""
    total, missed, more = measure(seed, count)
    return (total - missed) / total, more / total


def test_mistakes_are_found_together() -> None:
    found, more = rates(1, 60)
    assert found >= 0.98 and more <= 0.01


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(4))
def test_many_mistakes_are_found_together(seed: int) -> None:
    found, more = rates(seed, 1000)
    assert found >= 0.98 and more <= 0.01
