"""Results alone: types written into nodes, and reports of those that stayed open."""

from __future__ import annotations

import pytest

from relaylang.ir import ANY, Call, Function, FuncType, IncompleteType, MetaRef, TensorType, TupleType, Var, scalar_type
from relaylang.ops import get
from relaylang.typing.terms import DimUnknown, OpenTensor, Unknown
from tests.typing.parts import Parts

INT = scalar_type("int32")


def test_types_are_written() -> None:
    parts, unknown = Parts(), Unknown()
    x, y = parts.value("x", INT), parts.value("y", TupleType([unknown, INT]))
    parts.solver.unify(unknown, INT)
    parts.results().store()
    assert x.checked_type is INT and y.checked_type == TupleType([INT, INT])


def test_what_stays_open_is_incomplete() -> None:
    parts = Parts()
    x = parts.value("x", TupleType([Unknown(), OpenTensor((DimUnknown("n"), 2), "int8")]))
    parts.results().store()
    assert isinstance(x.checked_type, TupleType)
    first, second = x.checked_type.fields
    assert type(first) is IncompleteType
    assert type(second) is TensorType and second == TensorType((ANY, 2), "int8")


def test_one_type_is_closed_once() -> None:
    parts, unknown = Parts(), Unknown()
    shared = FuncType([unknown], unknown)
    x, y = parts.value("x", shared), parts.value("y", TupleType([shared]))
    parts.solver.unify(unknown, INT)
    parts.results().store()
    assert isinstance(y.checked_type, TupleType) and y.checked_type.fields[0] is x.checked_type


def test_equal_types_of_before_are_replaced_only_by_others() -> None:
    parts = Parts()
    x = parts.value("x", INT)
    results = parts.results()
    results.store()
    results.store()
    assert x.checked_type is INT


@pytest.mark.parametrize("fragment", [False, True])
def test_open_types_are_reported(fragment: bool) -> None:
    parts = Parts()
    x = Var("x")
    parts.found.put(x, Unknown(x))
    parts.results(fragment=fragment).report_unknown()
    (said,) = parts.report.diagnostics
    assert (said.code, said.severity) == (("R0315", "note") if fragment else ("R0304", "error"))
    assert said.title.startswith("the type of `%x` is not known")


def test_causes_are_reported_and_not_what_follows_from_them() -> None:
    parts = Parts()
    x = Var("x")
    call = Call(get("negative"), [x])
    parts.found.put(x, Unknown(x))
    parts.found.put(call, Unknown(call, derived=True))
    parts.results().report_unknown()
    assert [title for _, title in parts.said] == ["the type of `%x` is not known"]


def test_what_follows_is_reported_where_there_is_no_cause() -> None:
    parts = Parts()
    function = Function([], Var("x"))
    parts.found.put(function, Unknown(function, derived=True))
    parts.results().report_unknown()
    assert [title for _, title in parts.said] == ["the type of this function's result is not known"]


def test_a_type_parameter_may_stay_open() -> None:
    parts = Parts()
    parts.value("nil", TupleType([Unknown(free=True)]))
    parts.results().report_unknown()
    assert parts.said == []


def test_a_parameter_must_be_known_altogether() -> None:
    parts = Parts()
    x = parts.value("x", TupleType([Unknown(free=True)]))
    parts.results(frozenset([id(x)])).report_unknown()
    assert parts.said == [("R0304", "the type of `%x` is not known")]


def test_a_missing_constant() -> None:
    parts = Parts()
    node = MetaRef("relay.Constant", 0)
    parts.found.put(node, Unknown(node))
    parts.results().report_unknown()
    assert parts.said == [("R0304", "the type of `meta[relay.Constant][0]` is not known")]
