"""Mistakes in definitions, blocks and branches."""

from __future__ import annotations

from relaylang.diagnostics import Fix, error
from relaylang.diagnostics.source import Span
from relaylang.diagnostics.suggest import did_you_mean
from relaylang.syntax.recovery.expected import EXPRESSION
from relaylang.syntax.recovery.language_mistakes import LOOPS, no_loop
from relaylang.syntax.recovery.rule import Answer, Here, Repair

_BINDERS = ("LET", "FREE_VAR")


def no_percent(h: Here) -> Answer:
    """A variable without its `%` where one is bound."""
    signed = h.t.rstrip("= ")
    if h.pk in _BINDERS and h.k in ("NAME", "NAMEEQ", "GLOBAL"):
        fix = Fix(h.part(h.i, 0, int(h.k == "GLOBAL")), "%", f"write `%{signed.lstrip('@')}`")
        title = "a variable's name begins with `%`"
        return error("R0114", title, h.part(h.i, 0, len(signed)), fix=fix), Repair(
            h.after, ("LOCAL", "EQ") if h.k == "NAMEEQ" else ("LOCAL",)
        )
    if h.k == "NAMEEQ" and h.p in ("", ";", "{") and h.can("LET"):
        fix = Fix(h.begin(h.i), "let %", f"write `let %{signed[:40]}`")
        title = "a variable is bound by `let`, and its name begins with `%`"
        return error("R0114", title, h.part(h.i, 0, len(signed)), fix=fix), Repair(h.after, ("LET", "LOCAL", "EQ"))
    if h.pk == "NAME" and h.at is not None and h.t in (":", ",", ")") and _in_parameters(h):
        place = h.r.place(h.at)
        said = error("R0114", "a parameter's name begins with `%`", place, fix=Fix(h.begin(h.at), "%", f"write `%{h.p}`"))
        return said, Repair(h.i, ("LOCAL",), dropped=1)
    return None


def _in_parameters(h: Here) -> bool:
    """Whether the innermost open bracket is that of a function's parameters."""
    if not h.r.open or h.r.open[-1][0] != "(":
        return False
    at = h.r.open[-1][1]
    front = h.r.tokens[at - 1] if at else ""
    return h.r.tokens[at] == "(" and (front[:1] == "@" or front in ("fn", "]", ">"))


def definition(h: Here) -> Answer:
    """Mistakes between `def` and the parameters."""
    if h.pk == "DEF" and h.k in ("NAME", "NAMEP", "LOCAL"):
        name = h.t.rstrip("(").lstrip("%")
        spot = h.part(h.i, 0, int(h.k == "LOCAL"))
        said = error(
            "R0114",
            "a function's name begins with `@`",
            h.part(h.i, 0, len(h.t.rstrip("("))),
            fix=Fix(spot, "@", f"write `@{name[:40]}`"),
        )
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
    if h.t[:1] == '"' and h.pk == "NAME" and h.p in ("include", "require", "using", "use", "load"):
        place = h.r.place(h.at or 0)
        said = error("R0101", f"a file is imported with `import`, not `{h.p}`", place, notes=[f"write `import {h.t[:80]}`"])
        return said, None
    if h.t == "=" and h.p == ")" and h.n == "{" and h.can("LBRACE"):
        place = h.place()
        said = error("R0101", "no `=` stands in front of a function's body", place, fix=Fix(place, "", "leave it out"))
        return said, Repair(h.after)
    if h.t in ("=", "=>") and h.can("LBRACE", "LET") and h.nk in _NO_TYPE:
        return _body(h, "a function's body stands in `{ }`", h.after)
    if h.t == "=" and h.can("LBRACE") and (h.pk == "NAME" or h.p in ("]", ">")) and not h.can("LBRACE", "LET"):
        said = error(
            "R0101",
            "a type's constructors stand in `{ }`, with commas between them",
            h.place(),
            notes=["for example `type List[A] { Cons(A, List[A]), Nil, }`"],
        )
        return said, None
    if h.k == "TENSOR" and h.n[:1] == "%" and h.p in ("(", ",") and h.can("PARAM"):
        span = h.r.place(h.i, h.after)
        fix = Fix(span, f"{h.n}: {h.t}", f"write `{h.n}: {h.t}`")
        return error("R0101", "a parameter's type stands behind its name", span, fix=fix), None
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


def _body(h: Here, title: str, at: int, dropped: int = 0) -> Answer:
    place = h.r.place(at)
    said = error("R0112", title, place, "`{` is missing in front of this")
    return said, Repair(at, ("LBRACE",), dropped, ("RBRACE",))


def branches(h: Here) -> Answer:
    """If without parentheses, without braces, without an else."""
    if h.pk == "ELSE" and h.t == "if":
        said = error(
            "R0112",
            "the branch behind `else` stands in `{ }`, also where it is an `if`",
            h.place(),
            "`{` is missing in front of this",
            notes=["write `else { if (c) { a } else { b } }`"],
        )
        return said, Repair(h.i, ("LBRACE",), owed=("RBRACE",))
    if h.p in ("if", "match", "match?") and h.can("LPAR") and h.k in EXPRESSION:
        what = "condition" if h.p == "if" else "value that is matched"
        said = error("R0112", f"the {what} stands in parentheses", h.place(), "`(` is missing in front of this")
        return said, Repair(h.i, ("LPAR",), owed=("RPAR",))
    if h.p in ("ref", "ref_read", "ref_write") and h.can("LPAR") and h.k in EXPRESSION:
        said = error("R0112", f"the operands of `{h.p}` stand in parentheses", h.place(), "`(` is missing in front of this")
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


def _after_condition(h: Here) -> bool:
    """Whether the `)` in front of this closes the condition of an `if`."""
    depth, at = 0, h.at or 0
    for at in range(h.at or 0, max(-1, (h.at or 0) - 200), -1):
        token = h.r.tokens[at]
        depth += (token == ")") - (token[-1:] == "(")
        if depth == 0:
            break
    return at > 0 and h.r.tokens[at - 1] == "if"


def words_of_others(h: Here) -> Answer:
    """Words that other languages have."""
    if h.t == "meta" and h.n == "[" and h.can("META"):
        behind = behind_groups(h, h.after)
        note = "metadata is referred to as `meta[relay.Constant][0]`"
        said = error("R0101", "not a reference to metadata", h.r.place(h.i, h.after), notes=[note])
        return said, Repair(behind.at, ("META",)) if behind is not None else None
    if h.t == ";" and h.pk == "LOCAL" and h.can("EQ") and not h.can("SEMI"):
        said = error("R0112", f"`let {h.p}` binds no value", h.place(), f"write `let {h.p} = value;`")
        return said, None
    if h.pk != "NAME" or h.at is None:
        if h.k == "NAME" and h.t == "in" and h.can("SEMI"):
            place = h.place()
            said = error("R0101", "`;` ends a let's value, not `in`", place, fix=Fix(place, ";", "write `;`"))
            return said, Repair(h.after, ("SEMI",))
        return None
    return _word_in_front(h, h.at)


def _word_in_front(h: Here, at: int) -> Answer:
    """The word in front of a token, where other languages have it."""
    place = h.r.place(at)
    if h.p == "return":
        end = h.r.source.start_of(h.i)
        fix = Fix(Span(h.r.source.plain, place.start, end), "", "leave it out")
        return error("R0101", "Relay has no `return`: a block's last expression is its value", place, fix=fix), Repair(h.i, (), 1)
    if h.p in ("var", "val", "const", "auto", "mut") and h.k in ("LOCAL", "PARAM", "GRAPHBIND"):
        said = error("R0101", f"a variable is bound with `let`, not `{h.p}`", place, fix=Fix(place, "let", "write `let`"))
        return said, Repair(h.i, ("LET",), 1)
    if h.p in LOOPS and h.k in EXPRESSION:
        return no_loop(h.p, place), None
    if h.p == "lambda":
        return error("R0101", "Relay has no `lambda`: a function is written `fn (%x) { ... }`", place), None
    if h.p == "meta" and h.t == "[":
        note = "metadata is referred to as `meta[relay.Constant][0]`"
        return error("R0101", "not a reference to metadata", h.r.place(at, h.i), notes=[note]), behind_groups(h)
    return None


def behind_groups(h: Here, at: int | None = None) -> Repair | None:
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


def blocks(h: Here) -> Answer:
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
            said = error(
                "R0102", "this `(` is never closed", opened, "opened here", also=[(spot, "`)` is missing in front of this")], fix=fix
            )
            r.open.pop()
            return said, Repair(h.i, ("RPAR", "LBRACE"), dropped=1)
    if h.k == "NAMEP" and h.p == "<" and h.can("NAME", "GT", "LPAR"):
        end = h.part(h.i, len(h.t) - 1, len(h.t) - 1)
        said = error(
            "R0102",
            "this `<` is never closed",
            r.place(h.at or 0),
            "opened here",
            also=[(h.part(h.i, len(h.t) - 1, len(h.t)), "`>` is missing in front of this")],
            fix=Fix(end, ">", "put `>` here"),
        )
        return said, Repair(h.after, ("NAME", "GT", "LPAR"))
    if h.k == "NAMEP" and h.p in ("[", ",") and h.at is not None and h.can("NAME", "RSQ", "LPAR") and r.open:
        end = h.part(h.i, len(h.t) - 1, len(h.t) - 1)
        if r.open[-1][0] != "[" or r.tokens[r.open[-1][1] - 1][:1] not in ("@", "f"):
            return None
        said = error(
            "R0102",
            "this `[` is never closed",
            r.bracket(r.open[-1][1]),
            "opened here",
            also=[(h.part(h.i, len(h.t) - 1, len(h.t)), "`]` is missing in front of this")],
            fix=Fix(end, "]", "put `]` here"),
        )
        r.open.pop()
        return said, Repair(h.after, ("NAME", "RSQ", "LPAR"))
    return None


def misspelt_head(h: Here) -> Answer:
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
    near = {
        "fi": "if",
        "iff": "if",
        "If": "if",
        "IF": "if",
        "unless": "if",
        "switch": "match",
        "nf": "fn",
        "fun": "fn",
        "func": "fn",
        "function": "fn",
        "Fn": "fn",
        "lambda": "fn",
    }.get(word) or did_you_mean(word, ("match",))
    h.r.first = min(h.r.first or at, max(0, at) + 1)
    if word in LOOPS:
        return no_loop(word, span), None
    if near is not None:
        return error("R0101", f"`{word}` is not a keyword", span, fix=Fix(span, near, f"did you mean `{near}`?")), None
    return None
