"""Each class of actions alone, called as the parser's loop calls it."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.ir.expr import (
    Call,
    Constant,
    If,
    Let,
    MetaRef,
    PatternConstructor,
    PatternVar,
    PatternWildcard,
    Var,
)
from relaylang.ir.types import ANY, POISON, IncompleteType, TensorType, TupleType, TypeCall
from relaylang.ops import OPS
from relaylang.syntax.actions import ACTIONS, PARTS, Build
from relaylang.syntax.actions.attributes import WRONG, AttributeActions, Pair
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.locals import Locals
from relaylang.syntax.actions.metavalues import MetaValues
from relaylang.syntax.actions.operators import OperatorCalls
from relaylang.syntax.actions.patterns import MatchActions
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.actions.statements import StatementActions
from relaylang.syntax.actions.types import DataTypeActions, TypeActions, quiet_tensor_type, tensor_type
from relaylang.syntax.reader import tables
from tests.syntax.actions.parts import reports, said


def attributes(of: Reports) -> AttributeActions:
    types = TypeNames(of)
    return AttributeActions(of, types, MetaValues(of, types))


def operators(of: Reports) -> OperatorCalls:
    made = attributes(of)
    return OperatorCalls(of, made.meta, made)


def test_the_table_has_one_action_for_each_alias_of_the_grammar() -> None:
    assert {alias for _, _, alias in tables().data["rules"] if alias} == set(ACTIONS)
    assert all(function is getattr(PARTS[part], f"on_{alias}") for alias, (part, function) in ACTIONS.items())


def test_the_parts_of_a_build_are_in_the_order_of_the_table() -> None:
    of = reports("1")
    assert tuple(type(part) for part in Build(of.source, of.tokens).parts) == PARTS


@pytest.mark.parametrize("part", PARTS)
def test_no_part_is_a_slice_of_another(part: type) -> None:
    assert part.__bases__ == (object,)


# -- types


def test_a_tensor_type_is_read_from_one_token() -> None:
    of = reports("Tensor[(2, ?), float32]")
    assert tensor_type(of.tokens[0], 0, of) == TensorType((2, ANY), "float32")
    assert tensor_type(of.tokens[0], 0, of) is tensor_type(of.tokens[0], 0, of)


def test_a_wrong_element_type_is_reported_at_its_letters() -> None:
    of = reports("Tensor[(2), f32]")
    assert isinstance(tensor_type(of.tokens[0], 0, of), IncompleteType)
    (diagnostic,) = of.said.items
    assert diagnostic.span is not None and of.source.text[diagnostic.span.start : diagnostic.span.end] == "f32"


def test_a_quiet_type_leaves_no_diagnostic() -> None:
    of = reports("")
    assert quiet_tensor_type("Tensor[(2), f32]", of) is None
    assert quiet_tensor_type("Tensor[(2), float32", of) is None
    assert quiet_tensor_type("Tensor[(2), int8]", of) == TensorType((2,), "int8")
    assert said(of) == [] and of.said.errors == 0


def test_types_and_extents() -> None:
    of = reports("(A, int8) n")
    types = TypeNames(of)
    made = TypeActions(of, types, MetaValues(of, types))
    (binder,) = types.open_variables([("n", 0)])
    assert made.on_dim_name("n", 0, 0) is binder[2] and binder[2].kind == "ShapeVar"
    assert made.on_dim_name("m", 0, 0) is ANY and said(of) == [("R0207", "unknown extent `m`")]
    assert made.on_dim_number("3", 0, 0) == 3
    fields = [made.on_t_name("int8", 0, 0), made.on_t_name("L", 0, 0)]
    tuple_type = made.on_t_tuple_end([fields, ")"], 0, 1)
    assert isinstance(tuple_type, TupleType) and tuple_type.fields[0] == TensorType((), "int8")
    assert isinstance(tuple_type.fields[1], TypeCall)
    assert made.on_dim_meta("meta[X][0]", 0, 0) is made.on_dim_meta("meta[X][0]", 0, 0)


def test_a_constructor_that_was_used_above_its_definition_gets_its_fields() -> None:
    of = reports("C type T { C(int8) }")
    types = TypeNames(of)
    promised = types.constructor("C", 0)
    DataTypeActions(of, types).on_def_type(["type", ("T", 2, ()), "{", [("C", [TensorType((), "int8")], 4, 6)], "}"], 1, 7)
    assert promised is types.constructors["C"] and types.promised == {}
    assert promised.inputs == (TensorType((), "int8"),) and promised.belong_to is types.known["T"]


# -- attributes and operators


def test_a_coarse_token_is_cut_into_pairs() -> None:
    of = reports('a=1, b=[1, -2.5], c="x", d=True, e=[[1], []]')
    values = attributes(of).values([(of.source.text, 0)])
    assert values == {"a": 1, "b": (1, -2.5), "c": "x", "d": True, "e": ((1,), ())}
    assert said(of) == []


def test_an_attribute_is_given_once() -> None:
    of = reports("a=1, a=2")
    attributes(of).flatten([(of.source.text, 0)])
    (diagnostic,) = of.said.items
    assert diagnostic.code == "R0205" and diagnostic.span is not None and diagnostic.span.start == 5


def test_a_bare_word_is_no_value() -> None:
    of = reports("relu")
    assert attributes(of).on_av_name("relu", 0, 0) is WRONG
    assert said(of) == [("R0109", "`relu` is not an attribute's value")]


def test_an_operator_takes_its_own_attributes() -> None:
    of = reports("nn.softmax(axis)")
    call = operators(of).call(OPS["nn.softmax"], [Var("x")], [Pair("axis", 1, 1, 1)], 0, 2)
    assert isinstance(call, Call) and call.attrs.axis == 1 and said(of) == []
    operators(of).call(OPS["nn.softmax"], [Var("x")], [Pair("axes", 1, 1, 1)], 0, 2)
    assert said(of) == [("R0203", "`nn.softmax` has no attribute `axes`")]


def test_calls_without_attributes_share_the_object() -> None:
    of = reports("nn.softmax(")
    made = operators(of)
    assert made.no_attrs(OPS["nn.softmax"], 0) is made.no_attrs(OPS["nn.softmax"], 0) is not None


def test_a_missing_section_takes_the_attributes_along() -> None:
    of = reports("f(meta)")
    made = operators(of)
    ref = made.meta.find("meta[relay.attrs.X][0]", 1)
    assert isinstance(ref, MetaRef) and made.meta.missing == [ref]
    made.meta_call(OPS["nn.softmax"], [], ref, 0, 2)
    assert made.meta.missing == [] and [code for code, _ in said(of)] == ["R0208"]


# -- metadata


def test_a_value_of_the_section_is_found() -> None:
    of = reports("meta[X][0]")
    values = MetaValues(of, TypeNames(of), {"X": ["first"]})
    assert values.find("meta[X][0]", 0) == "first" and values.missing == []
    ref = values.find("meta[X][1]", 0)
    assert isinstance(ref, MetaRef) and values.find("meta[X][1]", 0) is ref and values.missing == [ref]


def test_the_comment_behind_a_reference_states_its_type() -> None:
    of = reports("meta[X][0]")
    ty = TensorType((1,), "int8")
    values = MetaValues(of, TypeNames(of), None, lambda comment, reports, types: ty if "ty=" in comment else None)
    assert values.find("meta[X][0]", 0).type_annotation is None
    assert values.find("meta[X][0] /* ty=int8 */", 0).type_annotation is ty


def test_a_value_that_is_no_expression_is_reported_at_the_end() -> None:
    of = reports("meta[X][0]")
    values = MetaValues(of, TypeNames(of))
    values.loose[0] = "meta[X][0]", "a number"
    values.finish()
    assert said(of) == [("R0103", "`meta[X][0]` holds a number and is not an expression")]


# -- patterns, statements, expressions


def test_the_variables_of_a_pattern_hold_in_its_clause() -> None:
    of = reports("type T { C(int8) } %x")
    scope = Locals(of)
    made = MatchActions(of, scope, TypeNames(of))
    pattern = made.on_pat_ctor(["C(", [made.on_pat_var("%x", 0, 0)], ")"], 0, 1)
    assert isinstance(pattern, PatternConstructor) and isinstance(pattern.patterns[0], PatternVar)
    head = made.on_clause_head([pattern, "=>"], 0, 1)
    inner = scope.find("%x", 0)
    clause = made.on_clause([head, inner], 0, 2)
    assert clause.rhs is pattern.patterns[0].var and "%x" not in scope.names and made.bound == []


def test_a_bare_word_in_a_pattern_is_a_constructor_or_in_a_case_a_variable() -> None:
    of = reports("Nope x")
    scope = Locals(of)
    made = MatchActions(of, scope, TypeNames(of))
    assert isinstance(made.on_pat_name("_", 0, 0), PatternWildcard)
    made.on_pat_name("Nope", 0, 0)
    assert [code for code, _ in said(of)] == ["R0210"]
    made.on_case("case", 0, 0)
    assert isinstance(made.on_pat_name("x", 1, 1), PatternVar) and scope.bare


def statements(of: Reports) -> StatementActions:
    made = attributes(of)
    return StatementActions(of, Locals(of), TypeActions(of, made.types, made.meta), made)


def test_a_block_nests_its_lets_and_puts_its_names_back() -> None:
    of = reports("let %a = 1; %0 = 2; %a")
    made = statements(of)
    outer = Var("outer")
    made.locals.bind("%a", outer)
    let = made.on_let_bound([made.on_let_plain(["let", "%a", "="], 0, 2), Constant(1), ";"], 0, 4)
    block = made.on_stmts_one(let, 0, 4)
    made.on_stmts_more([block, made.on_graph(["%0 =", Constant(2), ";"], 5, 7)], 0, 7)
    value = made.on_block_stmts([block, made.locals.find("%a", 8)], 0, 8)
    assert isinstance(value, Let) and value.body is value.var
    assert made.locals.names == {"%a": outer} and [list(names) for names, _ in made.locals.ended] == [["%a", "%0"]]


def test_a_block_that_ends_with_a_binding_has_no_value() -> None:
    of = reports("%0 = 1;")
    made = statements(of)
    one = Constant(1)
    assert made.on_block_open(made.on_stmts_one(made.on_graph(["%0 =", one, ";"], 0, 2), 0, 2), 0, 2) is one
    assert said(of) == [("R0104", "this block ends with the binding of `%0` and has no value")]


def test_expressions_are_made_of_their_parts() -> None:
    of = reports("-1 + 2 * 3")
    build = Build(of.source, of.tokens)
    made = build.parts[0]
    number = made.on_neg(["-", made.on_number("1", 1, 1)], 0, 1)
    assert number.data == np.int32(-1) and number.span.first == 0
    product = made.on_infix_first([number, ("+", 2), made.on_number("2", 3, 3)], 0, 3)
    made.on_infix_more([product, ("*", 4), made.on_number("3", 5, 5)], 0, 5)
    total = made.on_infix(product, 0, 5)
    assert total.op is OPS["add"] and total.args[0] is number and total.args[1].op is OPS["multiply"]
    assert isinstance(made.on_if_else(["if", "(", number, ")", "{", number, "}", "else", "{", number, "}"], 0, 5), If)
    assert made.on_string('"s"', 0, 0).type_annotation is POISON
    assert [code for code, _ in said(build.reports)] == ["R0103"]
