"""`Locals` alone: scopes of variables and graph bindings."""

from __future__ import annotations

from relaylang.ir.expr import Constant, TupleGetItem, Var
from relaylang.ir.types import POISON
from relaylang.syntax.actions.locals import Locals, Pending, local_key, name_of
from tests.syntax.actions.parts import reports, said


def test_a_quoted_number_is_not_a_graph_name() -> None:
    assert local_key('%"0"') != local_key("%0")
    assert name_of(local_key('%"0"')) == "0"
    assert local_key('%"a b"') == "%a b"


def test_unbind_puts_back_what_a_name_hid() -> None:
    scope = Locals(reports("%x"), {"x": Var("outer")})
    outer, inner = scope.names["%x"], Var("inner")
    hidden = scope.bind("%x", inner)
    assert scope.find("%x", 0) is inner
    scope.unbind("%x", hidden)
    assert scope.find("%x", 0) is outer
    scope.unbind("%y", scope.bind("%y", inner) and None)
    assert "%y" not in scope.names


def test_a_field_is_read_of_the_longest_name_in_scope() -> None:
    scope = Locals(reports("%t.0.1"))
    scope.bind("%t.0", Var("t.0"))
    field = scope.find("%t.0.1", 0)
    assert isinstance(field, TupleGetItem) and field.index == 1
    assert field.tuple_value is scope.names["%t.0"]


def test_a_fragment_leaves_variables_free_and_a_function_does_not() -> None:
    scope = Locals(reports("%x"))
    free = scope.find("%x", 0)
    assert scope.free_vars == [free] and said(scope.reports) == []
    scope.begin_definition()
    scope.find("%y", 0)
    assert said(scope.reports) == [("R0201", "unknown variable `%y`")]
    assert len(scope.free_vars) == 1


def test_a_let_is_not_known_in_its_own_value_outside_functions() -> None:
    scope = Locals(reports("%x"))
    var = Var("x")
    scope.bind("%x", Pending(var, 0, scope.fn_depth))
    assert scope.find("%x", 0).type_annotation is POISON
    assert scope.find("%x", 0).type_annotation is POISON
    assert said(scope.reports) == [("R0209", "`%x` is used in its own value")]
    scope.fn_depth += 1
    assert Locals.find(scope, "%x", 0) is var and len(said(scope.reports)) == 1


def test_a_let_means_what_it_hides_in_its_own_value() -> None:
    scope = Locals(reports("%x"))
    hidden = Var("x")
    scope.bind("%x", Pending(Var("x"), 0, scope.fn_depth, hidden))
    assert scope.find("%x", 0) is hidden


def test_a_number_of_an_ended_block_stands_for_its_node() -> None:
    scope = Locals(reports("%0"))
    node = Constant(1)
    scope.begin_definition()
    scope.ended.append(({"%0": ("%0", None, node, 0, None)}, 0))
    assert scope.find("%0", 0) is node
    scope.check_reused(node)
    assert said(scope.reports) == []


def test_definitions_do_not_share_names() -> None:
    scope = Locals(reports("%x"), {"%known": Var("known")})
    names = scope.names
    scope.begin_definition()
    scope.bind("%x", Var("x"))
    scope.end_definition()
    assert scope.names is names and list(names) == ["%known"]
