"""Target strings as LLVM and TVM write them: the compiler's flags for them, and messages about wrong ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import toolchain
from relaylang.backends.cpu.cpus import known_names, machine_flags
from relaylang.backends.cpu.toolchain import find_toolchain, parse_triple
from relaylang.backends.registry import ignored_options, parse_target
from relaylang.backends.target import Target
from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.runtime.artifact import load
from relaylang.runtime.features import this_machine
from relaylang.runtime.packed import ForeignArtifact
from relaylang.syntax import parse


def network() -> IRModule:
    mod = parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4, 8), float32]) { nn.softmax(multiply(%x, 2f)) }').module
    assert mod is not None
    return mod


def said(target: str) -> str:
    with pytest.raises(RelayError) as caught:
        compile_module(network(), target)
    assert [d.code for d in caught.value.diagnostics] == ["R0602"]
    return str(caught.value)


#: Triple, -mcpu, -mattr, and the flags of gcc, clang and zig.
FLAGS = [
    ("x86_64-linux-gnu", "cascadelake", "+avx512f", "-march=cascadelake -mf16c -mfma -mavx512f", None, "-mcpu=cascadelake+avx512f"),
    ("x86_64-linux-gnu", "skx", "", "-march=skylake-avx512", "-march=skx", "-mcpu=skx"),
    ("x86_64-linux-gnu", "x86-64-v3", "-fma", "-march=x86-64-v3 -mno-fma", None, "-mcpu=x86_64_v3-fma"),
    ("x86_64-linux-gnu", "generic", "+sse4.1,+slow-3ops-lea,+64bit", "-msse4.1", None, "-mcpu=baseline+sse4_1+slow_3ops_lea+64bit"),
    ("x86_64-linux-gnu", "", "+avx2,+prefer-256-bit", "-mavx2 -mprefer-vector-width=256", None, "-mcpu=baseline+avx2+prefer_256_bit"),
    ("aarch64-linux-gnu", "cortex-a72", "+neon", "-mcpu=cortex-a72", None, "-mcpu=cortex_a72+neon"),
    ("aarch64-linux-gnu", "cortex-a76", "+dotprod,+fullfp16,-crypto", "-mcpu=cortex-a76+dotprod+fp16+nocrypto", None, None),
    (
        "aarch64-linux-gnu",
        "",
        "+v8.2a,+dotprod,+rdm",
        "-march=armv8.2-a+dotprod+rdma",
        "-march=armv8.2-a+dotprod+rdm",
        "-mcpu=baseline+v8_2a+dotprod+rdm",
    ),
    ("aarch64-linux-gnu", "cortex-a55", "+v8.2a", "-march=armv8.2-a -mtune=cortex-a55", None, None),
    ("armv7l-linux-gnueabihf", "", "+neon", "-march=armv7-a -mfpu=neon", None, "-mcpu=baseline+neon"),
    ("armv7a-linux-gnueabihf", "", "+neon,+vfp4,+thumb2", "-march=armv7-a -mfpu=neon-vfpv4", None, None),
    ("arm-linux-gnueabihf", "cortex-a53", "+neon,+fp-armv8", "-mcpu=cortex-a53 -mfpu=neon-fp-armv8", None, None),
    ("armv8l-linux-gnueabihf", "", "", "-march=armv8-a", None, None),
    ("arm-linux-gnueabihf", "", "", "", None, None),
    ("riscv64-unknown-linux-gnu", "sifive-u74", "", "-mcpu=sifive-u74", None, "-mcpu=sifive_u74"),
    ("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", "-march=rv64imafdcv", None, None),
    ("riscv64-unknown-linux-gnu", "", "+zba,+zbb,+64bit", "-march=rv64imafdc_zba_zbb", None, None),
    ("powerpc64le-linux-gnu", "pwr9", "+vsx", "-mcpu=pwr9 -mvsx", None, "-mcpu=pwr9+vsx"),
]


@pytest.mark.parametrize(("triple", "cpu", "mattr", "gcc", "clang", "zig"), FLAGS)
def test_flags_for_names_of_llvm(triple: str, cpu: str, mattr: str, gcc: str, clang: str | None, zig: str | None) -> None:
    found = parse_triple(triple)
    for family, wanted in {"gcc": gcc, "clang": gcc if clang is None else clang, "zig": zig}.items():
        if wanted is not None:
            assert machine_flags(family, found.processor, found.word, cpu, mattr) == wanted.split(), family


#: Triples, the machine, and zig's triple.
TRIPLES = {
    "x86_64-pc-linux-gnu": ("x86_64-linux", "x86_64-linux-gnu"),
    "amd64-linux-musl": ("x86_64-linux", "x86_64-linux-musl"),
    "i686-linux-gnu": ("i386-linux", "x86-linux-gnu"),
    "aarch64-linux": ("aarch64-linux", "aarch64-linux-gnu"),
    "arm64-apple-darwin20": ("aarch64-macos", "aarch64-macos"),
    "aarch64-macos": ("aarch64-macos", "aarch64-macos"),
    "arm64-linux-android": ("aarch64-android", "aarch64-linux-android"),
    "armv7a-linux-androideabi": ("arm-android", "arm-linux-androideabi"),
    "armv7l-linux-gnueabihf": ("arm-linux", "arm-linux-gnueabihf"),
    "riscv64-unknown-linux-gnu": ("riscv64-linux", "riscv64-linux-gnu"),
    "x86_64-w64-mingw32": ("x86_64-windows", "x86_64-windows-gnu"),
    "x86_64-pc-windows-msvc": ("x86_64-windows", "x86_64-windows-gnu"),
    "arm-none-eabi": ("arm-none", "arm-freestanding-eabi"),
}


@pytest.mark.parametrize(("text", "machine", "zig"), [(t, *found) for t, found in TRIPLES.items()])
def test_triples(text: str, machine: str, zig: str) -> None:
    found = parse_triple(text)
    assert (found.machine, found.zig) == (machine, zig)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aarch64", "names no system"),
        ("-linux-gnu", "no processor"),
        ("mipsy-linux-gnu", "no processor"),
        ("aarhc64-linux-gnu", "did you mean aarch64-linux-gnu?"),
        ("aarch64-lunix-gnu", "names no system"),
    ],
)
def test_triples_that_are_none(text: str, words: str) -> None:
    found = said(f"c -mtriple={text}")
    assert words in found and "aarch64-linux-gnu" in found


def test_options_of_tvm_are_read_and_noted() -> None:
    text = (
        "llvm -keys=arm_cpu,cpu -device=arm_cpu -libs=cblas,mkl -link-params=0 -opt-level=3 -jit=orcjit -fast-math -num-cores=4 "
        "-mattr=+v8.2a,+dotprod -mcpu=cortex-a76"
    )
    (target,) = parse_target(text)
    assert target.name == "c" and target.get("mattr") == "+v8.2a,+dotprod" and target.get("keys") == "arm_cpu,cpu"
    assert parse_target(str(target)) == [target]
    notes = ignored_options([target])
    assert [note.severity for note in notes] == ["note"] * 8
    assert "-num-cores of target c has no effect: -num-threads=N limits" in str(notes[-1])
    # Earlier versions had another name for the triple.
    assert parse_target("llvm -device=arm_cpu -target=aarch64-linux-gnu")[0].get("mtriple") == "aarch64-linux-gnu"
    assert [t.name for t in parse_target("ethos-u, llvm -keys=cpu, c")] == ["ethos-u", "c", "c"]
    with pytest.raises(RelayError, match="did you mean -mcpu"):
        parse_target("llvm -mcp=skylake")
    with pytest.raises(RelayError, match="has no option -keys"):
        parse_target("ethos-u -keys=cpu")


def test_a_target_in_json() -> None:
    found = parse_target(' {"kind": "llvm", "mcpu": "skylake", "mattr": ["+avx2", "-fma4"], "num-cores": 4, "host": {"kind": "c"}}')
    options = {"mcpu": "skylake", "mattr": "+avx2,-fma4", "num-cores": 4, "host": '{"kind": "c"}'}
    assert found == [Target("c", options)]
    for text, code in [
        ("{", "R0602"),
        ('{"mcpu": "x"}', "R0601"),
        ('{"kind": 3}', "R0601"),
        ('{"kind": "c", "mcp": 1}', "R0602"),
        ('{"kind": "llvmm"}', "R0601"),
        ('{"kind": "c", "num-threads": []}', "R0602"),
    ]:
        with pytest.raises(RelayError) as caught:
            parse_target(text)
        assert [d.code for d in caught.value.diagnostics] == [code]


def test_a_target_that_is_partitioned_for_alone() -> None:
    with pytest.raises(RelayError, match="a pattern table, and no compiler: relay partition --target dnnl"):
        parse_target("dnnl, c")


def test_features_have_signs() -> None:
    assert "write +avx2" in said("llvm -mattr=avx2")
    assert "`+` has no sign" in said("llvm -mattr=+avx2,+")


#: A compiler, a target, the name nearest to the wrong one, and a name that the compiler lists.
UNKNOWN = [
    ("gcc", "c -cc=gcc -mcpu=cascadelakee", "cascadelake", "skylake"),
    ("gcc", "c -cc=gcc -march=haswel", "haswell", "skylake"),
    ("gcc", "c -cc=gcc -mattr=+avx512", "-mavx512f", ""),
    ("clang", "c -cc=clang -mcpu=skylakee", "skylake", "haswell"),
    ("zig", "c -cc=zig -mcpu=skylakee", "skylake", "haswell"),
    ("aarch64-linux-gnu-gcc", "c -mtriple=aarch64-linux-gnu -cc=aarch64-linux-gnu-gcc -mcpu=cortex-a7z", "", "cortex-a72"),
    ("aarch64-linux-gnu-gcc", "c -mtriple=aarch64-linux-gnu -cc=aarch64-linux-gnu-gcc -mattr=+dotprodd", "dotprod", "i8mm"),
    ("clang", "c -mtriple=aarch64-linux-gnu -cc=clang -mcpu=cortex-a7z", "", "cortex-a72"),
    ("arm-linux-gnueabihf-gcc", "c -mtriple=arm-linux-gnueabihf -cc=arm-linux-gnueabihf-gcc -mcpu=cortex-a51", "", "cortex-a53"),
    ("riscv64-linux-gnu-gcc", "c -mtriple=riscv64-linux-gnu -cc=riscv64-linux-gnu-gcc -mcpu=sifive-x", "", ""),
]


@pytest.mark.parametrize(("name", "target", "near", "listed"), UNKNOWN)
def test_processors_that_the_compiler_does_not_know(name: str, target: str, near: str, listed: str) -> None:
    there = toolchain._zig() if name == "zig" else shutil.which(name)
    if not there or (name in ("gcc", "clang") and not this_machine().startswith("x86_64-linux")):
        pytest.skip(f"no {name} for it")
    found = said(target)
    assert "does not know the processor of the target" in found and near in found and listed in found


def test_lists_of_names() -> None:
    assert known_names("note: valid arguments to '-march=' switch are: core2 haswell; did you mean x?") == ["core2", "haswell"]
    assert known_names("note: valid target CPU values are: core2, haswell\n") == ["core2", "haswell"]
    assert known_names("info: available CPUs for architecture 'x86_64':\n core2\n haswell\nerror: x") == ["core2", "haswell"]
    assert known_names("error: nothing") == []


def test_a_triple_chooses_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_zig", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(RelayError, match="no C compiler for s390x-linux-gnu") as caught:
        find_toolchain({"mtriple": "s390x-linux-gnu"})
    assert caught.value.diagnostics[0].code == "R0630" and "relaylang[zig]" in str(caught.value)

    def script(name: str, *macros: str) -> None:
        lines = "\n".join(f"#define {macro} 1" for macro in macros)
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{lines}'\n")
        (tmp_path / name).chmod(0o755)
        toolchain.said_of.cache_clear()

    try:
        script("cc", "__x86_64__", "__linux__")
        assert find_toolchain({"mtriple": "x86_64-linux-gnu"}).command == ("cc",)
        # The one whose name fits compiles for another machine than its name says.
        script("s390x-linux-gnu-gcc", "__x86_64__", "__linux__")
        with pytest.raises(RelayError, match="no C compiler for s390x-linux-gnu"):
            find_toolchain({"mtriple": "s390x-linux-gnu"})
        script("s390x-linux-gnu-gcc", "__s390x__", "__linux__")
        assert find_toolchain({"mtriple": "s390x-ibm-linux-gnu"}).command == ("s390x-linux-gnu-gcc",)
        monkeypatch.setenv("CC", "my-cc --sysroot=/x")
        script("my-cc", "__s390x__", "__linux__")
        assert find_toolchain({"mtriple": "s390x-linux-gnu"}).command == ("my-cc", "--sysroot=/x")
        with pytest.raises(RelayError, match="cc compiles for x86_64-linux, not for s390x-linux"):
            find_toolchain({"mtriple": "s390x-linux-gnu", "cross-compiler": "cc"})
    finally:
        toolchain.said_of.cache_clear()


def test_zig_stands_in_for_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    if not toolchain._zig():
        pytest.skip("zig is not installed")
    (path, word) = toolchain.find_compiler(None)
    assert Path(path).name == "zig" and Path(path).is_absolute() and word == "cc"


#: A processor that this machine has not, by the system's word for it.
OTHER = "aarch64" if not this_machine().startswith("aarch64") else "riscv64"


@pytest.mark.sweep
def test_a_program_for_another_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{OTHER}-linux-gnu-gcc"
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    made = compile_module(network(), f"llvm -mtriple={OTHER}-linux-gnu -num-cores=2", options={"cc": name})
    assert isinstance(made, ForeignArtifact) and made.input_names == ["x"]
    both = f"compiled for {OTHER}-linux, and this machine is {this_machine()}"
    with pytest.raises(RelayError, match=both):
        made.run(np.zeros((4, 8), "f4"))
    for file in ("net.so", "net.tar"):
        made.save(tmp_path / file)
        with pytest.raises(RelayError, match=both) as caught:
            load(tmp_path / file)
        assert [d.code for d in caught.value.diagnostics] == ["R0641"]
    (tmp_path / "net.relay").write_text(network().astext())
    options = ["--target", f"llvm -mtriple={OTHER}-linux-gnu -device=x", "--cross-compiler", name]
    command = ["compile", str(tmp_path / "net.relay"), "-o", str(tmp_path / "again.so"), *options]
    assert main([*command, "--cross-compiler-options", "-O1 -DX='a b'"]) == 0
    assert "-device of target c has no effect" in capsys.readouterr().err
    with pytest.raises(RelayError, match=both):
        load(tmp_path / "again.so")
    assert main([*command, "--cross-compiler-options=--no-such-flag"]) == 1
    assert "--no-such-flag" in capsys.readouterr().err
