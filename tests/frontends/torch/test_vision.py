"""Operators of torchvision, which a program may call without torchvision at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
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

    def __init__(self, aligned: bool) -> None:
        super().__init__()
        self.aligned = aligned

    def forward(self, x: Any, rois: Any) -> Any:
        return torch.ops.torchvision.roi_align(x, rois, 0.5, 2, 2, 2, self.aligned)


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
    with pytest.raises(RelayError, match="aligned regions"):
        imported(traced(Regions(True), (x, rois)), (x, rois))
