from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from relaylang.runtime.files import atomic_path, atomic_write


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
