from __future__ import annotations

import errno
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from relaylang.cli import main
from relaylang.runtime import files
from relaylang.runtime.files import atomic_path, atomic_write, together


def test_text_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f"
    atomic_write(path, "é\n")
    assert path.read_bytes() == b"\xc3\xa9\n"
    atomic_write(path, b"\0\r\n")
    assert path.read_bytes() == b"\0\r\n"


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_modes_and_links_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "f", tmp_path / "l"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    atomic_write(link, "new")
    assert link.is_symlink() and path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    fresh = tmp_path / "g"
    atomic_write(fresh, "")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o666 & ~mask


def test_the_umask_is_never_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask belongs to the whole process: a file that another thread makes meanwhile would get no mask."""
    old = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda mask: pytest.fail("the umask is set"))
            atomic_write(tmp_path / "fresh", "")
            (tmp_path / "private").touch(0o600)
            with atomic_path(tmp_path / "private") as temporary:
                # At no time may more people read the content than may read the file.
                assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_what_is_no_regular_file_is_written_to(tmp_path: Path) -> None:
    atomic_write("/dev/null", "x")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError):
        atomic_write(tmp_path / "no" / "f", "x")
    with pytest.raises(OSError):
        atomic_write(tmp_path, "x")


def orphan(path: Path, age: float) -> Path:
    path.write_text("half")
    os.utime(path, (time.time() - age, time.time() - age))
    return path


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which a file's record changed cannot be set: what counts here is that of its content."""
    monkeypatch.setattr(files, "_NEW", -1.0)
    monkeypatch.setattr(files, "_looked_through", set())


def test_orphans_go_and_other_files_stay(tmp_path: Path, aged: None) -> None:
    fcntl = pytest.importorskip("fcntl")
    dead = orphan(tmp_path / ".net.so.0123456789ab.part", 100)
    others = [
        orphan(tmp_path / name, 1e6)
        for name in (
            "net.so.0123456789ab.part",
            ".net.so.0123456789ag.part",
            ".net.so.0123456789ab.par",
            ".0123456789ab.part",
            ".x.part",
        )
    ]
    (tmp_path / ".d.0123456789ab.part").mkdir()
    (tmp_path / ".l.0123456789ab.part").symlink_to(others[0])
    os.mkfifo(tmp_path / ".f.0123456789ab.part")
    alive = orphan(tmp_path / ".net.so.ba9876543210.part", 1e6)
    with open(alive) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        atomic_write(tmp_path / "new", "x")
    assert not dead.exists() and alive.exists() and all(path.exists() for path in others)
    assert {p.name for p in tmp_path.iterdir()} == {
        "new",
        alive.name,
        *(p.name for p in others),
        ".d.0123456789ab.part",
        ".l.0123456789ab.part",
        ".f.0123456789ab.part",
    }


def test_a_new_temporary_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_looked_through", set())
    path = orphan(tmp_path / ".net.so.0123456789ab.part", 0)
    atomic_write(tmp_path / "new", "x")
    assert path.exists()


def test_what_is_being_written_is_locked(tmp_path: Path, aged: None) -> None:
    with atomic_path(tmp_path / "a") as temporary:
        with atomic_path(tmp_path / "b"):
            files._looked_through.clear()
            atomic_write(tmp_path / "c", "x")
        assert temporary.exists()
        temporary.write_text("whole")
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b", "c"}
    assert (tmp_path / "a").read_text() == "whole"


def test_a_killed_process_leaves_a_file_that_the_next_one_removes(tmp_path: Path, aged: None) -> None:
    child = os.fork()
    if child == 0:
        with atomic_path(tmp_path / "a"):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 1
    files._looked_through.clear()
    atomic_write(tmp_path / "b", "x")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_content_and_name_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it gets its name, its folder afterwards."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"file of {os.fstat(handle).st_size}")
        fsync(handle)

    def renamed(*paths: Path) -> None:
        done.append("name")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    atomic_write(tmp_path / "a", "four")
    assert done == ["file of 4", "name", "folder"]
    done.clear()
    atomic_write(tmp_path / "a", "x", durable=False)
    assert done == ["name"]
    done.clear()
    with together():
        atomic_write(tmp_path / "a", "xx")
        atomic_write(tmp_path / "b", "xxx")
    assert done == ["file of 2", "file of 3", "name", "name", "folder"]


@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.parametrize("function", ["fsync", "replace", "link"])
def test_several_files_are_all_new_or_all_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int) -> None:
    names = ("a", "b", "c")
    (tmp_path / "a").write_text("old")
    original, calls = getattr(os, function), [0]

    def failing(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*arguments)

    monkeypatch.setattr(os, function, failing)
    try:
        with together():
            for name in names:
                atomic_write(tmp_path / name, "new")
    except OSError:
        assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old"}
    else:
        assert {p.name: p.read_text() for p in tmp_path.iterdir()} == dict.fromkeys(names, "new")


def test_a_failure_in_the_block_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt), together():
        atomic_write(tmp_path / "a", "new")
        with together():  # part of the one around it
            atomic_write(tmp_path / "b", "new")
        assert not (tmp_path / "b").exists()
        raise KeyboardInterrupt
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old"}


#: Calls that write several files, each with the name of one in TMP.
SEVERAL = [
    ["compile", "NET", "--runtime", "aot", "-o", "TMP/o.c"],
    ["compile", "NET", "--runtime", "aot", "-o", "TMP/"],
    ["export", "NET", "-o", "TMP/o.onnx", "--constants", "TMP/o.data"],
    ["opt", "NET", "--passes", "FoldConstant", "--viz", "TMP/o.html", "-o", "TMP/o.relay"],
]


@pytest.mark.parametrize("call", SEVERAL, ids=lambda call: f"{call[0]} {call[-1]}")
def test_a_full_disk_leaves_no_half_of_an_output(call: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up with each file in turn."""
    if call[0] == "export":
        pytest.importorskip("onnx")
    net, folder = tmp_path / "net.relay", tmp_path / "out"
    net.write_text("def @main(%x: Tensor[(2), float32]) { add(%x, 1f) }\n")
    folder.mkdir()
    words = [word.replace("NET", str(net)).replace("TMP", str(folder)) for word in call]
    fsync, calls = os.fsync, [0, 0]

    def full(handle: int) -> None:
        calls[0] += 1
        if calls[0] == calls[1]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    assert main(words) == 0
    written = {p.name for p in folder.iterdir()}
    assert len(written) > 1 and calls[0] == len(written) + 1  # and one for the folder
    for place in folder.iterdir():
        place.unlink()
    for number in range(1, len(written) + 1):
        calls[:] = [0, number]
        assert main(words) != 0
        assert list(folder.iterdir()) == []
