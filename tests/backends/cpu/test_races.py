"""Kernels whose units run on several threads at once, under gcc's ThreadSanitizer."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu import emit_c, lower_module
from relaylang.backends.cpu.isa import BY_NAME
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.syntax import parse
from tests.backends.cpu.test_ops import USED, program

#: Calls the functions that the library exports on four threads, with what a file holds, and writes the outputs.
_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
static void* aligned(long n) { return aligned_alloc(64, (size_t)(n + 127) / 64 * 64); }
int main(int argc, char** argv) {
  static const long sizes[] = {SIZES 0};
  void* at[INS + PARAMS + OUTS + 1];
  FILE* file = fopen(argv[argc - 1], "rb");
  for (int n = 0; n < INS + PARAMS + OUTS; n++) {
    at[n] = aligned(sizes[n]);
    if (n < INS + PARAMS && fread(at[n], 1, sizes[n], file) != (size_t)sizes[n]) return 2;
  }
  char *fixed = aligned(FIXED), *arena = aligned(ARENA);
  const void* const* in = (void*)at;
  relay_prepare(in + INS, fixed, arena);
  for (int n = 0; n < 3; n++) relay_run(in, at + INS + PARAMS, in + INS, fixed, arena, 4);
  for (int n = INS + PARAMS; n < INS + PARAMS + OUTS; n++) fwrite(at[n], 1, sizes[n], stdout);
  relay_close();
  return 0;
}
"""
_FLAGS = ["-g", "-O1", "-w", "-fwrapv", "-fno-strict-aliasing", "-fsanitize=thread", "-DR_WAKE=1", "-DR_HAND=1"]


def _build(text: str, place: Path, flags: list[str]) -> subprocess.CompletedProcess[bytes]:
    (place / "net.c").write_text(text)
    # The sanitizer wants addresses where it expects them.
    command = ["gcc", *_FLAGS, *flags, "net.c", "-o", "net", "-lm", "-lpthread"]
    return subprocess.run(command, cwd=place, capture_output=True)


@functools.cache
def missing() -> str:
    """The reason to skip these tests, or "": not every gcc comes with the sanitizer."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            built = _build("int main(void) { return 0; }", Path(folder), [])
        except OSError:
            return "there is no gcc"
        if built.returncode != 0 or _run(Path(folder)).returncode != 0:
            return "gcc has no ThreadSanitizer that runs here"
    return ""


def _run(place: Path) -> subprocess.CompletedProcess[bytes]:
    options = {**os.environ, "TSAN_OPTIONS": "halt_on_error=0 exitcode=66"}
    return subprocess.run([str(place / "net"), str(place / "in")], env=options, capture_output=True)


def eager(source: str) -> str:
    """The C with every unit on its own, and time for each thread to take some."""
    call, least, half = "r_pool.kernel(r_pool.buffers, lo, hi);", "if (grain < least) grain = least;", "(end - lo) / 2"
    assert source.count(call) == source.count(least) == source.count(half) == 1
    units = "r_pool.share[r_pool.shares - 1].end"
    return source.replace(call, f"{call}\n    if ({units} < 400) usleep(100);").replace(least, "").replace(half, "0")


def described(source: str) -> dict[str, Any]:
    """What the library would say of itself."""
    text = source.partition("relay_about[] =")[2].partition(";\n\n")[0]
    return json.loads("".join(json.loads(line.strip().replace("\\?", "?")) for line in text.strip().splitlines()))


def under_sanitizer(mod: IRModule, values: dict[str, np.ndarray], place: Path) -> list[np.ndarray]:
    """The outputs of a program that was run under the sanitizer, which must have nothing to say."""
    if missing():
        pytest.skip(missing())
    isa = "avx2" if "avx2" in Path("/proc/cpuinfo").read_text() else "generic"
    source = emit_c(mod, isa=isa)
    about = described(source)
    constants = lower_module(mod, "main", (), BY_NAME[isa]).constants
    given = [np.ascontiguousarray(values[name]) for name, _, _ in about["inputs"]]
    given += [np.ascontiguousarray(constants[name]) for name, _ in about["params"]]
    outputs = [np.empty(shape, dtype) for shape, dtype in about["outputs"]]
    put = {
        "SIZES": "".join(f"{a.nbytes}, " for a in [*given, *outputs]),
        "INS": len(about["inputs"]),
        "PARAMS": len(about["params"]),
        "OUTS": len(outputs),
        "FIXED": about["fixed"],
        "ARENA": about["arena"],
    }
    main = _MAIN
    for name, value in put.items():
        main = main.replace(name, str(value))
    built = _build(eager(source) + main, place, ["-mavx2", "-mfma"] if isa == "avx2" else [])
    assert built.returncode == 0, built.stderr.decode()[:3000]
    (place / "in").write_bytes(b"".join(a.tobytes() for a in given))
    ran = _run(place)
    assert ran.returncode == 0, ran.stderr.decode()[:6000]
    at = 0
    for n, out in enumerate(outputs):
        outputs[n] = np.frombuffer(ran.stdout[at : at + out.nbytes], out.dtype).reshape(out.shape)
        at += out.nbytes
    return outputs


#: Lines and rows that no block's extent divides, so that the last block reaches back.
TAILS = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 5, 9, 61), float32], %w: Tensor[(18, 5, 3, 3), float32], %v: Tensor[(18, 5, 1, 1), float32],
          %y: Tensor[(1, 7, 7, 5), float32], %u: Tensor[(3, 3, 5, 18), float32], %a: Tensor[(61, 13), float32],
          %b: Tensor[(18, 13), float32], %d: Tensor[(1, 5, 3, 3), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=18, kernel_size=[3, 3]));
  %1 = nn.conv2d(%x, %v, channels=18, kernel_size=[1, 1]);
  %2 = nn.conv2d(%y, %u, channels=18, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
  %3 = nn.dense(%a, %b, units=18);
  %4 = tanh(nn.dense(%a, %b, units=18));
  %5 = nn.conv2d(%x, %w, strides=[1, 9], channels=18, kernel_size=[3, 3]);
  %6 = nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1]);
  %7 = sum(%x, axis=[1, 3]);
  (%0, %1, %2, %3, %4, %5, %6, %7, nn.softmax(%a), transpose(%x, axes=[0, 2, 3, 1]))
}
"""


@pytest.mark.sweep
def test_blocks_that_reach_back(tmp_path: Path) -> None:
    mod = parse(TAILS).module
    assert mod is not None
    rng = np.random.default_rng(0)
    values = {}
    for param in mod["main"].params:
        ty = param.type_annotation
        values[param.name_hint] = rng.standard_normal(ty.shape).astype(ty.dtype)
    found = under_sanitizer(mod, values, tmp_path)
    for ours, wanted in zip(found, evaluate(mod, **values)):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_every_lowering(tmp_path: Path, part: int) -> None:
    cases = list(enumerate(USED))[part::8]
    mod, values = program(cases)
    assert len(under_sanitizer(mod, values, tmp_path)) >= len(cases) > 100
