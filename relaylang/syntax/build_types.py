"""Reduce actions for types and type definitions."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import Fix, did_you_mean, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constructor, TypeData
from relaylang.ir.types import (
    ANY,
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
from relaylang.syntax.othernames import OTHER_DTYPES
from relaylang.syntax.scope import Scope, shown
from relaylang.syntax.values import LiteralError, is_dtype, scalar

#: Types by text, shared by everything that is read. Only types that mean the same everywhere are in it.
_TYPES: dict[str, Type] = {}
_KEPT = 50_000

_COMMON_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bfloat16",
)  # fmt: skip


def _dims(text: str) -> tuple[AnyValue, ...]:
    parts = text.split(",")
    if not parts[-1].strip():
        parts.pop()
    return tuple([ANY if p == "?" else int(p) for p in map(str.strip, parts)])


class TypeActions(Scope):
    """What is made where a rule of a type is reduced. `v` are the rule's values, `first` and `last` its tokens."""

    def tensor_type(self, text: str, at: int) -> Type:
        """A type from its whole text `Tensor[(...), dtype]`."""
        ty = _TYPES.get(text)
        if ty is None:
            shape, _, dtype = text[8:-1].rpartition(")")
            dtype = dtype.lstrip(", ")
            if not is_dtype(dtype):
                start = text.rindex(dtype)
                self.bad_dtype(dtype, self.token_part(at, text, start, start + len(dtype)))
                return IncompleteType()
            try:
                ty = TensorType(_dims(shape), dtype)
            except ValueError:
                self.report(error("R0107", "the shape is not a list of extents", self.place(at), "between two commas"))
                return IncompleteType()
            self.keep_type(text, ty)
        return ty

    def token_part(self, at: int, text: str, start: int, end: int) -> Span:
        """The span of a part of `text`, which stands at the end of token `at`."""
        offset = max(0, self.source.end_of(at) - self.source.start_of(at) - len(text))
        return self.within(at, offset + start, offset + end)

    def keep_type(self, text: str, ty: Type) -> None:
        if len(text) < 400:
            if len(_TYPES) > _KEPT:
                _TYPES.clear()
            _TYPES[text] = ty

    def bad_dtype(self, name: str, span: Span) -> None:
        near = OTHER_DTYPES.get(name.lower()) or did_you_mean(name, _COMMON_DTYPES)
        self.report(
            error(
                "R0107",
                f"`{name[:60]}` is not an element type",
                span,
                fix=Fix(span, near, f"did you mean `{near}`?") if near else None,
                notes=[
                    "element types are bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, custom[name]32"
                ],
            )
        )

    def on_t_tensor(self, v: str, first: int, last: int) -> Type:
        return _TYPES.get(v) or self.tensor_type(v, first)

    def on_t_custom(self, v: str, first: int, last: int) -> Type:
        return TensorType((), v)

    def on_dtype(self, v: str, first: int, last: int) -> str:
        if not is_dtype(v):
            self.bad_dtype(v, self.place(first))
            return "float32"
        return v

    def on_t_fine(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TensorType(v[3], v[6])

    def on_dims_none(self, v: AnyValue, first: int, last: int) -> list[AnyValue]:
        return []

    def on_dim_number(self, v: str, first: int, last: int) -> AnyValue:
        try:
            value, dtype = scalar(v)
            if not np.issubdtype(value.dtype, np.integer):
                raise LiteralError(f"{shown(v)} is not a whole number")
            return extent(int(value), dtype)
        except LiteralError as e:
            self.report(error("R0105", f"not an extent: {e}", self.place(first)))
            return ANY

    def on_dim_any(self, v: str, first: int, last: int) -> AnyValue:
        return ANY

    def on_dim_name(self, v: str, first: int, last: int) -> AnyValue:
        var = self.type_vars.get(v)
        if var is None:
            notes = ["an extent that is not known is written `?`; `def @f[n](...)` declares `n`"]
            self.unknown("R0207", "extent", v, self.place(first), self.type_vars, "", notes)
            return ANY
        var.kind = "ShapeVar"
        return var

    def on_dim_meta(self, v: str, first: int, last: int) -> AnyValue:
        value = self.meta_value(v, first)
        if isinstance(value, (SymbolicDim, int)) or value is ANY:
            return value
        dim = self.dim_metas.get(v)
        if dim is None:
            dim = self.dim_metas[v] = SymbolicDim(f"n{len(self.dim_metas)}")
        return dim

    def on_t_name(self, v: str, first: int, last: int) -> Type:
        var = self.type_vars.get(v)
        if var is not None:
            return var
        ty = _TYPES.get(v)
        if ty is not None:
            return ty
        if v == "_":
            return IncompleteType(span=self.span(first, last))
        if is_dtype(v):
            ty = TensorType((), v)
            self.keep_type(v, ty)
            return ty
        return TypeCall(self.global_type(v, first), (), self.span(first, last))

    def _head(self, name: str, at: int) -> Type:
        return self.type_vars.get(name) or self.global_type(name, at)

    def on_t_call_empty(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TypeCall(self._head(v[0], first), (), self.span(first, last))

    def on_t_call(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TypeCall(self._head(v[0], first), v[2], self.span(first, last))

    def on_t_unit(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TupleType((), self.span(first, last))

    def on_t_paren(self, v: list[AnyValue], first: int, last: int) -> Type:
        return v[1]

    def on_t_list_first(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [v[1]]

    def on_t_list_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append(v[1])
        return v[0]

    def on_t_tuple_end(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TupleType(v[0], self.span(first, last))

    def on_t_tuple_last(self, v: list[AnyValue], first: int, last: int) -> Type:
        v[0].append(v[1])
        return TupleType(v[0], self.span(first, last))

    def on_t_fn_open(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [()]

    def on_t_fn_open_generic(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [v[1]]

    def on_t_fn_end(self, v: list[AnyValue], first: int, last: int) -> Type:
        binders, *types = v[0]
        self.close_type_vars(binders)
        return FuncType(types, v[-1], [b[2] for b in binders], span=self.span(first, last))

    def on_t_fn_last(self, v: list[AnyValue], first: int, last: int) -> Type:
        v[0].append(v[1])
        return self.on_t_fn_end(v, first, last)

    def on_t_ref(self, v: list[AnyValue], first: int, last: int) -> Type:
        return RefType(v[2], self.span(first, last))

    def on_t_meta(self, v: str, first: int, last: int) -> Type:
        value = self.meta_value(v, first)
        return value if isinstance(value, Type) else IncompleteType(span=self.span(first, last))

    # -- type parameters

    def on_tvar_first(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [(v[1], last)]

    def on_tvar_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append((v[2], last))
        return v[0]

    def on_tvars(self, v: list[AnyValue], first: int, last: int) -> list[tuple[str, TypeVar | None, TypeVar]]:
        opened = []
        seen: dict[str, int] = {}
        for name, at in v[0]:
            if name in seen:
                self.twice(f"type parameter `{name}`", at, seen[name])
            seen[name] = at
            var = TypeVar(name, span=self.span(at, at))
            opened.append((name, self.type_vars.get(name), var))
            self.type_vars[name] = var
        return opened

    # -- definitions

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
        self.define_type(v[1], [], first, last)

    def on_def_type(self, v: list[AnyValue], first: int, last: int) -> None:
        self.define_type(v[1], v[3], first, last)

    def on_def_extern(self, v: list[AnyValue], first: int, last: int) -> None:
        self.define_type(v[2], [], first, last, extern=True)

    def define_type(self, head: AnyValue, ctors: list[AnyValue], first: int, last: int, extern: bool = False) -> None:
        """Enter a type definition and its constructors into the module that is being read."""
        name, at, binders = head
        known = self.defined_types.get(name)
        if known is not None:
            self.twice(f"type `{name}`", at, known)
            self.close_type_vars(binders)
            return
        self.defined_types[name] = at
        var = self.global_type(name, at, define=True)
        made: list[Constructor] = []
        for ctor_name, inputs, ctor_first, ctor_last in ctors:
            before = self.defined_ctors.get(ctor_name)
            if before is not None:
                self.twice(f"constructor `{ctor_name}`", ctor_first, before)
                continue
            self.defined_ctors[ctor_name] = ctor_first
            span = self.span(ctor_first, ctor_last)
            ctor = self.promised_ctors.pop(ctor_name, None)
            if ctor is None:
                ctor = Constructor(ctor_name, inputs, var, span=span)
            else:  # it was used above its definition
                ctor.inputs, ctor.belong_to, ctor.span = tuple(inputs), var, span
            self.ctors[ctor_name] = ctor
            made.append(ctor)
        self.close_type_vars(binders)
        self.types[var] = TypeData(var, [b[2] for b in binders], made, extern, self.span(first, last))
