"""Constructs of other languages: loops, arrow functions, functions inside functions, blocks by indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.diagnostics.source import Span
from relaylang.syntax.recovery.expected import CLOSES, EXPRESSION, OPENS
from relaylang.syntax.recovery.rule import OPERAND_ENDS, Answer, Here, Repair

#: The words with which loops begin.
LOOPS = frozenset(("for", "while", "loop", "foreach", "repeat", "do", "until"))
#: The kinds of definitions, and what they define.
_DEFINED = {"DEF": "functions", "TYPE": "types", "DATA": "types", "EXTERN": "types"}


def no_loop(word: str, span: Span) -> Diagnostic:
    """The error for a loop; `span` is its first word."""
    note = "`relay.loops.while_loop` of `tvm.relay` builds such a function in Python"
    return error("R0101", f"Relay has no `{word}`: a loop is a function that calls itself", span, notes=[note])


def end_of_brackets(h: Here, at: int, stops: tuple[str, ...] = ()) -> int:
    """The first token from `at` on that is one of `stops`, or closes an earlier bracket; else the text's end."""
    depth = 0
    while h.r.tokens[at]:
        token = h.r.tokens[at]
        if depth == 0 and (token in stops or token in OPENS):
            break
        depth += (token[-1] in CLOSES and (len(token) == 1 or token[-1] == "(")) - (token in OPENS)
        at += 1
    return at


def loop(h: Here) -> Answer:
    """`for (%i in 0..10) { ... }`, `for (%i = 0; ...) { ... }`, `do { ... }`: from the token that cannot follow."""
    r = h.r
    if h.t == "{" and h.pk == "NAME" and h.p in LOOPS and h.at is not None:
        body = end_of_brackets(h, h.after)
        return no_loop(h.p, r.place(h.at)), Repair(r.next(body)) if r.tokens[body] == "}" else None
    if not r.open or r.open[-1][0] != "(":
        return None
    _, at, height = r.open[-1]
    called = r.tokens[at] != "("  # the word and its parenthesis are one token
    word_at = at if called else at - 1
    word = r.tokens[word_at].rstrip("(") if word_at >= 0 else ""
    if word not in LOOPS:
        return None
    r.first = min(r.first or h.i, word_at + 1)  # the word is no unknown operator
    close = end_of_brackets(h, h.i)
    after = r.next(close)
    if r.tokens[after] == "{":
        after = r.next(end_of_brackets(h, r.next(after)))
    r.open.pop()
    dropped = len(r.machine.stack) - height + (not called)
    return no_loop(word, h.part(word_at, 0, len(word))), Repair(after, ("LOCAL",), dropped)


def _opening(tokens: Sequence[str], at: int) -> int:
    """The token that opens the parentheses which token `at` closes, or -1: also for those of a call."""
    depth = 0
    for i in range(at, -1, -1):
        depth += (tokens[i] == ")") - (tokens[i][-1:] == "(")
        if depth == 0:
            return i if tokens[i] == "(" else -1
    return -1


def arrow_function(h: Here) -> Answer:
    """`(%y: int32) => add(%y, 1)`, `(%a, %b) => { ... }`, `%y => exp(%y)`, `|%y| exp(%y)`."""
    r = h.r
    if h.t in ("=>", "->") and h.pk in OPERAND_ENDS and h.at is not None and h.can("STAR") and h.nk in EXPRESSION:
        begin = h.at
        if h.p == ")":
            begin = _opening(r.tokens, begin)
            if begin < 0:
                return None
        return _arrow_answer(h, begin, h.i), Repair(h.after, ("STAR",))
    typed = (h.t == ":" and h.pk == "LOCAL") or h.k == "PARAM"
    if not typed or not r.open or r.open[-1][0] != "(" or r.tokens[r.open[-1][1]] != "(":
        return None
    _, at, height = r.open[-1]
    if at and (r.kind(at - 1) in (*OPERAND_ENDS, "GLOBAL", "FN", "GT") or r.tokens[at - 1] in ("fn", "]", ">")):
        return None  # the parentheses of parameters, or of a call
    close = end_of_brackets(h, h.i)
    arrow = r.next(close)
    if r.tokens[close] != ")" or r.tokens[arrow] not in ("=>", "->", "{"):
        return None
    r.open.pop()
    if r.tokens[arrow] == "{":
        body = end_of_brackets(h, r.next(arrow))
        spot = h.begin(at)
        said = error("R0112", "`fn` is missing in front of a function's parameters", spot, fix=Fix(spot, "fn ", "put `fn` here"))
        return said, Repair(r.next(body), ("LOCAL",), len(r.machine.stack) - height)
    return _arrow_answer(h, at, arrow), Repair(_end_of_body(h, arrow), ("LOCAL",), len(r.machine.stack) - height)


def _end_of_body(h: Here, arrow: int) -> int:
    """The token behind the value of an arrow function."""
    at = end_of_brackets(h, h.r.next(arrow), (";", ","))
    return at


def _arrow_answer(h: Here, begin: int, arrow: int) -> Diagnostic:
    """The error for an arrow function from token `begin` on, with the function of Relay as its repair."""
    r = h.r
    r.first = min(r.first or h.i, begin + 1)  # the parameters are no unknown variables
    end = r.source.start_of(_end_of_body(h, arrow))
    text = r.source.text
    parameters = text[r.source.start_of(begin) : r.source.start_of(arrow)].strip()
    parameters = parameters if parameters.startswith("(") else f"({parameters})"
    body = text[r.source.end_of(arrow) : end].strip()
    written = f"fn {parameters} {body}" if body.startswith("{") else f"fn {parameters} {{ {body} }}"
    span = Span(r.source.plain, r.source.start_of(begin), r.source.end_of(arrow))
    stop = r.source.end_of(arrow) + len(text[r.source.end_of(arrow) : end].rstrip())
    function_span = Span(r.source.plain, span.start, stop)
    shown = written if len(written) <= 60 and "\n" not in written else f"fn {parameters[:40]} {{ ... }}"
    return error("R0101", "a function without a name begins with `fn`", span, fix=Fix(function_span, written, f"write `{shown}`"))


def definition_inside(h: Here) -> Answer:
    """A definition inside a function: `def @f(...) { ... }` where a statement begins."""
    r = h.r
    if h.k not in _DEFINED or not (h.p in ("{", ";", "}") or r.source.newline_before(h.i)) or not r.open or r.open[-1][0] != "{":
        return None
    if not (h.can("LET") or h.can("SEMI", "LET")) or r.indent(h.i) <= r.indent(r.open[-1][1], line=True):
        return None
    title = f"{_DEFINED[h.k]} are defined at the top of a text, not inside a function"
    r.places.append(h.i)
    front = () if h.can("LET") else ("SEMI",)
    if h.k == "DEF" and h.nk == "GLOBAL":
        note = f"inside, a variable holds a function: `let %{h.n[1:41]} = fn (...) {{ ... }};`"
        said = error("R0101", title, r.place(h.i, h.after), notes=[note])
        return said, Repair(r.next(h.after), (*front, "LET", "LOCAL", "EQ", "FN"), owed=("SEMI",))
    body = h.after
    while r.tokens[body] not in ("{", "}", ";", "") and not r.source.newline_before(body):
        body += 1
    if r.tokens[body] == "{":
        body = r.next(end_of_brackets(h, r.next(body)))
    return error("R0101", title, r.place(h.i, h.after)), Repair(body, front)


def colon_block(h: Here) -> Answer:
    """`def @main(%x: int32):`, `if (%c):`, `else:` with the block below, indented."""
    if h.t != ":" or (h.p not in (")", "else", "]") and h.pk not in ("NAME", "TENSOR")) or not h.can("LBRACE") or h.at is None:
        return None
    r = h.r
    place = h.place()
    title = "a block stands in `{ }`, without a `:`"
    if h.n == "{":
        return error("R0101", title, place, fix=Fix(place, "", "leave it out")), Repair(h.after)
    if not r.source.newline_before(h.after):
        return None
    text = r.source.text
    begin = text.rfind("\n", 0, place.start) + 1
    front = re.match(r"[ \t]*", text[begin:])
    margin = front[0] if front is not None else ""
    end = place.end
    for line in re.finditer(r"\n([ \t]*)([^\n]*)", text[place.end :]):
        if line[2] and len(line[1]) <= len(margin):
            break
        if line[2]:
            end = place.end + line.end()
    block = Span(r.source.plain, place.start, end)
    written = f" {{{text[place.end : end]}\n{margin}}}"
    return error("R0101", title, place, fix=Fix(block, written, "write `{ ... }`")), Repair(h.after, ("LBRACE",), owed=("RBRACE",))


__all__ = ["LOOPS", "arrow_function", "colon_block", "definition_inside", "loop", "no_loop"]
