"""How inference is put together: small parts that get what they need, and reach into none of the others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.shared import ROOT

FILES = sorted((ROOT / "relaylang" / "typing").glob("*.py"))

#: Methods of one class, `__init__` and those that only its own methods call included.
MOST_METHODS = 20


def classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]


NAMES = {node.name for path in FILES for node in classes(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_part_inherits_from_another(path: Path) -> None:
    for node in classes(path):
        assert not {base.id for base in node.bases if isinstance(base, ast.Name)} & NAMES, node.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_class_does_everything(path: Path) -> None:
    for node in classes(path):
        methods = [m.name for m in node.body if isinstance(m, ast.FunctionDef)]
        assert len(methods) <= MOST_METHODS, node.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_private_fields_are_their_owners(path: Path) -> None:
    """`self._x` alone: what another part needs is public, or given to it."""
    found = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert found == []


def test_the_solver_knows_no_program() -> None:
    """The solver and its terms import types and types alone: no expressions are looked at, no operators."""
    source = (ROOT / "relaylang" / "typing" / "solver.py").read_text()
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert imported <= {
        "__future__",
        "collections.abc",
        "relaylang.ir.typemaps",
        "relaylang.ir.types",
        "relaylang.typing.terms",
    }
