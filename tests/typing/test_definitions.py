"""Type definitions alone."""

from __future__ import annotations

from relaylang.ir import Constructor, FuncType, GlobalTypeVar, TensorType, TypeCall, TypeData, TypeVar
from relaylang.typing.definitions import check_definitions
from relaylang.typing.terms import POISON
from tests.typing.parts import Parts

LIST, A = GlobalTypeVar("List"), TypeVar("A")
NIL = Constructor("Nil", [], LIST)
CONS = Constructor("Cons", [A, TypeCall(LIST, [A])], LIST)
LISTS = TypeData(LIST, [A], [CONS, NIL])


def test_a_constructor_is_a_polymorphic_function() -> None:
    definitions = Parts(definitions={LIST: LISTS}).definitions
    assert definitions.get(LIST) is LISTS
    made = definitions.constructor_type(CONS, None)
    assert made == FuncType([A, TypeCall(LIST, [A])], TypeCall(LIST, [A]), [A])
    assert definitions.constructor_type(CONS, None) is made


def test_a_constructor_without_a_definition() -> None:
    parts = Parts()
    assert parts.definitions.get(LIST) is None
    assert parts.definitions.constructor_type(NIL, None) is POISON
    assert parts.said == [("R0312", "`Nil` belongs to the type `List`, which is not defined")]


def test_a_definition_that_is_right() -> None:
    assert check_definitions({LIST: LISTS}) == []


def test_constructors_of_one_name() -> None:
    tree = GlobalTypeVar("Tree")
    trees = TypeData(tree, [], [Constructor("Nil", [], tree)])
    said = check_definitions({LIST: LISTS, tree: trees})
    assert [(d.code, d.title) for d in said] == [("R0316", "the constructor `Nil` is defined twice")]


def test_a_type_parameter_twice() -> None:
    said = check_definitions({LIST: TypeData(LIST, [A, A], [NIL])})
    assert [d.title for d in said] == ["`List` binds its type parameter `A` twice"]


def test_fields_that_are_no_types() -> None:
    wrong = Constructor("Wrong", [TensorType((-2,), "int8"), TypeVar("B")], LIST)
    said = check_definitions({LIST: TypeData(LIST, [A], [wrong])})
    assert [d.title for d in said] == [
        "`Tensor[(-2), int8]` is no type: dimension 0 is -2, which is negative",
        "nothing binds the type variable `B`",
    ]


def test_a_constructor_of_another_definition() -> None:
    tree = GlobalTypeVar("Tree")
    said = check_definitions({tree: TypeData(tree, [], [NIL])})
    assert [d.title for d in said] == ["`Nil` stands in `Tree`, but belongs to `List`"]
