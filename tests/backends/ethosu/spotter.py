"""A small keyword spotter in TensorFlow Lite's 16x8 quantisation: int16 tensors, int8 weights, int64 biases."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.test_quantized import stored

SHAPE = (1, 24, 10, 1)
#: The first versions of layers that take int16, where it is not the fourth.
_VERSIONS = {"RESHAPE": 1, "ADD": 2, "MAX_POOL_2D": 3, "AVERAGE_POOL_2D": 3}
_ONE = {"StrideW": 1, "StrideH": 1}
_CONV = {**_ONE, "DilationWFactor": 1, "DilationHFactor": 1, "Padding": 0, "FusedActivationFunction": 1}
_WINDOW = {"Padding": 1, "FusedActivationFunction": 0}


class _File:
    """Layers under construction. Each takes the tensor before it."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(7)
        self.tensors: dict[str, T] = {}
        self.ops: list[Op] = []

    def tensor(self, shape: tuple[int, ...], scale: float) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = stored(shape, "int16", scale, 0)
        return name

    def constant(self, value: T) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors[name] = value
        return name

    def product(self, name: str, x: str, shape: tuple[int, ...], y: str, channels: int, each: bool, **options: Any) -> str:
        """A layer of weights of a shape with a scale for each channel, or one, and a bias."""
        scales = [0.004 * (1 + 0.1 * i) for i in range(channels)] if each else [0.004]
        zeros, axis = [0] * len(scales), 3 if name == "DEPTHWISE_CONV_2D" else 0
        weight = const(self.rng.integers(-127, 128, shape).astype("int8"), scale=scales, zero=zeros, axis=axis)
        of_bias = [self.tensors[x].scale[0] * s for s in scales]
        bias = const(self.rng.integers(-(1 << 22), 1 << 22, channels), scale=of_bias, zero=zeros)
        kinds = {"CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}
        operands = [x, self.constant(weight), self.constant(bias)]
        return self.layer(name, operands, y, kinds.get(name, "FullyConnectedOptions"), **options)

    def layer(self, name: str, operands: list[str], y: str, kind: str, **options: Any) -> str:
        self.ops.append(Op(name, operands, [y], kind, options, version=_VERSIONS.get(name, 4)))
        return y


def spotter() -> bytes:
    """Convolutions with a shortcut, pools and a dense layer; the input is int16 of `SHAPE`."""
    f = _File()
    x = f.tensor(SHAPE, 1 / 4096)
    halved = {**_CONV, "StrideW": 2, "StrideH": 2}
    first = f.product("CONV_2D", x, (16, 5, 3, 1), f.tensor((1, 12, 5, 16), 1 / 2048), 16, True, **halved)
    y = f.product("DEPTHWISE_CONV_2D", first, (1, 3, 3, 16), f.tensor((1, 12, 5, 16), 1 / 1024), 16, True, **_CONV, DepthMultiplier=1)
    y = f.product("CONV_2D", y, (16, 1, 1, 16), f.tensor((1, 12, 5, 16), 1 / 700), 16, True, **_CONV)
    y = f.layer("ADD", [first, y], f.tensor((1, 12, 5, 16), 1 / 600), "AddOptions", FusedActivationFunction=1)
    size = {"StrideW": 2, "StrideH": 2, "FilterWidth": 2, "FilterHeight": 2}
    y = f.layer("MAX_POOL_2D", [y], f.tensor((1, 6, 2, 16), 1 / 600), "Pool2DOptions", **size, **_WINDOW)
    size = {**_ONE, "FilterWidth": 2, "FilterHeight": 6}
    y = f.layer("AVERAGE_POOL_2D", [y], f.tensor((1, 1, 1, 16), 1 / 600), "Pool2DOptions", **size, **_WINDOW)
    y = f.layer("RESHAPE", [y, f.constant(const(np.array([1, 16], np.int32)))], f.tensor((1, 16), 1 / 600), "ReshapeOptions")
    y = f.product("FULLY_CONNECTED", y, (12, 16), f.tensor((1, 12), 1 / 200), 12, False)
    return file(f.tensors, f.ops, [x], [y])
