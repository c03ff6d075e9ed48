"""Extents that models name, and reshapes to shapes of them."""

from __future__ import annotations

import pytest

from relaylang.frontends.common.extents import Extents
from relaylang.frontends.common.shapes import numbers_for
from relaylang.ir import ANY, Dim, TypeVar
from relaylang.ir.extents import combine
from relaylang.ir.types import dim_text
from relaylang.ops.reshape import new_shape
from relaylang.syntax.name_text import KEYWORDS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("batch", "batch"),
        ("past + 1", "past + 1"),
        ("past+batch", "batch + past"),
        ("2*past - 3", "2 * past - 3"),
        ("floor(past / 2)", "past / 2"),
        ("Max(1, past)", "max(1, past)"),
        ("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))", "2 * s0 + 1"),
        ("Mul(2, Symbol('s1'), Symbol('s0'))", "2 * s0 * s1"),
        ("-past + 8", "8 - past"),
        ("max(past - 1, 0)", "max(past - 1, 0)"),
    ],
)
def test_expressions(text: str, shown: str) -> None:
    extents = Extents()
    extents.declare(["batch", "past", text])
    assert dim_text(extents.dim(text)) == shown and extents.dim(text) is extents.dim(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("batch-size", "batch_size"),
        ("?", "?"),
        ("", "?"),
        ("1x", "n1x"),
        ("let", "nlet"),
        ("größe", "gr__e"),
        ("other + 1", "other___1"),
        ("past / 0", "past___0"),
        ("past.seq", "past_seq"),
        ("f(past, past)", "f_past__past_"),
        ("past if past else 1", "past_if_past_else_1"),
        ("(" * 150 + "past" + ")" * 150, "_" * 150 + "past" + "_" * 150),
        ("past" + "+past" * 50_000, "past" + "_past" * 50_000),
    ],
)
def test_other_texts_are_names(text: str, name: str) -> None:
    extents = Extents()
    extents.declare(["past"])
    assert dim_text(extents.dim(text)) == name and name not in KEYWORDS


def test_texts_that_make_one_name_stay_apart() -> None:
    extents = Extents()
    dims = [extents.dim(text) for text in ("a b", "a.b", "a_b", "a b")]
    assert [dim_text(d) for d in dims] == ["a_b", "a_b_1", "a_b_2", "a_b"] and dims[0] is dims[3]


def test_options_fix_names() -> None:
    extents = Extents()
    inputs = {"x": ["batch", "seq"], "y": ["batch", "seq + 1"], "z": ["seq", ""]}
    extents.declare(text for texts in inputs.values() for text in texts)
    extents.fix({"batch": (2,), "z": (5, 3)}, inputs)
    assert [extents.dim(t) for t in inputs["y"]] == [2, 6] and extents.fixed == {"batch": 2, "seq": 5}
    several = Extents()
    several.declare(["batch", "seq"])
    several.fix({"x": (1, 4), "y": (2, 5)}, inputs)
    assert several.fixed == {"seq": 4}


B, T, H = (TypeVar(name, "ShapeVar") for name in "bth")
BT, T8 = combine("tir.Mul", B, T), combine("tir.Mul", T, 8)


class Refused:
    """What a relation asks, where nothing may be wrong."""

    def fail(self, message: str, arg: int | None = None, notes: object = ()) -> None:
        raise AssertionError(message)


@pytest.mark.parametrize(
    ("have", "wanted", "numbers"),
    [
        ((B, T, 64), (B, T, 4, 16), [0, 0, 4, 16]),
        ((B, T, 4, 16), (B, T, 64), [0, 0, 64]),
        ((B, T, 64), (BT, 64), [-3, 64]),
        ((BT, 64), (B, T, 64), None),
        ((B, 4, T, 16), (combine("tir.Mul", B, 4), T, 16), [-3, 0, 16]),
        ((combine("tir.Mul", B, 4), T, 16), (B, 4, T, 16), [-4, -1, 4, 0, 16]),
        ((B, T8), (B, 8, T), [0, 8, -1]),
        ((B, T, H), (B, combine("tir.Mul", T, H)), [0, -3]),
        ((B, T, 4), (combine("tir.Mul", BT, 4),), [-1]),
        ((B, T), (T, B), None),
        ((B, ANY), (B, ANY), None),
        ((B, 4), (B, 0), None),
        ((B, 4), (4, B), [4, -1]),
    ],
)
def test_numbers_of_reshapes(have: tuple[Dim, ...], wanted: tuple[Dim, ...], numbers: list[int] | None) -> None:
    assert numbers_for(have, wanted) == numbers
    if numbers is not None:
        assert new_shape(have, numbers, False, Refused()) == list(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("have", "wanted", "numbers", "shape"),
    [
        ((B, T, 48), (B, T, 4, -1), [0, 0, 4, -1], [B, T, 4, 12]),
        ((B, 1, 48), (B, 1, 4, -1), [0, 1, 4, -1], [B, 1, 4, 12]),
        ((B, T, 48), (B, -1), [0, -1], [B, combine("tir.Mul", T, 48)]),
        ((B, T, 48), (-1, 48), [-1, 48], [combine("tir.Mul", B, T), 48]),
        ((B, T, 48), (-1, T, -1), None, None),
        ((B, T, 48), (T, -1), None, None),
    ],
)
def test_an_extent_of_a_reshape_that_is_found(
    have: tuple[Dim, ...], wanted: tuple[Dim, ...], numbers: list[int] | None, shape: list[Dim] | None
) -> None:
    assert numbers_for(have, wanted) == numbers
    if numbers is not None:
        assert new_shape(have, numbers, False, Refused()) == shape  # type: ignore[arg-type]
