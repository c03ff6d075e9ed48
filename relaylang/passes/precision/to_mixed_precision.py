"""ToMixedPrecision: products in 16 bits, sensitive operators in 32, the rest as their operands.

Operators are of three kinds. Some always take 16 bits (convolutions, matrix products), others never do (exponentials,
sums of many numbers). The third kind follows its operands. It takes 16 bits if all of them have 16, or can be cast for
nothing. Constants and variables are cast where they are used. Results of functions that others call keep their type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Match,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import typed, typed_tuple
from relaylang.ops import make_attrs
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.analysis import call_graph
from relaylang.passes.context import PassContext
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function
from relaylang.rules.precision import CAST, OF_DTYPE, RULES, Precision
from relaylang.typing import infer

#: The element types that products may have, and the largest numbers that a limit of a clip may be there.
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float64": math.inf}


def to_mixed_precision(
    mod: IRModule, mixed_precision_type: str = "float16", missing_op_mode: int = 1, keep_output: bool = False
) -> IRModule:
    """A typed module with products in 16 bits, or in float64. `missing_op_mode` chooses the treatment of operators that are on no
    list. The mode 0 makes them an error, with 1 and 2 they follow their operands. `keep_output`: functions return the
    element types that they did.
    """
    if mixed_precision_type not in _LARGEST:
        raise RelayError(error("R0501", f"ToMixedPrecision takes {', '.join(_LARGEST)}, not {mixed_precision_type}"))
    called = {gv.name_hint for calls in call_graph(mod).values() for gv in calls}
    fixed = {id(f) for gv, f in mod.functions.items() if keep_output or gv.name_hint in called}
    return per_function(mod, lambda f: _Mixed(mixed_precision_type, missing_op_mode, id(f) in fixed, mod).convert(f))


def _is_float(ty: Type | None) -> bool:
    return isinstance(ty, TensorType) and ty.dtype == "float32"


def _let(let: Let, variable: Var, value: Expr, body: Expr) -> Expr:
    """A let of other parts; itself where they are the same."""
    if variable is let.variable and value is let.value and body is let.body:
        return let
    return typed(Let(variable, value, body, let.span), body.checked_type)


class _Mixed:
    def __init__(self, small: str, missing: int, keep_output: bool, mod: IRModule) -> None:
        self.small = small
        self.missing = missing
        self.keep_output = keep_output
        self.mod = mod
        self.casts: dict[tuple[int, str], Expr] = {}
        self.kept: list[Expr] = []

    def cast(self, expr: Expr, dtype: str) -> Expr:
        """A tensor (or a tuple of them) of floats in another width."""
        ty = expr.checked_type
        if isinstance(ty, TupleType):
            if not any(isinstance(t, TensorType) and t.dtype in ("float32", self.small) for t in ty.fields):
                return expr
            fields: list[Expr] = []
            for i, t in enumerate(ty.fields):
                item: Expr = expr.fields[i] if isinstance(expr, Tuple) else TupleGetItem(expr, i)
                fields.append(self.cast(typed(item, t), dtype))
            return typed_tuple(fields)
        if not isinstance(ty, TensorType) or ty.dtype not in ("float32", self.small) or ty.dtype == dtype:
            return expr
        key = (id(expr), dtype)
        if key not in self.casts:
            if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == CAST and expr in self.made:
                inner = expr.args[0]
                if isinstance(inner.checked_type, TensorType) and inner.checked_type.dtype == dtype:
                    return inner
            self.casts[key] = op_call(CAST, [expr], TensorType(ty.shape, dtype), dtype=dtype)
            self.made.add(self.casts[key])
            self.kept.append(expr)
        return self.casts[key]

    def convert(self, func: Function) -> Expr:
        self.made: set[Expr] = set()
        done: dict[int, Expr] = {}
        cheap: set[int] = set()
        order = list(post_order(func))
        bound: dict[int, list[Var]] = {}  # by the value of the let, which stands before its body in post-order
        renamed: dict[Var, Var] = {}
        for node in order:
            if isinstance(node, Let):
                bound.setdefault(id(node.value), []).append(node.variable)
        for node in order:
            inner = [done[id(c)] for c in children(node)]
            if isinstance(node, (Constant, Var)):
                cheap.add(id(node))
                done[id(node)] = renamed.get(node, node) if isinstance(node, Var) else node
                continue
            if isinstance(node, Call) and isinstance(node.op, Op):
                new = self.call(node, inner, cheap)
            elif isinstance(node, (Tuple, TupleGetItem)):
                new = rebuild(node, tuple(inner))
            elif isinstance(node, Let):
                new = _let(node, renamed.get(node.variable, node.variable), inner[0], inner[1])
            else:
                # Control flow, functions and references keep the types that they have.
                new = rebuild(node, tuple([self.back(i, c) for i, c in zip(inner, children(node))]))
                if isinstance(node, Function) and node is func and not self.keep_output:
                    new = self.function(func, inner[0])
            if new.checked_type is None and new is not node and not isinstance(new, (Function, Let, If, Match)):
                infer(new, fragment=True, module=self.mod)
            elif isinstance(new, (Function, If, Match)) and new is not node and node is not func:
                typed(new, node.checked_type)
            done[id(node)] = new
            for variable in bound.get(id(node), ()):
                if new.checked_type is not None and new.checked_type != variable.checked_type:
                    renamed[variable] = self.bound_to(variable, new)
        return done[id(func)]

    def bound_to(self, variable: Var, value: Expr) -> Var:
        """A let's variable of the type that its value has now."""
        ty = value.checked_type
        annotation = None if variable.type_annotation is None else ty
        return typed(Var(variable.name_hint, annotation, variable.span, variable.virtual_device), ty)

    def function(self, func: Function, body: Expr) -> Expr:
        if isinstance(func.body, (If, Match)):
            body = self.back(body, func.body)
            if body is func.body:
                return func
            return Function(func.params, body, func.ret_type, func.type_params, func.attrs, func.span)
        if body is func.body:
            return func
        return Function(func.params, body, None, func.type_params, func.attrs, func.span)

    def back(self, new: Expr, old: Expr) -> Expr:
        """The new value with the old one's type."""
        if new.checked_type == old.checked_type or isinstance(new, (Op, Function)):
            return new
        return self.cast(new, "float32")

    def wide_one(self, expr: Expr) -> bool:
        ty = expr.checked_type
        fields = ty.fields if isinstance(ty, TupleType) else (ty,)
        return any(_is_float(t) for t in fields)

    def call(self, node: Call, inner: list[Expr], cheap: set[int]) -> Expr:
        assert isinstance(node.op, Op)
        name, args = node.op.name, inner[:-1]
        floats = [i for i, a in enumerate(node.args) if self.wide_one(a)]
        if self.missing == 0 and floats and name not in RULES:
            raise RelayError(error("R0501", f"ToMixedPrecision has no rule for {name}", node.span))
        if RULES.get(name) is Precision.NEVER or not self.fits(node):
            to_small = False
        else:
            follows = all(id(node.args[i]) in cheap or not self.wide_one(args[i]) for i in floats)
            to_small = RULES.get(name) is Precision.ALWAYS or follows
        call = self.made_call(node, args, floats, to_small)
        if call.checked_type is None and any(d.severity == "error" for d in infer(call, fragment=True, module=self.mod)):
            call = self.made_call(node, args, floats, False)  # an operator that does not take 16 bits
        return call

    def fits(self, node: Call) -> bool:
        """Whether the numbers among a call's attributes are numbers in 16 bits, too."""
        largest = _LARGEST[self.small]
        limits = [getattr(node.attrs, n) for n in ("a_min", "a_max") if hasattr(node.attrs, n)]
        return all(-largest <= n <= largest for n in limits)

    def made_call(self, node: Call, args: list[Expr], floats: list[int], to_small: bool) -> Call:
        assert isinstance(node.op, Op)
        dtype = self.small if to_small else "float32"
        cast = [self.cast(a, dtype) if i in floats else a for i, a in enumerate(args)]
        attrs = node.attrs
        field = "dtype" if node.op.name in OF_DTYPE else "out_dtype"
        if to_small and attrs is not None and field in type(attrs).schema and _is_float(node.checked_type):
            values = {n: getattr(attrs, n) for n in type(attrs).schema}
            attrs = make_attrs(type(attrs), {**values, field: self.small})
        if attrs is node.attrs and all(a is b for a, b in zip(cast, node.args)):
            return node
        call = Call(node.op, cast, attrs, node.type_args, node.span)
        ty = tensor_type(node)
        if ty is not None and (not to_small or RULES.get(node.op.name) in (Precision.ALWAYS, Precision.FOLLOW)):
            typed(call, TensorType(ty.shape, self.small) if to_small and ty.dtype == "float32" else ty)
        return call


@dataclass(frozen=True)
class ToMixedPrecision(Pass):
    """Compute products in 16 bits (or in float64), and sums that would lose precision in 32.

    The context's `relay.ToMixedPrecision.keep_orig_output_dtype` keeps the types of results.
    """

    mixed_precision_type: str = "float16"
    missing_op_mode: int = 1

    def run(self, mod: IRModule) -> IRModule:
        keep = bool(PassContext.current().config.get("relay.ToMixedPrecision.keep_orig_output_dtype", False))
        return to_mixed_precision(mod, self.mixed_precision_type, self.missing_op_mode, keep)
