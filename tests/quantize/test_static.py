"""Static quantisation: integers for the layers, scales from data, and errors before the network runs."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.cpu import compile_for
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, IRModule, post_order
from relaylang.quantize import StaticConfig, StaticQuantization, quantize_static
from relaylang.quantize.dataset import checked
from relaylang.quantize.observe import BINS, COUNTED, EVERY, Seen, observe
from relaylang.quantize.prepare import prepare
from relaylang.quantize.ranges import CALIBRATORS, WEIGHTS, Grid
from relaylang.rules.quantization.measures import SAMPLES

SOURCE = """
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w1: Tensor[(8, 3, 3, 3), float32], %b1: Tensor[(8), float32],
          %g: Tensor[(8), float32], %m: Tensor[(8), float32], %v: Tensor[(8), float32],
          %w2: Tensor[(8, 1, 3, 3), float32], %w3: Tensor[(8, 8, 1, 1), float32], %w4: Tensor[(5, 8), float32],
          %b4: Tensor[(5), float32]) {
  %0 = nn.conv2d(%x, %w1, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, %b1);
  %2 = nn.batch_norm(%1, %g, %b1, %m, %v);
  %3 = clip(%2.0, a_min=0f, a_max=6f);
  %4 = nn.conv2d(%3, %w2, padding=[1, 1, 1, 1], groups=8, channels=8, kernel_size=[3, 3]);
  %5 = nn.max_pool2d(nn.relu(%4), pool_size=[2, 2], strides=[2, 2]);
  %6 = nn.conv2d(%5, %w3, channels=8, kernel_size=[1, 1]);
  %7 = nn.relu(add(%6, %5));
  %8 = concatenate((%7, sigmoid(%6)), axis=1);
  %9 = nn.batch_flatten(nn.global_avg_pool2d(split(%8, indices_or_sections=2, axis=1).0));
  nn.bias_add(nn.dense(%9, %w4, units=5), %b4)
}
"""


def network() -> tuple[IRModule, dict[str, np.ndarray]]:
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"]' + SOURCE))
    rng = np.random.default_rng(3)
    params = {}
    for p in mod["main"].params[1:]:
        shape = tuple(map(int, p.checked_type.shape))
        value = rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1) / 2)
        params[p.name_hint] = (np.abs(value) + 0.5 if p.name_hint in "gv" else value).astype("float32")
    return mod, params


def data(count: int = 6, seed: int = 5) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [{"x": rng.normal(size=(1, 3, 8, 8)).astype("float32")} for _ in range(count)]


def run(mod: IRModule, inputs: dict[str, np.ndarray], params: dict[str, np.ndarray] | None = None) -> np.ndarray:
    return np.asarray(compile_for(mod, Target("c"), [], params or {}, "main").run(**inputs))


def decibels(wanted: np.ndarray, found: np.ndarray) -> float:
    return float(10 * np.log10((wanted**2).sum() / ((wanted - found) ** 2).sum()))


def names(mod: IRModule) -> set[str]:
    return {n.op.name for n in post_order(mod["main"]) if isinstance(n, Call)}


@pytest.mark.parametrize("target", ["c", "cmsis-nn", "ethos-u"])
def test_every_layer_has_an_integer_form(target: str) -> None:
    mod, params = network()
    made = quantize_static(mod, params, data(), target=target)
    assert not {n for n in names(made) if n.startswith("nn.")} & {"nn.conv2d", "nn.dense", "nn.batch_norm", "nn.relu"}
    assert {"qnn.conv2d", "qnn.dense", "qnn.concatenate", "qnn.sigmoid"} <= names(made)
    assert ("qnn.add" in names(made)) == (target == "cmsis-nn")
    for node in post_order(made["main"]):
        if isinstance(node, Call) and node.op.name == "qnn.conv2d":
            assert node.args[1].checked_type.dtype == "int8" and node.args[5].data.shape == (8,)
    x = data(1, 7)[0]
    assert decibels(run(mod, x, params), run(made, x)) > 27


def test_activations_of_16_bits_are_nearer() -> None:
    mod, params = network()
    x = data(1, 7)[0]
    wanted = run(mod, x, params)
    made = quantize_static(mod, params, data(), dtype="int16")
    assert {"qnn.conv2d", "qnn.dense"} <= names(made) and not {"nn.conv2d", "nn.dense"} & names(made)
    assert decibels(wanted, run(made, x)) > 3 + decibels(wanted, run(quantize_static(mod, params, data()), x))


@pytest.mark.parametrize("target", ["c", "ethos-u"])
def test_integers_lose_no_more_than_floats_with_conversions(target: str) -> None:
    mod, params = network()
    made = StaticQuantization(mod, params, StaticConfig(target=target))
    made.calibrate(data())
    tests = data(12, 8)
    wanted, simulated, found = (np.concatenate([run(m, x) for x in tests]) for m in (made.prepared, made.simulated, made.module))
    assert decibels(wanted, found) > decibels(wanted, simulated) - 0.3


def test_wide_sums_that_go_on_in_floats() -> None:
    """A layer of so many products of 16 bits that int32 cannot sum them, whose result stays real."""
    text = "def @main(%x: Tensor[(2, 300), float32], %w: Tensor[(5, 300), float32], %b: Tensor[(5), float32]) { %body }"
    for body in ("nn.dense(%x, %w, units=5)", "nn.softmax(nn.bias_add(nn.dense(%x, %w, units=5), %b))"):
        mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"]' + text.replace("%body", body)))
        rng = np.random.default_rng(1)
        params = {"w": rng.normal(size=(5, 300)).astype("float32"), "b": rng.normal(size=5).astype("float32")}
        batches = [{"x": rng.normal(size=(2, 300)).astype("float32")} for _ in range(4)]
        made = quantize_static(mod, params, batches, dtype="int16")
        assert "qnn.dense" in names(made) and "nn.dense" not in names(made)
        assert decibels(run(mod, batches[0], params), run(made, batches[0])) > 40


def test_the_interpreter_gives_the_same_integers() -> None:
    mod, params = network()
    made = quantize_static(mod, params, data(), target="ethos-u")
    x = data(1, 7)[0]
    assert np.array_equal(np.asarray(relay.create_executor("debug", made).evaluate()(x["x"])), run(made, x))


def test_one_bias_stands_behind_each_product() -> None:
    mod, params = network()
    quantization = StaticQuantization(mod, params)
    first = quantization.plan.layers[0]
    assert first.bias is not None and [c.op.name for c in first.limits] == ["clip"]
    assert isinstance(first.bias.args[1], Constant)


def test_a_kept_layer_stays_in_floats() -> None:
    mod, params = network()
    made = quantize_static(mod, params, data(), keep_float=["conv2d_1"])
    assert {"nn.conv2d", "qnn.conv2d"} <= names(made)


def test_symmetric_and_powers_of_two() -> None:
    mod, params = network()
    quantization = StaticQuantization(mod, params, StaticConfig(symmetric=True, power2=True))
    quantization.calibrate(data())
    for scale in quantization.numbers.scales.values():
        assert scale.zero == 0 and np.log2(scale.scale) % 1 == 0
    x = data(1, 7)[0]
    assert decibels(run(mod, x, params), run(quantization.module, x)) > 18


@pytest.mark.parametrize("weights", list(WEIGHTS))
@pytest.mark.parametrize("calibrator", list(CALIBRATORS))
def test_calibrators(calibrator: str, weights: str) -> None:
    mod, params = network()
    made = quantize_static(mod, params, data(), calibrator=calibrator, weights=weights, share=0.9999)
    x = data(1, 7)[0]
    assert decibels(run(mod, x, params), run(made, x)) > 15


# ---- observers


def test_a_histogram_grows_with_the_range() -> None:
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(64), float32]) { %x }'))
    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=64) * size + 1).astype("float32") for size in (1, 5, 0.1, 40, 300)]
    (seen,) = observe(mod, [mod["main"].params[0]], [{"x": b} for b in batches], histograms=True)
    values = np.concatenate(batches)
    assert (seen.least, seen.greatest) == (values.min(), values.max())
    assert seen.low <= values.min() and seen.high >= values.max() and seen.counts.sum() == values.size
    assert len(seen.counts) == BINS
    wanted = np.histogram(values, BINS, (seen.low, seen.high))[0]
    # A number at the border of two bins may be in either.
    assert np.abs(np.cumsum(wanted - seen.counts)).max() <= 1


def test_calibrators_drop_an_outlier() -> None:
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(20000), float32]) { %x }'))
    values = np.random.default_rng(0).normal(size=20000).astype("float32")
    values[0] = 40
    (seen,) = observe(mod, [mod["main"].params[0]], [{"x": values}], histograms=True)
    ranges = {name: pick(seen, Grid("int8", False), 0.999) for name, pick in CALIBRATORS.items()}
    assert ranges["minmax"] == (values.min(), 40)
    assert all(ranges[name][1] < 5 for name in ("percentile", "entropy")), ranges
    # The squared error decides whether one number is worth coarser steps for the others.
    errors = {}
    for name, limits in ranges.items():
        grid = Grid("int8", False)
        errors[name] = ((values - grid.rounded(values, *grid.scaled(*limits))) ** 2).sum()
    assert errors["mse"] <= min(errors.values()) * 1.001


def seen_of(values: np.ndarray) -> Seen:
    seen = Seen()
    seen.ranged(float(values.min()), float(values.max()))
    seen.count(np.histogram(values, BINS, (seen.low, seen.high))[0])
    return seen


def test_numbers_that_occur_again_and_again_do_not_clip_others() -> None:
    """Zeros of a rectifier and what a constant part of the data gives fill one bin each, which says nothing about steps."""
    rng = np.random.default_rng(1)
    values = np.maximum(rng.normal(size=200_000), 0)
    values[rng.random(200_000) < 0.1] = 0.7312
    entropy = CALIBRATORS["entropy"]
    assert entropy(seen_of(values), Grid("int8", False), 1)[1] > 0.9 * values.max()
    values[0] = 40
    assert entropy(seen_of(values), Grid("int8", False), 1)[1] < 6


@pytest.mark.parametrize("count", [2000, 20_000, 200_000])
def test_entropy_keeps_an_even_distribution(count: int) -> None:
    """The noise of few samples is no reason to clip them."""
    values = np.random.default_rng(2).uniform(-1, 3, count)
    low, high = CALIBRATORS["entropy"](seen_of(values), Grid("int8", False), 1)
    assert (low, high) == (values.min(), values.max())


def test_large_tensors_are_sampled_on_all_axes() -> None:
    shape = (1, 12, 100, 70)
    mod = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"] def @main(%x: Tensor[{shape}, float32]) {{ %x }}'))
    places = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    for axis, extent in enumerate(shape):
        x = np.floor(places / np.prod(shape[axis + 1 :], initial=1)) % extent
        (seen,) = observe(mod, [mod["main"].params[0]], [{"x": x.astype("float32")}], histograms=True)
        assert SAMPLES / 3 < seen.counts.sum() <= SAMPLES
        used = seen.counts[seen.counts > 0]
        assert len(used) == extent and used.max() < 1.4 * used.min()


def test_extremes_count_in_all_batches_and_histograms_in_some() -> None:
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(64), float32]) { %x }'))
    rng = np.random.default_rng(0)
    batches = [rng.uniform(-1, 1, 64).astype("float32") for _ in range(COUNTED + 3 * EVERY)]
    batches[COUNTED + 1][5] = 7
    (seen,) = observe(mod, [mod["main"].params[0]], [{"x": b} for b in batches], histograms=True)
    assert (seen.least, seen.greatest) == (min(b.min() for b in batches), 7)
    assert 64 * (COUNTED + 3) <= seen.counts.sum() <= 64 * (COUNTED + 3) + 2


# ---- bad input


def said(dataset: object = None, **options: object) -> str:
    mod, params = network()
    with pytest.raises(RelayError) as wrong:
        quantize_static(mod, params, data() if dataset is None else dataset, **options)
    return "\n".join([wrong.value.diagnostics[0].code, wrong.value.diagnostics[0].title, *wrong.value.diagnostics[0].notes])


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        ([], "no batches"),
        ([{"X": np.zeros((1, 3, 8, 8), "float32")}], "did you mean x"),
        ([{"x": np.zeros((1, 3, 8, 9), "float32")}], "shape (1, 3, 8, 9)"),
        ([{"x": np.zeros((1, 3, 8, 8), "float64")}], "float64"),
        ([{"x": np.zeros((0, 3, 8, 8), "float32")}], "empty"),
        ([{"x": np.full((1, 3, 8, 8), np.nan, "float32")}], "not finite"),
        ([np.full((1, 3, 8, 8), np.inf, "float32")], "not finite"),
        ([{}], "no value for the input x"),
        ([{"x": "text"}], "str"),
        ([np.ones((1, 3, 8, 8), "float32"), np.ones((2, 3, 8, 8), "float32")], "constant\nx is 1 in all batches"),
        ([np.zeros((3, 8, 8), "float32")], "x is 0 in all batches"),
        (iter(()), "no batches"),
        (iter([np.full((1, 3, 8, 8), 2, "float32")] * 3), "constant\nx is 2 in all batches"),
        ({"x": np.zeros((1, 3, 8, 8), "float32")}, "no list of batches, but dict"),
        (5, "no list of batches, but int"),
        ([{"x": [[1], [1, 2]]}], "no array"),
        ([np.random.default_rng(0).random((1, 3, 8, 8), "float32"), np.full((1, 3, 8, 8), -np.inf, "float32")], "x of batch 1"),
    ],
)
def test_bad_data(dataset: object, text: str) -> None:
    assert text in said(dataset)


@pytest.mark.parametrize(
    "dataset",
    [
        iter([np.ones((1, 3, 8, 8), "float32")] * 3),
        [*(b["x"] for b in data()), np.full((1, 3, 8, 8), np.nan, "float32")],
        [*(b["x"] for b in data()), np.zeros((0, 3, 8, 8), "float32")],
    ],
    ids=["constant", "the last has NaN", "the last is empty"],
)
def test_data_are_refused_before_the_network_is_compiled(dataset: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaylang.quantize.observe.compiled", None)
    assert said(dataset).startswith("R0530")


def test_constant_batches_in_front_of_others_count() -> None:
    mod, _ = network()
    ones, other = np.ones((1, 3, 8, 8), "float32"), data()[0]["x"]
    batches = list(checked(iter([ones, ones, other, ones]), prepare(mod, network()[1])["main"]))
    assert [float(b["x"].min() == b["x"].max()) for b in batches] == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"keep_float": ["cnv2d_0"]}, "did you mean conv2d_0"),
        ({"keep_float": "cnv2d_0"}, "no layer cnv2d_0"),
        ({"calibrator": "entropie"}, "did you mean entropy"),
        ({"weights": "mean"}, "calibrator of weights"),
        ({"target": "ethos"}, "did you mean ethos-u"),
        ({"share": 2.0}, "share"),
        ({"calibratr": "mse"}, "did you mean calibrator"),
    ],
)
def test_bad_options(options: dict[str, object], text: str) -> None:
    assert text in said(**options)


def refused(text: str, params: dict[str, np.ndarray], batches: list[dict[str, np.ndarray]]) -> str:
    """The diagnostic of a network, as text."""
    mod = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"] def @main({text}'))
    with pytest.raises(RelayError) as wrong:
        quantize_static(mod, params, batches)
    (diagnostic,) = wrong.value.diagnostics
    return "\n".join([diagnostic.title, *diagnostic.notes, str(diagnostic.span)])


IMAGE = "%x: Tensor[(1, 3, 8, 8), float32], "


def test_layers_that_cannot_be_quantised_are_named() -> None:
    weight = np.random.default_rng(0).normal(size=(8, 3, 1, 1)).astype("float32")
    call = "%w: Tensor[(8, 3, 1, 1), float32]) { nn.conv2d(%x, WEIGHT, channels=8, kernel_size=[1, 1]) }"
    batches = [{"x": b["x"], "w": weight} for b in data(2)]
    found = refused(IMAGE + call.replace("WEIGHT", "exp(%w)"), {}, batches)
    assert "no layer that can be quantised" in found and "conv2d_0: its weight is computed when the network runs" in found
    half = "%x: Tensor[(2, 3), float16], %w: Tensor[(4, 3), float16]) { nn.dense(%x, %w, units=4) }"
    found = refused(half, {"w": np.ones((4, 3), "float16")}, [{"x": np.ones((2, 3), "float16")}])
    assert "dense_0: its operands are not float32" in found
    for number in (np.nan, np.inf):
        broken = weight.copy()
        broken[1, 1] = number
        found = refused(IMAGE + call.replace("WEIGHT", "%w"), {"w": broken}, batches)
        assert "the weight of the layer conv2d_0 has numbers that are not finite" in found and "1:" in found


def test_a_layer_with_an_infinite_range_is_named() -> None:
    weights = {name: np.full((3, 3, 1, 1), 100, "float32") for name in "wv"}
    conv = "nn.conv2d(%s, %%%s, channels=3, kernel_size=[1, 1])"
    text = f"{IMAGE}%w: Tensor[(3, 3, 1, 1), float32], %v: Tensor[(3, 3, 1, 1), float32]) {{ "
    text += conv % (f"exp({conv % ('%x', 'w')})", "v") + " }"
    found = refused(text, weights, [{"x": -np.ones((1, 3, 8, 8), "float32") * b["x"] ** 2 + (n == 1)} for n, b in enumerate(data(2))])
    assert "the result of exp is not finite for batch 1" in found and "from_string:1" in found


@pytest.mark.parametrize("calibrator", list(CALIBRATORS))
@pytest.mark.parametrize("size", [3e38, 1e-42])
def test_the_ends_of_float32(calibrator: str, size: float) -> None:
    text = "%w: Tensor[(4, 3, 1, 1), float32]) { nn.relu(nn.conv2d(%x, %w, channels=4, kernel_size=[1, 1])) }"
    mod = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"] def @main({IMAGE}{text}'))
    x = np.linspace(-1, 1, 192).reshape(1, 3, 8, 8) * size
    made = quantize_static(mod, {"w": np.full((4, 3, 1, 1), 1e-3, "float32")}, [x.astype("float32")], calibrator=calibrator)
    assert "qnn.conv2d" in names(made)


def test_weights_without_values_and_quantised_networks() -> None:
    mod, params = network()
    with pytest.raises(RelayError) as wrong:
        quantize_static(mod, {k: v for k, v in params.items() if k != "w3"}, data())
    assert "w3" in wrong.value.diagnostics[0].title
    made = quantize_static(mod, params, data())
    with pytest.raises(RelayError) as wrong:
        quantize_static(made, None, data())
    assert "quantised already" in wrong.value.diagnostics[0].title


def test_an_array_of_many_rows_is_many_batches() -> None:
    mod, params = network()
    batches = data()
    rows = np.concatenate([b["x"] for b in batches])
    assert relay.ir.structural_equal(quantize_static(mod, params, batches), quantize_static(mod, params, [rows]))


def gated(steps: int) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A recurrent layer whose product is gated, and a dense layer behind it."""
    x, w, v, u = (relay.var(n, shape=s) for n, s in (("x", (1, 8)), ("w", (8, 8)), ("v", (8, 8)), ("u", (5, 8))))
    state = relay.nn.dense(x, w, units=8)
    for _ in range(steps):
        state = relay.tanh(relay.add(state, relay.multiply(relay.sigmoid(state), relay.nn.dense(state, v, units=8))))
    mod = IRModule.from_expr(relay.Function([x, w, v, u], relay.nn.dense(state, u, units=5)))
    rng = np.random.default_rng(2)
    return mod, {n: rng.normal(size=s).astype("float32") for n, s in (("w", (8, 8)), ("v", (8, 8)), ("u", (5, 8)))}


@pytest.mark.parametrize("target, kept", [("c", 3), ("ethos-u", 0)])
def test_recurrent_products_stay_in_floats_where_the_target_takes_floats(target: str, kept: int) -> None:
    quantization = StaticQuantization(*gated(3), StaticConfig(target=target))
    assert [n for n, why in quantization.plan.floats if "recurrent" in why] == [f"dense_{n}" for n in range(1, 1 + kept)]
    products = [layer for layer in quantization.plan.layers if layer.head.op.name == "nn.dense"]
    assert len(products) == 5 - kept
    assert all(layer.weight is not None for layer in products)  # gates are not folded into weights


def test_products_side_by_side_that_share_a_weight_are_quantised() -> None:
    x, w = relay.var("x", shape=(1, 8)), relay.var("w", shape=(8, 8))
    both = relay.add(relay.nn.dense(x, w, units=8), relay.nn.dense(relay.tanh(x), w, units=8))
    params = {"w": np.eye(8, dtype="float32")}
    quantization = StaticQuantization(IRModule.from_expr(relay.Function([x, w], both)), params)
    assert [layer.head.op.name for layer in quantization.plan.layers].count("nn.dense") == 2


def test_dense_layers_without_units() -> None:
    params = "%x: Tensor[(4, 32), float32], %w: Tensor[(64, 32), float32], %v: Tensor[(8, 64), float32]"
    text = f"def @main({params})" + " {{ nn.dense(nn.relu(nn.dense(%x, %w{})), %v{}) }}"
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal(shape).astype("float32") for shape in ((4, 32), (64, 32), (8, 64)))
    results = []
    for units in (("", ""), (", units=64", ", units=8")):
        mod = relay.transform.InferType()(relay.parse(text.format(*units)))
        results.append(relay.evaluate(quantize_static(mod, {"w": w, "v": v}, [{"x": x}]), x))
    np.testing.assert_array_equal(*results)
