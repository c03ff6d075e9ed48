"""Writes the .pyi files of the modules whose names are found when they are first used, so that editors complete them.

python scripts/make_stubs.py          # writes them
python scripts/make_stubs.py --check  # says which are out of date
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from relaylang._names import NAMES, PACKAGES
from relaylang.tvm.op.build import SPATIAL, dynamic, functions
from relaylang.tvm.op.composed import COMPOSED
from relaylang.tvm.op.namespace import names, signatures

ROOT = Path(__file__).resolve().parent.parent
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
    field = functions()[path].attribute(parameter.name) if path in functions() else None
    if field is None or path in COMPOSED:
        plain = {int: "int", float: "float", bool: "bool", str: "str"}.get(type(parameter.default))
        return plain if plain is not None and path in COMPOSED else "Argument"
    text = KINDS.get(field.kind, "Any")
    if text == "bool" and type(parameter.default) is int:
        text = "bool | int"
    if path in SPATIAL and field.kind == "Ints":
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
    number = op.results if op is not None else 0
    return "Any" if callable(number) else "TupleWrapper" if number else "Call"


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
    lines += ["from relaylang.tvm.op.build import Argument, TupleWrapper" if "TupleWrapper" in body
              else "from relaylang.tvm.op.build import Argument"]  # fmt: skip
    if prefix == "qnn.op.":
        own = ("RequantizeConfig", "current_requantize_config", "requantize_config")
        lines += [f"from relaylang.passes.quantise.requantize_config import {name} as {name}" for name in own]
        rules = ("register_qnn_canonicalize", "register_qnn_legalize")
        lines += [f"from relaylang.passes.quantise.legalizations import {name} as {name}" for name in rules]
    if not prefix:
        below = ("annotation", "contrib", "image", "nn", "random", "vision", "vm")
        lines[-1] = (
            "".join(f"from relaylang.tvm.op import {name} as {name}\n" for name in below)
            + "from relaylang.tvm.op.build import Argument\nfrom relaylang.tvm.op.build import TupleWrapper as TupleWrapper\n"
            "from relaylang.ops import get as get"
        )
    return HEAD + "\n".join(lines) + "\n\n" + body + "\n"


def top() -> str:
    lines = []
    for package, where in sorted(PACKAGES.items(), key=lambda item: item[1]):
        parent, own = where.rsplit(".", 1)
        lines.append(f"from {parent} import {own} as {package}")
    for name, where in sorted(NAMES.items(), key=lambda item: (item[1], item[0])):
        lines.append(f"from {where} import {name} as {name}")
    return HEAD + "\n".join(lines) + "\n\n__version__: str\n"


def stubs() -> dict[Path, str]:
    """Every stub's file and text."""
    made: dict[Path, str] = {ROOT / "relaylang/__init__.pyi": top()}
    for name, prefix in MODULES.items():
        made[ROOT / f"relaylang/tvm/{name}.pyi"] = module(prefix)
    return made


def main(arguments: Any) -> int:
    made = stubs()
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text() != text]
    for path in stale:
        print(path.relative_to(ROOT), "is out of date" if "--check" in arguments else "written")
        if "--check" not in arguments:
            path.write_text(made[path])
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
