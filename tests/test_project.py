"""The project itself: packages that are listed, and imports that go one way."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.shared import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("pip._vendor.tomli")

#: The floors of the house, lowest first (docs/architecture.md). A file imports from its own floor and from those below.
#: A row is one floor; a name is a package or a module below `relaylang`, the longest that fits counts.
FLOORS = [
    {"services", "aliases"},
    {"diagnostics"},
    {"plugins", "plugins.entrypoints"},
    {"ir"},
    {"ops"},
    {"grammar"},
    {"typing"},
    {"runtime.files", "runtime.text", "runtime.machine"},
    {"syntax"},
    {"runtime.params", "runtime.random"},
    {"stdlib"},
    {"rules"},
    {"passes"},
    {"patterns"},
    {"partition"},
    {"interpreter"},
    {"runtime"},
    {"backends"},
    {"frontends"},
    {"plugins.files", "testing", "viz"},
    {"tvm", "partition.driver"},
    {"repl"},
    {"lsp"},
    {"cli"},
]

#: Packages of others that an extra brings, or that take long to import: they may be imported where they are used.
OPTIONAL = {"ethosu", "tosa_reference_model", "safetensors", "flatbuffers", "importlib", "lark", "ml_dtypes", "filecheck"}

#: The public face: it names modules of every floor, and imports none before somebody uses it.
FACE = ("__init__", "__main__", "_names")

#: The lazy imports of our own: where and what, and why.
LAZY = {
    ("__init__", "importlib.metadata"): "the version is rarely asked for",
    ("cli.command", "relaylang.cli.common"): "an error's output needs more than a correct call of --help",
    ("diagnostics.export", "relaylang.diagnostics.pages"): "JSON wants no titles, and every verb imports the module",
    ("syntax.reader", "relaylang.syntax.recover"): "only a wrong text is read a second time",
    ("syntax.tables", "relaylang.grammar"): "the grammar is not opened where its tables lie in the cache",
    ("backends.cpu.kernel", "relaylang.backends.cpu.lower"): "the table of lowerings stands above what they build on",
    ("repl.session", "relaylang.repl.commands"): "relay run evaluates in a session that gets no commands",
    ("testing.pytest_plugin", "relaylang.diagnostics"): "every run of pytest loads the plugin, few use it",
    ("testing.pytest_plugin", "relaylang.runtime.files"): "every run of pytest loads the plugin, few use it",
    ("testing.pytest_plugin", "relaylang.testing.golden"): "every run of pytest loads the plugin, few use it",
    ("runtime.artifact", "relaylang.runtime.cpu"): "a kind of file is known by name; its loader is imported for it",
    ("cli.common", "relaylang.testing.expected"): "few calls verify diagnostics, and it takes a tenth of relay check",
}

FOLDERS = {"relaylang": "", "grammar": "grammar", "interpreter": "interpreter", "repl": "repl"}


def modules() -> Iterator[tuple[str, Path]]:
    """Each module's name below `relaylang` and its file."""
    for folder, prefix in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = [*([prefix] if prefix else []), *file.relative_to(ROOT / folder).with_suffix("").parts]
            if parts[-1] == "__init__" and len(parts) > 1:
                parts.pop()
            yield ".".join(parts), file


def floor(module: str) -> int | None:
    """The number of the floor a module stands on."""
    found = None
    for number, names in enumerate(FLOORS):
        for name in names:
            if (module == name or module.startswith(name + ".")) and (found is None or len(name) > found[1]):
                found = (number, len(name))
    return found[0] if found else None


def imports(tree: ast.AST, known: set[str]) -> Iterator[tuple[str, ast.stmt]]:
    """Every module that is imported; `from package import module` names the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in known else node.module), node


def in_functions(tree: ast.AST) -> set[int]:
    """The ids of the statements that stand inside functions."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.update(id(inner) for inner in ast.walk(node) if isinstance(inner, (ast.Import, ast.ImportFrom)))
    return found


def for_types_only(tree: ast.AST) -> set[int]:
    """The ids of the imports under `if TYPE_CHECKING`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            found.update(id(inner) for inner in ast.walk(node))
    return found


def named(tree: ast.AST, known: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """Every module whose name stands in a text, alone or in front of ":name": what `import_module` may be given.

    A text in braces counts up to the first brace, so that f"relaylang.cli.{verb}" names relaylang.cli. Names of groups of
    entry points count for nothing: they are the first argument of the functions in `plugins.entrypoints`, or `GROUP`.
    """
    groups = {"relaylang.ops", "relaylang.passes", "relaylang.pattern_tables", "relaylang.backends"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.split(":")[0].rstrip(".")
            if name in known and name != "relaylang" and name not in groups:
                yield name, node


ALL = dict(modules())
KNOWN = {"relaylang", *(f"relaylang.{name}" for name in ALL)}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(ALL[module].read_text())


def test_every_package_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    present = {"relaylang"}
    for module, file in ALL.items():
        if file.name == "__init__.py" and module != "__init__":
            present.add(f"relaylang.{module}")
    assert listed == present


def test_every_package_folder_has_an_init_file() -> None:
    without = {
        str(file.parent.relative_to(ROOT)) for file in ALL.values() if not (file.parent / "__init__.py").exists()
    }
    assert without == set()


def test_every_module_stands_on_a_floor() -> None:
    assert [m for m in ALL if floor(m) is None and m not in FACE] == []


@pytest.mark.parametrize("module", sorted(ALL))
def test_imports_go_down(module: str) -> None:
    if module in FACE:
        return
    tree = tree_of(module)
    typing_only = for_types_only(tree)
    own = floor(module)
    assert own is not None
    upward = []
    for target, node in [*imports(tree, KNOWN), *named(tree, KNOWN)]:
        if target.startswith("relaylang.") and id(node) not in typing_only:
            theirs = floor(target.removeprefix("relaylang."))
            if theirs is None or theirs > own:
                upward.append(f"{ALL[module].name}:{node.lineno} names {target}")
    assert upward == []


@pytest.mark.parametrize("module", sorted(ALL))
def test_no_imports_inside_functions(module: str) -> None:
    tree = tree_of(module)
    inside = in_functions(tree)
    hidden = [
        f"{ALL[module].name}:{node.lineno} imports {target}"
        for target, node in imports(tree, KNOWN)
        if id(node) in inside and target.split(".")[0] not in OPTIONAL and (module, target) not in LAZY
    ]
    assert hidden == []


def test_files_are_short() -> None:
    long = {m: n for m, f in ALL.items() if (n := len(f.read_text().splitlines())) > 700}
    assert long == {}


def test_nothing_is_left_undone() -> None:
    words = ("TO" + "DO", "FIX" + "ME", "raise NotImplemented" + "Error")
    found = [
        f"{m}: {line.strip()}"
        for m, f in ALL.items()
        for line in f.read_text().splitlines()
        if any(w in line for w in words) and not line.lstrip().startswith("except")
    ]
    assert found == []
