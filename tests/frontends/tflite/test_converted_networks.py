"""Networks from TensorFlow's converter compute what the runtime computes; whole numbers are at most 1 apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.frontends.tflite.runtime import compare

schema = pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
DATA = Path(__file__).parent / "data"
NAMES = ("mobilenet_int8", "keywords_int8")


def inputs(name: str, count: int) -> list[np.ndarray]:
    """Pictures or sounds of int8."""
    rng = np.random.default_rng(4)
    shape = {"mobilenet_int8": (1, 96, 96, 3), "keywords_int8": (1, 49, 10, 1)}[name]
    return [rng.integers(-128, 128, shape).astype("int8") for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
def test_a_network_gives_the_runtimes_integers(name: str) -> None:
    """All layers but the softmax at the end are whole-number ones."""
    mod = compare((DATA / f"{name}.tflite").read_bytes(), *[[x] for x in inputs(name, 4)], apart=1)
    text = mod.astext(show_meta_data=False)
    assert text.count("qnn.dequantize(") == 1 and text.count("qnn.conv2d(") == {"mobilenet_int8": 21, "keywords_int8": 9}[name]


@pytest.mark.parametrize("name, shape", [("loops", (1, 5, 4)), ("rounded", (1, 16, 16, 3)), ("variables", (3,))])
def test_a_network_of_real_numbers(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    compare((DATA / f"{name}.tflite").read_bytes(), *[[rng.normal(size=shape).astype("float32")] for _ in range(3)])
