"""Mistakes in types, lists and attributes."""

from __future__ import annotations

import re

from relaylang.diagnostics import Fix, error
from relaylang.syntax.literals import is_dtype
from relaylang.syntax.recovery.block_mistakes import behind_groups
from relaylang.syntax.recovery.expected import EXPRESSION
from relaylang.syntax.recovery.rule import Answer, Here, Repair

_FORM = "a tensor's type is written `Tensor[(2, 3), float32]`, a scalar's `float32` or `Tensor[(), float32]`"


def index(h: Here) -> Answer:
    """`%t[0]` for a field of a tuple; `.5` for a number."""
    if h.k == "PROJ" and h.can("NUMBER"):
        fix = Fix(h.begin(h.i), "0", f"write `0{h.t}`")
        return error("R0101", "a number begins with a digit", h.place(), fix=fix), Repair(h.after, ("NUMBER",))
    if h.t != "[" or not h.can("PROJ") or h.at is None:
        return None
    close = h.r.next(h.after)
    is_index = h.nk == "NUMBER" and h.r.tokens[close] == "]" and h.n.isdigit()
    kind = _declared(h)
    title = "Relay has no `[...]` behind a value"
    if is_index and kind == "tuple":
        span = h.r.place(h.i, close)
        said = error("R0101", "a tuple's field is taken with `.`", span, fix=Fix(span, f".{h.n}", f"write `.{h.n}`"))
        return said, Repair(h.r.next(close), ("PROJ",))
    if is_index and kind == "tensor":
        span = h.r.place(h.at, close)
        taken = f"take({h.p}, {h.n}, axis=0)"
        note = "`strided_slice` takes a range of elements; `.0` is for fields of tuples"
        said = error("R0101", title, span, notes=[note], fix=Fix(span, taken, f"write `{taken[:60]}`"))
        return said, Repair(h.r.next(close))
    if is_index:
        span = h.r.place(h.i, close)
        notes = [f"of a tuple, `.{h.n}` takes the field", "of a tensor, `take` takes an element and `strided_slice` a range"]
        return error("R0101", title, span, notes=notes), Repair(h.r.next(close), ("PROJ",))
    note = "`take`, `strided_slice` and `split` take parts of tensors"
    return error("R0101", title, h.place(), notes=[note]), behind_groups(h)


def _declared(h: Here) -> str:
    """What the text says of the value in front of this token: "tuple", "tensor", or "" for neither."""
    r = h.r
    if h.p == ")":
        depth, at = 0, h.at or 0
        while at >= 0:
            token = r.tokens[at]
            depth += (token == ")") - (token[-1:] == "(")
            if depth == 0:
                return "tuple" if token == "(" and "," in r.tokens[at : h.at] and r.tokens[at - 1] not in ("]", ")") else ""
            at -= 1
    if h.pk != "LOCAL":
        return ""
    for at in range(h.i - 1, -1, -1):  # the nearest parameter, or variable with a type
        token = r.tokens[at]
        if token.startswith(f"{h.p}: Tensor["):
            return "tensor"
        if token == h.p and r.tokens[at + 1] == ":":
            first = r.tokens[at + 2]
            return "tuple" if first == "(" else "tensor" if is_dtype(first) or first.startswith("Tensor") else ""
    return ""


def tensor(h: Here) -> Answer:
    """Tensor types of another form: the error lies inside `Tensor[...]`, or the word is another."""
    if h.k in ("NAMEP", "NAME") and h.t.rstrip("(").lower() in ("tensor", "tensortype") and h.can("TENSOR"):
        return _tensor_answer(h, h.i)
    if h.pk == "TENSOR_WORD" and h.at is not None:
        return _tensor_answer(h, h.at, 1)
    for depth, (sign, at, height) in enumerate(reversed(h.r.open[-3:]), 1):
        front = h.r.tokens[at - 1] if at else ""
        if sign == "[" and (front.lower() == "tensor" or is_dtype(front)) and len(h.r.machine.stack) > height:
            dropped = len(h.r.machine.stack) - height + 1
            return _tensor_answer(h, at - 1, dropped, depth)
    return None


_TENSOR = re.compile(r"[Tt]ensor(?:Type)?\s*[\[(<]\s*[\[(]?([0-9?,\s]*?)[\])]?\s*[,;]?\s*\"?([a-z]+[0-9]+|bool)\"?\s*[\])>]{0,2}")


def _tensor_answer(h: Here, word: int, dropped: int = 0, brackets: int = 0) -> Answer:
    """Show the form of a tensor's type, and go on behind this one."""
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
    match = _TENSOR.fullmatch(text)
    if match is not None:
        dims = ", ".join(d.strip() for d in match[1].split(",") if d.strip())
        written = f"Tensor[({dims}), {match[2]}]"
        fix = Fix(r.place(word, end), written, f"write `{written}`")
    elif (array := re.fullmatch(r"([a-z]+[0-9]*)\s*\[([0-9?,\s]*)\]", text)) is not None:
        written = f"Tensor[({', '.join(d.strip() for d in array[2].split(',') if d.strip())}), {array[1]}]"
        fix = Fix(r.place(word, end), written, f"write `{written}`")
    span = r.place(word, end) if "\n" not in text else r.place(word)
    title = "not a tensor's type"
    if re.search(_NEGATIVE, text):
        title = "an extent cannot be negative"
        fix = Fix(span, re.sub(_NEGATIVE, r"\1?", text), "write `?` for an extent that is not known")
    elif fix is None and (shape := re.fullmatch(r"Tensor\s*\[\s*(\([^()]*\))\s*,?\s*\]", text)):
        title = "a tensor's type has an element type behind its shape"
        fix = Fix(span, f"Tensor[{shape[1]}, float32]", f"write `Tensor[{shape[1]}, float32]`, or another element type")
    said = error("R0107", title, span, notes=[_FORM], fix=fix)
    return said, Repair(max(r.next(end), h.i) if end > word or not dropped else h.i, ("TENSOR",), dropped)


#: An extent below 0, behind the sign in front of it.
_NEGATIVE = r"([(\[,]\s*)-[0-9]+"


def argument_behind_attributes(h: Here) -> Answer:
    """`conv2d(padding=[1, 1], %x)`."""
    if h.p == "," and h.can("ATTRS") and not h.can("LOCAL") and h.k in EXPRESSION and h.r.open and h.r.open[-1][0] == "(":
        said = error(
            "R0101",
            "an argument stands behind the attributes",
            h.place(),
            "not possible here",
            notes=["attributes stand behind all arguments"],
        )
        return said, None
    return None


def brackets_of_lists(h: Here) -> Answer:
    """`padding=(1, 1)`; `let (%a, %b) = ...`."""
    r, opened, dropped = h.r, h.i, 0
    if h.t in (",", ")") and r.open and r.open[-1][0] == "(" and r.kind(r.open[-1][1] - 1) in ("NAMEEQ", "EQ"):
        _, opened, height = r.open[-1]  # one value in parentheses is an extent
        dropped = len(r.machine.stack) - height
    elif h.t != "(" or h.can("LPAR"):
        return None
    close = h.i
    while r.tokens[close] not in (")", "", "{", "}", ";", "="):
        close += 1
    if opened < h.i or (h.pk in ("NAMEEQ", "EQ") and h.can("LSQ") and h.can("STRING")):
        said = error("R0101", "a list is written with `[ ]`", r.place(opened, close))
        if r.tokens[close] == ")":
            inner = r.source.text[r.source.end_of(opened) : r.source.start_of(close)]
            span = r.place(opened, close)
            said = error("R0101", "a list is written with `[ ]`", span, fix=Fix(span, f"[{inner}]", f"write `[{inner[:60]}]`"))
            if dropped:
                r.open.pop()
            return said, Repair(close + 1, ("NUMBER",), dropped)
        return said, None
    if h.pk == "LET" and r.tokens[close] == ")":
        note = "bind the tuple and take its fields: `let %t = e; add(%t.0, %t.1)`"
        return error("R0101", "`let` binds one variable", r.place(h.i, close), notes=[note]), Repair(close + 1, ("LOCAL",))
    return None
