"""Actions for functions: of expressions and of the module."""

from __future__ import annotations

from typing import Any as AnyValue

from relaylang.diagnostics import error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Function, Var
from relaylang.syntax.actions.attributes import AttributeActions
from relaylang.syntax.actions.globals import FunctionNames, TypeNames
from relaylang.syntax.actions.locals import Locals, local_key, name_of
from relaylang.syntax.actions.metavalues import MetaValues
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.actions.types import tensor_type
from relaylang.syntax.literals import string


class Signature:
    """A function's head while it is read: its parameters, and the values that their names hide."""

    __slots__ = ("attrs", "binders", "hid", "name", "params", "ret_type", "seen")

    def __init__(self, name: str | None, binders: AnyValue) -> None:
        self.name = name
        self.binders = binders
        self.params: list[Var] = []
        self.attrs: list[AnyValue] = []
        self.hid: list[tuple[str, AnyValue]] = []
        self.seen: dict[str, int] = {}
        self.ret_type: AnyValue = None


class FunctionActions:
    """Makes functions. A parameter is `(token text, type, token)`, with its virtual device where it has one."""

    def __init__(
        self,
        reports: Reports,
        locals: Locals,
        functions: FunctionNames,
        types: TypeNames,
        attributes: AttributeActions,
        meta: MetaValues,
    ) -> None:
        self.reports = reports
        self.locals = locals
        self.functions = functions
        self.types = types
        self.attributes = attributes
        self.meta = meta

    # -- heads

    def on_fn_open(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.locals.fn_depth += 1
        return Signature(None, ())

    def on_fn_open_generic(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.locals.fn_depth += 1
        return Signature(None, v[1])

    def on_def_name(self, v: list[AnyValue], first: int, last: int) -> tuple[str, int]:
        self.locals.begin_definition()
        name = string(v[1][1:]) if v[1][1] == '"' else v[1][1:]
        return name, last

    def on_def_open(self, v: list[AnyValue], first: int, last: int) -> Signature:
        return self._declare(v[0], ())

    def on_def_open_generic(self, v: list[AnyValue], first: int, last: int) -> Signature:
        return self._declare(v[0], v[1])

    def _declare(self, head: tuple[str, int], binders: AnyValue) -> Signature:
        name, at = head
        self.functions.declare(name, at)
        return Signature(name, binders)

    def on_sig_end(self, v: list[AnyValue], first: int, last: int) -> Signature:
        return v[0]

    def on_sig_end_param(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self._add(v[0], v[1])
        return v[0]

    def on_sig_ret(self, v: list[AnyValue], first: int, last: int) -> Signature:
        v[0].ret_type = v[3]
        return v[0]

    def on_sig_ret_param(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self._add(v[0], v[1])
        v[0].ret_type = v[4]
        return v[0]

    # -- parameters

    def on_open_param(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self._add(v[0], v[1])
        return v[0]

    def _add(self, sig: Signature, item: AnyValue) -> None:
        """Enter a parameter or attributes into a signature."""
        if item.__class__ is not tuple or len(item) < 3:
            sig.attrs.append(item)
            return
        token, ty, at = item[:3]
        key = local_key(token)
        var = Var(name_of(key), ty, self.reports.span(at, at), *item[3:])
        before = sig.seen.setdefault(key, at)
        if before != at:
            self.reports.twice(f"parameter `{key}`", at, before)
        if sig.attrs:
            notes = ["attributes stand behind all parameters"]
            self.reports.add(error("R0101", "a parameter behind attributes", self.reports.place(at), notes=notes))
        sig.hid.append((key, self.locals.bind(key, var)))
        sig.params.append(var)

    def on_param_coarse(self, v: str, first: int, last: int) -> AnyValue:
        name, _, ty = v.partition(": ")
        return name, tensor_type(ty, first, self.reports), first

    def on_param_plain(self, v: str, first: int, last: int) -> AnyValue:
        return v, None, first

    def on_param_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], v[2], first

    def on_param_extras(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], None, first, self.attributes.virtual_device(v[2], first)

    def on_param_extras_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], v[5], first, self.attributes.virtual_device(v[2], first)

    def on_param_attrs(self, v: str, first: int, last: int) -> AnyValue:
        return v, first

    # -- functions

    def on_function(self, v: list[AnyValue], first: int, last: int) -> Function:
        sig = v[0]
        self.locals.fn_depth -= 1
        for key, hidden in reversed(sig.hid):
            self.locals.unbind(key, hidden)
        return self.function(sig, v[2], first, last)

    def function(self, sig: Signature, body: AnyValue, first: int, last: int) -> Function:
        """The function of a signature and a body. Ends the scope of its type parameters."""
        self.types.close_variables(sig.binders)
        attrs = self.attributes.values(sig.attrs) if sig.attrs else None
        binders = [b[2] for b in sig.binders]
        return Function(sig.params, body, sig.ret_type, binders, attrs, Span(self.reports.source, first, last))

    def on_def_function(self, v: list[AnyValue], first: int, last: int) -> None:
        sig = v[0]
        function = self.function(sig, v[2], first, last)
        self.locals.check_reused(function)
        self.locals.end_definition()
        self.functions.define(sig.name, function, first + 1)

    def on_def_external(self, v: list[AnyValue], first: int, last: int) -> None:
        name = string(v[1][1:]) if v[1][1] == '"' else v[1][1:]
        self.functions.declare(name, first + 1)
        value = self.meta.find(v[3], first + 3)
        if not isinstance(value, Function):
            span = self.reports.span(first, last)
            value = Function((), None, attrs={"external": value}, span=span)  # type: ignore[arg-type]
        self.functions.define(name, value, first + 1)


__all__ = ["FunctionActions", "Signature"]
