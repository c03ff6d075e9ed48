"""Attributes as they stand in Relay text: those of operator calls, of functions and of modules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any as AnyValue

import numpy as np

from relaylang.ir.expr import Constant, GlobalVar, MetaRef, RawAttrs
from relaylang.ir.types import ANY, ComputedDim, Dim, Extent, SymbolicDim, Type, TypeVar, dim_text, type_text
from relaylang.syntax.literal_text import (
    SUFFIXES,
    TVM_SCALARS,
    float_text,
    scalar_text,
    string_text,
    tvm_float_text,
    tvm_string_text,
)
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.syntax.name_text import global_text, key_text


def _float_text(value: float) -> str:
    """A number as an attribute: its shortest digits, with an `f` where float32 has a number near it."""
    size = abs(value)
    bare = size < 1.2e-38 or 3.4e38 < size
    return float_text(value) + ("" if bare and size not in (0.0, float("inf")) else "f")


class AttributeText:
    """Writes attributes in one style. `meta(type_key, value)` gives the `meta[...]` text of a value without a literal.

    `section` is whether the printout has a metadata section. With one, TVM puts maps there. `extent` gives the text of an
    extent that is no number.
    """

    def __init__(
        self, style: str, meta: Callable[[str, AnyValue], str], section: bool = True, extent: Callable[[Dim], str] = dim_text
    ) -> None:
        self._tvm = style == "tvm"
        self._section = section
        self._style = style
        self._meta = meta
        self._extent = extent
        self._string = tvm_string_text if self._tvm else string_text
        self._plans: dict[type, list[tuple[str, str, AnyValue, bool]]] = {}

    def value(self, value: AnyValue) -> str:
        """One attribute value. Recursive: how deep lists nest does not grow with the program."""
        kind = type(value)
        if kind is str:
            return self._string(value)
        if kind is int:
            return str(value)
        if kind is bool:
            return "True" if value else "False"
        if kind is float:
            return (tvm_float_text(value) + "f") if self._tvm else _float_text(value)
        if value is None:
            return "None"
        if kind is tuple or kind is list:
            return "[" + ", ".join([self.value(v) for v in value]) + "]"
        return self._other(value)

    def _other(self, value: AnyValue) -> str:
        if value is ANY:
            return "?"
        if isinstance(value, Extent):
            return dim_text(value)
        if isinstance(value, np.generic):
            dtype = value.dtype.name
            if dtype in SUFFIXES or dtype == "bool":
                if self._tvm and dtype not in TVM_SCALARS:
                    return str(int(value.item()))
                text = scalar_text(np.asarray(value), dtype, self._style)
                if text is not None:
                    return text
            return self.value(value.item())
        if isinstance(value, np.ndarray):
            return self._meta("relay.Constant", Constant(value))
        if isinstance(value, (Constant, MetaNode)):
            return self._meta("relay.Constant" if isinstance(value, Constant) else value.type_key, value)
        if isinstance(value, MetaRef):
            return value.name_hint
        if isinstance(value, SymbolicDim) and (self._tvm or not isinstance(value, ComputedDim)):
            return self._meta(value.type_key, value)
        if isinstance(value, TypeVar):
            return value.name_hint if self._tvm else self._extent(value)
        if isinstance(value, Type):
            return type_text(value)
        if isinstance(value, GlobalVar):
            if not self._tvm:
                return global_text(value.name_hint)
            return self._meta("GlobalVar", value) if self._section else f"'{value.name_hint}'"
        if isinstance(value, Mapping):
            if self._tvm and self._section:
                return self._meta("Map", value)
            sign = "=" if self._tvm else ": "
            return "{" + ", ".join(f"{self.value(k)}{sign}{self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, (bool, int, float, str)):
            base = next(t for t in (bool, int, float, str) if isinstance(value, t))
            return self.value(base(value))
        if isinstance(value, (list, tuple)):
            return self.value(list(value))
        if dataclasses.is_dataclass(value):
            names = [f.name for f in dataclasses.fields(value)]
            return "{" + ", ".join(f"{self._string(n)}={self.value(getattr(value, n))}" for n in names) + "}"
        return self._string(str(value))

    def call(self, attrs: AnyValue, callee_has_schema: bool) -> list[str]:
        """The `key=value` texts of a call's attributes that differ from their default or have none."""
        if isinstance(attrs, RawAttrs):
            if callee_has_schema:
                return [self._meta(attrs.type_key, attrs)]
            out = self.dictionary(attrs.values)
            return [*out, f"attrs_type_key={self._string(attrs.type_key)}"] if attrs.type_key else out
        if self._tvm and self._section and callee_has_schema and type(attrs).in_metadata:
            return [self._meta(type(attrs).type_key, attrs)]
        plan = self._plans.get(type(attrs))
        if plan is None:
            schema = type(attrs).schema
            plan = [(f.name, f.name + "=", f.default, f.required) for f in schema.values()]
            self._plans[type(attrs)] = plan
        out = []
        for name, key, default, required in plan:
            value = getattr(attrs, name)
            if value is default and not required:
                continue
            wide = type(value) is tuple and Extent in map(type, value)  # `[1i64]` equals `[1]` by its value
            if required or wide or type(value) is not type(default) or value != default:
                out.append(key + self.value(value))
        if not callee_has_schema:
            out.append(f"attrs_type_key={self._string(type(attrs).type_key)}")
        return out

    def dictionary(self, values: Mapping[str, AnyValue]) -> list[str]:
        """A function's attributes in the order in which they were given."""
        if self._tvm:
            return [f"{k}={self.value(v)}" for k, v in values.items()]
        return [f"{key_text(k)}={self.value(v)}" for k, v in values.items()]
