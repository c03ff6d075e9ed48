"""The language server: pygls in front of `features`. Texts are read again a moment after the last keystroke."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from relaylang.diagnostics import Diagnostic, Label, RelayError
from relaylang.diagnostics.source import Span
from relaylang.lsp import features
from relaylang.lsp.analysis import Analysis, Lines
from relaylang.lsp.completion import completion
from relaylang.lsp.texts import Text, unit_of
from relaylang.lsp.wire import quiet
from relaylang.ops import OPS
from relaylang.passes.lints import UNUSED
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tokeniser import Token

#: How long a text must rest before it is read again, in seconds.
_REST = 0.05
_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
#: Diagnostics that editors do not show: the missing version line.
_QUIET = frozenset({"R0150"})
_SYMBOLS = {
    "function": lsp.SymbolKind.Function,
    "type": lsp.SymbolKind.Enum,
    "constructor": lsp.SymbolKind.EnumMember,
}


#: The kinds of offers.
_OFFERS = {
    "variable": lsp.CompletionItemKind.Variable,
    "function": lsp.CompletionItemKind.Function,
    "operator": lsp.CompletionItemKind.Method,
    "constructor": lsp.CompletionItemKind.EnumMember,
    "type": lsp.CompletionItemKind.Struct,
    "attribute": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.Value,
    "keyword": lsp.CompletionItemKind.Keyword,
    "file": lsp.CompletionItemKind.File,
}


class RelayServer(LanguageServer):
    """The server and the texts' analyses."""

    def __init__(self) -> None:
        super().__init__("relaylang", version("relaylang"))
        self.known: dict[str, tuple[int | None, Analysis]] = {}

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
        made = Analysis(text, document.path or uri, unit, known[1] if known is not None else None)
        self.known[uri] = (document.version, made)
        return made

    def recent(self, uri: str) -> tuple[str, Analysis]:
        """A text as it is now, and the last analysis of it, which may be of an earlier version."""
        known = self.known.get(uri)
        if known is None:
            analysis = self.analysis(uri)
            return analysis.text, analysis
        return self.workspace.get_text_document(uri).source, known[1]

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a text."""
        analysis = self.analysis(uri)
        items = [_diagnostic(analysis, d, uri) for d in analysis.diagnostics if d.code not in _QUIET]
        items += [_diagnostic(analysis, d, uri, lsp.DiagnosticSeverity.Hint) for d in analysis.findings]
        document = self.workspace.get_text_document(uri)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, items, document.version))


def _range(analysis: Analysis, start: int, end: int) -> lsp.Range:
    return lsp.Range(lsp.Position(*analysis.lines.position(start)), lsp.Position(*analysis.lines.position(end)))


def _token_range(analysis: Analysis, token: Token) -> lsp.Range:
    return _range(analysis, token.start, token.end)


def _span_range(analysis: Analysis, span: Span) -> lsp.Range:
    start, end = analysis.range_of(span)
    return _range(analysis, start, max(end, start + 1))


def _diagnostic(analysis: Analysis, d: Diagnostic, uri: str, severity: lsp.DiagnosticSeverity | None = None) -> lsp.Diagnostic:
    span = d.span
    here = span is not None and span.source.name == analysis.name
    others: list[Label] = [label for label in d.labels if label.span is not span and label.span.source.name == analysis.name]
    own = next((label.text for label in d.labels if label.span is span and label.text), "")
    message = "\n".join([d.title + (f" ({own})" if own else ""), *d.notes])
    related = [
        lsp.DiagnosticRelatedInformation(lsp.Location(uri, _span_range(analysis, o.span)), o.text or "see here") for o in others
    ]
    return lsp.Diagnostic(
        _span_range(analysis, span) if here and span is not None else _range(analysis, 0, 0),
        message,
        severity=severity or _SEVERITIES[d.severity],
        code=d.code,
        tags=[lsp.DiagnosticTag.Unnecessary] if d.code in UNUSED else None,
        source="relay",
        related_information=related or None,
    )


def make_server() -> RelayServer:
    """The server with its features."""
    server = RelayServer()
    quiet()

    def at(params: Any) -> tuple[Analysis, int]:
        analysis = server.analysis(params.text_document.uri)
        return analysis, analysis.lines.offset(params.position.line, params.position.character)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.workspace.get_text_document(params.text_document.uri).__class__ = Text  # the workspace makes pygls' own
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        await asyncio.sleep(_REST)
        if server.workspace.get_text_document(uri).version == params.text_document.version:
            server.publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.known.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        analysis, offset = at(params)
        found = features.hover(analysis, offset)
        if found is None:
            return None
        token, text = found
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), _token_range(analysis, token))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        analysis, offset = at(params)
        token = features.definition(analysis, offset)
        if token is not None:
            return lsp.Location(params.text_document.uri, _token_range(analysis, token))
        found = features.library_definition(analysis, offset)
        if found is None:
            return None
        path, span = found
        lines = Lines(span.source.text, analysis.lines.unit)
        return lsp.Location(
            Path(path).resolve().as_uri(),
            lsp.Range(lsp.Position(*lines.position(span.start)), lsp.Position(*lines.position(span.end))),
        )

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        analysis, offset = at(params)
        found = features.references(analysis, offset, params.context.include_declaration)
        return [lsp.Location(params.text_document.uri, _token_range(analysis, t)) for t in found]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        analysis, offset = at(params)
        return [lsp.DocumentHighlight(_token_range(analysis, t)) for t in features.references(analysis, offset)]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        analysis, offset = at(params)
        try:
            token = features.renamable(analysis, offset)
        except features.CannotRename:
            return None
        return lsp.PrepareRenamePlaceholder(_token_range(analysis, token), token.text)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        analysis, offset = at(params)
        try:
            found = features.rename(analysis, offset, params.new_name)
        except features.CannotRename as why:
            raise JsonRpcInvalidParams(str(why)) from None
        edits = [lsp.TextEdit(_token_range(analysis, t), text) for t, text in found]
        return lsp.WorkspaceEdit({params.text_document.uri: edits})

    triggers = lsp.CompletionOptions(trigger_characters=list('%@.(":=[,'), resolve_provider=True)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        text, known = server.recent(params.text_document.uri)
        lines = Lines(text, known.lines.unit)
        offset = lines.offset(params.position.line, params.position.character)
        items = []
        for i, s in enumerate(completion(text, offset, known)):
            place = lsp.Range(lsp.Position(*lines.position(offset - s.length)), lsp.Position(*lines.position(offset)))
            item = lsp.CompletionItem(s.text, kind=_OFFERS[s.kind], detail=s.says or None, sort_text=f"{i:05d}")
            # editors compare the letters typed with this text: all that come are good, and the order is ours
            item.filter_text = text[offset - s.length : offset] + s.text
            item.text_edit = lsp.TextEdit(place, s.text)
            items.append(item)
        return lsp.CompletionList(True, items)

    @server.feature(lsp.COMPLETION_ITEM_RESOLVE)
    def resolve(item: lsp.CompletionItem) -> lsp.CompletionItem:
        op = OPS.get(item.label)
        if op is not None:
            item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, features.op_markdown(op))
        return item

    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ",", "="]))
    def signature(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        analysis, offset = at(params)
        found = features.signature(analysis, offset)
        if found is None:
            return None
        label = "".join(text for _, text in found.parts())
        shown = [lsp.ParameterInformation(p) for p in found.parameters]
        active = found.active if 0 <= found.active < len(shown) else None
        return lsp.SignatureHelp([lsp.SignatureInformation(label, parameters=shown, active_parameter=active)], 0, active)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        analysis = server.analysis(params.text_document.uri)
        return [_symbol(analysis, s) for s in features.outline(analysis)]

    @server.feature(lsp.WORKSPACE_SYMBOL)
    def workspace_symbols(params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        out = []
        for document in list(server.workspace.text_documents.values()):
            uri = document.uri
            analysis = server.analysis(uri)
            for s, inside in features.named(analysis, params.query):
                if s.definition is not None:
                    place = lsp.Location(uri, _token_range(analysis, s.definition))
                    out.append(lsp.WorkspaceSymbol(place, s.name, _SYMBOLS[s.kind], container_name=inside or None))
        return out

    legend = lsp.SemanticTokensLegend(features.TOKEN_TYPES, ["definition"])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    def semantic_tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        analysis = server.analysis(params.text_document.uri)
        return lsp.SemanticTokens(_token_data(analysis))

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        analysis = server.analysis(params.text_document.uri)
        try:
            text = features.formatted(analysis)
        except RelayError:
            return None
        if text is None or text == analysis.text:
            return []
        return [lsp.TextEdit(_range(analysis, 0, len(analysis.text)), text)]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        analysis = server.analysis(uri)
        first = analysis.lines.offset(params.range.start.line, params.range.start.character)
        last = analysis.lines.offset(params.range.end.line, params.range.end.character)
        out = []
        for a in features.actions(analysis, first, last):
            edit = lsp.TextEdit(_range(analysis, *analysis.range_of(a.fix.span)), a.fix.replacement)
            out.append(
                lsp.CodeAction(
                    a.title,
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[_diagnostic(analysis, a.diagnostic, uri)],
                    edit=lsp.WorkspaceEdit({uri: [edit]}),
                    is_preferred=True,
                )
            )
        return out

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        analysis = server.analysis(params.text_document.uri)
        first = analysis.lines.offset(params.range.start.line, params.range.start.character)
        last = analysis.lines.offset(params.range.end.line, params.range.end.character)
        return [
            lsp.InlayHint(lsp.Position(*analysis.lines.position(offset)), text, kind=lsp.InlayHintKind.Type)
            for offset, text in features.hints(analysis, first, last)
        ]

    return server


def _symbol(analysis: Analysis, symbol: Symbol) -> lsp.DocumentSymbol:
    assert symbol.definition is not None
    end = max(symbol.end, symbol.definition.end)
    return lsp.DocumentSymbol(
        symbol.name,
        _SYMBOLS[symbol.kind],
        _range(analysis, min(symbol.begin, symbol.definition.start), end),
        _token_range(analysis, symbol.definition),
        detail=analysis.symbol_type(symbol) or None,
        children=[_symbol(analysis, c) for c in symbol.children] or None,
    )


def _token_data(analysis: Analysis) -> Sequence[int]:
    data: list[int] = []
    line = column = 0
    kinds = {name: i for i, name in enumerate(features.TOKEN_TYPES)}
    for offset, length, kind, defines in features.colors(analysis):
        at_line, at_column = analysis.lines.position(offset)
        size = analysis.lines.position(offset + length)[1] - at_column
        data += [at_line - line, at_column - column if at_line == line else at_column, size, kinds[kind], int(defines)]
        line, column = at_line, at_column
    return data
