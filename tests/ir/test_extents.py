"""Arithmetic on extents."""

from __future__ import annotations

import pytest

from relaylang.ir import ANY, Extent, SymbolicDim
from relaylang.ir.extents import DEEPEST, agree, combine, exact_quotient, never_agree, solve, with_names
from relaylang.ir.types import Dim, TypeVar, computed_dim, dim_text


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
    assert dim_text(combine("tir.Mul", five, 3)) == "3 * n + 15"
    assert combine("tir.Add", n, m) is combine("tir.Add", m, n)


def product(*dims: Dim) -> Dim:
    total: Dim = 1
    for dim in dims:
        total = combine("tir.Mul", total, dim)
    return total


@pytest.mark.parametrize("bound", [True, False])
def test_sums_of_products_have_one_form(bound: bool) -> None:
    b, t = (TypeVar(name, "ShapeVar") if bound else SymbolicDim(name) for name in "bt")
    both = combine("tir.Add", b, t)
    assert product(both, combine("tir.Sub", b, t)) is combine("tir.Sub", product(b, b), product(t, t))
    assert product(t, 8, b) is product(b, product(4, t), 2) and dim_text(product(t, 8, b)) == "8 * b * t"
    assert combine("tir.Sub", both, t) is b and combine("tir.Sub", both, both) == 0
    assert dim_text(combine("tir.Sub", 5, b)) == "5 - b"
    assert dim_text(product(b, combine("tir.FloorDiv", both, 2))) == "b * ((b + t) / 2)"


def test_quotients_keep_what_is_less_than_the_divisor() -> None:
    n = SymbolicDim("n")

    def half(dim: Dim) -> Dim:
        return combine("tir.FloorDiv", dim, 2)

    assert combine("tir.Add", half(combine("tir.Sub", n, 1)), 1) is half(combine("tir.Add", n, 1))
    assert dim_text(half(combine("tir.Add", half(combine("tir.Add", n, 1)), 1))) == "(n + 3) / 4"
    assert half(product(n, 4)) is product(n, 2) and half(combine("tir.Add", product(n, 4), 1)) is product(n, 2)
    assert combine("tir.FloorMod", combine("tir.Add", product(n, 4), 3), 2) == 1
    first, second = combine("tir.FloorDiv", combine("tir.Sub", product(n, 6), 5), 4), half(half(combine("tir.Sub", n, 3)))
    for number in range(12):
        assert with_names(first, {n: number}.__getitem__) == (6 * number - 5) // 4
        assert with_names(second, {n: number}.__getitem__) == (number - 3) // 2 // 2


def test_extents_that_agree() -> None:
    b, t = TypeVar("b", "ShapeVar"), TypeVar("t", "ShapeVar")
    assert agree(b, product(b, 2)) is False is agree(b, 4) and never_agree(b, product(b, 2)) and not never_agree(b, 4)
    assert agree(combine("tir.FloorDiv", b, 2), 4) is None is agree(ANY, b) and agree(product(b, t), product(t, b)) is True
    assert solve(product(b, 2), 8, b) == 4 and solve(product(b, 2), 7, b) is None is solve(combine("tir.Add", b, 3), 2, b)
    assert solve(combine("tir.Add", b, 1), combine("tir.Add", t, 1), b) is t and solve(product(b, t), 8, b) is ANY
    assert exact_quotient(product(b, t, 64), product(t, 32)) is product(b, 2) and exact_quotient(b, t) is ANY
    assert dim_text(exact_quotient(product(b, t, 64), product(t, 128))) == "b / 2"


def test_what_is_not_known() -> None:
    n = TypeVar("n", "ShapeVar")
    for key, neutral in (("tir.Add", 0), ("tir.Sub", 0), ("tir.Mul", 1), ("tir.FloorDiv", 1)):
        assert combine(key, ANY, neutral) is ANY and combine(key, n, neutral) is n
        assert combine(key, ANY, 2) is combine(key, ANY, n) is ANY


def test_a_long_or_deep_computation_is_not_known() -> None:
    dim: Dim = SymbolicDim("n")
    for number in range(DEEPEST):
        dim = combine("tir.Add", dim, SymbolicDim(f"m{number}"))
    assert dim is not ANY and combine("tir.Add", dim, 1) is ANY
    dim = n = SymbolicDim("n")
    for _ in range(40):  # twice the text each time
        dim = combine("tir.FloorDiv", combine("tir.Add", combine("tir.Mul", dim, dim), 1), 3)
    assert dim is ANY
    doubled = computed_dim("tir.Add", (n, n))
    for _ in range(59):
        doubled = computed_dim("tir.Add", (doubled, doubled))
    assert agree(doubled, product(n, 1 << 60)) is True
