"""The names of a text that may be wrong: where each is bound, and where it is used.

Each definition has its own names (`local_names`), which its syntax tree says. Functions, types and constructors are names
of all definitions, and may be used in front of theirs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

from relaylang.ir.bulk import gc_paused
from relaylang.ops import OPS
from relaylang.syntax.local_names import Names, Symbol
from relaylang.syntax.tokeniser import Token
from relaylang.syntax.tree import TYPES, Tree, cut, global_name


class Uses(Sequence[Token]):
    """The places that use a name of all definitions, found when they are asked for."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], Iterable[Token]]) -> None:
        self._find = find
        self._found: list[Token] | None = None

    def _all(self) -> list[Token]:
        if self._found is None:
            self._found = list(self._find())
        return self._found

    def __getitem__(self, number: int) -> Token:  # type: ignore[override]
        return self._all()[number]

    def __len__(self) -> int:
        return len(self._all())


def _moved(token: Token, by: int) -> Token:
    return Token(token.kind, token.text, token.start + by)


class Definition:
    """A definition of a text, with its tree and its names. They count places from its beginning."""

    def __init__(self, text: str, word: str = "", name: str = "", mentions: frozenset[str] = frozenset()) -> None:
        self.text = text
        self.word = word
        self.name = name
        #: the names of functions in it
        self.mentions = mentions
        #: tokens in front of the text that it is read behind
        self.lead: Sequence[str] = ()

    def pieces(self, first: int, last: int) -> Sequence[tuple[int, Definition]]:
        """The pieces between two offsets, with their beginnings; at least one. The names of a piece are sooner known."""
        return [(0, self)]

    def binder(self, name: str, offset: int) -> tuple[int, Definition, Symbol] | None:
        """The symbol of a name that is bound in front of a piece, with its piece and where this begins."""
        return None

    @property
    def names_end(self) -> int:
        """Where the names end that hold at the end of a piece."""
        return len(self.text)

    @cached_property
    def names(self) -> Names:
        with gc_paused():
            return Names(Tree(self.text, self.lead))


class Placed:
    """The tokens and local names of a definition that begins at an offset of a text."""

    def __init__(self, names: Names, base: int) -> None:
        tree = names.tree
        self.brackets = tree.brackets
        self.tokens, self.code, self.locals = tree.tokens, tree.code, names.locals
        if base:
            self.tokens = [_moved(token, base) for token in tree.tokens]
            at = {token.start: token for token in self.tokens}
            self.code = [at[base + token.start] for token in tree.code]
            self.locals = [_placed(symbol, base, [at[base + use.start] for use in symbol.uses]) for symbol in names.locals]


def _placed(symbol: Symbol, base: int, uses: Sequence[Token]) -> Symbol:
    """The symbol of a definition that begins at `base`, with its uses."""
    token = _moved(symbol.definition, base) if symbol.definition is not None else None
    end, value = (base + place if place >= 0 else -1 for place in (symbol.end, symbol.value_start))
    return Symbol(symbol.name, symbol.kind, token, uses, base + symbol.begin if token is not None else 0, end, value)


class Shared(Mapping[str, Symbol]):
    """The names of all definitions of one kind: each is looked for when it is asked for."""

    def __init__(self, find: Callable[[str], Symbol | None], names: Callable[[], Iterable[str]]) -> None:
        self._find = find
        self._names = names
        self._found: dict[str, Symbol | None] = {}

    def __getitem__(self, name: str) -> Symbol:
        if name not in self._found:
            self._found[name] = self._find(name)
        symbol = self._found[name]
        if symbol is None:
            raise KeyError(name)
        return symbol

    def __iter__(self) -> Iterator[str]:
        return (name for name in dict.fromkeys(self._names()) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SymbolTable:
    """A text's tokens and names, put together from its definitions. What concerns one of them costs no look at the others."""

    def __init__(self, text: str, definitions: Sequence[Definition] | None = None) -> None:
        self.text = text
        self.definitions = definitions if definitions is not None else [Definition(*piece) for piece in cut(text)[0]]
        self.begins = [0, *accumulate(len(definition.text) for definition in self.definitions[:-1])]
        self._placed: dict[int, Placed] = {}
        self._defined: dict[int, list[Symbol]] = {}
        self._functions = {d.name: number for number, d in enumerate(self.definitions) if d.word == "def"}
        self.globals = Shared(self._function, lambda: chain((s.name for s in self._all("def")), self._mentioned("@")))
        self.types = Shared(lambda name: self._types.get(name), lambda: self._types)
        self.constructors = Shared(lambda name: self._constructors.get(name), lambda: self._constructors)
        self.operators = Shared(self._operator, lambda: self._mentioned(""))

    # -- definitions

    def placed(self, number: int) -> Placed:
        """The tokens and local names of a definition, at their places in this text."""
        placed = self._placed.get(number)
        if placed is None:
            with gc_paused():
                placed = self._placed[number] = Placed(self.definitions[number].names, self.begins[number])
        return placed

    def number_at(self, offset: int) -> int:
        """The number of the definition that an offset stands in."""
        return max(0, bisect_right(self.begins, offset) - 1)

    def within(self, first: int, last: int) -> Iterator[Placed]:
        """The pieces of definitions that stand between two offsets, or hold one of them."""
        for number in range(self.number_at(first), self.number_at(last) + 1):
            begin, definition = self.begins[number], self.definitions[number]
            for start, piece in definition.pieces(first - begin, last - begin):
                yield self.placed(number) if piece is definition else Placed(piece.names, begin + start)

    def defined(self, number: int) -> list[Symbol]:
        """The functions and types of a definition: one, but for wrong texts."""
        symbols = self._defined.get(number)
        if symbols is None:
            symbols = self._defined[number] = []
            for symbol in self.definitions[number].names.defined:
                symbols.append(_placed(symbol, self.begins[number], self._uses(symbol.name)))
                symbols[-1].children = [_placed(c, self.begins[number], self._uses(c.name)) for c in symbol.children]
        return symbols

    def variables(self, function: str) -> list[Symbol]:
        """The variables and parameters of a function; of the text in front of all definitions, where the name is empty."""
        number = self._functions.get(function) if function else 0
        return self.placed(number).locals if number is not None else []

    def _all(self, *words: str) -> Iterator[Symbol]:
        """The functions or types that the text defines, in order."""
        for number, definition in enumerate(self.definitions):
            if definition.word in words:
                yield from self.defined(number)

    def _uses(self, name: str) -> Uses:
        """The places where a function, an operator, a type or a constructor is used."""
        return Uses(lambda: (_moved(token, base) for base, names in self._mentioning(name) for token in names.mentions.get(name, ())))

    def _mentioning(self, name: str) -> Iterator[tuple[int, Names]]:
        plain = global_name(name) if name[0] == "@" else None
        for begin, definition in zip(self.begins, self.definitions):
            if not plain or plain in definition.mentions:
                yield begin, definition.names

    def _mentioned(self, sign: str) -> Iterator[str]:
        for definition in self.definitions:
            yield from (name for name in definition.names.mentions if (name[0] == "@") == bool(sign))

    @cached_property
    def _types(self) -> dict[str, Symbol]:
        return {symbol.name: symbol for symbol in self._all(*TYPES)}

    @cached_property
    def _constructors(self) -> dict[str, Symbol]:
        return {child.name: child for symbol in self._all(*TYPES) for child in symbol.children}

    def _function(self, name: str) -> Symbol | None:
        number = self._functions.get(global_name(name))
        symbol = next(iter(self.defined(number)), None) if number is not None else None
        if symbol is None and (uses := self._uses(name)):
            symbol = Symbol(name, "function", None, uses)
        return symbol

    def _operator(self, name: str) -> Symbol | None:
        known = name not in OPS or name in self.types or name in self.constructors
        return Symbol(name, "operator", None, self._uses(name)) if not known else None

    # -- the whole text

    def _every(self, what: Callable[[Placed], Iterable[Any]]) -> Iterator[Any]:
        return chain.from_iterable(what(self.placed(number)) for number in range(len(self.definitions)))

    @cached_property
    def tokens(self) -> list[Token]:
        return list(self._every(lambda placed: placed.tokens))

    @cached_property
    def code(self) -> list[Token]:
        """The tokens without comments, header and metadata."""
        return list(self._every(lambda placed: placed.code))

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The functions, types and constructors, then the variables, then functions that the text does not define."""
        defined = [inner for symbol in self._all("def", *TYPES) for inner in (symbol, *symbol.children)]
        return [*defined, *self._every(lambda placed: placed.locals), *(s for s in self.globals.values() if s.definition is None)]

    # -- places

    def symbol_of(self, token: Token) -> Symbol | None:
        """What a token of the text names."""
        number = self.number_at(token.start)
        base, names = self._at(token.start)
        if token.kind == "local":
            return self._local(token, number)
        defined = any(own.definition.start == token.start - base for s in names.defined for own in (s, *s.children) if own.definition)
        for symbol in self.defined(number) if defined else ():
            for own in (symbol, *symbol.children):
                if own.definition == token:
                    return own
        if token.kind == "global":
            return self.globals.get(token.text)
        if token.kind != "name" or self.is_attribute(token):
            return None
        return self.constructors.get(token.text) or self.types.get(token.text) or self.operators.get(token.text)

    def is_attribute(self, token: Token) -> bool:
        """Whether a token is a name in front of `=` inside a call."""
        base, names = self._at(token.start)
        return token.start - base in names.attributes

    def _at(self, offset: int) -> tuple[int, Names]:
        """The names of the piece that an offset stands in, and where it begins."""
        number = self.number_at(offset)
        begin = self.begins[number]
        start, piece = self.definitions[number].pieces(offset - begin, offset - begin)[0]
        return begin + start, piece.names

    def _local(self, token: Token, number: int) -> Symbol | None:
        """The symbol of a local name in a definition. Its uses are found when they are asked for."""
        begin, definition = self.begins[number], self.definitions[number]
        start, piece = definition.pieces(token.start - begin, token.start - begin)[0]
        known = piece.names.at.get(token.start - begin - start)
        if known is None:
            return None
        if known.definition is None and piece is not definition:
            start, piece, known = definition.binder(known.name, start) or (start, piece, known)
        at = known.definition.start if known.definition is not None else token.start - begin - start

        def uses() -> list[Token]:
            return [_moved(use, begin) for use in definition.names.at[start + at].uses]

        symbol = _placed(known, begin + start, Uses(uses))
        if piece is not definition and piece.names.open.get(known.name) is known:
            symbol.end = begin + definition.names_end
        return symbol

    def symbol_at(self, offset: int) -> tuple[Token, Symbol] | None:
        """The name at an offset, also just after its last letter."""
        token = self.token_at(offset)
        symbol = self.symbol_of(token) if token is not None else None
        return (token, symbol) if token is not None and symbol is not None else None

    def token_at(self, offset: int) -> Token | None:
        base, names = self._at(offset)
        tokens = names.tree.tokens
        at = bisect_right(tokens, offset - base, key=lambda token: token.start)
        for token in tokens[max(0, at - 2) : at][::-1]:
            if offset - base <= token.end and (offset - base < token.end or token.is_word):
                return _moved(token, base)
        return None

    def visible(self, offset: int) -> dict[str, Symbol]:
        """The variables that may be used at an offset; inner ones hide outer ones."""
        return {
            s.name: s
            for s in self.placed(self.number_at(offset)).locals
            if s.definition is not None and s.begin <= offset and (s.end < 0 or offset <= s.end)
        }


__all__ = ["Definition", "Placed", "Symbol", "SymbolTable"]
