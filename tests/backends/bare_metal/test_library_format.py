"""Archives in TVM's Model Library Format: their files, how they are read again, and diagnostics of bad ones."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.bare_metal.library_format import save
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.runtime.artifact import load, loads, read_tar, write_sealed
from relaylang.runtime.params import parse_params
from relaylang.syntax import astext
from relaylang.typing import check
from tests.backends.bare_metal.test_applications import PLAIN, module
from tests.cli.command import relay

NET = """#[version = "0.0.5"]
def @main(%p: (Tensor[(2), int8], int32), %x: Tensor[(2, 3), float32], %w: Tensor[(3), float32]) {
  (add(%x, %w), cast(%p.0, dtype="int32"), %p.1)
}
"""
W = np.float32([1, 2, 3])
X = np.arange(6, dtype=np.float32).reshape(2, 3)
PAIR = (np.int8([4, -5]), np.int32(7))


def net(name: str = "default") -> MicroProgram:
    return compile_bare_metal(module(NET), "c", {"w": W}, name=name)


def archive(program: MicroProgram, folder: Path) -> bytes:
    program.save(folder / "net.tar")
    return (folder / "net.tar").read_bytes()


def test_the_archive_is_as_tvm_writes_it(tmp_path: Path) -> None:
    content = archive(net(), tmp_path)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = tar.getnames()
    assert [name for name in names if name.startswith("./")] == [
        "./metadata.json",
        "./manifest.json",
        "./runtime/README.md",
        "./codegen/host/src/default_lib0.c",
        "./codegen/host/include/tvmgen_default.h",
        "./parameters/default.params",
        "./src/default.relay",
    ]
    files = read_tar(content)
    metadata = json.loads(files["metadata.json"])
    assert metadata["version"] == 7 and list(metadata) == ["modules", "version"]
    default = metadata["modules"]["default"]
    ((main,), operators) = (default["memory"]["functions"][kind] for kind in ("main", "operator_functions"))
    assert main["inputs"] == {
        "p_0": {"dtype": "int8", "size": 2},
        "p_1": {"dtype": "int32", "size": 4},
        "x": {"dtype": "float32", "size": 24},
    }
    assert main["outputs"] == {
        "output0": {"dtype": "float32", "size": 24},
        "output1": {"dtype": "int32", "size": 8},
        "output2": {"dtype": "int32", "size": 4},
    }
    assert main["io_size_bytes"] == 66 and main["constants_size_bytes"] == 12 and main["device"] == 1
    header = files["codegen/host/include/tvmgen_default.h"].decode()
    assert f"#define TVMGEN_DEFAULT_WORKSPACE_SIZE {main['workspace_size_bytes']}\n" in header
    assert "#define TVMGEN_DEFAULT_OUTPUT0_SIZE 24\n" in header and "  void* p_0;" in header
    assert [set(entry) for entry in operators] == [{"function_name", "workspace"}] * len(operators)
    assert default["model_name"] == "default" and default["target"] == ["c"]
    assert default["executors"] == ["aot"] and default["style"] == "full-model"
    assert default["export_datetime"] == "1970-01-01 00:00:00Z"
    assert b"malloc" not in files["codegen/host/src/default_lib0.c"]
    np.testing.assert_array_equal(parse_params(files["parameters/default.params"])["w"], W)
    mod = module(NET)
    check(mod)
    assert files["src/default.relay"].decode() == astext(mod)
    assert archive(net(), tmp_path) == content


def test_an_archive_runs_again(tmp_path: Path) -> None:
    program = net()
    archive(program, tmp_path)
    again = load(tmp_path / "net.tar")
    right = evaluate(module(NET), PAIR, X, W)
    for each in (program, again, pickle.loads(pickle.dumps(again))):
        found = each.run(p=PAIR, x=X)
        assert all(map(np.array_equal, found, right))
    assert isinstance(again, MicroProgram)
    assert again.files == program.files and again.report() == program.report()
    again.save(tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "net.tar").read_bytes()
    program.save(tmp_path / "net.c")
    assert (tmp_path / "net.c").read_text() == program.source and (tmp_path / "tvmgen_default.h").exists()


def test_several_modules_link_with_each_other(tmp_path: Path) -> None:
    grow = compile_bare_metal(module(PLAIN), "c", name="Grow")
    save([net(), grow], tmp_path / "two.tar")
    with tarfile.open(tmp_path / "two.tar") as tar:
        tar.extractall(tmp_path)
    (tmp_path / "main.c").write_text("""#include "tvmgen_default.h"
        #include "tvmgen_grow.h"
        int main(void) { return tvmgen_default_run != 0 && tvmgen_grow_run != 0 ? 0 : 1; }""")
    sources = [str(path) for path in (tmp_path / "codegen/host/src").iterdir()]
    subprocess.run(["cc", "-Icodegen/host/include", "main.c", *sources, "-lm", "-o", "app"], cwd=tmp_path, check=True)
    subprocess.run(["sha256sum", "--check", "--quiet", "sha256sums"], cwd=tmp_path, check=True)
    with pytest.raises(RelayError, match="it holds 2 modules") as wrong:
        load(tmp_path / "two.tar")
    assert wrong.value.diagnostics[0].code == "R0641"
    for bad in ([], [net(), net()]):
        with pytest.raises(RelayError) as wrong:
            save(bad, tmp_path / "bad.tar")
        assert wrong.value.diagnostics[0].code == "R0603" and not (tmp_path / "bad.tar").exists()


def changed(files: dict[str, bytes], name: str, change: Callable[[Any], None]) -> bytes:
    record = json.loads(files[name])
    change(record)
    return write_sealed({**files, name: json.dumps(record).encode()})


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("manifest.json", lambda r: r.update(version=9), "its versions are 9 and 7, not 1 and 7"),
        ("metadata.json", lambda r: r.update(version=6), "its versions are 1 and 6"),
        ("metadata.json", lambda r: r.pop("version"), "its versions are 1 and null"),
        ("manifest.json", lambda r: r.update(modules={}), "it holds 0 modules"),
        ("manifest.json", lambda r: r["modules"]["default"].update(inputs=[1]), "inputs"),
        ("manifest.json", lambda r: r["modules"]["default"].update(structure=[0, 0]), "structure"),
        ("manifest.json", lambda r: r["modules"]["default"].update(files={}), "it lacks"),
        ("manifest.json", lambda r: r["modules"]["default"].update(workspace=1), "differ"),
        ("manifest.json", lambda r: r["modules"]["default"].update(regions=3), "`modules.default.regions` must be an object"),
        ("manifest.json", lambda r: r["modules"]["default"].update(fields=[["a"], []]), "fields"),
        ("manifest.json", lambda r: r["modules"]["default"].update(name="tvmgen_other"), "it lacks"),
    ],
)
def test_a_wrong_archive(name: str, change: Callable[[Any], None], says: str, tmp_path: Path) -> None:
    files = read_tar(archive(net(), tmp_path))
    files.pop("sha256sums")
    with pytest.raises(RelayError) as wrong:
        loads(changed(files, name, change), name="net.tar")
    assert [d.code for d in wrong.value.diagnostics] == ["R0641"] and says in str(wrong.value)


def test_a_damaged_archive(tmp_path: Path) -> None:
    content = archive(net(), tmp_path)
    files = read_tar(content)
    at = content.index(files["codegen/host/src/default_lib0.c"])
    for bad in (content[: len(content) // 2], content[:at] + b"X" + content[at + 1 :]):
        with pytest.raises(RelayError) as wrong:
            loads(bad, name="net.tar")
        assert wrong.value.diagnostics[0].code == "R0641"
    sums = dict(line.split("  ./")[::-1] for line in files["sha256sums"].decode().splitlines())
    assert sums["metadata.json"] == hashlib.sha256(files["metadata.json"]).hexdigest()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("ethos-u", "the last target must be c"),
        ("cmsis-nn, ethos-u, c", "in this order"),
        ("c, c", "targets in front of c"),
        ("c, ethos-u", "the last target must be c"),
        ("ethos-u, ethos-u, c", "each once"),
        ("c -num-threads=2", "one thread"),
        ("c -profile", "keeps no times"),
    ],
)
def test_wrong_targets(target: str, says: str) -> None:
    with pytest.raises(RelayError, match=says) as wrong:
        compile_bare_metal(module(NET), target)
    assert wrong.value.diagnostics[0].code == "R0602"


def test_a_modules_name_is_one_of_c() -> None:
    for name in ("", "a b", "../a", "1a"):
        with pytest.raises(RelayError, match="is no name in C"):
            net(name)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.relay").write_text("def @main(%x: Tensor[(3), float32]) { add(%x, 1f) }")
    file, target = str(tmp_path / "net.relay"), str(tmp_path / "net.tar")
    done = relay(capsys, "compile", file, "--runtime", "bare-metal", "--module-name", "kws", "-o", target)
    assert done.status == 0 and "workspace: " in done.out
    assert "codegen/host/include/tvmgen_kws.h" in read_tar(Path(target).read_bytes())
    done = relay(capsys, "run", target, "--fill", "ones")
    assert done.status == 0 and done.out.startswith("[2. 2. 2.]"), done.err
    for arguments, says in (
        (("--module-name", "x"), "goes with --runtime bare-metal"),
        (("--runtime", "bare-metal", "--static-memory"), "goes with --runtime aot"),
    ):
        done = relay(capsys, "compile", file, *arguments, "-o", target)
        assert done.status != 0 and says in done.err
    done = relay(capsys, "compile", file, "--runtime", "bare-metal", "-o", str(tmp_path / "net.so"))
    assert done.status != 0 and "C goes to FILE.c" in done.err
    done = relay(capsys, "run", target, "--executor", "ethosu-sim", "--fill", "ones")
    assert done.status != 0 and "is for programs compiled for an Ethos-U" in done.err


def test_the_npu_of_an_archive_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    pool = module("def @main(%x: Tensor[(1, 4, 8, 8), int8]) { nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]) }")
    program = compile_bare_metal(pool, "ethos-u, c")
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 8, 8)).astype("i1")
    files = read_tar(archive(program, tmp_path))
    again = load(tmp_path / "net.tar")
    assert isinstance(again, MicroProgram)
    for executor in ("tosa", "ethosu-sim"):
        again.executor = executor
        np.testing.assert_array_equal(again.run(x), evaluate(pool, x))
    (source,) = (text.decode() for name, text in files.items() if name.endswith("_lib1.c"))
    assert source.count("ethosu_invoke(") == 1 and "malloc" not in source
    (stream,) = (name for name in files if name.endswith(".npu.bin"))
    files.pop("sha256sums")
    (tmp_path / "bad.tar").write_bytes(write_sealed({**files, stream: files[stream][:-4] + b"\0\0\0\0"}))
    bad = load(tmp_path / "bad.tar")
    with pytest.raises(RelayError, match="commands that it does not have"):
        bad.run(x)
    done = relay(capsys, "disasm", str(tmp_path / "net.tar"))
    assert done.status == 0 and "ethos-u55-256" in done.out and "OP_POOL" in done.out
