"""`tvm.contrib.download`: files are fetched once, and a failure leaves nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from relaylang import RelayError
from relaylang.tvm.contrib.download import download, download_testdata


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A server of one file, `a.txt`."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.txt").write_text("first")
    server = HTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_is_fetched_once(site: str, tmp_path: Path) -> None:
    path = tmp_path / "new/a.txt"
    download(f"{site}/a.txt", path)
    assert path.read_text() == "first"
    path.write_text("other")
    download(f"{site}/a.txt", path)
    download(f"{site}/a.txt", path, size_compare=True)
    assert path.read_text() == "other", "a file of the same size stays"
    path.write_text("longer than the first")
    download(f"{site}/a.txt", path, size_compare=True)
    assert path.read_text() == "first"
    path.write_text("other")
    download(f"{site}/a.txt", path, overwrite=True)
    assert path.read_text() == "first"


def test_data_of_tests_have_a_folder(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_DATA_ROOT_PATH", str(tmp_path / "data"))
    found = download_testdata(f"{site}/a.txt", "b.txt", module=["net", "small"])
    assert found == str(tmp_path / "data/net/small/b.txt") and Path(found).read_text() == "first"


@pytest.mark.parametrize("name", ["missing.txt", "a b"])
def test_a_failure_leaves_nothing(site: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / "out/a.txt"
    with pytest.raises(RelayError, match="cannot fetch") as caught:
        download(f"{site}/{name}", path, retries=2)
    assert str(path) in str(caught.value) and not list(tmp_path.glob("out/*"))


def test_an_unreachable_host_is_said(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match=r"cannot fetch http://127.0.0.1:1/a: connection refused"):
        download("http://127.0.0.1:1/a", tmp_path / "a", retries=1)
    with pytest.raises(RelayError, match="cannot fetch"):
        download("no address", tmp_path / "a")
