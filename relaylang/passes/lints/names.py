"""Lints on names: what nobody uses, and what hides another name."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from relaylang.diagnostics import Diagnostic, Fix, did_you_mean
from relaylang.ir import Function, GlobalVar, Let, post_order
from relaylang.passes.effects import may_have_effects
from relaylang.passes.lints.repairs import Repair, past_blanks
from relaylang.passes.lints.view import View, finding
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tokeniser import Token

#: Attributes of functions that somebody calls from outside, or that code generators made.
_OUTSIDE = ("global_symbol", "Compiler", "Primitive")

#: The attributes of functions that have a meaning here.
_MEANT = (
    "Primitive",
    "Compiler",
    "Composite",
    "PartitionedFromPattern",
    "Inline",
    "SkipOptimization",
    "global_symbol",
    "target",
    "kernel_layout",
    "data_layout",
    "relay.reshape_only",
    "virtual_device",
    "param_virtual_devices",
    "workspace_bytes",
)

#: Functions that a program's user calls. An import of a network with variables makes the second one.
_ENTRIES = ("main", "initial_state")


def _unused(view: View, kind: str) -> Iterator[tuple[Symbol, Token]]:
    """The symbols of a kind that no place uses. A name that begins with `_` is left out."""
    for symbol in view.symbols.symbols:
        token = symbol.definition
        if symbol.kind == kind and token is not None and not symbol.uses and not symbol.name[1:].startswith("_"):
            yield symbol, token


def unused_bindings(view: View) -> Iterator[Diagnostic]:
    """R1001: bindings and pattern variables that nobody uses. A `let` whose value has effects is left alone.

    A binding counts as unused, too, where only its own value or the values of unused bindings read it.
    """
    effects = set()
    for function in view.functions.values():
        having = may_have_effects(function)
        for node in post_order(function):
            if isinstance(node, Let) and node.variable.span is not None and id(node.value) in having:
                effects.add(node.variable.span.start)
    for symbol, token in _unused(view, "variable"):
        before = view.symbols.code[view.at[token.start] - 1].text if view.at[token.start] else ""
        if symbol.value_start < 0 and before not in ("let", "free_var"):
            span = view.span(token.start, token.end)
            blank = Fix(span, "_", "write _ for a value that nobody uses")
            yield finding("R1001", f"{symbol.name} is not used", span, "matched, and never used", fix=blank)
    for symbol, token, end, removable in _dead(view, effects):
        span = view.span(token.start, token.end)
        alone = all(token.start <= use.start < end for use in symbol.uses)
        label = "bound, and never used" if not symbol.uses else "bound, and only its own value reads it"
        label = label if alone else "bound, and only bindings that are not used read it"
        fix = _removal(view, token, end, not alone) if removable else None
        yield finding("R1001", f"{symbol.name} is not used", span, label, fix=fix)


def _dead(view: View, effects: set[int]) -> Iterator[tuple[Symbol, Token, int, bool]]:
    """The bindings that no other part of the program needs, with the ends of their statements.

    The last part says whether the statement may go: it holds no comment, and nothing reads it that stays.
    """
    bindings = sorted(_bindings(view, effects), key=lambda binding: binding[1].start)
    uses = [(use.start, at) for at, (symbol, _, _) in enumerate(bindings) for use in symbol.uses]
    reads: dict[int, list[int]] = defaultdict(list)
    holds: dict[int, list[int]] = defaultdict(list)
    for at, around in enumerate(_innermost(bindings, [token.start for _, token, _ in bindings])):
        holds[around].append(at)
    for (_, at), around in zip(uses, _innermost(bindings, [place for place, _ in uses])):
        reads[around].append(at)
    needed = _needed([-1], reads, holds)
    commented = [at for at, (_, token, end) in enumerate(bindings) if at not in needed and view.has_comment(token.start, end)]
    stays = _needed([-1, *commented], reads, holds)
    yield from [(*binding, at not in stays) for at, binding in enumerate(bindings) if at not in needed]


def _bindings(view: View, effects: set[int]) -> Iterator[tuple[Symbol, Token, int]]:
    """The bound variables that should have a use, with the ends of their statements."""
    for symbol in view.symbols.symbols:
        token = symbol.definition
        if symbol.kind == "variable" and token is not None and symbol.value_start >= 0:
            end = _statement_end(view, token)
            if end is not None and symbol.value_start < symbol.begin < end:  # it ends with its line
                end = view.symbols.code[bisect_left(view.starts, symbol.begin) - 1].end
            if end is not None and not symbol.name[1:].startswith("_") and token.start not in effects:
                yield symbol, token, end


def _needed(roots: list[int], reads: dict[int, list[int]], holds: dict[int, list[int]]) -> set[int]:
    """The bindings that are read where something runs; -1 is the part of the program outside of them.

    A binding's value runs where the binding is read, and the one around it runs.
    """
    read, runs, waiting = set(roots), set(roots), list(roots)
    seen: set[int] = set()
    while waiting:
        around = waiting.pop()
        if around not in seen:
            seen.add(around)
            read.update(reads.get(around, ()))
            runs.update(holds.get(around, ()))
            waiting += [at for at in {*reads.get(around, ()), *holds.get(around, ())} if at in read and at in runs]
    return read


def _innermost(stretches: list[tuple[Symbol, Token, int]], places: list[int]) -> list[int]:
    """The number of the innermost statement around each place, or -1. One that begins at a place is not around it."""
    innermost = [-1] * len(places)
    stack: list[int] = []
    following = 0
    for number in sorted(range(len(places)), key=places.__getitem__):
        place = places[number]
        while following < len(stretches) and stretches[following][1].start < place:
            while stack and stretches[stack[-1]][2] <= stretches[following][1].start:
                stack.pop()
            stack.append(following)
            following += 1
        while stack and stretches[stack[-1]][2] <= place:
            stack.pop()
        innermost[number] = stack[-1] if stack else -1
    return innermost


def _statement_end(view: View, token: Token) -> int | None:
    """Where a binding's statement ends, behind its `;`; None where it has none."""
    code = view.symbols.code
    number = view.at[token.start]
    while number < len(code) and code[number].text not in (";", ")", "]", "}"):
        number = view.closing.get(number, number) + 1
    return code[number].end if number < len(code) and code[number].text == ";" and number + 1 < len(code) else None


def _removal(view: View, token: Token, end: int, together: bool) -> Fix | None:
    """The repair that takes a statement out, with its line where it has one of its own. A comment in it keeps it."""
    code = view.symbols.code
    at = view.at[token.start]
    text = view.source.text
    begin = code[at - 1].start if at and code[at - 1].text == "let" else token.start
    if view.has_comment(begin, end):
        return None
    line = text.rfind("\n", 0, begin) + 1
    after = past_blanks(text, end)
    if not text[line:begin].strip() and text[after : after + 1] == "\n":
        begin, after = line, after + 1
    return Repair(view.span(begin, after), "", "remove the binding", together=together)


def unused_parameters(view: View) -> Iterator[Diagnostic]:
    """R1002: parameters that a body does not use. Those of @main are the program's face."""
    tops = {token.start: name for name, token in _definitions(view).items()}
    starts = sorted(tops)
    main = view.functions.get("main")
    names = {symbol.name for symbol in view.symbols.symbols}
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
        new = f"%_{symbol.name[1:]}"
        while new in names:
            new = f"%_{new[1:]}"
        fix = Fix(span, new, "begin the name with _ to say that it is not used")
        yield finding("R1002", f"the parameter {symbol.name} is not used", span, "given, and never used", fix=fix)


def _definitions(view: View) -> dict[str, Token]:
    """Where each global function is defined."""
    table = view.symbols.globals
    return {name: symbol.definition for name, symbol in table.items() if symbol.definition is not None}


def unused_functions(view: View) -> Iterator[Diagnostic]:
    """R1003: functions that @main does not reach, in a module that has a @main."""
    if "main" not in view.functions:
        return
    reached, stack = set(_ENTRIES), list(_ENTRIES)
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
                yield finding(
                    "R1004",
                    f"{name} hides another variable of this name",
                    view.span(token.start, token.end),
                    "this one",
                    at=view.span(hidden.start, hidden.end),
                    also="hidden from there on",
                )
            open_ones.append(symbol)


__all__ = ["shadowing", "unused_bindings", "unused_functions", "unused_parameters"]


def misspelt_attributes(view: View) -> Iterator[Diagnostic]:
    """R1013: attributes of functions whose names are nearly those of attributes that have a meaning."""
    for node in view.nodes:
        if not isinstance(node, Function) or node.span is None:
            continue
        text = node.span.text
        for name in node.attrs:
            near = did_you_mean(name, _MEANT) if name not in _MEANT else None
            written = re.search(rf"(?<![\w.\"]){re.escape(name)}(?=\s*=)", text) if near is not None else None
            if near is not None and written is not None:
                span = view.span(node.span.start + written.start(), node.span.start + written.end())
                fix = Fix(span, near, f"did you mean {near}?")
                yield finding("R1013", f"no attribute of functions is called {name}", span, "nothing reads it", fix=fix)
