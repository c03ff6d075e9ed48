"""The call that the cursor stands in: its callee, which argument, which attributes are there already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from relaylang.ops import OPS
from relaylang.repl.opdoc import parameters
from relaylang.syntax.tokeniser import Brackets, Token, tokenise

#: How far back the parenthesis is looked for, in characters.
_REACH = 4000


@dataclass(frozen=True)
class OpenCall:
    """`name` is the callee, `index` the number of commas in front of the cursor, `attribute` the one being written."""

    name: str
    index: int
    attribute: str | None
    given: tuple[str, ...]
    at: int


class Bracket(NamedTuple):
    """An open bracket: the numbers of its token and of its commas. `arrow`: `=>` follows the last comma."""

    at: int
    sign: str
    commas: list[int]
    arrow: bool


def open_brackets(tokens: Sequence[Token], pairs: Brackets) -> list[Bracket]:
    """The open brackets at the end of tokens, the innermost first, within the statement or block."""
    brackets: list[Bracket] = []
    commas: list[int] = []
    arrow = False
    for i in pairs.backwards(len(tokens)):
        sign = tokens[i].text
        if i in pairs.closing or tokens[i].kind not in ("mark", "arrow"):
            continue
        arrow = arrow or (sign == "=>" and not commas)
        if sign in ("(", "[", "{"):
            brackets.append(Bracket(i, sign, commas[::-1], arrow))
            commas, arrow = [], False
        elif sign == ",":
            commas.append(i)
        if sign in (";", "{"):
            break
    return brackets


def call_in(tokens: Sequence[Token], brackets: Iterable[Bracket], begin: int = 0) -> OpenCall | None:
    """The call whose parenthesis is the innermost of open brackets. Lists and tuples in it are one argument.

    `begin` is the place of the tokens' text in the whole text.
    """
    for bracket in brackets:
        if bracket.sign == "{":
            return None
        if bracket.sign == "(" and bracket.at and tokens[bracket.at - 1].is_word:
            first = [bracket.at + 1, *(comma + 1 for comma in bracket.commas)]
            named = [_attribute(tokens, at) for at in first]
            names = tuple(name for name in named[:-1] if name is not None)
            return OpenCall(tokens[bracket.at - 1].text, len(bracket.commas), named[-1], names, begin + tokens[bracket.at].start)
    return None


def open_call(before: str) -> OpenCall | None:
    """The innermost call whose parenthesis is open at the end of the text, None where there is none."""
    begin = max(0, len(before) - _REACH)
    tokens = [token for token in tokenise(before[begin:]) if token.kind != "comment"]
    return call_in(tokens, open_brackets(tokens, Brackets(tokens)), begin)


def statements_end(text: str) -> int:
    """The end of the last `;` that no bracket holds, 0 where there is none."""
    tokens = list(tokenise(text))
    around = Brackets(tokens).around
    return next((tokens[i].end for i in range(len(tokens) - 1, -1, -1) if tokens[i].text == ";" and around[i] < 0), 0)


def _attribute(tokens: Sequence[Token], at: int) -> str | None:
    """The name of the attribute that begins at a token, None where an argument does."""
    named = at + 1 < len(tokens) and tokens[at].kind in ("name", "keyword", "type") and tokens[at + 1].text == "="
    return tokens[at].text if named else None


@dataclass(frozen=True)
class Signature:
    """A callee's parameters as they are shown, and the number of the one at the cursor (-1: none of them)."""

    name: str
    parameters: tuple[str, ...]
    active: int
    result: str = ""

    def parts(self) -> list[tuple[bool, str]]:
        """The signature in pieces, each with whether it is the active parameter."""
        out = [(False, f"{self.name}(")]
        for i, p in enumerate(self.parameters):
            out += [(False, ", ")] if i else []
            out.append((i == self.active, p))
        return [*out, (False, f"){self.result}")]


def op_signature(call: OpenCall) -> Signature | None:
    """The signature of an operator's call."""
    op = OPS.get(call.name)
    if op is None:
        return None
    shown = parameters(op)
    count = 1 if op.variadic else len(op.args)
    if call.attribute is not None:
        names = list(op.schema)
        active = count + names.index(call.attribute) if call.attribute in names else -1
    elif op.variadic:
        active = 0
    else:
        active = call.index if call.index < count else count if len(shown) > count else -1
    return Signature(op.name, tuple(shown), active)


def function_signature(call: OpenCall, type_says: str) -> Signature:
    """The signature of a function or constructor from its type's text, `fn (int32, Tensor[(2), int8]) -> int32`."""
    inside, _, result = type_says.removeprefix("fn ").rpartition(") -> ")
    if not inside:
        inside, result = type_says.strip("()"), ""
    inside = inside[inside.find("(") + 1 :] if inside.startswith(("(", "<")) or "] (" in inside[:40] else inside
    return Signature(call.name, tuple(_split(inside)), call.index, f" -> {result}" if result else "")


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket."""
    tokens = list(tokenise(text))
    parts = Brackets(tokens).parts(-1)
    return [text[tokens[begin].start : tokens[end - 1].end] for begin, end in parts if begin < end]
