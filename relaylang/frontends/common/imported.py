"""The result of an import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relaylang.diagnostics import Diagnostic
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.listing import Listing
from relaylang.ir import Expr, Function, FuncType, IRModule, Var, free_vars
from relaylang.ir.typed import typed
from relaylang.passes.analysis import free_type_vars
from relaylang.passes.layout.convert_layout import ConvertLayout


@dataclass
class Imported:
    """A module whose `@main` is the network, the values of its parameters, and notes about the conversion."""

    module: IRModule
    params: dict[str, np.ndarray]
    listing: Listing
    notes: list[Diagnostic] = field(default_factory=list)


def finish(builder: Builder, inputs: Sequence[Var], outputs: Sequence[Expr]) -> Imported:
    """Put the program together: `@main` has the model's inputs, then its weights where they are not constants.

    Nothing gives weights to the functions beside `@main`, so they are constants there.

    Raises `RelayError` with the table of all layers that were not converted.
    """
    if not builder.options.partial:
        builder.report.raise_if_any()
    body = outputs[0] if len(outputs) == 1 else builder.tuple(list(outputs))
    own = set(inputs)
    weights = [v for v in free_vars(body) if v not in own]
    for name in builder.module.functions:
        builder.module[name] = _polymorphic(builder, builder.frozen(builder.module[name]))
    builder.module["main"] = _polymorphic(builder, builder.function([*inputs, *weights], body))
    if builder.options.layout:
        builder.module = in_layout(builder.module, builder.options.layout)
    params = {v.name_hint: builder.params[v.name_hint] for v in weights}
    left = builder.report.diagnostic("warning")
    return Imported(builder.module, params, builder.listing, [*([left] if left is not None else []), *builder.report.warnings])


def _polymorphic(builder: Builder, function: Function) -> Function:
    """The function over the named extents of its types."""
    if not builder.extents:
        return function
    own = [v for v in free_type_vars(function) if v.kind == "ShapeVar"]
    ty = function.checked_type
    assert isinstance(ty, FuncType)
    if not own:
        return function
    ty = FuncType(ty.arg_types, ty.ret_type, [*ty.type_params, *own])
    return typed(Function(function.params, function.body, function.ret_type, ty.type_params, function.attrs, function.span), ty)


def in_layout(mod: IRModule, layout: str) -> IRModule:
    """The module with convolutions and pools in the layout "NHWC" or "NCHW"."""
    wanted = {op: [layout, "default"] for op in ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")}
    wanted |= {op: [layout] for op in ("nn.max_pool2d", "nn.avg_pool2d")}
    return ConvertLayout(wanted)(mod)


__all__ = ["Imported", "finish", "in_layout"]
