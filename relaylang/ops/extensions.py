"""Operators beside the language's own: from a script, or from installed packages (entry points `relaylang.ops`).

    scale = Op("my.scale", ("data",), ScaleAttrs, scaled, OpPattern.ELEMWISE, doc="data times a factor")
    register(scale, kernel=lambda attrs, data: data * attrs.factor)

From then on the reader, the printer, the checker, the interpreter, completion and `:doc` know it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ops import OPS
from relaylang.ops.record import Op
from relaylang.plugins.entrypoints import OPERATOR_GROUP, installed_names, load_installed, wrong_plugin

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

#: `kernel(attrs, *arrays)` computes a call: arrays of exactly the type that the checker gives.
Kernel = Callable[..., Any]
#: `lower(attrs, operands, types)` gives a call in other operators, or None. The last type is the result's.
Lower = Callable[..., Any]


@dataclass(frozen=True)
class Extension:
    """An operator, with its computation (`kernel`) and its form in other operators (`lower`), where it has them."""

    op: Op
    kernel: Kernel | None = None
    lower: Lower | None = None


#: The added operators by name.
EXTENSIONS: dict[str, Extension] = {}


def _problem(found: Any) -> str | None:
    if not isinstance(found, Extension) or not isinstance(found.op, Op):
        return f"is no operator, but a value of type {type(found).__name__}"
    if not isinstance(found.op.name, str) or not _NAME.fullmatch(found.op.name):
        return f"has the name {found.op.name!r}, which the language cannot write"
    if found.op.name in OPS and found.op.name not in EXTENSIONS:
        return f"has the name of the language's own {found.op.name}"
    op = found.op
    if isinstance(op.args, str) or not all(isinstance(a, str) for a in op.args):
        return f"has the arguments {op.args!r:.60}; they are a tuple of names"
    if op.attrs is not None and not (isinstance(op.attrs, type) and hasattr(op.attrs, "schema")):
        return "has attributes of a class that is not made by attrs_class"
    if not callable(op.rel):
        return f"has rel={op.rel!r:.60}, which is no function"
    for part in ("kernel", "lower"):
        made = getattr(found, part)
        if made is not None and not callable(made):
            return f"has {part}={made!r:.60}, which is no function"
    return None


def register(op: Op | Extension, kernel: Kernel | None = None, lower: Lower | None = None) -> Op:
    """Add an operator, or put another in the place of one that was added before. Returns it.

    Raises `RelayError` (R0219) for an object that is not an operator, and for a name of the language's own operators.
    """
    made = op if isinstance(op, Extension) else Extension(op, kernel, lower)
    said = _problem(made)
    if said is not None:
        name = op.name if isinstance(op, Op) else "what is registered"
        raise RelayError(error("R0219", f"{name} {said}"))
    OPS[made.op.name] = made.op
    EXTENSIONS[made.op.name] = made
    return made.op


def unregister(name: str) -> None:
    """Take an added operator away again."""
    if EXTENSIONS.pop(name, None) is not None:
        del OPS[name]


def find(name: str) -> Op | None:
    """The operator of a name, or None. An installed package that adds it is imported now.

    Raises `RelayError` (R0512) for a package's operator that cannot be loaded.
    """
    op = OPS.get(name)
    if op is not None or not name:
        return op
    found = load_installed(OPERATOR_GROUP, name)
    if found is None:
        return None
    made = Extension(found) if isinstance(found, Op) else found
    said = _problem(made)
    if said is None and made.op.name != name:
        said = f"has the name {made.op.name}"
    if said is not None:
        raise wrong_plugin(OPERATOR_GROUP, name, said)
    return register(made)


def names() -> list[str]:
    """The names of all operators, those of installed packages included. It imports no package."""
    return [*OPS, *[name for name in installed_names(OPERATOR_GROUP) if name not in OPS]]


def unknown(name: str) -> str:
    """The sentence about a name that no operator has, with the nearest one."""
    near = did_you_mean(name, names())
    return f"there is no operator {name}" + (f"; did you mean {near}?" if near else "")


__all__ = ["EXTENSIONS", "Extension", "find", "names", "register", "unknown", "unregister"]
