"""Weights before and behind calibration: equalised channels, and rounding by the results of a layer."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import Constant, IRModule, post_order
from relaylang.quantize import StaticConfig, StaticQuantization
from relaylang.quantize.equalize import equalize
from relaylang.quantize.observe import compiled
from relaylang.quantize.prepare import prepare
from relaylang.quantize.rounding import adapt_rounding
from relaylang.rules.quantization.measures import gram, weight_of_rows, weight_rows
from tests.quantize.test_static import data, decibels, network, run

CHAINS = {
    "nchw": """
def @main(%x: Tensor[(1, 4, 9, 9), float32], %w1: Tensor[(8, 4, 3, 3), float32], %b: Tensor[(8), float32],
          %w2: Tensor[(8, 1, 3, 3), float32], %w3: Tensor[(6, 8, 1, 1), float32], %w4: Tensor[(5, 6), float32]) {
  %0 = nn.relu(nn.bias_add(nn.conv2d(%x, %w1, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]), %b));
  %1 = nn.leaky_relu(nn.conv2d(%0, %w2, groups=8, channels=8, kernel_size=[3, 3]), alpha=0.1f);
  %2 = nn.conv2d(nn.max_pool2d(%1, pool_size=[2, 2], strides=[2, 2]), %w3, channels=6, kernel_size=[1, 1]);
  nn.dense(nn.batch_flatten(nn.global_avg_pool2d(nn.relu(%2))), %w4, units=5)
}""",
    "nhwc": """
def @main(%x: Tensor[(1, 9, 9, 4), float32], %w1: Tensor[(3, 3, 4, 8), float32], %b: Tensor[(8), float32],
          %w2: Tensor[(3, 3, 8, 1), float32], %w3: Tensor[(1, 1, 8, 6), float32], %w4: Tensor[(5, 6), float32]) {
  %0 = nn.conv2d(%x, %w1, padding=[1], channels=8, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
  %1 = nn.relu(nn.bias_add(%0, %b, axis=3));
  %2 = nn.conv2d(%1, %w2, groups=8, channels=8, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI");
  %3 = nn.conv2d(nn.relu(%2), %w3, channels=6, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
  nn.dense(mean(nn.relu(%3), axis=[1, 2]), %w4, units=5)
}""",
}


def chain(layout: str) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A network whose first weight has channels with ranges from 1 to 300, and whose second one takes these factors back."""
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"]' + CHAINS[layout]))
    rng = np.random.default_rng(4)
    factors = np.exp(rng.uniform(0, 6, 8))
    params = {}
    for p in mod["main"].params[1:]:
        value = rng.normal(size=tuple(map(int, p.checked_type.shape)))
        if p.name_hint == "w1":
            value = value * (factors[:, None, None, None] if layout == "nchw" else factors)
        if p.name_hint == "b":
            value = value * factors
        if p.name_hint == "w2":
            value = value / (factors[:, None, None, None] if layout == "nchw" else factors[:, None])
        params[p.name_hint] = value.astype("float32")
    return mod, params


def inputs(mod: IRModule, count: int, seed: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    (x,) = (p for p in mod["main"].params if p.name_hint == "x")
    return [{"x": rng.normal(size=tuple(map(int, x.checked_type.shape))).astype("float32")} for _ in range(count)]


@pytest.mark.parametrize("layout", CHAINS)
def test_equalised_weights_compute_the_same_at_other_ranges(layout: str) -> None:
    mod, params = chain(layout)
    plain = prepare(mod, params)
    made, count = equalize(plain)
    assert count == 3
    (x,) = inputs(mod, 1, 1)
    np.testing.assert_allclose(run(made, x), run(plain, x), rtol=1e-4, atol=1e-3)

    def spread(of: IRModule) -> float:
        weights = [c.data for c in post_order(of["main"]) if isinstance(c, Constant) and c.data.ndim == 4 and c.data.size == 288]
        rows = np.abs(weights[0].reshape(8, -1) if layout == "nchw" else weights[0].reshape(-1, 8).T).max(1)
        return float(rows.max() / rows.min())

    assert spread(plain) > 50 and spread(made) < 25


@pytest.mark.parametrize("layout", CHAINS)
def test_equalised_weights_lose_less_with_one_scale(layout: str) -> None:
    mod, params = chain(layout)
    batches, tests = inputs(mod, 8, 2), inputs(mod, 8, 3)

    def error(**options: bool) -> float:
        made = StaticQuantization(mod, params, StaticConfig(per_channel=False, **options))
        made.calibrate(batches)
        return decibels(*(np.concatenate([run(m, x) for x in tests]) for m in (made.prepared, made.module)))

    assert error(equalize=True) > error() + 6


def test_other_functions_end_a_chain() -> None:
    text = (
        CHAINS["nchw"]
        .replace("%0 = nn.relu(", "%0 = sigmoid(")
        .replace("nn.leaky_relu(", "clip(")
        .replace("alpha=0.1f", "a_min=0f, a_max=6f")
    )
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"]' + text))
    plain = prepare(mod, chain("nchw")[1])
    made, count = equalize(plain)
    assert count == 1 and np.array_equal(run(made, inputs(mod, 1, 1)[0]).shape, (1, 5))


@pytest.mark.parametrize("layout", CHAINS)
def test_the_quadratic_form_is_the_error_of_the_results(layout: str) -> None:
    mod, params = chain(layout)
    made = StaticQuantization(mod, params)
    rng = np.random.default_rng(0)
    for layer in made.plan.layers:
        if layer.weight is None:
            continue
        data, weight = layer.operands[0], layer.weight.data
        (form,) = compiled(made.prepared, made.prepared["main"].params, [gram(layer.head, data)]).run(**inputs(mod, 1, 5)[0])
        errors = rng.normal(size=weight.shape).astype("float32")
        rows = weight_rows(layer.head, errors).astype("float64")
        np.testing.assert_array_equal(weight_of_rows(layer.head, rows, weight.shape), errors)
        changed = layer.head
        result = compiled(
            made.prepared,
            made.prepared["main"].params,
            [relay.ir.Call(changed.op, [data, relay.ir.typed.typed_constant(errors)], changed.attrs)],
        ).run(**inputs(mod, 1, 5)[0])[0]
        wanted = float((np.asarray(result, "float64") ** 2).sum())
        found = float(np.einsum("gok,gkl,gol->", rows, np.asarray(form, "float64"), rows))
        assert found == pytest.approx(wanted, rel=1e-4)


def test_adapted_rounding_lessens_the_error() -> None:
    mod, params = network()

    def made(adapted: bool) -> StaticQuantization:
        found = StaticQuantization(mod, params, StaticConfig(per_channel=False))
        found.calibrate(data(16))
        if adapted:
            assert adapt_rounding(found, data(16)) >= 3
        return found

    tests = data(16, 9)

    def error(of: StaticQuantization) -> float:
        return decibels(*(np.concatenate([run(m, x) for x in tests]) for m in (of.prepared, of.module)))

    assert error(made(True)) > error(made(False)) + 0.5
