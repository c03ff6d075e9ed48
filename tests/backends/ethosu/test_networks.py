"""Whole networks: the regions on the TOSA reference model give the interpreter's integers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends import compile_module, ethosu
from relaylang.backends.ethosu.offload import offload
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.runtime.artifact import load
from relaylang.syntax import parse
from tests.backends.ethosu.networks import FURTHER, LAYERS, WIDE, random_input, random_network
from tests.shared import FRAGMENTS, ROOT, few, needs_shared

ACCELERATORS = ("ethos-u55-256", "ethos-u65-512", "ethos-u85-256")


@pytest.mark.sample(6)
@pytest.mark.parametrize("layers", [LAYERS, FURTHER, WIDE], ids=["layers", "further", "int16"])
@pytest.mark.parametrize("start", few(range(0, 240, 20), 0))
def test_random_networks(start: int, layers: tuple[str, ...]) -> None:
    compiled = 0
    for seed in range(start, start + 20):
        network = random_network(seed, layers)
        x = random_input(network, seed)
        wanted = evaluate(network, x)
        try:
            artifact = ethosu.compile(IRModule.from_expr(network), {"accelerator": ACCELERATORS[seed % 3]})
        except ethosu.driver.RelayError as nothing:
            assert nothing.diagnostics[0].code == "R0614", nothing
            continue
        compiled += 1
        result = artifact.run(x=x)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted, err_msg=f"seed {seed}")
    assert compiled >= 15  # others have no layer for the accelerator


def wrapped(name: str, params: str, result: str) -> str:
    """A fragment as a program: its free variables become parameters with types."""
    return f"def @main({params}) {{\n{(FRAGMENTS / name).read_text()}\n{result}\n}}"


def pytorch_form() -> tuple[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    params = (
        "%input: Tensor[(1, 3, 32, 32), float32], %features.0.0_weight: Tensor[(32, 3, 3, 3), float32], "
        "%features.0.0_bias: Tensor[(32), float32]"
    )
    values = {
        "features.0.0_weight": (rng.normal(size=(32, 3, 3, 3)) * 0.1).astype("float32"),
        "features.0.0_bias": rng.normal(size=32).astype("float32"),
    }
    return wrapped("qnn_conv_from_pytorch.relay", params, "%8"), values


def tflite_form() -> tuple[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    values = {
        "meta[relay.Constant][0]": rng.integers(-127, 128, (32, 3, 3, 3)).astype("int8"),
        "meta[relay.Constant][1]": rng.integers(-9999, 9999, 32).astype("int32"),
    }
    return wrapped("qnn_conv_from_tflite.relay", "%input: Tensor[(1, 3, 224, 224), float32]", "%4"), values


@needs_shared
@pytest.mark.parametrize(("form", "offloaded"), [(pytorch_form, 6), (tflite_form, 4)])
def test_tutorials_convolution(form: object, offloaded: int) -> None:
    """uint8 with zero point 114, padded in front, stride 2 that does not divide: one region, the quantize stays."""
    text, values = form()  # type: ignore[operator]
    mod = parse(text).module
    shape = mod["main"].params[0].type_annotation.shape
    x = np.random.default_rng(3).normal(size=shape).astype("float32")
    wanted = evaluate(parse(text).module, x, values=values)
    artifact = ethosu.compile(mod, params=values)
    result = artifact.run(x)
    assert result.dtype == np.uint8 and len(np.unique(result)) > 50
    np.testing.assert_array_equal(result, wanted)
    assert artifact.details["operations"] == {"accelerator": offloaded, "host": 1}
    assert [s.is_region for s in artifact.schedule.steps] == [False, True]


def example() -> tuple[str, np.ndarray]:
    text = (ROOT / "examples" / "ethosu_bars.relay").read_text()
    return text, np.random.default_rng(4).random((1, 1, 8, 8)).astype("float32")


@pytest.mark.sample(3)
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_example_through_files(accelerator: str, tmp_path: object) -> None:
    """Compiled for NPU and CPU, saved, loaded, run: the interpreter's value."""
    text, x = example()
    wanted = evaluate(parse(text).module, x)
    artifact = compile_module(parse(text).module, f"ethos-u -accelerator={accelerator}, c")
    path = tmp_path / "bars.tar"  # type: ignore[operator]
    artifact.save(path)
    for program in (artifact, load(path)):
        np.testing.assert_allclose(program.run(image=x), wanted, rtol=1e-6)
    region = next(iter(artifact.regions.values()))  # type: ignore[attr-defined]
    assert region.command_stream[:4] == b"COP1" and len(region.weights) > 0


def test_partitioned_module_means_the_same() -> None:
    for seed in range(30):
        network = random_network(seed)
        x = random_input(network, seed)
        done = offload(IRModule.from_expr(network)).module
        np.testing.assert_array_equal(evaluate(done, x), evaluate(network, x))
