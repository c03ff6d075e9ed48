"""Float networks in whole numbers: the operators that they compute, their values, and networks that cannot be quantised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, IRModule, TensorType, post_order
from relaylang.ir.binding import bind_params_by_name
from relaylang.ops.record import Op
from relaylang.quantize import QAnnotateKind, annotate, collect_stats, current_qconfig, partition, qconfig, quantize
from tests.shared import few

RNG = np.random.default_rng(7)
X = RNG.normal(size=(1, 4, 16, 16)).astype("float32")
W = RNG.normal(size=(4, 4, 3, 3), scale=0.1).astype("float32")
CONV = "padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]"
HALF = "pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]"
#: One operator of every rule.
NETWORK = f"""
  %0 = nn.relu(nn.conv2d(%x, %w, {CONV}));
  %1 = add(%0, nn.conv2d(%0, %w, {CONV}));
  %2 = nn.avg_pool2d(nn.conv2d(nn.max_pool2d(%1, {HALF}), %w, {CONV}), {HALF});
  %3 = clip(concatenate((%2, nn.conv2d(%2, %w, {CONV})), axis=1), a_min=-2f, a_max=2f);
  nn.batch_flatten(nn.global_avg_pool2d(%3))"""
DATA = [{"x": X, "of another name": X}, {"x": X[:, ::-1]}]


def network(body: str) -> IRModule:
    head = "def @main(%x: Tensor[(1, 4, 16, 16), float32], %w: Tensor[(4, 4, 3, 3), float32])"
    return relay.transform.InferType()(relay.parse(f"{head} {{ {body} }}"))


def calls(mod: IRModule, *names: str) -> Iterator[Call]:
    for node in post_order(mod["main"]):
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in names:
            yield node


def dtypes(mod: IRModule, *names: str) -> list[str]:
    return [c.checked_type.dtype for c in calls(mod, *names) if isinstance(c.checked_type, TensorType)]


@pytest.mark.parametrize("mode", few(["kl_divergence", "percentile"], "percentile"))
@pytest.mark.parametrize("weights", ["power2", "max"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_a_quantised_network_is_near_the_float_one(mode: str, weights: str, rounding: str) -> None:
    mod = network(NETWORK)
    with qconfig(calibrate_mode=mode, weight_scale=weights, rounding=rounding, skip_conv_layers=None):
        made = relay.transform.InferType()(quantize(mod, {"w": W}, DATA))
    assert dtypes(made, "nn.conv2d") == ["int32"] * 4 and dtypes(made, "nn.max_pool2d") == ["int8"]
    plain, whole = relay.evaluate(mod, X, W), relay.evaluate(made, X)
    assert np.abs(plain - whole).max() < 0.06 * np.abs(plain).max()


def test_scales_that_are_powers_of_two_are_shifts() -> None:
    with qconfig(global_scale=4.0, skip_conv_layers=None):
        made = quantize(network(NETWORK), {"w": W})
    assert not list(calls(made, "fixed_point_multiply")) and len(list(calls(made, "right_shift"))) == 4
    shifts = [c.args[1].data.item() for c in calls(made, "right_shift", "left_shift") if isinstance(c.args[1], Constant)]
    assert min(shifts) > 0
    with qconfig(global_scale=4.0, skip_conv_layers=None, round_for_shift=False):
        assert len(list(calls(quantize(network(NETWORK), {"w": W}), "add"))) == 1


def test_layers_that_stay_in_floats() -> None:
    def whole(**config: Any) -> list[str]:
        with qconfig(**config):
            return dtypes(relay.transform.InferType()(quantize(network(NETWORK), {"w": W})), "nn.conv2d")

    assert whole() == ["float32", "int32", "int32", "int32"]  # the first one, if nothing is said
    assert whole(skip_conv_layers=[0, 2]) == ["float32", "int32", "float32", "int32"]
    assert whole(skip_conv_layers=None, debug_enabled_ops=["nn.relu"]) == ["float32"] * 4
    assert current_qconfig().skip_conv_layers is None
    dense = "nn.dense(nn.batch_flatten(%x), nn.batch_flatten(%x), units=1)"
    with qconfig(skip_dense_layer=True, skip_conv_layers=None):
        assert dtypes(relay.transform.InferType()(quantize(network(dense))), "nn.dense") == ["float32"]


def test_products_of_two_computed_values() -> None:
    body = f"%0 = nn.conv2d(%x, %w, {CONV}); multiply(nn.relu(%0), sigmoid(%x))"
    with qconfig(skip_conv_layers=None, calibrate_mode="percentile"):
        made = relay.transform.InferType()(quantize(network(body), {"w": W}, DATA))
    assert "int32" in dtypes(made, "multiply")
    plain = relay.evaluate(network(body), X, W)
    assert np.abs(plain - relay.evaluate(made, X)).max() < 0.03 * np.abs(plain).max()


def test_simulation_rounds_in_floats() -> None:
    with qconfig(do_simulation=True, skip_conv_layers=None, calibrate_mode="percentile"):
        made = relay.transform.InferType()(quantize(network(NETWORK), {"w": W}, DATA))
    assert set(dtypes(made, "nn.conv2d")) == {"float32"} and list(calls(made, "relay.op.annotation.simulated_quantize"))


def test_statistics_are_the_float_networks_values_in_chunks() -> None:
    mod = network(f"nn.conv2d(nn.relu(nn.conv2d(%x, %w, {CONV})), %w, {CONV})")
    mod = IRModule({mod.get_global_var("main"): bind_params_by_name(mod["main"], {"w": W})})
    with qconfig(skip_conv_layers=None):
        cut = relay.transform.InferType()(annotate()(relay.transform.InferType()(partition()(relay.transform.InferType()(mod)))))
    kinds = [QAnnotateKind(c.attrs.kind).name for c in calls(cut, "relay.op.annotation.simulated_quantize")]
    assert kinds == ["INPUT", "WEIGHT", "INPUT", "INPUT"]  # both convolutions share the weight; the last one is the cut's
    whole = list(collect_stats(cut, DATA))
    assert len(whole) == 1 and len(whole[0]) == 3
    np.testing.assert_array_equal(whole[0][0], np.concatenate([X.reshape(-1), X[:, ::-1].reshape(-1)]))
    chunks = list(collect_stats(cut, DATA, 2))
    assert [len(c) for c in chunks] == [2, 1]
    np.testing.assert_array_equal(chunks[1][0], whole[0][2])
    assert whole[0][1].min() == 0


def test_conversions_are_functions_of_their_own() -> None:
    mod = network(f"nn.max_pool2d(nn.conv2d(%x, %w, {CONV}), {HALF})")
    with qconfig(skip_conv_layers=None, calibrate_mode="percentile", partition_conversions="fully_integral"):
        made = quantize(mod, {"w": W}, DATA)
    with qconfig(skip_conv_layers=None, calibrate_mode="percentile"):
        whole = quantize(mod, {"w": W}, DATA)
    assert [g.name_hint for g in made.functions] == ["quantize_inputs", "quantized_main", "dequantize_outputs", "main"]
    ty = relay.transform.InferType()(made)["quantized_main"].checked_type
    assert [a.dtype for a in ty.arg_types] == ["int8"] and ty.ret_type.dtype == "int8"
    np.testing.assert_array_equal(relay.evaluate(made, X), relay.evaluate(whole, X))


def test_a_part_in_floats_is_allowed_or_refused() -> None:
    mod = network(f"nn.softmax(nn.conv2d(add(%x, sigmoid(%x)), %w, {CONV}))")
    with qconfig(skip_conv_layers=None, partition_conversions="enabled"):
        made = quantize(mod, {"w": W})
    with qconfig(skip_conv_layers=None):
        np.testing.assert_array_equal(relay.evaluate(made, X), relay.evaluate(quantize(mod, {"w": W}), X))
    whole = qconfig(skip_conv_layers=None, partition_conversions="fully_integral")
    with whole, pytest.raises(RelayError, match="not in whole numbers"):
        quantize(mod, {"w": W})


@pytest.mark.parametrize(
    "config, params, says",
    [
        ({}, {}, "the weight of a quantised operator is not known"),
        ({"calibrate_mode": "guess"}, {"w": W}, "there is no way to calibrate guess"),
        ({"calibrate_mode": "percentile"}, {"w": W}, "needs a data set"),
        ({"weight_scale": "least"}, {"w": W}, "there is no weight scale least"),
        ({"partition_conversions": "some"}, {"w": W}, "partition_conversions is one of"),
    ],
)
def test_wrong_configurations(config: dict[str, Any], params: dict[str, Any], says: str) -> None:
    with qconfig(skip_conv_layers=None, **config), pytest.raises(RelayError, match=says) as caught:
        quantize(network(NETWORK), params)
    assert caught.value.diagnostics[0].code == "R0530"


def test_realising_wants_scales() -> None:
    with qconfig(skip_conv_layers=None), pytest.raises(RelayError, match="the scale of a rounded value is not known"):
        relay.transform.QuantizeRealize()(relay.transform.InferType()(annotate()(network(NETWORK))))
