"""The file in which the parser's tables are kept, and directories in which none can be kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relaylang.backends.cpu import cache
from relaylang.syntax import tables
from tests.shared import few


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """As a user whom modes bind: root, as whom the tests may run, may write everywhere."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory below which another user may reach files."""
    place = Path(tempfile.mkdtemp(prefix="relay-cache-"))
    place.chmod(0o755)
    yield place
    for folder in place.iterdir():
        folder.chmod(0o700)
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def tables_of_lark() -> dict[str, Any]:
    return tables.build()


@pytest.fixture(autouse=True)
def built_once(tables_of_lark: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lark takes seconds, and always makes the same tables."""
    monkeypatch.setattr(tables, "build", lambda: tables_of_lark)


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform == "win32", reason="modes of directories are those of Unix")
@pytest.mark.parametrize("mode", few([0o000, 0o555, 0o300, 0o400], 0o555))
def test_a_cache_directory_without_rights(open_place: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_place / "cache"
    folder.mkdir()
    (folder / "objects").mkdir()
    if os.getuid() == 0:
        os.chown(folder, 65534, 65534)
    folder.chmod(mode)
    monkeypatch.setenv("RELAYLANG_CACHE", str(folder))
    grammar, version = tables.grammar_text(), tables._lark_version()  # they may lie where the other user cannot read
    monkeypatch.setattr(tables, "grammar_text", lambda: grammar)
    monkeypatch.setattr(tables, "_lark_version", lambda: version)
    with without_rights():
        assert tables.load()["rules"]
        cache.store("0" * 64, b"content")
        assert cache.cached("1" * 64) is None
    folder.chmod(0o700)
    assert not [f for f in folder.rglob("*") if f.is_file() and (f.suffix != ".json" or mode != 0o300)]


def test_a_disk_that_fills_up_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path))

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert tables.load()["rules"]
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("RELAYLANG_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert tables.load()["rules"]
    assert cache.cached("0" * 64) is None
    cache.store("0" * 64, b"content")
