"""Repairs of calls that operators do not accept."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relaylang.diagnostics import Fix
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constant, Expr, PatternTuple, Tuple
from relaylang.ir.types import TensorType, TupleType, Type
from relaylang.ops.record import Op
from relaylang.ops.takes import refused_elements
from relaylang.ops.traits import Trait
from relaylang.typing.places import argument_span

_NUMBER = r"(-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)(?:f|f16|f32|f64|bf16|[iu](?:8|16|32|64))?"


def repair(call: Call, types: Sequence[Type], arg: int) -> Fix | None:
    """The repair of a call whose argument `arg` does not fit, if there is one."""
    return literal_of_type(call, types) or first_field(call, types, arg)


def first_field(call: Call, types: Sequence[Type], arg: int) -> Fix | None:
    """`nn.relu(nn.batch_norm(...))` means the tensor in the tuple: `.0` takes it."""
    ty, span = types[arg], argument_span(call, arg)
    if not isinstance(ty, TupleType) or not ty.fields or not isinstance(ty.fields[0], TensorType):
        return None
    if span is None or span == call.span or isinstance(call.args[arg], Tuple):
        return None
    behind = Span(getattr(span.source, "plain", span.source), span.end, span.end)
    return Fix(behind, ".0", "`.0` takes the first tensor of the tuple")


def literal_of_type(call: Call, types: Sequence[Type]) -> Fix | None:
    """`%x * 2` of floats is `%x * 2f`: the number in the element type of the other argument."""
    if len(call.args) != 2 or len(types) != 2:
        return None
    for number, other in ((1, 0), (0, 1)):
        node, wanted, have = call.args[number], types[other], types[number]
        if not isinstance(node, Constant) or isinstance(call.args[other], Constant) or node.data.ndim:
            continue
        if not isinstance(wanted, TensorType) or not isinstance(have, TensorType) or wanted.dtype == have.dtype:
            return None
        words = call.op.takes if isinstance(call.op, Op) else ()
        if number < len(words) and refused_elements(words[number], wanted.dtype, wanted.dtype) is not None:
            return None
        fix = number_of_type(node, wanted)
        if fix is not None:
            return fix
    return None


def number_of_type(node: Expr | None, wanted: Type) -> Fix | None:
    """A number that is written, in the element type that its place needs."""
    if not isinstance(node, Constant) or node.data.ndim or node.span is None or not isinstance(wanted, TensorType):
        return None
    written = re.fullmatch(_NUMBER, node.span.text)
    text = written and _literal(written[1], wanted.dtype)
    return Fix(_plain(node.span), text, f"write `{text}`") if text and text != node.span.text else None


def _literal(digits: str, dtype: str) -> str | None:
    """A number of an element type, or None where it has no such value."""
    if dtype.startswith(("float", "bfloat")):
        return digits + ("f" if dtype == "float32" else dtype.replace("float", "f"))
    if not digits.lstrip("-").isdigit() or not dtype.startswith(("int", "uint")):
        return None
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 1 << bits) if dtype[0] == "u" else (-1 << (bits - 1), 1 << (bits - 1))
    if len(digits) > 20 or not low <= int(digits) < high:
        return None
    return digits + ("" if dtype == "int32" else dtype.replace("int", "" if dtype[0] == "u" else "i"))


def without_parentheses(pattern: PatternTuple) -> Fix | None:
    """`(Nil)` is a tuple of one value. Where the value is no tuple, `Nil` is meant."""
    outer = pattern.span
    inner = pattern.patterns[0].span if len(pattern.patterns) == 1 else None
    if outer is None or inner is None:
        return None
    return Fix(_plain(outer), inner.text, "parentheses around one pattern are a tuple of one: leave them out")


def surplus_arguments(call: Call, op: Op) -> Fix | None:
    """`concatenate(%x, %y)` takes a tuple; `nn.softmax(%x, 1)` means the attribute `axis=1`."""
    count = len(op.args)
    spans = [argument_span(call, i) for i in range(len(call.args))]
    if len(call.args) <= count or any(s is None or s == call.span for s in spans):
        return None
    first, last = spans[0], spans[-1]
    assert first is not None and last is not None
    if Trait.OF_TUPLE in op.traits and count == 1:
        span = Span(getattr(first.source, "plain", first.source), first.start, last.end)
        return Fix(span, f"({span.text})", "put the tensors into a tuple")
    values = [attribute_text(node) for node in call.args[count:]]
    named = set(re.findall(r"(\w+)\s*=(?!=)", call.span.source.text[last.end : call.span.end])) if call.span else set()
    names = [f.name for f in op.schema.values() if f.name not in named]
    if None in values or len(values) > len(names):
        return None
    begin = spans[count]
    assert begin is not None
    text = ", ".join(f"{name}={value}" for name, value in zip(names, values))
    span = Span(getattr(begin.source, "plain", begin.source), begin.start, last.end)
    return Fix(span, text, f"write `{text}`")


def attribute_text(node: Expr) -> str | None:
    """A number or a tuple of numbers as an attribute is written."""
    if isinstance(node, Tuple):
        parts = [attribute_text(field) for field in node.fields]
        return None if None in parts else f"[{', '.join(p for p in parts if p is not None)}]"
    if not isinstance(node, Constant) or node.span is None or node.data.ndim:
        return None
    text = node.span.text
    return text if re.fullmatch(_NUMBER, text) or text in ("True", "False") else None


def _plain(span: Span) -> Span:
    """The span by offsets, where its source counts tokens."""
    return Span(getattr(span.source, "plain", span.source), span.start, span.end)
