"""Changed programs: never an exception that is no `RelayError`, every error with a place, at most twenty."""

from __future__ import annotations

import pytest

from tests.shared import few
from tests.syntax.mutants import mutants, problem, unsound


@pytest.mark.parametrize("count", few([100, 300], 100))
def test_mutants_are_read_or_refused(count: int) -> None:
    wrong = [(what, text[:300]) for text, _ in mutants(20, count) if (what := problem(text)) is not None]
    assert wrong == []


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.sweep)])
def test_every_verb_takes_mutants(count: int) -> None:
    """Print and format give the same program again. The editor's diagnostics after an edit are those of the whole
    text."""
    wrong = [(what, text[:300]) for text, of in mutants(21, count, gentle=True) if (what := unsound(text, of)) is not None]
    assert wrong == []
