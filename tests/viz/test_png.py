"""PNG and PDF pictures from the command line: by a package, by a browser, or a diagnostic."""

from __future__ import annotations

import importlib.util
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.viz import Graph, as_pdf, as_png, as_svg, graph_of
from relaylang.viz.printed import _by_resvg, printed
from tests.cli.command import relay as command
from tests.viz.browser import chromium
from tests.viz.test_viz import SKIP, chain, checked

needs_browser = pytest.mark.skipif(chromium() is None, reason="chromium is not on this machine")
needs_package = pytest.mark.skipif(importlib.util.find_spec("resvg_py") is None, reason="resvg-py is not installed")


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize(("make", "package", "extra"), [(as_png, "resvg_py", "png"), (as_pdf, "svglib.svglib", "pdf")])
def test_without_package_and_browser(
    make: Callable[[Graph], bytes], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RelayError, match=rf"R0770.*\n.*relaylang\[{extra}\]"):
        make(graph_of(checked(SKIP)))


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


@pytest.mark.sweep
@needs_package
def test_by_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    svg = as_svg(graph_of(checked(SKIP)))
    if _by_resvg(svg) is None:
        pytest.skip("resvg-py finds no font here")
    made = printed(svg, "png")
    assert size(made)[0] % 2 == 0 and len(made) > len(printed(svg.replace(">add<", "><"), "png"))
    assert max(size(as_png(graph_of(checked(chain(400)))))) == 16_000


def test_a_page_of_pdf_by_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("svglib")
    monkeypatch.setenv("PATH", "/nowhere")
    assert is_page(as_pdf(graph_of(checked(SKIP))))


@pytest.mark.sweep
@needs_browser
def test_a_page_of_pdf_by_a_browser(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "svglib", None)
    (tmp_path / "net.relay").write_text(SKIP)
    assert command(capsys, "viz", tmp_path / "net.relay", "-o", tmp_path / "net.pdf").status == 0
    assert is_page((tmp_path / "net.pdf").read_bytes())


def is_page(pdf: bytes) -> bool:
    """Whether a file is one page of PDF, as high as the picture. A pixel is a point, or three quarters of one."""
    height = re.search(r'height="(\d+)"', as_svg(graph_of(checked(SKIP))))
    boxes = [float(b) for b in re.findall(rb"/MediaBox \[ ?0 0 [\d.]+ ([\d.]+) ?\]", pdf)]
    assert height is not None
    return pdf.startswith(b"%PDF") and len(boxes) == 1 and min(abs(boxes[0] / float(height[1]) - n) for n in (1, 0.75)) < 0.01


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
