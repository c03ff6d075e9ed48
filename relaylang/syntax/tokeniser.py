"""The tokeniser of Relay text beside the parser's: for the editor, the session, Pygments and the formatter.

Its tokens are the fine terminals of the grammar: one for each bracket, sign, name and literal. It takes any text, also a
wrong or unfinished one. Every character but white space is in a token. The parser's coarse tokens come from the same
terminals (`tables.Tables.tokens`, `tokens.TokenSource`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from relaylang.grammar import literals, patterns
from relaylang.syntax.literals import is_dtype

#: The beginning of the metadata section; TVM 0.6 wrote the second one.
METADATA = re.compile(r"^[ \t]*(?:#\[metadata\]|METADATA:)", re.MULTILINE)
_IN_COMMENT = re.compile(r"/\*|\*/")
_CONSTANTS = frozenset({"True", "False", "None"})
_DIVIDES = re.compile(r"[.\-:/]")
_NUMBERS = re.compile(r"(?:[.\-:/][0-9]+)+\Z")
#: The most signs in a name whose beginnings are tried, for that costs the square of their number.
_MOST_SIGNS = 100
#: The string inside the grammar's patterns, and a string that ends with its line: its closing quote is still missing.
_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_QUOTED_IN_LINE = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_NAME_KINDS = ("local", "global", "name", "keyword", "constant", "type")


@dataclass(slots=True)
class Token:
    """A piece of a text.

    `kind` is local, global, string, number, name, keyword, constant, type, comment or header. Further kinds are reference
    (`meta[...][0]`), metadata (the section), arrow (a sign of two characters) and mark (any other character).
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_word(self) -> bool:
        """Whether a cursor behind the last letter is still at the token."""
        return self.kind in _NAME_KINDS


@lru_cache(maxsize=1)
def keywords() -> frozenset[str]:
    """The words of the grammar, and those that mean something outside it."""
    words = {word for word in literals().values() if word.isidentifier() and word != "Tensor"}
    return frozenset(words | {"meta", "import"})


@lru_cache(maxsize=1)
def _fine() -> re.Pattern[str]:
    known = patterns()
    assert all(_QUOTED in known[name] for name in ("LOCAL", "GLOBAL", "STRING"))
    line = {name: known[name].replace(_QUOTED, _QUOTED_IN_LINE) for name in ("LOCAL", "GLOBAL", "STRING")}
    reference = known["META"][: known["META"].index(r"(?:\s*")] + ")"
    signs = [re.escape(sign) for sign in literals().values() if len(sign) == 2 and not sign.isalpha()]
    kinds = {
        "metadata": r"(?:#\[metadata\]|(?m:^)METADATA:)[\s\S]*",
        "header": r"\#\[[^\]\n]*\]",
        "comment": f"{known['BLOCK_COMMENT']}|{known['LINE_COMMENT']}",
        "open": r"/\*",
        "local": f"{line['LOCAL']}|%",
        "global": f"{line['GLOBAL']}|@",
        "string": line["STRING"].removesuffix('")') + '"?)|' + known["QUOTED"],
        "reference": reference,
        "type": known["CUSTOM"],
        "number": known["NUMBER"],
        "name": known["NAME"],
        "arrow": "|".join(signs),
        "mark": r"\S",
    }
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))


def bound_locals(tokens: Iterable[str]) -> set[str]:
    """The local names that a text binds where a name may hold a dash: those of parameters, lets and patterns.

    The tokens may be coarse or fine. A bound `%layer-1` is a name, any other one a subtraction.
    """
    text = [t for t in tokens if t and t[:2] not in ("/*", "//") and (t[0] != "#" or t[1:2] == "[")]
    bound: set[str] = set()
    depth = -1  # how deep inside the brackets of parameters
    case = False
    for i, token in enumerate(text):
        if token in ("fn", "def"):
            depth = 0
        elif depth >= 0:
            depth += _opens(token)
            if token in ("{", ";") or (token == ")" and not depth):
                depth = -1
        if token[0] == "%":
            if case or depth == 1 or text[i + 1 : i + 2] in ([":"], ["="]) or (i and text[i - 1] in ("let", "free_var")):
                bound.add(token)
        elif token == "=>":
            bound.update(_of_pattern(text, i))
        elif token in ("case", "{"):
            case = token == "case"
    return bound


def _opens(token: str) -> int:
    """1 for a token that opens brackets, -1 for one that closes them."""
    return (token in "([") - (token in ")]") if len(token) == 1 else token[-1] == "("


def _of_pattern(text: list[str], arrow: int) -> Iterator[str]:
    """The local names of the pattern in front of token `arrow`, a `=>`."""
    depth, at = 0, arrow - 1
    while at >= 0 and depth >= 0 and text[at] not in ("{", "}", ";", "=>") and (depth or text[at] != ","):
        depth -= _opens(text[at])
        if text[at][0] == "%":
            yield text[at]
        at -= 1


def bound_beginning(name: str, bound: set[str]) -> str | None:
    """The longest beginning of a name, up to a sign that divides, that is bound. Long chains of numbers have none."""
    signs = [match.start() for match in islice(_DIVIDES.finditer(name), _MOST_SIGNS + 1)]
    known = (name[:at] for at in reversed(signs))
    return next((part for part in known if part in bound), None) if len(signs) <= _MOST_SIGNS else None


def _known_part(name: str, bound: set[str]) -> str:
    """The longest beginning of a name that is bound, else the name without the numbers of fields and subtractions."""
    known = bound_beginning(name, bound)
    if known is not None:
        return known
    numbers = _NUMBERS.search(name)
    return name[: numbers.start()] if numbers is not None else name


def _word_kind(text: str) -> str:
    if text in keywords():
        return "keyword"
    if text in _CONSTANTS:
        return "constant"
    return "type" if text == "Tensor" or is_dtype(text) else "name"


def tokenise(text: str) -> Iterator[Token]:
    """The tokens of a text, comments included."""
    fine = _fine()
    bound: set[str] | None = None
    words: dict[str, str] = {}
    at = 0
    while at >= 0:
        begin, at = at, -1
        for match in fine.finditer(text, begin):
            kind, piece, start = match.lastgroup or "mark", match.group(), match.start()
            if kind == "name":
                kind = words.get(piece) or words.setdefault(piece, _word_kind(piece))
            elif kind == "local" and piece[1:2] != '"' and _DIVIDES.search(piece):
                if bound is None:
                    bound = bound_locals(match.group() for match in fine.finditer(text))
                if piece not in bound:
                    piece = _known_part(piece, bound)
                    at = start + len(piece) if len(piece) < len(match.group()) else -1
            elif kind == "open":
                kind, at = "comment", comment_end(text, start, len(text)) or len(text)
                piece = text[start:at]
            yield Token(kind, piece, start)
            if at >= 0:
                break


class Brackets:
    """The brackets of tokens. One without a partner holds nothing, but for an open one at the end.

    `closing` and `opening` are partners, `around` is the bracket that holds a token, or -1. `commas` are those in a bracket.
    """

    __slots__ = ("around", "closing", "commas", "opening")

    def __init__(self, code: Iterable[Token]) -> None:
        self.closing: dict[int, int] = {}
        self.opening: dict[int, int] = {}
        self.around: list[int] = []
        self.commas: dict[int, list[int]] = {}
        stack = [-1]
        for i, token in enumerate(code):
            sign = token.text if token.kind == "mark" else ""
            if sign and sign in ")]}" and len(stack) > 1:
                self.closing[stack[-1]] = i
                self.opening[i] = stack.pop()
            elif sign == ",":
                self.commas.setdefault(stack[-1], []).append(i)
            self.around.append(stack[-1])
            if sign and sign in "([{":
                stack.append(i)

    def parts(self, at: int) -> list[tuple[int, int]]:
        """The stretches between the commas of a bracket, or of all tokens for -1."""
        ends = [at, *self.commas.get(at, ()), self.closing.get(at, len(self.around))]
        return [(begin + 1, end) for begin, end in pairwise(ends)]

    def backwards(self, end: int) -> Iterator[int]:
        """The tokens in front of one, the nearest first; of brackets that close, the opening one alone."""
        while end > 0:
            end = self.opening.get(end - 1, end - 1)
            yield end


def is_blank(text: str) -> bool:
    """Whether a text holds comments and white space only."""
    return all(token.kind == "comment" for token in tokenise(text))


def metadata_start(text: str) -> int:
    """The beginning of the metadata section, or the text's length."""
    if "#[metadata]" not in text and "METADATA:" not in text:
        return len(text)
    match = METADATA.search(text)
    return match.start() if match else len(text)


def section_start(text: str, start: int) -> int:
    """The beginning of the JSON in the metadata section that begins at `start`."""
    match = METADATA.match(text, start)
    assert match is not None
    return match.end()


def comment_end(text: str, start: int, end: int) -> int | None:
    """The end of the comment that begins at `start`, with those inside it; None where nothing closes it before `end`."""
    at, depth = start + 2, 1
    while depth:
        mark = _IN_COMMENT.search(text, at, end)
        if mark is None:
            return None
        depth += 1 if mark.group() == "/*" else -1
        at = mark.end()
    return at


@lru_cache(maxsize=1)
def strings_and_comments() -> re.Pattern[str]:
    """Finds strings, line comments and the beginnings of block comments: whatever may hide other tokens."""
    return re.compile(f"{patterns()['STRING']}|{patterns()['QUOTED']}|{patterns()['LINE_COMMENT']}|/\\*")


__all__ = [
    "Brackets",
    "Token",
    "bound_beginning",
    "bound_locals",
    "comment_end",
    "is_blank",
    "keywords",
    "metadata_start",
    "section_start",
    "strings_and_comments",
    "tokenise",
]
