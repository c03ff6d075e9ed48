"""Other machines: targets for them, and emulators that run their programs."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu.toolchain import find_toolchain, parse_triple
from relaylang.backends.registry import parse_target
from relaylang.diagnostics import RelayError
from relaylang.runtime.features import this_machine
from relaylang.runtime.manifest import read
from tests.shared import PATIENCE

DRIVER = Path(__file__).parent / "driver.c"


@dataclass(frozen=True)
class Machine:
    """A target, the compiler that must be there, and the emulator's command with the folder of its system's libraries."""

    target: str
    compiler: str
    emulator: tuple[str, ...]

    @property
    def options(self) -> Mapping[str, Any]:
        return parse_target(self.target)[0].options

    def folder(self) -> Path:
        """Where Debian keeps the libraries of programs for it."""
        found = parse_triple(self.options["mtriple"])
        return Path("/usr") / f"{found.processor}-{found.system}-{found.environment}"


def _cross(triple: str, emulator: str, flags: str = "", compiler: str = "") -> Machine:
    compiler = compiler or f"{triple.replace('armv7l', 'arm')}-gcc"
    return Machine(f"c -mtriple={triple} -cross-compiler={compiler} {flags}".strip(), compiler, tuple(emulator.split()))


_ARM64, _ARM, _RISCV = "aarch64-linux-gnu", "armv7l-linux-gnueabihf", "riscv64-linux-gnu"
_VECTORS = "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128"
MACHINES: dict[str, Machine] = {
    "aarch64": _cross(_ARM64, "qemu-aarch64 -cpu cortex-a53"),
    "aarch64-dotprod": _cross(_ARM64, "qemu-aarch64 -cpu cortex-a76", "-mcpu=cortex-a76"),
    "aarch64-i8mm": _cross(_ARM64, "qemu-aarch64 -cpu max", "-mattr=+v8.6a"),
    "aarch64-sve": _cross(_ARM64, "qemu-aarch64 -cpu max", "-mattr=+v8.2a,+sve"),
    "aarch64-clang": _cross(_ARM64, "qemu-aarch64 -cpu cortex-a76", "-mcpu=cortex-a76", "clang"),
    "aarch64-zig": _cross(_ARM64, "qemu-aarch64 -cpu cortex-a76", "-mcpu=cortex-a76", "zig"),
    "armv7": _cross(_ARM, "qemu-arm -cpu cortex-a8", "-mattr=+neon"),
    "armv7-vfp4": _cross(_ARM, "qemu-arm -cpu cortex-a7", "-mattr=+neon,+vfp4"),
    "armv7-scalar": _cross(_ARM, "qemu-arm -cpu cortex-a8"),
    "armv7-clang": _cross(_ARM, "qemu-arm -cpu cortex-a8", "-mattr=+neon", "clang"),
    "riscv64": _cross(_RISCV, "qemu-riscv64"),
    "riscv64-vectors": _cross(_RISCV, _VECTORS, "-mattr=+v", "clang"),
    # qemu 7.2 ends with a failed assertion in code that zig makes with -mattr=+v.
    "riscv64-zig": _cross(_RISCV, "qemu-riscv64", "", "zig"),
}


@cache
def _absent(machine: Machine) -> str:
    """What lacks for a machine's programs to run here; "" where nothing does."""
    if shutil.which(machine.emulator[0]) is None:
        return f"{machine.emulator[0]} is not installed"
    if machine.compiler != "zig" and shutil.which(machine.compiler) is None:
        return f"{machine.compiler} is not installed"
    if not machine.folder().is_dir():
        return f"{machine.folder()} is not installed"
    try:
        find_toolchain(machine.options)
    except RelayError as wrong:
        return wrong.diagnostics[0].title
    return ""


def needed(name: str) -> Machine:
    """A machine whose compiler and emulator are here; the test skips where they are not."""
    machine = MACHINES[name]
    if machine.options["mtriple"].partition("-")[0] == this_machine().partition("-")[0]:
        pytest.skip("this machine is of the kind; other tests run on it")
    why = _absent(machine)
    if why:
        pytest.skip(why)
    return machine


@cache
def driver(machine: Machine) -> bytes:
    """The program that runs libraries of a machine."""
    tools = find_toolchain(machine.options)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "driver"
        command = [*tools.command, *tools.flags, "-O1", "-o", str(program), str(DRIVER), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return program.read_bytes()


def run(machine: Machine, artifact: Any, folder: Path, threads: int = 2, **inputs: Any) -> Any:
    """What a program for another machine gives, under its emulator."""
    found = read(artifact.manifest)
    params = [np.ascontiguousarray(artifact.params[name]) for name, _ in found.params]
    given = []
    for name, _, path in found.inputs:
        value = inputs[name]
        for index in path:
            value = value[index]
        given.append(np.ascontiguousarray(value))
    outputs = [np.empty(shape, dtype) for shape, dtype in found.outputs]
    head = [found.fixed, found.arena, threads, len(params), len(given), len(outputs)]
    head += [array.nbytes for array in (*params, *given, *outputs)]
    (folder / "input").write_bytes(b"".join([struct.pack(f"<{len(head)}q", *head), *(a.tobytes() for a in (*params, *given))]))
    (folder / "net.so").write_bytes(artifact.library)
    (folder / "driver").write_bytes(driver(machine))
    (folder / "driver").chmod(0o755)
    command = [*machine.emulator, "-L", str(machine.folder()), str(folder / "driver"), *("net.so", "input", "output")]
    command[-3] = str(folder / "net.so")
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=2 * PATIENCE)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    content, at = (folder / "output").read_bytes(), 0
    for array in outputs:
        array[...] = np.frombuffer(content[at : at + array.nbytes], array.dtype).reshape(array.shape)
        at += array.nbytes
    assert at == len(content)

    def shaped(structure: Any) -> Any:
        return outputs[structure] if isinstance(structure, int) else tuple(shaped(item) for item in structure)

    return shaped(found.structure)
