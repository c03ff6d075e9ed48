"""ToMixedPrecision: products in 16 bits, what would lose too much in 32, and the rest as its operands are.

Operators are of three kinds: those that always take 16 bits (convolutions, matrix products), those that never do
(exponentials, sums of many numbers), and those that follow: in 16 bits if some operand is and no other one would have
to be computed in 32. Constants and parameters are cast where they are used. Results of functions that others call keep their type.
"""

from __future__ import annotations

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
from relaylang.ops import make_attrs
from relaylang.ops.record import Op
from relaylang.passes.analysis import call_graph
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import per_function, tensor_type
from relaylang.typing import infer

ALWAYS = frozenset({
    "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
    "nn.dense", "nn.batch_matmul", "nn.matmul",
})  # fmt: skip
FOLLOW = frozenset({
    "add", "subtract", "multiply", "divide", "nn.bias_add", "nn.batch_norm", "sqrt", "max", "min", "maximum", "minimum",
    "nn.relu", "nn.leaky_relu", "nn.prelu", "nn.dropout", "sigmoid", "tanh", "fast_tanh", "fast_exp", "fast_erf", "clip",
    "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d",
    "nn.global_max_pool2d", "transpose", "reshape", "squeeze", "expand_dims", "concatenate", "stack", "split",
    "strided_slice", "nn.batch_flatten", "nn.pad", "copy", "broadcast_to", "repeat", "tile", "where", "take",
    "nn.depth_to_space", "nn.space_to_depth", "negative", "abs", "zeros_like", "ones_like", "image.resize2d",
})  # fmt: skip


def to_mixed_precision(
    mod: IRModule, mixed_precision_type: str = "float16", missing_op_mode: int = 1, keep_output: bool = False
) -> IRModule:
    """A typed module with products in 16 bits. `missing_op_mode`: what becomes of operators that are on no list: 0 is an
    error, 1 and 2 leave them in 32 bits. `keep_output`: functions return the element types that they did."""
    if mixed_precision_type not in ("float16", "bfloat16"):
        raise RelayError(error("R0501", f"ToMixedPrecision takes float16 and bfloat16, not {mixed_precision_type}"))
    called = {gv.name_hint for calls in call_graph(mod).values() for gv in calls}
    fixed = {id(f) for gv, f in mod.functions.items() if keep_output or gv.name_hint in called}
    return per_function(mod, lambda f: _Mixed(mixed_precision_type, missing_op_mode, id(f) in fixed, mod).convert(f))


def _is_float(ty: Type | None) -> bool:
    return isinstance(ty, TensorType) and ty.dtype == "float32"


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
                item.checked_type = t
                fields.append(self.cast(item, dtype))
            made: Expr = Tuple(fields)
            made.checked_type = TupleType([f.checked_type for f in fields])  # type: ignore[misc]
            return made
        if not isinstance(ty, TensorType) or ty.dtype not in ("float32", self.small) or ty.dtype == dtype:
            return expr
        key = (id(expr), dtype)
        if key not in self.casts:
            if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "cast" and expr in self.made:
                inner = expr.args[0]
                if isinstance(inner.checked_type, TensorType) and inner.checked_type.dtype == dtype:
                    return inner
            self.casts[key] = op_call("cast", [expr], TensorType(ty.shape, dtype), dtype=dtype)
            self.made.add(self.casts[key])
            self.kept.append(expr)
        return self.casts[key]

    def convert(self, func: Function) -> Expr:
        self.made: set[Expr] = set()
        done: dict[int, Expr] = {}
        cheap: set[int] = set()
        for node in post_order(func):
            inner = [done[id(c)] for c in children(node)]
            if isinstance(node, (Constant, Var)):
                cheap.add(id(node))
                done[id(node)] = node
                continue
            if isinstance(node, Call) and isinstance(node.op, Op):
                new = self.call(node, inner, cheap)
            elif isinstance(node, (Tuple, TupleGetItem)):
                new = rebuild(node, tuple(inner))
                if isinstance(node, Tuple) and all(id(f) in cheap for f in node.fields):
                    cheap.add(id(node))
            else:
                # Control flow, functions and references keep the types that they have.
                new = rebuild(node, tuple([self.back(i, c) for i, c in zip(inner, children(node))]))
                if isinstance(node, Function) and node is func and not self.keep_output:
                    new = self.function(func, inner[0])
            if new.checked_type is None and new is not node and not isinstance(new, (Function, Let, If, Match)):
                infer(new, fragment=True, module=self.mod)
            elif isinstance(new, (Function, Let, If, Match)) and new is not node and node is not func:
                new.checked_type = node.checked_type
            done[id(node)] = new
        return done[id(func)]

    def function(self, func: Function, body: Expr) -> Expr:
        if isinstance(func.body, (Let, If, Match)):
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

    def small_one(self, expr: Expr) -> bool:
        ty = expr.checked_type
        fields = ty.fields if isinstance(ty, TupleType) else (ty,)
        return any(isinstance(t, TensorType) and t.dtype == self.small for t in fields)

    def wide_one(self, expr: Expr) -> bool:
        ty = expr.checked_type
        fields = ty.fields if isinstance(ty, TupleType) else (ty,)
        return any(_is_float(t) for t in fields)

    def call(self, node: Call, inner: list[Expr], cheap: set[int]) -> Expr:
        assert isinstance(node.op, Op)
        name, args = node.op.name, inner[:-1]
        floats = [i for i, a in enumerate(node.args) if self.wide_one(a)]
        if name in ALWAYS and floats:
            to_small = True
        elif name in FOLLOW:
            small = [i for i in floats if self.small_one(args[i])]
            to_small = bool(small) and all(i in small or id(node.args[i]) in cheap for i in floats)
        else:
            if self.missing == 0 and floats and not name.startswith(("nn.", "qnn.")) and name not in _KNOWN:
                raise RelayError(error("R0501", f"ToMixedPrecision has no rule for {name}", node.span))
            to_small = False
        dtype = self.small if to_small else "float32"
        cast = [self.cast(a, dtype) if i in floats else a for i, a in enumerate(args)]
        attrs = node.attrs
        if to_small and attrs is not None and "out_dtype" in type(attrs).schema and _is_float(node.checked_type):
            values = {n: getattr(attrs, n) for n in type(attrs).schema}
            attrs = make_attrs(type(attrs), {**values, "out_dtype": self.small})
        if attrs is node.attrs and all(a is b for a, b in zip(cast, node.args)):
            return node
        made = Call(node.op, cast, attrs, node.type_args, node.span)
        ty = tensor_type(node)
        if ty is not None:
            made.checked_type = TensorType(ty.shape, self.small) if to_small and ty.dtype == "float32" else ty
        return made


_KNOWN = frozenset({"exp", "power", "erf", "arange", "sum", "mean", "variance", "log", "cast"})
