"""Which files name an operator: kernels, lowerings, rules, importers and pattern tables may, few others.

A file that asks "is this a convolution" asks for a trait. A file that stands here says why it needs a name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from relaylang.ops import FAMILIES
from tests.shared import ROOT, syntax_tree

FOLDERS = ("relaylang", "interpreter", "repl")
#: Where names belong: records, rules, kernels, lowerings, importers, exporters, pattern tables, lints, TVM's own names. So do
#: the random programs of tests. The kernel language has operations of its own, with the same names.
HOMES = (
    "relaylang/ops/",
    "relaylang/rules/",
    "relaylang/frontends/",
    "relaylang/export/",
    "relaylang/partition/targets/",
    "relaylang/backends/ethosu/layers/",
    "relaylang/backends/vta/layers/",
    "relaylang/tvm/",
    "relaylang/passes/lints/",
    "interpreter/kernels/",
    "relaylang/kernels/",
    "relaylang/testing/generators/",
)
#: Why the other files name operators.
REASONS: dict[str, str] = {
    "relaylang/backends/bare_metal/cmsis_layers.py": "it takes conversions of requantised sums away",
    "relaylang/backends/cpu/schedule.py": "a result that is a view of an input needs a kernel that copies it",
    "relaylang/backends/vm/elements.py": "it computes with extents as operators do with numbers",
    "relaylang/backends/vm/scalars.py": "its rows say which operators on numbers are instructions of the machine",
    "relaylang/cli/run.py": "inputs can be filled with zeros or ones",
    "relaylang/passes/functions/flexible_shape_dispatch.py": "it writes how an input's extent is read, filled up and cut off",
    "relaylang/passes/functions/manifest_lifetimes.py": "it writes the operator that ends a value",
    "relaylang/ir/expr.py": "Python's operators on expressions ask a service for the call of an operator by its name",
    "relaylang/quantize/dynamic.py": "it writes how data get a scale at run time",
    "relaylang/quantize/equalize.py": "biases between two layers take the factors of channels",
    "relaylang/quantize/insert.py": "it writes the conversions around layers, and their biases",
    "relaylang/quantize/integer_io.py": "it takes conversions away",
    "relaylang/quantize/layers.py": "biases and paddings join other layers",
    "relaylang/syntax/spellings.py": "older texts wrote these operators otherwise; a row says how",
    "relaylang/syntax/synonyms.py": "other frameworks have other names for these operators; the reader suggests ours",
    "relaylang/tune/features.py": "the kernel language has operations of the same names",
}

NAMES = frozenset(op.name for family in FAMILIES.values() for op in family)
#: Functions whose first argument is an operator's name.
TAKE_NAMES = frozenset("_calls _is _make _operator call_of find get has_call is_call is_op make op_call supports two".split())


def files() -> Iterator[str]:
    """The files outside of `HOMES`, as paths below the tree."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(HOMES) and "/lower/" not in name:
                yield name


def words(node: ast.AST | None) -> list[str]:
    """The operators that a text constant names: the text itself, or words of a list."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return []
    found = node.value.split()
    return found if found and (len(found) == 1 or all(word in NAMES for word in found)) else []


def operators(nodes: Iterable[ast.AST | None], least: int = 1) -> list[str]:
    """The operators that constants name, where there are enough of them."""
    found = {word for node in nodes for word in words(node)} & NAMES
    return sorted(found) if len(found) >= least else []


def named(tree: ast.AST) -> set[str]:
    """The operators that code names.

    A name with a dot is an operator anywhere. A plain word is one in a collection with others, beside a `name`, and as
    an argument of some functions.
    """
    found: set[str] = set()
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            found |= {word for word in words(node) if "." in word and word in NAMES}
            found |= set(operators([node], 2))
        elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
            found |= set(operators(node.elts, 2))
        elif isinstance(node, ast.Dict):
            values = [n for v in node.values for n in (v.elts if isinstance(v, (ast.List, ast.Tuple)) else [v])]
            found |= set(operators(node.keys, 2)) | set(operators(values, 2))
        elif isinstance(node, ast.Compare) and "name" in ast.unparse(node):
            found |= set(operators([node.left, *node.comparators]))
        elif isinstance(node, ast.Call):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in TAKE_NAMES:
                found |= set(operators(node.args))
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("OPS"):
            found |= set(operators([node.slice]))
    return found


@cache
def naming() -> dict[str, set[str]]:
    """The operators that each file outside of `HOMES` names."""
    found = {name: named(syntax_tree(ROOT / name)) for name in files()}
    return {name: operators for name, operators in found.items() if operators}


@pytest.mark.sweep
def test_files_that_name_operators_have_a_reason() -> None:
    assert {name: sorted(names) for name, names in naming().items() if name not in REASONS} == {}
    assert [name for name in REASONS if name not in naming()] == []


@pytest.mark.sweep
def test_few_files_name_operators() -> None:
    assert len(REASONS) <= 16
    assert all(REASONS.values())


@pytest.mark.parametrize(
    "code, operators",
    [
        ('x = "nn.conv2d"', {"nn.conv2d"}),
        ('call.op.name == "add"', {"add"}),
        ('kind == "add"', set()),
        ('NAMES = {"add", "where"}', {"add", "where"}),
        ('WORDS = {"where": 1, "and": 2}', set()),
        ('OPS["where"]', {"where"}),
        ('is_op("max")(x)', {"max"}),
        ('"add multiply".split()', {"add", "multiply"}),
        ('print("where")', set()),
        ('"""nn.conv2d"""', set()),
    ],
)
def test_what_is_a_name(code: str, operators: set[str]) -> None:
    assert named(ast.parse(code)) == operators
