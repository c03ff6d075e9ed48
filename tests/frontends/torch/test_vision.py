"""Operators of torchvision, which a program may call without torchvision at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402
from tests.frontends.torch.vision_operators import define, kept  # noqa: E402

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
