"""The report alone: what a failure becomes."""

from __future__ import annotations

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, Function, GlobalTypeVar, GlobalVar, TupleType, TypeCall, TypeData, Var, scalar_type, var
from relaylang.ops import get
from relaylang.ops.record import RelationError
from relaylang.typing.program import Program
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import Unknown

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def place(text: str, part: str) -> Span:
    start = text.index(part)
    return Span(SourceFile("t", text), start, start + len(part))


def report(solver: Solver | None = None, program: Program | None = None) -> Report:
    return Report(solver or Solver(), {}, program or Program())


def test_labels_without_a_place_are_left_out() -> None:
    made = report()
    here = place("abc", "b")
    made.say("R0302", "wrong", here, "here", also=[(None, "nowhere"), (here, "also here")], notes=["a note"])
    (said,) = made.diagnostics
    assert [(label.text, label.primary) for label in said.labels] == [("here", True), ("also here", False)]
    assert (said.code, said.title, said.notes, said.severity) == ("R0302", "wrong", ("a note",), "error")


def test_a_mismatch_says_what_differs() -> None:
    solver = Solver()
    made = report(solver)
    left, right = TupleType([INT, INT]), TupleType([INT, FLOAT])
    assert not solver.unify(left, right)
    made.mismatch("this", left, right, None)
    (said,) = made.diagnostics
    assert said.title == "this must be `(int32, int32)`, not `(int32, float32)`"
    assert said.notes == ("field 1 is `float32`, not `int32`: the element type is float32, not int32",)


def test_a_mismatch_shows_types_as_they_are_known_now() -> None:
    solver, unknown = Solver(), Unknown()
    solver.unify(unknown, INT)
    made = report(solver)
    made.mismatch("this", unknown, FLOAT, None)
    assert made.diagnostics[0].title == "this must be `int32`, not `float32`"
    assert made.shown(TupleType([unknown])) == "(int32,)"


def test_a_type_that_contains_itself() -> None:
    solver, unknown = Solver(), Unknown()
    assert not solver.unify(unknown, TupleType([unknown]))
    made = report(solver)
    made.mismatch("this", unknown, TupleType([unknown]), None)
    assert [(d.code, d.title) for d in made.diagnostics] == [("R0310", "this would have a type that contains itself")]


def test_definitions_that_differ_by_name() -> None:
    text = "type A {} type A {}"
    first, second = GlobalTypeVar("A"), GlobalTypeVar("A")
    there = Span(SourceFile("t", text), 10, 19)
    table = {first: TypeData(first, [], [], span=place(text, "type A {}")), second: TypeData(second, [], [], span=there)}
    made = report(program=Program(definitions=table))
    labels = made.definitions(TypeCall(first, []), TypeCall(second, []))
    assert [(span.start if span else None, said) for span, said in labels] == [
        (0, "`A` is defined here"),
        (10, "`A` is defined here"),
    ]


def test_origins() -> None:
    x = var("x", "int32")
    call = Call(get("negative"), [x], None, (), place("negative(%x)", "negative(%x)"))
    made = Report(Solver(), {x: INT, call: INT}, Program())
    assert made.origin(x)[1] == "`%x` is `int32`"
    assert made.origin(call) == (call.span, "this is `int32`")
    assert made.origin_of_variable(call) == []
    assert made.origin_of_variable(x) == [made.origin(x)]


def test_where_a_callee_is_defined() -> None:
    span = place("def @f(%x: int32) { %x }", "%x: int32")
    x = Var("x", INT, span)
    function = Function([x], x, span=span)
    made = report(program=Program({"f": function}))
    assert made.callee_span(GlobalVar("f")) is span and made.callee_span(GlobalVar("g")) is None
    assert made.parameter(GlobalVar("f"), 0) == (span, "the parameter `%x` is declared here")
    assert made.parameter(GlobalVar("f"), 1) == (None, "")


def test_a_relation_that_failed_points_at_the_argument() -> None:
    text = "add(%x, %y)"
    x, y = Var("x"), Var("y")
    node = Call(get("add"), [x, y], None, (), place(text, text))
    made = Report(Solver(), {id(x): INT, id(y): FLOAT}, Program())
    made.relation_failed(node, RelationError("must be an int32", 1), [INT, FLOAT])
    (said,) = made.diagnostics
    assert said.title == "`add`: argument 2 (rhs) must be an int32"
    assert said.span is not None and said.span.text == "%y"


def test_a_relation_that_failed_points_at_the_attribute() -> None:
    text = "nn.softmax(%x, axis=7)"
    x = Var("x")
    node = Call(get("nn.softmax"), [x], None, (), place(text, text))
    made = Report(Solver(), {id(x): INT}, Program())
    made.relation_failed(node, RelationError("axis=7 is too much"), [INT])
    (said,) = made.diagnostics
    assert said.span is not None and said.span.text == "axis=7"
