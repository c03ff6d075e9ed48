"""Layers for CMSIS-NN against the interpreter.

They run with a stand-in for its functions, and with CMSIS-NN itself where RELAY_CMSIS_NN names its folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.bare_metal.cmsis_nn import SINGLE_ROUNDING
from relaylang.backends.bare_metal.host import VARIABLE
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, IRModule, Tuple, Var, var
from relaylang.runtime.artifact import load, read_tar
from relaylang.typing import check
from tests.backends.bare_metal.firmware import ARM, printed
from tests.backends.bare_metal.test_applications import leaves, machine, module
from tests.backends.ethosu.networks import Builder, call
from tests.shared import ROOT

STAND_IN = ROOT / "tests/backends/bare_metal/cmsis_stand_in"
OWN = os.environ.get(VARIABLE)


class Layers(Builder):
    """Single layers in NHWC, each with inputs of its own, of int8 or of `dtype`. `params` are all inputs."""

    def __init__(self, seed: int, dtype: str = "int8") -> None:
        super().__init__(seed)
        self.layout = "NHWC"
        self.kind = dtype
        self.params: list[Var] = []

    def input(self, *shape: int) -> Var:
        self.params.append(var(f"x{len(self.params)}", shape=list(shape), dtype=self.kind))
        check(self.params[-1])
        return self.params[-1]

    def values(self, *shape: int) -> np.ndarray:
        info = np.iinfo(self.kind)
        return self.rng.integers(info.min, info.max + 1, shape).astype(self.kind)

    def clipped(self, value: Expr) -> Expr:
        info = np.iinfo(self.kind)
        low = self.number(info.min, info.max // 2)
        return call("clip", value, a_min=float(low), a_max=float(self.number(low, info.max))) if self.pick(0, 1) else value

    def summed(self, value: Expr, channels: int, axis: int) -> Expr:
        if self.pick(0, 1, 1) or axis == 3:
            value = call("nn.bias_add", value, self.rng.integers(-5000, 5000, channels).astype("int32"), axis=axis)
        scale = self.scale(0.003, channels if self.pick(0, 1) else None)
        return self.clipped(
            call("qnn.requantize", value, scale, self.number(-3, 3), np.float32(1), self.zero("int8"), axis=axis, out_dtype="int8")
        )

    def conv(self, depthwise: bool) -> Expr:
        n, c, m = (1, self.number(2, 7), self.number(1, 3)) if depthwise else (self.pick(1, 2), self.number(1, 7), self.number(1, 6))
        kh, kw = (1, 1) if self.pick(0, 0, 0, 1) else (self.number(1, 3), self.number(1, 4))
        dilation = [self.pick(1, 1, 2), self.pick(1, 1, 2)]
        pad = [self.number(0, kh - 1), self.number(0, kw - 1), self.number(0, kh - 1), self.number(0, kw - 1)]
        zero = self.zero("int8")
        data: Expr = self.input(n, self.number(7, 10), self.number(7, 10), c)
        if self.pick(0, 1) and pad[2] - pad[0] in (0, 1) and pad[3] - pad[1] in (0, 1):
            data = call("nn.pad", data, np.float32(zero), pad_width=[[0, 0], [pad[0], pad[2]], [pad[1], pad[3]], [0, 0]])
            pad = [0, 0, 0, 0]
        weight = self.values(kh, kw, c, m)
        value = call(
            "qnn.conv2d",
            data,
            weight,
            zero,
            0,
            np.float32(1),
            np.float32(1),
            kernel_size=[kh, kw],
            padding=pad,
            strides=[self.number(1, 3), self.number(1, 3)],
            dilation=dilation,
            groups=c if depthwise else 1,
            channels=c * m if depthwise else m,
            data_layout="NHWC",
            kernel_layout="HWOI" if depthwise else "HWIO",
            out_dtype="int32",
        )
        return self.summed(value, c * m if depthwise else m, 3)

    def dense(self) -> Expr:
        n, k, units = self.number(1, 3), self.number(1, 40), self.number(1, 9)
        value = call(
            "qnn.dense",
            self.input(n, k),
            self.values(units, k),
            self.zero("int8"),
            0,
            np.float32(1),
            np.float32(1),
            units=units,
            out_dtype="int32",
        )
        return self.summed(value, units, 1)

    def pool(self, kind: str = "max") -> Expr:
        """The largest numbers, averages rounded as in TensorFlow Lite ("rounded"), or cut off as in Relay ("cut")."""
        size = [self.number(1, 3), self.number(1, 3)]
        pad = [self.number(0, s - 1) if kind != "cut" else 0 for s in size * 2]
        data: Expr = self.input(1, self.number(4, 9), self.number(4, 9), self.number(1, 9))
        if kind == "rounded":
            data = call("qnn.dequantize", data, np.float32(1), 0, out_dtype="float32", axis=0)
        elif kind == "cut":
            data = call("cast", data, dtype="int32")
        name = "nn.max_pool2d" if kind == "max" else "nn.avg_pool2d"
        value = call(
            name,
            data,
            pool_size=size,
            strides=[self.number(1, 3), self.number(1, 3)],
            padding=pad,
            layout="NHWC",
            ceil_mode=bool(kind == "max" and self.pick(0, 1)),
        )
        if kind == "rounded":
            value = call("qnn.quantize", value, np.float32(1), 0, out_dtype=self.kind, axis=0)
        elif kind == "cut":
            value = call("cast", value, dtype=self.kind)
        return self.clipped(value)

    def softmax(self) -> Expr:
        wide = self.kind == "int16"
        scale = np.float32(self.rng.uniform(0.01, 0.2) / (256 if wide else 1))
        data = self.input(self.number(1, 3), self.number(2, 12))
        value = call("qnn.dequantize", data, scale, 0 if wide else self.zero("int8"), out_dtype="float32", axis=0)
        scale, zero = (1 / 32768, 0) if wide else (1 / 256, -128)
        return call("qnn.quantize", call("nn.softmax", value), np.float32(scale), zero, out_dtype=self.kind, axis=0)

    def binary(self, name: str) -> Expr:
        shape = [1, self.number(1, 6), self.number(1, 6), self.number(1, 6)]
        left = self.input(*shape)
        right = self.pick(self.input(*shape), left, self.values(shape[3]), self.values(*shape))
        wide = self.kind == "int16"
        top = 0.3 if name == "qnn.add" else 2000.0 if wide else 9.0
        zeros = [0, 0, 0] if wide else [self.zero("int8") for _ in range(3)]
        scales = [self.scale(0.3), zeros[0], self.scale(0.3), zeros[1], self.scale(top), zeros[2]]
        return self.clipped(call(name, left, right, *scales))

    def network(self, count: int) -> IRModule:
        """A module with `count` layers of each kind."""
        kinds: list[Callable[[], Expr]] = [self.pool, lambda: self.binary("qnn.add"), lambda: self.binary("qnn.mul")]
        if self.kind == "int8":
            kinds += [lambda: self.conv(False), lambda: self.conv(True), self.dense, lambda: self.pool("rounded")]
        results = [kind() for _ in range(count) for kind in kinds]
        return self.module(results)

    def module(self, results: list[Expr]) -> IRModule:
        return IRModule.from_expr(Function(self.params, Tuple(results)))

    def inputs(self) -> dict[str, np.ndarray]:
        return {p.name_hint: self.values(*map(int, p.checked_type.shape)) for p in self.params}  # type: ignore[union-attr]


@pytest.fixture(scope="module", params=["a stand-in", "CMSIS-NN"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "CMSIS-NN":
        return OWN or pytest.skip(f"{VARIABLE} names no folder of CMSIS-NN")
    return str(built(tmp_path_factory.mktemp("cmsis"), f"-D{SINGLE_ROUNDING}"))


def built(place: Path, *flags: str) -> Path:
    """A folder with the stand-in as a library."""
    (place / "Include").symlink_to(STAND_IN / "Include")
    command = ["cc", "-O1", "-fPIC", "-Wall", "-Werror", *flags, f"-I{STAND_IN / 'Include'}", "-c", str(STAND_IN / "functions.c")]
    subprocess.run(command, cwd=place, check=True)
    subprocess.run(["ar", "rc", "libcmsis-nn.a", "functions.o"], cwd=place, check=True)
    return place


def compiled(mod: IRModule, folder: str = "") -> MicroProgram:
    return compile_bare_metal(mod, f'cmsis-nn -path="{folder}", c' if folder else "cmsis-nn, c")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("seed", "dtype"),
    [
        (0, "int8"),
        *[pytest.param(*case, marks=pytest.mark.sweep) for case in ((1, "int8"), (2, "int16"))],
    ],
)
def test_layers_give_the_interpreters_integers(seed: int, dtype: str, folder: str) -> None:
    layers = Layers(seed, dtype)
    mod = layers.network(4)
    program = compiled(mod, folder)
    values = layers.inputs()
    right = evaluate(mod, *values.values())
    differ = [n for n, (one, other) in enumerate(zip(program.run(**values), right)) if not np.array_equal(one, other)]
    assert differ == []
    assert sum("external" in name for name in program.files) >= (25 if dtype == "int8" else 10), program.report()
    assert program.constant_bytes > sum(p.size for p in values.values()) / 100


@pytest.mark.sweep
@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_approximate_layers_differ_little(dtype: str, folder: str) -> None:
    """CMSIS-NN computes softmax in whole numbers, of int16 with tables; and rounds averages."""
    layers = Layers(3, dtype)
    mod = layers.module([layer for _ in range(6) for layer in (layers.softmax(), layers.pool("cut"))])
    values = layers.inputs()
    exact = compiled(mod, folder)
    assert "0 calls, and 12 of its table on the host" in exact.report() and "-approximate allows that" in exact.report()
    program = compile_bare_metal(mod, f'cmsis-nn -path="{folder}" -approximate, c')
    assert program.report().startswith("cmsis-nn: 12 calls, and 0 of its table on the host")
    for one, other in zip(program.run(**values), evaluate(mod, *values.values())):
        assert np.abs(one.astype("int64") - other).max() <= (1 if dtype == "int8" else 16)


def test_networks_for_the_npu_too(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The NPU takes calls of @main. CMSIS-NN takes those of other functions, too."""
    pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    mod = module("""#[version = "0.0.5"]
def @largest(%x: Tensor[(1, 4, 4, 4), int8]) -> Tensor[(1, 3, 3, 4), int8] {
  nn.max_pool2d(%x, pool_size=[2, 2], strides=[1, 1], layout="NHWC")
}
def @main(%x: Tensor[(1, 8, 8, 4), int8]) {
  %0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], layout="NHWC");
  (%0, @largest(%0))
}
""")
    program = compile_bare_metal(mod, f'ethos-u, cmsis-nn -path="{folder}", c')
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 4)).astype("int8")
    program.executor = "ethosu-sim"
    assert all(map(np.array_equal, program.run(x), evaluate(mod, x)))
    assert sum("external" in name for name in program.files) == 2 and "cmsis-nn: 1 calls" in program.report()
    program.save(tmp_path / "net.tar")
    readme = read_tar((tmp_path / "net.tar").read_bytes())["runtime/README.md"].decode()
    assert f"-D{SINGLE_ROUNDING}" in readme and "ethosu_driver.h" in readme
    monkeypatch.setenv(VARIABLE, folder)
    again = load(tmp_path / "net.tar")
    assert all(map(np.array_equal, again.run(x), evaluate(mod, x)))


def test_a_network_that_the_npu_does_not_take() -> None:
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    mod = module("""#[version = "0.0.5"]
def @pool(%x: Tensor[(1, 4, 4, 4), int8]) { nn.max_pool2d(%x, pool_size=[2, 2], strides=[1, 1], layout="NHWC") }
def @main(%x: Tensor[(1, 4, 4, 4), int8]) { @pool(%x) }
""")
    report = compile_bare_metal(mod, "ethos-u, cmsis-nn, c").report()
    assert report.startswith("ethos-u: no region\n  a call of a function stays on the host") and "cmsis-nn: 1 calls" in report
    for target in ("ethos-u, c", "ethos-u -npu-only, cmsis-nn, c"):
        with pytest.raises(RelayError, match="R0614"):
            compile_bare_metal(mod, target)


def refused(text: str, *params: tuple[str, np.ndarray]) -> str:
    return compile_bare_metal(module(f'#[version = "0.0.5"]\n{text}'), "cmsis-nn, c", dict(params)).report()


CONV = """def @main(%x: Tensor[(2, 6, 6, 2), int8], %w: Tensor[(3, 3, 2, 2), int8], %b: Tensor[(4), int32]) {{
  %0 = qnn.conv2d({x}, %w, {zero}, 0, 0.02f, 0.03f, padding={pad}, groups=2, channels=4, kernel_size=[3, 3], data_layout="NHWC",
    kernel_layout="HWOI", out_dtype="int32");
  qnn.requantize(nn.bias_add(%0, %b, axis=3), {scale}, 0, 0.05f, 3, axis=3, out_dtype="int8")
}}"""
TEXTS = {
    "a depthwise convolution of 2 images": CONV.format(x="%x", zero=1, pad=[0, 0], scale="0.002f"),
    "it is padded with 7, not with the zero point 1": CONV.format(
        x="nn.pad(%x, 7f, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]])", zero=1, pad=[0, 0], scale="0.002f"
    ),
    "a padding as wide as the kernel": CONV.replace("(2, 6", "(1, 6").format(x="%x", zero=1, pad=[3, 1], scale="0.002f"),
    "rounds averages to the nearest number": """def @main(%x: Tensor[(1, 4, 4, 2), int8]) {
      cast(nn.avg_pool2d(cast(%x, dtype="int32"), pool_size=[2, 2], layout="NHWC"), dtype="int8") }""",
    "where Relay computes in float32": """def @main(%x: Tensor[(2, 4), int8]) {
      qnn.quantize(nn.softmax(qnn.dequantize(%x, 0.1f, 2)), 0.00390625f, -128, out_dtype="int8") }""",
    "its sides have different shapes": """def @main(%x: Tensor[(2, 4), int8], %y: Tensor[(4), int8]) {
      qnn.add(%x, %y, 0.1f, 1, 0.2f, 2, 0.3f, 3) }""",
    "too far from each other": """def @main(%x: Tensor[(2, 4), int8], %y: Tensor[(2, 4), int8]) {
      qnn.add(%x, %y, 0.00001f, 1, 0.2f, 2, 0.3f, 3) }""",
    "softmax along axis 0": """def @main(%x: Tensor[(2, 4), int8]) {
      qnn.quantize(nn.softmax(qnn.dequantize(%x, 0.1f, 2), axis=0), 0.00390625f, -128, out_dtype="int8") }""",
}


@pytest.mark.parametrize("reason", TEXTS)
def test_what_stays_on_the_host_has_a_reason(reason: str) -> None:
    rng = np.random.default_rng(0)
    params = [("w", rng.integers(-9, 9, (3, 3, 2, 2)).astype("int8")), ("b", np.zeros(4, "int32"))] if "%w" in TEXTS[reason] else []
    report = refused(TEXTS[reason], *params)
    assert report.startswith("cmsis-nn: 0 calls, and 1 of its table on the host") and reason in report


@pytest.mark.sweep
def test_without_cmsis_nn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    mod = module("def @main(%x: Tensor[(2, 4), int8]) { qnn.mul(%x, %x, 0.1f, 0, 0.2f, 0, 0.3f, 0) }")
    program, x = compiled(mod), np.int8([[1, 2, 3, 4], [-5, -6, -7, 100]])
    twice = tmp_path / "twice"
    for place in ("headers/Include", "empty", "twice"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "headers/Include/arm_nnfunctions.h").write_text("")
    built(twice)
    for place, says in (
        ("", "nothing says where that is"),
        ("empty", "has no Include/arm_nnfunctions.h"),
        ("headers", "has no libcmsis-nn.a"),
        ("twice", "rounds twice"),
    ):
        with pytest.raises(RelayError, match=says) as wrong:
            (compiled(mod, str(tmp_path / place)) if place else program).run(x)
        assert wrong.value.diagnostics[0].code == "R0617"
    (tmp_path / "once").mkdir()
    monkeypatch.setenv(VARIABLE, str(built(tmp_path / "once", f"-D{SINGLE_ROUNDING}")))
    np.testing.assert_array_equal(program.run(x), evaluate(mod, x))


@pytest.mark.sweep
def test_on_a_cortex_m55(tmp_path: Path) -> None:
    compiler, emulator = machine("Cortex-M55")
    layers = Layers(7)
    mod = layers.network(1)
    values = layers.inputs()
    flags = (f"-D{SINGLE_ROUNDING}", f"-I{STAND_IN / 'Include'}", str(STAND_IN / "functions.c"))
    found = printed(compiled(mod), values, [], tmp_path, (*compiler, *flags), emulator)
    assert compiler == ARM
    assert all(map(np.array_equal, found, leaves(evaluate(mod, *values.values()))))
