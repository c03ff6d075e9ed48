"""Models of many layers in every format: the work of an import grows with their number, and shared results are read once."""

from __future__ import annotations

from functools import partial

import pytest

from relaylang.ir import Call, post_order
from tests.frontends.chains import FORMATS, Layers, chain, doublings, read
from tests.growth import assert_linear

SHAPES = {"chain": chain, "doublings": doublings}
pytestmark = [pytest.mark.parametrize("shape", SHAPES), pytest.mark.parametrize("name", FORMATS)]


def file(name: str, layers: Layers) -> bytes:
    """A model's file. Skips where the packages that write it are not installed."""
    for package in FORMATS[name].packages:
        pytest.importorskip(package)
    return FORMATS[name].write(layers)


def test_work_grows_with_the_number_of_layers(name: str, shape: str) -> None:
    assert_linear(lambda n: partial(read, name, file(name, SHAPES[shape](n))))


@pytest.mark.sweep
def test_a_hundred_thousand_layers_are_read(name: str, shape: str) -> None:
    made = read(name, file(name, SHAPES[shape](100_000)))
    assert sum(isinstance(node, Call) for node in post_order(made.module["main"])) == 100_000
