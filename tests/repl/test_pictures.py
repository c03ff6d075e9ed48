"""Tensors as bars and heat maps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaylang.repl.pictures import Style, picture, statistics

WIDE = Style(40)
PLAIN = Style(40, plain=True)
COLOURS = Style(40, color=True)


def lines(data: object, style: Style = WIDE) -> list[str]:
    return picture(np.asarray(data), style).split("\n")


def test_a_vector_is_a_line_of_bars() -> None:
    assert lines([0, 1, 2, 3, 4, 5, 6, 7]) == ["least 0, mean 3.5, greatest 7", "▁▂▃▄▅▆▇█"]
    assert lines([0.0, 1.0], PLAIN)[1] == "_@"
    assert lines(3.5) == ["least 3.5, mean 3.5, greatest 3.5", "▅"]
    assert lines([True, False])[1] == "█▁"
    assert lines(np.arange(1000))[1] == "▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████"


def test_a_matrix_is_shades() -> None:
    assert lines([[0, 1], [2, 4]])[1:] == ["  ░░", "▒▒██"]
    assert lines([[0, 1], [2, 4]], PLAIN)[1:] == ["  ::", "++@@"]


def test_a_matrix_is_colours_of_half_blocks() -> None:
    drawn = lines([[0.0, 1.0], [2.0, 3.0]], Style(3, color=True))
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in drawn[1:]] == ["▀▀"]
    found = [[int(n) for n in codes] for codes in re.findall(r"38;5;(\d+);48;5;(\d+)", drawn[1])]
    assert len(found) == 2 and len({n for pair in found for n in pair}) == 4 and drawn[1].endswith("\x1b[0m")
    odd = lines([[0.0], [1.0], [2.0]], Style(2, color=True))
    assert len(odd) == 3 and "48;5" in odd[1] and "48;5" not in odd[2]


def test_zero_has_its_own_place_between_two_signs() -> None:
    drawn = lines([[-1.0]] * 2 + [[0.0]] * 2 + [[1e-3]] * 2, Style(2, color=True))[1:]
    below, zero, above = (re.findall(r"38;5;(\d+)", line)[0] for line in drawn)
    assert below != zero == above


@pytest.mark.parametrize("style", [WIDE, PLAIN, COLOURS, Style(1), Style(2, True)])
@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (500, 700), (1, 900), (900, 1), (4, 60)])
def test_pictures_stay_in_the_terminal(style: Style, shape: tuple[int, int]) -> None:
    drawn = lines(np.arange(shape[0] * shape[1]).reshape(shape), style)[1:]
    widths = {len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in drawn}
    assert len(drawn) <= 24 and len(widths) == 1 and max(widths) <= max(2, style.width)


def test_numbers_that_are_not_finite() -> None:
    assert lines([np.nan, 1, np.inf, 3]) == ["least 1, mean 2, greatest 3, 2 not finite", "?▁?█"]
    assert lines([np.nan, np.nan]) == ["2 not finite", "??"]
    assert lines([[np.nan, 1], [2, 3]])[1].startswith("??")
    assert "38;5;201" in lines([[np.nan, 1], [2, 3]], COLOURS)[1]
    with np.errstate(all="raise"):
        assert lines([1e308, -1e308])[1] == "█▁"


def test_more_dimensions_show_the_first_matrix() -> None:
    drawn = lines(np.arange(24).reshape(2, 3, 4))
    assert drawn[1] == "[0, :, :] of (2, 3, 4)" and len(drawn) == 5
    assert lines(np.zeros((0, 3))) == ["no elements"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(), (3,), (1000,), (1, 5), (60, 300), (2, 2, 3)])
def test_extreme_numbers_have_pictures(shape: tuple[int, ...]) -> None:
    some = np.array([np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 0.0])
    generator = np.random.default_rng(0)
    for numbers in (some, some[3:], some[5:], some[:3]):
        data = generator.choice(numbers, size=shape)
        for style in (Style(20), Style(80, color=True), Style(80, plain=True)):
            assert picture(np.asarray(data), style)
    assert statistics(np.array([1.7e308, 1.7e308])) == "least 1.7e+308, mean 1.7e+308, greatest 1.7e+308"
