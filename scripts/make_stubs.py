"""Writes the .pyi files of modules with lazy names, for editors and mypy: `python scripts/make_stubs.py FOLDER`.

setup.py writes them into every wheel. An editable installation has none; FOLDER `.` puts them into the checkout.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from relaylang._names import ALIASES, NAMES, OPERATORS, PACKAGES
from relaylang.tvm import transform
from relaylang.tvm.op import _ABOVE
from relaylang.tvm.op.build import dynamic, functions, spatial_axes
from relaylang.tvm.op.composed import COMPOSED
from relaylang.tvm.op.namespace import names, signatures

HEAD = '"""Made by scripts/make_stubs.py from the operators\' records and TVM\'s signatures."""\n\n# ruff: noqa\n\n'
KINDS = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "Ints": "Sequence[int]",
    "NestedInts": "Sequence[Sequence[int]]",
    "Floats": "Sequence[float]",
}
#: Functions whose attributes decide whether the result is one value or several.
EITHER = {"topk", "vision.non_max_suppression"}
#: Aliases that are packages, and their modules.
BELOW = {
    "relaylang.op": ("annotation", "contrib", "image", "nn", "random", "vision", "vm"),
    "relaylang.qnn": ("op", "transform"),
}
MODULES = {
    "op/__init__": "",
    "op/nn": "nn.",
    "op/image": "image.",
    "op/vision": "vision.",
    "op/random": "random.",
    "op/annotation": "annotation.",
    "op/vm": "op.vm.",
    "qnn/op": "qnn.op.",
}


def annotation(path: str, parameter: inspect.Parameter) -> str:
    if path in COMPOSED:
        return {int: "int", float: "float", bool: "bool", str: "str"}.get(type(parameter.default), "Any")
    field = functions()[path].attribute(parameter.name) if path in functions() else None
    if field is None:
        return "Argument | None" if parameter.default is None else "Argument"
    text = KINDS.get(field.kind, "Any")
    if text == "bool" and type(parameter.default) is int:
        text = "bool | int"
    if spatial_axes(path)[0] and field.kind == "Ints":
        text = "int | " + text
    elif field.kind == "Ints":
        text += " | int"
    form = dynamic(path)
    if form is not None and parameter.name in form[1]:
        text += " | Expr"
    nothing = field.optional or parameter.default is None
    return text if text == "Any" or not nothing else f"{text} | None"


def result(path: str) -> str:
    if path in COMPOSED:
        said = inspect.signature(COMPOSED[path]).return_annotation
        return said if isinstance(said, str) and said in ("Call", "TupleWrapper", "Tuple", "Constant") else "Any"
    op = functions()[path].op
    if path in EITHER:
        return "TupleWrapper | Any"
    return "TupleWrapper" if op is not None and op.results else "Call"


def function(path: str) -> str:
    parts = []
    for p in signatures()[path].parameters.values():
        default = "" if p.default is p.empty else f" = {p.default!r}"
        parts.append(f"{p.name}: {annotation(path, p)}{default}")
    name = path.rsplit(".", 1)[-1]
    line = f"def {name}({', '.join(parts)}) -> {result(path)}: ..."
    if len(line) <= 120:
        return line
    return f"def {name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {result(path)}: ..."


def module(prefix: str) -> str:
    functions = [function(prefix + name) for name in names(prefix)]
    body = "\n".join(functions)
    ir = [n for n in ("Call", "Constant", "Expr", "Tuple") if n in body.replace("TupleWrapper", "")]
    lines = ["from collections.abc import Sequence"] if "Sequence[" in body else []
    lines += ["from typing import Any", ""] if "Any" in body else [""] * bool(lines)
    lines += [f"from relaylang.ir import {', '.join(ir)}"] if ir else []
    lines += [
        "from relaylang.tvm.op.build import Argument, TupleWrapper"
        if "TupleWrapper" in body
        else "from relaylang.tvm.op.build import Argument"
    ]
    if prefix == "qnn.op.":
        own = ("RequantizeConfig", "current_requantize_config", "requantize_config")
        lines += [f"from relaylang.passes.quantize.requantize_config import {name} as {name}" for name in own]
        rules = ("register_qnn_canonicalize", "register_qnn_legalize")
        lines += [f"from relaylang.passes.quantize.legalizations import {name} as {name}" for name in rules]
    if not prefix:
        lines[-1:] = [
            *(f"from relaylang.tvm.op import {name} as {name}" for name in BELOW["relaylang.op"]),
            "from relaylang.tvm.op.build import Argument",
            "from relaylang.tvm.op.build import TupleWrapper as TupleWrapper",
            "from relaylang.ops import get as get",
            "from relaylang.ops.extensions import register as register",
            *(f"from relaylang.tvm.transform import {name} as {name}" for name in _ABOVE),
        ]
    return HEAD + "\n".join(lines) + "\n\n" + body + "\n"


def top() -> str:
    lines = []
    for package, where in sorted(PACKAGES.items(), key=lambda item: item[1]):
        parent, own = where.rsplit(".", 1)
        lines.append(f"from {parent} import {own} as {package}")
    own = NAMES | dict.fromkeys(names(""), OPERATORS)
    for name, where in sorted(own.items(), key=lambda item: (item[1], item[0])):
        lines.append(f"from {where} import {name} as {name}")
    return HEAD + "\n".join(lines) + "\n\n__version__: str\n"


def names_of(where: str) -> list[str]:
    """The public names of a module: those of `__all__`, or else the functions and classes that it defines."""
    module = importlib.import_module(where)
    given = getattr(module, "__all__", None)
    return sorted(given or (n for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", "") == where))


def reexport(where: str, purpose: str, chosen: str = "") -> str:
    """A stub with the names of another module, those that match a pattern."""
    lines = [f"from {where} import {name} as {name}" for name in names_of(where) if re.match(chosen, name)]
    return f'"""{purpose}, made by scripts/make_stubs.py."""\n\n# ruff: noqa\n\n' + "\n".join(lines) + "\n"


def aliases() -> Iterator[tuple[str, str]]:
    """The stubs of modules with two names: that of `relaylang.op.nn` takes all names of `relaylang.tvm.op.nn`."""
    for alias, target in ALIASES.items():
        place = alias.replace(".", "/")
        if alias not in BELOW:
            yield f"{place}.pyi", reexport(target, f"The names of `{target}`")
            continue
        for name in ("__init__", *BELOW[alias]):
            where = target if name == "__init__" else f"{target}.{name}"
            text = f'"""The names of `{where}`, made by scripts/make_stubs.py."""\n\n# ruff: noqa\n\nfrom {where} import *\n'
            yield f"{place}/{name}.pyi", text


def passes() -> str:
    """The names of `relaylang.transform`."""
    homes = sorted(transform.names().items(), key=lambda item: (item[1], item[0]))
    return HEAD + "\n".join(f"from {home} import {name} as {name}" for name, home in homes) + "\n"


def stubs() -> dict[str, str]:
    """Every stub's text, by its path below the folder of packages."""
    qnn = [f"from relaylang.tvm.qnn import {name} as {name}" for name in BELOW["relaylang.qnn"]]
    return {
        "relaylang/__init__.pyi": top(),
        "relaylang/tvm/transform.pyi": passes(),
        **{f"relaylang/tvm/{name}.pyi": module(prefix) for name, prefix in MODULES.items()},
        "relaylang/tvm/qnn/__init__.pyi": HEAD + "\n".join([*qnn, "from relaylang.tvm.qnn.op import *", ""]),
        **dict(aliases()),
    }


def write(folder: Path) -> None:
    """Write every stub below a folder."""
    for name, text in stubs().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
