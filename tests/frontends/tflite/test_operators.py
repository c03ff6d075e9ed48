"""TFLite's operators: the program computes what the runtime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.frontends.tflite import import_tflite
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert", reason="ai-edge-litert computes the expected values")
rng = np.random.default_rng(7)


#: Versions of operators that the runtime has, where they are not 1.
VERSIONS = {"BROADCAST_TO": 2}


def real(*shape: int) -> np.ndarray:
    """Real numbers around 0."""
    return rng.normal(size=shape).astype("float32")


def one(
    name: str,
    shape: tuple[int, ...],
    out: tuple[int, ...],
    kind: str = "",
    more: Any = (),
    dtype: str = "",
    **options: Any,
) -> tuple[Any, ...]:
    """A layer on one real operand `x`, with constant operands behind it."""
    tensors = {"x": T(shape), **{f"c{i}": const(c) for i, c in enumerate(more)}, "y": T(out, dtype or "float32")}
    return (
        tensors,
        [Op(name, ["x", *[f"c{i}" for i in range(len(more))]], ["y"], kind, options, version=VERSIONS.get(name, 1))],
        [real(*shape)],
    )


i32 = np.int32
FLOATS = {
    **{
        n.lower(): one(n, (2, 5), (2, 5))
        for n in (
            "ABS",
            "CEIL",
            "FLOOR",
            "EXP",
            "NEG",
            "SIN",
            "COS",
            "TANH",
            "LOGISTIC",
            "ELU",
            "RELU",
            "RELU6",
            "RELU_N1_TO_1",
            "HARD_SWISH",
            "SQUARE",
            "ROUND",
            "ZEROS_LIKE",
        )
    },
    "add": one("ADD", (2, 5), (2, 5), "AddOptions", [real(5)], FusedActivationFunction=1),
    "sub": one("SUB", (2, 5), (2, 5), "SubOptions", [real(5)]),
    "mul": one("MUL", (2, 5), (2, 5), "MulOptions", [real(2, 1)], FusedActivationFunction=3),
    "div": one("DIV", (2, 5), (2, 5), "DivOptions", [real(5) + 3]),
    "maximum": one("MAXIMUM", (2, 5), (2, 5), "MaximumMinimumOptions", [real(5)]),
    "minimum": one("MINIMUM", (2, 5), (2, 5), "MaximumMinimumOptions", [real(5)]),
    "squared_difference": one("SQUARED_DIFFERENCE", (2, 5), (2, 5), "SquaredDifferenceOptions", [real(5)]),
    "prelu": one("PRELU", (1, 2, 3, 4), (1, 2, 3, 4), "", [real(1, 1, 4)]),
    "leaky_relu": one("LEAKY_RELU", (2, 5), (2, 5), "LeakyReluOptions", Alpha=0.1),
    "gelu": one("GELU", (2, 5), (2, 5), "GeluOptions", Approximate=False),
    "gelu_tanh": one("GELU", (2, 5), (2, 5), "GeluOptions", Approximate=True),
    "less": one("LESS", (2, 5), (2, 5), "LessOptions", [real(5)], dtype="bool"),
    "softmax": one("SOFTMAX", (2, 5), (2, 5), "SoftmaxOptions", Beta=2.0),
    "log_softmax": one("LOG_SOFTMAX", (2, 5), (2, 5), "LogSoftmaxOptions"),
    "l2_normalization": one("L2_NORMALIZATION", (2, 5), (2, 5), "L2NormOptions"),
    "lrn": one(
        "LOCAL_RESPONSE_NORMALIZATION",
        (1, 2, 2, 8),
        (1, 2, 2, 8),
        "LocalResponseNormalizationOptions",
        Radius=2,
        Bias=1.0,
        Alpha=0.3,
        Beta=0.7,
    ),
    "mean": one("MEAN", (2, 3, 4), (2, 1, 4), "ReducerOptions", [i32([1])], KeepDims=True),
    "sum": one("SUM", (2, 3, 4), (2,), "ReducerOptions", [i32([1, 2])], KeepDims=False),
    "reduce_max": one("REDUCE_MAX", (2, 3, 4), (2, 4), "ReducerOptions", [i32([1])], KeepDims=False),
    "arg_max": one("ARG_MAX", (2, 5), (2,), "ArgMaxOptions", [i32([1])], dtype="int64", OutputType=4),
    "cumsum": one("CUMSUM", (2, 5), (2, 5), "CumsumOptions", [i32([1])], Exclusive=True, Reverse=True),
    "reshape": one("RESHAPE", (2, 6), (3, 4), "ReshapeOptions", [i32([3, -1])]),
    "transpose": one("TRANSPOSE", (2, 3, 4), (4, 2, 3), "TransposeOptions", [i32([2, 0, 1])]),
    "squeeze": one("SQUEEZE", (1, 3, 1), (3, 1), "SqueezeOptions", SqueezeDims=[0]),
    "expand_dims": one("EXPAND_DIMS", (2, 3), (2, 1, 3), "ExpandDimsOptions", [i32([1])]),
    "slice": one("SLICE", (4, 5), (2, 4), "SliceOptions", [i32([1, 1]), i32([2, -1])]),
    "strided_slice": one(
        "STRIDED_SLICE",
        (4, 5, 3),
        (2, 3),
        "StridedSliceOptions",
        [i32([1, -2, 0]), i32([4, 0, 0]), i32([2, 1, 1])],
        BeginMask=0,
        EndMask=4,
        EllipsisMask=0,
        NewAxisMask=0,
        ShrinkAxisMask=2,
    ),
    "strided_slice_back": one(
        "STRIDED_SLICE",
        (4, 5),
        (4, 3),
        "StridedSliceOptions",
        [i32([0, 0]), i32([0, 0]), i32([-1, -2])],
        BeginMask=3,
        EndMask=3,
        EllipsisMask=0,
        NewAxisMask=0,
        ShrinkAxisMask=0,
    ),
    "pad": one("PAD", (2, 3), (4, 4), "PadOptions", [i32([[1, 1], [0, 1]])]),
    "padv2": one("PADV2", (2, 3), (4, 4), "PadV2Options", [i32([[1, 1], [0, 1]]), np.float32(7)]),
    "mirror_pad": one("MIRROR_PAD", (2, 3), (4, 5), "MirrorPadOptions", [i32([[1, 1], [1, 1]])], Mode=0),
    "tile": one("TILE", (2, 3), (4, 3), "TileOptions", [i32([2, 1])]),
    "gather": one("GATHER", (4, 3), (2, 3), "GatherOptions", [i32([2, 0])], Axis=0),
    "gather_nd": one("GATHER_ND", (4, 3), (2,), "GatherNdOptions", [i32([[2, 0], [1, 1]])]),
    "space_to_depth": one("SPACE_TO_DEPTH", (1, 4, 4, 2), (1, 2, 2, 8), "SpaceToDepthOptions", BlockSize=2),
    "depth_to_space": one("DEPTH_TO_SPACE", (1, 2, 2, 8), (1, 4, 4, 2), "DepthToSpaceOptions", BlockSize=2),
    "space_to_batch": one(
        "SPACE_TO_BATCH_ND", (1, 4, 4, 1), (4, 2, 2, 1), "SpaceToBatchNDOptions", [i32([2, 2]), i32([[0, 0], [0, 0]])]
    ),
    "batch_to_space": one(
        "BATCH_TO_SPACE_ND", (4, 2, 2, 1), (1, 4, 4, 1), "BatchToSpaceNDOptions", [i32([2, 2]), i32([[0, 0], [0, 0]])]
    ),
    "reverse": one("REVERSE_V2", (2, 3), (2, 3), "ReverseV2Options", [i32([1])]),
    "broadcast_to": one("BROADCAST_TO", (1, 3), (4, 3), "BroadcastToOptions", [i32([4, 3])]),
    "resize_bilinear": one(
        "RESIZE_BILINEAR", (1, 3, 4, 2), (1, 6, 6, 2), "ResizeBilinearOptions", [i32([6, 6])], HalfPixelCenters=True
    ),
    "resize_bilinear_corners": one(
        "RESIZE_BILINEAR", (1, 3, 4, 2), (1, 6, 6, 2), "ResizeBilinearOptions", [i32([6, 6])], AlignCorners=True
    ),
    "resize_nearest": one("RESIZE_NEAREST_NEIGHBOR", (1, 3, 4, 2), (1, 6, 6, 2), "ResizeNearestNeighborOptions", [i32([6, 6])]),
    "conv": one(
        "CONV_2D",
        (1, 7, 6, 3),
        (1, 4, 3, 5),
        "Conv2DOptions",
        [real(5, 3, 3, 3), real(5)],
        StrideH=2,
        StrideW=2,
        Padding=0,
        DilationHFactor=1,
        DilationWFactor=1,
        FusedActivationFunction=1,
    ),
    "conv_valid": one(
        "CONV_2D",
        (2, 7, 6, 3),
        (2, 3, 2, 5),
        "Conv2DOptions",
        [real(5, 3, 3, 3), real(5)],
        StrideH=1,
        StrideW=1,
        Padding=1,
        DilationHFactor=2,
        DilationWFactor=2,
    ),
    "depthwise": one(
        "DEPTHWISE_CONV_2D",
        (1, 5, 5, 3),
        (1, 5, 5, 6),
        "DepthwiseConv2DOptions",
        [real(1, 3, 3, 6), real(6)],
        StrideH=1,
        StrideW=1,
        Padding=0,
        DepthMultiplier=2,
        DilationHFactor=1,
        DilationWFactor=1,
    ),
    "fully_connected": one(
        "FULLY_CONNECTED", (2, 6), (2, 4), "FullyConnectedOptions", [real(4, 6), real(4)], FusedActivationFunction=3
    ),
    "average_pool": one(
        "AVERAGE_POOL_2D",
        (1, 5, 5, 2),
        (1, 3, 3, 2),
        "Pool2DOptions",
        StrideH=2,
        StrideW=2,
        FilterHeight=3,
        FilterWidth=3,
        Padding=0,
    ),
    "max_pool": one(
        "MAX_POOL_2D",
        (1, 5, 5, 2),
        (1, 2, 2, 2),
        "Pool2DOptions",
        StrideH=2,
        StrideW=2,
        FilterHeight=2,
        FilterWidth=2,
        Padding=1,
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_real_numbers(name: str) -> None:
    tensors, ops, inputs = FLOATS[name]
    compare(file(tensors, ops, ["x"], ["y"]), inputs)


Q = {"scale": [0.05], "zero": [3]}
P = {"scale": [0.03], "zero": [-5]}


def stored(*shape: int) -> np.ndarray:
    """Stored numbers."""
    return rng.integers(-128, 128, shape).astype("int8")


def quantized(
    name: str,
    shape: tuple[int, ...],
    out: tuple[int, ...],
    kind: str = "",
    more: Any = (),
    same: bool = False,
    **options: Any,
) -> Any:
    """A layer on one int8 operand, with constant operands behind it."""
    consts = {f"c{i}": c for i, c in enumerate(more)}
    tensors = {"x": T(shape, "int8", None, **Q), **consts, "y": T(out, "int8", None, **(Q if same else P))}
    return tensors, [Op(name, ["x", *consts], ["y"], kind, options)], [stored(*shape)]


def weights(*shape: int, channels: int = 1, axis: int = 0) -> T:
    """int8 weights with a scale for each channel."""
    return const(stored(*shape), scale=[0.01 * (i + 1) for i in range(channels)], zero=[0] * channels, axis=axis)


def bias(count: int, channels: int = 1) -> T:
    """An int32 bias with the scale of products."""
    return const(
        rng.integers(-500, 500, count).astype("int32"),
        scale=[0.05 * 0.01 * (i + 1) for i in range(channels)],
        zero=[0] * channels,
    )


INTEGERS = {
    "add": quantized("ADD", (2, 5), (2, 5), "AddOptions", [const(stored(2, 5), scale=[0.02], zero=[1])]),
    "mul": quantized("MUL", (2, 5), (2, 5), "MulOptions", [const(stored(2, 5), scale=[0.02], zero=[1])]),
    "conv": quantized(
        "CONV_2D",
        (1, 6, 6, 3),
        (1, 3, 3, 4),
        "Conv2DOptions",
        [weights(4, 3, 3, 3, channels=4), bias(4, 4)],
        StrideH=2,
        StrideW=2,
        Padding=0,
        DilationHFactor=1,
        DilationWFactor=1,
        FusedActivationFunction=3,
    ),
    "depthwise": quantized(
        "DEPTHWISE_CONV_2D",
        (1, 5, 5, 3),
        (1, 5, 5, 3),
        "DepthwiseConv2DOptions",
        [weights(1, 3, 3, 3, channels=3, axis=3), bias(3, 3)],
        StrideH=1,
        StrideW=1,
        Padding=0,
        DepthMultiplier=1,
        DilationHFactor=1,
        DilationWFactor=1,
    ),
    "fully_connected": quantized("FULLY_CONNECTED", (2, 6), (2, 4), "FullyConnectedOptions", [weights(4, 6), bias(4)]),
    "average_pool": quantized(
        "AVERAGE_POOL_2D",
        (1, 4, 4, 2),
        (1, 2, 2, 2),
        "Pool2DOptions",
        same=True,
        StrideH=2,
        StrideW=2,
        FilterHeight=2,
        FilterWidth=2,
        Padding=1,
    ),
    "max_pool": quantized(
        "MAX_POOL_2D",
        (1, 4, 4, 2),
        (1, 2, 2, 2),
        "Pool2DOptions",
        same=True,
        StrideH=2,
        StrideW=2,
        FilterHeight=2,
        FilterWidth=2,
        Padding=1,
    ),
    "reshape": quantized("RESHAPE", (2, 6), (3, 4), "ReshapeOptions", [const(i32([3, 4]))], same=True),
    "quantize": quantized("QUANTIZE", (2, 6), (2, 6), "QuantizeOptions"),
    "pad": quantized("PAD", (2, 3), (4, 4), "PadOptions", [const(i32([[1, 1], [0, 1]]))], same=True),
    "relu": quantized("RELU", (2, 6), (2, 6)),
    "mean": quantized("MEAN", (1, 3, 3, 4), (1, 4), "ReducerOptions", [const(i32([1, 2]))], same=True, KeepDims=False),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    tensors, ops, inputs = INTEGERS[name]
    compare(file(tensors, ops, ["x"], ["y"]), inputs, apart=1)


def test_integer_layers_are_integer_programs() -> None:
    tensors, ops, _ = INTEGERS["conv"]
    text = import_tflite(file(tensors, ops, ["x"], ["y"])).module.astext(show_meta_data=False)
    assert "qnn.conv2d(" in text and "qnn.requantize(" in text and "qnn.dequantize(" not in text
