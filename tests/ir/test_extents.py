"""Arithmetic on extents."""

from __future__ import annotations

import pytest

from relaylang.ir import ANY, Extent, SymbolicDim
from relaylang.ir.extents import DEEPEST, combine
from relaylang.ir.types import TypeVar, dim_text


@pytest.mark.parametrize(
    "key, a, b, made",
    [
        ("tir.Add", 2, 3, 5),
        ("tir.FloorDiv", -7, 2, -4),
        ("tir.Div", -7, 2, -3),
        ("tir.Mod", -7, 2, -1),
        ("tir.Max", 2, 3, 3),
    ],
)
def test_numbers_of_numbers(key: str, a: int, b: int, made: int) -> None:
    found = combine(key, a, b)
    assert found == made and type(found) is int
    wide = combine(key, a, Extent(b))
    assert wide == made and type(wide) is Extent


def test_equal_sums_and_products_are_the_same() -> None:
    n, m = SymbolicDim("n"), SymbolicDim("m")
    five = combine("tir.Add", n, 5)
    assert combine("tir.Add", combine("tir.Add", 2, n), 3) is five is combine("tir.Sub", combine("tir.Add", n, 9), 4)
    assert combine("tir.Sub", five, 5) is n and dim_text(five) == "n + 5"
    assert combine("tir.Add", combine("tir.Sub", five, 12), 3) is combine("tir.Add", n, -4)
    assert dim_text(combine("tir.Add", n, -4)) == "n - 4"
    assert combine("tir.Mul", combine("tir.Mul", 2, n), 3) is combine("tir.Mul", n, 6)
    assert combine("tir.Mul", five, 3) is not combine("tir.Mul", n, 15) and dim_text(combine("tir.Mul", five, 3)) == "(n + 5) * 3"
    assert combine("tir.Add", n, m) is combine("tir.Add", n, m) is not combine("tir.Add", m, n)


@pytest.mark.parametrize("key, neutral", [("tir.Add", 0), ("tir.Sub", 0), ("tir.Mul", 1), ("tir.FloorDiv", 1)])
def test_what_is_not_known(key: str, neutral: int) -> None:
    bound = TypeVar("n", "ShapeVar")
    for dim in (ANY, bound):
        assert combine(key, dim, neutral) is dim
        assert combine(key, dim, 2) is combine(key, dim, SymbolicDim("m")) is ANY


def test_a_deep_computation_is_not_known() -> None:
    n, m = SymbolicDim("n"), SymbolicDim("m")
    dim = n
    for _ in range(DEEPEST):
        dim = combine("tir.Add", dim, m)
    assert dim is not ANY and combine("tir.Add", dim, m) is ANY
