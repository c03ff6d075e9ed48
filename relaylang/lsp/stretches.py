"""A long function's text in stretches of whole statements: an edit reads one of them again, and those that it concerns.

A stretch is read with the names that the ones in front of it bind, and counts places from its own beginning. The variable of
a let stays the same where the let is read again, so statements that use it stay as they are. Those that use another
node, which has no variable, are read again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import isqrt
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Expr, Function, GlobalTypeVar, GlobalVar, IRModule, Let, Var
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import typed
from relaylang.lsp.nodes import by_start
from relaylang.syntax.actions import Build
from relaylang.syntax.actions.functions import Signature
from relaylang.syntax.actions.statements import Block, StatementActions
from relaylang.syntax.reader import CutAnew, SyntaxStop, comment_type, notes_of, run, tables
from relaylang.syntax.recovery.recover import syntax_errors
from relaylang.syntax.symbols import Definition, Symbol
from relaylang.syntax.tokens import OpenComment, TokenSource
from relaylang.syntax.tree import begins_definitions

#: The fewest characters of a function, and the fewest statements of a stretch, that are worth the cut.
_LONG, _STATEMENTS = 4000, 32
_HEAD_ENDS = re.compile(r"\{[ \t]*\n")
_STATEMENT_ENDS = re.compile(r";[ \t]*\n")
#: The names in a text by their first words: `%a` for `%a.b`, too.
_NAMES = re.compile(r"[%@]\w+")
#: Behind the last token of a source.
_LAST = 1 << 40


class Known:
    """The shared knowledge of a text's parts: names of functions and types, and type definitions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.functions: dict[str, GlobalVar] = {}
        self.type_vars: dict[str, GlobalTypeVar] = {}
        self.types = IRModule()

    def build_of(self, source: TokenSource) -> Callable[[Sequence[str]], Build]:
        """Makes the build of a part for its tokens. The part needs no version header."""

        def start(tokens: Sequence[str]) -> Build:
            build = Build(source, tokens, self.types, None, None, comment_type, self.functions, self.type_vars)
            build.text.versioned = True
            return build

        return start


class NotByStretches(Exception):
    """The function must be read as a whole."""


class Stretch(Definition):
    """Some statements of a function. The first stretch is the function's head, the last one has the value of the body.

    `names` are those of variables in front of it. It binds `bound`: the names' expressions. `again` has variables of lets
    that are to stay the same. Raises `NotByStretches` where a statement goes on behind it, and for errors of syntax. With
    `ahead`, the text behind a middle stretch, only for those whose messages may depend on other stretches.
    """

    def __init__(
        self,
        text: str,
        known: Known,
        names: Mapping[str, Expr],
        again: Mapping[str, Var],
        lead: Sequence[str],
        last: bool = False,
        ahead: str | None = None,
    ) -> None:
        super().__init__(text)
        self.lead = lead
        self.used = frozenset(_NAMES.findall(text))
        self.function: Function | None = None
        self.signature: Signature | None = None
        self.said: list[Diagnostic] = []
        self.lets: list[Any] = []
        self.bound: dict[str, Expr] = {}
        build, tokens = self._build(text, known, names, again)
        values: list[Any] = []
        try:
            run(self.source.tables, tokens if last else tokens[:-1], build.parts, self.source, values)
            build.finish()
            self.said += build.reports.said.items
            if last:
                self.function = next(iter(build.functions.made.values()), None)
            elif not self._begun(values, build):
                raise SyntaxStop(len(tokens), [], [])
        except SyntaxStop:
            if ahead is None:
                raise NotByStretches from None
            build = self._recovered(ahead, known, names, again, last)
        except (CutAnew, OpenComment, RelayError):
            raise NotByStretches from None
        self.reported = {(code, name) for code, name in build.reports.reported if any(name in d.title for d in self.said)}
        locals, said = build.locals, build.reports.said
        lines = any("is bound" in note for d in self.said for note in d.notes)  # these count from the function's beginning
        if (
            locals.reused
            or locals.bare
            or notes_of(build, False)
            or said.errors > said.limit
            or lines
            or (last and self.function is None)
        ):
            raise NotByStretches

    def _begun(self, values: list[Any], build: Build) -> bool:
        """Take over the lets or the signature that a text without its function's end leaves. Returns whether it leaves any."""
        if len(values) == 4 and isinstance(values[3], Block):
            self.lets = values[3].lets
            self.bound = {key: build.locals.names[key] for key in values[3].seen}
        elif len(values) == 3 and isinstance(values[1], Signature) and not self.lead:
            self.signature = values[1]
        else:
            return False
        return True

    def _build(self, text: str, known: Known, names: Mapping[str, Expr], again: Mapping[str, Var]) -> tuple[Build, Sequence[str]]:
        self.source = TokenSource(known.name, text, tables(), self.lead)
        tokens = self.source.tokens()
        build = known.build_of(self.source)(tokens)
        build.locals.outer, build.locals.again = names, dict(again)  # type: ignore[assignment]
        return build, tokens

    def _recovered(self, ahead: str, known: Known, names: Mapping[str, Expr], again: Mapping[str, Var], last: bool) -> Build:
        """The build of a stretch with an error of syntax. It reads what can be read behind the error."""
        build, tokens = self._build(self.text + ahead, known, names, again)
        try:
            run(self.source.tables, tokens, build.parts, self.source)
            raise NotByStretches
        except SyntaxStop as stop:
            at = stop.at
        build, tokens = self._build(self.text + ahead, known, names, again)
        tab, end = self.source.tables, len(self.lead) + bisect_left(self.source.places()[0], len(self.text))
        depths = list(accumulate((token == "{") - (token == "}") for token in tokens[len(self.lead) : end]))
        quotes = any(token[:1] == '"' and tab.kind_of(token) == tab.numbers["BAD"] for token in tokens)
        if quotes or min(depths, default=0) < -last or depths[-1:] != [-last]:
            raise NotByStretches
        statements = next(part for part in build.parts if isinstance(part, StatementActions))
        closed: list[tuple[Block, dict[str, Any]]] = []
        statements.closed = closed
        diagnostics, _ = syntax_errors(tab, tokens, self.source, at, build)
        # another stretch says which names are not known in it
        self.said = [d for d in diagnostics if d.span is None or d.span.start < len(self.text) or d.code[:3] != "R02"]
        places = [label.span.start for d in self.said for label in d.labels]
        if not build.functions.made or not closed or not all(d.labels for d in self.said) or max(places) >= len(self.text):
            raise NotByStretches
        if last:
            self.function = next(iter(build.functions.made.values()))
        else:
            block, bound = closed[-1]
            self.lets = [statement for statement in block.lets if statement[3] < end]
            self.bound = {key: value for key, value in bound.items() if block.seen[key][3] < end}
        return build

    @cached_property
    def nodes(self) -> dict[int, list[Expr]]:
        """Its nodes by where they begin in it."""
        roots: list[Expr] = list(self.signature.params) if self.signature is not None else []
        roots += [self.function.body] if self.function is not None else []
        roots += [node for _, _, value, _, var in self.lets for node in (value, var)]
        return by_start([*roots, *self.bound.values()], self.source)


class Stretches:
    """The stretches of a function. Raises `NotByStretches` for a short one, for errors, and for one with type parameters."""

    def __init__(self, text: str, known: Known) -> None:
        head = _HEAD_ENDS.search(text) if len(text) >= _LONG and '%"' not in text else None
        ends = [match.end() for match in _STATEMENT_ENDS.finditer(text, head.end())] if head is not None else []
        if head is None or len(ends) < 2 * _STATEMENTS:
            raise NotByStretches
        step = max(_STATEMENTS, isqrt(len(ends)))
        first = Stretch(text[: head.end()], known, {}, {}, ())
        signature = first.signature
        assert signature is not None
        if signature.attrs or signature.binders:
            raise NotByStretches
        self.signature = signature
        self.known = known
        self.lead = ("def", f"@{signature.name}", "(", ")", "{")
        self.most = 4 * (len(text) * step // len(ends))
        self.all = [first]
        names: dict[str, Expr] = {f"%{param.name_hint}": param for param in signature.params}
        begin = head.end()
        with gc_paused():
            for end in [*ends[step - 1 : -1 : step], ends[-1]]:
                try:
                    self.all.append(self._read(text[begin:end], names, {}))
                except NotByStretches:
                    if end - begin > self.most or end == ends[-1]:
                        raise
                    continue
                begin = end
                if not names.keys().isdisjoint(self.all[-1].bound):
                    raise NotByStretches
                names |= self.all[-1].bound
            self.all.append(self._read(text[begin:], names, {}, True))
        if any(stretch.said for stretch in self.all):
            raise NotByStretches
        self._assemble(text, ())

    def _read(
        self, text: str, names: Mapping[str, Expr], again: Mapping[str, Var], last: bool = False, ahead: str | None = None
    ) -> Stretch:
        return Stretch(text, self.known, names, again, self.lead, last, ahead)

    def _assemble(self, text: str, known: Sequence[tuple[Stretch, Expr]]) -> None:
        """Make the function of its statements. `known` has the stretches of another text, and the bodies that begin there.

        Where the last stretches are known, so is the type of the body: then `statements` are those that need a type.
        """
        self.starts = [0, *accumulate(len(stretch.text) for stretch in self.all[:-1])]
        self.source = SourceFile(self.known.name, text)
        tail = self.all[-1].function
        assert tail is not None and tail.body is not None and tail.span is not None
        body = tail.body
        self.bodies: list[Expr] = []  # from each stretch on, the last one first
        self.statements: list[Let] = []
        others = {id(stretch) for stretch, _ in known}
        for stretch, (same, rest) in zip(reversed(self.all), known):
            if stretch is not same:
                break
            body = rest
            self.bodies.append(body)
        ty = body.checked_type if self.bodies else None
        for stretch in reversed(self.all[: len(self.all) - len(self.bodies)]):
            for _, _, value, at, var in reversed(stretch.lets):
                body = typed(Let(var, value, body, Span(stretch.source, at, _LAST)), ty)
                if ty is not None and id(stretch) not in others:
                    self.statements.append(body)
            self.bodies.append(body)
        self.statements.reverse()
        end = self.starts[-1] + tail.span.end
        signature = self.signature
        self.function = Function(signature.params, body, signature.ret_type, (), None, Span(self.source, 0, end))
        for stretch in self.all:
            stretch.source.within = stretch.source.plain.within = self.source

    def move(self, base: int) -> None:
        """The function begins there from now on."""
        self.source.base = base
        for start, stretch in zip(self.starts, self.all):
            stretch.source.base = stretch.source.plain.base = base + start

    def sources(self) -> Iterator[SourceFile]:
        """The sources that its diagnostics may point into."""
        yield self.source
        for stretch in self.all:
            yield stretch.source
            yield stretch.source.plain

    def between(self, first: int, last: int) -> list[tuple[int, Stretch]]:
        """The stretches between two offsets, and where they begin."""
        numbers = range(max(0, bisect_right(self.starts, first) - 1), max(1, bisect_right(self.starts, last)))
        return [(self.starts[number], self.all[number]) for number in numbers]

    def binder(self, name: str, offset: int) -> tuple[int, Stretch, Symbol] | None:
        """The symbol of a name that is bound in front of an offset, with its stretch and where this begins."""
        for number in range(bisect_left(self.starts, offset) - 1, -1, -1):
            stretch = self.all[number]
            if name in stretch.bound or not number:
                symbol = stretch.names.open.get(name)
                return (self.starts[number], stretch, symbol) if symbol is not None else None
        return None

    # -- another text

    def changed(self, text: str, begin: int, end: int, again: Collection[SourceFile]) -> Stretches:
        """The stretches of another text, which differs from offset `begin` to `end` of this one.

        Those whose sources are in `again` are read anew, too. Raises `NotByStretches`.
        """
        last = max(bisect_left(self.starts, end) - 1, first := bisect_right(self.starts, begin) - 1)
        grown = len(text) - self.starts[-1] - len(self.all[-1].text)
        while True:
            stop = self.starts[last + 1] + grown if last + 1 < len(self.all) else len(text)
            piece = text[self.starts[first] : stop]
            if piece.endswith("\n") or stop == len(text):
                break
            last += 1
        old = self.all[first : last + 1]
        if not first or len(piece) > self.most or begins_definitions(piece) or '%"' in piece or not piece.endswith("\n"):
            raise NotByStretches
        if stop == len(text) and any(sign in piece[piece.rstrip("\n").rfind("\n") :] for sign in ("//", "#")):
            raise NotByStretches
        if _functions(_NAMES.findall(piece)) != _functions(name for stretch in old for name in stretch.used):
            raise NotByStretches
        stretches: Stretches = object.__new__(Stretches)
        stretches.known, stretches.signature, stretches.lead, stretches.most = self.known, self.signature, self.lead, self.most
        stretches.all = [*self.all[:first], *self.all[last + 1 :]]
        with gc_paused():
            stretches._read_again(piece, first, old, again)
            stretches._assemble(text, list(zip(reversed(self.all), self.bodies)))
        return stretches

    def _read_again(self, piece: str, first: int, old: Sequence[Stretch], again: Collection[SourceFile]) -> None:
        """Put a stretch in at a number, and read those again that it concerns."""
        names: dict[str, Expr] = {f"%{param.name_hint}": param for param in self.signature.params}
        other: set[str] = set()  # names that mean something else now
        todo = [*((stretch.text, [stretch]) for stretch in self.all[:first]), (piece, list(old))]
        todo += [(stretch.text, [stretch]) for stretch in self.all[first:]]
        self.all = []
        for number, (text, before) in enumerate(todo):
            one = before[0]
            if number != first and (not number or (one.source not in again and other.isdisjoint(one.used))):
                self.all.append(one)
            else:
                bound = {key: value for stretch in before for key, value in stretch.bound.items()}
                variables = {key: var for key, var in bound.items() if isinstance(var, Var)}
                last = number == len(todo) - 1
                ahead = "" if last else todo[-1][0] if number + 2 == len(todo) else todo[number + 1][0] + "()\n}\n"
                stretch = self._read(text, names, variables, last, ahead)
                self.all.append(stretch)
                keys = (key for key in {**bound, **stretch.bound} if bound.get(key) is not stretch.bound.get(key))
                other.update(_first_word(key) for key in keys)
            if not names.keys().isdisjoint(self.all[-1].bound):
                raise NotByStretches
            names |= self.all[-1].bound
        self._check_reported()

    def _check_reported(self) -> None:
        """An error is reported once for each name of a function, which only the whole function says of two stretches."""
        wrong = [stretch for stretch in self.all if stretch.said]
        for stretch in wrong:
            signs = {_first_word(sign + name) for _, name in stretch.reported for sign in "%@"}
            for other in self.all:
                if other is not stretch and (not stretch.reported.isdisjoint(other.reported) or not signs.isdisjoint(other.used)):
                    raise NotByStretches


def _functions(names: Iterator[str] | list[str]) -> set[str]:
    return {name for name in names if name[0] == "@"}


def _first_word(name: str) -> str:
    match = _NAMES.match(name)
    return match[0] if match is not None else name


__all__ = ["Known", "NotByStretches", "Stretch", "Stretches"]
