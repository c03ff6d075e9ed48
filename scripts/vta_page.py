"""Writes the instructions of VTA into docs/vta.md, as tables of their fields.

python scripts/vta_page.py
"""

from __future__ import annotations

from pathlib import Path

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.isa import KINDS, OPCODE_BITS, Codec

PAGE = Path(__file__).resolve().parent.parent / "docs" / "vta.md"
#: How the tables begin. They end the page.
BEGIN = "Opcodes are the lowest "


def tables(config: Config) -> str:
    """The fields of each instruction in a configuration, in Markdown."""
    codec = Codec(config)
    lines = [f"{BEGIN}{OPCODE_BITS} bits. The widths are those of `{config}`.", ""]
    for name, kind in KINDS.items():
        lines += [f"**{name}** (opcode {kind.opcode}) {kind.doc}.", "", "| bits | field | meaning |", "|---|---|---|"]
        for field in kind.fields:
            low, bits = codec.places[name][field.name]
            names = f": {', '.join(f'{n} {w}' for n, w in enumerate(field.names))}" if field.names else ""
            lines.append(f"| {low}{f'-{low + bits - 1}' * (bits > 1)} | `{field.name}` | {field.doc}{names} |")
        lines.append("")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with the tables of TVM's configuration."""
    return text[: text.index(BEGIN)] + tables(Config())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.name)
