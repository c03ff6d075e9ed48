"""What others add: passes and pattern tables from a Python file, or from installed packages.

A package names what it adds in its entry points:

    [project.entry-points."relaylang.passes"]
    MyPass = "my_package.passes:MyPass"          # a pass, or what makes one

    [project.entry-points."relaylang.pattern_tables"]
    my-npu = "my_package.table:pattern_table"    # a function that returns the table's rows

A file given to `relay opt --load` adds every pass, every class made by `module_pass` or `function_pass`, and every
`DFPatternCallback` that stands in it, under its own name.
"""

from __future__ import annotations

import inspect
import sys
import types
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, define_codes, error
from relaylang.passes.manager import Pass, place_in_file, raised_in

define_codes({"R0512": "a file of passes cannot be loaded"})


def installed(group: str) -> dict[str, Any]:
    """What installed packages add to a group (`relaylang.passes`, `relaylang.pattern_tables`), by name, loaded.

    Raises `RelayError` where one of them cannot be loaded.
    """
    found = {}
    for point in entry_points(group=group):
        try:
            found[point.name] = point.load()
        except Exception as problem:
            text = f"{point.name} of {group} cannot be loaded: {type(problem).__name__}: {problem}"
            raise RelayError(error("R0512", text, notes=[f"it is {point.value}"])) from problem
    return found


def load_file(path: str) -> dict[str, Any]:
    """The passes of a Python file by name. Raises `RelayError` with the place for what goes wrong in it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RelayError(error("R0001", f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}")) from None
    name = "relay_passes_" + "".join(c if c.isalnum() else "_" for c in Path(path).stem)
    module = types.ModuleType(name)
    module.__file__ = str(Path(path))
    sys.modules[name] = module
    try:
        exec(compile(text, str(Path(path)), "exec"), module.__dict__)
    except SyntaxError as problem:
        label = place_in_file(str(Path(path)), problem.lineno or 1)
        said = f"{path} is no Python: {problem.msg}"
        raise RelayError(Diagnostic("R0512", said, (label,) if label else ())) from None
    except RelayError:
        raise
    except Exception as problem:
        raise RelayError(raised_in(path, problem, "the file")) from problem
    found = {n: v for n, v in vars(module).items() if not n.startswith("_") and _adds(v, name)}
    if not found:
        raise RelayError(
            error(
                "R0512",
                f"{path} has no passes",
                notes=["a pass is what @function_pass or @module_pass makes, or a DFPatternCallback"],
            )
        )
    return found


def _adds(value: Any, module: str) -> bool:
    if isinstance(value, Pass):
        return True
    if not inspect.isclass(value) or value.__module__ != module:
        return False
    return issubclass(value, Pass) or bool(getattr(value, "is_pattern_callback", False))
