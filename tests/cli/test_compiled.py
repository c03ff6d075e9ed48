"""`relay run` of compiled programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.cli import main

NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %p: (int32, (float32, float32)), %w: Tensor[(3), float32]) {
  (add(%x, %w), %p.0, add(%p.1.0, %p.1.1))
}
"""


@pytest.fixture
def net(tmp_path: Path, capsys: Any) -> str:
    (tmp_path / "net.relay").write_text(NET)
    np.savez(tmp_path / "w.npz", w=np.float32([1, 2, 3]))
    path = str(tmp_path / "net.so")
    assert main(["compile", str(tmp_path / "net.relay"), "--params", str(tmp_path / "w.npz"), "-o", path]) == 0
    capsys.readouterr()
    return path


def called(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    status = main(["run", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_inputs_come_as_for_texts(net: str, tmp_path: Path, capsys: Any) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 3), "f4"))
    status, out, err = called(capsys, net, "--input", f"x={tmp_path / 'x.npy'}", "--input", "p=(1, (2f, 3f))")
    assert (status, err) == (0, "")
    assert "[1. 2. 3.]" in out and "1 : int32" in out and "5.0 : float32" in out
    np.savez(tmp_path / "in.npz", x=np.ones((2, 3), "f4"))
    out_file = str(tmp_path / "out.npz")
    assert called(capsys, net, "--params", str(tmp_path / "in.npz"), "--input", "p=(1, (2f, 3f))", "-o", out_file)[0] == 0
    with np.load(out_file) as found:
        assert found["output_0"].tolist() == [[2, 3, 4]] * 2 and found["output_2"] == 5
    same = called(capsys, net, "--random-params", "0")
    assert same == called(capsys, net, "--random-params", "0") and same[0] == 0


def test_fill_gives_zeros_and_ones(net: str, tmp_path: Path, capsys: Any) -> None:
    values = ["--input", "p=(1, (2f, 3f))"]
    assert "[2. 3. 4.]" in called(capsys, net, *values, "--fill", "ones")[1]
    assert "[1. 2. 3.]" in called(capsys, net, *values, "--fill", "zeros")[1]
    assert "[2. 2. 2.]" in called(capsys, str(tmp_path / "net.relay"), *values, "--fill", "ones")[1]


def test_measuring_and_threads(net: str, capsys: Any) -> None:
    status, out, _ = called(capsys, net, "--random-params", "0", "--benchmark", "--repeat", "2", "--threads", "1")
    assert status == 0 and "Execution time summary" in out
    status, _, err = called(capsys, net, "--random-params", "0", "--profile")
    assert status != 0 and "-profile" in err


@pytest.mark.parametrize(
    "options", [["-e", "1"], ["--entry", "f"], ["--target", "c"], ["--trace"], ["--input", "y=1"], ["--input", "x=1"], []]
)
def test_calls_that_do_not_fit(options: list[str], net: str, capsys: Any) -> None:
    status, _, err = called(capsys, net, *options)
    assert status != 0 and "error[R" in err and "Traceback" not in err


def test_damaged_files(net: str, tmp_path: Path, capsys: Any) -> None:
    content = Path(net).read_bytes()
    (tmp_path / "cut.so").write_bytes(content[:-100])
    (tmp_path / "none.tar").write_bytes(b"\0" * 257 + b"ustar" + b"\0" * 600)
    for name in ("cut.so", "none.tar"):
        status, _, err = called(capsys, str(tmp_path / name), "--random-params", "0")
        assert status != 0 and "R0641" in err


@pytest.mark.parametrize(("target", "status"), [("c", 2), ("ethos-u, c", 1)])
def test_npu_only_wants_an_npu(net: str, tmp_path: Path, capsys: Any, target: str, status: int) -> None:
    """A misuse without one; with one, each operation on the host is an error."""
    made = tmp_path / "net.tar"
    ran = main(["compile", str(tmp_path / "net.relay"), "--target", target, "--npu-only", "-o", str(made)])
    said = capsys.readouterr().err
    assert ran == status and not made.exists()
    assert ("--npu-only goes with target ethos-u" in said) == (status == 2)


@pytest.mark.parametrize(
    ("options", "name", "makes"),
    [
        (["--target", "c"], "net.c", "--emit c or --runtime aot writes C"),
        ([], "NET.RELAY", "the result is a library or a .tar"),
        (["--runtime", "vm"], "net.txt", "--runtime vm writes a compiled program"),
        (["--emit", "c"], "net.so", "--emit c writes text"),
    ],
)
def test_an_ending_of_another_format_is_refused(tmp_path: Path, capsys: Any, options: list[str], name: str, makes: str) -> None:
    (tmp_path / "net.relay").write_text(NET)
    assert main(["compile", str(tmp_path / "net.relay"), *options, "-o", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert "R0700" in said and f"{name} has the ending of another format" in said and makes in said
    assert [p.name for p in tmp_path.iterdir()] == ["net.relay"]


def test_endings_of_the_format_are_taken(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "net.relay").write_text(NET)
    for options, name in ((["--emit", "c"], "net.c"), (["--runtime", "vm"], "net.vm"), (["--runtime", "aot"], "aot.c")):
        assert main(["compile", str(tmp_path / "net.relay"), *options, "-o", str(tmp_path / name)]) == 0, capsys.readouterr().err
        assert (tmp_path / name).exists()
