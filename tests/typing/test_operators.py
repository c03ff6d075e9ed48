"""Calls of operators alone: relations that run at once, and those that wait."""

from __future__ import annotations

import pytest

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import ANY, Call, Expr, TensorType, TupleType, Type, TypeVar, scalar_type
from relaylang.ops import get
from relaylang.ops.record import Op, RelationError, make_attrs
from relaylang.typing.operators import Context, need_taken
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, DimUnknown, OpenTensor, Unknown, find
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def tensor(*shape: object, dtype: str = "float32") -> TensorType:
    return TensorType(shape, dtype)  # type: ignore[arg-type]


def call(name: str, *args: Expr, **attrs: object) -> Call:
    op = get(name)
    return Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None)


def typed(parts: Parts, node: Call) -> Type:
    """The type of a call, as the walk would note it."""
    assert isinstance(node.op, Op)
    made = parts.operators.call(node, node.op)
    parts.found.put(node, made)
    return made


def test_a_relation_gives_the_type() -> None:
    parts = Parts()
    x, y = parts.value("x", tensor(2, 3)), parts.value("y", tensor(3))
    assert typed(parts, call("add", x, y)) == tensor(2, 3)
    assert typed(parts, call("sum", x, axis=[1])) == tensor(2)
    assert parts.said == []


def test_a_relation_is_asked_once_for_types() -> None:
    parts = Parts()
    x = parts.value("x", parts.solver.intern(tensor(2, 3)))
    asked = 0
    add = get("add")
    relation = add.rel

    def counting(*given: object) -> Type | None:
        nonlocal asked
        asked += 1
        return relation(*given)  # type: ignore[arg-type]

    object.__setattr__(add, "rel", counting)
    try:
        for _ in range(10):
            typed(parts, call("add", x, x))
    finally:
        object.__setattr__(add, "rel", relation)
    assert asked == 1


def test_a_call_waits_for_its_arguments() -> None:
    parts = Parts()
    unknown = Unknown()
    x = parts.value("x", unknown)
    node = call("transpose", x)
    made = typed(parts, node)
    assert isinstance(made, Unknown) and made.derived and made.origin is node
    parts.solver.unify(unknown, tensor(4))
    assert len(parts.solver.ready) == 1
    parts.worklist.work()
    assert find(made) == tensor(4) and parts.solver.ready == []


def test_a_chain_of_calls_is_woken_in_turn() -> None:
    parts = Parts()
    unknown = Unknown()
    node: Expr = parts.value("x", unknown)
    for _ in range(1_000):
        node = call("transpose", node)
        typed(parts, node)  # type: ignore[arg-type]
    assert isinstance(parts.type_of(node), Unknown)
    parts.solver.unify(unknown, tensor(4))
    parts.worklist.work()
    assert parts.type_of(node) == tensor(4)


def test_a_result_tells_of_an_argument() -> None:
    """`nn.dense` knows its weight's type from its data and its units, without the weight."""
    parts = Parts()
    data, weight = parts.value("data", tensor(2, 3)), parts.value("weight", Unknown())
    assert typed(parts, call("nn.dense", data, weight, units=5)) == tensor(2, 5)
    assert parts.type_of(weight) == tensor(5, 3)


def test_open_extents_are_closed() -> None:
    parts = Parts()
    x = parts.value("x", OpenTensor((DimUnknown("n"), 3), "float32"))
    assert typed(parts, call("transpose", x)) == tensor(3, ANY)


def test_poison_passes_through_silently() -> None:
    parts = Parts()
    x = parts.value("x", POISON)
    assert typed(parts, call("negative", x)) is POISON
    assert typed(parts, call("concatenate", parts.value("t", TupleType([POISON, FLOAT])))) is POISON
    assert parts.said == []


@pytest.mark.parametrize(
    ("node", "types", "code", "title"),
    [
        ("add", [tensor(2), tensor(3)], "R0301", "`add`: argument 2 (rhs)"),
        ("add", [tensor(2)], "R0303", "`add` takes 2 arguments, not 1"),
        ("negative", [TupleType([])], "R0301", "`negative`: argument 1 (data)"),
    ],
)
def test_refusals(node: str, types: list[Type], code: str, title: str) -> None:
    parts = Parts()
    args = [parts.value(f"x{i}", ty) for i, ty in enumerate(types)]
    assert typed(parts, call(node, *args)) is POISON
    ((said_code, said),) = parts.said
    assert said_code == code and said.startswith(title)


def test_attributes_without_which_there_is_no_call() -> None:
    parts = Parts()
    op = get("reshape")
    assert typed(parts, Call(op, [parts.value("x", FLOAT)])) is POISON
    assert parts.said[0][0] == "R0301"


def test_a_result_that_cannot_exist() -> None:
    parts = Parts()
    x = parts.value("x", tensor(1))
    assert typed(parts, call("broadcast_to", x, shape=[2**63])) is POISON
    assert parts.said[0][0] == "R0301" and "9223372036854775808" in parts.said[0][1]


def test_a_value_of_a_type_parameter_is_reported_in_the_end() -> None:
    parts = Parts()
    a = TypeVar("A")
    node = call("add", parts.value("x", a), parts.value("y", a))
    made = typed(parts, node)
    assert parts.said == []
    parts.operators.settle()
    assert parts.said[0][0] == "R0301" and find(made) is POISON


def test_the_error_points_into_the_call() -> None:
    parts = Parts()
    source = SourceFile("t", "add(%x, %yy)")
    x, y = parts.value("x", tensor(2)), parts.value("yy", tensor(3))
    node = Call(get("add"), [x, y], None, (), Span(source, 0, 12))
    typed(parts, node)
    assert parts.report.diagnostics[0].span is not None and parts.report.diagnostics[0].span.text == "%yy"


# --- what relations may ask ---


def test_context_unifies_arguments() -> None:
    context = Context(Solver())
    unknown = Unknown()
    context.types = [unknown, tensor(2)]
    assert context.unify(0, tensor(3)) == tensor(3) and find(unknown) == tensor(3)
    with pytest.raises(RelationError, match="must be `Tensor") as problem:
        context.unify(1, tensor(3))
    assert problem.value.arg == 1


def test_context_unifies_extents() -> None:
    context = Context(Solver())
    assert context.unify_dims(ANY, 3, "the widths") == 3
    with pytest.raises(RelationError, match="the widths: 2 and 3 differ"):
        context.unify_dims(2, 3, "the widths")


def test_arguments_that_an_operator_takes() -> None:
    need_taken(get("add"), [tensor(2), Unknown()])
    with pytest.raises(RelationError, match="must be a tensor"):
        need_taken(get("add"), [tensor(2), TupleType([])])
