"""The names of a text that may be wrong: where each is bound, and where it is used.

This reads tokens only, so that it works on incomplete texts. It follows Relay's scopes. Parameters hold in the body of
their function. Lets and graph bindings hold to the end of their block, pattern variables in their clause.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from relaylang.ir.bulk import gc_paused
from relaylang.ops import OPS
from relaylang.syntax.tokeniser import Token, tokenise


@dataclass(slots=True)
class Symbol:
    """Something that has a name. `kind`: parameter, variable, function, type, constructor, operator."""

    name: str
    kind: str
    definition: Token | None
    uses: list[Token] = field(default_factory=list)
    #: where a variable may be used, and what a definition comprises
    begin: int = 0
    end: int = -1
    value_start: int = -1
    children: list[Symbol] = field(default_factory=list)

    def places(self) -> list[Token]:
        return [*([self.definition] if self.definition is not None else []), *self.uses]


@dataclass(slots=True)
class _Scope:
    names: dict[str, Symbol] = field(default_factory=dict)
    kind: str = "block"
    depth: int = 0


class SymbolTable:
    """A text's tokens and names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.symbols: list[Symbol] = []
        self.globals: dict[str, Symbol] = {}
        self.types: dict[str, Symbol] = {}
        self.constructors: dict[str, Symbol] = {}
        self.operators: dict[str, Symbol] = {}
        self.gone: dict[str, Symbol] = {}  # graph bindings of this function whose block has ended
        #: each place of a name, by where it begins
        self.at: dict[int, tuple[Token, Symbol]] = {}
        #: names in front of `=` inside calls
        self.attributes: set[int] = set()
        with gc_paused():
            self.tokens = list(tokenise(text))
            self.code = [t for t in self.tokens if t.kind not in ("comment", "header", "metadata")]
            self._definitions()
            self._names()

    def _definitions(self) -> None:
        """Functions, types and constructors, which may be used in front of their definition."""
        code = self.code
        keywords = [i for i, t in enumerate(code) if t.kind == "keyword"]
        for i in keywords:
            if i + 1 == len(code):
                break
            t, after = code[i], code[i + 1]
            if t.text == "def" and after.kind == "global":
                symbol = Symbol(after.text, "function", after, begin=t.start)
                self._define(self.globals, symbol)
            elif t.text in ("type", "data", "extern") and after.kind in ("name", "keyword") and after.text not in ("type",):
                symbol = Symbol(after.text, "type", after, begin=t.start)
                self._define(self.types, symbol)
                depth, j = 0, i + 2
                while j < len(code) and code[j].text != "{" and code[j].kind != "keyword":
                    j += 1
                if j < len(code) and code[j].text == "{":
                    fresh = True
                    for k in range(j, len(code)):
                        c = code[k]
                        depth += (c.text in "([{") - (c.text in ")]}") if c.kind == "mark" else 0
                        if fresh and depth == 1 and c.kind == "name":
                            made = Symbol(c.text, "constructor", c, begin=c.start, end=c.end)
                            self._define(self.constructors, made)
                            symbol.children.append(made)
                        fresh = depth == 1 and c.text in "{,"
                        if not depth:
                            symbol.end = c.end
                            break

    def _define(self, table: dict[str, Symbol], symbol: Symbol) -> None:
        table[symbol.name] = symbol
        self.symbols.append(symbol)
        assert symbol.definition is not None
        self.at[symbol.definition.start] = (symbol.definition, symbol)

    # -- variables

    def _names(self) -> None:
        code = self.code
        scopes = [_Scope()]
        pending: dict[str, Symbol] | None = None  # parameters whose function's body has not begun
        stack: list[tuple[str, int]] = []  # open brackets: what they are, and how many scopes there were
        waiting: list[tuple[Symbol, int]] = []  # bindings that hold from the next `;` at their depth on
        params_at = -1
        pattern = -1  # depth of the match whose pattern is being read
        n = len(code)
        top: Symbol | None = None
        after_match = -1
        for i, t in enumerate(code):
            text = t.text
            depth = len(stack)
            if waiting and i and waiting[-1][1] == depth and waiting[-1][0].value_start < t.start and self._new_line(code[i - 1], t):
                self._hold(waiting, scopes, depth, t.start)
            if t.kind == "mark":
                if text in "([{":
                    what = text
                    if text == "{" and after_match == depth:
                        what, after_match = "match", -1
                        stack.append((what, len(scopes)))
                        scopes.append(_Scope(kind="match", depth=depth + 1))
                        scopes.append(_Scope(kind="clause", depth=depth + 1))
                        pattern = depth + 1
                        continue
                    if text == "(" and params_at == i:
                        what = "params"
                    stack.append((what, len(scopes)))
                    if text == "{":
                        scopes.append(_Scope(names=pending or {}, depth=depth + 1))
                        pending = None
                    elif text == "(" and what == "(" and pattern < 0:
                        scopes.append(_Scope(depth=depth + 1))  # statements may stand in it
                elif text in ")]}" and stack:
                    what, count = stack.pop()
                    self._hold(waiting, scopes, len(stack) + 1, t.start)
                    while len(scopes) > max(1, count):
                        self._end(scopes.pop(), t.start)
                    if what == "match":
                        pattern = -1
                    if text == "}" and not stack and top is not None:
                        top.end = t.end
                        top = None
                elif text in ";,":
                    self._hold(waiting, scopes, depth, t.end)
                    if text == "," and scopes[-1].kind == "clause" and scopes[-1].depth == depth:
                        self._end(scopes.pop(), t.start)
                        scopes.append(_Scope(kind="clause", depth=depth))
                        pattern = depth
                continue
            if t.kind == "arrow":
                if text == "=>":
                    pattern = -1
                continue
            if t.kind == "keyword":
                if text in ("fn", "def"):
                    j = i + 1
                    while j < n and code[j].text not in ("(", "{", ";", "fn", "def"):
                        j += 1
                    if j < n and code[j].text == "(" and not (text == "fn" and self._is_type(i, j)):
                        params_at = j
                        pending = {}
                    if text == "def":
                        self.gone = {}
                    if text == "def" and i + 1 < n:
                        top = self.globals.get(code[i + 1].text)
                elif text == "match":
                    after_match = depth
                continue
            if t.kind == "local":
                before = code[i - 1] if i else None
                after = code[i + 1] if i + 1 < n else None
                in_params = bool(stack) and stack[-1][0] == "params"
                if in_params and pending is not None and after is not None and after.text in ":,)":
                    pending[text] = self._bind(t, "parameter", t.start)
                elif before is not None and before.text in ("let", "free_var"):
                    symbol = self._bind(t, "variable", t.end)
                    value = self._value(i)
                    symbol.value_start = code[value].start if value < n else -1
                    self._put(scopes[-1], symbol)  # a let may be used in its own value
                elif (
                    after is not None
                    and after.text == "="
                    and (before is None or before.text in (";", "{", "}", "(", ",", "=>") or "\n" in self.text[before.end : t.start])
                ):
                    symbol = self._bind(t, "variable", t.end)
                    symbol.value_start = code[i + 2].start if i + 2 < n else -1
                    waiting.append((symbol, depth))
                elif pattern >= 0 and scopes[-1].kind == "clause" and depth >= pattern:
                    self._put(scopes[-1], self._bind(t, "variable", t.start))
                else:
                    self._use(t, scopes)
            elif t.kind == "global":
                if t.start not in self.at:
                    known = self.globals.get(text)
                    if known is None:
                        known = self.globals[text] = Symbol(text, "function", None)
                        self.symbols.append(known)
                    known.uses.append(t)
                    self.at[t.start] = (t, known)
            elif t.kind == "name" and t.start not in self.at:
                self._word(t, i)
        for scope in scopes:
            self._end(scope, len(self.text))
        if top is not None:
            top.end = len(self.text)

    def _is_type(self, i: int, j: int) -> bool:
        """Whether a `fn` begins a type: its parentheses, at `j`, hold no variables."""
        before = self.code[i - 1].text if i else ""
        inside = self.code[j + 1] if j + 1 < len(self.code) else None
        return before in ("->", ":") or (inside is not None and inside.kind != "local" and inside.text != ")")

    def _new_line(self, before: Token, t: Token) -> bool:
        """Whether a statement may have ended with its line, between two tokens."""
        ends = before.text in (")", "]", "}") or before.kind not in ("mark", "arrow", "keyword")
        begins = t.kind not in ("mark", "arrow") or t.text in "(["
        return ends and begins and "\n" in self.text[before.end : t.start]

    def _value(self, i: int) -> int:
        """Where the value of a let begins: behind its `=`."""
        depth = 0
        for j in range(i + 1, len(self.code)):
            text = self.code[j].text
            if self.code[j].kind == "local" or text in ("let", "def"):
                break  # no type has these
            if text in "([{":
                depth += 1
            elif text in ")]}":
                depth -= 1
            elif text == "=" and depth <= 0:
                return j + 1
            elif text == ";":
                break
        return len(self.code)

    def _bind(self, token: Token, kind: str, begin: int) -> Symbol:
        symbol = Symbol(token.text, kind, token, begin=begin)
        self.symbols.append(symbol)
        self.at[token.start] = (token, symbol)
        return symbol

    def _hold(self, waiting: list[tuple[Symbol, int]], scopes: list[_Scope], depth: int, at: int) -> None:
        """Bindings of this depth hold from here on."""
        while waiting and waiting[-1][1] >= depth:
            symbol, _ = waiting.pop()
            symbol.begin = at
            self._put(scopes[-1], symbol)

    def _put(self, scope: _Scope, symbol: Symbol) -> None:
        """A name holds in a scope; one of the same name ends here."""
        hidden = scope.names.get(symbol.name)
        if hidden is not None:
            hidden.end = symbol.begin
        scope.names[symbol.name] = symbol

    def _end(self, scope: _Scope, at: int) -> None:
        for name, symbol in scope.names.items():
            symbol.end = at
            if name[1:].isdecimal():
                self.gone[name] = symbol  # TVM names a node for its whole function

    def _use(self, token: Token, scopes: list[_Scope]) -> None:
        for scope in reversed(scopes):
            found = scope.names.get(token.text)
            if found is not None:
                break
        else:
            found = self.gone.get(token.text)
            if found is None:
                found = Symbol(token.text, "variable", None)
                self.symbols.append(found)
                scopes[0].names[token.text] = found
        found.uses.append(token)
        self.at[token.start] = (token, found)

    def _word(self, t: Token, i: int) -> None:
        after = self.code[i + 1] if i + 1 < len(self.code) else None
        if after is not None and after.text == "=":
            self.attributes.add(t.start)
            return
        known = self.constructors.get(t.text) or self.types.get(t.text)
        if known is None and t.text in OPS:
            known = self.operators.setdefault(t.text, Symbol(t.text, "operator", None))
        if known is not None:
            known.uses.append(t)
            self.at[t.start] = (t, known)

    def symbol_at(self, offset: int) -> tuple[Token, Symbol] | None:
        """The name at an offset, also just behind its last letter."""
        found = self.token_at(offset)
        return self.at.get(found.start) if found is not None else None

    def token_at(self, offset: int) -> Token | None:
        low, high = 0, len(self.tokens)
        while low < high:
            mid = (low + high) // 2
            if self.tokens[mid].start <= offset:
                low = mid + 1
            else:
                high = mid
        for i in (low - 1, low - 2):
            if 0 <= i < len(self.tokens) and self.tokens[i].start <= offset <= self.tokens[i].end:
                t = self.tokens[i]
                if offset < t.end or t.is_word:
                    return t
        return None

    def visible(self, offset: int) -> dict[str, Symbol]:
        """The variables that may be used at an offset; inner ones hide outer ones."""
        out: dict[str, Symbol] = {}
        for s in self.symbols:
            if s.kind in ("variable", "parameter") and s.definition is not None:
                if s.begin <= offset and (s.end < 0 or offset <= s.end):
                    out[s.name] = s
        return out
