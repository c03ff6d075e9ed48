"""An SVG picture as PNG: by the package resvg-py, else by a browser."""

from __future__ import annotations

import importlib
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
    return rasterised(as_svg(graph, expand, nodes))


def rasterised(svg: str) -> bytes:
    """An SVG picture in PNG, in the light colours. Raises `RelayError` (R0770)."""
    width, height = (float(x) for x in re.findall(r'(?:width|height)="(\d+)"', svg)[:2])
    zoom = min(_ZOOM, _LONGEST / max(width, height))
    svg = re.sub(r"@media \(prefers-color-scheme: dark\).*(?=</style>)", "", svg, count=1, flags=re.S)
    made = _by_package(svg, zoom)
    if made is None:
        made = _by_browser(svg, round(width * zoom), round(height * zoom))
    if made is None:
        missing = "pip install 'relaylang[png]'" if _package() is None else "install a font, which resvg-py needs"
        notes = [f"{missing}, or install chromium", "-o FILE.svg and -o FILE.html need nothing"]
        raise RelayError(error("R0770", "nothing here makes PNG pictures", notes=notes))
    return made


def _package() -> Any:
    """The package resvg-py, None where it is not installed."""
    try:
        return importlib.import_module("resvg_py")
    except ImportError:
        return None


def _by_package(svg: str, zoom: float) -> bytes | None:
    """The picture by resvg-py, None where it is not installed or finds no font."""
    resvg = _package()
    if resvg is None:
        return None
    families = re.search(r"font: 12px ([^;]*);", svg)
    assert families is not None
    letter = _LETTER.format(families[1].replace('"', "'"))
    if bytes(resvg.svg_to_bytes(svg_string=letter)) == bytes(resvg.svg_to_bytes(svg_string=letter.replace(">m<", "><"))):
        return None
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=zoom))


def _by_browser(svg: str, width: int, height: int) -> bytes | None:
    """The picture by a browser, None where there is none or it fails."""
    browser = next((found for name in _BROWSERS if (found := program(name))), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        page, made = Path(place, "page.html"), Path(place, "picture.png")
        style = f"html, body {{ margin: 0; overflow: hidden }} svg {{ display: block; width: {width}px; height: {height}px }}"
        page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><style>{style}</style>{svg}', encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
                 f"--user-data-dir={place}/profile", f"--window-size={width},{height}", f"--screenshot={made}"]  # fmt: skip
        try:
            run([browser, *flags, page.as_uri()], timeout=_TIMEOUT)
        except OSError:
            return None
        return made.read_bytes() if made.is_file() else None


__all__ = ["as_png", "rasterised"]
