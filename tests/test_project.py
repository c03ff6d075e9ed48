"""The project itself: packages that are listed, and imports that go one way."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from relaylang._names import SERVICES
from tests.shared import ROOT, syntax_tree

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("pip._vendor.tomli")

#: The floors of the house, lowest first; docs/architecture.md has the same table. A file imports from its own floor and
#: from lower floors. A name is a package or a module below `relaylang`; the longest that fits counts.
FLOORS = [
    {"_start", "services", "aliases"},
    {"diagnostics"},
    {"plugins"},
    {"ir"},
    {"ops"},
    {"grammar"},
    {"typing"},
    {"runtime.files", "runtime.text", "runtime.machine", "runtime.budget"},
    {"syntax"},
    {"runtime.params", "runtime.random"},
    {"stdlib"},
    {"rules"},
    {"passes"},
    {"patterns"},
    {"partition"},
    {"interpreter"},
    {"runtime"},
    {"frontends"},
    {"kernels"},
    {"backends"},
    {"quantize"},
    {"tune"},
    {"export"},
    {"plugins.files", "testing", "viz"},
    {"repl"},
    {"lsp"},
    {"cli"},
    {"tvm"},
]

#: Packages of others that an extra brings, or that take long to import. They may be imported inside functions.
OPTIONAL = {
    "distributed",
    "paddle",
    "ethosu",
    "tosa_reference_model",
    "safetensors",
    "flatbuffers",
    "google",
    "importlib",
    "lark",
    "ml_dtypes",
    "filecheck",
    "onnx",
    "tflite",
    "tomli",
    "tomllib",
    "torch",
    "xgboost",
}

#: The public face: it names modules of every floor, and imports none before somebody uses it.
FACE = ("__init__", "__main__", "_names")

#: The lazy imports of our own: where and what, and why.
LAZY = {
    ("__init__", "importlib.metadata"): "the version is rarely asked for",
    ("cli.arguments", "relaylang.plugins.files"): "few calls load files of their own",
    ("cli.arguments", "relaylang.repl.session"): "relay check gives nothing values",
    ("cli.check", "relaylang.cli.linting"): "few calls ask for lints, which take a tenth of relay check",
    ("backends.cpu", "relaylang.backends.aot.linked"): "few programs have loops",
    ("cli.command", "relaylang.cli.common"): "an error's output needs more than a correct call of --help",
    ("cli.common", "relaylang.repl.notebook"): "few calls write a program to a terminal",
    ("cli.compiled", "relaylang.backends.ethosu.tflite"): "few calls run a file of Vela",
    ("cli.compiled", "relaylang.cli.comparing"): "few calls compare with a source",
    ("cli.models", "relaylang.frontends.formats"): "most calls read text, not a network",
    ("cli.program", "relaylang.runtime.params"): "few texts leave their constants out",
    ("cli.reporting", "relaylang.diagnostics.export"): "most calls print text",
    **{
        ("cli.runtimes", f"relaylang.backends.{name}"): "a call compiles for one runtime or none"
        for name in ("vm", "aot", "bare_metal")
    },
    ("diagnostics.export", "relaylang.diagnostics.pages"): "JSON wants no titles",
    ("syntax.reader", "relaylang.syntax.recovery"): "only a wrong text is read a second time",
    ("syntax.tree", "relaylang.syntax.recovery"): "only a wrong text is read a second time",
    ("repl.session", "relaylang.repl.commands"): "relay run evaluates in a session that gets no commands",
    ("repl.tools", "relaylang.backends.cpu"): "few sessions print C",
    ("testing.pytest_plugin", "relaylang.diagnostics"): "every run of pytest loads the plugin, few use it",
    ("testing.pytest_plugin", "relaylang.runtime.files"): "every run of pytest loads the plugin, few use it",
    ("testing.pytest_plugin", "relaylang.testing.golden"): "every run of pytest loads the plugin, few use it",
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


def imports(nodes: Iterable[ast.AST], known: set[str]) -> Iterator[tuple[str, ast.stmt]]:
    """Every module that is imported; `from package import module` names the module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in known else node.module), node


def in_functions(nodes: Iterable[ast.AST]) -> set[int]:
    """The ids of the imports that stand inside functions."""
    found: set[int] = set()
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.update(id(inner) for inner in ast.walk(node) if isinstance(inner, (ast.Import, ast.ImportFrom)))
    return found


def for_types_only(nodes: Iterable[ast.AST]) -> set[int]:
    """The ids of the imports under `if TYPE_CHECKING`."""
    found: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.update(id(inner) for inner in ast.walk(node))
    return found


def named(nodes: Iterable[ast.AST], known: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """Every module whose name stands in a text, alone or in front of ":name": what `import_module` may be given.

    A text in braces counts up to the first brace, so that f"relaylang.cli.{verb}" names relaylang.cli. The names of the
    groups of entry points stand in `plugins.entrypoints` alone; `uses` leaves that module's texts out.
    """
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.split(":")[0].rstrip(".")
            if name in known and name != "relaylang":
                yield name, node


#: They read every file's syntax tree.
pytestmark = pytest.mark.sweep

ALL = dict(modules())
KNOWN = {"relaylang", *(f"relaylang.{name}" for name in ALL)}


@pytest.fixture(scope="module", autouse=True)
def _() -> Iterator[None]:
    """Give the trees back: later tests of the process would walk them in each garbage collection."""
    yield
    nodes_of.cache_clear()


@cache
def nodes_of(module: str) -> list[ast.AST]:
    """Every node of a module's syntax tree."""
    return list(ast.walk(syntax_tree(ALL[module])))


@cache
def uses(module: str, types: bool = False) -> dict[str, int]:
    """The modules of ours that a module imports or names, and the line of each; with `types`, also imports for types alone."""
    nodes = nodes_of(module)
    typing_only = set() if types else for_types_only(nodes)
    texts = named(nodes, KNOWN) if module != "plugins.entrypoints" else ()
    return {
        target.removeprefix("relaylang."): node.lineno
        for target, node in [*imports(nodes, KNOWN), *texts]
        if target.startswith("relaylang.") and id(node) not in typing_only
    }


def circles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The sets of modules that reach each other, the largest first (Tarjan's algorithm, with a stack of its own)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[set[str]] = []
    for start in graph:
        if start in number:
            continue
        work = [(start, iter(graph[start]))]
        number[start] = low[start] = len(number)
        path.append(start)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    at = path.index(node)
                    found.append(set(path[at:]))
                    del path[at:]
            elif following in graph and following not in number:
                number[following] = low[following] = len(number)
                path.append(following)
                work.append((following, iter(graph[following])))
            elif following in path:
                low[node] = min(low[node], number[following])
    return sorted((c for c in found if len(c) > 1 or any(m in graph[m] for m in c)), key=len, reverse=True)


def lines_of(graph: Mapping[str, Mapping[str, int]], most: int) -> list[list[str]]:
    """The imports in each circle of more than `most` modules."""
    large = [circle for circle in circles(graph) if len(circle) > most]
    return [[f"{m}:{graph[m][n]} names {n}" for m in sorted(c) for n in graph[m] if n in c] for c in large]


def test_every_package_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    present = {"relaylang"}
    for module, file in ALL.items():
        if file.name == "__init__.py" and module != "__init__":
            present.add(f"relaylang.{module}")
    assert listed == present


def test_every_package_folder_has_an_init_file() -> None:
    without = {str(file.parent.relative_to(ROOT)) for file in ALL.values() if not (file.parent / "__init__.py").exists()}
    assert without == set()


def test_every_module_stands_on_a_floor() -> None:
    assert [m for m in ALL if floor(m) is None and m not in FACE] == []


def test_every_floor_has_modules_and_stands_in_the_architecture() -> None:
    names = {name for row in FLOORS for name in row}
    assert {name for name in names if not any(m == name or m.startswith(name + ".") for m in ALL)} == set()
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| floor | contents |\n|---|---|\n")[2].partition("\n\n")[0]
    assert [set(re.findall(r"`([^`]+)`", row.split("|")[1])) for row in table.splitlines()] == FLOORS


def test_imports_go_down() -> None:
    floors = {module: floor(module) for module in ALL}
    upward = [
        f"{ALL[module].relative_to(ROOT)}:{line} names {target}"
        for module in ALL
        if module not in FACE
        for target, line in uses(module).items()
        if floors[target] is None or floors[target] > floors[module]
    ]
    assert upward == []


def test_no_circle_of_imports() -> None:
    """The face apart: it names every floor, and nothing below imports it."""
    assert circles({"a": "b", "b": "c", "c": "bd", "d": "", "e": "e"}) == [{"b", "c"}, {"e"}]
    graph = {module: uses(module) for module in ALL if module not in FACE}
    assert lines_of(graph, 0) == []


def test_imports_for_types_make_small_circles() -> None:
    """With imports under `if TYPE_CHECKING`, at most three modules reach each other."""
    graph = {module: uses(module, types=True) for module in ALL if module not in FACE}
    assert lines_of(graph, 3) == []


def test_one_file_registers_services() -> None:
    """`_names.SERVICES` has every service that is asked for, and no other; nobody else calls `provide`."""
    asked: set[str] = set()
    provides: set[str] = set()
    for module in ALL:
        for node in nodes_of(module):
            if isinstance(node, ast.ImportFrom) and node.module == "relaylang.services":
                provides |= {module for alias in node.names if alias.name == "provide"}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "service":
                name = node.args[0]
                if isinstance(name, ast.JoinedStr):  # f"artifact {kind}"
                    head = ast.literal_eval(name.values[0])
                    asked |= {service for service in SERVICES if service.startswith(head)}
                else:
                    asked.add(ast.literal_eval(name))
    assert provides == {"__init__"}
    assert asked == set(SERVICES)


def test_few_names_stand_at_the_top() -> None:
    top = {module for module in ALL if "." not in module and ALL[module].name != "__init__.py"}
    packages = {module.partition(".")[0] for module in ALL} - top - {"__init__"}
    assert top == {"__main__", "_names", "_start", "aliases", "services"}
    assert len(packages) <= 26, packages


def test_no_imports_inside_functions() -> None:
    hidden = [
        f"{ALL[module].relative_to(ROOT)}:{node.lineno} imports {target}"
        for module in ALL
        for inside in [in_functions(nodes_of(module))]
        for target, node in imports(nodes_of(module), KNOWN)
        if id(node) in inside and target.split(".")[0] not in OPTIONAL and (module, target) not in LAZY
    ]
    assert hidden == []


def test_every_lazy_import_of_the_list_is_there() -> None:
    present = {
        (module, target)
        for module in {module for module, _ in LAZY}
        for target, node in imports(nodes_of(module), KNOWN)
        if id(node) in in_functions(nodes_of(module))
    }
    assert set(LAZY) - present == set()


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
