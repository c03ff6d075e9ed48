"""Documentation of operators from their records: signature, attributes, type rule, and an example that checks."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, Function, FuncType, TensorType, Tuple, Type, Var, is_incomplete, type_text, var
from relaylang.ir.visit import free_vars
from relaylang.ops import OPS
from relaylang.ops.record import AttrError, AttrField, Op, OpPattern, make_attrs
from relaylang.syntax import astext, parse, parse_expr
from relaylang.typing import infer

_WORDS = {
    "Ints": "list of whole numbers",
    "NestedInts": "list of lists of whole numbers",
    "Floats": "list of numbers",
    "AnyAttr": "any value",
    "int": "whole number",
    "float": "number",
    "bool": "True or False",
    "str": "string",
}
_PATTERNS = {
    OpPattern.ELEMWISE: "element by element",
    OpPattern.BROADCAST: "element by element, broadcast",
    OpPattern.INJECTIVE: "each result from one element",
    OpPattern.COMM_REDUCE: "reduces",
    OpPattern.OUT_ELEMWISE_FUSABLE: "takes element-wise operators behind it",
    OpPattern.TUPLE: "a tuple",
    OpPattern.OPAQUE: "stands alone",
}
#: How many calls are tried for an example.
_MOST_TRIES = 600


def value_text(value: Any) -> str:
    """An attribute's value as Relay text has it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return str(value)


def kind_text(field: AttrField) -> str:
    """`list of whole numbers, or None`"""
    return _WORDS.get(field.kind, field.kind) + (", or None" if field.optional else "")


def default_text(field: AttrField) -> str:
    """`default [1, 1]`, or `must be given`"""
    return "must be given" if field.required and not field.optional else f"default {value_text(field.default)}"


def parameters(op: Op) -> list[str]:
    """The arguments and attributes as a signature shows them: `data`, `units: int | None`, `axis: int = -1`."""
    parts = [f"*{a}" for a in op.args[-1:]] if op.variadic else list(op.args)
    for f in op.schema.values():
        kind = f.kind + (" | None" if f.optional else "")
        parts.append(f"{f.name}: {kind}" + ("" if f.required else f" = {value_text(f.default)}"))
    return parts


def type_rule(op: Op) -> str:
    """The documentation of its relation, or the treatment of its arguments' types."""
    doc = inspect.getdoc(op.rel) or ""
    return " ".join(doc.split("\n\n")[0].split())


def doc_text(op: Op, columns: int = 100) -> str:
    """All of it, for `:doc`; sentences in so many columns."""
    lines = textwrap.wrap(op.signature(), columns, subsequent_indent="    ", break_on_hyphens=False)
    lines += _sentences(op.doc or "", columns)
    width = max([len(f) for f in op.schema] + [len(a) for a in op.args] + [0])
    if op.args:
        lines.append("arguments:")
        lines += [f"  {a}" for a in (op.args[-1:] if op.variadic else op.args)]
        if op.variadic:
            lines[-1] += "  (any number of them)"
    if op.schema:
        lines.append("attributes:")
        lines += [f"  {f.name:<{width}}  {kind_text(f)}; {default_text(f)}" for f in op.schema.values()]
    rule = type_rule(op)
    if rule:
        lines += ["type:", *_sentences(rule, columns)]
    shown = example(op)
    if shown is not None:
        lines += ["example:", *(f"  {line}" for line in shown.text.split("\n")), f"  : {shown.result}"]
    lines.append(f"fusion: {_PATTERNS[op.pattern]}")
    return "\n".join(lines)


def _sentences(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


class Example:
    """A call that checks. `text` is the function or module around it, `result` its result's type."""

    def __init__(self, text: str, result: str, function: Function, language: str = "relay") -> None:
        self.language = language
        self.text = text
        self.result = result
        self.function = function


def _tensors(dtype: str, *shapes: Sequence[int]) -> list[Type]:
    return [TensorType(tuple(s), dtype) for s in shapes]


_FIRST = [
    *_tensors("float32", (2, 3), (1, 3, 8, 8), (4,), (1, 4, 8), (1, 3, 6, 8, 8), ()),
    *_tensors("int32", (2, 3), (4,), ()),
    *_tensors("bool", (2, 3), ()),
    *_tensors("int8", (2, 3), (1, 3, 8, 8)),
    *_tensors("uint8", (2, 3)),
    *_tensors("uint64", (10,)),
    *_tensors("int64", (2,), ()),
]
_OTHERS = [
    *_tensors("float32", (1, 8, 5), (1, 5, 8), (3, 4)),
    *_tensors("float32", (4, 3), (4, 3, 3, 3), (3,), (2, 3), (), (3, 4, 3, 3), (2, 4), (4, 4, 3), (4, 3, 3, 3, 3), (1, 4, 8)),
    *_tensors("int32", (2,), (2, 3), (), (4,)),
    *_tensors("bool", (2, 3)),
    *_tensors("int8", (4, 3), (4, 3, 3, 3), (2, 3)),
    *_tensors("int64", (2,), (2, 3), (4,), (3,), ()),
    *_tensors("float32", (1, 8, 8, 2), (5, 5), (4,)),
    *_tensors("uint64", (10,)),
]
_ATTRS: dict[str, list[Any]] = {
    "units": [4],
    "channels": [4],
    "shape": [(2, 3)],
    "newshape": [(-1,), (3, 2)],
    "dtype": ["float32", "int32"],
    "out_dtype": ["int32", "float32"],
    "axis": [1, 0],
    "axes": [(1, 0), None],
    "kernel_size": [(3, 3), (3, 3, 3), (3,), None],
    "pool_size": [(2, 2), (2,), (2, 2, 2)],
    "begin": [(0, 0)],
    "end": [(1, 2)],
    "size": [(16, 16)],
    "reps": [(2, 1)],
    "repeats": [2],
    "indices_or_sections": [1, 3, (1,)],
    "pad_width": [((0, 0), (1, 1))],
    "src_layout": ["NCHW"],
    "dst_layout": ["NHWC"],
    "block_size": [2],
    "depth": [4],
    "block_shape": [(2, 2)],
    "crops": [((0, 0), (0, 0))],
    "paddings": [((0, 0), (0, 0))],
    "a_min": [0.0],
    "a_max": [6.0],
    "num_newaxis": [1],
    "num_inputs": [2],
    "subscripts": [None],
    "equation": ["ij,jk->ik", "ij->ji"],
    "clip_val": [127.0],
    "out_shape": [(2, 3)],
    "k": [2],
}
#: What many operators want although it may be None.
_OFTEN_WANTED = frozenset({"axis", "dtype", "out_dtype", "size", "out_shape", "shape", "axes", "equation"})
_BY_KIND: dict[str, list[Any]] = {
    "int": [1, 0],
    "float": [1.0],
    "bool": [False],
    "str": ["float32", "NCHW"],
    "Ints": [(1, 1), (0,), (2, 3)],
    "NestedInts": [((0, 0), (0, 0))],
    "Floats": [(1.0,)],
    "AnyAttr": [1],
}


def _attrs(op: Op) -> Iterator[Any]:
    """Attributes to try: what must be given, in a few ways."""
    if op.attrs is None:
        yield None
        return
    least = [f for f in op.schema.values() if f.required]
    more = [f for f in op.schema.values() if not f.required and f.default is None and f.name in _OFTEN_WANTED]
    for wanted in (least, least + more) if more else (least,):
        choices = [_ATTRS.get(f.name, _BY_KIND.get(f.kind, [None])) for f in wanted]
        for values in itertools.islice(itertools.product(*choices), 4):
            try:
                yield make_attrs(op.attrs, dict(zip((f.name for f in wanted), values)))
            except AttrError:
                continue


def _by_name(names: Sequence[str]) -> Iterator[tuple[Type, ...]]:
    """Types for arguments whose names say what they are."""
    tensors = [
        (((1, 3, 8, 8), "float32"), ((4, 3, 3, 3), "float32")),
        (((2, 3), "int8"), ((4, 3), "int8")),
        (((1, 3, 8, 8), "int8"), ((4, 3, 3, 3), "int8")),
        (((1, 3, 8, 8), "int32"), ((3, 4, 3, 3), "int8")),
        (((1, 2, 3), "int8"), ((1, 4, 3), "int8")),
        (((1, 3, 6, 8, 8), "float32"), ((3, 4, 3, 3, 3), "float32")),
        (((2, 3), "int32"), ((2, 3), "int32")),
    ]
    told = {"weight", "kernel", "y", "rhs", "tensor_b"}
    if not any("scale" in n or n in told for n in names):
        return
    for (shape, dtype), (other, other_dtype) in tensors:
        out: list[Type] = []
        for n in names:
            if "scale" in n:
                out.append(TensorType((), "float32"))
            elif "zero_point" in n:
                out.append(TensorType((), "int32"))
            else:
                out.append(TensorType(other, other_dtype) if n in ("weight", "kernel", "tensor_b") else TensorType(shape, dtype))
        yield tuple(out)


def _arguments(count: int) -> Iterator[tuple[Type, ...]]:
    """Types to try for that many arguments: all the same first, then others in the order of their likeliness."""
    if count == 0:
        yield ()
        return
    for ty in _FIRST:
        yield (ty,) * count
    if count == 1:
        return
    quantum = (TensorType((), "float32"), TensorType((), "int32"))
    if count == 3:
        yield from ((ty, *quantum) for ty in (TensorType((2, 3), "float32"), TensorType((2, 3), "int8")))
    for rest in itertools.product(_OTHERS, repeat=min(count - 1, 2)):
        for first in _FIRST[:6]:
            yield (first, *rest, *(rest[-1:] * (count - 1 - len(rest))))


def _written(op: Op) -> Example | None:
    """The record's example, where it checks: a function's text, a module's, or Python that makes a call."""
    if not op.example:
        return None
    text, language = op.example, "relay"
    if text.startswith("fn "):
        function: Any = parse_expr(text)
        wrong = infer(function)
    elif "def @main" in text:
        module = parse(text).module
        assert module is not None
        function, wrong = module["main"], infer(module)
    else:
        function, language = _called(text), "python"
        wrong = infer(function)
    ty = function.checked_type
    if any(d.severity == "error" for d in wrong) or not isinstance(ty, FuncType):
        return None
    return Example(text, type_text(ty.ret_type), function, language)


def _called(text: str) -> Function:
    """A function around the call that the last line of a Python text makes."""
    *before, last = ast.parse(text).body
    names: dict[str, Any] = {"OPS": OPS, "Call": Call, "make_attrs": make_attrs, "var": var}
    exec(compile(ast.Module(before, []), "example", "exec"), names)
    assert isinstance(last, ast.Expr)
    call = eval(compile(ast.Expression(last.value), "example", "eval"), names)
    return Function(free_vars(call), call)


@lru_cache(maxsize=512)
def example(op: Op) -> Example | None:
    """A call of the operator whose types check, found by trying; None where none of a few hundred does."""
    written = _written(op)
    if written is not None:
        return written
    names = list(op.args) if not op.variadic else [op.args[-1]] * 2 if op.args else ["x", "y"]
    names = [n if names.count(n) == 1 else f"{n}{i}" for i, n in enumerate(names)]
    tries = 0
    for types in itertools.chain(_by_name(names), _arguments(len(names))):
        for attrs in _attrs(op):
            tries += 1
            if tries > _MOST_TRIES:
                return None
            working = _try(op, names, types, attrs)
            if working is not None:
                return working
    return None


def _try(op: Op, names: Sequence[str], types: Sequence[Type], attrs: Any) -> Example | None:
    for as_tuple in (False, True) if len(names) == 1 else (False,):
        if as_tuple:
            params = [Var("x", types[0]), Var("y", types[0])]
            arguments: list[Expr] = [Tuple(params)]
        else:
            params = [Var(n, t) for n, t in zip(names, types)]
            arguments = list(params)
        function = Function(params, Call(op, arguments, attrs))
        try:
            wrong = any(d.severity == "error" for d in infer(function))
        except (RelayError, ArithmeticError, LookupError, TypeError, ValueError):
            continue
        ty = function.checked_type
        if wrong or not isinstance(ty, FuncType) or is_incomplete(ty.ret_type):
            continue
        text = " ".join(astext(function, show_types=False, show_meta_data=False, header=False).split())
        return Example(text, type_text(ty.ret_type), function)
    return None
