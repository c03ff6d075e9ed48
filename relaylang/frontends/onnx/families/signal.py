"""Signals: Fourier transforms as products with constant matrices, windows, mel weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _fourier(b: Builder, x: Expr, length: int, inverse: bool, onesided: bool) -> Expr:
    """The transform of the last but one axis of (..., n, 1 or 2), cut or filled with zeros to `length`: (..., bins, 2).

    The real and the imaginary parts are the two rows of one product with a matrix of cosines and sines.
    """
    have, parts = b.extent(x, -2, "the signal"), b.extent(x, -1)
    if have > length:
        x = b.slice(x, [0], [length], [b.rank(x) - 2])
    used = min(have, length)
    bins = length // 2 + 1 if onesided and not inverse else length
    turn = 2 * np.pi * b.arrays.outer(b.arrays.arange(used), b.arrays.arange(bins)) / length
    scale = 1 / length if inverse else 1.0
    cos, sin = np.cos(turn) * scale, np.sin(turn) * (scale if inverse else -scale)
    if parts == 1 and inverse and onesided:
        raise Unsupported("the inverse of a real transform needs its imaginary part")
    # Row i, part p of the signal to bin j, part q of the result.
    matrix = b.arrays.zeros((used, parts, bins, 2))
    matrix[:, 0, :, 0], matrix[:, 0, :, 1] = cos, sin
    if parts == 2:
        matrix[:, 1, :, 0], matrix[:, 1, :, 1] = -sin, cos
    front = list(b.shape(x)[:-2])
    flat = b.reshape(x, [*[0] * len(front), used * parts])
    weights = b.const(matrix.reshape(used * parts, bins * 2).astype(np.dtype(b.dtype(x))))
    return b.reshape(matmul(b, flat, weights), [*[0] * len(front), bins, 2])


def _real_inverse(b: Builder, x: Expr, length: int) -> Expr:
    """The real signal of a one-sided spectrum."""
    bins = b.extent(x, -2)
    turn = 2 * np.pi * b.arrays.outer(b.arrays.arange(bins), b.arrays.arange(length)) / length
    weight = b.arrays.full((bins, 1), 2.0)
    weight[0] = 1.0
    if length % 2 == 0 and bins == length // 2 + 1:
        weight[-1] = 1.0
    matrix = np.stack([np.cos(turn) * weight, -np.sin(turn) * weight], 1) / length
    front = len(b.shape(x)) - 2
    flat = b.reshape(x, [*[0] * front, bins * 2])
    signal = matmul(b, flat, b.const(matrix.reshape(bins * 2, length).astype(np.dtype(b.dtype(x)))))
    return b.reshape(signal, [*[0] * front, length, 1])


def dft(n: Node, x: Expr, length: Expr | None = None, axis: Expr | None = None) -> Any:
    b, rank = n.b, n.b.rank(x)
    at = b.need_ints(axis, "the axis")[0] if axis is not None else n.int("axis", 1 if n.version < 20 else -2)
    at %= rank
    inverse, onesided = bool(n.int("inverse", 0)), bool(n.int("onesided", 0))
    order = [a for a in range(rank - 1) if a != at]
    moved = b.transpose(x, [*order, at, rank - 1])
    size = b.extent(moved, -2, "the signal")
    count = b.need_ints(length, "the length")[0] if length is not None else None
    if inverse and onesided:
        transformed = _real_inverse(b, moved, count if count is not None else (size - 1) * 2)
    else:
        transformed = _fourier(b, moved, count if count is not None else size, inverse, onesided)
    back = [*order, at, rank - 1]
    return b.transpose(transformed, [back.index(a) for a in range(rank)])


def stft(n: Node, signal: Expr, step: Expr, window: Expr | None = None, length: Expr | None = None) -> Any:
    """Frames are taken, weighted by the window and transformed: (batch, frames, bins, 2)."""
    b = n.b
    hop = b.need_ints(step, "the step of frames")[0]
    if length is not None:
        size = b.need_ints(length, "the length of frames")[0]
    elif window is not None:
        size = b.extent(window, 0, "the window")
    else:
        raise Unsupported("it has neither a window nor a length of frames")
    if hop < 1 or size < 1:
        raise Malformed(f"its frames have {size} elements and lie {hop} apart")
    if b.rank(signal) == 2:
        signal = b.unsqueeze(signal, [2])
    frames = (b.extent(signal, 1, "the signal") - size) // hop + 1
    b.arrays.reserve((frames, size))
    index = b.arrays.arange(frames)[:, None] * hop + b.arrays.arange(size)[None, :]
    cut = b.op("take", signal, b.const(index), axis=1)  # (batch, frames, size, parts)
    if window is not None:
        cut = b.op("multiply", cut, b.reshape(window, [1, 1, size, 1]))
    return _fourier(b, cut, size, False, bool(n.int("onesided", 1)))


def _window(*terms: float) -> Any:
    """A sum of cosines; `periodic` windows are one element longer than their text."""

    def convert(n: Node, size: Expr) -> Any:
        count = n.b.need_ints(size, "the length of the window")[0]
        period = count if n.int("periodic", 1) else count - 1
        x = 2 * math.pi * n.b.arrays.arange(count) / max(period, 1)
        samples = sum(t * np.cos(i * x) for i, t in enumerate(terms))
        return n.b.const(np.asarray(samples).astype(np.dtype(n.dtype("output_datatype", "float32"))))

    return convert


def mel_weight_matrix(n: Node, bins: Expr, length: Expr, rate: Expr, low: Expr, high: Expr) -> Any:
    """Triangles on the mel scale: shape (length / 2 + 1, bins). Source: the operator's text in ONNX."""
    b = n.b
    count, size, hertz = (b.need_ints(x, "the size")[0] for x in (bins, length, rate))
    lowest, highest = (float(b.need(x, "the frequency").reshape(-1)[0]) for x in (low, high))
    spectrum = size // 2 + 1
    mel = b.arrays.arange(count + 2, dtype=np.float64)
    edges = [2595 * math.log10(1 + f / 700) for f in (lowest, highest)]
    mel = mel * ((edges[1] - edges[0]) / (len(mel) - 1 + 1)) + edges[0]
    places = (700 * (10 ** (mel / 2595) - 1) * (size + 1) // hertz).astype(np.int64)
    matrix = b.arrays.zeros((spectrum, count))
    b.budget.take_nodes(count, "computing its triangles")
    for i in range(count):
        left, middle, right = places[i], places[i + 1], places[i + 2]
        if middle == left:
            matrix[middle, i] = 1
        else:
            matrix[left : middle + 1, i] = (b.arrays.arange(left, middle + 1) - left) / (middle - left)
        if right > middle:
            matrix[middle:right, i] = (right - b.arrays.arange(middle, right)) / (right - middle)
    return b.const(matrix.astype(np.dtype(n.dtype("output_datatype", "float32"))))


RULES = (
    Rule("BlackmanWindow", _window(0.42, -0.5, 0.08)),
    Rule("DFT", dft, since=17),
    Rule("HammingWindow", _window(25 / 46, -21 / 46)),
    Rule("HannWindow", _window(0.5, -0.5)),
    Rule("MelWeightMatrix", mel_weight_matrix),
    Rule("STFT", stft, since=17),
)
