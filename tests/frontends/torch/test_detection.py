"""Detection networks of torchvision, traced and scripted: boxes whose number depends on data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaylang as relay  # noqa: E402
from relaylang.frontends.options import Options  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, flat  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, saved, traced  # noqa: E402
from tests.frontends.torch.vision_operators import torchvision  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

#: Networks, the extent of the picture, and options. Low thresholds keep boxes of untrained networks.
NETWORKS: dict[str, tuple[int, dict[str, Any]]] = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": (160, {"box_score_thresh": 0.01}),
    "ssdlite320_mobilenet_v3_large": (160, {"score_thresh": 0.01}),
    "retinanet_resnet50_fpn": (96, {"score_thresh": 0.01, "min_size": 96, "max_size": 128}),
    "fcos_resnet50_fpn": (96, {"score_thresh": 0.01, "min_size": 96, "max_size": 128}),
    "maskrcnn_resnet50_fpn": (
        96,
        {
            "box_score_thresh": 0.01,
            "box_detections_per_img": 6,
            "rpn_post_nms_top_n_test": 30,
            "min_size": 96,
            "max_size": 128,
        },
    ),
    "keypointrcnn_resnet50_fpn": (
        96,
        {
            "box_score_thresh": 0.01,
            "box_detections_per_img": 6,
            "rpn_post_nms_top_n_test": 30,
            "num_keypoints": 3,
            "min_size": 96,
            "max_size": 128,
        },
    ),
    "ssd300_vgg16": (160, {"score_thresh": 0.01}),
}
#: Factors of weights in heads for classes. The features of VGG are large, and scores that are 1 would have no order.
SMALL = {"ssd300_vgg16": 0.001}


class Detector(torch.nn.Module):  # type: ignore[misc]
    """A network whose results are tensors: boxes, scores, labels, and masks or keypoints where it has them."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Any) -> Any:
        made = self.network(x)[0]
        return tuple([made[name] for name in ("boxes", "scores", "labels", "masks", "keypoints") if name in made])


def detector(name: str, options: dict[str, Any]) -> Any:
    """A network of random weights that keep their scale from layer to layer; small ones in heads keep scores apart."""
    torch.manual_seed(0)
    made = getattr(torchvision().models.detection, name)(weights=None, weights_backbone=None, num_classes=4, **options)
    for path, weight in made.named_parameters():
        if weight.ndim > 1:
            torch.nn.init.kaiming_normal_(weight)
            small = any(part in path for part in ("predictor", "classification", "regression", "rpn.head", "logits"))
            weight.data *= 0.01 if "bbox" in path or "cls_score" in path else SMALL.get(name, 0.1) if small else 1
    return Detector(made).eval().requires_grad_(False)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NETWORKS)
def test_a_detector_finds_the_boxes_that_torch_finds(name: str) -> None:
    module, x, wanted = program(name)
    assert relay.infer(module, fresh=True) == []
    check(values(module, (x,)), wanted, x.shape[-1])


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["ssdlite320_mobilenet_v3_large", "fcos_resnet50_fpn"])
def test_a_scripted_detector_finds_the_boxes_that_torch_finds(name: str) -> None:
    """It takes a list of pictures."""
    extent, options = NETWORKS[name]
    model = detector(name, options)
    x = torch.rand(3, extent, extent)
    script = torch.jit.script(model.network)
    module = import_pytorch(saved(script), Options({"images.0": tuple(x.shape)}), "net.pt").module
    check(values(module, (x,)), model(x[None]), extent)


@pytest.mark.sweep
def test_a_detector_in_the_vm_finds_the_boxes_that_torch_finds() -> None:
    """The compiler of static programs refuses it, and names the VM."""
    module, x, wanted = program("ssdlite320_mobilenet_v3_large")
    found = relay.create_executor("vm", module).evaluate()(x.numpy())
    check([f.numpy() for f in found], wanted, x.shape[-1])
    with pytest.raises(relay.RelayError) as refused:
        relay.build(module, "c")
    assert any("relay compile --runtime vm" in note for note in refused.value.diagnostics[0].notes)


def program(name: str) -> tuple[Any, Any, Any]:
    """The program of a traced network, a picture, and torch's results."""
    extent, options = NETWORKS[name]
    model = detector(name, options)
    x = torch.rand(1, 3, extent, extent)
    with torch.no_grad():
        wanted = model(x)
    assert len(wanted[0]) > 4
    return imported(traced(model, (x,)), (x,)).module, x, wanted


def check(found: list[np.ndarray], results: Any, extent: int) -> None:
    """Boxes, scores, labels, and masks or keypoints are those of torch, in its order but for nearly equal scores."""
    assert [(f.shape, f.dtype) for f in found] == [(w.shape, w.numpy().dtype) for w in results]
    boxes, scores, labels, *more = [w.numpy() for w in results]
    # Sums of float32 in another order than torch's, which the processor decides: 5e-4 with AVX-512.
    np.testing.assert_allclose(found[1], scores, rtol=1e-3)
    order = partners((boxes, scores, labels), found, extent)
    for part, right in zip(found[3:], more):
        np.testing.assert_allclose(part[order], right, rtol=0, atol=1e-3 if right.ndim == 4 else 1e-4 * extent)


def test_keypoints_of_heat_maps_are_those_of_torch() -> None:
    """They are equal to the last bit: differences in networks come from what the features round."""
    torchvision()
    from torchvision.models.detection.roi_heads import heatmaps_to_keypoints

    maps = torch.randn(5, 3, 56, 56, generator=torch.Generator().manual_seed(5))
    boxes = torch.tensor([[3.3, 4.7, 60.1, 70.9], [20, 30, 34.2, 58.8], [0, 0, 96, 96], [50.1, 40.5, 50.8, 47], [10, 2, 33.3, 44.4]])
    module = traced(Call(heatmaps_to_keypoints), (maps, boxes))
    points, scores = heatmaps_to_keypoints(maps, boxes)
    found = values(imported(module, (maps, boxes)).module, (maps, boxes))
    assert np.array_equal(found[0], points.numpy())
    np.testing.assert_allclose(found[1], scores.numpy(), rtol=1e-5)


def partners(wanted: Any, found: list[np.ndarray], extent: int) -> np.ndarray:
    """The place of each wanted box among those found. Boxes whose scores differ in the last bits may change places."""
    rows = [np.concatenate([b / extent, s[:, None], n[:, None]], 1) for b, s, n in (wanted, found[:3])]
    apart = np.abs(rows[0][:, None] - rows[1]).max(2)
    assert max(apart.min(0).max(), apart.min(1).max()) < 2e-4
    return apart.argmin(1)


def kept_in_parts(x: Any) -> Any:
    """The positive elements, in parts of extents that the data tell."""
    positive = x[torch.where(x > 0)[0]]
    count = positive.shape[0]
    return positive.split([count]), positive.split([1, count - 3, 2])


def candidates(x: Any) -> Any:
    """The best of the elements that pass, of which there may be fewer than 8."""
    passing = x[x > 0]
    k = torch.min(torch.cat([torch.tensor([8]), torch._shape_as_tensor(passing)]))
    best, places = passing.topk(k)  # a tensor in the place of a number stays traced
    return best, places, passing[places]


@pytest.mark.parametrize("function", [kept_in_parts, candidates])
def test_parts_of_traced_extents(function: Any) -> None:
    """Of other data than the traced ones, too: the extents are no constants."""
    example = torch.tensor([3.0, -1, 2, 5, -4, 1, 6])
    module = traced(Call(lambda x: tuple(flat(function(x)))), (example,))
    program = imported(module, (example,)).module
    for x in (example, torch.tensor([3.0, 1, 2, 5, 4, 1.5, 6]), torch.tensor([-3.0, 1, 2, 5, -4, 1.5, -6])):
        same(values(program, (x,)), tuple(module(x)))
