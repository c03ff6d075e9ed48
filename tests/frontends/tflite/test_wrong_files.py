"""Damaged TFLite files: a diagnostic, never a crash."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.options import Options
from relaylang.frontends.tflite import import_tflite
from tests.frontends.tflite.files import Op, T, const, file

pytest.importorskip("tflite")


def small() -> bytes:
    """Two layers with a weight."""
    tensors = {"x": T((2, 3)), "w": const(np.ones((4, 3), "float32")), "a": T((2, 4)), "y": T((2, 4))}
    options = {"FusedActivationFunction": 1}
    return file(
        tensors,
        [Op("FULLY_CONNECTED", ["x", "w"], ["a"], "FullyConnectedOptions", options), Op("RELU", ["a"])],
        ["x"],
        ["y"],
    )


def wrong(data: bytes, **options: object) -> tuple[str, str]:
    """The code of the first diagnostic, and all text."""
    with pytest.raises(RelayError) as raised:
        import_tflite(data, Options(**options), file="net.tflite")
    return raised.value.diagnostics[0].code, str(raised.value)


def seeds() -> dict[str, bytes]:
    """Files of several families."""
    found = {"dense": small()}
    for name in ("loops", "rounded", "variables"):
        found[name] = (Path(__file__).parent / "data" / f"{name}.tflite").read_bytes()
    return found


@pytest.mark.sweep
@pytest.mark.sample(2)
@pytest.mark.parametrize("name, count", [("dense", 3000), ("loops", 60), ("rounded", 150), ("variables", 300)])
def test_every_mutant_is_read_or_refused(name: str, count: int) -> None:
    data, rng = seeds()[name], random.Random(3)
    for _ in range(count):
        mutant = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            mutant[rng.randrange(len(mutant))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        if rng.random() < 0.2:
            del mutant[rng.randrange(len(mutant)) :]
        try:
            import_tflite(bytes(mutant))
        except RelayError as said:
            assert said.diagnostics


def test_what_is_wrong_is_said() -> None:
    data = small()
    assert wrong(data[:40])[0] == "R0802"
    assert wrong(b"no model")[0] == "R0802"
    assert wrong(data, shapes={"z": (1,)})[0] == "R0804"
    tensors = {"x": T((2, 3)), "y": T((2, 3)), "a": T((2, 3))}
    code, text = wrong(file(tensors, [Op("MyOwn", ["x"])], ["x"], ["y"]))
    assert code == "R0801" and "1 x MyOwn  first in y" in text
    code, text = wrong(file(tensors, [Op("RELU", ["a"])], ["x"], ["y"]))
    assert code == "R0802" and "no layer before this one makes the tensor a" in text


def test_a_layer_without_results_has_a_place() -> None:
    tensors = {"x": T((3, 4, 2)), "n": T((3,), "int32")}
    op = Op("REVERSE_SEQUENCE", ["x", "n"], [], "ReverseSequenceOptions", {"SeqDim": 9, "BatchDim": 0})
    code, text = wrong(file(tensors, [op], ["x", "n"], []))
    assert code[0] == "R" and "_ = REVERSE_SEQUENCE(x, n)" in text
