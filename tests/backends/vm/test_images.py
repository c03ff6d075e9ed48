"""Networks of images whose batch, height and width are unknown: compiled code beside the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params
from tests.backends.vm.agree import assert_same
from tests.backends.vm.test_programs import module
from tests.backends.vm.test_unknown import loaded
from tests.shared import few

Shapes = Callable[[int, int, int], "list[tuple[int, ...]]"]
#: Programs, and the shapes of their arguments for so many images of a height and a width.
NETWORKS: dict[str, tuple[str, Shapes]] = {
    "channels first": (
        """
def @main(%x: Tensor[(?, 3, ?, ?), float32], %w: Tensor[(8, 3, 3, 3), float32], %d: Tensor[(8, 1, 3, 3), float32],
          %p: Tensor[(16, 8, 1, 1), float32]) {
  let %y = nn.relu(nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]));
  let %z = nn.relu(nn.conv2d(%y, %d, padding=[1, 1, 1, 1], groups=8, channels=8, kernel_size=[3, 3]));
  let %q = nn.max_pool2d(nn.conv2d(add(%z, %y), %p, channels=16, kernel_size=[1, 1]), pool_size=[3, 3], strides=[2, 2],
                         padding=[1, 1, 1, 1]);
  (nn.upsampling(%q, scale_h=2f, scale_w=2f), nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(%q))),
   nn.avg_pool2d(%q, pool_size=[3, 3], padding=[1, 1, 1, 1], ceil_mode=True), nn.adaptive_max_pool2d(%q, output_size=[3, 3])) }
""",
        lambda n, h, w: [(n, 3, h, w), (8, 3, 3, 3), (8, 1, 3, 3), (16, 8, 1, 1)],
    ),
    "channels last": (
        """
def @main(%x: Tensor[(?, ?, ?, 3), float32], %w: Tensor[(3, 3, 3, 16), float32], %d: Tensor[(3, 3, 16, 1), float32],
          %p: Tensor[(1, 1, 16, 32), float32]) {
  let %y = nn.conv2d(%x, %w, strides=[2, 2], padding=[0, 0, 1, 1], channels=16, kernel_size=[3, 3], data_layout="NHWC",
                     kernel_layout="HWIO");
  let %z = nn.conv2d(%y, %d, padding=[1, 1, 1, 1], groups=16, channels=16, kernel_size=[3, 3], data_layout="NHWC",
                     kernel_layout="HWOI");
  let %q = nn.conv2d(nn.relu(%z), %p, channels=32, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
  let %m = nn.max_pool2d(%q, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], layout="NHWC");
  (%m, nn.avg_pool2d(%m, pool_size=[3, 3], padding=[1, 1, 1, 1], layout="NHWC"), nn.global_max_pool2d(%m, layout="NHWC")) }
""",
        lambda n, h, w: [(n, h, w, 3), (3, 3, 3, 16), (3, 3, 16, 1), (1, 1, 16, 32)],
    ),
    "transposed": (
        """
def @main(%x: Tensor[(?, 6, ?, ?), float32], %w: Tensor[(6, 4, 3, 3), float32], %v: Tensor[(6, 2, 4, 4), float32]) {
  (nn.conv2d_transpose(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1], channels=4, kernel_size=[3, 3]),
   nn.conv2d_transpose(%x, %v, strides=[2, 2], padding=[1, 1, 1, 1], groups=2, channels=4, kernel_size=[4, 4]),
   nn.conv2d_transpose(%x, %w, channels=4, kernel_size=[3, 3])) }
""",
        lambda n, h, w: [(n, 6, h, w), (6, 4, 3, 3), (6, 2, 4, 4)],
    ),
    "quantised": (
        """
def @main(%x: Tensor[(?, ?, ?, 3), uint8], %w: Tensor[(3, 3, 3, 16), int8], %d: Tensor[(3, 3, 16, 1), int8]) {
  let %a = qnn.conv2d(%x, %w, 10, 0, 0.1f, 0.2f, strides=[2, 2], padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3],
                      data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32");
  let %b = qnn.requantize(%a, 0.02f, 0, 0.3f, 5, out_dtype="uint8");
  let %c = qnn.conv2d(%b, %d, 5, 0, 0.3f, 0.2f, padding=[1, 1, 1, 1], groups=16, channels=16, kernel_size=[3, 3],
                      data_layout="NHWC", kernel_layout="HWOI", out_dtype="int32");
  (qnn.requantize(%c, 0.06f, 0, 0.4f, 7, out_dtype="uint8"), nn.max_pool2d(%b, pool_size=[2, 2], padding=[1, 1], layout="NHWC")) }
""",
        lambda n, h, w: [(n, h, w, 3), (3, 3, 3, 16), (3, 3, 16, 1)],
    ),
    "one and three axes": (
        """
def @main(%x: Tensor[(?, 4, ?), float32], %w: Tensor[(6, 4, 3), float32], %y: Tensor[(?, 2, ?, ?, ?), float32],
          %v: Tensor[(4, 2, 3, 3, 3), float32]) {
  (nn.conv1d(%x, %w, strides=[2], padding=[1, 1], channels=6, kernel_size=[3]), nn.max_pool1d(%x, pool_size=[3], strides=[2]),
   nn.conv3d(%y, %v, padding=[1, 1, 1, 1, 1, 1], channels=4, kernel_size=[3, 3, 3]),
   nn.avg_pool3d(%y, pool_size=[2, 2, 2], strides=[2, 2, 2])) }
""",
        lambda n, h, w: [(n, 4, h), (6, 4, 3), (n, 2, h, w, h), (4, 2, 3, 3, 3)],
    ),
    "groups": (
        """
def @main(%x: Tensor[(?, 8, ?, ?), float32], %w: Tensor[(12, 2, 3, 3), float32], %y: Tensor[(?, ?, ?, 8), float32]) {
  (nn.conv2d(%x, %w, padding=[2, 2, 2, 2], dilation=[2, 2], groups=4, channels=12, kernel_size=[3, 3]),
   nn.conv2d(%y, %w, padding=[1, 1, 1, 1], groups=4, channels=12, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="OIHW")) }
""",
        lambda n, h, w: [(n, 8, h, w), (12, 2, 3, 3), (n, h, w, 8)],
    ),
    "flattened": (
        """
def @main(%x: Tensor[(?, 4, ?, ?), float32], %d: Tensor[(3, 16), float32]) {
  nn.dense(nn.batch_flatten(nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2])), %d) }
""",
        lambda n, h, w: [(n, 4, 4, 5), (3, 16)],
    ),
    "unknown channels": (
        """
def @main(%x: Tensor[(?, ?, ?, ?), float32], %w: Tensor[(?, ?, ?, ?), float32], %d: Tensor[(?, ?), float32]) {
  let %y = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 1]));
  (nn.max_pool2d(%y, pool_size=[2, 2]), nn.dense(nn.batch_flatten(nn.global_avg_pool2d(%y)), %d)) }
""",
        lambda n, h, w: [(n, 5, h, w), (7, 5, 3, 2), (3, 7)],
    ),
    "resized": (
        """
def @main(%x: Tensor[(?, ?, ?, 2), float32]) {
  (image.resize2d(%x, size=[5, 9], layout="NHWC", roi=[0f, 0f, 0f, 0f]),
   image.resize2d(%x, size=[40, 3], layout="NHWC", roi=[0f, 0f, 0f, 0f], method="cubic", cubic_exclude=1,
                  coordinate_transformation_mode="align_corners"),
   image.resize2d(%x, size=[12, 12], layout="NHWC", roi=[0f, 0f, 0f, 0f], method="nearest_neighbor", rounding_method="",
                  coordinate_transformation_mode="asymmetric"),
   image.resize2d(%x, size=[4, 4], layout="NHWC", roi=[0.1f, -0.2f, 1.1f, 0.8f], extrapolation_value=7f,
                  coordinate_transformation_mode="tf_crop_and_resize")) }
""",
        lambda n, h, w: [(n, h, w, 2)],
    ),
}
EXTENTS = ((1, 32, 32), (2, 33, 47), (1, 7, 9), (3, 5, 4))


def _arguments(mod: IRModule, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(len(shapes))
    dtypes = [p.type_annotation.dtype for p in mod["main"].params]  # type: ignore[union-attr]
    values = [rng.standard_normal(shape) for shape in shapes]
    return [(x if t == "float32" else x * 30 + (100 if t == "uint8" else 0)).astype(t) for x, t in zip(values, dtypes)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", few(NETWORKS, *list(NETWORKS)[::3]))
def test_networks(name: str) -> None:
    """They run as compiled code from the first call on, whatever the extents."""
    text, shapes = NETWORKS[name]
    mod = module(text)
    made = loaded(mod)
    assert all(p.region >= 0 for p in made.program.packed)
    for extents in EXTENTS:
        args = _arguments(mod, shapes(*extents))
        assert_same(made.run(*args), evaluate(mod, *args), 1e-4, 1e-4)
        assert made.loaded.hosts == {}, extents


#: By name: channels of the data and of the result, and padding.
TILES = {
    "units transform their data": (48, 40, (1, 1, 1, 1)),
    "data are transformed before": (130, 64, (1, 1, 1, 1)),
    "no padding": (64, 33, (0, 0, 0, 0)),
    "uneven padding": (20, 80, (2, 0, 1, 3)),
}
#: An argument of the functions that transform data.
_BY_TILES = "restrict none"
#: Lines of fewer tiles than a unit has, of more, and images of a tile or less.
SIDES = ((1, 14, 14), (2, 7, 9), (1, 3, 121), (3, 61, 6), (1, 30, 58), (2, 1, 1), (1, 4, 2), (4, 3, 3))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", few(TILES, *list(TILES)[1:]))
def test_convolutions_by_tiles_have_the_bits_of_known_extents(name: str) -> None:
    inputs, outputs, (top, left, bottom, right) = TILES[name]
    rng = np.random.default_rng(2)
    w, b = (rng.standard_normal(shape, np.float32) for shape in ((3, 3, inputs, outputs), (outputs,)))

    def network(n: int | str, h: int | str, wide: int | str) -> IRModule:
        return bind_params(
            module(f"""
def @main(%x: Tensor[({n}, {h}, {wide}, {inputs}), float32], %w: Tensor[(3, 3, {inputs}, {outputs}), float32],
          %b: Tensor[({outputs}), float32]) {{
  nn.relu(add(nn.conv2d(%x, %w, padding=[{top}, {left}, {bottom}, {right}], channels={outputs}, kernel_size=[3, 3],
                        data_layout="NHWC", kernel_layout="HWIO"), %b)) }}
"""),
            {"w": w, "b": b},
        )

    executable = loaded(network("?", "?", "?"))
    assert _BY_TILES in executable.source
    by_tiles = 0
    for n, h, wide in SIDES:
        h, wide = (max(extent, 3) if top + bottom == 0 else extent for extent in (h, wide))
        x = rng.standard_normal((n, h, wide, inputs), np.float32)
        found = executable.run(x)
        assert_same(found, evaluate(network(n, h, wide), x), 1e-4, 1e-4)
        known = compile_module(network(n, h, wide), "c")
        if _BY_TILES in known.source:  # small images are computed as sums
            by_tiles += 1
            np.testing.assert_array_equal(found, known.run(x), str((n, h, wide)))
    assert by_tiles > 2 and executable.loaded.hosts == {}
