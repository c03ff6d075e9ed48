"""What editors ask, answered in offsets of the text: no protocol here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relaylang.diagnostics import Diagnostic, Fix
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, type_text
from relaylang.ir.types import READABLE
from relaylang.lsp import standard
from relaylang.lsp.analysis import Analysis, checked
from relaylang.ops import OPS
from relaylang.ops.record import Op
from relaylang.passes import lints
from relaylang.repl.calls import OpenCall, Signature, function_signature, op_signature, open_call
from relaylang.repl.opdoc import default_text, example, kind_text, parameters, type_rule
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tokeniser import Token

#: The new names that a rename takes: fewer than the language has, as `%a.b` may mean a field.
_VARIABLE = re.compile(r'%(?:[A-Za-z_]\w*|\d+|"(?:[^"\\\n]|\\.)+")')
_GLOBAL = re.compile(r'@(?:[A-Za-z_][\w.]*|"(?:[^"\\\n]|\\.)+")')
_WORD = re.compile(r"[A-Za-z_]\w*")
_LINE = re.compile(r"[^\r\n]+")
#: How much of the text in front of the cursor is looked at.
_REACH = 8000

#: The kinds of words, for colours.
TOKEN_TYPES = [
    *("variable", "parameter", "function", "type", "enumMember", "property"),
    *("keyword", "number", "string", "comment", "operator", "macro"),
]


def op_markdown(op: Op) -> str:
    """An operator's page."""
    lines = ["```relay", f"{op.name}({', '.join(parameters(op))})", "```"]
    if op.doc:
        lines.append(op.doc)
    rule = type_rule(op)
    if rule:
        lines += ["", f"Type: {rule}"]
    if op.schema:
        lines.append("")
        lines += [f"- `{f.name}`: {kind_text(f)}; {default_text(f)}" for f in op.schema.values()]
    shown = example(op)
    if shown is not None:
        lines += ["", f"```{shown.language}", shown.text, f"{'//' if shown.language == 'relay' else '#'} : {shown.result}", "```"]
    return "\n".join(lines)


def hover(analysis: Analysis, offset: int) -> tuple[Token, str] | None:
    """The word at an offset, and what there is to say about it as Markdown."""
    occurrence = analysis.table.symbol_at(offset)
    if occurrence is None:
        token = analysis.table.token_at(offset)
        if token is not None and analysis.table.is_attribute(token):
            return _attribute(analysis, token)
        return None
    token, symbol = occurrence
    if symbol.kind == "operator":
        op = OPS[symbol.name]
        call = analysis.call_at(token.start)
        ty = call.checked_type if isinstance(call, Call) else None
        here = f"```relay\n: {type_text(ty, READABLE)}\n```\n" if ty is not None else ""
        return token, here + op_markdown(op)
    if symbol.kind == "type":
        inside = ", ".join(c.name for c in symbol.children)
        return token, f"```relay\ntype {symbol.name} {{ {inside} }}\n```"
    if symbol.kind == "constructor":
        return token, f"```relay\n{_line(analysis, symbol)}\n```"
    says = analysis.symbol_type(symbol) or standard.type_of(analysis.table, token)
    return token, f"({symbol.kind})\n```relay\n{symbol.name}: {says or '?'}\n```"


def _line(analysis: Analysis, symbol: Symbol) -> str:
    """A definition's text up to the end of its line or its comma."""
    assert symbol.definition is not None
    text = analysis.text[symbol.definition.start :].split("\n", 1)[0]
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth < 0 or (c == "," and not depth):
            return text[:i].strip()
    return text.strip()


def _attribute(analysis: Analysis, token: Token) -> tuple[Token, str] | None:
    call = open_call(analysis.text[max(0, token.start - _REACH) : token.start])
    op = OPS.get(call.name) if call is not None else None
    field = op.schema.get(token.text) if op is not None else None
    if field is None or op is None:
        return None
    return token, f"```relay\n{field.name}: {field.kind}\n```\n{kind_text(field)}; {default_text(field)}, of `{op.name}`"


def definition(analysis: Analysis, offset: int) -> Token | None:
    occurrence = analysis.table.symbol_at(offset)
    return occurrence[1].definition if occurrence is not None else None


def library_definition(analysis: Analysis, offset: int) -> tuple[str, Span] | None:
    """The library's file, and the place in it, that defines the name at an offset."""
    token = analysis.table.token_at(offset)
    span = standard.definition(analysis.table, token) if token is not None else None
    path = standard.path_of(span) if span is not None else None
    return (path, span) if path is not None and span is not None else None


def references(analysis: Analysis, offset: int, with_definition: bool = True) -> list[Token]:
    """Every place of the name at an offset."""
    occurrence = analysis.table.symbol_at(offset)
    if occurrence is None:
        return []
    symbol = occurrence[1]
    places = symbol.places()
    return [p for p in places if with_definition or p is not symbol.definition]


class CannotRename(Exception):
    """Why a name cannot be another one."""


def renamable(analysis: Analysis, offset: int) -> tuple[Token, Symbol]:
    """The name at an offset. Raises `CannotRename` where it is none of this text's."""
    occurrence = analysis.table.symbol_at(offset)
    if occurrence is None:
        raise CannotRename("there is no name here")
    symbol = occurrence[1]
    if symbol.kind == "operator" or (symbol.definition is None and symbol.kind != "variable"):
        raise CannotRename(f"{symbol.name} is not defined in this text")
    return occurrence


def rename(analysis: Analysis, offset: int, new: str) -> list[tuple[Token, str]]:
    """The places of the name at an offset, with their new texts. Raises `CannotRename`."""
    symbol = renamable(analysis, offset)[1]
    sigil = symbol.name[0] if symbol.name[0] in "%@" else ""
    text = new if not sigil or new.startswith(sigil) else sigil + new
    pattern = {"%": _VARIABLE, "@": _GLOBAL}.get(sigil, _WORD)
    if not pattern.fullmatch(text):
        raise CannotRename(f"{new} is no name here" + ("; write it as " + sigil + '"..."' if sigil else ""))
    if text != symbol.name and _taken(analysis, symbol, text):
        raise CannotRename(f"{text} is another thing here")
    return [(place, text) for place in symbol.places()]


def _taken(analysis: Analysis, symbol: Symbol, name: str) -> bool:
    table = analysis.table
    if symbol.kind == "function":
        return name in table.globals
    if symbol.kind in ("type", "constructor"):
        return name in table.types or name in table.constructors or name in OPS
    for other in table.symbols:
        if other.name == name and other.kind in ("variable", "parameter"):
            low, high = other.begin, other.end if other.end >= 0 else len(analysis.text)
            mine = symbol.begin, symbol.end if symbol.end >= 0 else len(analysis.text)
            if other.definition is None or (low <= mine[1] and mine[0] <= high):
                return True
    return False


def signature(analysis: Analysis, offset: int) -> Signature | None:
    """The signature of the call that is open at an offset."""
    call = open_call(analysis.text[max(0, offset - _REACH) : offset])
    if call is None:
        return None
    if call.name.startswith("@"):
        symbol = analysis.table.globals.get(call.name)
        says = analysis.symbol_type(symbol) if symbol is not None else None
        if symbol is not None and says is None and symbol.uses:
            says = standard.type_of(analysis.table, symbol.uses[0])
        return function_signature(call, says) if says else None
    return op_signature(call) or _constructor(analysis, call)


def _constructor(analysis: Analysis, call: OpenCall) -> Signature | None:
    symbol = analysis.table.constructors.get(call.name)
    return function_signature(call, _line(analysis, symbol).removeprefix(call.name)) if symbol is not None else None


def outline(analysis: Analysis) -> list[Symbol]:
    """The functions and types, in order."""
    return sorted((s for s in analysis.table.symbols if s.kind in ("function", "type") and s.definition), key=lambda s: s.begin)


def named(analysis: Analysis, query: str) -> Iterator[tuple[Symbol, str]]:
    """The functions, types and constructors whose names have the query's letters in this order, and the type around them."""
    pattern = re.compile(".*".join(map(re.escape, query)), re.I | re.S)
    for symbol in outline(analysis):
        if pattern.search(symbol.name):
            yield symbol, ""
        for inner in symbol.children:
            if pattern.search(inner.name):
                yield inner, symbol.name


def colors(analysis: Analysis, first: int, last: int) -> Iterator[tuple[int, int, str, bool]]:
    """The offset, length and kind (of `TOKEN_TYPES`) of each word, and whether it is a definition. Lines are not crossed.

    These are the words of the definitions between two offsets, or around them.
    """
    table = analysis.table
    plain = {
        "keyword": "keyword",
        "constant": "keyword",
        "number": "number",
        "string": "string",
        "comment": "comment",
        "type": "type",
        "header": "macro",
        "arrow": "operator",
    }
    names = {
        "variable": "variable",
        "parameter": "parameter",
        "function": "function",
        "type": "type",
        "constructor": "enumMember",
        "operator": "function",
    }
    for t in (token for placed in table.within(first, last) for token in placed.tokens):
        known = table.symbol_of(t)
        if known is not None:
            yield t.start, len(t.text), names[known.kind], known.definition == t
        elif table.is_attribute(t):
            yield t.start, len(t.text), "property", False
        elif t.kind in plain:
            for line in _LINE.finditer(t.text):
                yield t.start + line.start(), len(line.group()), plain[t.kind], False


def hints(analysis: Analysis, first: int, last: int) -> Iterator[tuple[int, str]]:
    """Types that are not written, and where they would stand."""
    text = analysis.text
    for symbol in (symbol for placed in analysis.table.within(first, last) for symbol in placed.locals):
        token = symbol.definition
        if token is None or not first <= token.start <= last:
            continue
        if text[token.end : token.end + 20].lstrip(" ").startswith((":", "/* ty=")):
            continue
        says = analysis.symbol_type(symbol)
        if says:
            yield token.end, f": {says}"


@dataclass
class Action:
    """A repair that a diagnostic suggests."""

    title: str
    fix: Fix
    diagnostic: Diagnostic


def actions(analysis: Analysis, first: int, last: int) -> list[Action]:
    """The repairs of the errors and findings between two offsets."""
    out = []
    for d in [*analysis.diagnostics, *analysis.findings]:
        if d.fix is None or d.span is None or d.span.source.name != analysis.name:
            continue
        if isinstance(d.fix, lints.Repair) and d.fix.together:
            continue
        places = [analysis.range_of(d.span), analysis.range_of(d.fix.span)]
        if any(start <= last and first <= end for start, end in places):
            replaced = d.fix.replacement
            out.append(Action(d.fix.title or (f"write `{replaced}`" if replaced else "remove it"), d.fix, d))
    return out


def repaired(analysis: Analysis) -> str:
    """The text with all repairs of lints."""
    codes = analysis.lints
    if not codes or not any(d.fix is not None for d in analysis.findings):
        return analysis.text
    source = SourceFile(analysis.name, analysis.text)
    return lints.repaired(source, lambda module, source: lints.lint(module, source, codes), checked)[0]
