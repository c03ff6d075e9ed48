"""The comparison of outputs on pages with real outputs."""

from __future__ import annotations

import pytest

from tests.docs.blocks import fits


@pytest.mark.parametrize(
    ("wanted", "printed"),
    [
        ("[[0.17354596 0.19506538]]\n", "[[0.17354594 0.1950654 ]]\n"),
        ("[0.5 0.123456]", "[0.5 0.123457]"),
        ("took ... ms, 0.123456", "took 12 ms, 0.1234561"),
        ("1.234567e-05", "1.234568e-05"),
    ],
)
def test_floats_count_as_numbers(wanted: str, printed: str) -> None:
    assert fits(wanted, printed)


@pytest.mark.parametrize(
    ("wanted", "printed"),
    [
        ("[0.17354596]", "[0.17356]"),
        ("[0.17354596 0.5]", "[0.17354596 0.6]"),
        ("0.17354596 : float32", "0.17354596 : float64"),
        ("[0.17354596]", "[-0.17354596]"),
        ("a ... b", "a \n b"),
    ],
)
def test_what_differs_does_not_fit(wanted: str, printed: str) -> None:
    assert not fits(wanted, printed)
