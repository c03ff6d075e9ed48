"""Compilers that fail, archives with bad members, programs for other machines: each ends in one diagnostic."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.runtime import library
from relaylang.runtime.artifact import load, write_sealed
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.features import this_machine
from relaylang.syntax import parse

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) { nn.softmax(nn.dense(%x, %w, units=8)) }
"""
X, W = np.ones((4, 8), "f4"), np.ones((8, 8), "f4")


def network() -> IRModule:
    mod = parse(TEXT).module
    assert mod is not None
    return mod


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture(scope="module")
def artifact() -> CpuArtifact:
    made = compile_module(network(), "c -num-threads=1 -cflags=-O0", {"w": W})
    assert isinstance(made, CpuArtifact)
    return made


def refused(work: Callable[[], object], code: str) -> str:
    with pytest.raises(RelayError) as caught:
        work()
    assert [d.code for d in caught.value.diagnostics] == [code]
    return str(caught.value)


# Compilers


def compiler(place: Path, lines: str) -> str:
    """A compiler that answers what it is asked about itself, and then does something else."""
    script = place / "my-cc"
    real = shutil.which("cc") or "cc"
    asked = f'case "$*" in *-dM*|*--version*) exec {real} "$@";; esac'
    script.write_text(f'#!/bin/sh\n{asked}\nfor last; do :; done\nname=$(basename "$last")\n{lines}\n')
    script.chmod(0o755)
    return str(script)


def test_an_error_names_the_kernel_and_keeps_the_c(tmp_path: Path) -> None:
    find = "line=$(grep -n 'void kernel_' \"$last\" | grep '{$' | tail -1 | cut -d: -f1)"
    cc = compiler(tmp_path, f'{find}\necho "/x/$name:$((line + 1)):5: error: what is this?" >&2\nexit 1')
    said = refused(lambda: compile_module(network(), f"c -num-threads=1 -cc={cc}"), "R0631")
    assert "in the kernel kernel_" in said and "what is this?" in said
    (kept,) = tmp_path.glob("relay-failed-*.c")
    assert str(kept) in said and "relay_run" in kept.read_text()
    name = said.split("in the kernel ")[1].split()[0].rstrip(",")
    assert name in kept.read_text()


@pytest.mark.parametrize("lines", ["kill -9 $$", "exit 3", "exit 0", "echo '' >&2; exit 1"])
def test_a_compiler_that_ends_without_a_word_names_the_kernel(lines: str, tmp_path: Path) -> None:
    cc = compiler(tmp_path, lines)
    said = refused(lambda: compile_module(network(), f"c -num-threads=1 -cc={cc}"), "R0631")
    assert re.search(r"in the kernel .*kernel_\w+ \(nn.softmax", said) and "the C is kept in" in said


def test_a_linker_that_fails_says_why(tmp_path: Path) -> None:
    said = refused(lambda: compile_module(network(), "c -num-threads=1 -cflags=-lno-such-library"), "R0631")
    assert "no-such-library" in said and "in the kernel" not in said


def test_a_compiler_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    for name in (tmp_path / "text", tmp_path, tmp_path / "absent"):
        assert "R0630" in refused(lambda name=name: compile_module(network(), f"c -cc={name}"), "R0630")  # type: ignore[misc]
    assert refused(lambda: compile_module(network(), "c", options={"cross-compiler": ""}).run(1), "R0640")


# Archives


def archive(parts: dict[str, bytes], *more: tarfile.TarInfo, content: bytes = b"") -> bytes:
    """A sealed archive with further members, for which its checksums hold."""
    names = [*parts, *[m.name for m in more if m.isreg()]]
    data = {**parts, **{m.name: content for m in more if m.isreg()}}
    sums = "".join(f"{hashlib.sha256(data[name]).hexdigest()}  {name}\n" for name in dict.fromkeys(names))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, value in {**parts, "sha256sums": sums.encode()}.items():
            member = tarfile.TarInfo(name)
            member.size = len(value)
            tar.addfile(member, io.BytesIO(value))
        for member in more:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


BAD = {
    "up": member("../outside"),
    "up-inside": member("a/../../outside"),
    "here": member("./model.so"),
    "absolute": member("/etc/outside"),
    "windows": member("..\\outside"),
    "drive": member("C:outside"),
    "link": member("link", tarfile.SYMTYPE, "/etc/passwd"),
    "hard-link": member("link", tarfile.LNKTYPE, "manifest.json"),
    "folder": member("folder", tarfile.DIRTYPE),
    "device": member("device", tarfile.CHRTYPE),
    "pipe": member("pipe", tarfile.FIFOTYPE),
    "twice": member("model.c"),
    "escape": member("../\x1b[31mred"),
}


@pytest.mark.parametrize("name", BAD)
def test_members_that_leave_the_folder(name: str, artifact: CpuArtifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "open_library", None)  # nothing of it is loaded
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "net.tar"
    path.write_bytes(archive(artifact.packed().parts(), BAD[name], content=b"x"))
    before = sorted(tmp_path.rglob("*"))
    said = refused(lambda: load(path), "R0641")
    assert "in it" in said and "\x1b" not in said
    assert sorted(tmp_path.rglob("*")) == before and not Path("/etc/outside").exists()


def test_a_sparse_member_takes_no_memory(artifact: CpuArtifact) -> None:
    header = bytearray(archive(artifact.packed().parts())[:512])
    header[156:157] = tarfile.GNUTYPE_SPARSE
    # The real size, 2**60 bytes in base 256, and the checksum.
    header[483:495] = b"\x80" + (2**60).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    content = bytes(header) + archive(artifact.packed().parts())[512:]
    from relaylang.runtime import artifact as files

    assert "R0641" in refused(lambda: files.loads(content), "R0641")


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\x1f\x8b" + b"\0" * 50, b"PK\3\4", b"x" * 5000])
def test_other_files(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "net").write_bytes(content)
    assert "is not a compiled program" in refused(lambda: load(tmp_path / "net"), "R0641")
    assert "cannot read" in refused(lambda: load(tmp_path), "R0001")


def test_nothing_runs_before_the_checksums_are_right(artifact: CpuArtifact, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[bytes] = []
    monkeypatch.setattr(library, "open_library", lambda content: opened.append(content))
    parts = artifact.packed().parts()
    wrong = write_sealed(parts).replace(hashlib.sha256(parts["model.so"]).hexdigest().encode(), b"0" * 64)
    (tmp_path / "net.tar").write_bytes(wrong)
    assert "model.so is damaged" in refused(lambda: load(tmp_path / "net.tar"), "R0641")
    artifact.save(tmp_path / "net.so")
    content = bytearray((tmp_path / "net.so").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "net.so").write_bytes(content)
    assert "damaged" in refused(lambda: load(tmp_path / "net.so"), "R0641")
    assert opened == []


def test_another_architecture_under_this_name(artifact: CpuArtifact) -> None:
    """The manifest says this machine, and the library is for another: the system's loader refuses it."""
    name = "aarch64-linux-gnu" if not this_machine().startswith("aarch64") else "riscv64-linux-gnu"
    if shutil.which(f"{name}-gcc") is None:
        pytest.skip(f"{name}-gcc is not installed")
    other = compile_module(network(), f"c -num-threads=1 -mtriple={name} -cc={name}-gcc", {"w": W})
    said = refused(lambda: CpuArtifact(other.library, artifact.manifest, artifact.params, ""), "R0641")  # type: ignore[attr-defined]
    assert "cannot be loaded" in said


def test_the_command_reports_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.relay").write_text(TEXT)
    for options, code in [
        (["--cc", "/no/such/cc"], "R0630"),
        (["--cross-compiler", "/no/such/cc"], "R0630"),
        (["--target", "c -mtriple=nonsense"], "R0602"),
        (["--target", "c -mtriple=x86_64-linux/../../x"], "R0602"),
        (["--target", "llvm -mcpu=no-such-cpu"], "R0602"),
        (["--target", "llvm -mattr=avx2"], "R0602"),
        (["--cross-compiler-options='"], "R0602"),
        (["--cross-compiler-options=--no-such-flag"], "R0631"),
        (["--target", "lllvm"], "R0601"),
    ]:
        out = tmp_path / "net.so"
        assert main(["compile", str(tmp_path / "net.relay"), "-o", str(out), *options]) != 0
        said = capsys.readouterr().err
        assert f"error[{code}]" in said and "Traceback" not in said and not out.exists(), options
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]
