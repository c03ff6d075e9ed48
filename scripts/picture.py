"""Writes the pictures of README and of the docs' first page.

    python scripts/picture.py

docs/session.svg is a terminal with real calls of `relay`, docs/graph.svg the graph of a network.

The picture has a background of its own, so that it is readable on light and dark pages.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

import relaylang as relay
from relaylang.diagnostics.html import Run, runs
from relaylang.viz import as_svg, graph_of

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "session.svg"
GRAPH = ROOT / "docs" / "graph.svg"
#: The network in the graph.
NETWORK = ROOT / "examples" / "convnet.relay"

FILES = {
    "typo.relay": """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8), float32]) {
  nn.softmax(%x, axes=1)
}
""",
    "net.relay": """#[version = "0.0.5"]
def @main(
  %x: Tensor[(1, 8), float32],
  %w: Tensor[(4, 7), float32]
) {
  nn.relu(nn.dense(%x, %w, units=4))
}
""",
}
COMMANDS = (
    "relay check typo.relay",
    "relay check net.relay",
    "relay run examples/loop.relay -e '@sum(100000, 0i64)'",
)

#: Widths and heights in pixels, the terminal's columns, and its colours by ANSI code.
COLUMNS, CHARACTER, LINE, MARGIN = 100, 7.8, 18, 16
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#a5d6ff"}
PLAIN, PROMPT, BACKGROUND, BORDER = "#e6edf3", "#7ee787", "#161b22", "#30363d"


def output(command: str, folder: Path) -> str:
    """A call's output with its colours; stderr comes first, as one of the two is empty."""
    words = shlex.split(command)
    colour = ["--color", "always"]
    call = [sys.executable, "-m", "relaylang", words[1], *colour, *words[2:]]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr + done.stdout


def wrapped(line: list[Run]) -> list[list[Run]]:
    """A line as a terminal of `COLUMNS` columns shows it."""
    lines: list[list[Run]] = [[]]
    room = COLUMNS
    for text, colour, bold in line:
        while text:
            if room == 0:
                lines.append([])
                room = COLUMNS
            part, text = text[:room], text[room:]
            lines[-1].append(Run(part, colour, bold))
            room -= len(part)
    return lines


def session() -> list[list[Run]]:
    """The lines of the terminal."""
    lines: list[list[Run]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        for file, text in FILES.items():
            (folder / file).write_text(text, encoding="utf-8")
        for command in COMMANDS:
            if lines:
                lines.append([])
            lines.append([Run("$ ", PROMPT, True), Run(command, PLAIN, True)])
            for line in output(command, folder).splitlines():
                lines += wrapped([Run(text, COLOURS.get(colour, PLAIN), bold) for text, colour, bold in runs(line)])
    return lines


def picture(lines: list[list[Run]]) -> str:
    """The lines as SVG."""
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}" viewBox="0 0 {width:g} {height}">',
        "<title>relay check points at errors and suggests repairs; relay run evaluates</title>",
        f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1}" rx="8" fill="{BACKGROUND}" stroke="{BORDER}"/>',
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">',
    ]
    for number, line in enumerate(lines):
        column = 0
        for text, colour, bold in line:
            spaces = len(text) - len(text.lstrip(" "))
            shown = text.strip(" ")
            if shown:
                x, y = MARGIN + (column + spaces) * CHARACTER, MARGIN + number * LINE + 13
                weight = ' font-weight="bold"' if bold else ""
                length = f'textLength="{len(shown) * CHARACTER:g}"'
                out.append(f'<text x="{x:g}" y="{y}" {length} fill="{colour}"{weight}>{escape(shown)}</text>')
            column += len(text)
    return "\n".join([*out, "</g>", "</svg>", ""])


def graph() -> str:
    """The graph of the network as SVG."""
    module = relay.transform.InferType()(relay.parse(NETWORK.read_text(encoding="utf-8")))
    return as_svg(graph_of(module))


if __name__ == "__main__":
    TARGET.write_text(picture(session()), encoding="utf-8")
    GRAPH.write_text(graph(), encoding="utf-8")
    print(TARGET.relative_to(ROOT), GRAPH.relative_to(ROOT))
