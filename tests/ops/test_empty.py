"""Calls on tensors without elements, or with too few, that nothing could compute: the checker refuses them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.consistency.calls import Made
from tests.consistency.outcome import Refused, function, wrong

F, I8, I32 = np.float32, np.int8, np.int32
SCALES = [F(0.5), F(0.5)]
CONV = {"channels": 4, "kernel_size": [3, 3], "out_dtype": "int32"}

CASES: list[tuple[Made, str]] = [
    (
        (
            "qnn.dense",
            {"units": 5, "out_dtype": "int32"},
            [np.ones((3, 8), I8), np.ones((5, 8), I8), I32(1), np.ones(2, I32), *SCALES],
        ),
        "2 zero points for 5",
    ),
    (
        ("qnn.conv2d", CONV, [np.ones((1, 2, 5, 5), I8), np.ones((4, 2, 3, 3), I8), I32(1), np.ones(3, I32), *SCALES]),
        "3 zero points for 4",
    ),
    (
        ("qnn.conv2d_transpose", CONV, [np.ones((1, 2, 5, 5), I8), np.ones((2, 4, 3, 3), I8), I32(1), np.ones(3, I32), *SCALES]),
        "3 zero points for 4",
    ),
    (
        ("image.crop_and_resize", {"crop_size": [2, 2]}, [np.ones((0, 3, 4, 4), F), np.ones((1, 4), F), np.zeros(1, I32)]),
        "has no images",
    ),
    (
        (
            "vision.roi_align",
            {"pooled_size": [2, 2], "spatial_scale": 1.0, "layout": "NCHW", "sample_ratio": 1},
            [np.ones((0, 3, 4, 4), F), np.zeros((1, 5), F)],
        ),
        "has no images",
    ),
    (
        (
            "qnn.simulated_dequantize",
            {"axis": 1, "out_dtype": "float32"},
            [np.ones((2, 3), F), I32(1), np.ones(3, F), np.ones(0, I32)],
        ),
        "0 zero points for 3",
    ),
    (("qnn.simulated_quantize", {"axis": 0}, [np.ones((2, 3), F), I32(1), np.ones(3, F), I32(0)]), "3 scales for 2"),
    (("qnn.simulated_quantize", {}, [np.ones((2, 3), F), np.ones(0, I32), F(1), I32(0)]), "must be a scalar"),
    (("dyn.strided_slice", {}, [np.ones((4, 5), F), np.ones(0, I32), np.ones(2, I32), np.ones(2, I32)]), "extent of 0"),
    (("argmax", {"axis": [1]}, [np.ones((2, 0), F)]), "has no entries to choose from"),
    (("argmin", {}, [np.ones((0, 3), F)]), "has no entries to choose from"),
    (("take", {"axis": 1}, [np.ones((2, 0, 4), F), np.ones((2, 2), I32)]), "has no entries to choose from"),
    (("take", {}, [np.ones((2, 0), F), I32(1)]), "has no entries to choose from"),
    (("gather", {"axis": 1}, [np.ones((2, 0), F), np.ones((2, 1), I32)]), "has no entries to choose from"),
    (("gather_nd", {}, [np.ones((2, 0, 4), F), np.ones((2, 3), I32)]), "has no entries to choose from"),
    (("adv_index", {}, [(np.ones((0, 4), F), np.ones(2, I32))]), "has no entries to choose from"),
    (("random.multinomial", {"num_samples": 2}, [np.ones(10, np.uint64), np.ones((3, 0), F)]), "has no entries to choose"),
    (("nn.pad", {"pad_width": [[1, 0]], "pad_mode": "edge"}, [np.ones(0, F), F(0)]), "has no entries along axis 0"),
]


@pytest.mark.parametrize("made, said", CASES, ids=[f"{n}-{c[0][0]}" for n, c in enumerate(CASES)])
def test_refused(made: Made, said: str) -> None:
    with pytest.raises(Refused, match=said):
        function(made)


def test_nothing_is_normalised_without_a_word() -> None:
    """Numpy warns of means of nothing."""
    nothing = np.ones((2, 0), F)
    made = "nn.layer_norm", {"axis": -1}, [nothing, np.ones(0, F), np.ones(0, F)]
    assert function(made) and wrong(made) is None
