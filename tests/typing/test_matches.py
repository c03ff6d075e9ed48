"""Matches alone: patterns against types, without a program."""

from __future__ import annotations

from relaylang.ir import (
    Clause,
    Constructor,
    GlobalTypeVar,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    const,
    scalar_type,
)
from relaylang.typing.terms import POISON, Unknown, find
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")
LIST, A = GlobalTypeVar("List"), TypeVar("A")
CONS, NIL = Constructor("Cons", [A, TypeCall(LIST, [A])], LIST), Constructor("Nil", [], LIST)
H, T = Var("h"), Var("t")
SPLIT = PatternConstructor(CONS, [PatternVar(H), PatternVar(T)])


def matched(ty: Type, *patterns: Pattern, complete: bool = True) -> Parts:
    """The parts after a value of a type was matched."""
    parts = Parts(definitions={LIST: TypeData(LIST, [A], [CONS, NIL])})
    match = Match(parts.value("data", ty), [Clause(p, const(1)) for p in patterns], complete)
    for clause in match.clauses:
        parts.matches.bind(match, clause)
    parts.matches.check(match)
    return parts


def test_a_constructors_fields() -> None:
    parts = matched(TypeCall(LIST, [INT]), SPLIT, PatternConstructor(NIL))
    assert parts.type_of(H) == INT and parts.type_of(T) == TypeCall(LIST, [INT])
    assert parts.said == []


def test_an_unknown_becomes_what_the_pattern_takes() -> None:
    unknown = Unknown()
    parts = matched(unknown, SPLIT, PatternConstructor(NIL))
    made = parts.solver.resolve(unknown)
    assert isinstance(made, TypeCall) and made.func is LIST
    assert find(parts.type_of(H)) is find(made.args[0])


def test_tuples() -> None:
    x, y = Var("x"), Var("y")
    pattern = PatternTuple([PatternVar(x), PatternTuple([PatternVar(y)])])
    parts = matched(TupleType([INT, TupleType([FLOAT])]), pattern)
    assert (parts.type_of(x), parts.type_of(y)) == (INT, FLOAT)
    assert parts.said == []
    unknown = Unknown()
    parts = matched(unknown, pattern)
    made = parts.solver.resolve(unknown)
    assert isinstance(made, TupleType) and len(made.fields) == 2


def test_annotated_variables() -> None:
    x = Var("x", FLOAT)
    parts = matched(INT, PatternVar(x))
    assert parts.said == [("R0302", "the value of `%x` must be `float32`, not `int32`")]


def test_patterns_that_do_not_fit() -> None:
    assert matched(INT, SPLIT).said == [("R0309", "`Cons` makes a `List[_]`, but the matched value is `int32`")]
    pair = PatternTuple([PatternVar(H), PatternVar(T)])
    parts = matched(TupleType([INT]), pair)
    assert parts.said == [("R0309", "a pattern of 2 fields cannot take apart `(int32,)`")]
    assert parts.found.types[H] is POISON  # what it binds is not reported again
    short = PatternConstructor(CONS, [PatternVar(H)])
    assert matched(TypeCall(LIST, [INT]), short).said == [("R0303", "`Cons` has 2 fields, but the pattern 1")]


def test_a_constructor_of_no_definition() -> None:
    tree = GlobalTypeVar("Tree")
    said = matched(Unknown(), PatternConstructor(Constructor("Leaf", [], tree))).said
    assert said == [("R0312", "`Leaf` belongs to the type `Tree`, which is not defined")]


def test_clauses_that_miss_a_value() -> None:
    lists = TypeCall(LIST, [INT])
    assert matched(lists, SPLIT).said == [("R0308", "the match does not cover `Nil`")]
    assert matched(lists, SPLIT, PatternWildcard()).said == []
    assert matched(lists, SPLIT, complete=False).said == []


def test_poison_is_taken_apart_silently() -> None:
    parts = matched(POISON, SPLIT, PatternConstructor(NIL))
    assert parts.said == []
    assert matched(POISON, PatternTuple([PatternVar(H)])).said == []
