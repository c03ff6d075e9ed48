"""Operators of torchvision, which a program may call without torchvision at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
_LIBRARY = []


@pytest.fixture(scope="module", autouse=True)
def operators() -> None:
    """The operators' names and results where torchvision is absent, so that torch can trace them."""
    if hasattr(torch.ops.torchvision, "nms"):
        pytest.skip("torchvision is installed and has operators of its own")
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width,"
        " int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("nms", lambda boxes, scores, limit: torch.from_numpy(kept(boxes.numpy(), scores.numpy(), limit)), "CPU")
    library.impl("roi_align", lambda x, rois, scale, h, w, *rest: x.new_zeros(len(rois), x.shape[1], h, w), "CPU")
    _LIBRARY.append(library)


def kept(boxes: np.ndarray, scores: np.ndarray, limit: float) -> np.ndarray:
    """The places of boxes that overlap with no better one that stays, the best first."""
    areas, places = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]), []
    for i in np.argsort(-scores):
        low, high = (f(boxes[places][:, a], boxes[i, a]) for f, a in ((np.maximum, [0, 1]), (np.minimum, [2, 3])))
        shared = np.maximum(high - low, 0).prod(1)
        if not (shared / (areas[i] + areas[places] - shared) > limit).any():
            places.append(i)
    return np.array(places, np.int64)


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
