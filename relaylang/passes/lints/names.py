"""Lints on names: what nobody uses, and what hides another name."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from relaylang.diagnostics import Diagnostic, Fix
from relaylang.ir import GlobalVar, Let, post_order
from relaylang.passes.effects import may_have_effects
from relaylang.passes.lints.view import View, finding
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tokeniser import Token

#: Attributes of functions that somebody calls from outside, or that code generators made.
_OUTSIDE = ("global_symbol", "Compiler", "Primitive")


def _unused(view: View, kind: str) -> Iterator[tuple[Symbol, Token]]:
    """The symbols of a kind that no place uses. A name that begins with `_` is left out."""
    for symbol in view.symbols.symbols:
        token = symbol.definition
        if symbol.kind == kind and token is not None and not symbol.uses and not symbol.name[1:].startswith("_"):
            yield symbol, token


def unused_bindings(view: View) -> Iterator[Diagnostic]:
    """R1001: bindings and pattern variables that nobody uses. A `let` whose value has effects is left alone."""
    effects = set()
    for function in view.functions.values():
        having = may_have_effects(function)
        for node in post_order(function):
            if isinstance(node, Let) and node.variable.span is not None and id(node.value) in having:
                effects.add(node.variable.span.start)
    for symbol, token in _unused(view, "variable"):
        if token.start in effects:
            continue
        span = view.span(token.start, token.end)
        if symbol.value_start < 0:
            fix = Fix(span, "_", "write _ for a value that nobody uses")
            yield finding("R1001", f"{symbol.name} is not used", span, "matched, and never used", fix=fix)
        else:
            yield finding("R1001", f"{symbol.name} is not used", span, "bound, and never used", fix=_removal(view, token))


def _removal(view: View, token: Token) -> Fix | None:
    """The repair that takes a statement out, with its line where it has one of its own."""
    code = view.symbols.code
    at = number = view.at[token.start]
    while number < len(code) and code[number].text not in (";", ")", "]", "}"):
        number = view.closing.get(number, number) + 1
    if number == len(code) or code[number].text != ";":
        return None
    text = view.source.text
    begin = code[at - 1].start if at and code[at - 1].text == "let" else token.start
    end = code[number].end
    line = text.rfind("\n", 0, begin) + 1
    if not text[line:begin].strip() and text[end : end + 1] == "\n":
        begin, end = line, end + 1
    return Fix(view.span(begin, end), "", "remove the binding")


def unused_parameters(view: View) -> Iterator[Diagnostic]:
    """R1002: parameters that a body does not use. Those of @main are the program's face."""
    tops = {token.start: name for name, token in _definitions(view).items()}
    starts = sorted(tops)
    main = view.functions.get("main")
    face = {p.span.start for p in main.params if p.span is not None} if main is not None else set()
    for symbol, token in _unused(view, "parameter"):
        above = bisect_left(starts, token.start)
        name = tops[starts[above - 1]] if above else ""
        function = view.functions.get(name[1:])
        if function is None or any(key in function.attrs for key in _OUTSIDE):
            continue
        if token.start in face:
            continue
        span = view.span(token.start, token.end)
        fix = Fix(span, f"%_{symbol.name[1:]}", "begin the name with _ to say that it is not used")
        yield finding("R1002", f"the parameter {symbol.name} is not used", span, "given, and never used", fix=fix)


def _definitions(view: View) -> dict[str, Token]:
    """Where each global function is defined."""
    table = view.symbols.globals
    return {name: symbol.definition for name, symbol in table.items() if symbol.definition is not None}


def unused_functions(view: View) -> Iterator[Diagnostic]:
    """R1003: functions that @main does not reach, in a module that has a @main."""
    if "main" not in view.functions:
        return
    reached, stack = {"main"}, ["main"]
    while stack:
        function = view.functions.get(stack.pop())
        for node in post_order(function) if function is not None else ():
            if isinstance(node, GlobalVar) and node.name_hint not in reached:
                reached.add(node.name_hint)
                stack.append(node.name_hint)
    for name, token in _definitions(view).items():
        function = view.functions.get(name[1:])
        if name[1:] in reached or function is None or any(key in function.attrs for key in _OUTSIDE):
            continue
        if not name[1:].startswith("_"):
            span = view.span(token.start, token.end)
            yield finding("R1003", f"{name} is not used", span, "@main does not reach it")


def shadowing(view: View) -> Iterator[Diagnostic]:
    """R1004: variables that hide another one of the same name. Numbers name nodes, not variables."""
    named: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in view.symbols.symbols:
        if symbol.kind in ("variable", "parameter") and symbol.definition is not None and not symbol.name[1:].isdecimal():
            named[symbol.name].append(symbol)
    for name, symbols in named.items():
        open_ones: list[Symbol] = []
        for symbol in sorted(symbols, key=lambda s: s.definition.start if s.definition is not None else 0):
            token = symbol.definition
            assert token is not None
            while open_ones and 0 <= open_ones[-1].end < token.start:
                open_ones.pop()
            hidden = open_ones[-1].definition if open_ones and not name[1:].startswith("_") else None
            if hidden is not None:
                yield finding("R1004", f"{name} hides another variable of this name", view.span(token.start, token.end),
                              "this one", at=view.span(hidden.start, hidden.end), also="hidden from there on")  # fmt: skip
            open_ones.append(symbol)


__all__ = ["shadowing", "unused_bindings", "unused_functions", "unused_parameters"]
