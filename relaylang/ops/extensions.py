"""Operators beside the language's own: from a script, or from installed packages (entry points `relaylang.ops`).

    scale = Op("my.scale", ("data",), ScaleAttrs, scaled, OpPattern.ELEMWISE, doc="data times a factor")
    register(scale, kernel=lambda attrs, data: data * attrs.factor)

From then on the reader, the printer, the checker, the interpreter, completion and `:doc` know it. A kernel may also be a text
in the language of kernels (`relaylang.kernels.templates`), which compilers take, too. A text alone declares operators
(`register_text`).
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relaylang.diagnostics import RelayError, SourceFile, did_you_mean, error
from relaylang.ops import OPS
from relaylang.ops.record import Op
from relaylang.plugins.entrypoints import OPERATOR_GROUP, installed_names, load_installed, wrong_plugin
from relaylang.services import service

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

#: `kernel(attrs, *arrays)` computes a call: arrays of exactly the type that the checker gives.
Kernel = Callable[..., Any]
#: A text and where it stands in its file: the file, and the first and the last offset.
Place = tuple[SourceFile, int, int]
#: `lower(attrs, operands, types)` gives a call in other operators, or None. The last type is the result's.
Lower = Callable[..., Any]


@dataclass(frozen=True)
class Extension:
    """An operator, with its computation (`kernel`) and its form in other operators (`lower`), where it has them.

    The kernel is a function of arrays, or a text in the language of kernels, or its path. `export` has rules of
    exporters by format (`onnx`, `stablehlo`, `relax`), each as a rule of the format's table.
    """

    op: Op
    kernel: Kernel | str | Path | None = None
    lower: Lower | None = None
    export: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    #: Where a text stands; the script that makes the extension has it.
    place: Place | None = None

    def __post_init__(self) -> None:
        if isinstance(self.kernel, (str, Path)) and self.place is None:
            object.__setattr__(self, "place", _place(self.kernel))


def _place(text: str | Path) -> Place:
    """Where a text stands: in its file, or in the script that has it as a literal."""
    if isinstance(text, Path):
        try:
            read = text.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise RelayError(error("R0001", f"cannot read {text}: {getattr(problem, 'strerror', None) or problem}")) from None
        return SourceFile(str(text), read), 0, len(read)
    frame = sys._getframe(1)
    while frame is not None:
        script = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
        if text.strip() and script.count(text) == 1:
            first = script.index(text)
            return SourceFile(frame.f_code.co_filename, script), first, first + len(text)
        frame = frame.f_back  # type: ignore[assignment]
    return SourceFile("<kernel>", text), 0, len(text)


#: The added operators by name.
EXTENSIONS: dict[str, Extension] = {}


def _problem(extension: Any) -> str | None:
    if not isinstance(extension, Extension) or not isinstance(extension.op, Op):
        return f"is no operator, but a value of type {type(extension).__name__}"
    return _problem_of_record(extension.op) or _problem_of_functions(extension)


def _problem_of_record(op: Op) -> str | None:
    if not isinstance(op.name, str) or not _NAME.fullmatch(op.name):
        return f"has the name {op.name!r}, which the language cannot write"
    if op.name in OPS and op.name not in EXTENSIONS:
        return f"has the name of the language's own {op.name}"
    if isinstance(op.args, str) or not all(isinstance(a, str) for a in op.args):
        return f"has the arguments {op.args!r:.60}; they are a tuple of names"
    if op.attrs is not None and not (isinstance(op.attrs, type) and hasattr(op.attrs, "schema")):
        return "has attributes of a class that is not made by attrs_class"
    if not callable(op.rel):
        return f"has rel={op.rel!r:.60}, which is no function"
    return None


def _problem_of_functions(extension: Extension) -> str | None:
    if extension.lower is not None and not callable(extension.lower):
        return f"has lower={extension.lower!r:.60}, which is no function"
    if extension.kernel is not None and not callable(extension.kernel) and extension.place is None:
        return f"has kernel={extension.kernel!r:.60}, which is no function and no text"
    wrong = [rule for rule in extension.export.values() if not callable(rule)]
    return f"has the rule {wrong[0]!r:.60} of an exporter, which is no function" if wrong else None


def register(
    op: Op | Extension,
    kernel: Kernel | str | Path | None = None,
    lower: Lower | None = None,
    export: Mapping[str, Callable[..., Any]] = {},
) -> Op:
    """Add an operator, or put another in the place of one that was added before. Returns it.

    Raises `RelayError` (R0219) for an object that is not an operator, and for a name of the language's own operators. A text
    that is wrong, or does not fit the record, is an error R0644.
    """
    extension = op if isinstance(op, Extension) else Extension(op, kernel, lower, export)
    said = _problem(extension)
    if said is not None:
        name = op.name if isinstance(op, Op) else "what is registered"
        raise RelayError(error("R0219", f"{name} {said}"))
    if extension.place is not None:
        record, kernel = service("operator with a text")(extension.op, *extension.place)
        extension = replace(extension, op=record, kernel=kernel, place=None)
    return _add(extension)


def register_text(text: str | Path) -> list[Op]:
    """Add the operators of a text in the language of kernels, or of a file with such a text. Returns them.

    Raises `RelayError`: R0001 for a file that cannot be read, and R0644 with the place of a mistake. A name of the language's
    own operators is an error R0219.
    """
    extensions = [Extension(op, kernel) for op, kernel in service("operators of a text")(*_place(text))]
    for extension in extensions:
        said = _problem(extension)
        if said is not None:
            raise RelayError(error("R0219", f"{extension.op.name} {said}"))
    return [_add(extension) for extension in extensions]


def _add(extension: Extension) -> Op:
    OPS[extension.op.name] = extension.op
    EXTENSIONS[extension.op.name] = extension
    return extension.op


def unregister(name: str) -> None:
    """Take an added operator away again."""
    if EXTENSIONS.pop(name, None) is not None:
        del OPS[name]


def find(name: str) -> Op | None:
    """The operator of a name, or None. An installed package that adds it is imported now.

    Raises `RelayError` (R0512) for a package's operator that cannot be loaded, R0644 for a kernel's text that is wrong.
    """
    op = OPS.get(name)
    if op is not None or not name:
        return op
    plugin = load_installed(OPERATOR_GROUP, name)
    if plugin is None:
        return None
    if isinstance(plugin, (str, Path)):
        added = {op.name: op for op in register_text(plugin)}
        if name not in added:
            raise wrong_plugin(OPERATOR_GROUP, name, f"is a text with {', '.join(added)}")
        return added[name]
    extension = Extension(plugin) if isinstance(plugin, Op) else plugin
    said = _problem(extension)
    if said is None and extension.op.name != name:
        said = f"has the name {extension.op.name}"
    if said is not None:
        raise wrong_plugin(OPERATOR_GROUP, name, said)
    return register(extension)


def names() -> list[str]:
    """The names of all operators, those of installed packages included. It imports no package."""
    return [*OPS, *[name for name in installed_names(OPERATOR_GROUP) if name not in OPS]]


def unknown(name: str) -> str:
    """The sentence about a name that no operator has, with the nearest one."""
    near = did_you_mean(name, names())
    return f"there is no operator {name}" + (f"; did you mean {near}?" if near else "")


__all__ = ["EXTENSIONS", "Extension", "find", "names", "register", "register_text", "unknown", "unregister"]
