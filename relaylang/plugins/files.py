"""Loads passes and pattern tables from Python files and installed packages.

A package names its additions in its entry points:

    [project.entry-points."relaylang.passes"]
    MyPass = "my_package.passes:MyPass"          # a pass, or a function that makes one

    [project.entry-points."relaylang.pattern_tables"]
    my-npu = "my_package.table:pattern_table"    # a function that returns the table's rows

Operators, backends and code generators: `relaylang.ops.extensions`, `relaylang.backends`, `relaylang.runtime.external`.

A file whose name ends in `.kernel` is a text of operators (`relaylang.kernels.templates`); it has no code of Python.

`relay opt --load FILE` adds every pass of the file, and every class of `module_pass` or `function_pass`, by its name. It
also adds every `DFPatternCallback`, and every registered function (`register_legalize`, `register_alter_op_layout`, ...).
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ops.extensions import EXTENSIONS, register_text
from relaylang.partition.support import OP_SUPPORT
from relaylang.partition.tables import PATTERN_TABLES
from relaylang.passes.layout.registry import registrations
from relaylang.passes.manager import Pass, place_in_file, raised_in
from relaylang.patterns import DFPatternCallback, callback_pass
from relaylang.plugins.entrypoints import PASS_GROUP, installed_names, load_installed, wrong_plugin
from relaylang.runtime.external import CODEGENS
from relaylang.runtime.trust import check_trusted

#: The ending of files with operators as texts.
TEXT = ".kernel"


class Passes(Mapping[str, Any]):
    """Passes by name: of the language, of files, and of installed packages.

    The first use of a name imports the package. Raises `RelayError` if that fails.
    """

    def __init__(self, own: Mapping[str, Any], files: Sequence[str] = ()) -> None:
        self.own = own
        #: Those of files, and those of packages that somebody asked for.
        self.known: dict[str, Any] = {}
        for path in files:
            self.known.update({name: as_maker(value) for name, value in load_file(path).items()})

    def __getitem__(self, name: str) -> Any:
        if name not in self.known:
            if name in self.own:
                return self.own[name]
            value = load_installed(PASS_GROUP, name)
            if value is None:
                raise KeyError(name)
            if not callable(value) and not isinstance(value, Pass):
                raise wrong_plugin(PASS_GROUP, name, f"is no pass, but a value of type {type(value).__name__}")
            self.known[name] = as_maker(value)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.own, *self.known, *installed_names(PASS_GROUP)]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def as_maker(value: Any) -> Any:
    """What makes a pass: a class of callbacks as a function of its options; others as they are."""
    if inspect.isclass(value) and issubclass(value, DFPatternCallback):
        callback_class: type[DFPatternCallback] = value
        return lambda *args, **options: callback_pass(callback_class(*args, **options))
    return value


def load_file(path: str) -> dict[str, Any]:
    """The passes of a Python file by name. Raises `RelayError` with the place of a failure in it."""
    check_trusted(f"--load {path}")
    if Path(path).suffix == TEXT:
        register_text(Path(path))
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RelayError(error("R0001", f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}")) from None
    name = "relay_passes_" + "".join(c if c.isalnum() else "_" for c in Path(path).stem)
    module = types.ModuleType(name)
    module.__file__ = str(Path(path))
    sys.modules[name] = module
    before = _registered()
    try:
        exec(compile(text, str(Path(path)), "exec"), module.__dict__)
    except SyntaxError as problem:
        label = place_in_file(str(Path(path)), problem.lineno or 1)
        said = f"{path} is no Python: {problem.msg}"
        raise RelayError(Diagnostic("R0512", said, (label,) if label else ())) from None
    except RelayError:
        raise
    except (Exception, SystemExit) as problem:
        raise RelayError(raised_in(path, problem, "the file")) from problem
    passes = {n: v for n, v in vars(module).items() if not n.startswith("_") and _adds(v, name)}
    if not passes and _registered() == before:
        raise RelayError(
            error(
                "R0512",
                f"{path} has no passes",
                notes=[
                    "passes are made by @function_pass or @module_pass, or are DFPatternCallbacks",
                    "the file also registers no operator, pattern table, code generator, or function for AlterOpLayout or Legalize",
                ],
            )
        )
    return passes


def _registered() -> list[dict[Any, int]]:
    """The registrations apart from passes: the identities of functions and operators by their names."""
    support = {(target, op): id(check) for target, rows in OP_SUPPORT.items() for op, check in rows.items()}
    tables = [{name: id(value) for name, value in table.items()} for table in (EXTENSIONS, PATTERN_TABLES, CODEGENS)]
    return [registrations(), support, *tables]


def _adds(value: Any, module: str) -> bool:
    if isinstance(value, Pass):
        return True
    if not inspect.isclass(value) or value.__module__ != module:
        return False
    return issubclass(value, Pass) or bool(getattr(value, "is_pattern_callback", False))
