"""PNG pictures from the command line: by a package, by a browser, or a diagnostic."""

from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.viz import as_png, as_svg, graph_of
from relaylang.viz.png import _by_package, rasterised
from tests.cli.command import relay as command
from tests.viz.browser import chromium
from tests.viz.test_viz import SKIP, chain, checked

needs_browser = pytest.mark.skipif(chromium() is None, reason="chromium is not on this machine")
needs_package = pytest.mark.skipif(importlib.util.find_spec("resvg_py") is None, reason="resvg-py is not installed")


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_without_package_and_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(RelayError, match=r"R0770.*\n.*relaylang\[png\]"):
        as_png(graph_of(checked(SKIP)))


@pytest.mark.sweep
@needs_browser
def test_by_a_browser(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    (tmp_path / "net.relay").write_text(SKIP)
    out = tmp_path / "net.png"
    assert command(capsys, "viz", tmp_path / "net.relay", "-o", out).status == 0
    svg = as_svg(graph_of(checked(SKIP)))
    wanted = [int(part.split('"')[1]) for part in svg.split("viewBox")[0].split()[-2:]]
    assert size(out.read_bytes()) == (2 * wanted[0], 2 * wanted[1])
    assert len(out.read_bytes()) > 4000


@needs_package
def test_by_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    svg = as_svg(graph_of(checked(SKIP)))
    if _by_package(svg, 1.0) is None:
        pytest.skip("resvg-py finds no font here")
    made = rasterised(svg)
    assert size(made)[0] % 2 == 0 and len(made) > len(rasterised(svg.replace(">add<", "><")))
    assert max(size(as_png(graph_of(checked(chain(400)))))) == 16_000


class WithoutFonts:
    """A stand-in for resvg-py on a machine without fonts: every letter is empty."""

    @staticmethod
    def svg_to_bytes(svg_string: str, zoom: float = 1.0) -> bytes:
        return b"empty"


def test_a_package_without_fonts_makes_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "resvg_py", WithoutFonts)
    with pytest.raises(RelayError, match=r"R0770.*\n.*install a font"):
        as_png(graph_of(checked(SKIP)))
