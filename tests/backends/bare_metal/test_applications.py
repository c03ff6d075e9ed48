"""Whole applications: the archive's C with a `main`, on this machine and on a Cortex-M55 in QEMU."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.frontend import from_tflite
from relaylang.interpreter import Evaluator, evaluate
from relaylang.ir import IRModule
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.bare_metal.firmware import ARM, HOST, QEMU, printed, record
from tests.shared import ROOT

MACHINES = {"this machine": (HOST, ()), "Cortex-M55": (ARM, QEMU)}
#: The convolution goes to the NPU, what follows stays on the CPU.
MIXED = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 6, 6, 3), int8], %w: Tensor[(3, 3, 3, 4), int8], %b: Tensor[(4), int32]) {
  %0 = qnn.conv2d(%x, %w, -5, 0, 0.02f, 0.03f, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], data_layout="NHWC",
    kernel_layout="HWIO", out_dtype="int32");
  %1 = qnn.requantize(nn.bias_add(%0, %b, axis=3), 0.0006f, 0, 0.05f, 3, axis=3, out_dtype="int8");
  %2 = multiply(cast(%1, dtype="int32"), 3);
  (%1, argmax(%2, axis=[3]), sum(%2))
}
"""
#: Loops, a tuple and a number, for the CPU.
PLAIN = """#[version = "0.0.5"]
def @grow(%n: int32, %p: (Tensor[(2, 3), float32], Tensor[(3), int64])) -> (Tensor[(2, 3), float32], Tensor[(3), int64]) {
  if (less(%n, 1)) { %p } else { @grow(subtract(%n, 1), (add(%p.0, 0.5f), multiply(%p.1, 3i64))) }
}
def @main(%n: int32, %x: Tensor[(2, 3), float32], %k: Tensor[(3), int64]) {
  (@grow(%n, (%x, %k)), greater(%x, 0f))
}
"""


def module(text: str) -> IRModule:
    mod = parse(text, "net.relay").module
    assert mod is not None
    return mod


def machine(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    compiler, emulator = MACHINES[name]
    for tool in (compiler[0], *emulator[:1]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not here: apt install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm")
    return compiler, emulator


def leaves(value: object) -> list[np.ndarray]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("accelerator", ["ethos-u55-256", "ethos-u65-512"])
def test_a_network_on_npu_and_cpu(accelerator: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    compiler, emulator = machine(name)
    rng = np.random.default_rng(3)
    params = {"w": rng.integers(-127, 128, (3, 3, 3, 4)).astype("i1"), "b": rng.integers(-900, 900, 4).astype("i4")}
    x = rng.integers(-128, 128, (1, 6, 6, 3)).astype("i1")
    program = compile_bare_metal(module(MIXED), f"ethos-u -accelerator={accelerator}, c", params)
    program.executor = "ethosu-sim"
    found, calls = record(program, {"x": x})
    right = leaves(evaluate(module(MIXED), x, params["w"], params["b"]))
    assert len(calls) == 1 and all(map(np.array_equal, leaves(found), right))
    for one, other in zip(printed(program, {"x": x}, calls, tmp_path, compiler, emulator), right):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", MACHINES)
def test_a_program_for_the_cpu_alone(name: str, tmp_path: Path) -> None:
    compiler, emulator = machine(name)
    values = {"n": np.int32(3), "x": np.float32([[1, -2, 3], [0.25, 5, -6]]), "k": np.int64([1, -2, 3])}
    right = leaves(evaluate(module(PLAIN), *values.values()))
    program = compile_bare_metal(module(PLAIN), "c", name="grow")
    for one, other in zip(printed(program, values, [], tmp_path, compiler, emulator), right):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sweep
def test_a_float_network_with_quantised_layers(tmp_path: Path) -> None:
    """Quantize, dequantize and softmax are the CPU's. The Cortex-M55 gives this machine's bits."""
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    compiler, emulator = machine("Cortex-M55")
    program = compile_bare_metal(bars(), "ethos-u, c")
    program.executor = "ethosu-sim"
    image = np.zeros((1, 1, 8, 8), np.float32)
    image[0, 0, 3] = 1
    right, calls = record(program, {"image": image})
    (scores,) = printed(program, {"image": image}, calls, tmp_path, compiler, emulator)
    np.testing.assert_array_equal(scores, right)
    np.testing.assert_allclose(scores, evaluate(bars(), image), rtol=1e-6)


def bars() -> IRModule:
    return module((ROOT / "examples" / "ethosu_bars.relay").read_text())


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["ethos-u, c", "c"])
def test_mobilenet(target: str, tmp_path: Path) -> None:
    for package in ("tflite", "tosa_reference_model", "ethosu.regor"):
        pytest.importorskip(package, reason="needs relaylang[tflite,ethosu]")
    compiler, emulator = machine("Cortex-M55")
    mod, params = from_tflite((ROOT / "tests/frontends/tflite/data/mobilenet_int8.tflite").read_bytes())
    check(mod)
    (name,) = (p.name_hint for p in mod["main"].params if p.name_hint not in params)
    x = np.random.default_rng(0).integers(-128, 128, (1, 96, 96, 3)).astype("int8")
    right = Evaluator(mod).call("main", tuple([{name: x, **params}[p.name_hint] for p in mod["main"].params]))
    program = compile_bare_metal(mod, target, params)
    program.executor = "ethosu-sim"
    found, calls = record(program, {name: x})
    np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(printed(program, {name: x}, calls, tmp_path, compiler, emulator)[0], right)
