"""What a text takes from the library that it imports: the places and types of `@map`, `List`, `Cons`."""

from __future__ import annotations

import re
from importlib import resources

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Function, IRModule, type_text
from relaylang.stdlib.library import FILES, IMPORT, library
from relaylang.syntax.symbols import SymbolTable
from relaylang.syntax.tokeniser import Token

_STD = re.compile(r"<std/(\w+)>")


def imported(text: str) -> list[IRModule]:
    """The library's modules that a text imports."""
    names = [FILES[m[1]] for m in IMPORT.finditer(text) if m[1] in FILES] if "import" in text else []
    return [library(name) for name in dict.fromkeys(names)]


def _own(table: SymbolTable, token: Token) -> bool:
    """Whether the text itself says what the name is."""
    known = table.symbol_of(token)
    return known is not None and (known.definition is not None or known.kind == "operator")


def definition(table: SymbolTable, token: Token) -> Span | None:
    """Where the library defines a name of the text; the file's beginning for the name behind `import`."""
    if token.kind == "string":
        path = FILES.get(token.text.strip('"'))
        if path is None or not table.text[: token.start].rstrip().endswith("import"):
            return None
        first = next(iter(library(path).functions.values())).span
        return Span(SourceFile(first.source.name, first.source.text), 0, 0) if first is not None else None
    if _own(table, token):
        return None
    for module in imported(table.text):
        span: Span | None = None
        name = token.text.removeprefix("@").strip('"')
        if token.kind == "global" and name in module:
            span = module[name].span
        elif token.kind == "name":
            for header, data in module.type_definitions.items():
                if header.name_hint == name:
                    span = data.span
                span = next((c.span for c in data.constructors if c.name_hint == name), span)
        if span is not None:
            return _at_name(span, token.text)
    return None


def _at_name(span: Span, name: str) -> Span:
    """The name's own place in a definition."""
    text = span.source.text
    at = text.find(name, text.rfind("\n", 0, span.start) + 1)
    return Span(SourceFile(span.source.name, text), at, at + len(name)) if 0 <= at <= span.end else span


def path_of(span: Span) -> str | None:
    """The file of a place in the library; None for definitions that are made when they are asked for."""
    match = _STD.fullmatch(span.source.name)
    return file_of(match[1]) if match is not None else None


def file_of(name: str) -> str | None:
    """A file of the library; None where the package is no folder."""
    path = resources.files("relaylang") / "stdlib" / f"{name}.relay"
    return str(path) if path.is_file() else None


def type_of(table: SymbolTable, token: Token) -> str | None:
    """The type of a function that the text takes from the library."""
    if token.kind != "global" or _own(table, token):
        return None
    for module in imported(table.text):
        function = module[token.text[1:]] if token.text[1:] in module else None
        if isinstance(function, Function) and function.checked_type is not None:
            return type_text(function.checked_type)
    return None
