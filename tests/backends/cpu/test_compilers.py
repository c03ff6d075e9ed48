"""The C with other compilers: gcc and clang without warnings, flags and paths of every kind, other processors."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c, lower_module, toolchain
from relaylang.backends.cpu.isa import GENERIC
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.runtime.artifact import load
from relaylang.syntax import parse
from tests.shared import few

#: Convolutions, products, a window, a softmax, quantised arithmetic and halves.
NETWORK = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 12, 12), float32], %w: Tensor[(20, 3, 3, 3), float32], %d: Tensor[(20, 1, 3, 3), float32],
          %v: Tensor[(10, 20), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=20, kernel_size=[3, 3]));
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 1, 1]);
  %2 = nn.conv2d(%1, %d, padding=[1, 1, 1, 1], groups=20, channels=20, kernel_size=[3, 3]);
  %3 = nn.softmax(nn.dense(nn.batch_flatten(nn.global_avg_pool2d(%2)), %v, units=10));
  %4 = qnn.quantize(%3, 0.01f, 3, out_dtype="int8");
  %5 = sum(floor_mod(cast(multiply(%v, 64f), dtype="int32"), 7), axis=[1]);
  (%3, %4, %5, tanh(exp(multiply(cast(%5, dtype="float32"), 0.01f))), argmax(%0, axis=[1]))
}
"""
ADD = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { add(%x, %x) }
"""
HALVES = """#[version = "0.0.5"]
def @main(%x: Tensor[(33), float16], %y: Tensor[(33), float64]) { add(multiply(%x, %x), cast(%y, dtype="float16")) }
"""


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    return found


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = {"x": (1, 3, 12, 12), "w": (20, 3, 3, 3), "d": (20, 1, 3, 3), "v": (10, 20)}
    return {name: (rng.standard_normal(shape) / 4).astype("float32") for name, shape in shapes.items()}


def compare(ours: Any, wanted: Any) -> None:
    for a, b in zip(ours, wanted):
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        else:
            assert np.abs(a.astype(int) - b.astype(int)).max() <= (b.dtype == np.int8)


def compiler(name: str) -> str:
    if shutil.which(name) is None and not (name == "zig" and toolchain._zig()):
        pytest.skip(f"{name} is not installed")
    return name


@pytest.mark.sample(2)
@pytest.mark.parametrize("isa", few(["generic", "avx2", "avx512"], "generic"))
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_the_c_has_no_warnings(name: str, isa: str, tmp_path: Path) -> None:
    command = [compiler(name), "-O2", "-Wall", "-Wextra", "-c", "-o", str(tmp_path / "out.o")]
    if isa != "generic":
        command += {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mfma"]}[isa]
        probe = subprocess.run([*command, "-x", "c", "/dev/null"], capture_output=True)
        if probe.returncode:
            pytest.skip(f"{name} has no {isa} here")
    source = tmp_path / "net.c"
    source.write_text(emit_c(module(NETWORK), ["w", "d", "v"], isa=isa, options={"num-threads": 2}))
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["gcc", "clang", pytest.param("zig", marks=pytest.mark.sweep)])
def test_values_are_the_interpreters(name: str) -> None:
    mod, given = module(NETWORK), values()
    artifact = compile_module(mod, f"c -cc={compiler(name)} -cflags=-O1", {n: given[n] for n in "wdv"})
    compare(artifact.run(given["x"]), evaluate(mod, **given))


@pytest.mark.parametrize("name", ["gcc", "clang", "zig"])
def test_halves_are_rounded_once(name: str) -> None:
    name = compiler(name)
    x = np.linspace(-2, 2, 33).astype("float16")
    # Beside the middle of two halves, where a float32 lies in the middle itself.
    y = 1 + 2.0**-11 + np.linspace(-1, 1, 33) * 2.0**-40
    y[:4] = np.inf, 65520 - 1e-9, 70000, -1e-30
    ours = compile_module(module(HALVES), f"c -cc={name} -cflags=-O1").run(x, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(ours, x * x + y.astype("float16"))


def test_several_flags_and_quotes() -> None:
    artifact = compile_module(module(NETWORK), r"""c -cflags="-O1 -DA='x y' -DB=\"a b\"" """)
    compare(artifact.run(**values()), evaluate(module(NETWORK), **values()))
    with pytest.raises(RelayError, match="a quote is not closed in the flags") as caught:
        compile_module(module(NETWORK), "c", options={"cflags": "-O1 'x"})
    assert caught.value.diagnostics[0].code == "R0602"


@pytest.mark.sample(2)
@pytest.mark.parametrize("folder", few(["a b", 'a"b', "a'b", "a\\b", "a\\", "@a", "-a", "ä\tb"], "a b", 'a"b'))
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_folders_with_odd_names(name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / folder
    odd.mkdir()
    monkeypatch.setenv("RELAYLANG_CACHE", str(odd / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    wrapper = odd / "my cc"
    wrapper.write_text(f'#!/bin/sh\nexec {compiler(name)} "$@"\n')
    wrapper.chmod(0o755)
    options = {"cc": str(wrapper), "cflags": "-O0"}
    artifact = compile_module(module(ADD), "c", options=options)
    assert artifact.run(np.ones(4, "float32")).tolist() == [2, 2, 2, 2]
    artifact.save(odd / "net.so")
    assert load(odd / "net.so").run(np.ones(4, "float32")).tolist() == [2, 2, 2, 2]


#: Processor: the compiler's command, and what runs its programs.
MACHINES = {
    "i386": (["i686-linux-gnu-gcc", "-msse2", "-mfpmath=sse"], []),
    "armhf": (["arm-linux-gnueabihf-gcc", "-mfpu=neon"], ["qemu-arm", "qemu-arm-static"]),
    "aarch64": (["aarch64-linux-gnu-gcc"], ["qemu-aarch64", "qemu-aarch64-static"]),
    "riscv64": (["riscv64-linux-gnu-gcc"], ["qemu-riscv64", "qemu-riscv64-static"]),
    "ppc64": (["powerpc64-linux-gnu-gcc"], ["qemu-ppc64", "qemu-ppc64-static"]),
}
HARNESS = r"""
#include <stdio.h>
#include <stdlib.h>
static void show(const void* data, long count, int size, int real) {
  for (long i = 0; i < count; i++) {
    if (real) printf("%.9g ", ((const float*)data)[i]);
    else printf("%ld ", size == 1 ? (long)((const int8_t*)data)[i] : (long)((const int32_t*)data)[i]);
  }
  printf("\n");
}
int main(void) {
  char* const fixed = aligned_alloc(64, FIXED + 64);
  char* const arena = aligned_alloc(64, ARENA + 64);
  relay_prepare(params, fixed, arena);
  relay_run(inputs, results, params, fixed, arena, 2);
  shown();
  relay_close();
  return 0;
}
"""


def harness(given: dict[str, np.ndarray], wanted: Any) -> str:
    """The C of a program that runs the network on fixed values and prints its results."""
    mod, bound = module(NETWORK), ["w", "d", "v"]
    text = emit_c(mod, bound, isa="generic", options={"num-threads": 2})
    program = lower_module(mod, "main", bound, GENERIC)
    parts = [text]

    def table(name: str, array: np.ndarray) -> str:
        kinds = {"float32": "float", "int32": "int32_t", "int8": "int8_t", "float64": "double", "int64": "int64_t"}
        numbers = ", ".join(float(v).hex() if array.dtype.kind == "f" else str(v) for v in array.ravel().tolist())
        parts.append(f"static const {kinds[array.dtype.name]} {name}[] __attribute__((aligned(64))) = {{{numbers}}};")
        return name

    inputs = [table(f"in_{n}", given[n]) for n, *_ in program.inputs]
    params = [table(f"param_{n}", given[n]) for n, _ in program.params]
    for number, value in enumerate(wanted):
        parts.append(f"static char result_{number}[{max(value.nbytes, 1)}] __attribute__((aligned(64)));")
    for name, places in (("inputs", inputs), ("params", params)):
        parts.append(f"static const void* const {name}[] = {{{', '.join([*places, 'NULL'])}}};")
    parts.append(f"static void* const results[] = {{{', '.join(f'result_{n}' for n in range(len(wanted)))}}};")
    lines = [f"show(result_{n}, {v.size}, {v.itemsize}, {int(v.dtype.kind == 'f')});" for n, v in enumerate(wanted)]
    sizes = {"ARENA": program.arena_bytes, "FIXED": program.fixed_bytes, "shown();": " ".join(lines)}
    main = re.sub(r"ARENA|FIXED|shown\(\);", lambda found: str(sizes[found[0]]), HARNESS)
    return "\n".join([*parts, main])


@pytest.mark.sweep
@pytest.mark.parametrize("machine", few(MACHINES, "aarch64"))
def test_other_processors_print_the_same_values(machine: str, tmp_path: Path) -> None:
    command, runners = MACHINES[machine]
    compiler(command[0])
    runner = [found for r in runners if (found := shutil.which(r))][:1]
    if runners and not runner:
        pytest.skip(f"{runners[0]} is not installed")
    mod, given = module(NETWORK), values()
    wanted = evaluate(mod, **given)
    source, program = tmp_path / "net.c", tmp_path / "net"
    source.write_text(harness(given, wanted))
    flags = ["-O2", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-static"]
    done = subprocess.run([*command, *flags, "-o", str(program), str(source), "-lm", "-lpthread"], capture_output=True, text=True)
    if done.returncode and ("No such file" in done.stderr or "cannot find" in done.stderr):
        pytest.skip(f"{' '.join(command)} has no C library")
    assert (done.returncode, done.stderr) == (0, "")
    printed = subprocess.run([*runner, str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [np.array(line.split(), v.dtype).reshape(v.shape) for line, v in zip(printed, wanted, strict=True)]
    compare(ours, wanted)
