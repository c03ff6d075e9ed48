"""`FunctionNames`, `TypeNames` and `Callees` alone."""

from __future__ import annotations

from relaylang.ir.expr import Constructor, GlobalVar, Var
from relaylang.ir.types import GlobalTypeVar
from relaylang.ops import OPS
from relaylang.syntax.actions.globals import Callees, FunctionNames, TypeNames, constructors_in
from relaylang.syntax.actions.locals import Locals
from relaylang.syntax.spellings import BY_NAME, OldOp
from tests.syntax.actions.parts import reports, said


def test_a_function_is_one_variable_wherever_it_is_used() -> None:
    names = FunctionNames(reports("@f"))
    assert names.var("f", 0) is names.var("f", 0)
    names.finish()
    assert said(names.reports) == [("R0206", "unknown function `@f`")]


def test_a_text_with_open_functions_may_use_any() -> None:
    names = FunctionNames(reports("@f"))
    names.open = True
    names.var("f", 0)
    names.finish()
    assert said(names.reports) == []


def test_functions_elsewhere_are_known_and_not_defined_here() -> None:
    elsewhere = {"f": GlobalVar("f")}
    names = FunctionNames(reports("@f"), None, elsewhere)
    assert names.var("f", 0) is elsewhere["f"] and "f" in names
    names.declare("f", 0)
    names.finish()
    assert said(names.reports) == []


def test_the_first_definition_of_a_name_counts() -> None:
    names = FunctionNames(reports("@f @f"))
    names.declare("f", 0)
    names.declare("f", 1)
    assert said(names.reports) == [("R0205", "function `@f` is defined twice")]
    assert names.defined == {"f": 0}


def test_type_variables_hide_one_another() -> None:
    types = TypeNames(reports("A"))
    outer = types.open_variables([("A", 0)])
    first = types.variables["A"]
    inner = types.open_variables([("A", 0)])
    assert types.variables["A"] is not first
    types.close_variables(inner)
    assert types.variables["A"] is first
    types.close_variables(outer)
    assert types.variables == {} and said(types.reports) == []


def test_a_type_parameter_stands_once_in_a_list() -> None:
    types = TypeNames(reports("A A"))
    types.open_variables([("A", 0), ("A", 1)])
    assert said(types.reports) == [("R0205", "type parameter `A` is defined twice")]


def test_an_unknown_element_type_gets_the_name_that_was_meant() -> None:
    types = TypeNames(reports("f32"))
    types.var("f32", 0)
    types.finish()
    (diagnostic,) = types.reports.said.items
    assert diagnostic.code == "R0207" and diagnostic.fix is not None and diagnostic.fix.replacement == "float32"


def test_types_elsewhere_are_known() -> None:
    elsewhere = {"T": GlobalTypeVar("T")}
    types = TypeNames(reports("T"), None, elsewhere)
    assert types.var("T", 0, define=True) is elsewhere["T"]
    types.finish()
    assert said(types.reports) == []


def test_constructors_are_found_ahead_of_their_definition() -> None:
    of = reports("Cons(1) type List[A] { Nil, Cons(A, List[A]) } data D { C : (int8) -> D }")
    assert set(constructors_in(of.tokens)) == {"Nil", "Cons", "C"}
    types = TypeNames(of)
    promised = types.constructor("Cons", 0)
    assert isinstance(promised, Constructor) and types.constructor("Cons", 0) is promised
    assert types.constructor("Nil", 0) is not None
    assert types.has_fields("Cons") and not types.has_fields("Nil") and not types.has_fields("List")
    assert types.constructor("None", 0) is None


def callees(text: str, **variables: Var) -> Callees:
    of = reports(text)
    return Callees(of, Locals(of, variables), FunctionNames(of), TypeNames(of))


def test_a_bare_name_is_an_operator() -> None:
    found = callees("add(").find("add", 0, 3)
    assert found is OPS["add"]


def test_an_earlier_operator_counts_where_it_is_called() -> None:
    name = next(n for n in BY_NAME if n not in OPS)
    assert isinstance(callees(f"{name}()").find(name, 0, len(name)), OldOp)
    alone = callees(name)
    alone.find(name, 0, len(name))
    assert [code for code, _ in said(alone.reports)] == ["R0202"]


def test_a_bare_variable_counts_once_a_pattern_has_bound_one() -> None:
    x = Var("x")
    names = callees("x", x=x)
    names.find("x", 0, 1)
    (diagnostic,) = names.reports.said.items
    assert diagnostic.fix is not None and diagnostic.fix.replacement == "%x"
    names.locals.bare = True
    assert names.find("x", 0, 1) is x
