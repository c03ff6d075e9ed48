"""Mistakes in single tokens: other languages, strings, headers, operators, arrows."""

from __future__ import annotations

import re
import unicodedata

from relaylang.diagnostics import Fix, error
from relaylang.diagnostics.source import Span
from relaylang.syntax.recovery.rule import OPERAND_ENDS, Answer, Here, Repair

#: Operators of other languages, by their first character or two, and Relay's.
_OPERATORS = {
    "&&": "logical_and(a, b)",
    "||": "logical_or(a, b)",
    "!": "logical_not(a)",
    "&": "bitwise_and(a, b)",
    "|": "bitwise_or(a, b)",
    "^": "bitwise_xor(a, b)",
    "~": "bitwise_not(a)",
    "**": "power(a, b)",
    "<<": "left_shift(a, b)",
    ">>": "right_shift(a, b)",
    "%": "floor_mod(a, b)",
    "?": "if (c) { a } else { b }",
}
#: Words of other languages for them.
_WORDS = {"and": "&&", "or": "||", "not": "!"}
#: Quotation marks that are not those of strings, and what ends a string that begins with one.
_QUOTES = {"'": "'", "`": "`", "“": '”“"', "”": '”“"', "„": '”“"', "‘": "’‘'", "’": "’‘'", "«": "»", "»": "«"}
#: Signs of word processors and formulas for those of Relay text.
_LOOKALIKES = {
    "−": "-",
    "–": "-",
    "—": "-",
    "→": "->",
    "⇒": "=>",
    "×": "*",
    "·": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "λ": "fn",
}
_OTHERS = (
    (
        re.compile(r"^\s*(?:from|import)\s+tvm\.script|@I\.ir_module|@T\.prim_func|@R\.function|^@tvm\.script", re.M),
        "this is TVMScript (Python), not Relay text",
        "Relax and TensorIR have no Relay text; `mod.astext()` of TVM up to 0.19 prints a Relay module",
    ),
    (
        re.compile(r"^\s*(?:from|import)\s+(?:tvm|relaylang)\b.*$", re.M),
        "this is a Python script, not Relay text",
        "`relay tvm FILE` runs it; `print(mod.astext())` in it prints the Relay text of a module",
    ),
    (
        re.compile(r"^\s*(?:module\s*(?:attributes\b|\{|@)|func\.func\b)|\btensor<[0-9?x]*x?[a-z]+[0-9]+>", re.M),
        "this is MLIR, not Relay text",
        "relaylang reads what `mod.astext()` of TVM prints",
    ),
    (
        re.compile(
            r"^\s*(?:def (?:\w+\([^%\n]*\)|@\w+\([^%\n)]+\))[^(){]*:\s*$"
            r"|import [\w.]+(?: as \w+)?\s*$|class \w+[:(]|from [\w.]+ import\b)",
            re.M,
        ),
        "this is Python, not Relay text",
        "a Relay function is `def @main(%x: Tensor[(1, 3), float32]) { ... }`",
    ),
    (
        re.compile(r'\A\s*\{\s*"'),
        "this is JSON, not Relay text",
        "TVM's `save_json` writes such files; `mod.astext()` prints the text",
    ),
    (
        re.compile(r"^\s*(?:graph|HloModule|ir_version:|node \{)", re.M),
        "this is another framework's text, not Relay text",
        "relaylang reads what `mod.astext()` of TVM prints",
    ),
)


def other_language(h: Here) -> Answer:
    if h.r.count:
        return None
    text = h.r.source.text[:20_000]
    for pattern, title, note in _OTHERS:
        match = pattern.search(text)
        if match is not None:
            start = match.end() - len(match.group().lstrip())
            h.r.stopped = True
            end = start + len(text[start : match.end()].partition("\n")[0])
            span = Span(h.r.source.plain, start, max(start + 1, end))
            return error("R0111", title, span, notes=[note]), None
    return None


def matmul(h: Here) -> Answer:
    """`%x @ %y`, as Python writes it."""
    if h.t != "@" or h.pk not in OPERAND_ENDS or h.nk not in ("LOCAL", "LPAR", "NAME", "NAMEP", "GRAPHBIND", "META"):
        return None
    repair = Repair(h.after, ("STAR",)) if h.can("STAR") else Repair(h.after)
    notes = ["a weight that is stored with its output channels first goes to `nn.dense(a, weight)`"]
    return error("R0113", "Relay has no operator `@`", h.place(), "write `nn.matmul(a, b, units=None)`", notes=notes), repair


def string_over_lines(h: Here) -> Answer:
    """A string whose end is missing runs to the next quotation mark, lines below."""
    for at, kind in ((h.at, h.pk), (h.i, h.k)):
        if at is not None and kind == "STRING" and "\n" in h.r.tokens[at]:
            first_line = h.r.tokens[at].partition("\n")[0]
            stop = _string_end(first_line)
            place = h.part(at, stop, stop)
            said = error(
                "R0102",
                "this string is never closed on its line",
                h.part(at, 0, 1),
                "opened here",
                notes=["a line end in a string is written `\\n`"],
                fix=Fix(place, '"', 'put `"` here'),
            )
            h.r.stopped = True
            return said, None
    return None


def _string_end(line: str) -> int:
    """The likely end of an unterminated string: in front of a token that can follow a string in Relay text."""
    match = re.search(r"\s*(?:[,;)\]}]|\Z)", line[1:])
    return match.start() + 1 if match is not None else len(line)


def no_token(h: Here) -> Answer:
    """Characters that form no token."""
    if h.k not in ("BAD", "QUOTED"):
        return None
    t, place = h.t, h.place()
    if t[0] == '"':
        begin = h.part(h.i, 0, 1)
        end = h.r.source.plain.line(begin.line)[begin.column - 1 :].rstrip()
        stop = _string_end(end)
        fix = Fix(h.part(h.i, stop, stop), '"', 'put `"` here')
        h.r.owed.clear()
        return error("R0102", "this string is never closed", begin, "opened here", fix=fix), None
    if t[0] in _QUOTES:
        line = h.r.source.plain.line(place.line)[place.column - 1 :]
        match = re.match(rf"{t[0]}([^\"\\\n{_QUOTES[t[0]]}]*)[{_QUOTES[t[0]]}]", line)
        title = "strings stand in double quotes" if t[0] in "'`" else 'strings stand in straight quotes: `"`'
        if match is None:
            return error("R0101", title, place), None
        span = h.part(h.i, 0, match.end())
        at = h.i
        while h.r.source.start_of(at) < span.end and h.r.tokens[at]:
            at += 1
        fix = Fix(span, f'"{match[1]}"', f'write `"{match[1][:40]}"`')
        repair = Repair(at, ("STRING",)) if h.can("STRING") else None
        return error("R0101", title, span, fix=fix), repair
    if t == "#" and h.r.source.text.startswith("#[version", place.start):
        at = h.i
        stop = place.start - place.column + 1 + len(h.r.source.line(place.line))
        while h.r.tokens[at] and h.r.source.start_of(at) < stop:
            at += 1
        close = Fix(Span(h.r.source.plain, stop, stop), "]", "put `]` here")
        said = error("R0102", "the version header is never closed", place, "opened here", fix=close)
        return said, Repair(at, ("HEADER",)) if h.can("HEADER") else Repair(at)
    if t == "%" and (h.at is None or h.pk in ("LPAR", "COMMA", "EQ", "LET", "NAMEP", "SEMI", "LBRACE", "FREE_VAR") or not h.n):
        repair = Repair(h.after, ("LOCAL",)) if h.can("LOCAL") else None
        return error("R0114", "a variable's name is missing behind `%`", place), repair
    if t == "@" and (h.can("GLOBAL") or h.at is None):
        repair = Repair(h.after, ("GLOBAL",)) if h.can("GLOBAL") else None
        return error("R0114", "a function's name is missing behind `@`", place), repair
    double = t + h.n if h.n == t else t
    op = _OPERATORS.get(double) or _OPERATORS.get(t)
    if op is not None:
        last = h.after if double in _OPERATORS and len(double) > 1 else h.i
        sign = double if last != h.i else t
        at = h.r.next(last)
        repair = Repair(at, ("PLUS",)) if h.can("PLUS") else Repair(at)
        title = f"Relay has no operator `{sign}`"
        return error("R0113", title, h.r.place(h.i, last), f"write `{op}`"), repair
    if t == "\\" and h.n[:1] == "n":
        return error("R0101", "a `\\n` stands here instead of a line end", place), None
    plain = _LOOKALIKES.get(t) or unicodedata.normalize("NFKC", t)
    if plain != t and plain.isascii() and plain.strip():
        kind = h.r.tab.names[h.r.tab.kind_of(plain)]
        repair = Repair(h.after, (kind,)) if h.can(kind) else Repair(h.after)
        title = f"the character `{t}` has no meaning here; `{plain}` is another one"
        return error("R0101", title, place, fix=Fix(place, plain, f"write `{plain}`")), repair
    shown = t[:20] if t.isprintable() else f"U+{ord(t[0]):04X}"
    if unicodedata.category(t[0]) == "Cf":  # it cuts names in two, and errors about the pieces help nobody
        h.r.stopped = True
        return error("R0101", f"the invisible character {shown} has no meaning here", place, fix=Fix(place, "", "delete it")), None
    return error("R0101", f"the character `{shown}` has no meaning here", place), Repair(h.after)


def header(h: Here) -> Answer:
    if h.k != "HEADER":
        return None
    place = h.place()
    said = error("R0101", "a version header stands at the text's beginning only", place, fix=Fix(place, "", "leave it out"))
    return said, Repair(h.after)


def operator(h: Here) -> Answer:
    """Operators that Relay does not have, made of signs that it has, or words."""
    word = h.t.rstrip("(")
    if word in _WORDS and h.at is not None:
        return error("R0113", f"Relay has no operator `{word}`", h.place(), f"write `{_OPERATORS[_WORDS[word]]}`"), None
    if h.t == "?" and h.can("STAR"):
        return error("R0113", "Relay has no operator `?`", h.place(), "write `if (c) { a } else { b }`"), None
    pair = h.p + h.t
    if pair not in ("**", "<<", ">>", "//", "+=", "-=", "*=", "++", "=<", "<>") or h.at is None:
        if h.t == "=" and h.can("EQEQ"):
            if h.pk == "NAME" and h.at is not None and h.r.tokens[max(0, h.at - 1) : h.at] in ([], [";"], ["{"]):
                fix = Fix(h.begin(h.at), "let %", f"write `let %{h.p[:40]}`")
                title = "a variable is bound by `let`, and its name begins with `%`"
                return error("R0114", title, h.r.place(h.at), fix=fix), Repair(h.i, ("LET", "LOCAL"), dropped=1)
            place = h.place()
            said = error("R0101", "`=` binds a name; `==` compares", place, fix=Fix(place, "==", "write `==`"))
            return said, Repair(h.after, ("EQEQ",))
        return None
    op = _OPERATORS.get(pair)
    what = {"=<": "`<=`", "<>": "`!=`", "++": "`+ 1`"}.get(pair, f"`a {pair[0]} b`, bound to a new name")
    span = h.r.place(h.at, h.i)
    return error("R0113", f"Relay has no operator `{pair}`", span, f"write {f'`{op}`' if op else what}"), Repair(h.after)


def arrows(h: Here) -> Answer:
    """`->`, `=>`, `=` and `:` in place of one another."""
    place = h.place()
    if h.t in ("->", "=", ":", "==") and h.can("FAT"):
        said = error("R0101", "a clause's value stands behind `=>`", place, fix=Fix(place, "=>", "write `=>`"))
        return said, Repair(h.after, ("FAT",))
    if h.t in (":", "=>") and h.can("ARROW"):
        arrow = "->" if h.r.source.text[place.start - 1 : place.start].isspace() else " ->"
        said = error("R0101", "a result's type stands behind `->`", place, fix=Fix(place, arrow, "write `->`"))
        return said, Repair(h.after, ("ARROW",))
    if h.t == "=" and h.p == ":" and h.at is not None and h.r.source.end_of(h.at) == h.r.source.start_of(h.i):
        span = h.r.place(h.at, h.i)
        said = error("R0101", "a name is bound with `=`", span, fix=Fix(span, "=", "write `=`"))
        return said, Repair(h.after, ("EQ",), dropped=1)
    return None
