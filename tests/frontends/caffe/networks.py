"""Small networks of Caffe: their layers as text, weights of a seed, and both as the files that Caffe writes.

The messages are written here from the public field numbers, apart from the importer's own descriptors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

#: How weights of a layer are drawn: "n" normal numbers, "p" positive ones, "s" a factor of moving statistics.
Blob = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Layer:
    name: str
    type: str
    bottoms: Sequence[str]
    tops: Sequence[str]
    params: str = ""
    blobs: Sequence[Blob] = ()


@dataclass
class Net:
    """A network that grows by calls. `at` is the result of the layer that was added last."""

    inputs: dict[str, tuple[int, ...]]
    layers: list[Layer] = field(default_factory=list)
    at: str = ""

    def __post_init__(self) -> None:
        self.at = next(iter(self.inputs))

    def add(
        self,
        type: str,
        params: str = "",
        blobs: Sequence[Blob] = (),
        bottoms: Sequence[str] | None = None,
        tops: Sequence[str] | None = None,
        inplace: bool = False,
    ) -> str:
        name = f"{type.lower()}{len(self.layers)}"
        below = [self.at] if bottoms is None else list(bottoms)
        above = list(tops) if tops is not None else [below[0] if inplace else name]
        self.layers.append(Layer(name, type, below, above, params, blobs))
        self.at = above[0]
        return self.at

    # ---- layers that most networks have

    def conv(self, channels: int, filters: int, k: int = 3, s: int = 1, p: int = 0, more: str = "", groups: int = 1) -> str:
        how = f"num_output: {filters} kernel_size: {k} stride: {s} pad: {p} group: {groups} {more}"
        blobs: list[Blob] = [("n", (filters, channels // groups, k, k))]
        if "bias_term: false" not in more:
            blobs.append(("n", (filters,)))
        return self.add("Convolution", f"convolution_param {{ {how} }}", blobs)

    def relu(self) -> str:
        return self.add("ReLU", inplace=True)

    def pool(self, kind: str, k: int, s: int, p: int = 0) -> str:
        return self.add("Pooling", f"pooling_param {{ pool: {kind} kernel_size: {k} stride: {s} pad: {p} }}")

    def dense(self, inputs: int, outputs: int) -> str:
        return self.add(
            "InnerProduct", f"inner_product_param {{ num_output: {outputs} }}", [("n", (outputs, inputs)), ("n", (outputs,))]
        )

    def norm(self, channels: int) -> str:
        """BatchNorm and Scale, in place."""
        self.add("BatchNorm", "batch_norm_param { eps: 0.001 }", [("n", (channels,)), ("p", (channels,)), ("s", (1,))], inplace=True)
        return self.add("Scale", "scale_param { bias_term: true }", [("p", (channels,)), ("n", (channels,))], inplace=True)

    def join(self, *parts: str, kind: str = "Concat", params: str = "") -> str:
        return self.add(kind, params, bottoms=parts)


# ---- files


def _weights(layer: Layer, rng: np.random.Generator) -> list[np.ndarray]:
    made = []
    for kind, shape in layer.blobs:
        if kind == "n":
            spread = 1 / np.sqrt(max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.1
            made.append((rng.normal(size=shape) * spread).astype("<f4"))
        elif kind == "p":
            made.append(rng.uniform(0.5, 1.5, shape).astype("<f4"))
        else:
            made.append(np.full(shape, 2.0, "<f4"))
    return made


def weights(net: Net, seed: int = 3) -> dict[str, list[np.ndarray]]:
    """The weights of each layer by its name."""
    rng = np.random.default_rng(seed)
    return {layer.name: found for layer in net.layers if (found := _weights(layer, rng))}


def prototxt(net: Net, old: bool = False) -> str:
    """The text of a network; with `old`, its inputs as fields of the head."""
    lines = ['name: "net"']
    for name, shape in net.inputs.items():
        dims = " ".join(f"dim: {n}" for n in shape)
        if old:
            lines.append(f'input: "{name}" input_shape {{ {dims} }}')
        else:
            lines.append(f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}')
    for layer in net.layers:
        names = "".join(f' bottom: "{b}"' for b in layer.bottoms) + "".join(f' top: "{t}"' for t in layer.tops)
        lines.append(f'layer {{ name: "{layer.name}" type: "{layer.type}"{names} {layer.params} }}')
    return "\n".join(lines) + "\n"


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def number(at: int, value: int) -> bytes:
    return _varint(at << 3) + _varint(value)


def part(at: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return _varint(at << 3 | 2) + _varint(len(data)) + data


def blob(array: np.ndarray, form: str = "packed") -> bytes:
    """A weight in one of the forms of files."""
    dims = b"".join(_varint(n) for n in array.shape)
    if form == "legacy":
        four = [1] * (4 - array.ndim) + list(array.shape)
        return b"".join(number(i + 1, n) for i, n in enumerate(four)) + part(5, array.tobytes())
    if form == "single":
        return part(7, part(1, dims)) + b"".join(_varint(5 << 3 | 5) + struct.pack("<f", v) for v in array.reshape(-1))
    data = {
        "packed": lambda: part(5, array.tobytes()),
        "double": lambda: part(8, array.astype("<f8").tobytes()),
        "half": lambda: number(10, 2) + part(12, array.astype("<f2").tobytes()),
    }[form]()
    return part(7, part(1, dims)) + data


def caffemodel(net: Net, form: str = "packed", seed: int = 3) -> bytes:
    """The weights of a network as Caffe's file."""
    found = weights(net, seed)
    made = [part(1, "net")]
    for layer in net.layers:
        body = [part(1, layer.name), part(2, layer.type), *[part(7, blob(a, form)) for a in found.get(layer.name, [])]]
        made.append(part(100, b"".join(body)))
    return b"".join(made)


def operands(net: Net, seed: int = 8) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype("float32") for shape in net.inputs.values()]


# ---- networks


def lenet() -> Net:
    net = Net({"data": (2, 1, 28, 28)})
    net.conv(1, 8, 5)
    net.pool("MAX", 2, 2)
    net.conv(8, 12, 5)
    net.pool("MAX", 2, 2)
    net.dense(192, 30)
    net.relu()
    net.dense(30, 10)
    net.add("Softmax")
    return net


def alexnet() -> Net:
    """Groups, local response normalisation, overlapping pools, dropout."""
    net = Net({"data": (1, 3, 59, 59)})
    net.conv(3, 8, 11, 4)
    net.relu()
    net.add("LRN", "lrn_param { local_size: 5 alpha: 0.1 beta: 0.75 }")
    net.pool("MAX", 3, 2)
    net.conv(8, 12, 5, 1, 2, groups=2)
    net.relu()
    net.add("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL }")
    net.pool("MAX", 3, 2)
    net.dense(108, 20)
    net.add("Dropout", "dropout_param { dropout_ratio: 0.5 }", inplace=True)
    net.dense(20, 7)
    net.add("Softmax")
    return net


def squeezenet() -> Net:
    """Fire modules, and pools whose windows reach beyond their pictures."""
    net = Net({"data": (1, 3, 34, 34)})
    net.conv(3, 8, 3, 2)
    net.relu()
    net.pool("MAX", 3, 2)
    for channels in (8, 12):
        net.conv(channels, 4, 1)
        squeeze = net.relu()
        net.conv(4, 6, 1)
        left = net.relu()
        net.at = squeeze
        net.conv(4, 6, 3, 1, 1)
        net.join(left, net.relu())
    net.pool("MAX", 3, 2)
    net.conv(12, 9, 1)
    net.add("Pooling", "pooling_param { pool: AVE global_pooling: true }")
    net.add("Flatten")
    net.add("Softmax")
    return net


def googlenet() -> Net:
    """An inception module, and means over windows that end in padding and beyond it."""
    net = Net({"data": (1, 3, 30, 30)})
    net.conv(3, 8, 7, 2, 3)
    net.relu()
    before = net.pool("MAX", 3, 2)
    branches = [net.conv(8, 4, 1)]
    for k in (3, 5):
        net.at = before
        net.conv(8, 3, 1)
        net.relu()
        branches.append(net.conv(3, 5, k, 1, k // 2))
    net.at = before
    net.pool("MAX", 3, 1, 1)
    branches.append(net.conv(8, 3, 1))
    net.join(*branches)
    net.pool("AVE", 3, 2, 1)
    net.pool("AVE", 3, 2)
    net.dense(17 * 4, 6)
    net.add("Softmax")
    return net


def resnet() -> Net:
    net = Net({"data": (2, 3, 16, 16)})
    net.conv(3, 8, 3, 1, 1, "bias_term: false")
    net.norm(8)
    below = net.relu()
    for channels, filters, stride in ((8, 8, 1), (8, 12, 2)):
        net.conv(channels, filters, 3, stride, 1, "bias_term: false")
        net.norm(filters)
        net.relu()
        net.conv(filters, filters, 3, 1, 1, "bias_term: false")
        above = net.norm(filters)
        if stride > 1:
            net.at = below
            net.conv(channels, filters, 1, stride, 0, "bias_term: false")
            below = net.norm(filters)
        net.join(below, above, kind="Eltwise")
        below = net.relu()
    net.add("Pooling", "pooling_param { pool: AVE kernel_size: 8 stride: 1 }")
    net.dense(12, 5)
    net.add("Softmax")
    return net


def mobilenet() -> Net:
    """Convolutions of single channels, with rectangular kernels among them."""
    net = Net({"data": (1, 3, 24, 20)})
    net.conv(3, 8, 3, 2, 1)
    net.relu()
    for channels, filters in ((8, 12), (12, 16)):
        net.conv(channels, channels, 3, 1, 1, groups=channels)
        net.norm(channels)
        net.relu()
        net.conv(channels, filters, 1)
        net.norm(filters)
        net.relu()
    net.add(
        "Convolution",
        "convolution_param { num_output: 6 kernel_h: 1 kernel_w: 5 stride_h: 2 stride_w: 1 pad_h: 0 pad_w: 2 }",
        [("n", (6, 16, 1, 5)), ("n", (6,))],
    )
    net.add("Pooling", "pooling_param { pool: MAX global_pooling: true }")
    return net


def densenet() -> Net:
    net = Net({"data": (1, 3, 16, 16)})
    at, channels = net.conv(3, 6, 3, 1, 1), 6
    for _ in range(3):
        net.at = at
        net.add("BatchNorm", "", [("n", (channels,)), ("p", (channels,)), ("s", (1,))])
        net.add("Scale", "scale_param { bias_term: true }", [("p", (channels,)), ("n", (channels,))], inplace=True)
        net.relu()
        at = net.join(at, net.conv(channels, 4, 3, 1, 1, "bias_term: false"))
        channels += 4
    net.pool("AVE", 2, 2)
    return net


def segmentation() -> Net:
    """A fully convolutional network: dilation, transposed convolutions, crops, and sums with results of earlier layers."""
    net = Net({"data": (1, 3, 20, 22)})
    net.conv(3, 6, 3, 1, 10)
    net.relu()
    first = net.pool("MAX", 2, 2)
    net.conv(6, 8, 3, 1, 2, "dilation: 2")
    net.relu()
    net.pool("MAX", 2, 2)
    net.conv(8, 5, 1)
    up = "convolution_param {{ num_output: 5 kernel_size: {k} stride: {s} group: {g} bias_term: {b} }}"
    high = net.add("Deconvolution", up.format(k=4, s=2, g=1, b="false"), [("n", (5, 5, 4, 4))])
    net.at = first
    skipped = net.conv(6, 5, 1)
    net.add("Crop", "crop_param { axis: 2 offset: 1 }", bottoms=[high, skipped])
    net.join(skipped, net.at, kind="Eltwise", params="eltwise_param { operation: SUM coeff: 1.0 coeff: 0.5 }")
    net.add("Deconvolution", up.format(k=4, s=2, g=5, b="true"), [("n", (5, 1, 4, 4)), ("n", (5,))])
    net.add("Crop", "crop_param { axis: 2 offset: 2 offset: 3 }", bottoms=[net.at, "data"])
    return net


def unet() -> Net:
    net = Net({"data": (1, 2, 16, 16)})
    net.conv(2, 4, 3, 1, 1)
    top = net.relu()
    net.pool("MAX", 2, 2)
    net.conv(4, 8, 3, 1, 1)
    net.add("PReLU", "", [("p", (8,))], inplace=True)
    net.add(
        "Deconvolution",
        "convolution_param { num_output: 4 kernel_size: 2 stride: 2 }",
        [("n", (8, 4, 2, 2)), ("n", (4,))],
    )
    net.join(net.at, top)
    net.conv(8, 3, 1)
    net.add("Softmax")
    return net


def ssd() -> Net:
    """Boxes at two scales, whose best are the result."""
    net = Net({"data": (1, 3, 24, 24)})
    net.conv(3, 8, 3, 2, 1)
    first = net.relu()
    net.conv(8, 8, 3, 2, 1)
    second = net.relu()
    net.at = first
    normed = net.add("Normalize", "norm_param { across_spatial: false channel_shared: false }", [("p", (8,))])
    moves, scores, priors = [], [], []
    for at, low, high in ((normed, 6, 10), (second, 10, 16)):
        for kind, size in ((moves, 4 * 4), (scores, 4 * 3)):
            net.at = at
            net.conv(8, size, 3, 1, 1)
            net.add("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")
            kind.append(net.add("Flatten", "flatten_param { axis: 1 }"))
        sizes = f"min_size: {low} max_size: {high} aspect_ratio: 2 flip: true clip: false"
        spread = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"
        priors.append(net.add("PriorBox", f"prior_box_param {{ {sizes} {spread} offset: 0.5 }}", bottoms=[at, "data"]))
    own = net.join(*moves)
    boxes = net.join(*priors, params="concat_param { axis: 2 }")
    net.join(*scores)
    net.add("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }")
    net.add("Softmax", "softmax_param { axis: 2 }")
    net.add("Flatten", "flatten_param { axis: 1 }")
    nms = "nms_param { nms_threshold: 0.45 top_k: 40 }"
    how = f"num_classes: 3 share_location: true background_label_id: 0 {nms} code_type: CENTER_SIZE keep_top_k: 25"
    net.add("DetectionOutput", f"detection_output_param {{ {how} confidence_threshold: 0.2 }}", bottoms=[own, net.at, boxes])
    return net


def activations() -> Net:
    """Functions of elements, one after the other."""
    net = Net({"data": (2, 3, 5, 6)})
    net.add("PReLU", "prelu_param { channel_shared: false }", [("p", (3,))])
    net.add("ELU", "elu_param { alpha: 0.7 }")
    net.add("Power", "power_param { power: 2 scale: 0.5 shift: 0.3 }")
    net.add("BNLL")
    net.add("Exp", "exp_param { base: 2 scale: 0.5 shift: -1 }")
    net.add("Power", "power_param { power: 1 scale: -1 shift: 1 }")
    net.add("TanH")
    net.add("AbsVal")
    net.add("ReLU", "relu_param { negative_slope: 0.1 }")
    net.add("Sigmoid")
    return net


def shapes() -> Net:
    """Layers that move elements."""
    net = Net({"data": (2, 6, 4, 5)})
    parts = [f"part{i}" for i in range(3)]
    net.add("Slice", "slice_param { axis: 1 slice_point: 1 slice_point: 3 }", tops=parts)
    net.join(parts[2], parts[0], parts[1])
    net.add("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")
    net.add("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }")
    net.add("Flatten", "flatten_param { axis: 1 end_axis: 2 }")
    halves = ["left", "right"]
    net.add("Slice", "slice_param { slice_dim: 1 }", tops=halves)
    net.join(*halves, kind="Eltwise", params="eltwise_param { operation: MAX }")
    net.join(net.at, "left", kind="Eltwise", params="eltwise_param { operation: PROD }")
    return net


def shufflenet() -> Net:
    net = Net({"data": (1, 3, 16, 16)})
    net.conv(3, 8, 3, 2, 1)
    before = net.relu()
    net.conv(8, 8, 1, groups=2)
    net.add("ShuffleChannel", "shuffle_channel_param { group: 2 }")
    net.conv(8, 8, 3, 2, 1, groups=8)
    net.norm(8)
    above = net.at
    net.at = before
    net.join(net.pool("AVE", 3, 2), above)
    net.relu()
    net.add("MVN", "mvn_param { across_channels: false eps: 1e-9 }")
    return net


NETWORKS = {
    made.__name__: made
    for made in (
        lenet,
        alexnet,
        squeezenet,
        googlenet,
        resnet,
        mobilenet,
        densenet,
        segmentation,
        unet,
        ssd,
        activations,
        shapes,
        shufflenet,
    )
}


def networks() -> Iterable[tuple[str, Net]]:
    """Each network by its name."""
    return ((name, made()) for name, made in NETWORKS.items())
