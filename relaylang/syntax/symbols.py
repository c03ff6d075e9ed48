"""The names of a text that may be wrong: where each is bound, and where it is used.

Each definition has its own names, which its syntax tree says. They follow Relay's scopes. Parameters hold in the body of
their function. Lets and graph bindings hold to the end of their block, pattern variables in their clause. Functions, types
and constructors are names of all definitions, and may be used in front of theirs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

from relaylang.ir.bulk import gc_paused
from relaylang.ops import OPS
from relaylang.syntax.tokeniser import Token
from relaylang.syntax.tree import TYPES, Tree, cut, global_name

#: Rules that bind a local name: how, and the number of the token with the name.
_BINDERS: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("param_coarse", "param_plain", "param_typed", "param_extras", "param_extras_typed"), ("parameter", 0)),
    **dict.fromkeys(("let_coarse", "let_plain", "let_typed", "let_named"), ("let", 1)),
    **dict.fromkeys(("let_extras", "let_extras_typed", "let_extras_named"), ("let", 1)),
    **dict.fromkeys(("free_plain", "free_typed", "free_coarse", "free_extras", "free_extras_typed"), ("free", 1)),
    **dict.fromkeys(("graph", "graph_spaced", "graph_head"), ("graph", 0)),
    **dict.fromkeys(("pat_var", "pat_coarse", "pat_typed"), ("pattern", 0)),
}
_SIGNATURES = frozenset({"sig_end", "sig_end_param", "sig_ret", "sig_ret_param"})
_DEFINITIONS = frozenset({"def_function", "def_external", "def_type", "def_type_empty"})
_CLAUSES = frozenset({"clause_head", "case_head"})
_CONSTRUCTORS = frozenset({"ctor_plain", "ctor_empty", "ctor_args", "ctor_spaced", "data_empty", "data_args"})
_TYPE_NAMES = frozenset({"type_name", "type_name_generic"})
#: Tokens in front of a statement.
_BEFORE = frozenset({"", ";", "{", "}", "(", ",", "=>"})


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


@dataclass(slots=True)
class Symbol:
    """Something that has a name. `kind`: parameter, variable, function, type, constructor, operator."""

    name: str
    kind: str
    definition: Token | None
    uses: Sequence[Token] = field(default_factory=list)
    #: where a variable may be used, and what a definition comprises
    begin: int = 0
    end: int = -1
    value_start: int = -1
    children: list[Symbol] = field(default_factory=list)

    def places(self) -> list[Token]:
        return [*([self.definition] if self.definition is not None else []), *self.uses]


def _moved(token: Token, by: int) -> Token:
    return Token(token.kind, token.text, token.start + by)


class Names:
    """The names of one definition's tree. Places count from the definition's beginning."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        #: the local names, in the order of their first places
        self.locals: list[Symbol] = []
        #: each place of a local name, by where it begins
        self.at: dict[int, Symbol] = {}
        #: the functions, types and constructors that are defined here
        self.defined: list[Symbol] = []
        #: the places of global names, and of words, which may name operators, types and constructors
        self.mentions: dict[str, list[Token]] = {}
        #: names in front of `=` inside calls
        self.attributes: set[int] = set()
        self._binders: dict[int, tuple[str, int]] = {}  # by the binding token: how, and the node
        self._plain: set[int] = set()  # variables that are used
        self._bodies: set[int] = set()
        self._clauses: set[int] = set()
        self._ends: set[int] = set()  # the last tokens of graph bindings
        self._look()
        self._scopes()

    def _look(self) -> None:
        """Take from the nodes what they define and bind."""
        tree, code = self.tree, self.tree.code
        names: set[int] = set()
        for node, rule in enumerate(tree.rules):
            at = tree.firsts[node]
            row = _BINDERS.get(rule)
            if row is not None:
                self._binders[at + row[1]] = row[0], node
                if row[0] == "graph":
                    self._ends.add(tree.lasts[node])
            elif rule == "var":
                self._plain.add(at)
            elif rule in _SIGNATURES:
                self._bodies.add(tree.lasts[node] + 1)
            elif rule in _CLAUSES:
                self._clauses.add(at)
            elif rule == "def_name" and at < tree.lasts[node] and code[at + 1].kind == "global":
                self._define("function", code[at].start, at + 1)
                names.add(at + 1)
            elif rule in _TYPE_NAMES:
                self._define("type", code[max(0, at - 1)].start, at)
                names.add(at)
            elif rule in _DEFINITIONS and self.defined:
                self.defined[-1].end = code[tree.lasts[node]].end
            elif rule in _CONSTRUCTORS and self.defined and code[at].kind == "name":
                constructor = Symbol(code[at].text, "constructor", code[at], (), code[at].start, code[at].end)
                self.defined[-1].children.append(constructor)
                names.add(at)
        for i, token in enumerate(code):
            if token.kind not in ("name", "global") or i in names:
                continue
            if token.kind == "name" and i + 1 < len(code) and code[i + 1].text == "=":
                self.attributes.add(token.start)
            else:
                self.mentions.setdefault(token.text, []).append(token)

    def _define(self, kind: str, begin: int, at: int) -> None:
        """Token `at` names a function or a type. Without an end, a wrong function takes the rest of the text."""
        token = self.tree.code[at]
        end = len(self.tree.text) if kind == "function" else -1
        self.defined.append(Symbol(token.text, kind, token, (), begin, end))

    # -- variables

    def _scopes(self) -> None:
        """Walk through the brackets, and bind and look up each local name."""
        code, text = self.tree.code, self.tree.text
        scopes: list[tuple[dict[str, Symbol], int]] = [({}, 0)]  # the names, and the depth of a clause, else 0
        opened: list[int] = []  # how many scopes there were in front of each open bracket
        pending: dict[str, Symbol] = {}  # parameters whose function's body has not begun
        wrong = False  # whether they have a wrong signature
        waiting: list[tuple[Symbol, int]] = []  # bindings that hold when their statement has ended, and its depth
        gone: dict[str, Symbol] = {}  # graph bindings whose block has ended

        def hold(depth: int, at: int) -> None:
            while waiting and waiting[-1][1] >= depth:
                symbol = waiting.pop()[0]
                symbol.begin = at
                put(scopes[-1][0], symbol)

        def put(names: dict[str, Symbol], symbol: Symbol) -> None:
            """A name holds; one of the same name ends here."""
            hidden = names.get(symbol.name)
            if hidden is not None:
                hidden.end = symbol.begin
            names[symbol.name] = symbol

        def end(at: int) -> None:
            for name, symbol in scopes.pop()[0].items():
                symbol.end = at
                if name[1:].isdecimal():
                    gone[name] = symbol  # TVM names a node for its whole function

        for i, token in enumerate(code):
            sign, depth = token.text, len(opened)
            if i in self._clauses:
                if scopes[-1][1] == depth:
                    end(token.start)
                scopes.append(({}, depth))
            if token.kind == "mark":
                if sign in "([{":
                    opened.append(len(scopes))
                    if sign == "{" and (i in self._bodies or not depth or wrong):
                        scopes.append((pending, 0))
                        pending, wrong = {}, False
                    elif sign != "[":
                        scopes.append(({}, 0))
                elif sign in ")]}" and opened:
                    count = opened.pop()
                    hold(depth, token.start)
                    while len(scopes) > max(1, count):
                        end(token.start)
                elif sign in ";,":
                    hold(depth, token.end)
                    if sign == "," and scopes[-1][1] == depth > 0:
                        end(token.start)
            elif token.kind == "local":
                how, node = ("", -1) if i in self._plain else self._binder(i)
                if not how:
                    self._use(token, scopes, gone)
                elif how == "parameter":
                    pending[sign] = self._bind(token, how, token.start)
                    wrong = wrong or node < 0
                elif how == "pattern":
                    inner = next((names for names, clause in reversed(scopes) if clause), scopes[-1][0])
                    put(inner, self._bind(token, "variable", token.start))
                else:
                    symbol = self._bind(token, "variable", token.end)
                    value = self.tree.lasts[node] + 1 if how == "let" and node >= 0 else i + 2 if how == "graph" else len(code)
                    symbol.value_start = code[value].start if value < len(code) else -1
                    if how == "graph":
                        waiting.append((symbol, depth))
                    else:
                        put(scopes[-1][0], symbol)  # a let may be used in its own value
            if i in self._ends and waiting and sign != ";":
                hold(len(opened), code[i + 1].start if i + 1 < len(code) and code[i + 1].text not in _CLOSERS else token.end)
        while scopes:
            end(len(text))

    def _binder(self, i: int) -> tuple[str, int]:
        """How a token binds a local name, and the node; "" where it does not. A wrong piece has no nodes."""
        known = self._binders.get(i)
        if known is not None:
            return known
        code = self.tree.code
        before = code[i - 1].text if i else ""
        if before in ("let", "free_var"):
            return "let", -1
        if i + 1 < len(code) and code[i + 1].text == "=":
            if before in _BEFORE or "\n" in self.tree.text[code[i - 1].end : code[i].start]:
                return "graph", -1
        return ("parameter" if before in ("(", ",") and self._in_parameters(i) else ""), -1

    def _in_parameters(self, i: int) -> bool:
        """Whether a name at the beginning of an argument is a parameter of a wrong signature."""
        code, opened = self.tree.code, self.tree.brackets.around[i]
        head = self.tree.brackets.opening.get(opened - 1, opened) - 1  # there may be type variables
        after = code[i + 1].text if i + 1 < len(code) else ":"
        return opened > 0 and after in (":", ",", ")") and (code[head].text == "fn" or (head > 0 and code[head - 1].text == "def"))

    def _bind(self, token: Token, kind: str, begin: int) -> Symbol:
        symbol = Symbol(token.text, kind, token, [], begin)
        self.locals.append(symbol)
        self.at[token.start] = symbol
        return symbol

    def _use(self, token: Token, scopes: Sequence[tuple[dict[str, Symbol], int]], gone: dict[str, Symbol]) -> None:
        symbol = next((names[token.text] for names, _ in reversed(scopes) if token.text in names), gone.get(token.text))
        if symbol is None:
            symbol = scopes[0][0][token.text] = Symbol(token.text, "variable", None, [])
            self.locals.append(symbol)
        symbol.uses.append(token)  # type: ignore[attr-defined]
        self.at[token.start] = symbol


_CLOSERS = (")", "]", "}")


class Definition:
    """A definition of a text, with its tree and its names. They count places from its beginning."""

    def __init__(self, text: str, word: str = "", name: str = "", mentions: frozenset[str] = frozenset()) -> None:
        self.text = text
        self.word = word
        self.name = name
        #: the names of functions in it
        self.mentions = mentions

    @cached_property
    def names(self) -> Names:
        with gc_paused():
            return Names(Tree(self.text))


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
        found = self._placed.get(number)
        if found is None:
            with gc_paused():
                found = self._placed[number] = Placed(self.definitions[number].names, self.begins[number])
        return found

    def number_at(self, offset: int) -> int:
        """The number of the definition that an offset stands in."""
        return max(0, bisect_right(self.begins, offset) - 1)

    def within(self, first: int, last: int) -> Iterator[Placed]:
        """The definitions that stand between two offsets, or hold one of them."""
        return map(self.placed, range(self.number_at(first), self.number_at(last) + 1))

    def defined(self, number: int) -> list[Symbol]:
        """The functions and types of a definition: one, but for wrong texts."""
        found = self._defined.get(number)
        if found is None:
            found = self._defined[number] = []
            for symbol in self.definitions[number].names.defined:
                found.append(_placed(symbol, self.begins[number], self._uses(symbol.name)))
                found[-1].children = [_placed(c, self.begins[number], self._uses(c.name)) for c in symbol.children]
        return found

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
        found = next(iter(self.defined(number)), None) if number is not None else None
        if found is None and (uses := self._uses(name)):
            found = Symbol(name, "function", None, uses)
        return found

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
        if token.kind == "local":
            base = self.begins[number]
            known = self.definitions[number].names.at.get(token.start - base)
            return _placed(known, base, [_moved(use, base) for use in known.uses]) if known is not None else None
        for symbol in self.defined(number) if token.kind in ("global", "name") else ():
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
        number = self.number_at(token.start)
        return token.start - self.begins[number] in self.definitions[number].names.attributes

    def symbol_at(self, offset: int) -> tuple[Token, Symbol] | None:
        """The name at an offset, also just after its last letter."""
        token = self.token_at(offset)
        symbol = self.symbol_of(token) if token is not None else None
        return (token, symbol) if token is not None and symbol is not None else None

    def token_at(self, offset: int) -> Token | None:
        number = self.number_at(offset)
        tokens, base = self.definitions[number].names.tree.tokens, self.begins[number]
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


__all__ = ["Definition", "Names", "Placed", "Symbol", "SymbolTable"]
