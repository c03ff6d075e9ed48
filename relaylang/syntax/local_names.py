"""The names of one definition: where each is bound, and where it is used. The text may be wrong.

The syntax tree says what binds a name. Names follow Relay's scopes. Parameters hold in the body of their function. Lets and
graph bindings hold to the end of their block, pattern variables in their clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relaylang.syntax.tokeniser import Token
from relaylang.syntax.tree import Tree

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
        #: the local names that hold at the end
        self.open: dict[str, Symbol] = {}
        self._binders: dict[int, tuple[str, int]] = {}  # by the binding token: how, and the node
        self.plain: set[int] = set()  # variables that are used
        self.bodies: set[int] = set()
        self.clauses: set[int] = set()
        self.ends: set[int] = set()  # the last tokens of graph bindings
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
                    self.ends.add(tree.lasts[node])
            elif rule == "var":
                self.plain.add(at)
            elif rule in _SIGNATURES:
                self.bodies.add(tree.lasts[node] + 1)
            elif rule in _CLAUSES:
                self.clauses.add(at)
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
        self._look_at_mentions(names)

    def _look_at_mentions(self, names: set[int]) -> None:
        """Take the attributes and global names from the tokens; `names` are those that the text defines."""
        code = self.tree.code
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
        walk = _ScopeWalk(self)
        for i, token in enumerate(self.tree.code):
            walk.step(i, token)
        self.open = walk.ended(len(self.tree.text))

    def binder(self, i: int) -> tuple[str, int]:
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

    def bind(self, token: Token, kind: str, begin: int) -> Symbol:
        symbol = Symbol(token.text, kind, token, [], begin)
        self.locals.append(symbol)
        self.at[token.start] = symbol
        return symbol


_CLOSERS = (")", "]", "}")


class _ScopeWalk:
    """The scopes at a token of a definition: its open brackets, and the names that hold or wait in them."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.code = names.tree.code
        self.scopes: list[tuple[dict[str, Symbol], int]] = [({}, 0)]  # the names, and the depth of a clause, else 0
        self.opened: list[int] = []  # how many scopes there were in front of each open bracket
        self.pending: dict[str, Symbol] = {}  # parameters whose function's body has not begun
        self.wrong = False  # whether they have a wrong signature
        self.waiting: list[tuple[Symbol, int]] = []  # bindings that hold when their statement has ended, and its depth
        self.gone: dict[str, Symbol] = {}  # graph bindings whose block has ended

    def step(self, i: int, token: Token) -> None:
        """Go on behind a token."""
        depth = len(self.opened)
        if i in self.names.clauses:
            self._end_clause(depth, token.start)
            self.scopes.append(({}, depth))
        if token.kind == "mark":
            self._mark(i, token)
        elif token.kind == "local":
            how, node = ("", -1) if i in self.names.plain else self.names.binder(i)
            if how:
                self._bind(i, token, how, node)
            else:
                self._use(token)
        if i in self.names.ends and self.waiting and token.text != ";":
            following = self.code[i + 1] if i + 1 < len(self.code) else token
            self._hold(len(self.opened), following.start if following is not token and following.text not in _CLOSERS else token.end)

    def ended(self, at: int) -> dict[str, Symbol]:
        """End all scopes. Returns the names that hold at the end."""
        held = {name: symbol for names, _ in self.scopes for name, symbol in names.items() if symbol.definition is not None}
        while self.scopes:
            self._end(at)
        return held

    def _mark(self, i: int, token: Token) -> None:
        """Open or close a bracket, or end a statement or an argument."""
        sign, depth = token.text, len(self.opened)
        if sign in "([{":
            self.opened.append(len(self.scopes))
            if sign == "{" and (i in self.names.bodies or not depth or self.wrong):
                self.scopes.append((self.pending, 0))
                self.pending, self.wrong = {}, False
            elif sign != "[":
                self.scopes.append(({}, 0))
        elif sign in ")]}" and self.opened:
            count = self.opened.pop()
            self._hold(depth, token.start)
            while len(self.scopes) > max(1, count):
                self._end(token.start)
        elif sign in ";,":
            self._hold(depth, token.end)
            if sign == "," and depth:
                self._end_clause(depth, token.start)

    def _bind(self, i: int, token: Token, how: str, node: int) -> None:
        """Bind a local name, now or when its statement ends."""
        names = self.names
        if how == "parameter":
            self.pending[token.text] = names.bind(token, how, token.start)
            self.wrong = self.wrong or node < 0
        elif how == "pattern":
            inner = next((held for held, clause in reversed(self.scopes) if clause), self.scopes[-1][0])
            _put(inner, names.bind(token, "variable", token.start))
        else:
            symbol = names.bind(token, "variable", token.end)
            last = len(self.code)
            value = names.tree.lasts[node] + 1 if how == "let" and node >= 0 else i + 2 if how == "graph" else last
            symbol.value_start = self.code[value].start if value < last else -1
            if how == "graph":
                self.waiting.append((symbol, len(self.opened)))
            else:
                _put(self.scopes[-1][0], symbol)  # a let may be used in its own value

    def _use(self, token: Token) -> None:
        held = (names[token.text] for names, _ in reversed(self.scopes) if token.text in names)
        symbol = next(held, None) or self.gone.get(token.text)
        if symbol is None:
            symbol = self.scopes[0][0][token.text] = Symbol(token.text, "variable", None, [])
            self.names.locals.append(symbol)
        symbol.uses.append(token)  # type: ignore[attr-defined]
        self.names.at[token.start] = symbol

    def _hold(self, depth: int, at: int) -> None:
        """What waits for the end of a statement at a depth, or inside it, holds."""
        while self.waiting and self.waiting[-1][1] >= depth:
            symbol = self.waiting.pop()[0]
            symbol.begin = at
            _put(self.scopes[-1][0], symbol)

    def _end_clause(self, depth: int, at: int) -> None:
        if self.scopes[-1][1] == depth:
            self._end(at)

    def _end(self, at: int) -> None:
        """End the innermost scope."""
        for name, symbol in self.scopes.pop()[0].items():
            symbol.end = at
            if name[1:].isdecimal():
                self.gone[name] = symbol  # TVM names a node for its whole function


def _put(names: dict[str, Symbol], symbol: Symbol) -> None:
    """A name holds; one of the same name ends here."""
    hidden = names.get(symbol.name)
    if hidden is not None:
        hidden.end = symbol.begin
    names[symbol.name] = symbol


__all__ = ["Names", "Symbol"]
