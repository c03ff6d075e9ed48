"""The place of a cursor: the word in front of it, the brackets around it, and what may stand there.

Everything comes from the tokens in front of the cursor. The text behind it may be anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from copy import copy
from functools import cached_property
from itertools import islice, pairwise, takewhile

from relaylang.repl.calls import Bracket, OpenCall, call_in, open_brackets
from relaylang.syntax.symbols import SymbolTable
from relaylang.syntax.tokeniser import Brackets, Token

#: The word at the cursor: a name with its sign, with quotes or without. A field's dot belongs to it.
_WORD = re.compile(r'[%@]"(?:[^"\\\n]|\\.)*"?$|[%@]?[\w/.]*$')
_IN_HEADER = re.compile(r"\s*#\[[^]\n]*\Z")
_ENDS_OPERAND = frozenset(")]}")
_DEFINES = frozenset({"def", "type", "data", "let", "free_var"})
_TYPES = frozenset({"type", "data"})


class Cursor:
    """A cursor at the end of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.table = SymbolTable(text)
        last = self.table.tokens[-1] if self.table.tokens else None
        if last is not None and last.end < len(text):
            last = None
        #: in a comment, the header or the metadata section, where nothing is offered
        self.hidden = _IN_HEADER.match(text) is not None or (
            last is not None
            and (
                last.kind in ("header", "metadata")
                or (last.kind == "comment" and not (last.text.startswith("/*") and last.text.endswith("*/")))
            )
        )
        #: in a string that has no closing quote, and is no name
        self.in_string = (
            last is not None
            and last.kind == "string"
            and _is_open(last.text)
            and (text[last.start - 1 : last.start] not in ("%", "@"))
        )
        match = _WORD.search(text)
        self.word = last.text if self.in_string and last is not None else match[0] if match is not None else ""
        begin = len(text) - len(self.word)
        code = self.table.code
        count = len(code)
        while count and code[count - 1].start >= begin:
            count -= 1
        #: the tokens in front of the word
        self.code = code if count == len(code) else code[:count]

    def before(self, token: Token) -> Cursor:
        """The cursor in front of a token of the code, with no word."""
        cursor = copy(self)
        for name in ("pairs", "brackets", "call", "nest"):  # they are computed again
            cursor.__dict__.pop(name, None)
        cursor.text, cursor.word, cursor.in_string, cursor.hidden = self.text[: token.start], "", False, False
        cursor.code = self.code[: bisect_left(self.code, token.start, key=lambda t: t.start)]
        return cursor

    def back(self, count: int = 1) -> str:
        """The text of a token in front of the word, the last one first."""
        return self.code[-count].text if len(self.code) >= count else ""

    @cached_property
    def pairs(self) -> Brackets:
        """The brackets of the code."""
        return Brackets(self.code)

    @cached_property
    def brackets(self) -> list[Bracket]:
        """The open brackets."""
        return open_brackets(self.code, self.pairs)

    @cached_property
    def call(self) -> OpenCall | None:
        return call_in(self.code, self.brackets)

    @cached_property
    def nest(self) -> list[Bracket]:
        """The brackets around a word that begins a call's argument, or a field of tuples in one. The call's is last.

        Empty where no argument and no field begins.
        """
        call, around = self.call, []
        for bracket in self.brackets if call is not None and self.back() in ("(", ",") else ():
            around.append(bracket)
            if call is not None and self.code[bracket.at].start == call.at:
                return around
            if bracket.sign != "(" or self.code[bracket.at - 1].text not in ("(", ","):
                break
        return []

    @property
    def at_argument(self) -> bool:
        """Whether an argument of the call begins here, not a part of one."""
        return len(self.nest) == 1

    @property
    def defines(self) -> bool:
        """Whether a new name is written here."""
        if self.back() in _DEFINES or (self.back() == "[" and self.back(2).startswith("@")):
            return True
        return self._in_parameters() or (self.word.startswith("%") and self.clause() is not None)

    def _in_parameters(self) -> bool:
        """Whether the innermost bracket holds parameters, and one begins here."""
        if self.back() not in ("(", ",") or not self.brackets or self.brackets[0].sign != "(":
            return False
        at = self.brackets[0].at
        head = self._behind_type_variables(at)
        if head < 0 or self.code[head].text != "fn":
            return head > 0 and self.code[head - 1].text == "def"
        return not self._type_begins(head, 1)

    def _behind_type_variables(self, at: int) -> int:
        """The token in front of a bracket, behind which type variables may stand: `fn [A](`."""
        return self.pairs.opening.get(at - 1, at) - 1

    # -- metadata and fields

    @property
    def in_reference(self) -> bool:
        """Inside the brackets of `meta[...][...]`."""
        return self.back() == "[" and (self.back(2) == "meta" or (self.back(2) == "]" and self.back(5) == "meta"))

    @property
    def behind_value(self) -> bool:
        """Behind the dot of a value in brackets, or of a call."""
        return self.word.startswith(".") and self.back() == ")" and self.code[-1].end == len(self.text) - len(self.word)

    def operand(self) -> list[Token]:
        """The call or the value in brackets in front of the word."""
        begin = next(self.pairs.backwards(len(self.code)), 0)
        called = begin and self.code[begin - 1].is_word and self.code[begin - 1].kind != "keyword"
        return self.code[begin - 1 if called else begin :]

    # -- types

    @property
    def at_type(self) -> bool:
        """Whether a type begins at the word."""
        return self._type_begins(len(self.code), 0)

    def _type_begins(self, at: int, level: int) -> bool:
        """Whether a type begins at a token that the brackets from `level` on surround."""
        before = self.code[at - 1].text if at else ""
        if before == ":":
            return at > 1 and self.code[at - 2].kind == "local"
        if before not in ("(", "[", ",") or level >= len(self.brackets):
            return before == "->"
        bracket = self.brackets[level]
        head = self.code[bracket.at - 1] if bracket.at else None
        if head is None or bracket.sign == "{":
            return False
        if bracket.sign == "[":
            return head.kind == "name"
        if head.text in ("fn", "ref"):
            return self._type_begins(bracket.at - 1, level + 1)
        return self._in_type_definition(level + 1) if head.kind == "name" else self._type_begins(bracket.at, level + 1)

    def _in_type_definition(self, level: int) -> bool:
        """Whether a bracket belongs to `type T { ... }`."""
        if level >= len(self.brackets) or self.brackets[level].sign != "{":
            return False
        at = self._behind_type_variables(self.brackets[level].at)
        return at > 0 and self.code[at - 1].text in _TYPES

    @property
    def in_type_definition(self) -> bool:
        """Whether a constructor's name is written here."""
        return self._in_type_definition(0)

    def in_tensor(self) -> tuple[int, int] | None:
        """Inside `Tensor[...]`: (0, -1) where the shape begins, (0, n) at its n-th extent, (1, -1) at the element type."""
        for level, bracket in enumerate(self.brackets[:2]):
            if bracket.sign == "[" and bracket.at and self.code[bracket.at - 1].text == "Tensor":
                if not level:
                    return len(bracket.commas), -1
                inner = self.brackets[0]
                return (0, len(inner.commas)) if inner.sign == "(" and inner.at == bracket.at + 1 else None
        return None

    # -- match

    def _match(self, level: int) -> tuple[int, int] | None:
        """The tokens of the matched expression, where a bracket holds the clauses of a match."""
        if level >= len(self.brackets) or self.brackets[level].sign != "{":
            return None
        for i in self.pairs.backwards(self.brackets[level].at):
            text = self.code[i].text
            if text == "match":
                return i + 1 + (self.code[i + 1].text == "?"), self.brackets[level].at
            if text in (";", "{", ",") or (text in ("(", "[") and i not in self.pairs.closing):
                return None
        return None

    def clause(self) -> tuple[int, tuple[int, int]] | None:
        """In a clause's pattern: the brackets around the word inside the pattern, and the matched tokens."""
        for level, bracket in enumerate(self.brackets):
            if bracket.arrow:
                return None
            if bracket.sign == "{":
                matched = self._match(level)
                return (level, matched) if matched is not None else None
        return None

    def clauses(self, level: int) -> list[list[Token]]:
        """The patterns of the clauses in front of this one."""
        bracket = self.brackets[level]
        begins = [bracket.at, *bracket.commas]
        return [list(takewhile(lambda token: token.text != "=>", self.code[begin + 1 : end])) for begin, end in pairwise(begins)]

    # -- expressions

    @property
    def behind_operand(self) -> bool:
        """Whether the word follows an operand in its line, so that no other can begin."""
        last = self.code[-1] if self.code else None
        if last is None or last.kind == "arrow" or (last.kind == "mark" and last.text not in _ENDS_OPERAND):
            return False
        if last.kind == "keyword" or last.text == "}":
            return False
        begin = len(self.text) - len(self.word)
        return "\n" not in self.text[last.end : begin]

    @property
    def bound(self) -> str:
        """The variable whose value is written here; "" inside a function in the value, which may call itself."""
        for i in self.pairs.backwards(len(self.code)):
            if self.code[i].text == "let" and i + 1 < len(self.code):
                return self.code[i + 1].text
            if self.code[i].text in (";", "{"):
                return ""
        return ""

    @property
    def begins_statement(self) -> bool:
        """Whether a statement, a block's value or a clause's result begins here."""
        return self.back() in ("", ";", "{", "}", "=>")

    @property
    def at_top(self) -> bool:
        """Whether a definition may begin here."""
        if self.back() not in ("", ";", "}"):
            return False
        return all(self.code[i].text != "{" or i in self.pairs.closing for i in self.pairs.backwards(len(self.code)))

    @property
    def behind_branch(self) -> bool:
        """Behind the first branch of an `if`."""
        condition = next(islice(self.pairs.backwards(len(self.code)), 1, None), 0)
        return self.back() == "}" and self.code[condition].text == "(" and self.code[condition - 1].text == "if"


def _is_open(text: str) -> bool:
    """Whether a string has no closing quote."""
    body = re.sub(r"\\[\s\S]", "", text[1:])
    return not body.endswith('"')


__all__ = ["Cursor"]
