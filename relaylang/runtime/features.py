"""Machines that code is compiled for: processor and system (`aarch64-linux`), and the processor's features.

A feature has a name here, a macro of the compilers, and a word of Linux (/proc/cpuinfo).
"""

from __future__ import annotations

import os
import platform
import re
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Feature:
    """Instructions that a processor may have. Linux has their word from the version `since` on."""

    name: str
    macro: str
    word: str
    since: tuple[int, int] = (3, 0)


#: x86 features beyond x86-64 that compilers use on their own, or that kernels ask for.
X86 = (
    Feature("sse3", "__SSE3__", "pni"),
    Feature("ssse3", "__SSSE3__", "ssse3"),
    Feature("sse4.1", "__SSE4_1__", "sse4_1"),
    Feature("sse4.2", "__SSE4_2__", "sse4_2"),
    Feature("sse4a", "__SSE4A__", "sse4a"),
    Feature("popcnt", "__POPCNT__", "popcnt"),
    Feature("movbe", "__MOVBE__", "movbe"),
    Feature("lzcnt", "__LZCNT__", "abm"),
    Feature("bmi1", "__BMI__", "bmi1"),
    Feature("bmi2", "__BMI2__", "bmi2"),
    Feature("tbm", "__TBM__", "tbm"),
    Feature("xop", "__XOP__", "xop"),
    Feature("fma4", "__FMA4__", "fma4"),
    Feature("avx", "__AVX__", "avx"),
    Feature("f16c", "__F16C__", "f16c"),
    Feature("fma", "__FMA__", "fma"),
    Feature("avx2", "__AVX2__", "avx2"),
    Feature("gfni", "__GFNI__", "gfni", (4, 15)),
    Feature("avxvnni", "__AVXVNNI__", "avx_vnni", (5, 11)),
    Feature("avxifma", "__AVXIFMA__", "avx_ifma", (6, 2)),
    Feature("avxvnniint8", "__AVXVNNIINT8__", "avx_vnni_int8", (6, 2)),
    Feature("avxneconvert", "__AVXNECONVERT__", "avx_ne_convert", (6, 2)),
    Feature("avx512f", "__AVX512F__", "avx512f"),
    Feature("avx512cd", "__AVX512CD__", "avx512cd"),
    Feature("dq", "__AVX512DQ__", "avx512dq", (4, 4)),
    Feature("bw", "__AVX512BW__", "avx512bw", (4, 4)),
    Feature("vl", "__AVX512VL__", "avx512vl", (4, 4)),
    Feature("avx512ifma", "__AVX512IFMA__", "avx512ifma", (4, 4)),
    Feature("vbmi", "__AVX512VBMI__", "avx512vbmi", (4, 6)),
    Feature("vbmi2", "__AVX512VBMI2__", "avx512_vbmi2", (4, 15)),
    Feature("vnni", "__AVX512VNNI__", "avx512_vnni", (4, 15)),
    Feature("avx512bitalg", "__AVX512BITALG__", "avx512_bitalg", (4, 15)),
    Feature("avx512vpopcntdq", "__AVX512VPOPCNTDQ__", "avx512_vpopcntdq", (4, 12)),
    Feature("avx512bf16", "__AVX512BF16__", "avx512_bf16", (5, 3)),
    Feature("avx512fp16", "__AVX512FP16__", "avx512_fp16", (5, 11)),
    Feature("avx512er", "__AVX512ER__", "avx512er"),
    Feature("amx-tile", "__AMX_TILE__", "amx_tile", (5, 11)),
    Feature("amx-int8", "__AMX_INT8__", "amx_int8", (5, 11)),
    Feature("amx-bf16", "__AMX_BF16__", "amx_bf16", (5, 11)),
)
#: Those of Arm. 64-bit processors always have NEON (Linux: `asimd`) and fused products.
ARM = (
    Feature("fma", "__ARM_FEATURE_FMA", "asimd|vfpv4"),
    Feature("fp16", "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC", "asimdhp", (4, 6)),
    Feature("dotprod", "__ARM_FEATURE_DOTPROD", "asimddp", (4, 16)),
    Feature("i8mm", "__ARM_FEATURE_MATMUL_INT8", "i8mm", (5, 7)),
    Feature("bf16", "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC", "bf16", (5, 7)),
    Feature("lse", "__ARM_FEATURE_ATOMICS", "atomics", (4, 3)),
    Feature("rdm", "__ARM_FEATURE_QRDMX", "asimdrdm", (4, 12)),
    Feature("sve", "__ARM_FEATURE_SVE", "sve", (4, 15)),
    Feature("sve2", "__ARM_FEATURE_SVE2", "sve2", (5, 2)),
)
#: Those of RISC-V; Linux lists letters in `isa`.
RISCV = (Feature("v", "__riscv_vector", "v", (6, 5)),)


#: Names of features, each once.
NAMES = tuple(dict.fromkeys(feature.name for feature in (*X86, *ARM, *RISCV)))
#: Processors by the macros that all their compilers have, and systems likewise, the first that fits.
PROCESSORS = {
    "__x86_64__": "x86_64",
    "__i386__": "i386",
    "__aarch64__": "aarch64",
    "__arm__": "arm",
    "__powerpc64__": "powerpc64",
    "__powerpc__": "powerpc",
    "__s390x__": "s390x",
    "__mips__": "mips",
    "__loongarch64": "loongarch64",
    "__wasm32__": "wasm32",
}
SYSTEMS = {
    "__ANDROID__": "android",
    "__linux__": "linux",
    "__APPLE__": "macos",
    "_WIN32": "windows",
    "__FreeBSD__": "freebsd",
}
#: Other spellings, from `platform` and from target triples.
_PROCESSOR = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64", "arm64e": "aarch64", "ppc64": "powerpc64"}
_SYSTEM = {"darwin": "macos", "win32": "windows", "cygwin": "windows"}


def _defined(macros: str) -> dict[str, str]:
    return dict(re.findall(r"^#define (\w+)(?: (.*))?$", macros, re.M))


def announced(macros: str) -> frozenset[str]:
    """The features that a compiler's predefined macros announce (`cc -dM -E`)."""
    defined = _defined(macros)
    table = table_of(machine_of(macros))
    return frozenset(feature.name for feature in table if feature.macro in defined)


def table_of(machine: str) -> tuple[Feature, ...]:
    """The features that a machine's processor may have."""
    processor = machine.partition("-")[0]
    if processor in ("x86_64", "i386"):
        return X86
    return ARM if processor in ("aarch64", "arm") else RISCV if processor.startswith("riscv") else ()


def machine_of(macros: str) -> str:
    """The machine that a compiler's predefined macros announce: `x86_64-linux`, `arm-none`; "" without macros."""
    defined = _defined(macros)
    if not defined:
        return ""
    processor = next((name for macro, name in PROCESSORS.items() if macro in defined), "unknown")
    if "__riscv" in defined:
        processor = f"riscv{defined.get('__riscv_xlen', '64')}"
    if defined.get("__BYTE_ORDER__") == "__ORDER_LITTLE_ENDIAN__" and processor.startswith(("powerpc", "mips")):
        processor += "le"
    return f"{processor}-{next((name for macro, name in SYSTEMS.items() if macro in defined), 'none')}"


def processor_named(name: str) -> str:
    """A processor as machines name it, from a triple's first word or from `platform`: `armv7l` is `arm`."""
    name = name.lower()
    if re.fullmatch(r"i[3-7]86|x86", name):
        return "i386"
    if re.fullmatch(r"(arm|thumb)(v[4-9]\w*|hf)?|armv8l", name):
        return "arm"
    return _PROCESSOR.get(name, name)


@cache
def this_machine() -> str:
    """The machine of this process, with `-musl` where Linux has that C library. A process of 32 bits has a processor of 32 bits."""
    processor = processor_named(platform.machine())
    if struct.calcsize("P") == 4:
        processor = {"x86_64": "i386", "aarch64": "arm"}.get(processor, processor)
    if processor.startswith("ppc"):
        processor = "powerpc" + processor[3:]
    system = "android" if hasattr(sys, "getandroidapilevel") else _SYSTEM.get(sys.platform, sys.platform)
    return f"{processor}-{system}{'' if system != 'linux' or _has_glibc() else '-musl'}"


def _has_glibc() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, OSError, ValueError):
        return False


@cache
def lacking(features: Iterable[str]) -> tuple[str, ...]:
    """Those of some features that this machine's processor does not have, as far as the system says."""
    try:
        text = _CPUINFO.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    lines = re.findall(r"^(flags|Features|isa)\s*:(.*)$", text, re.M)
    if not lines:
        return ()
    kind, said = lines[0]
    words = set(said.split())
    if kind == "isa":
        words = set(re.sub(r"^\s*rv\d+", "", said).partition("_")[0])
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    version = (int(release[1]), int(release[2])) if release else (0, 0)
    known = {f.name: f for f in table_of(this_machine()) if f.since <= version}
    return tuple(n for n in sorted(features) if n in known and not words & set(known[n].word.split("|")))


def machine_name(machine: str) -> str:
    """A machine where it is another than this process's; "" where it is this one."""
    return "" if machine in ("", this_machine()) else machine


def why_not(machine: str, features: frozenset[str]) -> str | None:
    """Why code for a machine with some features cannot run in this process; None where it can."""
    if machine_name(machine):
        return f"the program was compiled for {machine}, and this machine is {this_machine()}"
    missing = lacking(features)
    if missing:
        return f"the program was compiled for a processor with {', '.join(missing)}, which this machine lacks"
    return None


_CPUINFO = Path("/proc/cpuinfo")

__all__ = [
    "ARM",
    "NAMES",
    "RISCV",
    "X86",
    "Feature",
    "announced",
    "lacking",
    "machine_name",
    "machine_of",
    "processor_named",
    "this_machine",
    "why_not",
]
