"""The instruction set of a compiler: its name, its width and its features."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from relaylang.backends.cpu.isa import from_macros

X86 = "#define __x86_64__ 1\n"


def test_features_come_from_macros() -> None:
    found = from_macros(X86 + "#define __AVX512F__ 1\n#define __AVX512BW__ 1\n#define __AVX512VNNI__ 1\n#define __AVX2__ 1\n")
    assert (found.name, found.lanes, found.features) == ("avx512", 16, {"avx512f", "avx2", "bw", "vnni"})
    assert from_macros(X86 + "#define __AVX2__ 1\n").name == "generic"
    assert from_macros(X86 + "#define __AVX2__ 1\n#define __FMA__ 1\n").name == "avx2"
    # A macro's name may begin as another's.
    assert "vnni" not in from_macros(X86 + "#define __AVX512VNNI__X 1\n").features
    arm = from_macros("#define __aarch64__ 1\n#define __ARM_NEON 1\n#define __ARM_FEATURE_DOTPROD 1\n")
    assert (arm.name, arm.features) == ("neon", {"dotprod"})
    assert from_macros("").features == frozenset()


def test_an_instruction_set_for_longer_elements_keeps_its_features() -> None:
    narrow = from_macros(X86 + "#define __AVX2__ 1\n#define __FMA__ 1\n#define __F16C__ 1\n")
    assert narrow.of("float64").features == narrow.features and narrow.of("float64").lanes == 4


#: Compiler, its flags, the instruction set, features that it has, and features that it lacks.
FLAGS = [
    ("gcc", "-march=cascadelake", "avx512", {"vnni", "bw", "f16c", "fma"}, {"avxvnni", "amx-int8", "avx512bf16"}),
    ("gcc", "-march=alderlake", "avx2", {"avxvnni", "f16c"}, {"vnni", "bw"}),
    ("gcc", "-march=sapphirerapids", "avx512", {"vnni", "avxvnni", "amx-int8", "amx-bf16", "avx512bf16"}, set()),
    ("gcc", "-march=x86-64-v3", "avx2", {"f16c", "fma"}, {"avxvnni"}),
    ("gcc", "-march=x86-64-v2", "generic", {"sse4.2"}, {"f16c", "fma"}),
    ("aarch64-linux-gnu-gcc", "-march=armv8-a", "neon", {"fma"}, {"dotprod", "i8mm"}),
    ("aarch64-linux-gnu-gcc", "-march=armv8.6-a", "neon", {"dotprod", "i8mm", "bf16"}, {"sve"}),
    ("arm-linux-gnueabihf-gcc", "-mfpu=neon", "neon", set(), {"fma", "dotprod"}),
    ("arm-linux-gnueabihf-gcc", "-mfpu=neon-vfpv4", "neon", {"fma"}, {"dotprod"}),
    ("riscv64-linux-gnu-gcc", "-march=rv64gc", "generic", set(), {"v", "fma"}),
]


@pytest.mark.parametrize(("name", "flags", "isa", "has", "lacks"), FLAGS)
def test_compilers_announce_features(name: str, flags: str, isa: str, has: set[str], lacks: set[str]) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([name, flags, "-dM", "-E", "-x", "c", "/dev/null"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{name} does not know {flags}")
    found = from_macros(done.stdout)
    assert found.name == isa and has <= found.features and not lacks & found.features
