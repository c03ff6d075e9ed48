"""Small networks of Darknet: their `.cfg` files, random weights, and what each layer is in PyTorch or numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

_NET = "[net]\nbatch=1\nheight={h}\nwidth={w}\nchannels={c}\n"
CONV = "[convolutional]\nfilters={n}\nsize={k}\nstride={s}\npad=1\nactivation={a}\n"
BATCH = "[convolutional]\nbatch_normalize=1\nfilters={n}\nsize=3\nstride=1\npad=1\nactivation={a}\n"


def conv(n: int, k: int = 3, s: int = 1, a: str = "leaky") -> str:
    return CONV.format(n=n, k=k, s=s, a=a)


def net(h: int = 8, w: int = 8, c: int = 3) -> str:
    return _NET.format(h=h, w=w, c=c)


ACTIVATIONS = (
    "linear",
    "logistic",
    "relu",
    "relu6",
    "relie",
    "ramp",
    "tanh",
    "plse",
    "leaky",
    "elu",
    "selu",
    "loggy",
    "stair",
    "hardtan",
    "lhtan",
    "swish",
    "mish",
    "hard_mish",
    "gelu",
)

NETWORKS: dict[str, str] = {
    "yolo3": net()
    + conv(4)
    + BATCH.format(n=6, a="leaky")
    + "[maxpool]\nsize=2\nstride=2\n"
    + conv(12, 1, a="linear")
    + "[yolo]\nmask=0,1\nanchors=10,13, 16,30, 33,23\nclasses=1\nnum=3\n[route]\nlayers=-3\n"
    + conv(4, 1)
    + "[upsample]\nstride=2\n[route]\nlayers=-1, 1\n"
    + conv(18, 1, a="linear")
    + "[yolo]\nmask=0,1,2\nanchors=10,13,16,30,33,23\nclasses=1\nnum=3\n",
    "yolo4": net()
    + BATCH.format(n=8, a="mish")
    + "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n"
    + conv(4, a="swish")
    + "[maxpool]\nsize=3\nstride=1\n"
    + "[route]\nlayers=-1,-3\n"
    + conv(14, 1, a="logistic")
    + "[yolo]\nmask=1,2\nanchors=1,2,3,4,5,6\nclasses=2\n"
    "num=3\nscale_x_y=1.2\nnew_coords=1\n",
    "yolo2": net()
    + conv(4)
    + "[maxpool]\nsize=2\nstride=2\n"
    + conv(8)
    + "[route]\nlayers=-3\n[reorg]\nstride=2\n[route]\nlayers=-1,-3\n"
    + conv(14, 1, a="linear")
    + "[region]\nanchors=1,2,3,4\nclasses=2\ncoords=4\nnum=2\nsoftmax=1\n",
    "classes": net(9, 7)
    + BATCH.format(n=4, a="relu")
    + "[shortcut]\nfrom=-1\nactivation=leaky\n[dropout]\nprobability=.5\n"
    + conv(6, 3, 2)
    + "[maxpool]\nsize=2\nstride=1\n[avgpool]\n[connected]\noutput=5\nactivation=relu\n[softmax]\ngroups=1\n[cost]\n",
    "dense": net(4, 4) + "[connected]\noutput=6\nbatch_normalize=1\nactivation=linear\n[softmax]\ngroups=2\ntemperature=2\n",
    "grouped": net(6, 6, 4)
    + "[convolutional]\nfilters=8\ngroups=4\nsize=3\nstride=2\npadding=1\nactivation=linear\n"
    + "[convolutional]\nfilters=4\nsize=3\nstride=1\npad=1\ndilation=2\nactivation=linear\n[shortcut]\nfrom=-2\n"
    "[normalization]\nsize=3\n[l2norm]\n"
    + "[deconvolutional]\nfilters=3\nsize=2\nstride=2\nactivation=linear\n[crop]\ncrop_height=4\ncrop_width=3\n",
    "tiny3": net()
    + BATCH.format(n=4, a="leaky")
    + "[maxpool]\nsize=2\nstride=2\n"
    + BATCH.format(n=6, a="leaky")
    + "[maxpool]\nsize=2\nstride=1\n"
    + conv(4, 1)
    + conv(14, 1, a="linear")
    + "[yolo]\nmask=2,3\nanchors=10,14, 23,27, 37,58, 81,82\nclasses=2\nnum=4\n[route]\nlayers=-3\n"
    + conv(3, 1)
    + "[upsample]\nstride=2\n[route]\nlayers=-1, 0\n"
    + conv(14, 1, a="linear")
    + "[yolo]\nmask=0,1\nanchors=10,14, 23,27, 37,58, 81,82\nclasses=2\nnum=4\n",
    "classifier": net()
    + "".join(BATCH.format(n=n, a="leaky") + "[maxpool]\nsize=2\nstride=2\n" for n in (4, 6))
    + conv(4, 1)
    + BATCH.format(n=6, a="leaky")
    + conv(5, 1, a="linear")
    + "[avgpool]\n[softmax]\ngroups=1\n",
    "residual": net()
    + BATCH.format(n=4, a="leaky")
    + "[convolutional]\nbatch_normalize=1\nfilters=6\nsize=3\nstride=2\npad=1\nactivation=leaky\n"
    + "".join(conv(3, 1) + BATCH.format(n=6, a="linear") + "[shortcut]\nfrom=-3\nactivation=leaky\n" for _ in range(2))
    + "[avgpool]\n[connected]\noutput=4\nactivation=linear\n[softmax]\ngroups=1\n",
    "joined": net()
    + BATCH.format(n=4, a="relu")
    + "".join(BATCH.format(n=3, a="relu") + "[route]\nlayers=-1,-2\n" for _ in range(2))
    + "[maxpool]\nsize=2\nstride=2\n"
    + conv(4, 1)
    + "[avgpool]\n[softmax]\ngroups=2\n",
    "activations": net(4, 4, 2) + "".join(conv(2, 1, a=a) for a in ACTIVATIONS),
}


def parsed(cfg: str) -> list[tuple[str, dict[str, str]]]:
    """The sections behind the first."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in cfg.replace(" ", "").splitlines():
        if line.startswith("["):
            found.append((line[1:-1], {}))
        elif line:
            key, _, value = line.partition("=")
            found[-1][1][key] = value
    return found


def random_weights(revision: int = 0) -> tuple[np.random.Generator, list[bytes]]:
    header = np.array([0, 2, revision], "<i4").tobytes() + np.array([0], "<u8").tobytes()
    return np.random.default_rng(5), [header]


def weights_for(cfg: str, revision: int = 0) -> bytes:
    """Random weights in Darknet's order."""
    return reference(cfg, None, revision)[0]


def _active(x: np.ndarray, name: str) -> np.ndarray:
    one = 1 / (1 + np.exp(-x))
    whole = np.floor(x)
    soft = np.log1p(np.exp(x))
    table: dict[str, Any] = {
        "linear": x,
        "logistic": one,
        "relu": np.maximum(x, 0),
        "relu6": np.clip(x, 0, 6),
        "relie": np.where(x > 0, x, 0.01 * x),
        "ramp": x * (x > 0) + 0.1 * x,
        "tanh": np.tanh(x),
        "leaky": np.where(x > 0, x, 0.1 * x),
        "elu": np.where(x >= 0, x, np.expm1(x)),
        "plse": np.where(x < -4, 0.01 * (x + 4), np.where(x > 4, 0.01 * (x - 4) + 1, 0.125 * x + 0.5)),
        "selu": np.where(x >= 0, 1.0507 * x, 1.0507 * 1.6732 * np.expm1(x)),
        "loggy": 2 * one - 1,
        "stair": np.where(whole % 2 == 0, np.floor(x / 2), x - whole + np.floor(x / 2)),
        "hardtan": np.clip(x, -1, 1),
        "lhtan": np.where(x < 0, 0.001 * x, np.where(x > 1, 0.001 * (x - 1) + 1, x)),
        "swish": x * one,
        "mish": x * np.tanh(soft),
        "hard_mish": np.where(x > 0, x, np.where(x > -2, x * x / 2 + x, 0)),
        "gelu": 0.5 * x * (1 + np.tanh(0.797885 * x + 0.035677 * x**3)),
    }
    return np.asarray(table[name])


def _convolved(x: np.ndarray, w: np.ndarray, s: int, p: int, d: int, groups: int) -> np.ndarray:
    x = np.pad(x, ((0, 0), (p, p), (p, p)))
    k = (w.shape[2] - 1) * d + 1
    rows, columns = (x.shape[1] - k) // s + 1, (x.shape[2] - k) // s + 1
    made = np.zeros((w.shape[0], rows, columns))
    size = w.shape[0] // groups
    for f in range(w.shape[0]):
        part = x[f // size * w.shape[1] : (f // size + 1) * w.shape[1]]
        for i in range(rows):
            for j in range(columns):
                made[f, i, j] = (part[:, i * s : i * s + k : d, j * s : j * s + k : d] * w[f]).sum()
    return made


def _reorganised(x: np.ndarray, s: int) -> np.ndarray:
    """Darknet's loop: the output's memory is read in the order of the input's places."""
    c, h, w = x.shape
    flat, made, depth = x.reshape(-1), np.zeros(x.size), c // (s * s)
    for k in range(c):
        for j in range(h):
            for i in range(w):
                place = (k % depth) * h * s * w * s + (j * s + k // depth // s) * w * s + i * s + k // depth % s
                made[k * h * w + j * w + i] = flat[place]
    return made.reshape(c * s * s, h // s, w // s)


def reference(cfg: str, x: np.ndarray | None, revision: int = 0) -> tuple[bytes, list[np.ndarray]]:
    """Random weights as a file, and the results of layers with boxes and of the last one, by loops.

    Without `x`, zeros go through the network.
    """
    random, written = random_weights(revision)
    parts = parsed(cfg)
    given = parts[0][1]
    value = np.zeros([int(given[k]) for k in ("channels", "height", "width")]) if x is None else x[0].astype("float64")
    results: list[np.ndarray] = []
    boxes: list[np.ndarray] = []

    def take(*shape: int, low: float = -0.5, high: float = 0.5) -> np.ndarray:
        made = random.uniform(low, high, shape).astype("float32")
        written.append(made.tobytes())
        return made.astype("float64")

    def normalised(y: np.ndarray, beta: np.ndarray, moments: list[np.ndarray]) -> np.ndarray:
        shape = (-1,) + (1,) * (y.ndim - 1)
        scale, mean, variance = (m.reshape(shape) for m in moments)
        spread = np.sqrt(variance + 1e-5) if revision else np.sqrt(variance) + 1e-6
        return (y - mean) / spread * scale + beta.reshape(shape)

    def moments(count: int) -> list[np.ndarray]:
        return [take(count, low=0.5, high=1.5), take(count), take(count, low=0.5, high=1.5)]

    for kind, e in parts[1:]:
        at = len(results)
        if kind in ("convolutional", "deconvolutional"):
            n, k, s = int(e["filters"]), int(e["size"]), int(e["stride"])
            groups, d = int(e.get("groups", 1)), int(e.get("dilation", 1))
            p = (k // 2 if e.get("pad") == "1" else int(e.get("padding", 0))) * d
            bias, norm = take(n), moments(n) if e.get("batch_normalize") else []
            if kind == "convolutional":
                value = _convolved(value, take(n, value.shape[0] // groups, k, k), s, p, d, groups)
            else:
                w, (_, rows, columns) = take(value.shape[0], n, k, k), value.shape
                made = np.zeros((n, (rows - 1) * s + k, (columns - 1) * s + k))
                for i in range(rows):
                    for j in range(columns):
                        made[:, i * s : i * s + k, j * s : j * s + k] += np.einsum("c,cnij->nij", value[:, i, j], w)
                value = made
            value = _active(normalised(value, bias, norm) if norm else value + bias[:, None, None], e["activation"])
        elif kind == "connected":
            flat, n = value.reshape(-1), int(e["output"])
            bias = take(n)
            w = take(n, flat.size)
            norm = moments(n) if e.get("batch_normalize") else []
            value = w @ flat
            value = _active(normalised(value, bias, norm) if norm else value + bias, e["activation"])
        elif kind == "maxpool":
            k, s = int(e["size"]), int(e["stride"])
            rows, columns = ((m + k - 1 - k) // s + 1 for m in value.shape[1:])
            made = np.full((value.shape[0], rows, columns), -np.inf)
            low = (k - 1) // 2
            for i in range(rows):
                for j in range(columns):
                    top, left = i * s - low, j * s - low
                    made[:, i, j] = value[:, max(top, 0) : top + k, max(left, 0) : left + k].max((1, 2))
            value = made
        elif kind == "avgpool":
            value = value.mean((1, 2), keepdims=True)
        elif kind == "softmax":
            groups = value.reshape(int(e["groups"]), -1) / float(e.get("temperature", 1))
            shares = np.exp(groups - groups.max(1, keepdims=True))
            value = (shares / shares.sum(1, keepdims=True)).reshape(-1)
        elif kind == "route":
            layers = [results[int(i) + (at if int(i) < 0 else 0)] for i in e["layers"].split(",")]
            groups, group = int(e.get("groups", 1)), int(e.get("group_id", 0))
            value = np.concatenate([np.split(part, groups)[group] for part in layers])
        elif kind == "shortcut":
            other = results[int(e["from"]) + at]
            value = value.copy()
            count = min(len(value), len(other))
            value[:count] += other[:count]
            value = _active(value, e.get("activation", "linear"))
        elif kind == "upsample":
            value = value.repeat(int(e["stride"]), 1).repeat(int(e["stride"]), 2)
        elif kind == "reorg":
            value = _reorganised(value, int(e["stride"]))
        elif kind == "normalization":
            half = int(e["size"]) // 2
            square = value**2
            sums = [square[max(c - half, 0) : c + half + 1].sum(0) for c in range(len(value))]
            value = value * (1 + 0.0001 * np.array(sums)) ** -0.75
        elif kind == "l2norm":
            value = value / np.sqrt((value**2).sum(0))
        elif kind == "crop":
            rows, columns = int(e["crop_height"]), int(e["crop_width"])
            top, left = (value.shape[1] - rows) // 2, (value.shape[2] - columns) // 2
            value = value[:, top : top + rows, left : left + columns] * 2 - 1
        elif kind in ("yolo", "region"):
            classes = int(e["classes"])
            count = len(e["mask"].split(",")) if kind == "yolo" else int(e["num"])
            cells = value.reshape(count, 5 + classes, *value.shape[1:]).copy()
            one = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
            if not int(e.get("new_coords", 0)):
                cells[:, :2], cells[:, 4] = one(cells[:, :2]), one(cells[:, 4])
                if kind == "yolo":
                    cells[:, 5:] = one(cells[:, 5:])
            if kind == "region":
                shares = np.exp(cells[:, 5:] - cells[:, 5:].max(1, keepdims=True))
                cells[:, 5:] = shares / shares.sum(1, keepdims=True)
            scale = float(e.get("scale_x_y", 1))
            cells[:, :2] = cells[:, :2] * scale - 0.5 * (scale - 1)
            value = cells.reshape(value.shape)
            boxes.append(value)
        results.append(value)
    return b"".join(written), boxes if boxes and value is boxes[-1] else [*boxes, value]
