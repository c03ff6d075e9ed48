"""Networks: the convolutions of ResNet, each bit for bit and with its cycles beside the bound; and resnet18 as a whole."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.vta.config import Config
from relaylang.ir import Expr, IRModule
from tests.backends.vta.regions import compiled, differs, int8
from tests.cli.command import relay as command
from tests.shared import few

#: Name -> extent, channels in and out, kernel, stride: the published table of ResNet's convolutions.
LAYERS = {
    "C2": (56, 64, 64, 3, 1),
    "C3": (56, 64, 64, 1, 1),
    "C4": (56, 64, 128, 3, 2),
    "C5": (56, 64, 128, 1, 2),
    "C6": (28, 128, 128, 3, 1),
    "C7": (28, 128, 256, 3, 2),
    "C8": (28, 128, 256, 1, 2),
    "C9": (14, 256, 256, 3, 1),
    "C10": (14, 256, 512, 3, 2),
    "C11": (14, 256, 512, 1, 2),
    "C12": (7, 512, 512, 3, 1),
}


def _conv(rng: np.random.Generator, x: Expr, ci: int, co: int, k: int, s: int) -> Expr:
    more = {"strides": (s, s), "padding": (k // 2,) * 4, "channels": co, "kernel_size": (k, k), "out_dtype": "int32"}
    return relay.nn.conv2d(x, relay.const(int8(rng, co, ci, k, k)), **more)


def _narrow(value: Expr, shift: int, low: int = -127) -> Expr:
    return relay.cast(relay.clip(relay.right_shift(value, relay.const(np.int32(shift))), low, 127), "int8")


@pytest.mark.parametrize("name", few(LAYERS, "C11"))
def test_a_convolution_of_resnet(name: str) -> None:
    extent, ci, co, k, s = LAYERS[name]
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, ci, extent, extent), dtype="int8")
    mod = IRModule.from_expr(relay.Function([x], _narrow(_conv(rng, x, ci, co, k, s), 8)))
    assert not differs(mod, Config(), [int8(rng, 1, ci, extent, extent)])
    profile = compiled(mod).profile()
    print(f"{name}\n{profile}")
    (cost,) = profile.layers
    # GEMM and ALU are one unit: zeros, shift and limits cost as many cycles as the products of 64 channels, half of those of 128.
    assert cost.limit / cost.cycles >= 0.9 and (ci * k * k < 256 or cost.reached >= 0.7)


def test_depthwise_and_grouped_convolutions() -> None:
    """The products of a group need its own channels alone: one block for each block of a depthwise convolution."""
    rng = np.random.default_rng(0)
    for groups, ci, co, blocks in [(64, 64, 64, 4), (40, 40, 80, 5), (4, 64, 64, 4), (2, 24, 40, 6)]:
        x = relay.var("x", shape=(1, ci, 12, 12), dtype="int8")
        weight = relay.const(int8(rng, co, ci // groups, 3, 3))
        conv = relay.nn.conv2d(x, weight, padding=(1, 1, 1, 1), channels=co, kernel_size=(3, 3), groups=groups, out_dtype="int32")
        mod = IRModule.from_expr(relay.Function([x], _narrow(conv, 6)))
        assert not differs(mod, Config(), [int8(rng, 1, ci, 12, 12)])
        program = compiled(mod)
        assert not program.host and program.profile().layers[0].gemm == blocks * 9 * 144


def test_a_requantization_takes_few_cycles_of_the_alu() -> None:
    """Limits, a copy, two products, their sum, a rounding summand and a shift, where scales differ and sums are long."""
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 64, 8, 8), dtype="int8")
    for scales, most in [(rng.uniform(0.002, 0.004, 64), 22), (0.0031, 17), (2.0**-9, 7)]:
        conv = _conv(rng, x, 64, 64, 3, 1)
        numbers = (relay.const(np.float32(scales)), relay.const(np.int32(0)), relay.const(np.float32(1)), relay.const(np.int32(3)))
        mod = IRModule.from_expr(relay.Function([x], relay.qnn.requantize(conv, *numbers, axis=1, out_dtype="int8")))
        assert not differs(mod, Config(), [int8(rng, 1, 64, 8, 8)])
        assert compiled(mod).profile().layers[0].alu <= most * 256


def resnet18(extent: int = 224) -> IRModule:
    """resnet18 of int8 with random weights, requantized by shifts."""
    rng = np.random.default_rng(1)
    x = relay.var("x", shape=(1, 3, extent, extent), dtype="int8")
    value = _narrow(relay.nn.relu(_conv(rng, x, 3, 64, 7, 2)), 9, 0)
    value = relay.nn.max_pool2d(value, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    width = 64
    for channels in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and channels > 64 else 1
            inner = _narrow(relay.nn.relu(_conv(rng, value, width, channels, 3, stride)), 10, 0)
            outer = relay.right_shift(_conv(rng, inner, channels, channels, 3, 1), relay.const(np.int32(10)))
            short = value if stride == 1 else _narrow(_conv(rng, value, width, channels, 1, stride), 9)
            value = _narrow(relay.nn.relu(relay.add(outer, relay.cast(short, "int32"))), 0, 0)
            width = channels
    pooled = relay.cast(relay.nn.global_avg_pool2d(relay.cast(value, "int32")), "int8")
    dense = relay.nn.dense(relay.nn.batch_flatten(pooled), relay.const(int8(rng, 1000, 512)), units=1000, out_dtype="int32")
    return IRModule.from_expr(relay.Function([x], _narrow(dense, 8)))


def test_a_small_resnet18() -> None:
    assert not differs(resnet18(32), Config(), [int8(np.random.default_rng(2), 1, 3, 32, 32)])


@pytest.mark.sweep
def test_resnet18() -> None:
    mod, x = resnet18(), int8(np.random.default_rng(2), 1, 3, 224, 224)
    program = compiled(mod)
    begin = time.process_time()
    found = program.run(x)
    print(f"functional simulation: {time.process_time() - begin:.1f} s\n{program.profile()}")
    assert np.array_equal(found, relay.evaluate(mod, x))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, target, picture, trace = (str(tmp_path / name) for name in ("net.relay", "net.tar", "net.svg", "net.json"))
    Path(file).write_text(
        "def @main(%x: Tensor[(1, 16, 8, 8), int8]) {\n"
        "  %0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]);\n"
        '  cast(%0, dtype="float32")\n}\n'
    )
    assert command(capsys, "compile", file, "--target", "vta -log-inp-buff=14, c", "-o", target).status == 0
    listed = command(capsys, "disasm", target)
    assert "VTA 1x16x16_i8w8a32_15_14_18_17" in listed.out and f"# max_pool2d at {file}:2:8" in listed.out
    wanted = command(capsys, "run", file, "--random-params", "0")
    ran = command(capsys, "run", target, "--random-params", "0", "--executor", "vta-sim", "--profile", picture)
    assert ran.out == wanted.out and "max_pool2d at" in ran.err and Path(picture).read_text().startswith("<svg")
    ran = command(capsys, "run", file, "--target", "vta, c", "--random-params", "0", "--profile", trace)
    events = json.loads(Path(trace).read_text())["traceEvents"]
    assert ran.out == wanted.out and {e["name"] for e in events} >= {"LOAD", "ALU", "STORE", "FINISH"}
    for arguments, said in [
        (
            ("run", target, "--executor", "ethosu-sim", "--fill", "ones"),
            "--executor ethosu-sim is for programs compiled for an Ethos-U",
        ),
        (("compile", file, "--target", "vta", "-o", target), "cast stays on the host"),
        (("run", file, "--random-params", "0", "--profile", picture), "for programs that count cycles"),
    ]:
        refused = command(capsys, *arguments)
        assert refused.status != 0 and said in refused.err
