"""The call that the cursor stands in: its callee, which argument, which attributes are there already."""

from __future__ import annotations

import re
from dataclasses import dataclass

from relaylang.ops import OPS
from relaylang.repl.opdoc import parameters

_CALLEE = re.compile(r"([@A-Za-z_][\w/.]*)\s*$")
_ATTRIBUTE = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
#: How far back the parenthesis is looked for.
_REACH = 4000


@dataclass(frozen=True)
class OpenCall:
    """`name` is the callee, `index` the number of commas in front of the cursor, `attribute` the one being written."""

    name: str
    index: int
    attribute: str | None
    given: tuple[str, ...]
    at: int


def open_call(before: str) -> OpenCall | None:
    """The innermost call whose parenthesis is open at the end of the text, None where there is none."""
    depth = 0
    commas: list[int] = []
    least = max(-1, len(before) - _REACH)
    for at in range(len(before) - 1, least, -1):
        c = before[at]
        if c in ")]}":
            depth += 1
        elif c in "([{":
            if depth:
                depth -= 1
                continue
            callee = _CALLEE.search(before[max(0, at - 200) : at]) if c == "(" else None
            if callee is not None:
                pieces = _pieces(before, at + 1, commas)
                named = [_ATTRIBUTE.match(p) for p in pieces]
                given = tuple(m[1] for m in named[:-1] if m is not None)
                return OpenCall(callee[1], len(commas), named[-1][1] if named[-1] else None, given, at)
            if c == "{":
                return None
            commas = []  # the cursor stands inside a list or a tuple, which is one argument
        elif c == ";" and not depth:
            return None
        elif c == "," and not depth:
            commas.append(at)
    return None


def _pieces(text: str, begin: int, commas: list[int]) -> list[str]:
    """The texts between the commas (which come last first)."""
    out = []
    for at in reversed(commas):
        out.append(text[begin:at])
        begin = at + 1
    return [*out, text[begin:]]


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
    out, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and not depth:
            out.append(text[begin:i].strip())
            begin = i + 1
    last = text[begin:].strip()
    return [*out, last] if last else out
