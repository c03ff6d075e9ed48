"""An application around a program of `compile_bare_metal`: built from its archive, run on this machine or in QEMU.

Arm's driver is the user's. Here a stand-in answers with results that the simulator gave before. It checks what it is given.
"""

from __future__ import annotations

import dataclasses
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.backends.aot.file import FLAGS
from relaylang.backends.bare_metal.npu import DRIVER
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.backends.ethosu.artifact import RegionCode
from tests.shared import PATIENCE, ROOT

BOARD = ROOT / "examples" / "bare_metal"
ARM = (
    "arm-none-eabi-gcc",
    "-mcpu=cortex-m55",
    "-mfloat-abi=hard",
    "--specs=rdimon.specs",
    "-T",
    str(BOARD / "an547.ld"),
    str(BOARD / "startup.c"),
)
QEMU = ("qemu-system-arm", "-M", "mps3-an547", "-nographic", "-semihosting", "-kernel")
HOST = ("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
_HEADER = """#include <stddef.h>
#include <stdint.h>
struct ethosu_driver;
int ethosu_invoke(struct ethosu_driver* drv, const void* commands, int size, uint64_t* base, const size_t* sizes, int count);
"""
_STAND_IN = """
struct part { int region, address, size; const unsigned char* content; };
struct call { int commands, count; const struct part *in, *out; int ins, outs; };
CALLS
int ethosu_invoke(struct ethosu_driver* drv, const void* commands, int size, uint64_t* base, const size_t* sizes, int count) {
  static int number;
  const struct call* call = &calls[number++];
  if (drv != (struct ethosu_driver*)&drv_home || size != call->commands || memcmp(commands, "COP1", 4)) return -1;
  if (count != call->count) return -1;
  for (int n = 0; n < count; n++)
    if (base[n] % 16 || (sizes[n] && !base[n])) return -1;
  for (int n = 0; n < call->ins; n++)
    if (memcmp((char*)(uintptr_t)base[call->in[n].region] + call->in[n].address, call->in[n].content, call->in[n].size)) return -1;
  for (int n = 0; n < call->outs; n++)
    memcpy((char*)(uintptr_t)base[call->out[n].region] + call->out[n].address, call->out[n].content, call->out[n].size);
  return 0;
}
"""


class Recorded(RegionCode):
    """A region that keeps what it was given and what it gave."""

    calls: list[tuple[RegionCode, list[np.ndarray], list[np.ndarray]]]

    def run(self, values: list[Any], executor: str = "tosa") -> list[np.ndarray]:
        results = super().run(values, executor)
        self.calls.append((self, values, results))
        return results


def record(program: MicroProgram, values: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """The result of a run here, and the calls of the NPU in it."""
    calls: list[Any] = []
    for name, code in list(program.regions.items()):
        recorded = Recorded(**{field.name: getattr(code, field.name) for field in dataclasses.fields(code)})
        object.__setattr__(recorded, "calls", calls)
        program.regions[name] = recorded
    return program.run(**values), calls


def _bytes(name: str, array: np.ndarray) -> str:
    return f"static const unsigned char {name}[] __attribute__((aligned(8))) = {{{', '.join(map(str, array.tobytes()))}}};"


def _stand_in(calls: Sequence[Any]) -> str:
    lines = ["static char drv_home;"]
    rows = []
    for number, (code, given, made) in enumerate(calls):
        for kind, values in (("in", given), ("out", made)):
            parts = []
            for n, (place, value) in enumerate(zip(code.details["driver"][f"{kind}puts"], values)):
                lines.append(_bytes(f"{kind}{number}_{n}", value))
                parts.append(f"{{{place['region']}, {place['address']}, {place['bytes']}, {kind}{number}_{n}}}")
            lines.append(f"static const struct part {kind}{number}[] = {{{', '.join(parts)}}};")
        memories = [code.details["driver"][m] for m in ("scratch", "scratch_fast")]
        count = max([code.details["driver"]["weights_region"], *(m["region"] for m in memories if m["bytes"])]) + 1
        rows.append(f"{{{len(code.command_stream)}, {count}, in{number}, out{number}, {len(given)}, {len(made)}}}")
    return _STAND_IN.replace("CALLS", "\n".join([*lines, f"static const struct call calls[] = {{{', '.join(rows)}}};"]))


def _main(program: MicroProgram, values: Mapping[str, Any], calls: Sequence[Any]) -> str:
    name, npu = program.name, bool(program.regions)
    lines = ["#include <stdio.h>", "#include <string.h>", f'#include "{name}.h"']
    lines += [f'#include "{DRIVER}"', _stand_in(calls)] if npu else []
    lines += [
        _bytes(f"given_{field}", np.asarray(values[relay], spec.dtype))
        for field, (relay, spec, _) in zip(program.fields[0], program.tensors)
    ]
    sizes = [f"{name}_{field}_size".upper() for field in program.fields[1]]
    lines += [f"static char {field}[{size}] __attribute__((aligned(8)));" for field, size in zip(program.fields[1], sizes)]
    lines += ["int main(void) {", f"  struct {name}_inputs inputs;", f"  struct {name}_outputs outputs;", "  int failed;"]
    lines += [f"  inputs.{field} = (void*)given_{field};" for field in program.fields[0]]
    lines += [f"  outputs.{field} = {field};" for field in program.fields[1]]
    lines += [f"  struct {name}_devices devices = {{&drv_home}};"] if npu else []
    lines += [
        f"  failed = {name}_run(&inputs, &outputs{', &devices' if npu else ''});",
        '  if (failed) { printf("failed %d\\n", failed); return 1; }',
    ]
    for field, size in zip(program.fields[1], sizes):
        lines.append(f'  for (int n = 0; n < {size}; n++) printf("%02x", (unsigned char){field}[n]);')
        lines.append('  printf("\\n");')
    return "\n".join([*lines, "  return 0;", "}", ""])


def printed(
    program: MicroProgram,
    values: Mapping[str, Any],
    calls: Sequence[Any],
    folder: Path,
    compiler: Sequence[str] = HOST,
    emulator: Sequence[str] = (),
) -> list[np.ndarray]:
    """What the application prints for its outputs."""
    program.save(folder / "net.tar")
    with tarfile.open(folder / "net.tar") as tar:
        tar.extractall(folder)
    (folder / DRIVER).write_text(_HEADER)
    (folder / "main.c").write_text(_main(program, values, calls))
    sources = ["main.c", *(str(path) for path in sorted((folder / "codegen/host/src").glob("*.c")))]
    command = [*compiler, *FLAGS.split(), "-I.", "-Icodegen/host/include", *sources, "-lm", "-o", "app"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*emulator, "./app"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = done.stdout.split()
    assert len(rows) == len(program.output_tensors), done.stdout
    specs = program.output_tensors.values()
    return [np.frombuffer(bytes.fromhex(row), spec.dtype).reshape(spec.shape) for row, spec in zip(rows, specs)]
