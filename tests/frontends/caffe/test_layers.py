"""Layers of Caffe give what loops over numbers give, written from the arithmetic of Caffe's own layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.frontends.caffe import import_caffe
from tests.frontends.caffe.networks import Blob, Net, caffemodel, operands, prototxt, weights
from tests.frontends.caffe.test_networks import imported, results, same

Shapes = Sequence[tuple[int, ...]]


def one(type: str, shapes: Shapes, params: str = "", blobs: Sequence[Blob] = (), tops: Sequence[str] | None = None) -> Net:
    """A network of one layer."""
    net = Net({f"x{i}": shape for i, shape in enumerate(shapes)})
    net.add(type, params, blobs, bottoms=list(net.inputs), tops=tops)
    return net


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def check(net: Net, wanted: Callable[..., Any], change: Callable[[list[np.ndarray]], None] = lambda values: None) -> None:
    """The results of a network of one layer are those of a function of its operands and its weights."""
    values = operands(net)
    change(values)
    own = weights(net).get(net.layers[0].name, [])
    made = wanted(*[v.astype("float64") for v in values], *[w.astype("float64") for w in own])
    found = results(imported(net), *values)
    expected = made if isinstance(made, list) else [made]
    assert len(found) == len(expected)
    for f, w in zip(found, expected):
        same(f, w)


# ---- windows


def pool_loops(x: np.ndarray, kind: str, k: Sequence[int], s: Sequence[int], p: Sequence[int], up: bool = True) -> list[np.ndarray]:
    """Caffe's pool by its own loops: the result, and the places of largest elements."""
    sizes = []
    for size, kernel, stride, pad in zip(x.shape[2:], k, s, p):
        count = (math.ceil if up else math.floor)((size + 2 * pad - kernel) / stride) + 1
        sizes.append(count - (any(p) and (count - 1) * stride >= size + pad))
    made, places = np.zeros((*x.shape[:2], *sizes)), np.zeros((*x.shape[:2], *sizes))
    for i in np.ndindex(*made.shape):
        begin = [j * stride - pad for j, stride, pad in zip(i[2:], s, p)]
        end = [min(b + kernel, size + pad) for b, kernel, size, pad in zip(begin, k, x.shape[2:], p)]
        area = (end[0] - begin[0]) * (end[1] - begin[1])
        top, left = (max(b, 0) for b in begin)
        part = x[i[0], i[1], top : end[0], left : end[1]]
        made[i] = part.max() if kind == "MAX" else part.sum() / area
        row, column = np.unravel_index(part.argmax(), part.shape)
        places[i] = (top + row) * x.shape[3] + left + column
    return [made, places]


POOLS = [
    ((7, 8), (3, 3), (2, 2), (0, 0)),
    ((8, 7), (3, 2), (2, 3), (0, 1)),
    ((6, 9), (3, 3), (2, 2), (1, 1)),
    ((5, 5), (2, 3), (2, 2), (1, 2)),
    ((9, 6), (4, 4), (3, 3), (2, 1)),
    ((8, 8), (2, 2), (2, 2), (0, 0)),
]


@pytest.mark.parametrize("kind", ["MAX", "AVE"])
@pytest.mark.parametrize("up", ["CEIL", "FLOOR"])
def test_pools_are_those_of_caffe(kind: str, up: str) -> None:
    for size, k, s, p in POOLS:
        sides = " ".join(f"{name}_h: {v[0]} {name}_w: {v[1]}" for name, v in (("kernel", k), ("stride", s), ("pad", p)))
        net = one("Pooling", [(2, 2, *size)], f"pooling_param {{ pool: {kind} round_mode: {up} {sides} }}")
        check(net, lambda x, k=k, s=s, p=p: pool_loops(x, kind, k, s, p, up == "CEIL")[0])


def test_pools_give_the_places_of_largest_elements() -> None:
    for size, k, s, p in POOLS:
        sides = " ".join(f"{name}_h: {v[0]} {name}_w: {v[1]}" for name, v in (("kernel", k), ("stride", s), ("pad", p)))
        net = one("Pooling", [(2, 3, *size)], f"pooling_param {{ {sides} }}", tops=["y", "mask"])
        check(net, lambda x, k=k, s=s, p=p: pool_loops(x, "MAX", k, s, p))


def test_a_pyramid_joins_pools_of_parts() -> None:
    def wanted(x: np.ndarray) -> np.ndarray:
        parts = []
        for level in range(3):
            k = [math.ceil(n / 2**level) for n in x.shape[2:]]
            p = [(size * 2**level - n + 1) // 2 for size, n in zip(k, x.shape[2:])]
            parts.append(pool_loops(x, "MAX", k, k, p)[0].reshape(len(x), -1))
        return np.concatenate(parts, 1)

    check(one("SPP", [(2, 3, 9, 11)], "spp_param { pyramid_height: 3 }"), wanted)


def test_convolutions_share_weights_between_operands() -> None:
    blobs: list[Blob] = [("n", (4, 3, 1, 1)), ("n", (4,))]
    net = one("Convolution", [(1, 3, 2, 2), (2, 3, 4, 3)], "convolution_param { num_output: 4 kernel_size: 1 }", blobs, ["y", "z"])
    check(net, lambda x, y, w, b: [np.einsum("nchw,oc->nohw", v, w[:, :, 0, 0]) + b[:, None, None] for v in (x, y)])


def test_convolutions_have_one_or_three_axes() -> None:
    def wanted(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        made = np.zeros((1, 2, *[n - 1 for n in x.shape[2:]]))
        for i in np.ndindex(*made.shape[1:]):
            part = x[(0, slice(None), *[slice(j, j + 2) for j in i[1:]])]
            made[(0, *i)] = (part * w[i[0]]).sum() + b[i[0]]
        return made

    for size in ((5,), (3, 4, 5)):
        blobs: list[Blob] = [("n", (2, 3, *[2] * len(size))), ("n", (2,))]
        check(one("Convolution", [(1, 3, *size)], "convolution_param { num_output: 2 kernel_size: 2 }", blobs), wanted)


# ---- recurrent layers


def _gaps(values: list[np.ndarray]) -> None:
    values[1][:] = (np.arange(values[1].size).reshape(values[1].shape) % 3 != 0).astype("float32")


def lstm(x: np.ndarray, cont: np.ndarray, *rest: np.ndarray, static: bool = False, shown: bool = False) -> Any:
    values = list(rest)
    fixed = values.pop(0) if static else None
    h, c = (values.pop(0)[0], values.pop(0)[0]) if shown else (np.zeros((x.shape[1], 3)), np.zeros((x.shape[1], 3)))
    w, b, *middle, u = values
    outputs = []
    for xt, ct in zip(x.reshape(*x.shape[:2], -1), cont[:, :, None]):
        gates = xt @ w.T + b + (h * ct) @ u.T + (fixed @ middle[0].T if fixed is not None else 0)
        i, f, o, g = np.split(gates, 4, 1)
        c = ct * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return [np.stack(outputs), h[None], c[None]] if shown else np.stack(outputs)


def rnn(x: np.ndarray, cont: np.ndarray, w: np.ndarray, b: np.ndarray, u: np.ndarray, v: np.ndarray, d: np.ndarray) -> np.ndarray:
    h, outputs = np.zeros((x.shape[1], 3)), []
    for xt, ct in zip(x, cont[:, :, None]):
        h = np.tanh((h * ct) @ u.T + xt @ w.T + b)
        outputs.append(np.tanh(h @ v.T + d))
    return np.stack(outputs)


@pytest.mark.parametrize("steps", [5, 40])
def test_recurrent_layers(steps: int) -> None:
    how = "recurrent_param { num_output: 3 }"
    gates: list[Blob] = [("n", (12, 4)), ("n", (12,)), ("n", (12, 3))]
    check(one("LSTM", [(steps, 2, 2, 2), (steps, 2)], how, gates), lstm, _gaps)
    states: list[Blob] = [("n", (3, 4)), ("n", (3,)), ("n", (3, 3)), ("n", (3, 3)), ("n", (3,))]
    check(one("RNN", [(steps, 2, 4), (steps, 2)], how, states), rnn, _gaps)


def test_a_recurrent_layer_takes_states_and_an_operand_for_all_steps() -> None:
    how = "recurrent_param { num_output: 3 expose_hidden: true }"
    gates: list[Blob] = [("n", (12, 4)), ("n", (12,)), ("n", (12, 6)), ("n", (12, 3))]
    net = one("LSTM", [(4, 2, 4), (4, 2), (2, 6), (1, 2, 3), (1, 2, 3)], how, gates, ["y", "h", "c"])
    check(net, lambda *v: lstm(*v, static=True, shown=True), _gaps)


# ---- elements, shapes, sums

W = ("n", (3,))
NETS: dict[str, tuple[Net, Callable[..., Any]]] = {
    "argmax": (one("ArgMax", [(2, 3, 4)], "argmax_param { top_k: 2 }"), lambda x: np.argsort(-x.reshape(2, 12))[:, None, :2]),
    "argmax_both": (
        one("ArgMax", [(2, 5)], "argmax_param { out_max_val: true }"),
        lambda x: np.stack([x.argmax(1), x.max(1)], 1)[:, :, None],
    ),
    "argmax_axis": (one("ArgMax", [(2, 5, 3)], "argmax_param { axis: -2 }"), lambda x: x.argmax(1)[:, None]),
    "argmax_values": (
        one("ArgMax", [(2, 5, 3)], "argmax_param { axis: 1 top_k: 2 out_max_val: true }"),
        lambda x: -np.sort(-x, 1)[:, :2],
    ),
    "axpy": (one("Axpy", [(2, 3, 1, 1), (2, 3, 4, 5), (2, 3, 4, 5)]), lambda a, x, y: a * x + y),
    "batch": (
        one("BatchNorm", [(4, 3, 5)], "batch_norm_param { use_global_stats: false }"),
        lambda x: (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5),
    ),
    "bias": (one("Bias", [(2, 3, 4)], "bias_param { axis: 1 }", [W]), lambda x, b: x + b[:, None]),
    "bias_operand": (one("Bias", [(2, 3, 4), (3,)]), lambda x, b: x + b[:, None]),
    "clip": (one("Clip", [(2, 3)], "clip_param { min: -0.5 max: 0.25 }"), lambda x: x.clip(-0.5, 0.25)),
    "dropout": (one("Dropout", [(2, 3)], "dropout_param { dropout_ratio: 0.25 scale_train: false }"), lambda x: x * 0.75),
    "eltwise": (
        one("Eltwise", [(2, 3)] * 3, "eltwise_param { coeff: 1 coeff: -1 coeff: 2 }"),
        lambda x, y, z: x - y + 2 * z,
    ),
    "embed": (
        one("Embed", [(2, 3)], "embed_param { num_output: 4 input_dim: 5 }", [("n", (5, 4)), ("n", (4,))]),
        lambda x, w, b: w[x.astype(int)] + b,
    ),
    "inner_axis": (
        one("InnerProduct", [(2, 3, 4)], "inner_product_param { num_output: 5 axis: 2 }", [("n", (5, 4)), ("n", (5,))]),
        lambda x, w, b: x @ w.T + b,
    ),
    "inner_all": (
        one("InnerProduct", [(2, 3)], "inner_product_param { num_output: 5 axis: 0 bias_term: false }", [("n", (5, 6))]),
        lambda x, w: w @ x.reshape(-1),
    ),
    "inner_turned": (
        one("InnerProduct", [(2, 4)], "inner_product_param { num_output: 5 transpose: true }", [("n", (4, 5)), ("n", (5,))]),
        lambda x, w, b: x @ w + b,
    ),
    "mvn": (
        one("MVN", [(2, 3, 4, 5)], "mvn_param { across_channels: true }"),
        lambda x: (x - x.mean((1, 2, 3), keepdims=True)) / x.std((1, 2, 3), keepdims=True),
    ),
    "mvn_mean": (
        one("MVN", [(2, 3, 4, 5)], "mvn_param { normalize_variance: false }"),
        lambda x: x - x.mean((2, 3), keepdims=True),
    ),
    "normalize": (
        one("Normalize", [(2, 3, 4, 5)], "norm_param { across_spatial: true }", [("p", (1,))]),
        lambda x, s: x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True)) * s,
    ),
    "tile": (one("Tile", [(2, 3)], "tile_param { axis: -1 tiles: 3 }"), lambda x: np.tile(x, (1, 3))),
    "power_root": (one("Power", [(2, 3)], "power_param { power: 3 scale: 2 shift: 1 }"), lambda x: (2 * x + 1) ** 3),
    "prelu": (one("PReLU", [(2, 3)], "prelu_param { channel_shared: true }", [("p", (1,))]), lambda x, s: np.where(x > 0, x, s * x)),
    "asum": (
        one("Reduction", [(2, 3, 4)], "reduction_param { operation: ASUM axis: 1 coeff: 0.5 }"),
        lambda x: np.abs(x).sum((1, 2)) / 2,
    ),
    "mean": (one("Reduction", [(2, 3)], "reduction_param { operation: MEAN }"), lambda x: x.mean()),
    "sum_squares": (one("Reduction", [(2, 3)], "reduction_param { operation: SUMSQ axis: -1 }"), lambda x: (x * x).sum(1)),
    "reindex": (one("BatchReindex", [(4, 3), (5,)]), lambda x, i: x[i.astype(int)]),
    "relu6": (one("ReLU6", [(2, 3)]), lambda x: x.clip(0, 6)),
    "reshape": (
        one("Reshape", [(2, 8)], "reshape_param { shape { dim: 2 dim: -1 } axis: 1 num_axes: 1 }"),
        lambda x: x.reshape(2, 2, 4),
    ),
    "reshape_new": (one("Reshape", [(2, 8)], "reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }"), lambda x: x[:, :, None]),
    "scale_all": (
        one("Scale", [(2, 3, 4)], "scale_param { axis: 1 num_axes: -1 bias_term: true }", [("n", (3, 4)), ("n", (3, 4))]),
        lambda x, s, b: x * s + b,
    ),
    "scale_one": (one("Scale", [(2, 3)], "scale_param { num_axes: 0 }", [("n", ())]), lambda x, s: x * s),
    "scale_operand": (
        one("Scale", [(2, 3, 4), (2, 3)], "scale_param { axis: 0 bias_term: true }", [("n", (2, 3))]),
        lambda x, s, b: x * s[:, :, None] + b[:, :, None],
    ),
    "softmax": (
        one("Softmax", [(2, 3, 4)], "softmax_param { axis: -1 }"),
        lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    ),
    "swish": (one("Swish", [(2, 3)], "swish_param { beta: 2 }"), lambda x: x * sigmoid(2 * x)),
    "threshold": (one("Threshold", [(2, 3)], "threshold_param { threshold: 0.25 }"), lambda x: (x > 0.25) * 1.0),
    "upsample": (one("Upsample", [(1, 2, 3, 4)], "upsample_param { scale: 2 }"), lambda x: x.repeat(2, 2).repeat(2, 3)),
}


def _small(values: list[np.ndarray]) -> None:
    """Numbers of rows where an operand has some."""
    values[-1][:] = np.arange(values[-1].size).reshape(values[-1].shape) % 4


@pytest.mark.parametrize("name", NETS)
def test_a_layer_gives_what_numpy_gives(name: str) -> None:
    net, wanted = NETS[name]
    check(net, wanted, *([_small] if name in ("embed", "reindex") else []))


def test_logarithms_and_powers_have_bases() -> None:
    net = one("Log", [(2, 3)], "log_param { base: 2 scale: 3 shift: 20 }")
    check(net, lambda x: np.log2(3 * x + 20))
    check(one("Exp", [(2, 3)], "exp_param { scale: 2 shift: 1 }"), lambda x: np.exp(2 * x + 1))


def test_interp_keeps_corners() -> None:
    def wanted(x: np.ndarray) -> np.ndarray:
        x = x[:, :, 1:-1, 1:-1]
        high, wide = ((n - 1) * 2 + 1 for n in x.shape[2:])
        rows, columns = (np.linspace(0, n - 1, m) for n, m in zip(x.shape[2:], (high, wide)))
        made = np.apply_along_axis(lambda v: np.interp(rows, np.arange(len(v)), v), 2, x)
        return np.apply_along_axis(lambda v: np.interp(columns, np.arange(len(v)), v), 3, made)

    check(one("Interp", [(1, 2, 5, 6)], "interp_param { zoom_factor: 2 pad_beg: -1 pad_end: -1 }"), wanted)


# ---- boxes


def test_prior_boxes_are_those_of_caffe() -> None:
    def wanted(x: np.ndarray, picture: np.ndarray) -> np.ndarray:
        rows, step = [], (40 / 2, 30 / 3)
        for h in range(2):
            for w in range(3):
                x0, y0 = (w + 0.5) * step[1], (h + 0.5) * step[0]
                for low, high in ((5, 9), (8, 20)):  # 5.7 and 9.2 are cut off to whole numbers.
                    sizes = [(low, low), (math.sqrt(low * high),) * 2]
                    sizes += [(low * math.sqrt(r), low / math.sqrt(r)) for r in (2.0, 0.5, 3.0, 1 / 3)]
                    rows += [[(x0 - a / 2) / 30, (y0 - b / 2) / 40, (x0 + a / 2) / 30, (y0 + b / 2) / 40] for a, b in sizes]
        boxes = np.array(rows).clip(0, 1)
        return np.stack([boxes.reshape(-1), np.tile([0.1, 0.1, 0.2, 0.2], len(boxes))])[None]

    sizes = "min_size: 5.7 min_size: 8 max_size: 9.2 max_size: 20 aspect_ratio: 2 aspect_ratio: 3 aspect_ratio: 2"
    how = f"prior_box_param {{ {sizes} clip: true variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }}"
    check(one("PriorBox", [(1, 4, 2, 3), (1, 3, 40, 30)], how), wanted)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return float(shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared))


def detections(moves: np.ndarray, scores: np.ndarray, prior: np.ndarray, shared: bool, keep: int) -> np.ndarray:
    """SSD's selection by Caffe's own loops."""
    count = prior.shape[2] // 4
    boxes, spread = prior[0].reshape(2, count, 4)
    rows = []
    for picture in range(len(moves)):
        own = moves[picture].reshape(count, 1 if shared else 3, 4)
        chosen: list[tuple[float, int, np.ndarray]] = []
        for label in (0, 2):
            ends = boxes + spread * own[:, 0 if shared else label]
            chance = scores[picture].reshape(count, 3)[:, label]
            order = [i for i in np.argsort(-chance, kind="stable") if chance[i] > 0.3][:6]
            kept: list[int] = []
            for i in order:
                if all(overlap(ends[i], ends[j]) <= 0.4 for j in kept):
                    kept.append(int(i))
            chosen += [(chance[i], label, ends[i]) for i in kept]
        best = sorted(chosen, key=lambda c: -c[0])[:keep]
        best.sort(key=lambda c: (c[1], -c[0]))
        rows += [[picture, label, chance, *ends] for chance, label, ends in best] + [[-1] * 7] * (keep - len(best))
    return np.array(rows)[None, None]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("keep", [4, 10])
def test_detections_of_several_pictures(shared: bool, keep: int) -> None:
    count, places = 12, 1 if shared else 3
    nms = "nms_param { nms_threshold: 0.4 top_k: 6 }"
    how = f"num_classes: 3 share_location: {str(shared).lower()} background_label_id: 1 {nms} keep_top_k: {keep} code_type: CORNER"
    net = one(
        "DetectionOutput",
        [(2, count * places * 4), (2, count * 3), (1, 2, count * 4)],
        f"detection_output_param {{ {how} confidence_threshold: 0.3 }}",
    )
    rng = np.random.default_rng(4)

    def change(values: list[np.ndarray]) -> None:
        corners = rng.uniform(0, 0.5, (count, 2))
        values[2][0, 0] = np.concatenate([corners, corners + rng.uniform(0.3, 0.5, (count, 2))], 1).reshape(-1)
        values[2][0, 1] = 0.1
        values[0][:] = values[0] * 0.3
        values[1][:] = rng.uniform(0, 1, values[1].shape)

    check(net, lambda m, s, p: detections(m, s, p, shared, keep), change)


def test_regions_are_pooled() -> None:
    net = one("ROIPooling", [(1, 2, 8, 8), (2, 5)], "roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 0.5 }")

    def change(values: list[np.ndarray]) -> None:
        values[1][:] = [[0, 0, 0, 14, 14], [0, 4, 2, 10, 8]]

    def wanted(x: np.ndarray, rois: np.ndarray) -> np.ndarray:
        made = []
        for _, left, top, right, bottom in np.round(rois * [1, 0.5, 0.5, 0.5, 0.5]).astype(int):
            part = x[0, :, top : bottom + 1, left : right + 1]
            high, wide = part.shape[1:]
            cells = [[(math.floor(i * n / 2), math.ceil((i + 1) * n / 2)) for i in range(2)] for n in (high, wide)]
            made.append([[[c[a:b, d:e].max() for d, e in cells[1]] for a, b in cells[0]] for c in part])
        return np.array(made)

    check(net, wanted, change)


def test_constants_of_a_network() -> None:
    text = """layer { name: "p" type: "Parameter" top: "p" parameter_param { shape { dim: 2 dim: 3 } }
                blobs { shape { dim: 2 dim: 3 } data: 1 data: 2 data: 3 data: 4 data: 5 data: 6 } }
        layer { name: "d" type: "DummyData" top: "d" dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: 2 } } }
        layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "y" type: "Eltwise" bottom: "p" bottom: "d" bottom: "x" top: "y" }
        layer { name: "s" type: "Split" bottom: "y" top: "a" top: "b" } layer { name: "q" type: "Silence" bottom: "a" }"""
    mod = import_caffe(text.encode()).module
    (found,) = results(mod, np.ones((2, 3), "float32"))
    same(found, np.arange(1.0, 7.0).reshape(2, 3) + 3)


def test_a_network_alone_in_a_file_of_weights() -> None:
    """The messages of layers, with their parameters, as Caffe writes them."""
    from tests.frontends.caffe.networks import number, part

    net = one("InnerProduct", [(2, 4)], "inner_product_param { num_output: 5 }", [("n", (5, 4)), ("n", (5,))])
    shape = part(1, number(1, 2) + number(1, 4))
    head = part(100, part(1, "x0") + part(2, "Input") + part(4, "x0") + part(143, shape))
    body = caffemodel(net)[5:]
    extra = part(3, "x0") + part(4, "y") + part(117, number(1, 5))
    whole = part(100, body[body.index(b"\n") :] + extra)
    mod = import_caffe(part(1, "net") + head + whole).module
    values = operands(net)
    w, b = weights(net)["innerproduct0"]
    same(results(mod, *values)[0], values[0] @ w.T + b)
    assert "innerproduct0" in prototxt(net)
