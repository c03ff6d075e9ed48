"""The Python reference: every public name has a page, a docstring, and a place where mkdocstrings finds it."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from functools import cache
from pathlib import Path

import pytest

from relaylang._names import NAMES
from relaylang.passes import PASSES
from relaylang.tvm import transform
from tests.shared import ROOT

pytest.importorskip("mkdocs", reason="pip install 'relaylang[docs]'")
sys.path.insert(0, str(ROOT / "scripts"))
import docs_hook
import docs_reference

PAGES = docs_reference.pages()
SHOWN = [(page, name, home) for page in PAGES.values() for name, home in docs_reference.homes(page)]


def test_every_public_name_is_in_the_reference() -> None:
    shown = {name for _, name, _ in SHOWN}
    left_out = {"ANY", "PASSES", "load_ipython_extension", "unload_ipython_extension"}
    assert {*NAMES, *PASSES, *transform.names()} - shown == left_out
    for module in ("analysis", "dataflow_pattern", "frontend", "quantize", "vm"):
        assert set(importlib.import_module(f"relaylang.{module}").__all__) <= shown, module


def test_every_name_has_a_docstring_and_a_definition() -> None:
    wrong = []
    for page, name, home in SHOWN:
        value = getattr(importlib.import_module(page.module), name)
        own = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
        file, owner = inspect.getsourcefile(value), home.rpartition(".")[2]
        if not own or file is None or owner not in _defined(file):
            wrong.append(home)
    assert wrong == []


@cache
def _defined(file: str) -> set[str]:
    """The functions and classes that stand at the top of a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_classes_with_methods_are_in_the_reference() -> None:
    assert {home for _, _, home in SHOWN} >= docs_reference.WITH_METHODS


def test_the_list_of_operators_has_all_of_them() -> None:
    listed = docs_hook.operators_page()
    for family, ops in docs_hook.FAMILIES.items():
        for op in ops:
            anchor = "op-" + op.name.replace(".", "-")
            assert f"(operators/{family}.md#{anchor}){{ #{anchor} }}" in listed
