"""The vector helpers with every compiler at hand. Each compiles for each instruction set, to its own instruction.

Compilers differ in their names of instructions, and later clangs drop names that earlier ones have.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from relaylang.backends.cpu import toolchain
from relaylang.backends.cpu.fragments import fragments
from relaylang.runtime.features import this_machine
from relaylang.runtime.processes import run

pytestmark = pytest.mark.skipif(not this_machine().startswith("x86_64"), reason="the instructions are those of x86-64")

#: Functions of the helpers, and what the instruction of each is called.
USES = {
    "r_vf f(r_vf x, r_vf y, r_vf z) { return r_fma_vf(x, y, z); }": "vfmadd...ps",
    "r_vi f(r_vs x, r_vs y, r_vi z) { return r_dot_pair_vi(x, y, z); }": "vpmaddwd|vpdpwssd",
    "r_vi f(r_vuq x, r_vq y, r_vi z) { return r_dot_quad_vi(x, y, z); }": "",
    "r_vi f(const void* p) { return (r_vi)r_splat_quad_vq(p); }": "vpbroadcastd|vbroadcastss",
    "r_vf f(r_vbf x, r_vbf y, r_vf z) { return r_dot_bfloat_vf(x, y, z); }": "",
    "r_vi f(const int8_t* p) { return r_widen_i8(p); }": "vpmovsxbd",
    "r_vi f(const uint8_t* p) { return r_widen_u8(p); }": "vpmovzxbd",
    "r_vi f(const int16_t* p) { return r_widen_i16(p); }": "vpmovsxwd",
    "r_vi f(const uint16_t* p) { return r_widen_u16(p); }": "vpmovzxwd",
    "r_vl f(const uint16_t* p) { return r_widen_long_u16(p); }": "",
    "r_vi f(r_vi x, r_vi y) { return r_greater_vi(x, y); }": "vpmaxsd",
    "r_vi f(r_vi x, r_vi y) { return r_lesser_vi(x, y); }": "vpminsd",
    "r_vf f(r_vf x, r_vf y) { return r_greater_vf(x, y); }": "vmaxps",
    "r_vf f(r_vf x, r_vf y) { return r_lesser_vf(x, y); }": "vminps",
    "r_vf f(r_vf x) { return r_cut_vf(x); }": "vroundps|vrndscaleps",
    "r_vi f(r_vi x, r_vi y, r_vi z) { return r_high_vi(x, y, z); }": "vpmuldq",
    "void f(int8_t* p, r_vi x) { r_narrow_i8(p, x); }": "vpmovdb|vpacksswb",
    "void f(uint8_t* p, r_vi x) { r_saturated_u8(p, x); }": "vpmovusdb|vpackuswb",
    "void f(int16_t* p, r_vi x) { r_saturated_i16(p, x); }": "vpmovsdw|vpackssdw",
    "void f(uint16_t* p, r_vi x) { r_saturated_u16(p, x); }": "vpmovusdw|vpackusdw",
    "void f(int8_t* p, r_vi x, r_vi y) { r_saturated_pair_i8(p, x, y); }": "vpmovsdb|vpacksswb",
    "r_vf f(r_vf x, r_vf y) { return r_peak_vf(x, y); }": "vmaxps|vcmp\\w*ps",
    "r_vq f(r_vq x, r_vq y) { return r_peak_vq(x, y); }": "vpmaxsb",
    "r_vuq f(r_vuq x, r_vuq y) { return r_peak_vuq(x, y); }": "vpmaxub",
    "r_vf f(const uint16_t* p) { return r_read_half(p); }": "vcvtph2psx?",
    "void f(uint16_t* p, r_vf x) { r_write_half(p, x); }": "vcvtps2ph",
    "r_vi f(r_vi x, r_vi y, r_vi z) { return r_madd_vi(x, y, z); }": "vpmaddwd|vpdpwssd",
    "r_vf f(r_vf x) { return r_exp_vf(x); }": "vfmadd...ps",
}
#: Processors, and the lanes of their vectors. The first is one with AVX2.
PROCESSORS = {"haswell": 8, "alderlake": 8, "skylake-avx512": 16, "cascadelake": 16, "sapphirerapids": 16}


def command_of(name: str, processor: str) -> list[str]:
    if name == "zig":
        found = next(iter(toolchain._zig()), None)
        if found is None:
            pytest.skip("zig is not installed: pip install 'relaylang[zig]'")
        return [*found, f"-mcpu={processor.replace('-', '_')}"]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return [name, f"-march={processor}"]


@cache
def source(lanes: int) -> str:
    parts = fragments()
    wanted = [part.text for name, part in parts.items() if name not in ("r_site", "r_watch", "r_threads", "r_stamp", "r_peaks")]
    functions = [re.sub(r"\bf\(", f"use_{n}(", use, count=1) for n, use in enumerate(USES)]
    return "\n".join(
        [
            "#include <stdint.h>",
            "#include <string.h>",
            "#include <stdlib.h>",
            "#include <math.h>",
            f"#define R_LANES {lanes}",
            *wanted,
            *functions,
            "",
        ]
    )


CASES = [(name, p) for p in PROCESSORS for name in ("gcc", "clang", "zig")]


@pytest.mark.parametrize(
    ("name", "processor"), [pytest.param(*case, marks=[] if case[1] == "haswell" else [pytest.mark.sweep]) for case in CASES]
)
def test_each_helper_is_its_instruction(name: str, processor: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(source(PROCESSORS[processor]))
    flags = ["-O2", "-w", "-fno-math-errno", "-fno-strict-aliasing", "-fwrapv", "-S", "-o", "a.s", "a.c"]
    command = command_of(name, processor)
    if "error" in run([*command, "-E", "-x", "c", "/dev/null"], folder=str(tmp_path)).words():
        pytest.skip(f"{name} does not know {processor}")
    ended = run([*command, *flags], timeout=120, folder=str(tmp_path))
    assert ended.status == 0, ended.words()[:4000]
    text = (tmp_path / "a.s").read_text()
    starts = [(m.start(), int(m[1])) for m in re.finditer(r"^use_(\d+):", text, flags=re.M)]
    ends = [*(at for at, _ in starts[1:]), len(text)]
    bodies = {number: text[at:end] for (at, number), end in zip(starts, ends)}
    patterns = {use: rf"\b(?:{wanted})\b.*%[xyz]mm" for use, wanted in USES.items()}
    missing = [use for n, use in enumerate(USES) if USES[use] and not re.search(patterns[use], bodies[n])]
    assert missing == []
