"""Operators of torchvision, which a program may call without torchvision at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, pt2  # noqa: E402
from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402
from tests.frontends.torch.vision_operators import define, kept  # noqa: E402
from tests.shared import check_each  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def operators() -> None:
    """The operators' names and results, so that torch can trace them."""
    define()


class Suppressed(torch.nn.Module):  # type: ignore[misc]
    """Boxes that stay."""

    def forward(self, boxes: Any, scores: Any) -> Any:
        return torch.ops.torchvision.nms(boxes, scores, 0.3)


class Regions(torch.nn.Module):  # type: ignore[misc]
    """Features of regions."""

    def __init__(self, aligned: bool, ratio: int = 2) -> None:
        super().__init__()
        self.aligned, self.ratio = aligned, ratio

    def forward(self, x: Any, rois: Any) -> Any:
        return torch.ops.torchvision.roi_align(x, rois, 0.5, 2, 2, self.ratio, self.aligned)


def test_overlapping_boxes_are_suppressed() -> None:
    random = np.random.default_rng(3)
    corners = random.random((20, 2), np.float32)
    boxes = torch.from_numpy(np.concatenate([corners, corners + random.random((20, 2), np.float32)], 1))
    scores = torch.from_numpy(random.permutation(20).astype(np.float32))
    found = values(imported(traced(Suppressed(), (boxes, scores)), (boxes, scores)).module, (boxes, scores))
    assert 1 < found[0].size < 20 and np.array_equal(found[0], kept(boxes.numpy(), scores.numpy(), 0.3))


def test_features_of_regions() -> None:
    """On a ramp, the mean of sampled places is the ramp's value at their middle."""
    x = torch.arange(8.0).expand(1, 1, 8, 8)
    rois = torch.tensor([[0.0, 4, 2, 12, 10]])
    found = values(imported(traced(Regions(False), (x, rois)), (x, rois)).module, (x, rois))[0]
    np.testing.assert_allclose(found, [[[[3, 5], [3, 5]]]], rtol=1e-6)


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("aligned", [False, True])
def test_regions_of_each_extent(aligned: bool, ratio: int) -> None:
    """Of several images; smaller than an element, larger than the image, and outside of it."""
    x = torch.randn(2, 3, 9, 8)
    rois = torch.tensor([[0.0, 4, 2, 12, 10], [1, 3, 3, 3.5, 3.75], [1, -4, -6, 30, 22], [0, 40, 40, 44, 50], [1, 5, 5, 5, 5]])
    model = Regions(aligned, ratio)
    found = values(imported(traced(model, (x, rois)), (x, rois)).module, (x, rois))[0]
    np.testing.assert_allclose(found, model(x, rois).numpy(), rtol=1e-5, atol=1e-5)


#: Regions of two images: within, smaller than an element, larger than the image, outside, and without extent.
#: The last one has 31 rows in 7 cells. In float32, 7 * (31 / 7) is more than 31, so its last cell has a row more.
ROIS = torch.tensor(
    [[0.0, 4, 2, 12, 10], [1, 3, 3, 3.5, 3.75], [1, -4, -6, 90, 82], [0, 140, 40, 144, 50], [1, 5, 5, 5, 5], [0, 9, 1, 5, 61]]
)
POOLS = {
    "roi_pool": lambda x, rois: torch.ops.torchvision.roi_pool(x, rois, 0.5, 7, 3)[0],
    "ps_roi_pool": lambda x, rois: torch.ops.torchvision.ps_roi_pool(x, rois, 0.5, 7, 3)[0],
    "ps_roi_align": lambda x, rois: torch.ops.torchvision.ps_roi_align(x, rois, 0.5, 7, 3, 2)[0],
    "ps_roi_align adaptive": lambda x, rois: torch.ops.torchvision.ps_roi_align(x, rois, 0.5, 7, 3, -1)[0],
}


def from_trace(model: Any, given: tuple[Any, ...]) -> Any:
    return imported(traced(model, given), given).module


def from_export(model: Any, given: tuple[Any, ...]) -> Any:
    return import_pytorch(pt2(model, given)).module


@pytest.mark.parametrize("door", [from_trace, from_export])
@pytest.mark.parametrize("name", POOLS)
def test_pools_of_regions(name: str, door: Any) -> None:
    x = torch.randn(2, 42, 36, 40)
    model = Call(POOLS[name])
    found = values(door(model, (x, ROIS)), (x, ROIS))[0]
    np.testing.assert_allclose(found, model(x, ROIS).numpy(), rtol=1e-5, atol=1e-5)


def test_the_channels_of_cells_are_whole_numbers() -> None:
    x = torch.randn(2, 21, 36, 40)
    module = traced(Call(POOLS["ps_roi_pool"]), (x, ROIS))
    with pytest.raises(RelayError) as refused:
        imported(module, (x[:, :20], ROIS))
    assert "20 channels do not divide into 7 x 3 cells" in str(refused.value.diagnostics[0])


def deformed(
    outputs: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    offset_groups: int,
    masked: bool,
    door: Any = from_trace,
) -> None:
    """The program of a deformable convolution computes what the operator does. Places move beyond all borders."""
    size = (9, 8)
    out = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(size, pad, dilation, kernel, stride)]
    taps = offset_groups * kernel[0] * kernel[1]
    x, weight, bias = torch.randn(2, 4, *size), torch.randn(outputs, 4 // groups, *kernel), torch.randn(outputs)
    moves, mask = torch.randn(2, 2 * taps, *out) * 3, torch.rand(2, taps, *out)
    given = (x, moves, mask) if masked else (x, moves)

    def function(x: Any, moves: Any, mask: Any = None) -> Any:
        mask = torch.zeros(2, 1) if mask is None else mask
        return torch.ops.torchvision.deform_conv2d(
            x, weight, moves, mask, bias, *stride, *pad, *dilation, groups, offset_groups, masked
        )

    found = values(door(Call(function), given), given)[0]
    np.testing.assert_allclose(found, function(*given).numpy(), rtol=1e-5, atol=1e-4)


DEFORMED = {
    "padded": (6, (3, 3), (1, 1), (1, 1), (1, 1), 1, 1, False),
    "without padding": (6, (3, 2), (1, 1), (0, 0), (1, 1), 1, 1, False),
    "one side": (4, (3, 3), (2, 1), (0, 2), (1, 2), 2, 2, False),
    "strides": (6, (2, 3), (2, 3), (0, 1), (2, 1), 2, 4, False),
    "masked": (6, (3, 3), (1, 1), (1, 1), (1, 1), 1, 1, True),
    "masked groups": (4, (3, 2), (2, 1), (0, 2), (1, 2), 2, 2, True),
    "masked without padding": (4, (1, 3), (1, 2), (0, 0), (1, 1), 4, 1, True),
}


@pytest.mark.parametrize("door", [from_trace, from_export])
def test_deformable_convolutions(door: Any) -> None:
    check_each(lambda case: deformed(*case, door), DEFORMED.values(), DEFORMED)
