"""Programs for other machines, run by emulators: every operator and whole networks, against the interpreter."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit, toolchain
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS, evaluate
from relaylang.ops import get, make_attrs
from relaylang.runtime.artifact import load, read_sealed
from relaylang.runtime.features import this_machine
from relaylang.runtime.packed import ForeignArtifact
from relaylang.runtime.random import random_params
from tests.backends.cpu.machines import MACHINES, needed, run
from tests.backends.cpu.test_compilers import NETWORK, values
from tests.backends.cpu.test_compilers import module as parsed
from tests.backends.cpu.test_networks import compare, module
from tests.backends.cpu.test_ops import FIRST, USED, program, same
from tests.shared import each_once, few, golden, needs_shared

#: The levels of x86-64.
LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]


def operators(name: str, numbers: Any, folder: Path) -> None:
    """Cases of operators as one program for a machine."""
    machine = needed(name)
    mod, given = program([(n, USED[n]) for n in numbers])
    made = compile_module(mod, f"{machine.target} -num-threads=2 -cflags=-O1")
    found = run(machine, made, folder, **given)
    wrong = []
    for number, ours in zip(numbers, found, strict=True):
        kind, attrs, args, _ = USED[number]
        record = get(kind)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            theirs = KERNELS[kind](make_attrs(record.attrs, attrs) if record.attrs is not None else None, *args)
        try:
            same(kind, ours, theirs)
        except AssertionError as e:
            wrong.append(f"{number}-{kind} {attrs}: {e}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.sweep
@pytest.mark.parametrize("name", MACHINES)
def test_every_operator(name: str, tmp_path: Path) -> None:
    operators(name, list(FIRST), tmp_path)


@pytest.mark.sweep
@pytest.mark.sample(4)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", ["aarch64-i8mm", "riscv64"])
def test_every_case_of_every_operator(name: str, part: int, tmp_path: Path) -> None:
    operators(name, range(part, len(USED), 4), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "data"), each_once(["aarch64-dotprod", "aarch64-clang"], ["int8", "uint8"]))
def test_bytes_are_multiplied_four_at_once(name: str, data: str, tmp_path: Path) -> None:
    machine = needed(name)
    attrs = 'kernel_size=[3, 3], channels=24, padding=[1, 1, 1, 1], out_dtype="int32"'
    mod = parsed(f"""#[version = "0.0.5"]
    def @main(%x: Tensor[(1, 20, 9, 9), {data}], %w: Tensor[(24, 20, 3, 3), int8]) {{
      qnn.conv2d(%x, %w, {5 if data == "uint8" else -5}, 0, 0.5f, 0.25f, {attrs}) }}""")
    rng, ends = np.random.default_rng(2), np.iinfo(data)
    x, w = rng.integers(ends.min, ends.max + 1, (1, 20, 9, 9)), rng.integers(-128, 128, (24, 20, 3, 3))
    given = {"x": x.astype(data), "w": w.astype("int8")}
    assert "sdot" in emit(mod, "asm", ["w"], options=machine.options)
    made = compile_module(mod, machine.target, {"w": given["w"]})
    np.testing.assert_array_equal(run(machine, made, tmp_path, x=given["x"]), evaluate(mod, **given))


#: Types of data and weights, the weights' zero point, and the instruction.
SQUARES = [
    ("int8", "int8", 0, "smmla"),
    ("uint8", "int8", 0, "usmmla"),
    ("uint8", "uint8", 0, "ummla"),
    ("uint8", "uint8", 128, "usmmla"),
]
#: height, width, inputs, outputs, kernel: rows in pairs and odd ones, sums of eight and others
PIXELS = [(9, 9, 20, 24, 3), (1, 1, 64, 40, 1), (5, 7, 3, 5, 3), (7, 7, 16, 33, 1), (1, 3, 300, 8, 1)]


@pytest.mark.sweep
@pytest.mark.parametrize("pixels", few(PIXELS, PIXELS[0]))
@pytest.mark.parametrize("kinds", few(SQUARES, *SQUARES[:2]))
def test_bytes_are_multiplied_in_squares(kinds: tuple[str, str, int, str], pixels: tuple[int, ...], tmp_path: Path) -> None:
    (data, weight, weight_zero, instruction), (height, width, inputs, outputs, k) = kinds, pixels
    machine = needed("aarch64-i8mm")
    mod = parsed(f"""#[version = "0.0.5"]
    def @main(%x: Tensor[(1, {height}, {width}, {inputs}), {data}], %w: Tensor[({k}, {k}, {inputs}, {outputs}), {weight}]) {{
      qnn.conv2d(%x, %w, 5, {weight_zero}, 0.5f, 0.25f, kernel_size=[{k}, {k}], channels={outputs}, data_layout="NHWC",
                 padding=[{k // 2}, {k // 2}, {k // 2}, {k // 2}], kernel_layout="HWIO", out_dtype="int32") }}""")
    rng = np.random.default_rng(2)
    x, w = (
        np.where(rng.random(shape) < 0.3, np.iinfo(t).min, rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, shape)).astype(t)
        for shape, t in (((1, height, width, inputs), data), ((k, k, inputs, outputs), weight))
    )
    assert f"\t{instruction}\t" in emit(mod, "asm", ["w"], options=machine.options)
    made = compile_module(mod, machine.target, {"w": w})
    np.testing.assert_array_equal(run(machine, made, tmp_path, x=x), evaluate(mod, x, w))


@pytest.mark.sweep
@pytest.mark.parametrize("name", few(["aarch64", "aarch64-clang", "armv7"], "aarch64"))
@pytest.mark.parametrize(
    "kinds",
    few(
        [("int16", "int8", "int64"), ("int16", "int16", "int64"), ("int16", "int16", "int32"), ("uint8", "int8", "int32")],
        ("int16", "int16", "int64"),
    ),
)
def test_short_integers_are_multiplied_as_they_are(name: str, kinds: tuple[str, str, str], tmp_path: Path) -> None:
    (data, weight, result), machine = kinds, needed(name)
    mod = parsed(f"""#[version = "0.0.5"]
    def @main(%x: Tensor[(1, 9, 9, 31), {data}], %w: Tensor[(3, 3, 31, 24), {weight}]) {{
      qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.25f, kernel_size=[3, 3], channels=24, padding=[1, 1, 1, 1], data_layout="NHWC",
                 kernel_layout="HWIO", out_dtype="{result}") }}""")
    rng = np.random.default_rng(2)
    x, w = (
        np.where(rng.random(shape) < 0.5, np.iinfo(t).min, rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, shape)).astype(t)
        for shape, t in (((1, 9, 9, 31), data), ((3, 3, 31, 24), weight))
    )
    if name != "aarch64-clang" or "int8" not in kinds:  # that one has sdot
        assert ("vmlal" if name == "armv7" else "smlal") in emit(mod, "asm", ["w"], options=machine.options)
    made = compile_module(mod, machine.target, {"w": w})
    np.testing.assert_array_equal(run(machine, made, tmp_path, x=x), evaluate(mod, x, w))


@pytest.mark.sample(4)
@pytest.mark.parametrize("machine", few(["native", *LEVELS], "native", "x86-64-v3"))
@pytest.mark.parametrize("zero", [-5, 300])
def test_zero_points_that_the_data_cannot_have(zero: int, machine: str) -> None:
    if machine != "native" and not this_machine().startswith("x86_64"):
        pytest.skip("this machine is no x86-64")
    mod = parsed(f"""#[version = "0.0.5"]
    def @main(%x: Tensor[(1, 20, 9, 9), uint8], %w: Tensor[(24, 20, 3, 3), int8]) {{
      qnn.conv2d(%x, %w, {zero}, 0, 0.5f, 0.25f, kernel_size=[3, 3], channels=24, padding=[1, 1, 1, 1], out_dtype="int32") }}""")
    rng = np.random.default_rng(2)
    x, w = rng.integers(0, 256, (1, 20, 9, 9)).astype("uint8"), rng.integers(-128, 128, (24, 20, 3, 3)).astype("int8")
    made = compile_module(mod, f"c -mcpu={machine}", {"w": w})
    if isinstance(made, ForeignArtifact):
        pytest.skip(f"this machine is no {machine}")
    np.testing.assert_array_equal(made.run(x), evaluate(mod, x, w))


@pytest.mark.parametrize("name", few(MACHINES, "aarch64"))
def test_a_small_network(name: str, tmp_path: Path) -> None:
    machine, mod, given = needed(name), parsed(NETWORK), values()
    made = compile_module(mod, machine.target, {n: given[n] for n in "wdv"})
    compare(run(machine, made, tmp_path, x=given["x"]), evaluate(mod, **given))


@pytest.mark.sweep
@needs_shared
@pytest.mark.parametrize(
    ("name", "net"),
    list(zip(["aarch64", "aarch64-i8mm", "armv7", "riscv64", "riscv64-vectors"], ["mlp", "lstm", "dqn", "synthetic", "squeezenet"])),
)
def test_a_network(name: str, net: str, tmp_path: Path) -> None:
    machine = needed(name)
    mod = module(next(p for p in golden("typed") if p.name.startswith(f"{net}.")))
    given = random_params(7, mod["main"].params)
    first, *weights = given
    made = compile_module(mod, machine.target, {w: given[w] for w in weights})
    compare(run(machine, made, tmp_path, **{first: given[first]}), evaluate(mod, *given.values()))


#: A triple, how its library begins, and the end of its name in a `.tar`.
LIBRARIES = {
    "aarch64-macos": (b"\xcf\xfa\xed\xfe", "model.dylib"),
    "x86_64-windows-gnu": (b"MZ", "model.dll"),
    "aarch64-linux-musl": (b"\x7fELF", "model.so"),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("triple", few(LIBRARIES))
def test_zig_makes_libraries_of_other_systems(triple: str, threads: int, tmp_path: Path) -> None:
    if not toolchain._zig():
        pytest.skip("zig is not installed: pip install 'relaylang[zig]'")
    begin, member = LIBRARIES[triple]
    mod, given = parsed(NETWORK), values()
    made = compile_module(mod, f"c -mtriple={triple} -cc=zig -num-threads={threads}", {n: given[n] for n in "wdv"})
    assert isinstance(made, ForeignArtifact) and made.library.startswith(begin)
    assert made.manifest["machine"] in triple.replace("-gnu", "")
    for name in (b"relay_about", b"relay_prepare", b"relay_run", b"relay_close"):
        assert name in made.library
    made.save(tmp_path / "net.tar")
    assert member in read_sealed((tmp_path / "net.tar").read_bytes(), "net.tar")
    made.save(tmp_path / "net.library")
    for name in ("net.tar", "net.library"):
        with pytest.raises(RelayError, match=f"compiled for {made.manifest['machine']}, and this machine is {this_machine()}"):
            load(tmp_path / name)


@pytest.mark.sweep
def test_zig_compiles_for_this_machine() -> None:
    if not toolchain._zig():
        pytest.skip("zig is not installed: pip install 'relaylang[zig]'")
    mod, given = parsed(NETWORK), values()
    compare(compile_module(mod, "c -cc=zig", {n: given[n] for n in "wdv"}).run(given["x"]), evaluate(mod, **given))


@pytest.mark.parametrize("level", few(LEVELS))
def test_levels_of_x86(level: str) -> None:
    if not this_machine().startswith("x86_64"):
        pytest.skip("this machine is no x86-64")
    mod, given = parsed(NETWORK), values()
    made = compile_module(mod, f"llvm -mcpu={level}", {n: given[n] for n in "wdv"})
    if isinstance(made, ForeignArtifact):
        pytest.skip(f"this machine is no {level}")
    compare(made.run(given["x"]), evaluate(mod, **given))
