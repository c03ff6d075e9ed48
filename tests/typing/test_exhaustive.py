from __future__ import annotations

import pytest

from relaylang.ir import IRModule, PatternConstructor, PatternWildcard
from relaylang.ir.expr import Clause, const
from relaylang.syntax import parse
from relaylang.typing import infer
from relaylang.typing.exhaustive import missing_value, unreachable
from tests.growth import Run, assert_linear

TYPES = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None0, }
"""


@pytest.mark.parametrize(
    ("data", "patterns", "missing"),
    [
        ("List[int32]", ["Nil", "Cons(_, _)"], None),
        ("List[int32]", ["_"], None),
        ("List[int32]", ["Nil"], "Cons(_, _)"),
        ("List[int32]", ["Cons(_, Nil)", "Nil"], "Cons(_, Cons(_, _))"),
        ("List[int32]", ["Cons(_, Cons(_, _))", "Nil"], "Cons(_, Nil)"),
        ("(List[int32], Option[int32])", ["(Nil, _)", "(_, None0)"], "(Cons(_, _), Some(_))"),
        ("(List[int32], Option[int32])", ["(Nil, _)", "(_, None0)", "(Cons(_, _), Some(_))"], None),
        ("Option[Option[int32]]", ["Some(Some(_))", "None0"], "Some(None0)"),
        ("(int32, int32)", ["(_, _)"], None),
        ("(int32,)", ["(%x,)"], None),
    ],
)
def test_missing(data: str, patterns: list[str], missing: str | None) -> None:
    arms = " ".join(f"{p} => {{ 1 }}," for p in patterns)
    for word, wanted in (("match", missing), ("match?", None)):
        module = parse(f"{TYPES}def @main(%x: {data}) {{ {word} (%x) {{ {arms} }} }}").module
        assert isinstance(module, IRModule)
        said = infer(module)
        assert [d.title for d in said] == ([] if wanted is None else [f"the match does not cover `{wanted}`"])


def test_deep_pattern() -> None:
    module = parse(TYPES).module
    assert isinstance(module, IRModule)
    cons, nil = module.get_constructor("List", "Cons"), module.get_constructor("List", "Nil")
    pattern = PatternConstructor(nil)
    for _ in range(20_000):
        pattern = PatternConstructor(cons, [PatternWildcard(), pattern])
    missing = missing_value([Clause(pattern, const(1))], module.type_definitions)
    assert missing == "Nil"
    missing = missing_value([Clause(PatternConstructor(nil), const(1)), Clause(pattern, const(1))], module.type_definitions)
    assert missing == "Cons(_, Nil)"


def _wide(count: int, last: str) -> IRModule:
    """A match with a clause for each of many constructors."""
    kinds = ", ".join(f"C{i}(int32)" for i in range(count))
    arms = " ".join(f"C{i}(%x{i}) => {{ %x{i} }}," for i in range(count))
    text = f'#[version = "0.0.5"]\ntype T {{ {kinds} }}\ndef @main(%t: T) {{ match (%t) {{ {arms} {last} }} }}'
    module = parse(text).module
    assert isinstance(module, IRModule)
    return module


@pytest.mark.parametrize("last", ["", "_ => { 1 },"])
def test_clauses_of_many_constructors_are_checked_in_linear_time(last: str) -> None:
    def prepare(count: int) -> Run:
        module = _wide(count, last)
        clauses = module["main"].body.clauses
        assert missing_value(clauses[:-1] if not last else clauses[1:-1], module.type_definitions) is not None
        return lambda: (missing_value(clauses, module.type_definitions), unreachable(clauses, module.type_definitions))

    assert_linear(prepare)


def test_unreachable_clauses_among_many() -> None:
    module = _wide(30, "C7(_) => { 1 }, _ => { 1 }, C3(_) => { 1 }, %y => { 1 },")
    assert unreachable(module["main"].body.clauses, module.type_definitions) == [30, 31, 32, 33]
