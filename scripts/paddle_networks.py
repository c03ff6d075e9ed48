"""Layers and networks of PaddlePaddle: what tests/frontends/paddle compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.vision import models, ops
from paddle_cases import Case, reals, shares, whole

#: A network: its name, the maker of its layer, and the values of its inputs.
Network = tuple[str, Callable[[], nn.Layer], list[np.ndarray]]


def windows() -> Iterator[Case]:
    x, w, b = reals(2, 4, 9, 8), reals(6, 4, 3, 3), reals(6)
    yield "conv2d", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=[1, 0]), [x, w, b]
    yield "conv2d_four_pads", lambda x, w: F.conv2d(x, w, padding=[1, 2, 0, 1], dilation=2), [x, w]
    yield "conv2d_same", lambda x, w: F.conv2d(x, w, stride=2, padding="SAME"), [x, w]
    yield "conv2d_last", lambda x, w: F.conv2d(x, w, data_format="NHWC"), [reals(1, 6, 7, 4), w]
    yield "conv2d_groups", lambda x, w: F.conv2d(x, w, groups=2), [x, reals(6, 2, 3, 3)]
    yield "conv2d_depthwise", lambda x, w: F.conv2d(x, w, groups=4, padding=1), [x, reals(4, 1, 3, 3)]
    yield "conv1d", lambda x, w: F.conv1d(x, w, stride=2), [reals(2, 4, 9), reals(6, 4, 3)]
    yield "conv3d", lambda x, w: F.conv3d(x, w, padding=1), [reals(1, 2, 4, 5, 6), reals(3, 2, 3, 3, 3)]
    turned = lambda x, w: F.conv2d_transpose(x, w, stride=2, padding=1, output_padding=1)  # noqa: E731
    yield "conv2d_transpose", turned, [x, reals(4, 3, 3, 3)]
    yield "conv2d_transpose_size", lambda x, w: F.conv2d_transpose(x, w, stride=2, output_size=[20, 17]), [x, reals(4, 3, 3, 3)]
    yield "conv2d_transpose_groups", lambda x, w: F.conv2d_transpose(x, w, stride=2, groups=2), [x, reals(4, 3, 3, 3)]
    yield "conv3d_transpose", lambda x, w: F.conv3d_transpose(x, w, stride=2), [reals(1, 2, 3, 3, 3), reals(2, 3, 2, 2, 2)]
    for kind in ("max", "avg"):
        pool = getattr(F, f"{kind}_pool2d")
        yield f"{kind}_pool", lambda x, f=pool: f(x, 3, 2, padding=1), [x]
        yield f"{kind}_pool_ceil", lambda x, f=pool: f(x, 3, 2, ceil_mode=True), [x]
        yield f"{kind}_pool_last", lambda x, f=pool: f(x, 2, data_format="NHWC"), [x]
        adaptive = getattr(F, f"adaptive_{kind}_pool2d")
        yield f"{kind}_pool_adaptive", lambda x, f=adaptive: f(x, [3, 5]), [x]
        yield f"{kind}_pool_global", lambda x, f=adaptive: f(x, 1), [x]
        yield f"{kind}_pool1d", lambda x, kind=kind: getattr(F, f"{kind}_pool1d")(x, 3, 2), [reals(2, 3, 9)]
        yield f"{kind}_pool3d", lambda x, kind=kind: getattr(F, f"{kind}_pool3d")(x, 2, 2), [reals(1, 2, 4, 5, 6)]
    yield "avg_pool_all", lambda x: F.avg_pool2d(x, 3, 2, padding=1, exclusive=False), [x]
    yield "avg_pool_all_ceil", lambda x: F.avg_pool2d(x, 3, 2, padding=1, exclusive=False, ceil_mode=True), [x]
    yield "max_pool_places", lambda x: F.max_pool2d(x, 2, return_mask=True)[0], [x]
    yield "unfold", lambda x: F.unfold(x, 3, 2, 1), [x]
    yield "fold", lambda x: F.fold(x, [5, 6], 2), [reals(1, 8, 20)]
    yield "pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [x]
    yield "pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), [reals(1, 3, 4, 6)]
    yield "channel_shuffle", lambda x: F.channel_shuffle(x, 2), [x]
    yield "temporal_shift", lambda x: F.temporal_shift(x, 2, 0.25), [reals(4, 8, 3, 3)]
    yield "deform_conv2d", ops.deform_conv2d, [x, reals(2, 18, 7, 6), reals(6, 4, 3, 3)]


def norms() -> Iterator[Case]:
    x = reals(2, 4, 5, 6)
    yield "batch_norm", F.batch_norm, [x, reals(4), shares(4), reals(4), reals(4)]
    yield "batch_norm_rows", F.batch_norm, [reals(5, 4), reals(4), shares(4), reals(4), reals(4)]
    yield "layer_norm", lambda x, w, b: F.layer_norm(x, [6], w, b), [x, reals(6), reals(6)]
    yield "layer_norm_axes", lambda x, w: F.layer_norm(x, [5, 6], w), [x, reals(30)]
    yield "group_norm", lambda x: nn.GroupNorm(2, 4, weight_attr=False, bias_attr=False)(x), [x]
    yield "instance_norm", F.instance_norm, [x]
    yield "local_response_norm", lambda x: F.local_response_norm(x, 3), [x]


def resizes() -> Iterator[Case]:
    x = reals(1, 2, 5, 6)
    for mode, corners, align in (
        ("nearest", False, 0),
        ("bilinear", False, 0),
        ("bilinear", False, 1),
        ("bilinear", True, 0),
        ("bicubic", False, 0),
        ("bicubic", True, 0),
    ):
        name = f"resize_{mode}_{int(corners)}_{align}"
        how = {"mode": mode, "align_corners": corners, "align_mode": align}
        yield name, lambda x, how=how: F.interpolate(x, size=[8, 9], **how), [x]
        yield f"{name}_scale", lambda x, how=how: F.interpolate(x, scale_factor=1.7, **how), [x]
    yield "resize_linear", lambda x: F.interpolate(x, size=[7], mode="linear", data_format="NCW"), [reals(1, 2, 5)]
    yield "resize_trilinear", lambda x: F.interpolate(x, size=[3, 7, 5], mode="trilinear", data_format="NCDHW"), [reals(1, 2, 4, 5, 6)]
    yield "resize_last", lambda x: F.interpolate(x, size=[8, 9], mode="bilinear", data_format="NHWC"), [reals(1, 5, 6, 2)]
    yield "resize_computed", lambda x: F.interpolate(x, size=paddle.shape(x)[2:] * 2, mode="bilinear"), [x]
    for padding in ("zeros", "border", "reflection"):
        yield f"grid_sample_{padding}", lambda x, g, p=padding: F.grid_sample(x, g, padding_mode=p), [x, reals(1, 4, 3, 2)]
    yield "grid_sample_nearest", lambda x, g: F.grid_sample(x, g, "nearest", align_corners=False), [x, reals(1, 4, 3, 2)]
    yield "affine_grid", lambda t: F.affine_grid(t, [2, 3, 4, 5]), [reals(2, 2, 3)]


def boxes() -> Iterator[Case]:
    x, size = reals(2, 2 * 7, 3, 4), np.array([[60, 90], [40, 70]], "int32")
    head = {"anchors": [10, 13, 16, 30], "class_num": 2, "conf_thresh": 0.3, "downsample_ratio": 8}
    yield "yolo_box", lambda x, s: ops.yolo_box(x, s, **head), [x, size]
    yield "yolo_box_open", lambda x, s: ops.yolo_box(x, s, clip_bbox=False, scale_x_y=1.1, **head), [x, size]
    corners = shares(2, 12, 2)
    found = np.concatenate([corners, corners + shares(2, 12, 2)], 2)
    for name, kept, most in (("nms", 100, 400), ("nms_few", 5, 6)):
        how = {"score_threshold": 0.1, "nms_top_k": most, "keep_top_k": kept, "nms_threshold": 0.3, "background_label": -1}
        yield name, lambda x, s, how=how: _nms(x, s, how), [found, shares(2, 3, 12)]
    prior = {"min_sizes": [4.0, 8.0], "max_sizes": [6.0, 12.0], "aspect_ratios": [1.0, 2.0], "flip": True, "clip": True}
    yield "prior_box", lambda x, y: ops.prior_box(x, y, **prior), [reals(1, 2, 4, 5), reals(1, 3, 32, 40)]
    box, spread = np.concatenate([shares(5, 2), shares(5, 2) + 1], 1), shares(5, 4)
    decode = lambda p, v, t: ops.box_coder(p, v, t, "decode_center_size", axis=0)  # noqa: E731
    yield "box_decode", decode, [box, spread, reals(3, 5, 4)]
    wide = np.concatenate([shares(3, 2), shares(3, 2) + 1], 1)
    yield "box_encode", lambda p, v, t: ops.box_coder(p, v, t, "encode_center_size", False), [box, spread, wide]
    rois = np.array([[0, 0, 4, 5], [1, 1, 5, 3], [0.5, 0.2, 3, 3]], "float32")
    aligned = lambda x, r: ops.roi_align(x, r, paddle.assign(np.array([2, 1], "int32")), 2, 0.5, 2)  # noqa: E731
    yield "roi_align", aligned, [reals(2, 2, 6, 7), rois]


def _nms(x: Any, scores: Any, how: dict[str, Any]) -> Any:
    """The operator has no function of its own. The order of its arguments is that of its definition."""
    from paddle import _C_ops

    if paddle.__version__ >= "3":
        rest = [how["score_threshold"], how["nms_top_k"], how["keep_top_k"], how["nms_threshold"], True, 1.0, how["background_label"]]
        return _C_ops.multiclass_nms3(x, scores, None, *rest)
    outputs = {"Out": "float32", "Index": "int32", "NmsRoisNum": "int32"}
    return _appended("multiclass_nms3", {"BBoxes": x, "Scores": scores}, outputs, {**how, "nms_eta": 1.0, "normalized": True})


def control() -> Iterator[Case]:
    def branches(x: Any) -> Any:
        return paddle.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)

    def nested(x: Any) -> Any:
        def inner() -> Any:
            return paddle.static.nn.cond(x.max() > 1, lambda: (x + 1, x), lambda: (x - 1, x * x))

        return paddle.static.nn.cond(x.sum() > 0, inner, lambda: (x, x))

    def loop(x: Any) -> Any:
        at = paddle.full([1], 0, "int64")
        end = paddle.full([1], 5, "int64")
        return paddle.static.nn.while_loop(lambda i, y: i < end, lambda i, y: [i + 1, y * 1.5 + i.astype("float32")], [at, x])

    yield "cond", branches, [reals(2, 3)]
    yield "cond_other", branches, [reals(2, 3) - 5]
    yield "cond_nested", nested, [reals(2, 3) + 3]
    yield "while_loop", loop, [reals(2, 3)]


def _appended(type: str, inputs: dict[str, Any], outputs: dict[str, str], attributes: dict[str, Any]) -> list[Any]:
    """The results of an operator of PaddlePaddle 2 that has no function."""
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper(type)
    made = [helper.create_variable_for_type_inference(dtype) for dtype in outputs.values()]
    helper.append_op(type=type, inputs=inputs, outputs=dict(zip(outputs, made)), attrs=attributes)
    return made


def quantised() -> Iterator[Case]:
    """Numbers with steps of a scale, by tensors and by channels.

    PaddlePaddle 2 alone: called on its own, the operator of version 3.3 gives numbers at the ends of the range for any scale.
    """

    def steps(name: str, x: Any, scale: Any, axis: int) -> Any:
        how = {"quant_axis": axis, "bit_length": 8, "round_type": 0, "is_test": True, "only_observer": False}
        return _appended(name, {"X": x, "Scale": scale, "ZeroPoint": paddle.zeros_like(scale)}, {"Y": "float32"}, how)[0]

    def both(x: Any, scale: Any, axis: int) -> Any:
        return steps("dequantize_linear", steps("quantize_linear", x, scale, axis), scale, axis)

    if paddle.__version__ < "3":
        yield "quantize_tensor", lambda x: both(x, paddle.full([1], 2.0), -1), [reals(3, 4)]
        yield "quantize_channels", lambda x: both(x, paddle.assign(np.array([1.0, 2.0, 3.0], "float32")), 0), [reals(3, 4)]


CASES = (windows, norms, resizes, boxes, control, quantised)


class Recurrent(nn.Layer):
    """A recurrent layer and its last states."""

    def __init__(self, kind: type, lengths: bool = False, **how: Any) -> None:
        super().__init__()
        self.layer = kind(6, 5, **how)
        self.lengths = lengths

    def forward(self, x: Any, lengths: Any = None) -> Any:
        made, last = self.layer(x, None, lengths)
        return [made, *(last if isinstance(last, tuple) else [last])]


class Text(nn.Layer):
    """Embedded words, a recurrent layer, and attention over its outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.steps, self.score, self.out = (
            nn.Embedding(30, 8, padding_idx=0),
            nn.GRU(8, 6),
            nn.Linear(6, 1),
            nn.Linear(6, 3),
        )

    def forward(self, words: Any) -> Any:
        made, _ = self.steps(self.words(words))
        return F.softmax(self.out(paddle.sum(F.softmax(self.score(paddle.tanh(made)), axis=1) * made, axis=1)))


class Transformer(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu")
        self.words, self.layers, self.out = nn.Embedding(40, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 5)

    def forward(self, words: Any) -> Any:
        mask = (words > 0).unsqueeze([1, 2]).astype("float32")
        return self.out(self.layers(self.words(words), (mask - 1.0) * 10000.0))


class Decoder(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Transformer(16, 4, 1, 1, 32)

    def forward(self, source: Any, target: Any) -> Any:
        return self.network(source, target)


class Unet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2))
        self.middle = nn.Sequential(nn.Conv2D(8, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.PReLU(12), nn.Conv2DTranspose(12, 8, 2, 2))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2D(11, 4, 1), nn.Hardswish())

    def forward(self, x: Any) -> Any:
        low = self.down(x)
        high = self.middle(low)[:, :, : x.shape[2], : x.shape[3]]
        return self.up[1:](paddle.concat([high, x], axis=1)) + self.up[0](low).mean(axis=1, keepdim=True)


class Ocr(nn.Layer):
    """Pictures as sequences for two recurrent layers, as readers of texts have them."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = nn.Sequential(nn.Conv2D(1, 6, 3, 2, 1), nn.BatchNorm2D(6), nn.Hardswish(), nn.MaxPool2D([8, 2], [8, 2]))
        self.steps, self.out = nn.LSTM(6, 5, 2, direction="bidirect"), nn.Linear(10, 7)

    def forward(self, x: Any) -> Any:
        made = self.pictures(x).squeeze(2).transpose([0, 2, 1])
        return F.softmax(self.out(self.steps(made)[0]), axis=2)


class Yolo(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(3, 8, 3, 4, 1), nn.BatchNorm2D(8), nn.LeakyReLU(0.1), nn.Conv2D(8, 14, 3, 2, 1))

    def forward(self, x: Any, size: Any) -> Any:
        made = self.body(x)
        return ops.yolo_box(made, size, [10, 13, 16, 30], 2, 0.3, 8)


class Flow(nn.Layer):
    """Branches and loops that depend on data, from Python's own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        count = paddle.zeros([1], "int64")
        while count < 4:
            if x.mean() > 0:
                x = paddle.tanh(self.first(x))
            else:
                x = self.second(x) + 0.1
            count = count + 1
        return x


def quantised_network(training: bool) -> Any:
    """A network with numbers of 8 bits, as PaddlePaddle exports it or as it trains it."""
    from paddle.quantization import PTQ, QAT, QuantConfig
    from paddle.quantization.observers import AbsmaxObserver
    from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

    paddle.seed(3)
    net = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2D(8, 4, 3, 2), nn.Flatten(), nn.Linear(36, 5))
    step = FakeQuanterWithAbsMaxObserver(moving_rate=0.9) if training else AbsmaxObserver(quant_bits=8)
    way = (QAT if training else PTQ)(QuantConfig(activation=step, weight=step))
    net.train() if training else net.eval()
    made = way.quantize(net)
    made(paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("float32")))
    return made if training else way.convert(made)


def picture(extent: int = 32) -> list[np.ndarray]:
    return [reals(1, 3, extent, extent)]


def networks() -> Iterator[Network]:
    yield "lenet", models.LeNet, [reals(2, 1, 28, 28)]
    yield "mobilenet_v1", lambda: models.mobilenet_v1(scale=0.25, num_classes=10), picture(48)
    yield "mobilenet_v2", lambda: models.mobilenet_v2(scale=0.25, num_classes=10), picture(48)
    yield "mobilenet_v3_small", lambda: models.mobilenet_v3_small(scale=0.5, num_classes=10), picture(48)
    yield "shufflenet_v2", lambda: models.shufflenet_v2_x0_25(num_classes=10), picture(64)
    yield "squeezenet1_1", lambda: models.squeezenet1_1(num_classes=10), picture(64)
    yield "resnet18", lambda: models.resnet18(num_classes=10), picture(48)
    yield "densenet121", lambda: models.densenet121(num_classes=10), picture(48)
    yield "lstm", lambda: Recurrent(nn.LSTM, num_layers=2, direction="bidirect"), [reals(2, 7, 6)]
    yield "gru_lengths", lambda: Recurrent(nn.GRU, direction="bidirect"), [reals(3, 7, 6), np.array([7, 3, 5])]
    yield "simple_rnn", lambda: Recurrent(nn.SimpleRNN, num_layers=2, activation="relu"), [reals(2, 40, 6)]
    yield "text", Text, [whole(2, 9, high=30)]
    yield "transformer", Transformer, [whole(2, 7, high=40)]
    yield "decoder", Decoder, [reals(2, 6, 16), reals(2, 5, 16)]
    yield "unet", Unet, [reals(1, 3, 16, 16)]
    yield "ocr", Ocr, [reals(2, 1, 16, 48)]
    yield "yolo", Yolo, [*picture(), np.array([[60, 90]], "int32")]
    yield "flow", Flow, [reals(2, 4)]
    yield "quantised", lambda: quantised_network(False), [reals(2, 3, 8, 8)]
    yield "quantised_training", lambda: quantised_network(True), [reals(2, 3, 8, 8)]
