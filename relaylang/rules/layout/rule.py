"""The protocol of layout rules: the layouts of an operator's operands, and those of its results.

The rewriter asks a rule `(attrs, new, old, types)` twice. In the first question `new` is None. `old` has the operands'
layouts in the program, None for an unknown one. The answer says in which layouts the operator reads them. In the second
question `new` has the operands' present layouts. The answer says in which layouts the operator takes them instead, and
with which attributes. `types` are those of the operands in the program. None leaves the layouts as they were.

The answers fit together where this holds. Bring operands from the first answer's layouts into the second's, and apply
the operator with the new attributes. The results are the old results, brought from the first answer's layouts into the
second's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from relaylang.ir.expr import Call, Expr
from relaylang.ir.types import TensorType, TupleType, Type
from relaylang.ops.build import op_call
from relaylang.ops.record import Op, make_attrs

Layouts = Sequence["str | None"]

#: Instead of an operand's layout: as the program had it.
PLAIN: Final = "<plain>"
#: Instead of an operand's layout: whichever it has.
KEEP: Final = "<any>"


class InferCorrectLayoutOutput:
    """A rule's answer: the operands' layouts, the results' layouts, and the attributes."""

    __slots__ = ("input_layouts", "new_attrs", "output_layouts")

    def __init__(self, input_layouts: Layouts, output_layouts: Layouts, new_attrs: Any) -> None:
        self.input_layouts = list(input_layouts)
        self.output_layouts = list(output_layouts)
        self.new_attrs = new_attrs


Rule = Callable[[Any, "Layouts | None", Layouts, Sequence["Type | None"]], "InferCorrectLayoutOutput | None"]


def named(call: Call) -> str:
    """The name of the operator that a call calls."""
    assert isinstance(call.op, Op)
    return call.op.name


def changed(attrs: Any, **values: Any) -> Any:
    """The attributes with other values."""
    cls = type(attrs)
    return make_attrs(cls, {**{name: getattr(attrs, name) for name in cls.schema}, **values})


def shape_at(types: Sequence[Type | None], arg: int) -> tuple[Any, ...] | None:
    """The extents of an operand that is a tensor."""
    ty = types[arg]
    return tuple(ty.shape) if isinstance(ty, TensorType) else None


def field_types(types: Sequence[Type | None], arg: int) -> list[Type]:
    """The types of a tuple's fields."""
    ty = types[arg]
    return list(ty.fields) if isinstance(ty, TupleType) else []


def is_scalar(ty: Type | None) -> bool:
    return isinstance(ty, TensorType) and not ty.shape


#: The operator that changes a layout.
TRANSFORM: Final = "layout_transform"


def transformed(x: Expr, source: str, target: str, ty: TensorType) -> Call:
    """A tensor in another layout; `ty` is its type there."""
    return op_call(TRANSFORM, [x], ty, src_layout=source, dst_layout=target)
