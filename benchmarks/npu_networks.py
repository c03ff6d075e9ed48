"""Networks of int8 for `benchmarks/npu.py`, as TFLite files with random weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.frontends.tflite.files import Op, T, const, file

#: Paddings and activations by TFLite's numbers.
SAME = {"Padding": 0}
RELU, LINEAR = 1, 0


@dataclass
class Builder:
    """A network under construction. A value is a tensor's name; `shapes` and `scales` tell of it."""

    rng: np.random.Generator
    tensors: dict[str, T] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)

    def value(self, shape: tuple[int, ...], scale: float, zero: int = 0) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = T(shape, "int8", None, [scale], [zero])
        return name

    def _weights(self, shape: tuple[int, ...], axis: int, given: str) -> tuple[str, str, float]:
        """Weights and bias, a scale for each channel, and the deviation of their sums in real numbers."""
        channels, scale_in = shape[axis], self.tensors[given].scale[0]
        scales = self.rng.uniform(0.002, 0.006, channels).tolist()
        weight, bias = f"t{len(self.tensors)}", f"t{len(self.tensors) + 1}"
        numbers = np.clip(np.rint(self.rng.normal(0, 40, shape)), -127, 127).astype(np.int8)
        self.tensors[weight] = const(numbers, scale=scales, zero=[0] * channels, axis=axis)
        biases = self.rng.integers(-2000, 2000, channels).astype(np.int32)
        self.tensors[bias] = const(biases, scale=[scale_in * s for s in scales], zero=[0] * channels)
        taps = int(np.prod(shape)) // channels
        return weight, bias, 0.004 * 40 * scale_in * 60 * float(np.sqrt(taps))

    def conv(self, x: str, channels: int, size: tuple[int, int], stride: int = 1, activation: int = RELU) -> str:
        _, height, width, depth = self.tensors[x].shape
        weight, bias, spread = self._weights((channels, *size, depth), 0, x)
        out = self.value((1, -(-height // stride), -(-width // stride), channels), spread / 40, -128 if activation else 0)
        self._layer("CONV_2D", "Conv2DOptions", [x, weight, bias], out, stride, activation)
        return out

    def depthwise(self, x: str, stride: int = 1) -> str:
        _, height, width, depth = self.tensors[x].shape
        weight, bias, spread = self._weights((1, 3, 3, depth), 3, x)
        out = self.value((1, -(-height // stride), -(-width // stride), depth), spread / 40, -128)
        self._layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [x, weight, bias], out, stride, RELU, DepthMultiplier=1)
        return out

    def _layer(self, name: str, kind: str, given: list[str], out: str, stride: int, activation: int, **more: int) -> None:
        steps = {"StrideW": stride, "StrideH": stride, "DilationWFactor": 1, "DilationHFactor": 1}
        self.ops.append(Op(name, given, [out], kind, {**SAME, **steps, "FusedActivationFunction": activation, **more}))

    def add(self, x: str, y: str) -> str:
        scale = max(self.tensors[v].scale[0] for v in (x, y)) * 1.5
        out = self.value(tuple(self.tensors[x].shape), scale, -128)
        self.ops.append(Op("ADD", [x, y], [out], "AddOptions", {"FusedActivationFunction": RELU}))
        return out

    def head(self, x: str, classes: int) -> str:
        """The average of all places, then a fully connected layer."""
        _, height, width, depth = self.tensors[x].shape
        t = self.tensors[x]
        pooled = self.value((1, 1, 1, depth), t.scale[0], t.zero[0])
        window = {"StrideW": 1, "StrideH": 1, "FilterWidth": width, "FilterHeight": height, "Padding": 1}
        options = {"FusedActivationFunction": LINEAR}
        self.ops.append(Op("AVERAGE_POOL_2D", [x], [pooled], "Pool2DOptions", {**window, **options}))
        weight, bias, spread = self._weights((classes, depth), 0, pooled)
        self.tensors[weight] = const(self.tensors[weight].data, scale=[0.004], zero=[0])
        self.tensors[bias] = const(self.tensors[bias].data, scale=[t.scale[0] * 0.004], zero=[0])
        out = self.value((1, classes), spread / 40)
        self.ops.append(Op("FULLY_CONNECTED", [pooled, weight, bias], [out], "FullyConnectedOptions", options))
        return out


def mobilenet(side: int = 224, width: float = 1.0) -> bytes:
    """MobileNet v1 without its softmax: 28 convolutions, 569 million products at 224 pixels."""
    b = Builder(np.random.default_rng(1))
    first = b.value((1, side, side, 3), 1 / 64)
    x = b.conv(first, int(32 * width), (3, 3), 2)
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        x = b.conv(b.depthwise(x, stride), int(channels * width), (1, 1))
    return file(b.tensors, b.ops, [first], [b.head(x, 1000)])


def keywords() -> bytes:
    """A keyword spotter of depthwise convolutions (DS-CNN): 49 frames of 10 coefficients, twelve words."""
    b = Builder(np.random.default_rng(2))
    first = b.value((1, 49, 10, 1), 1 / 16)
    x = b.conv(first, 64, (10, 4), 2)
    for _ in range(4):
        x = b.conv(b.depthwise(x), 64, (1, 1))
    return file(b.tensors, b.ops, [first], [b.head(x, 12)])


def residual() -> bytes:
    """A residual network of eight layers for images of 32 x 32 pixels, ten classes."""
    b = Builder(np.random.default_rng(3))
    first = b.value((1, 32, 32, 3), 1 / 64)
    x = b.conv(first, 16, (3, 3))
    for channels, stride in [(16, 1), (32, 2), (64, 2)]:
        y = b.conv(b.conv(x, channels, (3, 3), stride), channels, (3, 3), 1, LINEAR)
        x = b.add(b.conv(x, channels, (1, 1), stride, LINEAR) if stride > 1 else x, y)
    return file(b.tensors, b.ops, [first], [b.head(x, 10)])


NETWORKS: dict[str, Any] = {"MobileNet v1 224": mobilenet, "keyword spotter": keywords, "residual network": residual}
