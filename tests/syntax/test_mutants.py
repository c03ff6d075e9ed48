"""Changed programs: never an exception that is no `RelayError`, every error with a place, at most twenty."""

from __future__ import annotations

from tests.syntax.mutants import mutants, problem


def test_three_hundred_mutants() -> None:
    wrong = [(what, text[:300]) for text in mutants(20, 300) if (what := problem(text)) is not None]
    assert wrong == []
