"""FlexibleShapeDispatch: one program for several extents of an axis, each with a function of its own.

    mod = FlexibleShapeDispatch(buckets=[1, 4], auto_pad=True)(mod)

The extent of an input chooses the function. All other extents go to a function that takes any. With `auto_pad` an input is
filled up to the next of the known extents, and the outputs are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    ANY,
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    TensorType,
    TupleType,
    Type,
    Var,
    const,
)
from relaylang.ops.build import op_call
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import with_inputs
from relaylang.typing import check


def with_extent(ty: Type | None, axis: int, extent: Any) -> Type:
    """A tensor type, or a tuple of such, with another extent of an axis. Raises `RelayError` (R0501)."""
    if isinstance(ty, TupleType):
        return TupleType([with_extent(f, axis, extent) for f in ty.fields])
    if not isinstance(ty, TensorType) or not -len(ty.shape) <= axis < len(ty.shape):
        raise RelayError(error("R0501", f"there is no axis {axis} in {ty!r}"))
    shape = list(ty.shape)
    shape[axis] = extent
    return TensorType(shape, ty.dtype)


class _Dispatch:
    def __init__(self, mod: IRModule, options: FlexibleShapeDispatch) -> None:
        self.options = options
        self.main = mod["main"]
        self.made = IRModule(mod.functions, mod.type_definitions, mod.attrs)
        assert isinstance(self.main.checked_type, FuncType)
        self.result = self.main.checked_type.ret_type
        self.flexible = tuple(options.input_indices or (0,))
        if any(not 0 <= i < len(self.main.params) for i in self.flexible):
            raise RelayError(error("R0501", f"FlexibleShapeDispatch: @main has {len(self.main.params)} inputs", self.main.span))

    def type_of(self, param: Var, extent: Any) -> Type:
        return with_extent(param.checked_type, self.options.axis, extent)

    def returned(self, extent: Any) -> Type | None:
        """The type that a function says to return: none where @main says none, for its text may be long."""
        if self.main.ret_type is None:
            return None
        return with_extent(self.result, self.options.axis, extent) if self.options.affects_output else self.result

    def specialised(self, extent: Any) -> GlobalVar:
        """A function of the module for one extent."""
        types = {p: self.type_of(p, extent) for i, p in enumerate(self.main.params) if i in self.flexible}
        name = GlobalVar(f"main_{extent if isinstance(extent, int) else '?'}")
        self.made[name] = with_inputs(self.main, types, self.returned(extent))
        return name

    def call(self, callee: GlobalVar, inputs: dict[int, Expr], params: Sequence[Var]) -> Expr:
        return Call(callee, [inputs.get(i, p) for i, p in enumerate(params)])

    def run(self) -> IRModule:
        options, axis = self.options, self.options.axis
        params = [
            Var(p.name_hint, self.type_of(p, ANY) if i in self.flexible else p.checked_type, p.span)
            for i, p in enumerate(self.main.params)
        ]
        inputs_at: dict[int, Expr] = {i: params[i] for i in self.flexible}
        extent = _extent(inputs_at[self.flexible[0]], axis)
        cases: list[tuple[Expr, Expr]] = []
        before: int | None = None
        for bucket in options.buckets:
            inputs, matched_extent = inputs_at, extent
            if options.auto_pad:
                inputs = {i: self.padded(x, extent, before, bucket) for i, x in inputs_at.items()}
                matched_extent = _extent(inputs[self.flexible[0]], axis)
            known: dict[int, Expr] = {}
            for i, x in inputs.items():
                ty = self.type_of(self.main.params[i], bucket)
                assert isinstance(ty, TensorType)
                known[i] = op_call("reshape", [x], newshape=list(ty.shape))
            result = self.call(self.specialised(bucket), known, params)
            if options.auto_pad and options.affects_output:
                first, step = const(0), const(1)
                places = op_call("arange", [first, extent, step], start=first, stop=extent, step=step, dtype="int32")
                result = op_call("take", [result, places], axis=axis)
            cases.append((op_call("equal", [matched_extent, const(bucket)]), result))
            before = bucket
        body = self.call(self.specialised(ANY), inputs_at, params)
        for condition, result in cases:
            body = If(condition, result, body)
        main = Function(params, body, self.returned(ANY), self.main.type_params, self.main.attrs, self.main.span)
        self.made[self.made.get_global_var("main")] = main
        check(self.made)
        return self.made

    def padded(self, x: Expr, extent: Expr, before: int | None, bucket: int) -> Expr:
        """An input filled up to a bucket's extent, where that is the next one."""
        rank = len(x.type_annotation.shape)  # type: ignore[attr-defined]
        missing = op_call("reshape", [op_call("subtract", [const(bucket), extent])], newshape=[1])
        widths = op_call("zeros", [], shape=[rank, 2], dtype="int32")
        place = const([[self.options.axis % rank], [1]])
        widths = op_call("scatter_nd", [widths, place, missing], mode="update")
        filled = op_call("dyn.nn.pad", [x, widths, const(float(self.options.pad_value))])
        fits = op_call("less_equal", [extent, const(bucket)])
        if before is not None:
            fits = op_call("logical_and", [fits, op_call("greater", [extent, const(before)])])
        return If(fits, filled, x)


def _extent(x: Expr, axis: int) -> Expr:
    """The extent of an axis when the program runs."""
    return op_call("take", [op_call("shape_of", [x], dtype="int32"), const(axis)], mode="wrap")


@dataclass(frozen=True)
class FlexibleShapeDispatch(Pass):
    """Give @main a function for each extent in `buckets` of an axis, and one for all others.

    `input_indices` numbers the inputs with that axis (by default the first one). With `auto_pad` inputs are filled up
    with `pad_value` to the next bucket. Without `affects_output` the results have the same shape for all extents.
    """

    buckets: Sequence[int]
    axis: int = 0
    auto_pad: bool = False
    pad_value: float = 0
    input_indices: Sequence[int] | None = None
    affects_output: bool = True

    def run(self, mod: IRModule) -> IRModule:
        return _Dispatch(mod, self).run()
