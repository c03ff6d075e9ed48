"""The networks of the processor benchmark that no text here holds, as ONNX models with random weights.

Convolutions and products have He's variance, 2 / fan-in, or 1 / fan-in where no rectifier follows. So activations keep
their size through deep networks. Networks end in logits: a softmax would hide differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 20


class Graph:
    """A model under construction. A value is its name; `shapes` has the shapes of inputs and of values with channels."""

    def __init__(self, **inputs: Sequence[int]) -> None:
        self.rng = np.random.default_rng(0)
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.channels = {name: shape[1] for name, shape in self.inputs.items() if len(shape) > 1}
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def normal(self, *shape: int, fan_in: int, gain: float = 2.0) -> str:
        """Weights of the variance gain / fan-in."""
        return self.constant(self.rng.standard_normal(shape, np.float32) * np.float32((gain / fan_in) ** 0.5))

    def near(self, middle: float, *shape: int) -> str:
        return self.constant(self.rng.normal(middle, 0.1, shape))

    def several(self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], **attributes))
        return names

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A layer with one result. It keeps the channels of its first input."""
        name = self.several(op, inputs, 1, **attributes)[0]
        if inputs and inputs[0] in self.channels:
            self.channels[name] = self.channels[inputs[0]]
        return name

    def conv(
        self,
        x: str,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        pad: int | tuple[int, int] | None = None,
        groups: int = 1,
        bias: bool = False,
        gain: float = 2.0,
    ) -> str:
        """A convolution; by default its padding keeps the extents."""
        extents = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = tuple(k // 2 for k in extents) if pad is None else (pad, pad) if isinstance(pad, int) else pad
        depth = self.channels[x] // groups
        weight = self.normal(channels, depth, *extents, fan_in=depth * prod(extents), gain=gain)
        operands = [x, weight] + ([self.near(0, channels)] if bias else [])
        out = self.node("Conv", *operands, kernel_shape=extents, strides=[stride] * 2, pads=[*pads, *pads], group=groups)
        self.channels[out] = channels
        return out

    def norm(self, x: str) -> str:
        n = self.channels[x]
        variance = self.constant(self.rng.uniform(0.5, 1.5, n))
        return self.node("BatchNormalization", x, self.near(1, n), self.near(0, n), self.near(0, n), variance)

    def relu(self, x: str) -> str:
        return self.node("Relu", x)

    def block(self, x: str, *arguments: Any, **options: Any) -> str:
        """A convolution, a batch normalisation and a rectifier."""
        return self.relu(self.norm(self.conv(x, *arguments, **options)))

    def pool(self, kind: str, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self.node(f"{kind}Pool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def concat(self, *values: str) -> str:
        out = self.node("Concat", *values, axis=1)
        self.channels[out] = sum(self.channels[v] for v in values)
        return out

    def head(self, x: str, classes: int = 1000) -> str:
        """The mean of each channel, and a fully connected layer."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        return self.dense(flat, self.channels[x], classes)

    def dense(self, x: str, depth: int, units: int, gain: float = 1.0) -> str:
        out = self.node("Gemm", x, self.normal(units, depth, fan_in=depth, gain=gain), self.near(0, units), transB=1)
        self.channels[out] = units
        return out

    def linear(self, x: str, depth: int, units: int, gain: float = 1.0) -> str:
        """A fully connected layer over the last axis of any rank."""
        product = self.node("MatMul", x, self.normal(depth, units, fan_in=depth, gain=gain))
        return self.node("Add", product, self.near(0, units))

    def layer_norm(self, x: str, width: int) -> str:
        return self.node("LayerNormalization", x, self.near(1, width), self.near(0, width), axis=-1, epsilon=1e-5)

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.constant(shape, "int64"))

    def model(self, *outputs: str) -> bytes:
        """The model's bytes, with the shapes of its results."""

        def info(name: str, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

        inputs = [info(name, shape) for name, shape in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "network", inputs, [info(o, None) for o in outputs], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        return bytes(onnx.shape_inference.infer_shapes(made, strict_mode=True).SerializeToString())


def resnet50() -> bytes:
    """He and others, "Deep residual learning for image recognition", with the stride in the 3 × 3 convolution."""
    g = Graph(data=(1, 3, 224, 224))
    x = g.pool("Max", g.block("data", 64, 7, 2, 3), 3, 2, 1)
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for n in range(count):
            stride = 2 if n == 0 and stage else 1
            y = g.block(g.block(x, width, 1), width, 3, stride)
            # Small branches: the sums of sixteen blocks stay small, too.
            y = g.norm(g.conv(y, 4 * width, 1, gain=0.2))
            x = g.norm(g.conv(x, 4 * width, 1, stride, 0, gain=1.0)) if n == 0 else x
            x = g.relu(g.node("Add", y, x))
    return g.model(g.head(x))


def densenet121() -> bytes:
    """Huang and others, "Densely connected convolutional networks"."""
    g = Graph(data=(1, 3, 224, 224))
    x = g.pool("Max", g.block("data", 64, 7, 2, 3), 3, 2, 1)
    for stage, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            y = g.conv(g.relu(g.norm(x)), 128, 1)
            x = g.concat(x, g.conv(g.relu(g.norm(y)), 32, 3))
        if stage < 3:
            x = g.pool("Average", g.conv(g.relu(g.norm(x)), g.channels[x] // 2, 1), 2, 2)
    return g.model(g.head(g.relu(g.norm(x))))


def inception3() -> bytes:
    """Szegedy and others, "Rethinking the inception architecture for computer vision", without the second classifier."""
    g = Graph(data=(1, 3, 299, 299))

    def chain(x: str, *layers: tuple) -> str:
        for layer in layers:
            x = g.block(x, *layer)
        return x

    def pooled(x: str) -> str:
        return g.node("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4, count_include_pad=1)

    x = chain("data", (32, 3, 2, 0), (32, 3, 1, 0), (64, 3))
    x = chain(g.pool("Max", x, 3, 2), (80, 1), (192, 3, 1, 0))
    x = g.pool("Max", x, 3, 2)
    for width in (32, 64, 64):
        x = g.concat(chain(x, (64, 1)), chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3)), chain(pooled(x), (width, 1)))
    x = g.concat(chain(x, (384, 3, 2, 0)), chain(x, (64, 1), (96, 3), (96, 3, 2, 0)), g.pool("Max", x, 3, 2))
    for w in (128, 160, 160, 192):
        row, column = (1, 7), (7, 1)
        x = g.concat(
            chain(x, (192, 1)),
            chain(x, (w, 1), (w, row), (192, column)),
            chain(x, (w, 1), (w, column), (w, row), (w, column), (192, row)),
            chain(pooled(x), (192, 1)),
        )
    x = g.concat(
        chain(x, (192, 1), (320, 3, 2, 0)), chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)), g.pool("Max", x, 3, 2)
    )
    for _ in range(2):
        y, z = chain(x, (384, 1)), chain(x, (448, 1), (384, 3))
        wide = [chain(v, (384, k)) for v in (y, z) for k in ((1, 3), (3, 1))]
        x = g.concat(chain(x, (320, 1)), *wide, chain(pooled(x), (192, 1)))
    return g.model(g.head(x))


def vgg11() -> bytes:
    """Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", configuration A."""
    g = Graph(data=(1, 3, 224, 224))
    x = "data"
    for widths in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        for width in widths:
            x = g.relu(g.conv(x, width, 3, bias=True))
        x = g.pool("Max", x, 2, 2)
    x = g.relu(g.dense(g.node("Flatten", x), 512 * 49, 4096, 2.0))
    return g.model(g.dense(g.relu(g.dense(x, 4096, 4096, 2.0)), 4096, 1000))


def mobilenet2() -> bytes:
    """Sandler and others, "MobileNetV2: inverted residuals and linear bottlenecks"."""
    g = Graph(data=(1, 3, 224, 224))

    def clipped(x: str) -> str:
        return g.node("Clip", x, low, high)

    low, high = g.constant(0.0), g.constant(6.0)
    x = clipped(g.norm(g.conv("data", 32, 3, 2)))
    for expand, channels, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for n in range(count):
            wide = expand * g.channels[x]
            y = clipped(g.norm(g.conv(x, wide, 1))) if expand > 1 else x
            y = clipped(g.norm(g.conv(y, wide, 3, stride if n == 0 else 1, groups=wide)))
            y = g.norm(g.conv(y, channels, 1, gain=1.0))
            x = g.node("Add", x, y) if n else y
    return g.model(g.head(clipped(g.norm(g.conv(x, 1280, 1)))))


def unet() -> bytes:
    """Ronneberger and others, "U-Net", on 256 × 256 pixels, half as wide, with padding and transposed convolutions."""
    g = Graph(data=(1, 3, 256, 256))
    x, sides = "data", []
    for level in range(5):
        x = g.pool("Max", x, 2, 2) if level else x
        for _ in range(2):
            x = g.block(x, 32 << level, 3)
        sides.append(x)
    for side in reversed(sides[:-1]):
        n = g.channels[x] // 2
        weight = g.normal(2 * n, n, 2, 2, fan_in=2 * n, gain=1.0)
        x = g.node("ConvTranspose", x, weight, g.near(0, n), kernel_shape=[2, 2], strides=[2, 2])
        g.channels[x] = n
        x = g.concat(side, x)
        for _ in range(2):
            x = g.block(x, n, 3)
    return g.model(g.conv(x, 2, 1, bias=True, gain=1.0))


def _attention(g: Graph, q: str, k: str, v: str, heads: int, width: int, rows: int, *, turn: bool = True) -> str:
    """Softmax(q kᵀ / √d) v over heads. `k` and `v` are split already where not `turn`."""

    def split(x: str, order: list[int]) -> str:
        return g.node("Transpose", g.reshape(x, 1, -1, heads, width // heads), perm=order)

    keys = split(k, [0, 2, 3, 1]) if turn else g.node("Transpose", k, perm=[0, 1, 3, 2])
    scores = g.node("Mul", g.node("MatMul", split(q, [0, 2, 1, 3]), keys), g.constant((width // heads) ** -0.5))
    mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), split(v, [0, 2, 1, 3]) if turn else v)
    return g.reshape(g.node("Transpose", mixed, perm=[0, 2, 1, 3]), 1, rows, width)


def _transformer(g: Graph, x: str, heads: int, width: int, hidden: int, rows: int, before: bool) -> str:
    """A layer of an encoder; the normalisations stand `before` the branches or behind the sums."""
    y = g.layer_norm(x, width) if before else x
    y = _attention(g, *[g.linear(y, width, width) for _ in range(3)], heads, width, rows)
    x = g.node("Add", x, g.linear(y, width, width))
    x, y = (x, g.layer_norm(x, width)) if before else (g.layer_norm(x, width),) * 2
    y = g.linear(g.node("Gelu", g.linear(y, width, hidden)), hidden, width)
    x = g.node("Add", x, y)
    return x if before else g.layer_norm(x, width)


def encoder() -> bytes:
    """A layer of BERT-base on 128 tokens."""
    g = Graph(data=(1, 128, 768))
    return g.model(_transformer(g, "data", 12, 768, 3072, 128, before=False))


def vit() -> bytes:
    """A small vision transformer (Dosovitskiy and others): patches of 16 × 16, width 192, 12 layers, 3 heads."""
    g = Graph(data=(1, 3, 224, 224))
    x = g.reshape(g.conv("data", 192, 16, 16, 0, bias=True, gain=1.0), 1, 192, 196)
    x = g.node("Concat", g.near(0, 1, 1, 192), g.node("Transpose", x, perm=[0, 2, 1]), axis=1)
    x = g.node("Add", x, g.near(0, 1, 197, 192))
    for _ in range(12):
        x = _transformer(g, x, 3, 192, 768, 197, before=True)
    x = g.node("Gather", g.layer_norm(x, 192), g.constant(0, "int64"), axis=1)
    return g.model(g.dense(x, 192, 1000))


def lstm() -> bytes:
    """An LSTM of 256 units over 100 steps of 256 features."""
    g = Graph(data=(100, 1, 256))
    weights = [g.normal(1, 1024, 256, fan_in=256, gain=1.0) for _ in range(2)]
    out, _, _ = g.several("LSTM", ["data", *weights, g.near(0, 1, 2048)], 3, hidden_size=256)
    return g.model(g.reshape(out, 100, 1, 256))


def gpt_step() -> bytes:
    """A layer of GPT-2's small model for one new token behind 512 cached ones. It gives the longer caches, too."""
    g = Graph(data=(1, 1, 768), keys=(1, 12, 512, 64), values=(1, 12, 512, 64))
    y = g.layer_norm("data", 768)
    q, k, v = g.several("Split", [g.linear(y, 768, 2304)], 3, axis=-1, num_outputs=3)
    k, v = [g.node("Transpose", g.reshape(part, 1, 1, 12, 64), perm=[0, 2, 1, 3]) for part in (k, v)]
    keys, values = g.node("Concat", "keys", k, axis=2), g.node("Concat", "values", v, axis=2)
    x = g.node("Add", "data", g.linear(_attention(g, q, keys, values, 12, 768, 1, turn=False), 768, 768))
    y = g.linear(g.node("Gelu", g.linear(g.layer_norm(x, 768), 768, 3072), approximate="tanh"), 3072, 768)
    return g.model(g.node("Add", x, y), keys, values)


GRAPHS: dict[str, Callable[[], bytes]] = {
    "resnet50": resnet50,
    "densenet121": densenet121,
    "inception3": inception3,
    "vgg11": vgg11,
    "encoder": encoder,
    "lstm256": lstm,
    "gpt_step": gpt_step,
    "mobilenet2": mobilenet2,
    "vit": vit,
    "unet": unet,
}
