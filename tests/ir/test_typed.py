"""Types that a rewriter gives to the nodes that it makes, and the one home of that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, Constant, Function, Tuple, TupleGetItem, TupleType, Var, const, scalar_type, var
from relaylang.ir.typed import (
    forget_stale_types,
    fresh_var,
    retype,
    typed,
    typed_constant,
    typed_field,
    typed_tuple,
    typed_var,
)
from relaylang.ops import get
from relaylang.typing import check
from tests.shared import ROOT, syntax_tree

INT, FLOAT = scalar_type("int32"), scalar_type("float32")
PLACE = Span(SourceFile("t", "abc"), 0, 3)


def test_a_new_node_gets_its_type() -> None:
    node = Var("x")
    assert typed(node, INT) is node
    assert node.checked_type is INT


def test_a_type_that_is_not_known_is_left_open() -> None:
    assert typed(Var("x"), None).checked_type is None


def test_a_node_that_has_a_type_keeps_it() -> None:
    node = typed(Var("x"), INT)
    assert typed(node, FLOAT).checked_type is INT
    assert retype(node, typed(Var("y"), FLOAT)).checked_type is INT


def test_an_operators_record_takes_no_type() -> None:
    add = get("add")
    assert typed(add, INT) is add
    assert retype(add, typed(Var("x", span=PLACE), INT)) is add
    assert add.checked_type is None and add.span is None


def test_a_replacement_has_the_type_and_the_place() -> None:
    old = typed(Var("x", span=PLACE), INT)
    new = retype(Tuple([]), old)
    assert new.checked_type is INT and new.span is PLACE


def test_a_replacement_keeps_its_own_place() -> None:
    other = Span(PLACE.source, 1, 2)
    assert retype(Tuple([], other), typed(Var("x", span=PLACE), INT)).span is other


def test_variables() -> None:
    x = typed_var("x", INT, PLACE)
    assert (x.name_hint, x.type_annotation, x.checked_type, x.span) == ("x", INT, INT, PLACE)
    y = fresh_var(typed(Var("y"), FLOAT))
    assert (y.name_hint, y.type_annotation, y.checked_type) == ("y", None, FLOAT)
    assert fresh_var(x, "z").name_hint == "z"
    assert fresh_var(x) is not x


def test_a_constant() -> None:
    made = typed_constant(np.zeros((2, 3), "int8"))
    assert repr(made.checked_type) == "Tensor[(2, 3), int8]"
    assert repr(typed_constant(np.zeros(2, "uint8"), "custom[posit]8").checked_type) == "Tensor[(2), custom[posit]8]"


def test_tuples_and_their_fields() -> None:
    pair = typed_tuple([typed_var("x", INT), typed_var("y", FLOAT)])
    assert pair.checked_type == TupleType([INT, FLOAT])
    assert typed_field(pair, 1).checked_type is FLOAT
    assert typed_tuple([typed_var("x", INT), Var("y")]).checked_type is None
    assert typed_field(Var("p"), 0).checked_type is None


def test_types_above_an_open_node_are_forgotten() -> None:
    x = typed_var("x", INT)
    made = Call(get("negative"), [x])
    inner = typed(Tuple([made]), TupleType([INT]))
    outer = typed(TupleGetItem(inner, 0), INT)
    assert forget_stale_types(outer) is outer
    assert inner.checked_type is None and outer.checked_type is None and x.checked_type is INT


def test_types_with_nothing_open_below_stay() -> None:
    x = var("x", "int32")
    call = Call(get("add"), [x, const(1)])
    check(call, fragment=True)
    forget_stale_types(call)
    assert call.checked_type == INT and all(isinstance(a, (Var, Constant)) and a.checked_type for a in call.args)


@pytest.mark.parametrize("make", [lambda f: f.with_attr("Primitive", 1), lambda f: f.without_attr("Primitive")])
def test_a_function_with_other_attributes_keeps_its_type(make) -> None:  # type: ignore[no-untyped-def]
    x = var("x", "int32")
    function = Function([x], x)
    check(function)
    made = make(function)
    assert made is not function and made.checked_type is function.checked_type is not None
    assert function.attrs == {}


# --- the one home ---


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, tuples taken apart."""
    given: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        given = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        given = [node.target]
    while given:
        target = given.pop()
        yield target
        if isinstance(target, (ast.Tuple, ast.List)):
            given += target.elts


def is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def writes(tree: ast.AST) -> list[int]:
    """The lines that write a `checked_type`, but for constructors, which leave it open (None)."""
    constructed: set[int] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            for node in ast.walk(function):
                value = node.value if isinstance(node, ast.Assign) else None
                if isinstance(node, ast.Call) and node.args:
                    value = node.args[-1]
                if is_none(value):
                    constructed.add(id(node))
    lines = []
    for node in ast.walk(tree):
        named = any(isinstance(t, ast.Attribute) and t.attr == "checked_type" for t in targets(node))
        if isinstance(node, ast.Call) and len(node.args) == 3 and ast.unparse(node.func) != "getattr":
            name = node.args[1]
            named = isinstance(name, ast.Constant) and name.value == "checked_type"
        if named and id(node) not in constructed:
            lines.append(node.lineno)  # type: ignore[attr-defined]
    return lines


def sources() -> Iterator[Path]:
    for folder in ("relaylang", "interpreter", "repl"):
        yield from sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.sweep
def test_only_the_checker_and_the_home_write_types() -> None:
    home = ROOT / "relaylang" / "ir" / "typed.py"
    allowed = {home, *(ROOT / "relaylang" / "typing").glob("*.py")}
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources()
        if path not in allowed and "checked_type" in path.read_text(encoding="utf-8")
        for line in writes(syntax_tree(path))
    }
    assert found == set()
    assert writes(syntax_tree(home))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("node.checked_type = ty", [1]),
        ("a, (b.checked_type, c) = values", [1]),
        ("a = b.checked_type = ty", [1]),
        ("setattr(node, 'checked_type', ty)", [1]),
        ("def f(node):\n    node.checked_type = None", [2]),
        ("def __init__(self, ty):\n    self.checked_type = ty", [2]),
        ("def __init__(self):\n    self.checked_type = None\n    put(self, 'checked_type', None)", []),
        ("ty = node.checked_type", []),
    ],
)
def test_what_counts_as_writing(text: str, lines: list[int]) -> None:
    assert writes(ast.parse(text)) == lines
