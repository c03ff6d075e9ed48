"""Actions for types and for definitions of types."""

from __future__ import annotations

from functools import cached_property
from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import Fix, did_you_mean, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constructor, MetaRef, TypeData
from relaylang.ir.extents import combine
from relaylang.ir.types import (
    ANY,
    POISON,
    SIGNS,
    FuncType,
    IncompleteType,
    RefType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    extent,
)
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.metavalues import MetaValues
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.literals import LiteralError, is_dtype, scalar
from relaylang.syntax.spellings import has_old_header
from relaylang.syntax.synonyms import OTHER_DTYPES

#: Types by text, shared by all readings. It holds only types that mean the same everywhere.
_TYPES: dict[str, Type] = {}
_KEPT = 50_000

_COMMON_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
)


#: Operators on extents in a text.
INFIX = {sign: key for key, (sign, _) in SIGNS.items()}
COMPUTATIONS = {key.removeprefix("tir.").lower(): key for key in ("tir.Min", "tir.Max", "tir.FloorMod", "tir.Div", "tir.Mod")}
_DIVISIONS = ("tir.FloorDiv", "tir.FloorMod", "tir.Div", "tir.Mod")


def _dims(text: str) -> tuple[AnyValue, ...]:
    parts = text.split(",")
    if not parts[-1].strip():
        parts.pop()
    return tuple([ANY if p == "?" else int(p) for p in map(str.strip, parts)])


def _keep(text: str, ty: Type) -> None:
    if len(text) < 400:
        if len(_TYPES) > _KEPT:
            _TYPES.clear()
        _TYPES[text] = ty


def tensor_type(text: str, at: int, reports: Reports) -> Type:
    """The type of a whole text `Tensor[(...), dtype]` at the end of token `at`; reports a wrong one."""
    ty = _TYPES.get(text)
    if ty is None:
        shape, _, dtype = text[8:-1].rpartition(")")
        dtype = dtype.lstrip(", ")
        if not is_dtype(dtype):
            start = text.rindex(dtype)
            offset = max(0, reports.source.end_of(at) - reports.source.start_of(at) - len(text)) + start
            _bad_dtype(dtype, reports.within(at, offset, offset + len(dtype)), reports)
            return POISON
        try:
            ty = TensorType(_dims(shape), dtype)
        except ValueError:
            title = "the shape is not a list of extents"
            reports.add(error("R0107", title, reports.place(at), "between two commas"))
            return POISON
        _keep(text, ty)
    return ty


def quiet_tensor_type(text: str, reports: Reports) -> Type | None:
    """The type of a text `Tensor[(...), dtype]`; None, and no diagnostic, where it is wrong."""
    said = reports.said
    count, errors = len(said.items), said.errors
    ty = tensor_type(text, 0, reports) if text.count("[") == 1 and text.endswith("]") else None
    if said.errors != errors:
        del said.items[count:]
        said.errors = errors
        return None
    return ty


def _bad_dtype(name: str, span: Span, reports: Reports) -> None:
    near = OTHER_DTYPES.get(name.lower()) or did_you_mean(name, _COMMON_DTYPES)
    fix = Fix(span, near, f"did you mean `{near}`?") if near else None
    known = "element types are bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, custom[name]32"
    reports.add(error("R0107", f"`{name[:60]}` is not an element type", span, fix=fix, notes=[known]))


def computed_extent(key: str, left: AnyValue, right: AnyValue, place: Span, reports: Reports) -> AnyValue:
    """The extent that an operator makes of two; `?` for a wrong one, which is reported."""
    wrong = "it divides by 0" if right == 0 and key in _DIVISIONS else ""
    made = ANY if wrong or left is ANY or right is ANY else combine(key, left, right)
    if made is ANY and left is not ANY and right is not ANY:
        wrong = wrong or "it is computed of too many others"
        reports.add(error("R0105", f"not an extent: {wrong}", place))
    return made


class TypeActions:
    """Makes types. `v` are a rule's values, `first` and `last` its tokens."""

    def __init__(self, reports: Reports, types: TypeNames, meta: MetaValues) -> None:
        self.reports = reports
        self.types = types
        self.meta = meta
        self.dims: dict[str, SymbolicDim] = {}
        #: The tokens of types that stand alone in parentheses, as tuples of one.
        self.alone: list[tuple[int, int]] = []

    @cached_property
    def _old(self) -> bool:
        """Whether TVM 0.6 or older wrote the text: there parentheses only group."""
        return has_old_header(self.reports.source.text)

    def on_t_tensor(self, v: str, first: int, last: int) -> Type:
        return _TYPES.get(v) or tensor_type(v, first, self.reports)

    def on_t_custom(self, v: str, first: int, last: int) -> Type:
        return TensorType((), v)

    def on_dtype(self, v: str, first: int, last: int) -> str:
        if not is_dtype(v):
            _bad_dtype(v, self.reports.place(first), self.reports)
            return ""
        return v

    def on_t_fine(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TensorType(v[3], v[6]) if v[6] else POISON

    def on_t_name(self, v: str, first: int, last: int) -> Type:
        var = self.types.variables.get(v)
        if var is not None:
            return var
        ty = _TYPES.get(v)
        if ty is not None:
            return ty
        if v == "_":
            return IncompleteType(span=self.reports.span(first, last))
        if is_dtype(v):
            ty = TensorType((), v)
            _keep(v, ty)
            return ty
        return TypeCall(self.types.var(v, first), (), self.reports.span(first, last))

    def _head(self, name: str, at: int) -> Type:
        return self.types.variables.get(name) or self.types.var(name, at)

    def on_t_call_empty(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TypeCall(self._head(v[0], first), (), self.reports.span(first, last))

    def on_t_call(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TypeCall(self._head(v[0], first), v[2], self.reports.span(first, last))

    def on_t_unit(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TupleType((), self.reports.span(first, last))

    def on_t_paren(self, v: list[AnyValue], first: int, last: int) -> Type:
        if self._old:
            return v[1]
        self.alone.append((first, last))
        return TupleType((v[1],), self.reports.span(first, last))

    def on_t_list_first(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [v[1]]

    def on_t_list_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append(v[1])
        return v[0]

    def on_t_tuple_end(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TupleType(v[0], self.reports.span(first, last))

    def on_t_tuple_last(self, v: list[AnyValue], first: int, last: int) -> Type:
        v[0].append(v[1])
        return TupleType(v[0], self.reports.span(first, last))

    def on_t_fn_open(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [()]

    def on_t_fn_open_generic(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [v[1]]

    def on_t_fn_end(self, v: list[AnyValue], first: int, last: int) -> Type:
        binders, *types = v[0]
        self.types.close_variables(binders)
        return FuncType(types, v[-1], [b[2] for b in binders], span=self.reports.span(first, last))

    def on_t_fn_last(self, v: list[AnyValue], first: int, last: int) -> Type:
        v[0].append(v[1])
        return self.on_t_fn_end(v, first, last)

    def on_t_ref(self, v: list[AnyValue], first: int, last: int) -> Type:
        return RefType(v[2], self.reports.span(first, last))

    def on_t_meta(self, v: str, first: int, last: int) -> Type:
        value = self.meta.find(v, first)
        if isinstance(value, Type):
            return value
        if not isinstance(value, MetaRef):
            self.meta.misplaced(v, first, value, "a type")
            return POISON
        return IncompleteType(span=self.reports.span(first, last))

    # -- extents

    def on_dims_none(self, v: AnyValue, first: int, last: int) -> list[AnyValue]:
        return []

    def on_dim_number(self, v: str, first: int, last: int) -> AnyValue:
        fix = None
        try:
            value, dtype = scalar(v)
            if not np.issubdtype(value.dtype, np.integer) and value == np.floor(value) and abs(value) < 2**31:
                fix = Fix(self.reports.place(first), str(int(value)), f"write `{int(value)}`")
            if not np.issubdtype(value.dtype, np.integer):
                raise LiteralError(f"{shown(v)} is not a whole number")
            return extent(int(value), dtype)
        except LiteralError as e:
            self.reports.add(error("R0105", f"not an extent: {e}", self.reports.place(first), fix=fix))
            return ANY

    def on_dim_any(self, v: str, first: int, last: int) -> AnyValue:
        return ANY

    def on_dim_name(self, v: str, first: int, last: int) -> AnyValue:
        var = self.types.variables.get(v)
        if var is None:
            notes = ["an extent that is not known is written `?`; `def @f[n](...)` declares `n`"]
            self.reports.unknown("R0207", "extent", v, self.reports.place(first), self.types.variables, "", notes)
            return ANY
        var.kind = "ShapeVar"
        return var

    def on_dim_meta(self, v: str, first: int, last: int) -> AnyValue:
        value = self.meta.find(v, first)
        if isinstance(value, (SymbolicDim, int)) or value is ANY:
            return value
        if isinstance(value, np.integer):
            return extent(int(value), value.dtype.name)
        if not isinstance(value, MetaRef):
            self.meta.misplaced(v, first, value, "an extent")
            return ANY
        dim = self.dims.get(v)
        if dim is None:
            dim = self.dims[v] = SymbolicDim(f"n{len(self.dims)}")
        return dim

    def on_dim_paren(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[1]

    def on_dim_infix(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return computed_extent(INFIX[v[1]], v[0], v[2], self.reports.span(first, last), self.reports)

    def on_dim_call(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        name = v[0].rstrip("(")
        key = COMPUTATIONS.get(name)
        if key is not None and len(v[1]) == 2:
            return computed_extent(key, v[1][0], v[1][1], self.reports.span(first, last), self.reports)
        near = did_you_mean(name, COMPUTATIONS)
        fix = Fix(self.reports.place(first), f"{near}(", f"did you mean `{near}`?") if key is None and near else None
        what = f"`{name}` takes two extents, not {len(v[1])}" if key else f"`{name}` computes no extent"
        notes = [f"extents are computed by +, -, *, / and {', '.join(COMPUTATIONS)}"]
        self.reports.add(error("R0105", f"not an extent: {what}", self.reports.place(first), fix=fix, notes=notes))
        return ANY

    # -- type parameters

    def on_tvar_first(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [(v[1], last)]

    def on_tvar_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append((v[2], last))
        return v[0]

    def on_tvars(self, v: list[AnyValue], first: int, last: int) -> list[tuple[str, TypeVar | None, TypeVar]]:
        return self.types.open_variables(v[0])


class DataTypeActions:
    """Makes definitions of types with their constructors."""

    def __init__(self, reports: Reports, types: TypeNames) -> None:
        self.reports = reports
        self.types = types

    def on_type_name(self, v: str, first: int, last: int) -> AnyValue:
        return v, first, ()

    def on_type_name_generic(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], first, v[1]

    def on_ctor_plain(self, v: str, first: int, last: int) -> AnyValue:
        return v, (), first, last

    def on_ctor_empty(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0].rstrip("("), (), first, last

    def on_ctor_args(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0][:-1], v[1], first, last

    def on_ctor_spaced(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], v[2], first, last

    def on_data_empty(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], (), first, last

    def on_data_args(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], v[3], first, last

    def on_def_type_empty(self, v: list[AnyValue], first: int, last: int) -> None:
        self._define(v[1], [], first, last)

    def on_def_type(self, v: list[AnyValue], first: int, last: int) -> None:
        self._define(v[1], v[3], first, last)

    def on_def_extern(self, v: list[AnyValue], first: int, last: int) -> None:
        self._define(v[2], [], first, last, extern=True)

    def _define(self, head: AnyValue, ctors: list[AnyValue], first: int, last: int, extern: bool = False) -> None:
        """Enter a type definition and its constructors into the module."""
        name, at, binders = head
        types, reports = self.types, self.reports
        known = types.defined.get(name)
        if known is not None:
            reports.twice(f"type `{name}`", at, known)
            types.close_variables(binders)
            return
        types.defined[name] = at
        var = types.var(name, at, define=True)
        constructors: list[Constructor] = []
        for ctor_name, inputs, ctor_first, ctor_last in filter(None, ctors):
            before = types.defined_constructors.get(ctor_name)
            if before is not None:
                reports.twice(f"constructor `{ctor_name}`", ctor_first, before)
                continue
            types.defined_constructors[ctor_name] = ctor_first
            span = reports.span(ctor_first, ctor_last)
            ctor = types.promised.pop(ctor_name, None)
            if ctor is None:
                ctor = Constructor(ctor_name, inputs, var, span=span)
            else:  # the text used it above its definition
                ctor.inputs, ctor.belong_to, ctor.span = tuple(inputs), var, span
            types.constructors[ctor_name] = ctor
            constructors.append(ctor)
        types.close_variables(binders)
        types.made[var] = TypeData(var, [b[2] for b in binders], constructors, extern, reports.span(first, last))


__all__ = ["COMPUTATIONS", "INFIX", "DataTypeActions", "TypeActions", "computed_extent", "quiet_tensor_type", "tensor_type"]
