"""Resize, Upsample and RoiAlign in all their forms, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx.reference import ReferenceEvaluator  # noqa: E402

from relaylang.frontends.onnx import import_onnx  # noqa: E402
from relaylang.frontends.options import Options  # noqa: E402
from relaylang.interpreter.evaluate import Evaluator  # noqa: E402
from tests.frontends.onnx.models import model, node  # noqa: E402
from tests.frontends.onnx.runtime import theirs  # noqa: E402

COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
X = np.random.RandomState(0).randn(1, 2, 4, 5).astype("f4")


def ours(data: bytes, inputs: dict[str, np.ndarray]) -> np.ndarray:
    made = import_onnx(data, Options())
    return np.asarray(Evaluator(made.module, made.params).call("main", (), inputs))


def check(
    x: np.ndarray,
    opset: int,
    weights: dict[str, np.ndarray],
    inputs: list[str],
    opened: bool = False,
    op: str = "Resize",
    **attrs: Any,
) -> None:
    """Sums of integers may be 1 apart: onnxruntime adds with float32 before it cuts them."""
    if op == "Resize" and opset == 11 and not inputs[1]:  # the region is required there
        inputs, weights = ["x", "r", *inputs[2:]], {**weights, "r": np.zeros(0, np.float32)}
    shape = [f"d{i}" for i in range(x.ndim)] if opened else x.shape
    data = model([node(op, inputs, **attrs)], {"x": shape}, weights=weights, opset=opset, dtypes={"x": x.dtype.name})
    wanted, found = theirs(data, {"x": x})[0], ours(data, {"x": x})
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), (attrs, weights)
    apart = np.abs(found.astype("f8") - wanted.astype("f8")).max(initial=0)
    copies = attrs.get("mode", "nearest") == "nearest"
    most = 0 if copies else 1 if x.dtype.kind in "iu" else {2: 4e-3}.get(x.itemsize, 2e-5) * max(1, np.abs(wanted).max(initial=0))
    assert apart <= most, (attrs, weights, apart)


@pytest.mark.parametrize("opened", [False, True])
def test_an_axis_keeps_its_extent(opened: bool) -> None:
    """onnxruntime copies where all extents stay, though a scale is not 1; with antialias axis by axis.

    The specification's reference moves the places by the scale. Extents known only later change nothing.
    """
    x, disagree = np.array([[[[0, 1, 9], [4, 25, 16]]]], np.float32), 0
    for mode, antialias, scales in (
        ("linear", 0, [1.25, 1.3]),
        ("cubic", 0, [1.25, 1.3]),
        ("linear", 1, [1.25, 1.7]),
        ("cubic", 1, [1.25, 1.7]),
        ("nearest", 0, [1.25, 1.3]),
        ("linear", 0, [1, 1.3]),
        ("linear", 0, [1.25, 1.7]),
    ):
        for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"):
            if opened and antialias:
                continue
            attrs = {"mode": mode, "coordinate_transformation_mode": coordinates, "antialias": antialias}
            weights = {"s": np.array([1, 1, *scales], np.float32)}
            data = model([node("Resize", ["x", "", "s"], **attrs)], {"x": x.shape}, weights=weights, opset=19)
            reference = ReferenceEvaluator(onnx.load_from_string(data)).run(None, {"x": x})[0]
            disagree += not np.allclose(theirs(data, {"x": x})[0], reference, rtol=1e-5, atol=1e-5)
            check(x, 19, weights, ["x", "", "s"], opened, **attrs)
    assert disagree >= (8 if opened else 16)


def test_scales_that_are_computed_keep_extents() -> None:
    x = np.array([[[[0, 1, 9], [4, 25, 16]]]], np.float32)
    for mode in ("nearest", "linear", "cubic"):
        data = model([node("Resize", ["x", "", "s"], mode=mode)], {"x": x.shape, "s": (4,)}, opset=19)
        for scales in ([1, 1, 1.25, 1.3], [1, 1, 1.25, 1.7], [1, 1, 2, 1]):
            inputs = {"x": x, "s": np.array(scales, np.float32)}
            np.testing.assert_allclose(ours(data, inputs), theirs(data, inputs)[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales_and_sizes(mode: str, coordinates: str) -> None:
    """Scales that do not lead to whole extents, and places in the middle of two elements."""
    region = {"r": np.array([0, 0, 0.25, -0.125, 1, 1, 0.75, 1.125], np.float32)} if coordinates == "tf_crop_and_resize" else {}
    for rounding in ROUNDINGS if mode == "nearest" else ROUNDINGS[:1]:
        attrs = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rounding, "extrapolation_value": 9.0}
        name = "r" if region else ""
        check(X, 19, {"s": np.array([1, 1, 1.7, 0.6], np.float32), **region}, ["x", name, "s"], **attrs)
        check(X, 19, {"z": np.array([1, 2, 7, 3]), **region}, ["x", name, "", "z"], **attrs)


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 19])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_every_version(mode: str, opset: int) -> None:
    """Opset 10 takes the upper neighbour where an axis shrinks."""
    for scales in ([1, 1, 2, 3], [1, 1, 0.6, 0.4], [1, 1, 1.5, 0.7]):
        check(X, opset, {"s": np.array(scales, np.float32)}, ["x", "s"] if opset == 10 else ["x", "", "s"], mode=mode)


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(opset: int) -> None:
    for mode in ("nearest", "linear"):
        for scales in ([1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.7, 1.3]):
            given: dict[str, Any] = {"scales": scales} if opset == 7 else {}
            weights = {} if given else {"s": np.array(scales, np.float32)}
            check(X, opset, weights, ["x", *weights], op="Upsample", mode=mode, **given)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_integers(dtype: str) -> None:
    """A sum of weighted integers has a fraction, which is cut; the weights themselves are no integers."""
    x = (np.random.RandomState(1).rand(1, 2, 5, 6) * 120).astype(dtype)
    for mode in ("nearest", "linear"):
        check(x, 19, {"z": np.array([1, 2, 8, 9])}, ["x", "", "", "z"], mode=mode)
    if dtype != "int8":  # onnxruntime cuts negative numbers of int8 as if they were uint8
        check(x, 19, {"z": np.array([1, 2, 3, 4])}, ["x", "", "", "z"], mode="linear", antialias=1)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("opened", [False, True])
def test_axes_and_policies(policy: str, opened: bool) -> None:
    for axes, sizes in (([2, 3], [7, 3]), ([3, 2], [7, 9]), ([3], [8]), ([-1, -2], [4, 2])):
        attrs = {"axes": [a % 4 for a in axes], "keep_aspect_ratio_policy": policy}
        for mode in ("nearest", "linear", "cubic"):
            check(X, 19, {"z": np.array(sizes)}, ["x", "", "", "z"], opened, mode=mode, **attrs)


@pytest.mark.parametrize("opened", [False, True])
def test_an_axis_of_the_batch_is_resized(opened: bool) -> None:
    x = np.random.RandomState(2).randn(2, 3, 4, 2).astype("f4")
    check(x, 13, {"z": np.array([2, 6, 3, 2])}, ["x", "", "", "z"], opened, mode="linear")
    check(x, 13, {"z": np.array([4, 5, 3, 2])}, ["x", "", "", "z"], opened)


def test_an_axis_becomes_empty() -> None:
    check(X, 13, {"s": np.array([1, 1, 0.1, 2], np.float32)}, ["x", "", "s"], mode="linear")


def _draw(rng: np.random.Generator, opened: bool) -> None:
    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    rank, mode, coordinates = int(rng.integers(1, 6)), pick("nearest", "linear", "cubic"), pick(*COORDINATES)
    opset = 19 if coordinates == "half_pixel_symmetric" else pick(11, 13, 18, 19)
    dtype = pick("float32", "float32", "float32", "uint8", "int32")
    shape = [int(n) for n in rng.integers(1, 6, rank)]
    axes = pick(list(range(rank)), list(range(min(2, rank - 1), rank)), list(range(1, rank - 1)) or [0])
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attrs["nearest_mode"] = pick(*ROUNDINGS)
    elif opset >= 18 and not opened:
        attrs["antialias"] = pick(0, 1)
    if mode == "cubic":
        attrs |= {"cubic_coeff_a": pick(-0.75, -0.5), "exclude_outside": pick(0, 1)}
    scales = [pick(1.0, 0.5, 2.0, 0.6, 1.7, 3.0, 0.3, 1.25, 0.7) if i in axes else 1.0 for i in range(rank)]
    sizes = [int(rng.integers(1, 10)) if i in axes else n for i, n in enumerate(shape)]
    stated = list(range(rank))
    if opset >= 18 and pick(0, 1):
        stated = attrs["axes"] = [int(a) for a in rng.permutation(axes)]
    weights, inputs = {}, ["x", ""]
    if coordinates == "tf_crop_and_resize":
        begin, end = rng.uniform(-0.2, 0.5, rank), rng.uniform(0.5, 1.2, rank)
        begin, end = [[float(v) if i in axes else edge for i, v in enumerate(part)] for part, edge in ((begin, 0.0), (end, 1.0))]
        weights["r"] = np.array([begin[a] for a in stated] + [end[a] for a in stated], np.float32)
        inputs[1] = "r"
    if pick(0, 1):
        weights["s"] = np.array([scales[a] for a in stated], np.float32)
        inputs.append("s")
        after = [int(np.float32(n) * np.float32(s)) for n, s in zip(shape, scales)]
    else:
        weights["z"] = np.array([sizes[a] for a in stated])
        inputs += ["", "z"]
        after = sizes
        if opset >= 18 and coordinates != "tf_crop_and_resize":
            attrs["keep_aspect_ratio_policy"] = pick("stretch", "not_larger", "not_smaller")
    if inputs[1] and any(n == m for i, (n, m) in enumerate(zip(shape, after)) if i in axes):
        return  # onnxruntime leaves such an axis as it is, whatever the region
    x = np.clip(rng.standard_normal(shape) * (1 if dtype == "float32" else 40), -100 if dtype != "uint8" else 0, 200).astype(dtype)
    try:
        check(x, opset, weights, inputs, opened, **attrs)
    except Exception as wrong:
        if "onnxruntime" not in type(wrong).__module__:
            raise  # onnxruntime has kernels for some combinations only


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 40))])
def test_combinations(seed: int, opened: bool) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        _draw(rng, opened)


def _regions(kind: str, rng: np.random.Generator, count: int = 6) -> np.ndarray:
    begin, extent = {
        "large": (rng.uniform(-3, 10, (count, 2)), rng.uniform(0, 20, (count, 2))),
        "small": (rng.uniform(0, 20, (count, 2)), rng.uniform(0, 1.5, (count, 2))),
        "whole": (rng.integers(-2, 10, (count, 2)), rng.integers(0, 15, (count, 2))),
        "none": (np.zeros((0, 2)), np.zeros((0, 2))),
    }[kind]
    return np.concatenate([begin, begin + extent], 1).astype(np.float32)


def roi_align(regions: np.ndarray, x: np.ndarray, images: np.ndarray, **attrs: Any) -> None:
    shapes = {"x": x.shape, "r": regions.shape, "i": images.shape}
    data = model([node("RoiAlign", ["x", "r", "i"], **attrs)], shapes, opset=16, dtypes={"i": "int64"})
    inputs = {"x": x, "r": regions, "i": images}
    np.testing.assert_allclose(ours(data, inputs), theirs(data, inputs)[0], rtol=1e-5, atol=2e-5, err_msg=str(attrs))


def test_regions_below_one_element() -> None:
    """Half pixels move a region, and leave its extent: the centre of 1 to 1.5 is at 0.75."""
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    regions = np.array([[1, 1, 1.5, 1.5]], np.float32)
    attrs = {"output_height": 1, "output_width": 1, "sampling_ratio": 1}
    data = model([node("RoiAlign", ["x", "r", "i"], **attrs)], {"x": x.shape, "r": (1, 4), "i": (1,)}, opset=16, dtypes={"i": "int64"})
    assert ours(data, {"x": x, "r": regions, "i": np.zeros(1, np.int64)}).tolist() == [[[[3.75]]]]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 12))])
def test_roi_align(seed: int, coordinates: str, mode: str) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 3, 6, 7)).astype(np.float32)
    for ratio, kinds in ((0, ("large", "small", "whole", "none")), (1, ("small", "large")), (2, ("whole", "small"))):
        for kind in kinds:
            regions = _regions(kind, rng)
            height, width = ((1, 1), (2, 3), (7, 7))[rng.integers(3)]
            scale = (1.0, 0.25, 0.5)[rng.integers(3)]
            roi_align(
                regions,
                x,
                rng.integers(0, 2, len(regions)),
                mode=mode,
                coordinate_transformation_mode=coordinates,
                output_height=height,
                output_width=width,
                sampling_ratio=ratio,
                spatial_scale=scale,
            )
