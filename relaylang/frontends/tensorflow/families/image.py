"""Images: resizing, and parts of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr
from relaylang.ops.shapes import is_float_dtype


def resize(method: str) -> Callable[..., Any]:
    """The size is the second operand: height, width. All but the nearest neighbours give float32."""

    def convert(n: Node, x: Expr, size: Expr) -> Any:
        b = n.b
        align, half = n.bool("align_corners"), n.bool("half_pixel_centers")
        if align and half:
            raise Malformed("it has both align_corners and half_pixel_centers")
        mode = "align_corners" if align else "half_pixel" if half else "asymmetric"
        rounding = ""
        if method == "nearest_neighbor":
            mode = "tf_half_pixel_for_nn" if half else mode
            rounding = "round" if align else "floor"
        elif b.dtype(x) != "float32":
            x = b.cast(x, "float32")
        wanted = n.ints_of(size, "the size")
        if len(wanted) != 2 or min(wanted) < 1:
            raise Malformed(f"its size is {wanted[:8]}")
        extra = {"cubic_alpha": -0.5, "cubic_exclude": True} if method == "cubic" and half else {"cubic_alpha": -0.75}
        return b.op(
            "image.resize2d",
            b.of_rank(x, 4),
            size=wanted,
            roi=[0.0] * 4,
            layout="NHWC",
            method=method,
            coordinate_transformation_mode=mode,
            rounding_method=rounding,
            **(extra if method == "cubic" else {}),
        )

    return convert


def crop_and_resize(n: Node, x: Expr, boxes: Expr, images: Expr, size: Expr) -> Any:
    """Parts of images, by boxes in shares of their extents, at one size."""
    b = n.b
    method = n.choice("method", "bilinear", ("bilinear", "nearest"))
    return b.op(
        "image.crop_and_resize",
        b.cast(b.of_rank(x, 4), "float32"),
        boxes,
        images,
        crop_size=n.ints_of(size, "the size"),
        layout="NHWC",
        method={"bilinear": "bilinear", "nearest": "nearest_neighbor"}[method],
        extrapolation_value=n.float("extrapolation_value", 0.0),
        out_dtype="float32",
    )


def adjust_contrast(n: Node, x: Expr, factor: Expr) -> Any:
    """Each channel is stretched around its mean over the image."""
    b = n.b
    if not is_float_dtype(b.dtype(x)):
        raise Unsupported("its image is of whole numbers")
    rank = b.rank(x)
    mean = b.op("mean", x, axis=[rank - 3, rank - 2], keepdims=True)
    return b.op("add", b.op("multiply", b.op("subtract", x, mean), factor), mean)


def decoded(n: Node, x: Expr) -> Any:
    """A picture that is decoded before the network: an input in the place of the file."""
    channels = n.int("channels", 0)
    if channels not in (0, n.b.shape(n.b.of_rank(x, 3))[2]):
        raise Malformed(f"it has {channels} channels, and the picture {n.b.shape(x)[2]}")
    return x


RULES = (
    Rule("AdjustContrastv2", adjust_contrast),
    Rule("DecodeBmp", decoded),
    Rule("DecodeImage", decoded),
    Rule("DecodeJpeg", decoded),
    Rule("DecodePng", decoded),
    Rule("CropAndResize", crop_and_resize),
    Rule("ResizeBicubic", resize("cubic")),
    Rule("ResizeBilinear", resize("linear")),
    Rule("ResizeNearestNeighbor", resize("nearest_neighbor")),
)
