"""Open texts as editors change them."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from relaylang.lsp.analysis import Lines


class Text(TextDocument):
    """An open text with the line ends of the protocol.

    Texts of pygls also break lines at form feeds and Unicode's line ends. Later changes would then miss their place.
    """

    def apply_change(self, change: lsp.TextDocumentContentChangeEvent) -> None:
        if not isinstance(change, lsp.TextDocumentContentChangePartial):
            super().apply_change(change)
            return
        text = self.source
        lines = Lines(text, unit_of(self.position_codec.encoding))
        start, end = (lines.offset(place.line, place.character) for place in (change.range.start, change.range.end))
        self._source = text[:start] + change.text + text[max(start, end) :]


def unit_of(encoding: object) -> str:
    """What columns count: "utf-8", "utf-16" or "utf-32"."""
    return str(getattr(encoding, "value", encoding) or "utf-16")


__all__ = ["Text", "unit_of"]
