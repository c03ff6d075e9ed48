"""Changed programs: never an exception that is no `RelayError`, every error with a place, at most twenty."""

from __future__ import annotations

import pytest

from tests.syntax.mutants import mutants, problem, unsound


def test_three_hundred_mutants() -> None:
    wrong = [(what, text[:300]) for text, _ in mutants(20, 300) if (what := problem(text)) is not None]
    assert wrong == []


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.sweep)])
def test_every_verb_takes_mutants(count: int) -> None:
    """Print and format give the same program again. The editor's diagnostics after an edit are those of the whole
    text."""
    wrong = [(what, text[:300]) for text, of in mutants(21, count, gentle=True) if (what := unsound(text, of)) is not None]
    assert wrong == []
