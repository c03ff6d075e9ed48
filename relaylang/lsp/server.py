"""The language server: pygls in front of `features`. Texts are read again a moment after the last keystroke."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from relaylang.diagnostics import Diagnostic, Label
from relaylang.lsp import commands, features, navigation, structure
from relaylang.lsp.analysis import Analysis, Lines
from relaylang.lsp.completion import completion
from relaylang.lsp.document import difference
from relaylang.lsp.formatting import Edit, edits, edits_of_lines
from relaylang.lsp.protocol import RelayServer, range_at, span_range, token_range
from relaylang.lsp.texts import Text
from relaylang.lsp.wire import quiet
from relaylang.ops import OPS
from relaylang.passes.lints import UNUSED
from relaylang.syntax.symbols import Symbol

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


def _publish(server: RelayServer, uri: str) -> None:
    """Send the diagnostics of a text."""
    analysis = server.analysis(uri)
    items = [_diagnostic(analysis, d, uri) for d in analysis.diagnostics if d.code not in _QUIET]
    items += [_diagnostic(analysis, d, uri, lsp.DiagnosticSeverity.Hint) for d in analysis.findings]
    document = server.workspace.get_text_document(uri)
    server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, items, document.version))


def _diagnostic(analysis: Analysis, d: Diagnostic, uri: str, severity: lsp.DiagnosticSeverity | None = None) -> lsp.Diagnostic:
    span = d.span
    here = span is not None and span.source.name == analysis.name
    others: list[Label] = [label for label in d.labels if label.span is not span and label.span.source.name == analysis.name]
    own = next((label.text for label in d.labels if label.span is span and label.text), "")
    message = "\n".join([d.title + (f" ({own})" if own else ""), *d.notes])
    related = [lsp.DiagnosticRelatedInformation(lsp.Location(uri, span_range(analysis, o.span)), o.text or "see here") for o in others]
    return lsp.Diagnostic(
        span_range(analysis, span) if here and span is not None else range_at(analysis, 0, 0),
        message,
        severity=severity or _SEVERITIES[d.severity],
        code=d.code,
        tags=[lsp.DiagnosticTag.Unnecessary] if d.code in UNUSED else None,
        source="relay",
        related_information=related or None,
    )


def _settings(server: RelayServer) -> None:
    """Requests about the server itself: its beginning, its end, its settings."""

    @server.feature(lsp.INITIALIZE)
    def initialized(params: lsp.InitializeParams) -> None:
        server.settings.take(params.initialization_options)

    @server.feature(lsp.EXIT)
    def exited(*_: object) -> None:
        server.exit_code = 0 if server.is_shut_down else 1

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: lsp.DidChangeConfigurationParams) -> None:
        server.settings.take(params.settings)
        client = server.client_capabilities.workspace
        if client is not None and client.inlay_hint is not None and client.inlay_hint.refresh_support:
            server.workspace_inlay_hint_refresh(None)
        if client is not None and client.code_lens is not None and client.code_lens.refresh_support:
            server.workspace_code_lens_refresh(None)


def _texts(server: RelayServer) -> None:
    """Texts that are opened, changed, saved and closed."""

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.workspace.get_text_document(params.text_document.uri).__class__ = Text  # the workspace makes pygls' own
        _publish(server, params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        await asyncio.sleep(_REST)
        if server.workspace.get_text_document(uri).version == params.text_document.version:
            _publish(server, uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        _publish(server, params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.known.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))


def _names(server: RelayServer) -> None:
    """Requests about the name at a place."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        analysis, offset = server.at(params)
        described = features.hover(analysis, offset)
        if described is None:
            return None
        token, text = described
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), token_range(analysis, token))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        analysis, offset = server.at(params)
        token = features.definition(analysis, offset)
        if token is not None:
            return lsp.Location(params.text_document.uri, token_range(analysis, token))
        place = features.library_definition(analysis, offset)
        if place is None:
            return None
        path, span = place
        lines = Lines(span.source.text, analysis.lines.unit)
        return lsp.Location(
            Path(path).resolve().as_uri(),
            lsp.Range(lsp.Position(*lines.position(span.start)), lsp.Position(*lines.position(span.end))),
        )

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        analysis, offset = server.at(params)
        tokens = features.references(analysis, offset, params.context.include_declaration)
        return [lsp.Location(params.text_document.uri, token_range(analysis, t)) for t in tokens]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        analysis, offset = server.at(params)
        return [lsp.DocumentHighlight(token_range(analysis, t)) for t in features.references(analysis, offset)]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        analysis, offset = server.at(params)
        try:
            token, _ = features.renamable(analysis, offset)
        except features.CannotRename:
            return None
        return lsp.PrepareRenamePlaceholder(token_range(analysis, token), token.text)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        analysis, offset = server.at(params)
        try:
            occurrences = features.rename(analysis, offset, params.new_name)
        except features.CannotRename as why:
            raise JsonRpcInvalidParams(str(why)) from None
        edits = [lsp.TextEdit(token_range(analysis, t), text) for t, text in occurrences]
        return lsp.WorkspaceEdit({params.text_document.uri: edits})


def _offers(server: RelayServer) -> None:
    """Completion and signatures."""

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
        analysis, offset = server.at(params)
        call_help = features.signature(analysis, offset)
        if call_help is None:
            return None
        label = "".join(text for _, text in call_help.parts())
        shown = [lsp.ParameterInformation(p) for p in call_help.parameters]
        active = call_help.active if 0 <= call_help.active < len(shown) else None
        return lsp.SignatureHelp([lsp.SignatureInformation(label, parameters=shown, active_parameter=active)], 0, active)


def _outline(server: RelayServer) -> None:
    """The names of a text, and the colours of its words."""

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
                    place = lsp.Location(uri, token_range(analysis, s.definition))
                    out.append(lsp.WorkspaceSymbol(place, s.name, _SYMBOLS[s.kind], container_name=inside or None))
        return out

    legend = lsp.SemanticTokensLegend(features.TOKEN_TYPES, ["definition"])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    def semantic_tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        analysis = server.analysis(params.text_document.uri)
        return lsp.SemanticTokens(_token_data(analysis))

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, legend)
    def semantic_tokens_of_lines(params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
        return lsp.SemanticTokens(_token_data(*server.stretch(params)))


def _repairs(server: RelayServer) -> None:
    """Requests for edits: the canonical form, and repairs."""

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        analysis = server.analysis(params.text_document.uri)
        return _text_edits(analysis, edits(analysis))

    @server.feature(lsp.TEXT_DOCUMENT_RANGE_FORMATTING)
    def formatting_of_lines(params: lsp.DocumentRangeFormattingParams) -> list[lsp.TextEdit] | None:
        analysis, first, last = server.stretch(params)
        return _text_edits(analysis, edits_of_lines(analysis, first, last))

    action_kinds = lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, action_kinds)
    def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        analysis, first, last = server.stretch(params)
        only = params.context.only
        wants_all, wants_fixes = (_is_wanted(kind, only) for kind in ("source.fixAll", "quickfix"))
        out = _fix_all(analysis, uri) if only and wants_all else []
        if not wants_fixes:
            return out
        for a in features.actions(analysis, first, last):
            edit = lsp.TextEdit(range_at(analysis, *analysis.range_of(a.fix.span)), a.fix.replacement)
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


def _hints(server: RelayServer) -> None:
    """Types and defaults that are not written."""

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        analysis, first, last = server.stretch(params)
        place = analysis.lines.position
        out = []
        if server.settings.types:
            for offset, text in features.hints(analysis, first, last):
                out.append(lsp.InlayHint(lsp.Position(*place(offset)), text, kind=lsp.InlayHintKind.Type))
        if server.settings.defaults:
            for offset, text, detail in structure.defaults(analysis, first, last):
                kind = lsp.InlayHintKind.Parameter
                out.append(lsp.InlayHint(lsp.Position(*place(offset)), text, kind=kind, tooltip=detail))
        return out


def make_server() -> RelayServer:
    """The server with its features."""
    server = RelayServer()
    quiet()
    for add in (_settings, _texts, _names, _offers, _outline, _repairs, _hints, navigation.add, commands.add):
        add(server)
    return server


def _is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether an editor wants actions of a kind: it may name the kind, or a wider one."""
    return not only or any(not one or kind == one or kind.startswith(f"{one}.") for one in only)


def _text_edits(analysis: Analysis, changes: Sequence[Edit] | None) -> list[lsp.TextEdit] | None:
    if changes is None:
        return None
    return [lsp.TextEdit(range_at(analysis, edit.begin, edit.end), edit.text) for edit in changes]


def _fix_all(analysis: Analysis, uri: str) -> list[lsp.CodeAction]:
    """One action that makes all repairs of lints; none where there is nothing to repair."""
    text = features.repaired(analysis)
    if text == analysis.text:
        return []
    begin, end = difference(analysis.text, text)
    edit = lsp.TextEdit(range_at(analysis, begin, end), text[begin : end + len(text) - len(analysis.text)])
    return [lsp.CodeAction("Repair all findings", kind=lsp.CodeActionKind.SourceFixAll, edit=lsp.WorkspaceEdit({uri: [edit]}))]


def _symbol(analysis: Analysis, symbol: Symbol) -> lsp.DocumentSymbol:
    assert symbol.definition is not None
    end = max(symbol.end, symbol.definition.end)
    return lsp.DocumentSymbol(
        symbol.name,
        _SYMBOLS[symbol.kind],
        range_at(analysis, min(symbol.begin, symbol.definition.start), end),
        token_range(analysis, symbol.definition),
        detail=analysis.symbol_type(symbol) or None,
        children=[_symbol(analysis, c) for c in symbol.children] or None,
    )


def _token_data(analysis: Analysis, first: int = 0, last: int | None = None) -> Sequence[int]:
    """The words between two offsets, as the protocol encodes them."""
    data: list[int] = []
    line = column = 0
    last = len(analysis.text) if last is None else last
    kinds = {name: i for i, name in enumerate(features.TOKEN_TYPES)}
    for offset, length, kind, defines in features.colors(analysis, first, last):
        if offset + length <= first or offset >= last:
            continue
        at_line, at_column = analysis.lines.position(offset)
        size = analysis.lines.position(offset + length)[1] - at_column
        data += [at_line - line, at_column - column if at_line == line else at_column, size, kinds[kind], int(defines)]
        line, column = at_line, at_column
    return data
