"""Relay text to IR.

The short loop in `_run` reads correct texts, over coarse tokens and the tables that Lark made. A text with an error is
read again by `recovery`. It finds the expected tokens, and reads on behind the error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import Diagnostic, Fix, RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import Expr, MetaRef, Var
from relaylang.ir.module import IRModule
from relaylang.ir.types import IncompleteType, Type
from relaylang.syntax.actions import ACTIONS, Build
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.plain import PlainStatements
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.actions.statements import Block
from relaylang.syntax.actions.types import quiet_tensor_type
from relaylang.syntax.metadata import load_metadata, module_attributes, numbered_constants, with_values
from relaylang.syntax.tables import Tables
from relaylang.syntax.tables import data as table_data
from relaylang.syntax.tokeniser import section_start
from relaylang.syntax.tokens import OpenComment, TokenSource, TokenWalk


@dataclass
class ParseResult:
    """The result of reading a text.

    - `module`: the module of its definitions; None for a fragment
    - `expr`: the fragment's expression; None for a text of definitions only
    - `free_vars`: the variables that nothing binds
    - `bindings`: the names that the fragment's outermost statements bind
    - `missing`: the metadata values that the text refers to and does not carry
    - `notes`: diagnostics below errors
    """

    module: IRModule | None
    expr: Expr | None
    source: SourceFile
    free_vars: list[Var] = field(default_factory=list)
    bindings: dict[str, Expr] = field(default_factory=dict)
    missing: list[MetaRef] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)

    @property
    def value(self) -> IRModule | Expr:
        """The expression, or the module where there is none."""
        if self.expr is not None:
            return self.expr
        assert self.module is not None
        return self.module


#: The tokens in front of a type that is read alone.
_TYPE_LEAD = ("free_var", "%type", ":")


class SyntaxStop(Exception):
    """The token at which the loop can go no further, and its stack: the rows and the first token of each value."""

    def __init__(self, at: int, rows: list[AnyValue], firsts: list[int]) -> None:
        self.at = at
        self.rows = rows
        self.firsts = firsts
        super().__init__(at)


class CutAnew(Exception):
    """The text needs other tokens: its comments nest, or a name has a dash in it."""


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables with this package's actions, once a process."""
    return Tables(table_data(), ACTIONS)


def run(
    tab: Tables, tokens: Iterable[str], parts: Sequence[AnyValue], source: TokenSource, vals: list[AnyValue] | None = None
) -> AnyValue:
    """Shift and reduce; each action of the tables is called with its part.

    Returns the value of the whole text. Tokens without the text's end leave the values of its unfinished phrases in `vals`, behind
    a None. Raises `SyntaxStop` at a token that cannot follow, and `CutAnew`.
    """
    row = tab.start
    rows = [row]
    vals = [] if vals is None else vals
    vals.append(None)
    pos = [0]
    kinds, kind_of = tab.kinds, tab.kind_of
    number = tab.numbers
    semicolon, inner = number["SEMI"], number["INNER"]
    # the tokens that begin a statement of a long text, and a walk of its own: the actions may look at the tokens, too
    walk, plain, begins = None, parts[-1], frozenset[int]()
    if isinstance(tokens, TokenWalk) and isinstance(plain, PlainStatements):
        tokens = walk = TokenWalk(source)
        begins = frozenset((number["GRAPHBIND"], number["LET"]))
    held: tuple[str, int] | None = None
    i = read = -1  # this token, and the last one in front of it that is no comment
    for tok in tokens:
        i += 1
        term = kinds.get(tok)
        if term is None:
            term = kind_of(tok)
        if term in begins and vals[-1].__class__ is Block:
            count = plain.read(walk.words, i - walk.begin, i, vals[-1])  # type: ignore[union-attr]
            if count:
                walk.skip(count - 1)  # type: ignore[union-attr]
                i = read = i + count - 1
                continue
        a = row[term]
        while True:
            if a.__class__ is list:
                rows.append(a)
                vals.append(tok)
                pos.append(i)
                row = a
            elif a is None:
                if term == number["COMMENT"]:
                    break
                if term == number["DASHED"]:
                    if not source.names_split:
                        raise CutAnew
                    term = number["LOCAL"]
                    a = row[term]
                    continue
                if tok == "/*" and not source.blanked:
                    raise CutAnew
                if term == semicolon and held is None and row[inner] is not None:
                    term = inner
                    a = row[term]
                    continue
                # a statement may end with its line
                if held is None and row[semicolon] is not None and (tok in ("", "}") or source.newline_before(i)):
                    held = tok, term
                    tok, term = ";", semicolon
                    a = row[term]
                    i -= 1
                    continue
                raise SyntaxStop(i if held is None else i + 1, rows, pos)
            else:
                n, part, act, column, completes = a
                if completes:
                    last = i if held is None else read
                    if n == 1:
                        first = i
                        val = tok if act is None else act(parts[part], tok, i, i)
                    else:
                        n = 1 - n
                        val = vals[n:]
                        val.append(tok)
                        first = pos[n]
                        del vals[n:], pos[n:], rows[n:]
                        if act is not None:
                            val = act(parts[part], val, first, last)
                else:
                    last = read
                    if n == 1:
                        rows.pop()
                        first = pos.pop()
                        val = vals.pop()
                        if act is not None:
                            val = act(parts[part], val, first, last)
                    elif n:
                        val = vals[-n:]
                        first = pos[-n]
                        del vals[-n:], pos[-n:], rows[-n:]
                        if act is not None:
                            val = act(parts[part], val, first, last)
                    else:
                        first = i
                        val = None if act is None else act(parts[part], None, i, last)
                a = rows[-1][column]
                while a.__class__ is tuple:
                    n, part, act, column, _ = a
                    if n == 1:
                        if act is not None:
                            val = act(parts[part], val, first, last)
                    else:
                        n = 1 - n
                        above = vals[n:]
                        above.append(val)
                        first = pos[n]
                        del vals[n:], pos[n:], rows[n:]
                        val = above if act is None else act(parts[part], above, first, last)
                    a = rows[-1][column]
                rows.append(a)
                vals.append(val)
                pos.append(first)
                row = a
                if not completes:
                    a = row[term]
                    continue
            if held is None:
                read = i
                break
            tok, term = held
            held = None
            i += 1
            a = row[term]
    return vals[1]


def _meta(source: TokenSource) -> dict[str, list[AnyValue]] | None:
    """The values of the metadata section, or None where the text has none."""
    start = source.end
    if start >= len(source.text):
        return None
    begin = section_start(source.text, start)
    return load_metadata(source.text[begin:], source.plain, begin)


def read(
    text: str,
    name: str,
    module: IRModule | None = None,
    variables: Mapping[str, Expr] | None = None,
    lead: Sequence[str] = (),
    constants: Mapping[str, np.ndarray] | None = None,
    open_globals: bool = False,
    metadata: Mapping[str, Sequence[AnyValue]] | None = None,
) -> tuple[Build, AnyValue, TokenSource]:
    """Read a text; with `open_globals` it may use functions that nothing defines.

    Returns the build with all its parts, the text's value, and the source. Raises `RelayError`.
    """
    source = TokenSource(name, text, tables(), lead)
    source.known.update("%" + known.removeprefix("%") for known in variables or ())
    meta = _meta(source)
    if metadata:
        meta = with_values(meta, metadata)
    if constants:
        meta = with_values(meta, numbered_constants(constants))

    def build(tokens: Sequence[str]) -> Build:
        build = Build(source, tokens, module, variables, meta, comment_type)
        build.functions.open = open_globals
        return build

    return read_source(source, build)


def read_source(source: TokenSource, start: Callable[[Sequence[str]], Build]) -> tuple[Build, AnyValue, TokenSource]:
    """Read a source with the build that `start` makes for its tokens. A second set of tokens gets another build.

    Returns the build with all its parts, the text's value, and the source. Raises `RelayError`, whose `partial` has the
    build and the value, with unknown values for wrong pieces.
    """
    tab = source.tables
    tokens = source.tokens()
    while True:
        build = start(tokens)
        try:
            with gc_paused():
                value = run(tab, tokens, build.parts, source)
            build.finish()
            try:
                build.reports.said.raise_errors()
            except RelayError as wrong:
                wrong.partial = build, value
                raise
            return build, value, source
        except CutAnew:
            try:
                tokens = source.cut_anew(tokens)
            except OpenComment as comment:
                span = Span(source.plain, comment.at, comment.at + 2)
                raise RelayError(error("R0102", "this comment is never closed", span, "`*/` is missing")) from None
        except SyntaxStop as stop:
            if not source.names_split and tab.numbers["DASHED"] in map(tab.kind_of, tokens):
                tokens = source.split_dashes(tokens)
                continue
            from relaylang.syntax.recovery import syntax_errors

            build = start(tokens)
            with gc_paused():
                diagnostics, value = syntax_errors(tab, tokens, source, stop.at, build)
            raise RelayError(diagnostics, (build, value)) from None


def comment_type(comment: str, reports: Reports, types: TypeNames) -> Type | None:
    """The type that a comment `ty=...` states; None where it states none that can be read."""
    text = comment.removesuffix("*/").strip().removeprefix("ty=")
    text = text.partition(" span=")[0].strip()
    known = quiet_tensor_type(text, reports) if text.startswith("Tensor[(") else None
    return known if known is not None else _type_of(text, types)


def _type_of(text: str, types: TypeNames) -> Type | None:
    """A type from its text and the type names of another reading; None where the text is no type."""
    tab = tables()
    source = TokenSource("<comment>", text, tab, _TYPE_LEAD)
    tokens = source.tokens()
    build = Build(source, tokens)
    build.types.known, build.types.variables = dict(types.known), dict(types.variables)
    try:
        run(tab, tokens, build.parts, source)
    except (SyntaxStop, CutAnew):
        return None
    free_vars = build.locals.free_vars
    if build.reports.said.errors or not free_vars:
        return None
    return free_vars[0].type_annotation


def parse(
    text: str,
    name: str = "<string>",
    module: IRModule | None = None,
    variables: Mapping[str, Expr] | None = None,
    constants: Mapping[str, np.ndarray] | None = None,
    metadata: Mapping[str, Sequence[AnyValue]] | None = None,
) -> ParseResult:
    """Read a module, an expression or a fragment.

    `name` is the text's name in diagnostics. The text may use the functions, types and constructors of `module`, and the
    `variables`. The resulting module holds the definitions of `module` and the text's own, which replace those of the same
    name. `constants` gives values to constants that the text refers to and does not carry, by their references
    (`meta[relay.Constant][0]`). `metadata` gives all kinds of such values: type key -> values by number. For a text that
    imports the library, use `relaylang.parse`. Raises `RelayError` with all errors.
    """
    try:
        build, (defines, expr), source = read(text, name, module, variables, constants=constants, metadata=metadata)
    except RelayError as wrong:
        if wrong.partial is not None:
            build, (defines, expr) = wrong.partial  # type: ignore[misc]
            wrong.partial = _result(build, defines, expr, module)
        raise
    notes = notes_of(build, defines)
    if not defines and expr is None and not build.text.versioned:
        raise RelayError(error("R0106", "there is nothing to read", source.offsets(0), "the text ends here"))
    return _result(build, defines, expr, module, notes)


def _result(build: Build, defines: bool, expr: Expr | None, known: IRModule | None, notes: Sequence[Diagnostic] = ()) -> ParseResult:
    module = _module(build, known) if defines or expr is None else None
    source, locals = build.reports.source, build.locals
    return ParseResult(module, expr, source, list(locals.free_vars), locals.bindings, build.meta.missing, list(notes))


def _module(build: Build, known: IRModule | None) -> IRModule:
    """The text's definitions together with those of the given module."""
    if known is None:
        return IRModule(build.functions.made, build.types.made, module_attributes(build.meta.values))
    return IRModule({**known.functions, **build.functions.made}, _replaced(known, build), known.attrs)


def _replaced(module: IRModule, build: Build) -> dict[AnyValue, AnyValue]:
    mine = {var.name_hint for var in build.types.made}
    kept = {var: data for var, data in module.type_definitions.items() if var.name_hint not in mine}
    return {**kept, **build.types.made}


def notes_of(build: Build, defines: bool) -> list[Diagnostic]:
    """The notes and warnings about a text that was read without errors."""
    notes = []
    if build.meta.missing:
        what = build.meta.missing
        untyped = sum(m.type_annotation is None for m in what)
        count = f"{len(what)} value{'s' if len(what) != 1 else ''} of the metadata section"
        lacks = "has no such section" if build.meta.values is None else "its section lacks them"
        held = len((build.meta.values or {}).get(what[0].type_key, ()))
        if len(what) == 1 and what[0].index >= held > 0:
            lacks = f"its section has {held} of this kind, numbered from 0"
        says = "the types are taken from the comments behind them" if not untyped else f"{untyped} without a type"
        span = build.reports.place(what[0].span.first) if what[0].span is not None else None
        title = f"the text refers to {count} and {lacks if len(what) > 1 else lacks.replace('them', 'it')}"
        notes.append(error("R0151", title, span, says, severity="note"))
    for row, places in build.operators.respelled.items():
        count = f" ({len(places)} calls)" if len(places) > 1 else ""
        title = f"`{row.name}` is read as {row.reading}{count}: {row.says}"
        hint = f"`relay fmt` writes `{row.now}`" if row.now != row.name else "`relay fmt` writes it as today"
        notes.append(error("R0152", title, build.reports.place(places[0]), notes=[hint], severity="note"))
    alone = build.type_actions.alone
    if alone:
        first, last = alone[0]
        count = f" ({len(alone)} types)" if len(alone) > 1 else ""
        title = f"a type alone in parentheses is a tuple of one, as in TVM{count}"
        inside = build.reports.source
        text = inside.text[inside.end_of(first) : inside.start_of(last)].strip()
        hints = [f"`({shown(text)},)` says the same; without parentheses it is the type itself"]
        notes.append(error("R0153", title, build.reports.place(first, last), notes=hints, severity="note"))
    if defines:
        notes += _header_notes(build)
    return notes


#: A first line that may be meant as the version header, and the version in one.
_LIKE_HEADER = re.compile(r"\s*((?:#|//)[\s\[({!#]*([A-Za-z]+)[\s=:]*[\"'“]?v?[0-9.]+[\"'”]?[\])}]*)")
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_WRITTEN = frozenset(f"0.0.{n}" for n in range(1, 6))


def _header_notes(build: Build) -> list[Diagnostic]:
    """The notes about a module's version header: it is missing, misspelt, or of no TVM."""
    source, header = build.reports.source, build.text.header
    if build.text.versioned:
        match = _VERSION.search(header)
        if not header or (match is not None and match[0] in _WRITTEN):
            return []
        what = f"no TVM wrote the version {match[0]}" if match is not None else "the version header has no version"
        start = source.text.find(header)
        span = Span(source.plain, start, start + len(header))
        return [error("R0150", f"{what}: the text is read as 0.0.5", span, severity="note", fix=_header_fix(span))]
    like = _LIKE_HEADER.match(source.text)
    if like is not None and (like[2].lower() == "version" or did_you_mean(like[2], ("version",))):
        span = Span(source.plain, *like.span(1))
        title = f"the text has no version header: `{shown(like[1])}` is a comment"
        return [error("R0150", title, span, severity="note", fix=_header_fix(span))]
    notes = ['texts begin with `#[version = "0.0.5"]`; TVM refuses those that do not']
    return [error("R0150", "the text has no version header", notes=notes, severity="note")]


def _header_fix(span: Span) -> Fix:
    header = '#[version = "0.0.5"]'
    return Fix(span, header, f"did you mean `{header}`?")


def parse_expr(text: str, name: str = "<string>") -> Expr:
    """Read one expression or fragment, which may use functions of a module that it is for.

    Raises `RelayError`, also where the text holds definitions.
    """
    _, (defines, expr), source = read(text, name, open_globals=True)
    if expr is None or defines:
        raise RelayError(error("R0110", "an expression is wanted here, not a module", source.offsets(0)))
    assert isinstance(expr, Expr)
    return expr


def fromtext(text: str, name: str = "<string>") -> IRModule | Expr:
    """Read a module or an expression, as `tvm.relay.fromtext` does. Raises `RelayError`."""
    return parse(text, name).value


def parse_type(text: str, name: str = "<string>", module: IRModule | None = None) -> Type:
    """Read one type, such as `Tensor[(1, 3), float32]`. Raises `RelayError`."""
    build, (defines, expr), source = read(text, name, module, lead=_TYPE_LEAD)
    if len(build.locals.free_vars) != 1 or defines or expr is not build.locals.free_vars[0]:
        raise RelayError(error("R0107", "one type is wanted here", source.offsets(0, len(build.reports.tokens))))
    return build.locals.free_vars[0].type_annotation or IncompleteType()


def leaves_comment(text: str) -> bool:
    """Whether a comment that begins in a text is open at its end."""
    return TokenSource("<input>", text, tables()).blank_comments() is not None


def is_complete(text: str) -> bool:
    """Whether a text is worth reading as it stands, for prompts that take several lines.

    False where a bracket, a comment or a string is open. Also False where the text is right so far and more must follow.
    """
    tab = tables()
    source = TokenSource("<input>", text, tab)
    tokens = source.tokens()
    while True:
        try:
            run(tab, tokens, Build(source, tokens).parts, source)
            return True
        except CutAnew:
            try:
                tokens = source.cut_anew(tokens)
            except OpenComment:
                return False
        except SyntaxStop as stop:
            token = tokens[stop.at]
            return token != "" and not (token[0] == '"' and tab.kind_of(token) == tab.numbers["BAD"])
        except RelayError:
            return True
