"""The table of real networks, and the places that they come from."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from tests.frontends import networks
from tests.frontends.networks import NETWORKS, PACKAGES, Absent, Network


@pytest.fixture
def toy(monkeypatch, tmp_path) -> Network:
    """A network of a package that is not installed; no folder has it."""
    content = b"weights"
    made = Network("relaylang-toy", "toy/net.onnx", len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(PACKAGES, made.package, "1.0")
    monkeypatch.setitem(NETWORKS, made.name, made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RELAY_DOWNLOAD", raising=False)
    monkeypatch.delenv("RELAY_NETWORKS", raising=False)
    _forget()
    yield made
    _forget()


def _forget() -> None:
    networks.read.cache_clear()
    networks._wheel.cache_clear()


def _wheel_with(folder: Path, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "relaylang_toy-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("toy/net.onnx", content)


def test_a_folder_of_wheels(toy, monkeypatch, tmp_path) -> None:
    with pytest.raises(Absent, match="RELAY_DOWNLOAD=1 downloads it"):
        networks.read(toy.name)
    _forget()
    monkeypatch.setenv("RELAY_NETWORKS", str(tmp_path / "wheels"))
    _wheel_with(tmp_path / "wheels", b"weights")
    assert networks.data(toy.name) == b"weights"
    assert networks.path(toy.name).read_bytes() == b"weights"


@pytest.mark.parametrize("content", [b"WEIGHTS", b"more weights"])
def test_another_content_is_refused(toy, monkeypatch, tmp_path, content: bytes) -> None:
    monkeypatch.setenv("RELAY_NETWORKS", str(tmp_path))
    _wheel_with(tmp_path, content)
    with pytest.raises(Absent):
        networks.read(toy.name)


def test_the_formats() -> None:
    assert [len(networks.names(ending)) for ending in (".onnx", ".tflite", ".jit")] == [9, 14, 1]
