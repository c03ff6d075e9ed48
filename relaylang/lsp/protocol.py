"""The server's texts, and offsets as the protocol's ranges."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcServerNotInitialized
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from relaylang.diagnostics.source import Span
from relaylang.lsp.analysis import Analysis
from relaylang.lsp.settings import Settings
from relaylang.lsp.texts import unit_of
from relaylang.syntax.tokeniser import Token


class Protocol(LanguageServerProtocol):
    """Answers requests that come too early or too late with errors; such notifications are left out."""

    def handle_message(self, message: Any) -> None:
        method = getattr(message, "method", None)
        refused: JsonRpcException | None = None
        if self._shutdown and method != lsp.EXIT:
            refused = JsonRpcInvalidRequest("the server is shut down")
        elif self._workspace is None and method not in (None, lsp.INITIALIZE, lsp.EXIT):
            refused = JsonRpcServerNotInitialized("the server is not initialized")
        if refused is None:
            super().handle_message(message)
        elif method is not None and getattr(message, "id", None) is not None:
            self._send_response(message.id, error=refused.to_response_error())

    @property
    def is_shut_down(self) -> bool:
        return self._shutdown


class RelayServer(LanguageServer):
    """The server and the texts' analyses. `exit_code` is 1 where the editor ends it without a shutdown."""

    def __init__(self) -> None:
        super().__init__("relaylang", version("relaylang"), protocol_cls=Protocol)
        self.exit_code = 0
        self.known: dict[str, tuple[int | None, Analysis]] = {}
        self.settings = Settings()

    @property
    def is_shut_down(self) -> bool:
        """Whether the editor has shut the server down."""
        return isinstance(self.protocol, Protocol) and self.protocol.is_shut_down

    def analysis(self, uri: str) -> Analysis:
        """The analysis of a text as it is now. One that is not open is read from its file (`JsonRpcInvalidParams`)."""
        document = self.workspace.get_text_document(uri)
        try:
            text = document.source
        except (OSError, ValueError):
            raise JsonRpcInvalidParams(f"{uri} is not open, and no file that can be read") from None
        known = self.known.get(uri)
        if known is not None and known[0] == document.version and known[1].text == text:
            return known[1]
        unit = unit_of(self.workspace.position_encoding)
        analysis = Analysis(text, document.path or uri, unit, known[1] if known is not None else None)
        self.known[uri] = (document.version, analysis)
        return analysis

    def recent(self, uri: str) -> tuple[str, Analysis]:
        """A text as it is now, and the last analysis of it, which may be of an earlier version."""
        known = self.known.get(uri)
        if known is None:
            analysis = self.analysis(uri)
            return analysis.text, analysis
        return self.workspace.get_text_document(uri).source, known[1]

    def at(self, params: Any) -> tuple[Analysis, int]:
        """The analysis of the text that a request names, and the offset of its position."""
        analysis = self.analysis(params.text_document.uri)
        return analysis, analysis.lines.offset(params.position.line, params.position.character)

    def stretch(self, params: Any) -> tuple[Analysis, int, int]:
        """The analysis of the text that a request names, and the offsets of its range."""
        analysis = self.analysis(params.text_document.uri)
        first, last = params.range.start, params.range.end
        return analysis, analysis.lines.offset(first.line, first.character), analysis.lines.offset(last.line, last.character)


def range_at(analysis: Analysis, start: int, end: int) -> lsp.Range:
    return lsp.Range(lsp.Position(*analysis.lines.position(start)), lsp.Position(*analysis.lines.position(end)))


def token_range(analysis: Analysis, token: Token) -> lsp.Range:
    return range_at(analysis, token.start, token.end)


def span_range(analysis: Analysis, span: Span) -> lsp.Range:
    start, end = analysis.range_of(span)
    return range_at(analysis, start, max(end, start + 1))


__all__ = ["RelayServer", "range_at", "span_range", "token_range"]
