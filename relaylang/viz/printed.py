"""An SVG picture as PNG or PDF: by the packages resvg-py and svglib, else by a browser."""

from __future__ import annotations

import importlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.processes import program, run
from relaylang.viz.graph import Graph
from relaylang.viz.svg import as_svg

#: Browsers that make pictures without a window.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: Pixels for a unit of the picture, and the longest side in pixels.
_ZOOM = 2.0
_LONGEST = 16_000
_TIMEOUT = 120.0
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="18" font-family="{}">m</text></svg>'


def as_png(graph: Graph, expand: bool = False, nodes: bool = False) -> bytes:
    """The graph as `as_svg` draws it, in PNG. Raises `RelayError` (R0770) where nothing can make it."""
    return printed(as_svg(graph, expand, nodes), "png")


def as_pdf(graph: Graph, expand: bool = False, nodes: bool = False) -> bytes:
    """The graph as `as_svg` draws it, as one page of PDF. Raises `RelayError` (R0770) where nothing can make it."""
    return printed(as_svg(graph, expand, nodes), "pdf")


def printed(svg: str, form: str) -> bytes:
    """An SVG picture in the light colours, as "png" or "pdf". Raises `RelayError` (R0770)."""
    svg = re.sub(r"@media \(prefers-color-scheme: dark\).*(?=</style>)", "", svg, count=1, flags=re.S)
    picture = _PACKAGES[form](svg) or _by_browser(svg, form)
    if picture is None:
        missing = f"pip install 'relaylang[{form}]'"
        if form == "png" and _package("resvg_py"):
            missing = "install a font, which resvg-py needs"
        notes = [f"{missing}, or install chromium", "-o FILE.svg and -o FILE.html need nothing"]
        raise RelayError(error("R0770", f"nothing here makes {form.upper()} pictures", notes=notes))
    return picture


def _package(name: str) -> Any:
    """A package, None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _size(svg: str) -> tuple[float, float]:
    width, height = (float(x) for x in re.findall(r'(?:width|height)="(\d+)"', svg)[:2])
    return width, height


def _zoom(svg: str) -> float:
    return min(_ZOOM, _LONGEST / max(_size(svg)))


def _by_resvg(svg: str) -> bytes | None:
    """The picture in PNG by resvg-py, None where it is not installed or finds no font."""
    resvg = _package("resvg_py")
    if resvg is None:
        return None
    families = re.search(r"font: 12px ([^;]*);", svg)
    assert families is not None
    letter = _LETTER.format(families[1].replace('"', "'"))
    if bytes(resvg.svg_to_bytes(svg_string=letter)) == bytes(resvg.svg_to_bytes(svg_string=letter.replace(">m<", "><"))):
        return None
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=_zoom(svg)))


def _by_svglib(svg: str) -> bytes | None:
    """The picture in PDF by svglib and reportlab, None where they are not installed."""
    svglib, reportlab = _package("svglib.svglib"), _package("reportlab.graphics.renderPDF")
    if svglib is None or reportlab is None:
        return None
    return bytes(reportlab.drawToString(svglib.svg2rlg(io.BytesIO(svg.encode()))))


_PACKAGES = {"png": _by_resvg, "pdf": _by_svglib}


def _by_browser(svg: str, form: str) -> bytes | None:
    """The picture by a browser, None where there is none or it fails."""
    browser = next((path for name in _BROWSERS if (path := program(name))), None)
    if browser is None:
        return None
    width, height = (round(extent * (_zoom(svg) if form == "png" else 1)) for extent in _size(svg))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        page, picture = Path(place, "page.html"), Path(place, f"picture.{form}")
        style = (
            f"@page {{ size: {width}px {height}px; margin: 0 }} html, body {{ margin: 0; overflow: hidden }} "
            f"svg {{ display: block; width: {width}px; height: {height}px }}"
        )
        page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><style>{style}</style>{svg}', encoding="utf-8")
        asked = {
            "png": [f"--window-size={width},{height}", f"--screenshot={picture}"],
            "pdf": ["--no-pdf-header-footer", f"--print-to-pdf={picture}"],
        }
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            f"--user-data-dir={place}/profile",
            *asked[form],
        ]
        try:
            run([browser, *flags, page.as_uri()], timeout=_TIMEOUT)
        except OSError:
            return None
        return picture.read_bytes() if picture.is_file() else None


__all__ = ["as_pdf", "as_png", "printed"]
