"""Types in the comments of a fragment, such as `f(%x) /* ty=Tensor[(2), uint8] */`.

Free variables of a fragment have no types. If a call keeps its operand's shape, the comment after the call suggests the
variable's type. The suggestion stays if the checker then infers the commented type.
"""

from __future__ import annotations

import re

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import Call, Expr, TensorType, Type, Var, post_order, type_text
from relaylang.syntax import parse_type
from relaylang.typing import infer

_COMMENT = re.compile(r"\s*/\*\s*ty=(.*?)(?:\s+span=[^*]*)?\s*\*/", re.S)
#: Other element types of an operand than the result's, the likeliest first.
_DTYPES = ("float32", "int8", "uint8", "int32")
_MOST_VARIABLES = 16


def commented_type(call: Expr) -> Type | None:
    """The type in the comment right behind an expression, or None."""
    if call.span is None:
        return None
    match = _COMMENT.match(call.span.source.text, call.span.end)
    if match is None:
        return None
    try:
        return parse_type(match[1])
    except RelayError:
        return None


def types_from_comments(expr: Expr, free: list[Var]) -> tuple[dict[Var, Type], list[Diagnostic]]:
    """Types for free variables without one, and a note for each."""
    unknown = {v for v in free if v.type_annotation is None}
    if not unknown or len(unknown) > _MOST_VARIABLES:
        return {}, []
    assumed: dict[Var, Type] = {}
    notes: list[Diagnostic] = []
    for node in post_order(expr):
        if not isinstance(node, Call):
            continue
        for v in [a for a in node.args if a in unknown and a not in assumed]:
            result = commented_type(node)
            if not isinstance(result, TensorType) or not isinstance(v, Var):
                continue
            for dtype in dict.fromkeys((*_DTYPES, result.dtype)):
                guess = TensorType(result.shape, dtype)
                wrong = infer(expr, fragment=True, assume={**assumed, v: guess})
                if not any(d.severity == "error" for d in wrong) and node.checked_type == result:
                    assumed[v] = guess
                    title = f"the type of `%{v.name_hint}` is taken from the comment behind a call: {type_text(guess)}"
                    notes.append(error("R0708", title, v.span, severity="note"))
                    break
    return assumed, notes
