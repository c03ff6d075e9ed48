"""A session as a text that can be loaded again: its definitions, and its variables as lets with their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.interpreter.values import Closure, ConstructorValue, RefValue
from relaylang.ir import Constant, IRModule, Var
from relaylang.syntax import astext
from relaylang.syntax.metadata_writer import save_metadata


def session_text(module: IRModule, values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The text, and the names of the variables whose values no text can hold.

    Two variables with one reference share it again if the second can name the first. Otherwise the text omits the
    second. It also omits functions that hold themselves.
    """
    meta: dict[str, list[Any]] = {}
    lets: list[str] = []
    left_out: list[str] = []
    text = astext(module, meta=meta)
    last = ""
    known = _Known(module)
    for name, value in values.items():
        says = value_text(value, meta, known)
        if says is None:
            left_out.append(name)
        else:
            last = f"%{name}" if name.isdigit() else astext(Var(name), header=False).splitlines()[-1]
            lets.append(f"{'' if name.isdigit() else 'let '}{last} = {says};")
            if isinstance(value, (RefValue, Closure)):
                known.named[id(value)] = last
    text = text.rstrip("\n") + "\n" + "".join(line + "\n" for line in [*lets, last] if line)
    if meta:
        text += "\n#[metadata]\n" + save_metadata(meta, typed=False).rstrip("\n") + "\n"
    return text, left_out


class _Known:
    """The written references and functions: by their variables, or inside other values."""

    def __init__(self, module: IRModule | None = None) -> None:
        self.module = module
        self.named: dict[int, str] = {}
        self.inside: set[int] = set()


def _fields(value: tuple | ConstructorValue) -> list[Any]:
    """The fields of a value, and the texts around them."""
    fields, head = (value, "") if isinstance(value, tuple) else (value.fields, value.constructor.name_hint)
    if head and not fields:
        return [head]
    pieces: list[Any] = [f"{head}("]
    for i, field in enumerate(fields):
        pieces += [", ", field] if i else [field]
    return [*pieces, ",)" if not head and len(fields) == 1 else ")"]


def value_text(value: Any, meta: dict[str, list[Any]], known: _Known | None = None) -> str | None:
    """The expression that gives a value; None for what no text can hold.

    Arrays that have no literal are put into `meta`. No recursion on depth.
    """
    known = known or _Known()
    out: list[str] = []
    stack: list[Any] = [value]
    met: set[int] = set()
    used: set[str] = set()  # the session's variables that stand in the text, and those that hide them in blocks
    bound: set[str] = set()
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, (np.ndarray, np.generic)):
            out.append(_constant(Constant(np.asarray(item)), meta))
        elif isinstance(item, (tuple, ConstructorValue)):
            stack += reversed(_fields(item))
        elif id(item) in known.named:
            used.add(known.named[id(item)])
            out.append(known.named[id(item)])
        elif id(item) in met or id(item) in known.inside:
            return None
        elif isinstance(item, RefValue) and item.value is not None:
            met.add(id(item))
            stack += [")", item.value]
            out.append("ref(")
        elif isinstance(item, Closure):
            pieces = _closure(item, known, bound)
            if pieces is None:
                return None
            if item.captured:
                met.add(id(item))
            stack += reversed(pieces)
        else:
            return None
    if used & bound:
        return None
    known.inside |= met
    return "".join(out)


def _closure(closure: Closure, known: _Known, bound: set[str]) -> list[Any] | None:
    """A function as pieces of text, and its captured values, which lets before it bind (`bound`).

    None for constants without a literal, and for captured variables with one name. Also None for a function of the
    module with a newer definition.
    """
    name, function = closure.code.name, closure.code.function
    if name.startswith("@"):
        module = known.module
        if module is None or name[1:] not in module or module[name[1:]] is not function:
            return None
        return [astext(module.get_global_var(name[1:]), header=False).strip()]
    own: dict[str, list[Any]] = {}
    lines = astext(function, meta=own, header=False, show_types=False).strip().split("\n")
    names = [astext(Var(v.name_hint), header=False).splitlines()[-1] for v in closure.code.captured]
    free = [line.removeprefix("free_var ").split(":")[0].rstrip(";") for line in lines if line.startswith("free_var ")]
    if own or sorted(free) != sorted(names) or len(set(names)) != len(names):
        return None
    body = "\n".join(lines[len(free) :])
    pieces: list[Any] = []
    for text, value in zip(names, closure.captured):
        if known.named.get(id(value)) != text:
            bound.add(text)
            pieces += [f"let {text} = ", value, ";\n"]
    return ["{\n", *pieces, body, "\n}"] if pieces else [body]


def _constant(constant: Constant, meta: dict[str, list[Any]]) -> str:
    own: dict[str, list[Any]] = {}
    text = astext(constant, meta=own, header=False, show_types=False).strip()
    for key, items in own.items():
        known = meta.setdefault(key, [])
        text = f"meta[{key}][{len(known)}]"
        known.extend(items)
    return text
