"""Mistakes in arguments: lists, names of arguments, and operators without parentheses."""

from __future__ import annotations

from relaylang.diagnostics import Fix, error
from relaylang.diagnostics.source import Span
from relaylang.ops import OPS
from relaylang.syntax.recovery.rule import OPERAND_ENDS, Answer, Here, Repair


def list_as_value(h: Here) -> Answer:
    """`concatenate([%x, %y])` means a tuple; `reshape(%x, [3, 2])` an attribute."""
    if h.t != "[" or not h.can("LOCAL") or h.can("LSQ"):
        return None
    r = h.r
    close, depth, values = h.i, 0, False
    while r.tokens[close] not in ("", "{", "}", ";"):
        token = r.tokens[close]
        depth += (token == "[") - (token == "]")
        values = values or token[0] in "%@"
        if not depth:
            break
        close += 1
    if r.tokens[close] != "]":
        return None
    span = r.place(h.i, close)
    if values:
        inner = r.source.text[r.source.end_of(h.i) : r.source.start_of(close)].strip()
        tuple_ = f"({inner})" if "," in inner else f"({inner},)"
        fix = Fix(span, tuple_, f"write `{tuple_[:60]}`")
        return error("R0101", "a tuple of values is written with `( )`", span, fix=fix), Repair(close + 1, ("LOCAL",))
    if not r.open or r.open[-1][0] != "(":
        return None
    note = "attributes stand behind all arguments, with their names, such as `newshape=[3, 2]`"
    return error("R0101", "a list is the value of an attribute, and no argument", span, notes=[note]), None


def value_of_attribute(h: Here) -> Answer:
    """`nn.conv2d(data=%x)`, `nn.softmax(%x, axis=%n)`."""
    if h.k not in ("LOCAL", "GLOBAL", "PARAM") or h.can("LOCAL"):
        return None
    r = h.r
    brackets = [(sign, at) for sign, at, _ in r.open]
    at = h.at
    while brackets and brackets[-1][0] == "[":  # a list, or a list of lists
        at = brackets.pop()[1] - 1
    if at is None or not (r.kind(at) == "NAMEEQ" or (r.tokens[at] == "=" and r.kind(at - 1) == "NAME")):
        return None
    at -= r.tokens[at] == "="
    name = r.tokens[at].rstrip("= \t")
    called = r.tokens[brackets[-1][1]].rstrip("(") if brackets else ""
    dynamic = OPS.get(f"dyn.{called}")
    if dynamic is not None and name in dynamic.args:
        notes = [f"`{dynamic.name}({', '.join(dynamic.args)})` takes it as an argument, a tensor that the program computes"]
    elif h.at == at:
        notes = [
            f"if `{name}` is an argument, leave out its name: arguments have places only",
            "if it is an attribute, write a number, a string or a list: attributes are known before the program runs",
        ]
    else:
        notes = ["attributes are known before the program runs: write numbers or strings"]
    place = r.place(at, h.i) if h.at == at else h.place()
    return error("R0101", f"`{name}=` cannot take a variable", place, notes=notes), None


def choice_of_python(h: Here) -> Answer:
    """`%x if %c else %y`."""
    if h.t != "if" or h.pk not in OPERAND_ENDS or h.can("IF"):
        return None
    return error("R0101", "a choice is written with its condition first", h.place(), "write `if (c) { a } else { b }`"), None


def call_without_parentheses(h: Here) -> Answer:
    """`exp %x`, `not %c`."""
    if h.pk != "NAME" or h.at is None or h.k not in ("LOCAL", "NUMBER") or h.can(h.k):
        return None
    name = {"not": "logical_not"}.get(h.p, h.p)
    if name not in OPS:
        return None
    plain = h.r.source.plain
    span = Span(plain, h.r.source.start_of(h.at), h.r.source.end_of(h.i))
    fix = Fix(span, f"{name}({h.t})", f"write `{name}({h.t[:40]})`")
    if name != h.p:
        return error("R0113", f"Relay has no operator `{h.p}`", h.r.place(h.at), fix=fix), Repair(h.after, ("LOCAL",), 1)
    return error("R0112", "the arguments of a call stand in parentheses", span, fix=fix), Repair(h.after, ("LOCAL",), 1)


def literal_as_pattern(h: Here) -> Answer:
    """`match (%n) { 0 => ... }`, `Some(1) => ...`."""
    if h.k not in ("NUMBER", "STRING", "MINUS") or h.can(h.k) or not h.can("LOCAL") or not h.can("NAMEP"):
        return None
    last = h.after if h.k == "MINUS" and h.nk == "NUMBER" else h.i
    note = "`match` takes apart values of a type with constructors; `if (%x == 0) { a } else { b }` compares numbers"
    said = error("R0101", "a pattern is a constructor, a variable or `_`, not a literal", h.r.place(h.i, last), notes=[note])
    return said, Repair(h.r.next(last), ("LOCAL",))


__all__ = ["call_without_parentheses", "choice_of_python", "list_as_value", "literal_as_pattern", "value_of_attribute"]
