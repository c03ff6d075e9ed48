"""Small repairs of a text: a token put in, left out or changed, each with its diagnostic."""

from __future__ import annotations

import re
from collections.abc import Iterator

from relaylang.diagnostics import Diagnostic, Fix, Span, did_you_mean, error
from relaylang.syntax.recovery.expected import CLOSERS, CLOSES, EXPRESSION, OPENS, SIGNS, found_in_words, in_words, listed, quoted
from relaylang.syntax.recovery.reading import Reading
from relaylang.syntax.recovery.rule import Repair

#: A diagnostic, its repair, and the number of tokens that must follow it.
Candidate = tuple[Diagnostic, Repair, int]

_STATEMENTS = {"LET", "GRAPHBIND", "FREE_VAR", "DEF", "TYPE", "EXTERN", "DATA"}
_WORDS = {
    "def": "DEF",
    "let": "LET",
    "fn": "FN",
    "if": "IF",
    "else": "ELSE",
    "match": "MATCH",
    "type": "TYPE",
    "case": "CASE",
    "extern": "EXTERN",
    "ref_read": "REF_READ",
    "ref_write": "REF_WRITE",
    "free_var": "FREE_VAR",
}
#: Signs that are written for one another.
_CONFUSED = {
    "ARROW": ("FAT", "COLON", "EQ"),
    "FAT": ("ARROW", "EQ"),
    "EQ": ("FAT", "COLON", "ARROW", "EQEQ"),
    "EQEQ": ("EQ",),
    "COLON": ("EQ", "ARROW", "SEMI"),
    "SEMI": ("COMMA", "COLON"),
    "COMMA": ("SEMI",),
    "LPAR": ("LBRACE",),
    "LBRACE": ("LPAR",),
    "LT": ("LSQ",),
    "RBRACE": ("RPAR", "RSQ"),
    "RPAR": ("RBRACE", "RSQ"),
    "RSQ": ("RPAR", "RBRACE"),
}


def candidates(r: Reading, i: int, kind: str) -> Iterator[Candidate]:
    """Repairs in the order of their likelihood."""
    token = r.tokens[i]
    possible = r.machine.possible()
    top = r.open[-1] if r.open else None
    # a closing bracket of another kind, or too many of them
    if token in OPENS:
        if top is None:
            yield closes_nothing(r, i), Repair(r.next(i)), 1
        elif CLOSES[top[0]] != token:
            wanted = CLOSES[top[0]]
            if not any(CLOSES[sign] == token for sign, _, _ in r.open):
                yield closes_nothing(r, i), Repair(r.next(i)), 3
                yield closes_wrong(r, i, top, wanted), Repair(r.next(i), (CLOSERS[wanted],)), 1
    # a word that is misspelt
    yield from misspelt(r, i, kind, possible)
    # a separator that is missing
    if "SEMI" in possible and kind in _STATEMENTS:
        yield missing(r, i, ";"), Repair(i, ("SEMI",)), 2
    if "COMMA" in possible and (kind in EXPRESSION or kind in ("ATTRS", "NAMEEQ", "PARAM", "TENSOR", "TENSOR_WORD", "QUESTION")):
        yield missing(r, i, ","), Repair(i, ("COMMA",)), 2
    # brackets that are not closed
    closers: tuple[str, ...] = ()
    for depth, (sign, at, _) in enumerate(reversed(r.open[-6:])):
        closers = (*closers, CLOSERS[CLOSES[sign]])
        yield unclosed(r, i, kind, at, sign, depth), Repair(i, closers), 2 if token else 1
    # a sign in place of another
    for other in _CONFUSED.get(kind, ()):
        if other in possible:
            said = confused(r, i, kind, other)
            number = said.code == "R0105"
            yield said, Repair(r.next(r.next(i)), ("NUMBER",), 1) if number else Repair(r.next(i), (other,)), 3
    # a sign that is missing
    opens = kind in EXPRESSION or kind in ("PARAM", "TENSOR", "TENSOR_WORD", "QUESTION", "CASE")
    for other in ("EQ", "COLON", "ARROW", "FAT", "LBRACE", "LPAR", "RPAR", "RSQ", "LSQ"):
        if other in possible and (opens or not other.startswith("L")):
            yield missing(r, i, SIGNS[other]), Repair(i, (other,)), 5
    # twice the same, or one too many
    if r.before is not None and token == r.tokens[r.before] and kind in SIGNS:
        yield surplus(r, i, f"`{token}` stands here twice"), Repair(r.next(i)), 2
    # something is missing
    for other in ("LOCAL", "NAME", "NUMBER", "GLOBAL", "TENSOR"):
        if other in possible and kind != "BAD":
            yield complaint(r, i, kind, possible), Repair(i, (other,)), 3
    if "SEMI" in possible and kind in EXPRESSION:
        yield complaint(r, i, kind, possible), Repair(i, ("SEMI",)), 3
    if token and kind != "BAD":
        yield complaint(r, i, kind, possible), Repair(r.next(i)), 6


def misspelt(r: Reading, i: int, kind: str, possible: set[str]) -> Iterator[Candidate]:
    """A keyword with a slip in it, as token `i` or the one in front of it."""
    places = [(i, kind, 0)]
    if r.before is not None:
        places.append((r.before, r.kind(r.before), 1))
    for at, its, dropped in places:
        if its not in ("NAME", "NAMEP", "NAMEEQ"):
            continue
        word = r.tokens[at].rstrip("(= ")
        near = did_you_mean(word, _WORDS) if len(word) > 1 else None
        if near is None and len(word) == 2:
            near = {"fi": "if", "nf": "fn", "fm": "fn", "of": "if"}.get(word)
        if near is None:
            continue
        feed = (_WORDS[near], *(("LPAR",) if its == "NAMEP" else ()))
        start = r.source.start_of(at)
        span = Span(r.source.plain, start, start + len(word))
        said = error("R0101", f"`{word}` is not a keyword here", span, fix=Fix(span, near, f"did you mean `{near}`?"))
        yield said, Repair(r.next(i) if not dropped else i, feed, dropped), 3


def missing(r: Reading, i: int, sign: str) -> Diagnostic:
    """A sign that is missing behind the token that was read last."""
    place = r.behind(r.before)
    behind = found_in_words(r.kind(r.before), r.tokens[r.before]) if r.before is not None else ""
    where = f" behind {behind}" if behind else ""
    written = f" {sign}" if sign in ("{", "=", "->", "=>") else sign
    return error("R0112", f"`{sign}` is missing{where}", place, fix=Fix(place, written, f"put `{sign}` here"))


def unclosed(r: Reading, i: int, kind: str, at: int, sign: str, depth: int) -> Diagnostic:
    """The error for a bracket that is still open where token `i` ends the phrase around it."""
    closer = CLOSES[sign]
    place = r.behind(r.before)
    if not r.tokens[i] and not depth:
        at = r.suspect if sign == "{" and r.suspect is not None else at
        if not r.count:
            r.first = at + 1
    seen = "the text ends here" if not r.tokens[i] else f"`{closer}` is missing in front of this"
    inner = [CLOSES[s] for s, _, _ in reversed(r.open[len(r.open) - 1 - depth :])]
    notes = [f"{depth} more bracket{'s' * (depth > 1)} inside it {'are' if depth > 1 else 'is'} open, too"] if depth else []
    return error(
        "R0102",
        f"this `{sign}` is never closed",
        r.bracket(at),
        "opened here",
        also=[(r.place(i), seen)],
        notes=notes,
        fix=Fix(place, "".join(inner), f"put `{''.join(inner)}` here"),
    )


def closes_nothing(r: Reading, i: int) -> Diagnostic:
    """A closing bracket without an opening one."""
    token = r.tokens[i]
    return surplus(r, i, f"this `{token}` closes nothing", f"there is no open `{OPENS[token]}`")


def closes_wrong(r: Reading, i: int, top: tuple[str, int, int], wanted: str) -> Diagnostic:
    """A closing bracket of another kind than the open one."""
    token, (sign, at, _) = r.tokens[i], top
    place = r.place(i)
    return error(
        "R0101",
        f"`{token}` does not close `{sign}`",
        place,
        f"`{wanted}` is wanted here",
        also=[(r.bracket(at), "opened here")],
        fix=Fix(place, wanted, f"write `{wanted}`"),
    )


def confused(r: Reading, i: int, kind: str, other: str) -> Diagnostic:
    """A sign in place of another."""
    sign = SIGNS.get(other, "==" if other == "EQEQ" else ".")
    place = r.place(i)
    before, behind = r.before, r.next(i)
    if kind == "COMMA" and before is not None and re.fullmatch(r"\d+,\d+f?", (both := r.place(before, behind)).text):
        number = both.text.replace(",", ".")
        fix = Fix(both, number, f"write `{number}`")
        return error("R0105", "a number has a point, not a comma", place, fix=fix)
    return error("R0101", f"`{sign}` is wanted here, not {quoted(r.tokens[i])}", place, fix=Fix(place, sign, f"write `{sign}`"))


def surplus(r: Reading, i: int, title: str, label: str = "") -> Diagnostic:
    """The error for a superfluous token."""
    place = r.place(i)
    return error("R0101", title, place, label, fix=Fix(place, "", "leave it out"))


def complaint(r: Reading, i: int, kind: str, possible: set[str] | None = None) -> Diagnostic:
    """The error for an unexpected token `i`: it lists the tokens that could have stood there."""
    if possible is None:
        possible = r.machine.possible()
    token, place = r.tokens[i], r.place(i)
    words = in_words(possible)
    top = r.open[-1] if r.open else None
    if not token and top is not None:
        sign, at, _ = top
        if sign == "{" and r.suspect is not None:
            at = r.suspect
        if not r.count:
            r.first = at + 1
        ends = f"the text ends here; expected {listed(words)}" if words else "the text ends here"
        return error("R0102", f"this `{sign}` is never closed", r.bracket(at), f"`{CLOSES[sign]}` is missing", also=[(place, ends)])
    actual = found_in_words(kind, token)
    title = f"expected {listed(words)}, found {actual}" if words else f"nothing can follow here, but there is {actual}"
    label = "not possible here"
    operand = r.before is not None and "an expression" in words
    if r.before is not None and operand and r.tokens[r.before] in ("+", "-", "*", "/", "<", ">", "<=", ">=", "==", "!="):
        label = f"an operand of `{r.tokens[r.before]}` is missing in front of this"
    also = []
    closer = CLOSES[top[0]] if top is not None else ""
    if top is not None and f"`{closer}`" in words:
        also.append((r.bracket(top[1]), f"this `{top[0]}` is still open"))
    return error("R0101", title, place, label, also=also)
