"""Mistakes that people make in Relay text, and what each of them is told.

Each rule looks at the token that cannot follow and at its neighbours. It answers with a diagnostic and the repair with which
reading goes on, or with nothing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.diagnostics.source import Span
from relaylang.diagnostics.suggest import did_you_mean
from relaylang.syntax.expected import EXPRESSION

if TYPE_CHECKING:
    from relaylang.syntax.recover import Recovery


@dataclass(frozen=True)
class Repair:
    """How reading goes on: take `dropped` tokens back, feed kinds, and go on at token `at`. `owed` is fed where it fits."""

    at: int
    feed: tuple[str, ...] = ()
    dropped: int = 0
    owed: tuple[str, ...] = ()


#: What is said, and how reading goes on: None is to skip.
Answer = tuple[Diagnostic, "Repair | None"] | None

#: Operators of other languages, by their first character or two, and Relay's.
_OPERATORS = {
    "&&": "logical_and(a, b)", "||": "logical_or(a, b)", "!": "logical_not(a)", "&": "bitwise_and(a, b)",
    "|": "bitwise_or(a, b)", "^": "bitwise_xor(a, b)", "~": "bitwise_not(a)", "**": "power(a, b)", "<<": "left_shift(a, b)",
    ">>": "right_shift(a, b)", "%": "floor_mod(a, b)", "?": "if (c) { a } else { b }",
}  # fmt: skip
#: Kinds of tokens that end an operand.
_OPERAND_ENDS = ("LOCAL", "RPAR", "RSQ", "NUMBER", "PROJ", "META", "GRAPHBIND")
_OTHERS = (
    (re.compile(r"^\s*(?:from|import)\s+tvm|@I\.ir_module|@T\.prim_func|@R\.function|^@tvm\.script", re.M),
     "this is TVMScript (Python), not Relay text",
     "Relax and TensorIR have no Relay text; `mod.astext()` of TVM up to 0.19 prints a Relay module"),
    (re.compile(r"^\s*(?:module\s*(?:attributes\b|\{|@)|func\.func\b)|\btensor<[0-9?x]*x?[a-z]+[0-9]+>", re.M),
     "this is MLIR, not Relay text", "relaylang reads what `mod.astext()` of TVM prints"),
    (re.compile(r"^\s*(?:def @?\w+\(.*\)[^(){]*:\s*$|import \w+\s*$|class \w+[:(]|from [\w.]+ import\b)", re.M),
     "this is Python, not Relay text", "a Relay function is `def @main(%x: Tensor[(1, 3), float32]) { ... }`"),
    (re.compile(r'\A\s*\{\s*"'),
     "this is JSON, not Relay text", "TVM's `save_json` writes such files; `mod.astext()` prints the text"),
    (re.compile(r"^\s*(?:graph|HloModule|ir_version:|node \{)", re.M),
     "this is another framework's text, not Relay text", "relaylang reads what `mod.astext()` of TVM prints"),
)  # fmt: skip
_FORM = "a tensor's type is written `Tensor[(2, 3), float32]`, a scalar's `float32` or `Tensor[(), float32]`"


class _Here:
    """Token `i` with its neighbours: `t`, `p` in front of it, `n` behind it, and their kinds `k`, `pk`, `nk`."""

    def __init__(self, r: Recovery, i: int, kind: str) -> None:
        self.r, self.i, self.k = r, i, kind
        self.t = r.tokens[i]
        self.at = r.before
        self.p = r.tokens[r.before] if r.before is not None else ""
        self.pk = r.kind(r.before) if r.before is not None else ""
        self.after = r.next(i)
        self.n = r.tokens[self.after]
        self.nk = r.kind(self.after)

    def can(self, *kinds: str) -> bool:
        return self.r.machine.can(*kinds)

    def part(self, i: int, start: int, end: int) -> Span:
        begin = self.r.source.start_of(i)
        return Span(self.r.source.plain, begin + start, begin + end)

    def begin(self, i: int) -> Span:
        return self.part(i, 0, 0)

    def place(self) -> Span:
        return self.r.place(self.i)


def recognise(r: Recovery, i: int, kind: str) -> Answer:
    """The mistake that makes token `i` one that cannot follow, if it is a known one."""
    here = _Here(r, i, kind)
    for rule in _RULES:
        answer = rule(here)
        if answer is not None:
            return answer
    return None


def _other_language(h: _Here) -> Answer:
    if h.r.count:
        return None
    text = h.r.source.text[:20_000]
    for pattern, title, note in _OTHERS:
        found = pattern.search(text)
        if found is not None:
            start = found.end() - len(found.group().lstrip())
            h.r.stopped = True
            end = start + len(text[start : found.end()].partition("\n")[0])
            span = Span(h.r.source.plain, start, max(start + 1, end))
            return error("R0111", title, span, notes=[note]), None
    return None


def _matmul(h: _Here) -> Answer:
    """`%x @ %y`, as Python writes it."""
    if h.t != "@" or h.pk not in _OPERAND_ENDS or h.nk not in ("LOCAL", "LPAR", "NAME", "NAMEP", "GRAPHBIND", "META"):
        return None
    repair = Repair(h.after, ("STAR",)) if h.can("STAR") else Repair(h.after)
    notes = ["a weight that is stored with its output channels first goes to `nn.dense(a, weight)`"]
    return error("R0113", "Relay has no operator `@`", h.place(), "write `nn.matmul(a, b)`", notes=notes), repair


def _string_over_lines(h: _Here) -> Answer:
    """A string whose end is missing runs to the next quotation mark, lines below."""
    for at, kind in ((h.at, h.pk), (h.i, h.k)):
        if at is not None and kind == "STRING" and "\n" in h.r.tokens[at]:
            first_line = h.r.tokens[at].partition("\n")[0]
            stop = _string_end(first_line)
            place = h.part(at, stop, stop)
            said = error(
                "R0102", "this string is never closed on its line", h.part(at, 0, 1), "opened here",
                notes=["a line end in a string is written `\\n`"], fix=Fix(place, '"', 'put `"` here'),
            )  # fmt: skip
            h.r.stopped = True
            return said, None
    return None


def _string_end(line: str) -> int:
    """Where a string that nothing ends was likely meant to end: in front of what follows a string in Relay text."""
    found = re.search(r"\s*(?:[,;)\]}]|\Z)", line[1:])
    return found.start() + 1 if found is not None else len(line)


def _no_token(h: _Here) -> Answer:
    """What is no token at all."""
    if h.k != "BAD":
        return None
    t, place = h.t, h.place()
    if t[0] == '"':
        begin = h.part(h.i, 0, 1)
        end = h.r.source.plain.line(begin.line)[begin.column - 1 :].rstrip()
        stop = _string_end(end)
        fix = Fix(h.part(h.i, stop, stop), '"', 'put `"` here')
        h.r.owed.clear()
        return error("R0102", "this string is never closed", begin, "opened here", fix=fix), None
    if t == "'":
        line = h.r.source.plain.line(place.line)[place.column - 1 :]
        found = re.match(r"'([^'\"\\\n]*)'", line)
        if found is None:
            return error("R0101", "strings stand in double quotes", place), None
        span = h.part(h.i, 0, found.end())
        at = h.i
        while h.r.source.start_of(at) < span.end and h.r.tokens[at]:
            at += 1
        fix = Fix(span, f'"{found[1]}"', f'write `"{found[1][:40]}"`')
        repair = Repair(at, ("STRING",)) if h.can("STRING") else None
        return error("R0101", "strings stand in double quotes", span, fix=fix), repair
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
    shown = t[:20] if t.isprintable() else f"U+{ord(t[0]):04X}"
    if unicodedata.category(t[0]) == "Cf":  # it cuts names in two, and what is said of the pieces helps nobody
        h.r.stopped = True
        return error("R0101", f"the invisible character {shown} has no meaning here", place, fix=Fix(place, "", "delete it")), None
    return error("R0101", f"the character `{shown}` has no meaning here", place), Repair(h.after)


def _header(h: _Here) -> Answer:
    if h.k != "HEADER":
        return None
    place = h.place()
    said = error("R0101", "a version header stands at the text's beginning only", place, fix=Fix(place, "", "leave it out"))
    return said, Repair(h.after)


def _operator(h: _Here) -> Answer:
    """Operators that Relay does not have, made of signs that it has."""
    if h.t == "?" and h.can("STAR"):
        return error("R0113", "Relay has no operator `?`", h.place(), "write `if (c) { a } else { b }`"), None
    pair = h.p + h.t
    if pair not in ("**", "<<", ">>", "//", "+=", "-=", "*=", "++", "=<", "<>") or h.at is None:
        if h.t == "=" and h.can("EQEQ"):
            place = h.place()
            said = error("R0101", "`=` binds a name; `==` compares", place, fix=Fix(place, "==", "write `==`"))
            return said, Repair(h.after, ("EQEQ",))
        return None
    op = _OPERATORS.get(pair)
    what = {"=<": "`<=`", "<>": "`!=`", "++": "`+ 1`"}.get(pair, f"`a {pair[0]} b`, bound to a new name")
    span = h.r.place(h.at, h.i)
    return error("R0113", f"Relay has no operator `{pair}`", span, f"write {f'`{op}`' if op else what}"), Repair(h.after)


def _arrows(h: _Here) -> Answer:
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


_BINDERS = ("LET", "FREE_VAR")


def _no_percent(h: _Here) -> Answer:
    """A variable without its `%` where one is bound."""
    signed = h.t.rstrip("= ")
    if h.pk in _BINDERS and h.k in ("NAME", "NAMEEQ", "GLOBAL"):
        fix = Fix(h.part(h.i, 0, int(h.k == "GLOBAL")), "%", f"write `%{signed.lstrip('@')}`")
        title = "a variable's name begins with `%`"
        return error("R0114", title, h.part(h.i, 0, len(signed)), fix=fix), Repair(
            h.after, ("LOCAL", "EQ") if h.k == "NAMEEQ" else ("LOCAL",)
        )
    if h.pk == "NAME" and h.at is not None and h.t in (":", ",", ")") and _in_parameters(h):
        place = h.r.place(h.at)
        said = error("R0114", "a parameter's name begins with `%`", place, fix=Fix(h.begin(h.at), "%", f"write `%{h.p}`"))
        return said, Repair(h.i, ("LOCAL",), dropped=1)
    return None


def _in_parameters(h: _Here) -> bool:
    """Whether the innermost open bracket is that of a function's parameters."""
    if not h.r.open or h.r.open[-1][0] != "(":
        return False
    at = h.r.open[-1][1]
    front = h.r.tokens[at - 1] if at else ""
    return h.r.tokens[at] == "(" and (front[:1] == "@" or front in ("fn", "]", ">"))


def _definition(h: _Here) -> Answer:
    """What goes wrong between `def` and the parameters."""
    if h.pk == "DEF" and h.k in ("NAME", "NAMEP", "LOCAL"):
        name = h.t.rstrip("(").lstrip("%")
        spot = h.part(h.i, 0, int(h.k == "LOCAL"))
        said = error("R0114", "a function's name begins with `@`", h.part(h.i, 0, len(h.t.rstrip("("))),
                     fix=Fix(spot, "@", f"write `@{name[:40]}`"))  # fmt: skip
        return said, Repair(h.after, ("GLOBAL", "LPAR") if h.k == "NAMEP" else ("GLOBAL",))
    if h.pk == "DEF" and h.t in ("(", "["):
        said = error("R0112", "a function's name is missing behind `def`", h.r.behind(h.at), "such as `@main`")
        return said, Repair(h.i, ("GLOBAL",))
    if h.pk == "FN" and h.k == "GLOBAL" and h.at is not None:
        place = h.r.place(h.at)
        said = error("R0101", "`fn` makes a function without a name; `def` defines one", place, fix=Fix(place, "def", "write `def`"))
        return said, Repair(h.i, ("DEF",), dropped=1) if len(h.r.machine.stack) > 1 and not h.r.open else Repair(h.after)
    if h.k == "GLOBAL" and h.pk == "NAME" and h.p in ("func", "fun", "function", "define", "proc", "fun.func", "defun"):
        place = h.r.place(h.at or 0)
        said = error("R0101", f"a function is defined with `def`, not `{h.p}`", place, fix=Fix(place, "def", "write `def`"))
        return said, Repair(h.i, ("DEF",), dropped=1)
    if h.t == "=" and h.p == ")" and h.n == "{" and h.can("LBRACE"):
        place = h.place()
        said = error("R0101", "no `=` stands in front of a function's body", place, fix=Fix(place, "", "leave it out"))
        return said, Repair(h.after)
    if h.t == "=" and h.can("LBRACE") and (h.pk == "NAME" or h.p in ("]", ">")) and not h.can("ARROW"):
        said = error("R0101", "a type's constructors stand in `{ }`, with commas between them", h.place(),
                     notes=["for example `type List[A] { Cons(A, List[A]), Nil, }`"])  # fmt: skip
        return said, None
    if h.t == "=>" and h.can("LBRACE") and h.nk in _NO_TYPE:
        return _body(h, "a function's body stands in `{ }`", h.after)
    if h.p == "->" and h.k in _NO_TYPE:
        return _body(h, "a function's body stands in `{ }`", h.i, dropped=1)
    if h.p == ")" and h.can("LBRACE", h.k) and h.can("ARROW") and h.k in EXPRESSION and not h.can("ARROW", h.k):
        return _body(h, "a function's body stands in `{ }`", h.i)
    if h.pk == "FN" and h.k in ("LOCAL", "PARAM"):
        said = error("R0112", "a function's parameters stand in parentheses", h.place(), "`(` is missing in front of this")
        if h.n == "{":
            return said, Repair(h.after, ("LPAR", "LOCAL", "RPAR"))
        return said, Repair(h.i, ("LPAR",), owed=("RPAR",))
    return None


#: What begins an expression and no type.
_NO_TYPE = ("LOCAL", "NUMBER", "GLOBAL", "PARAM", "IF", "LET", "NAMEP", "MATCH")


def _body(h: _Here, title: str, at: int, dropped: int = 0) -> Answer:
    place = h.r.place(at)
    said = error("R0112", title, place, "`{` is missing in front of this")
    return said, Repair(at, ("LBRACE",), dropped, ("RBRACE",))


def _branches(h: _Here) -> Answer:
    """If without parentheses, without braces, without an else."""
    if h.pk == "ELSE" and h.t == "if":
        said = error("R0112", "the branch behind `else` stands in `{ }`, also where it is an `if`", h.place(),
                     "`{` is missing in front of this", notes=["write `else { if (c) { a } else { b } }`"])  # fmt: skip
        return said, Repair(h.i, ("LBRACE",), owed=("RBRACE",))
    if h.p in ("if", "match", "match?") and h.can("LPAR") and h.k in EXPRESSION:
        what = "condition" if h.p == "if" else "value that is matched"
        said = error("R0112", f"the {what} stands in parentheses", h.place(), "`(` is missing in front of this")
        return said, Repair(h.i, ("LPAR",), owed=("RPAR",))
    if h.p in ("ref", "ref_read", "ref_write") and h.can("LPAR") and h.k in EXPRESSION:
        said = error("R0112", f"what `{h.p}` takes stands in parentheses", h.place(), "`(` is missing in front of this")
        return said, Repair(h.i, ("LPAR",), owed=("RPAR",))
    if h.p == "else" and h.can("LBRACE") and h.k in EXPRESSION:
        return _body(h, "a branch stands in `{ }`", h.i)
    in_case = h.at is not None and h.r.tokens[h.at - 1] == "case"
    if (h.p == ")" or in_case) and h.can("LBRACE") and not h.can("ARROW") and h.k in EXPRESSION:
        what = "a branch" if _after_condition(h) else "a clause's value"
        return _body(h, f"{what} stands in `{{ }}`", h.i)
    if h.p == "}" and h.can("ELSE") and h.t != "else" and h.at is not None:
        said = error("R0112", "an `if` without an `else` has no value", h.r.behind(h.at), "`else { ... }` is missing")
        feed = ("ELSE", "LBRACE", "LOCAL", "RBRACE")
        word = h.t.rstrip("(")
        if h.k in ("NAME", "NAMEP", "NAMEEQ") and word in ("elif", "elsif", "elseif", "esle", "els", "otherwise"):
            place = h.part(h.i, 0, len(word))
            if word.startswith("e") and "if" in word:
                note = ["write `else { if (c) { a } else { b } }`"]
                said = error("R0101", f"`{word}` is not a keyword", place, notes=note)
                return said, Repair(h.after, ("ELSE", "LBRACE", "IF", *(("LPAR",) if h.k == "NAMEP" else ())), owed=("RBRACE",))
            said = error("R0101", f"`{word}` is not a keyword", place, fix=Fix(place, "else", "did you mean `else`?"))
            return said, Repair(h.after, ("ELSE",))
        return said, Repair(h.i, feed)
    return None


def _after_condition(h: _Here) -> bool:
    """Whether the `)` in front of this closes the condition of an `if`."""
    depth, at = 0, h.at or 0
    for at in range(h.at or 0, max(-1, (h.at or 0) - 200), -1):
        token = h.r.tokens[at]
        depth += (token == ")") - (token[-1:] == "(")
        if depth == 0:
            break
    return at > 0 and h.r.tokens[at - 1] == "if"


def _words_of_others(h: _Here) -> Answer:
    """Words that other languages have."""
    if h.t == "meta" and h.n == "[" and h.can("META"):
        behind = _behind_groups(h, h.after)
        note = "metadata is referred to as `meta[relay.Constant][0]`"
        said = error("R0101", "not a reference to metadata", h.r.place(h.i, h.after), notes=[note])
        return said, Repair(behind.at, ("META",)) if behind is not None else None
    if h.pk != "NAME" or h.at is None:
        if h.k == "NAME" and h.t == "in" and h.can("SEMI"):
            place = h.place()
            said = error("R0101", "`;` ends a let's value, not `in`", place, fix=Fix(place, ";", "write `;`"))
            return said, Repair(h.after, ("SEMI",))
        return None
    place = h.r.place(h.at)
    if h.p == "return":
        end = h.r.source.start_of(h.i)
        fix = Fix(Span(h.r.source.plain, place.start, end), "", "leave it out")
        return error("R0101", "Relay has no `return`: a block's last expression is its value", place, fix=fix), Repair(h.i, (), 1)
    if h.p in ("var", "val", "const", "auto", "mut") and h.k in ("LOCAL", "PARAM", "GRAPHBIND"):
        said = error("R0101", f"a variable is bound with `let`, not `{h.p}`", place, fix=Fix(place, "let", "write `let`"))
        return said, Repair(h.i, ("LET",), 1)
    if h.p in ("for", "while", "loop") and h.k in EXPRESSION:
        said = error("R0101", f"Relay has no `{h.p}`: a loop is a function that calls itself", place)
        return said, None
    if h.p == "lambda":
        return error("R0101", "Relay has no `lambda`: a function is written `fn (%x) { ... }`", place), None
    if h.p == "meta" and h.t == "[":
        note = "metadata is referred to as `meta[relay.Constant][0]`"
        return error("R0101", "not a reference to metadata", h.r.place(h.at, h.i), notes=[note]), _behind_groups(h)
    return None


def _behind_groups(h: _Here, at: int | None = None) -> Repair | None:
    """Go on behind the `[...][...]` that begins at a token (this one), if it ends on its line."""
    at = h.i if at is None else at
    for _ in range(2):
        if h.r.tokens[at] != "[":
            break
        end = at
        while h.r.tokens[end] not in ("]", "", ";", "{", "}"):
            end += 1
            if h.r.source.newline_before(end):
                return Repair(end)
        if h.r.tokens[end] != "]":
            return Repair(end)
        at = end + 1
    return Repair(at)


def _index(h: _Here) -> Answer:
    """`%t[0]` for a field of a tuple; `.5` for a number."""
    if h.k == "PROJ" and h.can("NUMBER"):
        fix = Fix(h.begin(h.i), "0", f"write `0{h.t}`")
        return error("R0101", "a number begins with a digit", h.place(), fix=fix), Repair(h.after, ("NUMBER",))
    if h.t != "[" or not h.can("PROJ") or h.at is None:
        return None
    close = h.r.next(h.after)
    if h.nk == "NUMBER" and h.r.tokens[close] == "]" and h.n.isdigit():
        span = h.r.place(h.i, close)
        said = error("R0101", "a tuple's field is taken with `.`", span, fix=Fix(span, f".{h.n}", f"write `.{h.n}`"),
                     notes=["an element of a tensor is taken with `take` or `strided_slice`"])  # fmt: skip
        return said, Repair(h.r.next(close), ("PROJ",))
    note = "`take`, `strided_slice` and `split` take parts of tensors"
    return error("R0101", "Relay has no `[...]` behind a value", h.place(), notes=[note]), _behind_groups(h)


def _tensor(h: _Here) -> Answer:
    """Tensor types of another form: the error lies inside `Tensor[...]`, or the word is another."""
    if h.k in ("NAMEP", "NAME") and h.t.rstrip("(").lower() in ("tensor", "tensortype") and h.can("TENSOR"):
        return _tensor_answer(h, h.i)
    if h.pk == "TENSOR_WORD" and h.at is not None:
        return _tensor_answer(h, h.at, 1)
    for depth, (sign, at, height) in enumerate(reversed(h.r.open[-3:]), 1):
        front = h.r.tokens[at - 1] if at else ""
        if sign == "[" and front.lower() == "tensor" and len(h.r.machine.stack) > height:
            dropped = len(h.r.machine.stack) - height + 1
            return _tensor_answer(h, at - 1, dropped, depth)
    return None


_TENSOR = re.compile(
    r"[Tt]ensor(?:Type)?\s*[\[(<]\s*[\[(]?([0-9?,\s]*?)[\])]?\s*[,;]?\s*\"?([a-z]+[0-9]+|bool)\"?\s*[\])>]{0,2}"
)


def _tensor_answer(h: _Here, word: int, dropped: int = 0, brackets: int = 0) -> Answer:
    """Say what a tensor's type looks like, and go on behind this one."""
    r = h.r
    at = word
    inside: list[str] = []
    while r.tokens[at] and (at > word or r.tokens[at][-1] == "(" or r.tokens[r.next(at)] in ("[", "(", "<")):
        token = r.tokens[at]
        if token[-1] in "[(<":
            inside.append({"[": "]", "(": ")", "<": ">"}[token[-1]])
        elif token in ("]", ")", ">"):
            if inside and inside[-1] != token and (len(inside) == 1 or token == ")"):
                at = r.next(at - 1) - 1
                break
            if inside:
                inside.pop()
            if not inside:
                break
        elif token in ("{", "}", ";", "=", "->") or token[0] == "%":
            at = r.next(at - 1) - 1
            break
        at += 1
    end = max(word, at)
    if not r.count:
        r.first = min(r.first if r.first is not None else word, word) + 1
    if brackets:
        del r.open[len(r.open) - brackets :]
    text = r.source.text[r.source.start_of(word) : r.source.end_of(end)]
    fix = None
    found = _TENSOR.fullmatch(text)
    if found is not None:
        dims = ", ".join(d.strip() for d in found[1].split(",") if d.strip())
        written = f"Tensor[({dims}), {found[2]}]"
        fix = Fix(r.place(word, end), written, f"write `{written}`")
    span = r.place(word, end) if "\n" not in text else r.place(word)
    title = "an extent cannot be negative" if re.search(r"[(\[,]\s*-[0-9]", text) else "not a tensor's type"
    said = error("R0107", title, span, notes=[_FORM], fix=fix)
    return said, Repair(max(r.next(end), h.i) if end > word or not dropped else h.i, ("TENSOR",), dropped)


def _argument_behind_attributes(h: _Here) -> Answer:
    """`conv2d(padding=[1, 1], %x)`."""
    if h.p == "," and h.can("ATTRS") and not h.can("LOCAL") and h.k in EXPRESSION and h.r.open and h.r.open[-1][0] == "(":
        said = error("R0101", "an argument stands behind the attributes", h.place(), "not possible here",
                     notes=["attributes stand behind all arguments"])  # fmt: skip
        return said, None
    return None


def _blocks(h: _Here) -> Answer:
    """Blocks that are empty, a `;` behind a definition, a list of parameters or type parameters that is not closed."""
    if h.t == "}" and h.p == "{" and h.can("LOCAL") and h.can("LET") and h.at is not None:
        said = error("R0104", "this block is empty and has no value", h.r.place(h.at, h.i), "an expression is missing here")
        return said, Repair(h.i, ("LOCAL",))
    if h.t == ";" and h.p == "}" and h.can("DEF"):
        place = h.place()
        return error("R0101", "no `;` stands behind a definition", place, fix=Fix(place, "", "leave it out")), Repair(h.after)
    r = h.r
    if h.p == "{" and h.at is not None and len(r.open) > 1 and r.open[-2][0] == "(" and h.k in EXPRESSION:
        if r.progress(h.i, ("RPAR", "LBRACE"), 1) > 3:
            opened = r.bracket(r.open[-2][1])
            spot = r.place(h.at)
            fix = Fix(Span(r.source.plain, spot.start, spot.start), ") ", "put `)` here")
            said = error("R0102", "this `(` is never closed", opened, "opened here",
                         also=[(spot, "`)` is missing in front of this")], fix=fix)  # fmt: skip
            r.open.pop()
            return said, Repair(h.i, ("RPAR", "LBRACE"), dropped=1)
    if h.k == "NAMEP" and h.p == "<" and h.can("NAME", "GT", "LPAR"):
        end = h.part(h.i, len(h.t) - 1, len(h.t) - 1)
        said = error("R0102", "this `<` is never closed", r.place(h.at or 0), "opened here",
                     also=[(h.part(h.i, len(h.t) - 1, len(h.t)), "`>` is missing in front of this")],
                     fix=Fix(end, ">", "put `>` here"))  # fmt: skip
        return said, Repair(h.after, ("NAME", "GT", "LPAR"))
    if h.k == "NAMEP" and h.p in ("[", ",") and h.at is not None and h.can("NAME", "RSQ", "LPAR") and r.open:
        end = h.part(h.i, len(h.t) - 1, len(h.t) - 1)
        if r.open[-1][0] != "[" or r.tokens[r.open[-1][1] - 1][:1] not in ("@", "f"):
            return None
        said = error("R0102", "this `[` is never closed", r.bracket(r.open[-1][1]), "opened here",
                     also=[(h.part(h.i, len(h.t) - 1, len(h.t)), "`]` is missing in front of this")],
                     fix=Fix(end, "]", "put `]` here"))  # fmt: skip
        r.open.pop()
        return said, Repair(h.after, ("NAME", "RSQ", "LPAR"))
    return None


def _misspelt_head(h: _Here) -> Answer:
    """A call with a block behind it: `fi (c) { ... }`, `while (c) { ... }`."""
    if h.t != "{" or h.p != ")" or h.at is None:
        return None
    depth, at = 0, h.at
    for at in range(h.at, max(-1, h.at - 200), -1):
        token = h.r.tokens[at]
        depth += (token == ")") - (token[-1:] == "(")
        if depth == 0:
            break
    if h.r.tokens[at] == "(":
        at -= 1
    word = h.r.tokens[at].rstrip("(") if at >= 0 else ""
    span = h.part(max(at, 0), 0, len(word))
    near = {"fi": "if", "iff": "if", "If": "if", "IF": "if", "unless": "if", "switch": "match", "nf": "fn", "fun": "fn",
            "func": "fn", "function": "fn", "Fn": "fn", "lambda": "fn"}.get(word) or did_you_mean(word, ("match",))  # fmt: skip
    h.r.first = min(h.r.first or at, max(0, at) + 1)
    if word in ("while", "for", "loop"):
        return error("R0101", f"Relay has no `{word}`: a loop is a function that calls itself", span), None
    if near is not None:
        return error("R0101", f"`{word}` is not a keyword", span, fix=Fix(span, near, f"did you mean `{near}`?")), None
    return None


def _brackets_of_lists(h: _Here) -> Answer:
    """`padding=(1, 1)`; `let (%a, %b) = ...`."""
    if h.t != "(" or h.can("LPAR"):
        return None
    r = h.r
    close = h.i
    while r.tokens[close] not in (")", "", "{", "}", ";", "="):
        close += 1
    if h.pk in ("NAMEEQ", "EQ") and h.can("LSQ") and h.can("STRING"):
        said = error("R0101", "a list is written with `[ ]`", r.place(h.i, close))
        if r.tokens[close] == ")":
            inner = r.source.text[r.source.end_of(h.i) : r.source.start_of(close)]
            span = r.place(h.i, close)
            said = error("R0101", "a list is written with `[ ]`", span, fix=Fix(span, f"[{inner}]", f"write `[{inner[:60]}]`"))
            return said, Repair(close + 1, ("NUMBER",))
        return said, None
    if h.pk == "LET" and r.tokens[close] == ")":
        note = "bind the tuple and take its fields: `let %t = e; add(%t.0, %t.1)`"
        return error("R0101", "`let` binds one variable", r.place(h.i, close), notes=[note]), Repair(close + 1, ("LOCAL",))
    return None


_RULES = (
    _matmul,
    _other_language, _string_over_lines, _tensor, _no_token, _header, _operator, _definition, _arrows, _no_percent, _blocks,
    _misspelt_head, _branches, _words_of_others, _index, _brackets_of_lists, _argument_behind_attributes,
)  # fmt: skip
