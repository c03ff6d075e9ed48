from __future__ import annotations

import pytest

from relaylang.ir import IRModule, PatternConstructor, PatternWildcard
from relaylang.ir.expr import Clause, const
from relaylang.syntax import parse
from relaylang.typing import infer
from relaylang.typing.exhaustive import missing_value

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
    missing = missing_value(
        [Clause(PatternConstructor(nil), const(1)), Clause(pattern, const(1))], module.type_definitions
    )
    assert missing == "Cons(_, Nil)"
