"""Requests about a text's shape: folding, growing selections, imported files, and who calls whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lsprotocol import types as lsp

from relaylang.lsp import structure
from relaylang.lsp.analysis import Analysis
from relaylang.lsp.protocol import RelayServer, range_at, token_range
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tokeniser import Token


def add(server: RelayServer) -> None:
    """Give a server these requests."""

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        folds = structure.folds(server.analysis(params.text_document.uri))
        return [lsp.FoldingRange(first, last, kind=kind or None) for first, last, kind in folds]

    @server.feature(lsp.TEXT_DOCUMENT_SELECTION_RANGE)
    def selection(params: lsp.SelectionRangeParams) -> list[lsp.SelectionRange]:
        analysis = server.analysis(params.text_document.uri)
        out = []
        for position in params.positions:
            inner: lsp.SelectionRange | None = None
            for start, end in reversed(structure.selections(analysis, analysis.lines.offset(position.line, position.character))):
                inner = lsp.SelectionRange(range_at(analysis, start, end), inner)
            assert inner is not None  # the whole text is one
            out.append(inner)
        return out

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_LINK)
    def links(params: lsp.DocumentLinkParams) -> list[lsp.DocumentLink]:
        analysis = server.analysis(params.text_document.uri)
        targets = structure.links(analysis)
        return [lsp.DocumentLink(range_at(analysis, start, end), Path(path).as_uri()) for start, end, path in targets]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    def prepare(params: lsp.CallHierarchyPrepareParams) -> list[lsp.CallHierarchyItem]:
        analysis, offset = server.at(params)
        occurrence = analysis.table.symbol_at(offset)
        known = occurrence is not None and occurrence[1].kind == "function" and occurrence[1].definition is not None
        return [_item(analysis, occurrence[1], params.text_document.uri)] if known and occurrence is not None else []

    @server.feature(lsp.CALL_HIERARCHY_INCOMING_CALLS)
    def incoming(params: lsp.CallHierarchyIncomingCallsParams) -> list[lsp.CallHierarchyIncomingCall]:
        analysis = server.analysis(params.item.uri)
        callers = _items(analysis, structure.callers(analysis, params.item.name), params.item.uri)
        return [lsp.CallHierarchyIncomingCall(item, places) for item, places in callers]

    @server.feature(lsp.CALL_HIERARCHY_OUTGOING_CALLS)
    def outgoing(params: lsp.CallHierarchyOutgoingCallsParams) -> list[lsp.CallHierarchyOutgoingCall]:
        analysis = server.analysis(params.item.uri)
        callees = _items(analysis, structure.callees(analysis, params.item.name), params.item.uri)
        return [lsp.CallHierarchyOutgoingCall(item, places) for item, places in callees]


def _item(analysis: Analysis, function: Symbol, uri: str) -> lsp.CallHierarchyItem:
    """A function that the text defines."""
    assert function.definition is not None
    return lsp.CallHierarchyItem(
        function.name,
        lsp.SymbolKind.Function,
        uri,
        range_at(analysis, function.begin, max(function.end, function.definition.end)),
        token_range(analysis, function.definition),
        detail=analysis.symbol_type(function),
    )


def _items(
    analysis: Analysis, calls: Mapping[str, Sequence[Token]], uri: str
) -> Iterator[tuple[lsp.CallHierarchyItem, list[lsp.Range]]]:
    """Functions with the places of calls."""
    for name, tokens in calls.items():
        yield _item(analysis, analysis.table.globals[name], uri), [token_range(analysis, t) for t in tokens]


__all__ = ["add"]
