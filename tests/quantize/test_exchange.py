"""Quantised networks elsewhere: onnxruntime runs the exported form, an Ethos-U the integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaylang.quantize import StaticConfig, StaticQuantization, quantize_dynamic
from relaylang.quantize.compare import compare, picture, table
from relaylang.quantize.correct import correct_biases, keep_worst
from relaylang.quantize.integer_io import integer_io
from tests.quantize.test_static import data, decibels, names, network, run


def quantised(target: str = "c", **options: object) -> StaticQuantization:
    mod, params = network()
    made = StaticQuantization(mod, params, StaticConfig(target=target, **options))
    made.calibrate(data())
    return made


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
@pytest.mark.parametrize("form", ["QDQ", "integers"])
def test_onnxruntime_gives_the_same_numbers(form: str, level: str) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from relaylang.export import export_onnx

    made = quantised("ethos-u")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    model = export_onnx(made.simulated if form == "QDQ" else made.module).SerializeToString()
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    step = made.numbers.of(made.plan.value_of[id(made.plan.layers[-1].tail)]).scale
    for x in data(8, 11):
        found = session.run(None, {session.get_inputs()[0].name: x["x"]})[0]
        if form == "QDQ":
            assert np.abs(run(made.simulated, x) - found).max() <= 1e-5
        # Floats round halves to even numbers, fixed points round them up: a unit of the last place.
        assert np.abs(run(made.module, x) - found).max() <= 1.01 * step


@pytest.mark.parametrize("target", ["c", "cmsis-nn", "ethos-u"])
@pytest.mark.parametrize("form", ["QDQ", "integers"])
def test_the_integers_come_back_from_onnx(form: str, target: str) -> None:
    pytest.importorskip("onnx")
    import relaylang as relay
    from relaylang.export import export_onnx
    from relaylang.frontends.formats import import_bytes

    made = quantised(target)
    model = export_onnx(made.simulated if form == "QDQ" else made.module).SerializeToString()
    back = relay.transform.InferType()(import_bytes(model, "network.onnx").module)
    finer = None if target == "cmsis-nn" else ["add", "subtract"]
    whole = relay.transform.FakeQuantizationToInteger(use_qat=target == "c", optional_qnn_ops=finer)(back)
    whole = relay.transform.InferType()(whole)
    assert not {"nn.conv2d", "nn.dense", "nn.matmul", "nn.relu"} & names(whole)
    (x,) = whole["main"].params
    for sample in data(6, 11):
        difference = np.abs(run(whole, {x.name_hint: sample["x"]}) - run(made.module, sample)).max()
        assert difference <= (1e-6 if target == "c" else 0)  # open results are real numbers


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["keywords_int8", "mobilenet_int8"])
def test_the_converters_integers_come_back_from_onnx(name: str) -> None:
    """A network from TensorFlow's converter, exported to ONNX and read again."""
    pytest.importorskip("onnx")
    pytest.importorskip("tflite")
    import relaylang as relay
    from relaylang.export import export_onnx
    from relaylang.frontends.formats import import_bytes
    from tests.frontends import tflite

    file = Path(tflite.__file__).parent / "data" / f"{name}.tflite"
    mod = relay.transform.InferType()(import_bytes(file.read_bytes(), file.name).module)
    back = relay.transform.InferType()(import_bytes(export_onnx(mod).SerializeToString(), "network.onnx").module)
    (x,), (y,) = mod["main"].params, back["main"].params
    shape = x.checked_type.concrete_shape
    for sample in np.random.default_rng(4).integers(-128, 128, (2, *shape)).astype("int8"):
        assert np.array_equal(run(mod, {x.name_hint: sample}), run(back, {y.name_hint: sample}))


def test_the_ethos_u_takes_the_whole_network(tmp_path) -> None:
    pytest.importorskip("ethosu")
    import relaylang as relay
    from relaylang.backends import compile_module
    from relaylang.backends.registry import parse_target, with_options
    from relaylang.runtime.artifact import load

    mod, inputs, outputs = integer_io(quantised("ethos-u").module)
    assert [edge.name for edge in inputs] == ["x"] and outputs[0].dtype == "int8"
    first, rest = parse_target("ethos-u -accelerator=ethos-u55-256, c")
    compile_module(mod, [with_options(first, {"npu-only": True}), rest]).save(str(tmp_path / "net.tar"))
    artifact = load(str(tmp_path / "net.tar"))
    artifact.executor = "ethosu-sim"
    rng = np.random.default_rng(2)
    for _ in range(3):
        x = rng.integers(-128, 128, (1, 3, 8, 8)).astype("int8")
        wanted = np.asarray(relay.create_executor("debug", mod).evaluate()(x))
        assert np.array_equal(np.asarray(artifact.run(x=x)), wanted)


@pytest.mark.parametrize("accelerator", ["ethos-u55-256", "ethos-u85-256"])
def test_a_sigmoid_of_16_bits_stays_on_the_host_where_it_must(accelerator: str) -> None:
    pytest.importorskip("ethosu")
    import relaylang as relay
    from relaylang.backends import compile_module

    mod, _, outputs = integer_io(quantised("ethos-u", dtype="int16").module)
    assert outputs[0].dtype == "int16"
    artifact = compile_module(mod, f"ethos-u -accelerator={accelerator}, c")
    artifact.executor = "ethosu-sim"
    x = np.random.default_rng(2).integers(-30000, 30000, (1, 3, 8, 8)).astype("int16")
    assert np.array_equal(np.asarray(artifact.run(x=x)), np.asarray(relay.create_executor("debug", mod).evaluate()(x)))


def test_a_comparison_has_a_row_for_each_layer() -> None:
    made = quantised()
    found = compare(made, data())
    assert [row.name for row in found.layers][:2] == ["conv2d_0", "conv2d_1"] and found.rows == 6
    assert all(row.sqnr <= row.own + 3 and row.cosine > 0.99 and row.clipped < 0.03 for row in found.layers)
    assert found.sqnr == pytest.approx(decibels(*_outputs(made)), abs=1e-3)
    text = table(found)
    assert len(text.splitlines()) == len(found.layers) + 2 and "conv2d_2" in text
    assert picture(found).count("<rect") == 2 * len(found.layers)


def _outputs(made: StaticQuantization) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.concatenate([run(mod, x) for x in data()]) for mod in (made.prepared, made.module))  # type: ignore[return-value]


def test_bias_correction_lessens_the_error() -> None:
    made = quantised(per_channel=False)
    before = compare(made, data()).sqnr
    assert correct_biases(made, data()) == 4
    assert compare(made, data()).sqnr > before + 2


def test_the_worst_layers_stay_in_floats() -> None:
    mod, params = network()

    def of(kept: object) -> StaticQuantization:
        config = StaticConfig(per_channel=False, power2=True, symmetric=True, keep_float=tuple(kept))  # type: ignore[arg-type]
        made = StaticQuantization(mod, params, config)
        made.calibrate(data())
        return made

    lines: list[str] = []
    batches = data(60, 1)
    made = keep_worst(of, batches, 0.0, lines.append)
    assert compare(made, batches).agreement == 1.0
    assert "in floats" in lines[0] and len(lines) % 2 == 1


def test_dynamic_scales() -> None:
    mod, params = network()
    made = quantize_dynamic(mod, params)
    assert "qnn.dense" in names(made) and "nn.conv2d" in names(made)
    x = data(1, 7)[0]
    assert decibels(run(mod, x, params), run(made, x)) > 35
    assert np.isfinite(run(made, {"x": np.zeros((1, 3, 8, 8), "float32")})).all()
