"""Errors of syntax: what was expected, and how reading goes on behind them.

A text that the loop could not read goes through Lark's interactive parser, token by token. Where a token cannot follow, the
parser is asked what can; then tokens are skipped to the next `;`, `,`, closing bracket or definition, the grammar's ERROR
takes the place of what was begun, and reading goes on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any as AnyValue

from lark import Token, UnexpectedInput
from lark.parsers.lalr_analysis import Shift

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.source import Span
from relaylang.syntax.tables import Tables, lark_parser
from relaylang.syntax.tokens import TokenSource

_LIMIT = 20
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_SIGNS = {
    "SEMI": ";", "COMMA": ",", "RPAR": ")", "RSQ": "]", "RBRACE": "}", "LBRACE": "{", "ARROW": "->", "FAT": "=>",
    "EQ": "=", "COLON": ":", "LPAR": "(", "LSQ": "[", "GT": ">", "ELSE": "else", "TYPE": "type",
}  # fmt: skip
_OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "LT", "GT", "LE", "GE", "EQEQ", "NE"}
_STARTS_EXPRESSION = {"LOCAL", "NUMBER", "GLOBAL", "META", "NAME", "NAMEP", "FN", "IF", "MATCH", "MATCHQ"}
#: Groups of terminals that one word stands for: where all of the first set are possible, those of the second are said by it.
_WORDS: list[tuple[set[str], set[str], str]] = [
    ({"LOCAL", "NUMBER", "NAMEP", "IF"}, {"LET", "GRAPHBIND", "FREE_VAR", "STRING", "MATCH", "MATCHQ", "IF", "FN", "LBRACE",
      "LPAR", "REF", "REF_READ", "REF_WRITE", "LOCAL", "NUMBER", "NAME", "NAMEP", "GLOBAL", "META", "MINUS"}, "an expression"),
    ({"STAR", "EQEQ"}, _OPERATORS | {"LPAR", "PROJ", "DOT"}, "an operator"),
    ({"TENSOR", "NAME", "FN"}, {"TENSOR", "CUSTOM", "TENSOR_WORD", "NAME", "LPAR", "FN", "REF", "META"}, "a type"),
    ({"LOCAL", "NAME", "NAMEP", "LPAR"}, {"LOCAL", "PARAM", "NAME", "NAMEP", "LPAR"}, "a pattern"),
    ({"LOCAL", "PARAM", "ATTRS"}, {"LOCAL", "PARAM", "ATTRS", "NAMEEQ", "NAME", "STRING"}, "a parameter"),
    ({"NUMBER", "STRING", "QUESTION"}, {"NUMBER", "STRING", "QUESTION", "NAME", "META", "GLOBAL", "LSQ", "LBRACE", "MINUS"},
     "an attribute's value"),
    ({"NUMBER", "QUESTION"}, {"NUMBER", "QUESTION", "NAME", "META"}, "an extent"),
    ({"NAMEEQ"}, {"NAMEEQ", "ATTRS", "STRING", "NAME", "TENSOR", "TENSOR_WORD"}, "an attribute"),
    ({"DEF"}, {"DEF", "TYPE", "EXTERN", "DATA"}, "a definition"),
    ({"LOCAL"}, {"LOCAL", "PARAM"}, "a variable"),
    ({"GLOBAL"}, {"GLOBAL"}, "a function's name"),
    ({"NAME", "NAMEP"}, {"NAME", "NAMEP"}, "a constructor"),
    ({"NAME"}, {"NAME"}, "a name"),
    ({"NUMBER"}, {"NUMBER"}, "a number"),
    ({"CASE"}, {"CASE"}, "a clause"),
    ({"META"}, {"META"}, "`meta[...]`"),
    ({"$END"}, {"$END"}, "the end of the text"),
]  # fmt: skip
_SYNC = {";", ",", ")", "]", "}"}
_DEFINITIONS = {"def", "type", "data", "extern"}
_KINDS = {
    "NUMBER": "the number", "LOCAL": "the variable", "GLOBAL": "the function", "STRING": "the string", "NAME": "",
    "ATTRS": "the attributes", "NAMEEQ": "the attribute", "TENSOR": "the type", "NAMEP": "", "GRAPHBIND": "the binding",
}  # fmt: skip


@lru_cache(maxsize=1)
def _lark() -> AnyValue:
    return lark_parser()


def in_words(possible: set[str]) -> list[str]:
    """What a set of terminals is to a reader: `;`, an operator, an expression, a type."""
    left = set(possible) - {"ERROR"}
    words: list[str] = []
    for needed, covered, word in _WORDS:
        if needed <= left:
            words.append(word)
            left -= covered
    signs = [f"`{sign}`" for name, sign in _SIGNS.items() if name in left]
    return signs + words


def _listed(words: list[str]) -> str:
    if len(words) > 5:
        words = [*words[:5], "something else"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class _Recovery:
    """One pass through a text that has an error in it."""

    def __init__(self, tab: Tables, tokens: list[str], source: TokenSource) -> None:
        self.tab = tab
        self.tokens = tokens
        self.source = source
        self.found: list[Diagnostic] = []
        self.parser = _lark().parse_interactive()
        state = self.parser.parser_state
        # no tree is wanted
        state.parse_conf.callbacks = dict.fromkeys(state.parse_conf.callbacks, lambda children: None)
        self.states = state.parse_conf.states
        self.stack = state
        self.open: list[tuple[str, int]] = []
        self.since = 3

    def kind(self, token: str) -> str:
        name = self.tab.names[self.tab.kind_of(token)]
        return "LOCAL" if name == "DASHED" else name

    def feed(self, kind: str, text: str = "") -> bool:
        """Give the parser a token; False where it cannot follow."""
        try:
            self.parser.feed_token(Token(kind, text))
        except UnexpectedInput:
            return False
        return True

    def run(self) -> list[Diagnostic]:
        i, count = 0, len(self.tokens)
        while i < count and len(self.found) < _LIMIT:
            token = self.tokens[i]
            kind = self.kind(token)
            if kind == "COMMENT":
                i += 1
                continue
            if self.feed(kind, token):
                self.brackets(token, i)
                self.since += 1
                i += 1
                continue
            if self.may_end(token, i) and self.feed("SEMI"):
                if self.feed(kind, token):
                    self.brackets(token, i)
                    i += 1
                    continue
            if self.since >= 3:
                self.complain(i, kind)
            at = self.resume(i)
            self.since = 0
            if at is None:
                break
            i = at
        return self.found

    def may_end(self, token: str, i: int) -> bool:
        """Whether a statement may end in front of token `i` without its `;`."""
        if self.open and (self.open[-1][0] != "{" or not token):
            return False
        return not token or token == "}" or self.source.newline_before(i)

    def brackets(self, token: str, i: int) -> None:
        last = token[-1:]
        if last in _CLOSES and (len(token) == 1 or last == "("):
            self.open.append((last, i))
        elif token in (")", "]", "}") and self.open:
            self.open.pop()

    # -- what is said

    def complain(self, i: int, kind: str) -> None:
        token, place = self.tokens[i], self.source.offsets(i)
        if kind == "BAD":
            self.found.append(self.bad_token(token, place))
            return
        possible = set(self.parser.accepts())
        words = in_words(possible)
        opened = self.open[-1] if self.open else None
        if not token and opened is not None:
            sign, at = opened
            self.found.append(
                error(
                    "R0102",
                    f"this `{sign}` is never closed",
                    self.bracket(at),
                    f"`{_CLOSES[sign]}` is missing",
                    also=[(place, f"the text ends here; expected {_listed(words)}" if words else "the text ends here")],
                )
            )
            return
        what = "the end of the text" if not token else f"`{token if len(token) <= 40 else token[:39] + '…'}`"
        word = _KINDS.get(kind, "")
        title = f"expected {_listed(words)}, found {word + ' ' if word else ''}{what}" if words else f"unexpected {what}"
        also = []
        closer = _CLOSES[opened[0]] if opened is not None else ""
        if opened is not None and f"`{closer}`" in words and token in (";", "}", ")", "]", "let", "def", "else", "=>", "{"):
            also.append((self.bracket(opened[1]), f"this `{opened[0]}` is still open"))
        self.found.append(error("R0101", title, place, "not possible here", also=also, fix=self.repair(i, kind, possible)))

    def bracket(self, at: int) -> Span:
        """The place of an opening bracket, which may be the last character of its token."""
        end = self.source.end_of(at)
        return Span(self.source.plain, end - 1, end)

    def repair(self, i: int, kind: str, possible: set[str]) -> Fix | None:
        """A separator that is missing in front of token `i`, if that is what is wrong."""
        if i == 0:
            return None
        end = self.source.end_of(i - 1)
        place = Span(self.source.plain, end, end)
        if "COMMA" in possible and (kind in _STARTS_EXPRESSION or kind in ("ATTRS", "NAMEEQ", "PARAM", "TENSOR", "LPAR")):
            return Fix(place, ",", "a `,` may be missing in front of it")
        if "SEMI" in possible and (kind in _STARTS_EXPRESSION or kind in ("LET", "GRAPHBIND")):
            return Fix(place, ";", "a `;` may be missing in front of it")
        return None

    def bad_token(self, token: str, place: Span) -> Diagnostic:
        if token[0] == '"':
            begin = Span(place.source, place.first, place.first + 1)
            return error("R0102", "this string is never closed", begin, '`"` is missing')
        if token == "'":
            return error("R0101", "strings stand in double quotes", place, notes=["names with odd characters also do"])
        if token == "%":
            return error("R0101", "a variable's name is missing behind `%`", place)
        if token == "@":
            return error("R0101", "a function's name is missing behind `@`", place)
        shown = token[:20] if token.isprintable() else f"U+{ord(token[0]):04X}"
        return error("R0101", f"the character `{shown}` has no meaning here", place)

    # -- going on

    def resume(self, i: int) -> int | None:
        """Skip from token `i` to where reading can go on. Returns the next token's number, or None at the text's end."""
        depth = 0
        count = len(self.tokens)
        at = i
        while at < count:
            token = self.tokens[at]
            if not token:
                return None
            starts_line = token in _DEFINITIONS or token == "let" or (token[0] == "%" and token[-1] == "=")
            if depth == 0 or token in _DEFINITIONS:
                if token in _SYNC:
                    if self.put_error(self.kind(token)):
                        self.leave(token)
                        return at
                elif starts_line and self.source.newline_before(at):
                    if token in _DEFINITIONS:
                        if self.put_error(self.kind(token)):
                            self.open.clear()
                            return at
                    elif self.put_error("SEMI") and self.feed("SEMI"):
                        self.leave(";")
                        return at
            if token[-1] in _CLOSES and (len(token) == 1 or token[-1] == "("):
                depth += 1
            elif token in (")", "]", "}"):
                if depth:
                    depth -= 1
                elif self.open:
                    self.open.pop()
            at += 1
        return None

    def leave(self, token: str) -> None:
        """Forget the brackets that were given up on the way to a `;` or a closing bracket."""
        wanted = {";": "{", "}": "{", ")": "(", "]": "["}.get(token)
        if wanted is None:
            return
        while self.open and self.open[-1][0] != wanted:
            self.open.pop()

    def put_error(self, kind: str) -> bool:
        """Put ERROR in place of what was begun, at the innermost place where `kind` can follow it."""
        stack = self.stack.state_stack
        for depth in range(len(stack) - 1, -1, -1):
            action = self.states[stack[depth]].get("ERROR")
            if action is None or action[0] is not Shift or kind not in self.states[action[1]]:
                continue
            del stack[depth + 1 :]
            del self.stack.value_stack[depth:]
            return self.feed("ERROR")
        return False


def syntax_errors(tab: Tables, tokens: list[str], source: TokenSource, at: int) -> list[Diagnostic]:
    """Every syntax error of a text in which the loop stopped at token `at`."""
    found = _Recovery(tab, tokens, source).run()
    if found:
        return found
    token = tokens[at]
    return [error("R0101", f"unexpected `{token[:40]}`" if token else "the text ends too early", source.offsets(at))]
