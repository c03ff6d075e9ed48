"""A session as a text that can be loaded again: its definitions, and its variables as lets with their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.interpreter.values import ConstructorValue
from relaylang.ir import Constant, IRModule, Var
from relaylang.syntax import astext
from relaylang.syntax.metadata_writer import save_metadata


def session_text(module: IRModule, values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The text, and the names of the variables whose values no text can hold (functions, references)."""
    meta: dict[str, list[Any]] = {}
    lets: list[str] = []
    left_out: list[str] = []
    text = astext(module, meta=meta)
    last = ""
    for name, value in values.items():
        says = value_text(value, meta)
        if says is None:
            left_out.append(name)
        else:
            last = f"%{name}" if name.isdigit() else astext(Var(name), header=False).splitlines()[-1]
            lets.append(f"{'' if name.isdigit() else 'let '}{last} = {says};")
    text = text.rstrip("\n") + "\n" + "".join(line + "\n" for line in [*lets, last] if line)
    if meta:
        text += "\n#[metadata]\n" + save_metadata(meta, typed=False).rstrip("\n") + "\n"
    return text, left_out


def value_text(value: Any, meta: dict[str, list[Any]]) -> str | None:
    """The expression that gives a value; None for functions, references, and what holds them.

    Arrays that have no literal are put into `meta`. No recursion on depth.
    """
    out: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, (np.ndarray, np.generic)):
            out.append(_constant(Constant(np.asarray(item)), meta))
        elif isinstance(item, (tuple, ConstructorValue)):
            fields = item if isinstance(item, tuple) else item.fields
            head = "" if isinstance(item, tuple) else item.constructor.name_hint
            if head and not fields:
                out.append(head)
                continue
            stack.append(",)" if not head and len(fields) == 1 else ")")
            for i, f in enumerate(reversed(fields)):
                stack += [f] if i == 0 else [", ", f]
            out.append(f"{head}(")
        else:
            return None
    return "".join(out)


def _constant(constant: Constant, meta: dict[str, list[Any]]) -> str:
    own: dict[str, list[Any]] = {}
    text = astext(constant, meta=own, header=False, show_types=False).strip()
    for key, items in own.items():
        known = meta.setdefault(key, [])
        text = f"meta[{key}][{len(known)}]"
        known.extend(items)
    return text
