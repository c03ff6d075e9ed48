"""What our checker says of a call, in the words in which TVM's answers are recorded."""

from __future__ import annotations

import re
from typing import Any

from relaylang.ir import ANY, Call, Function, IRModule, TensorType, TupleType, Type, Var, const
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.typing import infer

_TENSOR = re.compile(r"(\w+)\[([^\]]*)\]")


def type_of(text: str) -> Type:
    parts = [
        TensorType([ANY if d == "?" else int(d) for d in dims.split(",")] if dims else [], dtype)
        for dtype, dims in _TENSOR.findall(text)
    ]
    return TupleType(parts) if text.startswith("(") else parts[0]


def shown(ty: Type | None) -> str:
    if isinstance(ty, TensorType):
        return f"{ty.dtype}[{','.join(map(str, ty.shape))}]"
    if isinstance(ty, TupleType):
        return f"({','.join(map(shown, ty.fields))})"
    return "_"


def answer(op: str, args: list[str], attrs: dict[str, Any]) -> str:
    """`= TYPE`, or `refused` and why."""
    record = OPS[op]
    if op == "arange":
        bounds = {n: attrs[n] if isinstance(attrs[n], (int, float)) else 1 for n in ("start", "stop", "step") if n in attrs}
        attrs = {**attrs, **{n: const(number, attrs.get("dtype", "float32")) for n, number in bounds.items()}}
    try:
        if record.attrs is None and attrs:
            raise AttrError(next(iter(attrs)), "is not an attribute here")
        for field in record.schema.values():
            if field.required and field.name not in attrs:
                raise AttrError(field.name, "must be given")  # as a text must, even where it may be None
        made = make_attrs(record.attrs, attrs) if record.attrs is not None else None
    except AttrError as problem:
        return f"refused the attribute {problem.name} {problem}"
    variables = [Var(f"p{i}", type_of(a)) for i, a in enumerate(args)]
    module = IRModule.from_expr(Function(variables, Call(record, variables, made)))
    said = [d for d in infer(module) if d.severity == "error"]
    if said:
        return f"refused {said[0].title}"
    ty = module["main"].checked_type
    return "= " + shown(ty.ret_type)
