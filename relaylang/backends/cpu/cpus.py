"""Processors and features as LLVM names them (`-mcpu`, `-mattr`), and the flags of gcc, clang and zig for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error

#: LLVM's names of processors for which gcc has others.
GCC_CPU = {
    "skx": "skylake-avx512",
    "slm": "silvermont",
    "knl": "knl",
    "emeraldrapids": "sapphirerapids",
    "athlon-tbird": "athlon",
    "k8-sse3": "opteron-sse3",
    "pentium-mmx": "pentium-mmx",
}
#: Names of no particular processor.
ANY = ("generic", "generic-rv64", "generic-rv32", "baseline")
#: x86: what all processors of 64 bits have, or what only orders instructions: compilers have no flags for it.
X86_SILENT = re.compile(
    r"64bit|cx8|cmov|nopl|x87|invpcid|ermsb|fsrm|macrofusion|branchfusion|idiv[ql]-to-div[bl]|"
    r"(slow|fast|false-deps|use|tuning|lea|pad|vzeroupper|harden|retpoline|lvi|sahf|prefer-mask)(-.*)?"
)
#: x86: features that others bring in LLVM, but not in gcc.
X86_BRINGS = {"avx512f": ("f16c", "fma")}
X86_FLAGS = {"prefer-256-bit": "-mprefer-vector-width=256", "prefer-128-bit": "-mprefer-vector-width=128"}
#: 64-bit Arm: gcc's and clang's names of features, "" for what every such processor has.
ARM64 = {
    "neon": "",
    "fp-armv8": "",
    "ras": "",
    "perfmon": "",
    "fullfp16": "fp16",
    "rdm": "rdma",
    "mte": "memtag",
    "spe": "profile",
    "rand": "rng",
    "predres": "predres",
    "crypto": "crypto",
    "crc": "crc",
}
#: 32-bit Arm: the first floating-point unit all of whose features are wanted.
ARM_FPU = (
    ({"fp-armv8", "crypto"}, "crypto-neon-fp-armv8"),
    ({"fp-armv8"}, "neon-fp-armv8"),
    ({"neon", "vfp4"}, "neon-vfpv4"),
    ({"neon"}, "neon"),
    ({"vfp4d16"}, "vfpv4-d16"),
    ({"vfp4"}, "vfpv4"),
    ({"vfp3d16"}, "vfpv3-d16"),
    ({"d16", "vfp3"}, "vfpv3-d16"),
    ({"vfp3"}, "vfpv3"),
    ({"vfp2"}, "vfp"),
)
#: 32-bit Arm: features of which nothing follows for the compiler's flags.
ARM_SILENT = {
    "d16",
    "d32",
    "thumb2",
    "hwdiv",
    "hwdiv-arm",
    "dsp",
    "strict-align",
    "vfp2",
    "vfp3",
    "vfp3d16",
    "vfp4",
    "vfp4d16",
    "neon",
    "fp-armv8",
    "crypto",
    "fp16",
    "thumb-mode",
    "soft-float",
    "noarm",
}
_ARM_PLUS = {"dotprod": "dotprod", "fullfp16": "fp16", "i8mm": "i8mm", "bf16": "bf16", "crc": "crc", "fp16fml": "fp16fml"}
_ARCH = re.compile(r"v(\d+(?:\.\d+)?)(-?[amr])?")


def wanted_features(text: str) -> list[tuple[str, bool]]:
    """The features of an `-mattr`, each with whether it is wanted: `+avx2,-fma`. Raises `RelayError` (R0602)."""
    out = []
    for word in text.replace(" ", "").split(","):
        if word:
            if word[0] not in "+-" or not word[1:]:
                notes = [f"write +{word} for a processor that has it, -{word} for one that has it not"]
                raise RelayError(error("R0602", f"option -mattr: `{word}` has no sign", notes=notes))
            out.append((word[1:], word[0] == "+"))
    return out


def _x86(cpu: str, features: Sequence[tuple[str, bool]], clang: bool) -> list[str]:
    flags = [] if not cpu else [f"-march={cpu if clang else GCC_CPU.get(cpu, cpu)}"]
    for name, wanted in features:
        if name in X86_FLAGS:
            flags += [X86_FLAGS[name]] if wanted else []
        elif not X86_SILENT.fullmatch(name):
            flags += [f"-m{n}" for n in X86_BRINGS.get(name, ()) if wanted] + [f"-m{'' if wanted else 'no-'}{name}"]
    return flags


def _arm64(cpu: str, features: Sequence[tuple[str, bool]], clang: bool) -> list[str]:
    arch, plus = "", ""
    for name, wanted in features:
        version = _ARCH.fullmatch(name)
        if version:
            arch = f"armv{version[1]}-{(version[2] or 'a').lstrip('-')}"
            continue
        name = ARM64.get(name, name)
        plus += f"+{'' if wanted else 'no'}{'rdm' if clang and name == 'rdma' else name}" if name else ""
    if cpu and not arch:
        return [f"-mcpu={cpu}{plus}"]
    flags = [f"-march={arch or 'armv8-a'}{plus}"] if arch or plus else []
    return [*flags, f"-mtune={cpu}"] if cpu else flags


def _arm(cpu: str, features: Sequence[tuple[str, bool]], processor: str) -> list[str]:
    """`processor` is the first word of a triple, which may have the version: armv7l."""
    named = [name for name, wanted in features if wanted]
    version = next((v for name in named if (v := _ARCH.fullmatch(name))), None) or re.search(r"v(\d+)()", processor)
    fpu = next((unit for needs, unit in ARM_FPU if needs <= set(named)), "")
    plus = "".join(f"+{_ARM_PLUS.get(n, n)}" for n in named if n not in ARM_SILENT and not _ARCH.fullmatch(n))
    if cpu:
        flags = [f"-mcpu={cpu}{plus}"]
    elif version or fpu or plus:
        number = version[1] if version else "8.2" if plus else "7"
        flags = [f"-march=armv{number}-a{'+fp' if not fpu and number == '7' else ''}{plus}"]
    else:
        flags = []
    return [*flags, f"-mfpu={fpu}"] if fpu else flags


def _riscv(cpu: str, features: Sequence[tuple[str, bool]], bits: str) -> list[str]:
    flags = [f"-mcpu={cpu}"] if cpu else []
    named = [name.removeprefix("experimental-") for name, wanted in features if wanted and name not in ("64bit", "relax")]
    if named:
        letters = "".join(c for c in "mafdcv" if c in {*"mafdc", *named})
        long = [n for n in named if len(n) > 1]
        flags.append("_".join([f"-march=rv{bits}i{letters}", *long]))
    return flags


def machine_flags(family: str, processor: str, word: str, cpu: str, mattr: str) -> list[str]:
    """The flags of a compiler (gcc, clang or zig) for a processor and features as LLVM names them.

    `processor` is the machine's, `word` the one of the triple. Raises `RelayError` (R0602).
    """
    features = wanted_features(mattr)
    cpu = "" if cpu in ANY else cpu
    if family == "zig":
        return zig_flags(cpu, features)
    if processor in ("x86_64", "i386"):
        return _x86(cpu, features, family == "clang")
    if processor == "aarch64":
        return _arm64(cpu, features, family == "clang")
    if processor == "arm":
        return _arm(cpu, features, word)
    if processor.startswith("riscv"):
        return _riscv(cpu, features, processor.removeprefix("riscv"))
    return [*([f"-mcpu={cpu}"] if cpu else []), *[f"-m{'' if wanted else 'no-'}{name}" for name, wanted in features]]


def zig_flags(cpu: str, features: Sequence[tuple[str, bool]] = ()) -> list[str]:
    """zig's flag for a processor and features: LLVM's names with underscores."""
    text = "".join(f"{'+' if wanted else '-'}{re.sub(r'[^A-Za-z0-9]', '_', name)}" for name, wanted in features)
    return [f"-mcpu={re.sub(r'[^A-Za-z0-9]', '_', cpu) or 'baseline'}{text}"]


def known_names(said: str) -> list[str]:
    """The names that a compiler lists when it does not know one. `said` is what it wrote."""
    listed = re.search(r"valid (?:arguments|target CPU values)[^:\n]*:(.*)", said)
    if listed:
        return re.split(r"[\s,]+", listed[1].split(";")[0].strip(" ,"))
    listed = re.search(r"^info: available (?:CPUs|CPU features)[^\n]*((?:\n .*)+)", said, re.M)
    return [line.split(":")[0].strip() for line in listed[1].strip().splitlines()] if listed else []


def unknown_processor(command: str, asked: str, said: str, known: Sequence[str], near: Any) -> RelayError:
    """The error of a compiler that refuses a processor or a feature; `near` finds the nearest of the known names."""
    known = known or known_names(said)
    words = [w for w in re.split(r"[+,=\s]+", asked) if w]
    bad = next((w for w in re.findall(r"[‘'`]([^’'`]+)[’'`]", said) if w.lstrip("-m") in words or w in words), "")
    notes = []
    for word in [bad.lstrip("-")] if bad else reversed(words):
        nearest = near(word, known)
        if nearest and nearest != word:
            notes.append(f"did you mean {nearest}?")
            break
    if known:
        notes.append(f"it knows: {', '.join(known)}")
    lines = [line.strip() for line in said.splitlines() if "error" in line]
    notes += [f"it said: {line[:300]}" for line in lines[:2]]
    if "zig" not in command:
        notes.append("a newer compiler may know it, for instance zig: `pip install 'relaylang[zig]'` and -cc=zig")
    return RelayError(error("R0602", f"the C compiler {command} does not know the processor of the target: {asked}", notes=notes))
