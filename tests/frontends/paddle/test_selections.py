"""Runs, histograms, linear algebra and pools of regions by PaddlePaddle's rules, which numpy computes here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.options import Options
from relaylang.frontends.paddle import import_paddle
from tests.frontends.paddle.files import integer, integers, operation, pdiparams, pdmodel, real, text, truth, variable
from tests.frontends.paddle.test_networks import results, same

rng = np.random.default_rng(11)


def attribute(name: str, value: Any) -> bytes:
    if isinstance(value, bool):
        return truth(name, value)
    if isinstance(value, str):
        return text(name, value)
    if isinstance(value, (list, tuple)):
        return integers(name, value)
    return real(name, value) if isinstance(value, float) else integer(name, value)


def computed(kind: str, operands: dict[str, np.ndarray], outputs: Sequence[str], **attributes: Any) -> list[np.ndarray]:
    """The results of one old operation."""
    variables = [variable(f"in_{k}", v.shape, v.dtype.name) for k, v in operands.items()]
    variables += [variable(f"out_{k}", ()) for k in outputs]
    inputs, results_of = {k: [f"in_{k}"] for k in operands}, {k: [f"out_{k}"] for k in outputs}
    layer = operation(kind, inputs, results_of, [attribute(k, v) for k, v in attributes.items()])
    data = pdmodel(variables, [layer], [f"in_{k}" for k in operands], [f"out_{k}" for k in outputs])
    mod = import_paddle(data, Options(), "net.pdmodel", pdiparams({})).module
    assert relay.infer(mod, fresh=True) == []
    return results(mod, *operands.values())


def real_numbers(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("axis, keep", [(-1, False), (0, True), (1, False)])
def test_mode(dtype: str, axis: int, keep: bool) -> None:
    x = rng.integers(0, 4, (5, 7, 9)).astype(dtype)
    values, places = computed("mode", {"X": x}, ["Out", "Indices"], axis=axis, keepdim=keep)

    def most(row: np.ndarray) -> tuple[Any, int]:
        numbers, counts = np.unique(row, return_counts=True)
        value = numbers[counts.argmax()]
        return value, np.flatnonzero(row == value)[-1]

    wanted = [np.apply_along_axis(lambda row, i=i: most(row)[i], axis, x) for i in (0, 1)]
    wanted = [np.expand_dims(w, axis) if keep else w for w in wanted]
    np.testing.assert_array_equal(values, wanted[0])
    np.testing.assert_array_equal(places, wanted[1])


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_consecutive(axis: int | None) -> None:
    x = np.array([[1, 1, 2], [1, 1, 2], [3, 3, 3], [1, 1, 2]], "int64")
    axes = [] if axis is None else [axis]
    values, places, counts = computed("unique_consecutive", {"X": x}, ["Out", "Index", "Counts"], axis=axes, dtype=3)
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    kept = [i for i in range(len(rows)) if not i or (rows[i] != rows[i - 1]).any()]
    wanted = rows[kept] if axis is None else np.moveaxis(rows[kept], 0, axis)
    np.testing.assert_array_equal(values, wanted)
    runs = np.searchsorted(kept, np.arange(len(rows)), "right") - 1
    np.testing.assert_array_equal(places, runs)
    np.testing.assert_array_equal(counts, np.diff([*kept, len(rows)]))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("bins, least, most", [(5, 0, 0), (4, -2, 2), (7, 1, 3), (1, 0, 0)])
def test_histogram(dtype: str, bins: int, least: int, most: int) -> None:
    x = (3 * real_numbers(6, 7)).astype(dtype)
    (counts,) = computed("histogram", {"X": x}, ["Out"], bins=bins, min=least, max=most)
    edges = (float(x.min()), float(x.max())) if least == most else (least, most)
    np.testing.assert_array_equal(counts, np.histogram(x, bins, edges)[0])
    (alike,) = computed("histogram", {"X": np.full((4,), 2, dtype)}, ["Out"], bins=2, min=0, max=0)
    np.testing.assert_array_equal(alike, [0, 4])


def test_linear_algebra() -> None:
    a = real_numbers(2, 5, 5) + 3 * np.eye(5, dtype="float32")
    y, positive = real_numbers(2, 5, 2), a @ a.transpose(0, 2, 1)
    lower = np.linalg.cholesky(positive)
    same(computed("inverse", {"Input": a}, ["Output"])[0], np.linalg.inv(a))
    same(computed("determinant", {"Input": a}, ["Out"])[0], np.linalg.det(a))
    same(computed("slogdeterminant", {"Input": a}, ["Out"])[0], np.stack(np.linalg.slogdet(a)))
    same(computed("solve", {"X": a, "Y": y}, ["Out"])[0], np.linalg.solve(a, y))
    same(computed("solve", {"X": a[0], "Y": y[0, :, 0]}, ["Out"])[0], np.linalg.solve(a[0], y[0, :, 0]))
    same(computed("cholesky", {"X": positive}, ["Out"], upper=True)[0], lower.transpose(0, 2, 1))
    same(computed("cholesky_solve", {"X": y, "Y": lower}, ["Out"], upper=False)[0], np.linalg.solve(positive, y), 1e-4)
    turned = computed("triangular_solve", {"X": a, "Y": y}, ["Out"], upper=True, transpose=True, unitriangular=False)[0]
    same(turned, np.linalg.solve(np.triu(a).transpose(0, 2, 1), y), 1e-4)
    q, r = computed("qr", {"X": a}, ["Q", "R"], mode="reduced")
    same(q, np.linalg.qr(a)[0])
    same(r, np.linalg.qr(a)[1])
    factors, pivots, info = computed("lu", {"X": a}, ["Out", "Pivots", "Infos"], pivots=True)
    rows = a.copy()
    for picture, steps in enumerate(pivots):
        for k, p in enumerate(steps):
            rows[picture, [k, p - 1]] = rows[picture, [p - 1, k]]
    same(np.tril(factors, -1) @ np.triu(factors) + np.triu(factors), rows)
    assert info.tolist() == [0, 0]


def test_psroi_pool() -> None:
    x = real_numbers(2, 12, 9, 8)
    boxes = np.array([[0, 0, 10, 12], [3.4, 2.6, 9.7, 15.2], [5, 5, 5, 5], [-3, -2, 40, 50]], "float32")
    counts, scale = np.array([1, 3], "int32"), 0.5
    operands = {"X": x, "ROIs": boxes, "RoisNum": counts}
    sizes = {"pooled_height": 2, "pooled_width": 3, "output_channels": 2, "spatial_scale": scale}
    (pooled,) = computed("psroi_pool", operands, ["Out"], **sizes)
    wanted = np.zeros((4, 2, 2, 3), "float32")
    for i, box in enumerate(boxes):
        picture = x[0 if i < 1 else 1]
        starts, ends = np.round(box[[1, 0]]) * scale, (np.round(box[[3, 2]]) + 1) * scale
        size = np.maximum(ends - starts, 0.1) / (2, 3)
        for c, h, w in np.ndindex(2, 2, 3):
            at = np.array((h, w))
            low = np.clip(np.floor(at * size + starts), 0, (9, 8)).astype(int)
            high = np.clip(np.ceil((at + 1) * size + starts), 0, (9, 8)).astype(int)
            part = picture[(c * 2 + h) * 3 + w, low[0] : high[0], low[1] : high[1]]
            wanted[i, c, h, w] = part.mean() if part.size else 0
    same(pooled, wanted)


@pytest.mark.parametrize(
    "kind, operands, outputs, attributes, said",
    [
        ("histogram", {"X": (4,)}, ["Out"], {"bins": 0}, "it has 0 bins"),
        ("histogram", {"X": (4,)}, ["Out"], {"bins": 4, "min": 3, "max": 1}, "from 3.0 to 1.0"),
        ("histogram", {"X": (4,)}, ["Out"], {"bins": (1 << 31) - 1}, "R0016"),
        ("mode", {"X": (4, 0)}, ["Out", "Indices"], {"axis": 1}, "the mode of no elements"),
        ("unique_consecutive", {"X": (4, 2)}, ["Out", "Index", "Counts"], {"axis": [0, 1]}, "it takes one"),
        ("inverse", {"Input": (4, 3)}, ["Output"], {}, "they must be square"),
        ("inverse", {"Input": (4,)}, ["Output"], {}, "matrices need 2"),
        ("qr", {"X": (4, 3)}, ["Q", "R"], {"mode": "best"}, "it must be reduced"),
        ("solve", {"X": (4, 4), "Y": (3, 2)}, ["Out"], {}, "the right side 3 rows"),
        ("psroi_pool", {"X": (1, 7, 4, 4), "ROIs": (1, 4)}, ["Out"], {"pooled_height": 2, "pooled_width": 2}, "do not divide"),
    ],
)
def test_wrong_attributes(kind: str, operands: dict[str, Any], outputs: list[str], attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(relay.RelayError, match=said):
        computed(kind, {k: np.zeros(v, "float32") for k, v in operands.items()}, outputs, **attributes)
