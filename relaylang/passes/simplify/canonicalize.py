"""CanonicalizeOps: bias_add as the addition that it is. CanonicalizeCast: a widening cast for each use, to be fused
with it. FastMath: exp, tanh, erf and softmax as their quick approximations. DivToMul: division by a constant as a
product."""

from __future__ import annotations

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, children, post_order, rebuild
from relaylang.ir.tensors import tensor_type
from relaylang.ops import get
from relaylang.ops.build import op_call
from relaylang.ops.record import Op, OpPattern
from relaylang.passes.rewriting import per_function, retype, rewrite_typed


def _is(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def canonicalize_ops(mod: IRModule) -> IRModule:
    """nn.bias_add as add, with the bias's trailing axes made where they are needed."""

    def put(old: Expr, new: Expr) -> Expr:
        if not _is(new, "nn.bias_add") or not isinstance(new, Call) or not isinstance(old, Call):
            return new
        ty, bias_type = tensor_type(old.args[0]), tensor_type(old.args[1])
        if ty is None or bias_type is None:
            return new
        axis = new.attrs.axis % len(ty.shape)
        behind = len(ty.shape) - axis - 1
        bias = new.args[1]
        if behind:
            wide = TensorType((*bias_type.shape, *[1] * behind), bias_type.dtype)
            bias = op_call("expand_dims", [bias], wide, axis=1, num_newaxis=behind)
        return op_call("add", [new.args[0], bias], old.checked_type)

    return per_function(mod, lambda f: rewrite_typed(f, put))


def _bits(dtype: str) -> int:
    digits = "".join(c for c in dtype if c.isdigit())
    return int(digits) if digits else 1


def canonicalize_cast(mod: IRModule) -> IRModule:
    """A cast to a wider type that several element-wise or broadcast operators use is made once for each of them."""

    def convert(func: Function) -> Expr:
        done: dict[int, Expr] = {}
        used: set[int] = set()
        for node in post_order(func):
            inner = [done[id(c)] for c in children(node)]
            if isinstance(node, Call) and isinstance(node.op, Op) and node.op.pattern <= OpPattern.BROADCAST:
                for i, arg in enumerate(node.args):
                    source = tensor_type(arg.args[0]) if isinstance(arg, Call) and arg.args else None
                    if not _is(arg, "cast") or source is None or not isinstance(arg, Call):
                        continue
                    if _bits(source.dtype) >= _bits(arg.attrs.dtype):
                        continue
                    if id(arg) in used:
                        one = inner[i]
                        assert isinstance(one, Call)
                        inner[i] = retype(Call(one.op, one.args, one.attrs, one.type_args, one.span), arg)
                    used.add(id(arg))
            done[id(node)] = retype(rebuild(node, tuple(inner)), node)
        return done[id(func)]

    return per_function(mod, convert)


_FAST = {"exp": "fast_exp", "tanh": "fast_tanh", "erf": "fast_erf", "nn.softmax": "nn.fast_softmax"}


def fast_math(mod: IRModule) -> IRModule:
    """exp, tanh, erf and nn.softmax of float32 as fast_exp, fast_tanh, fast_erf and nn.fast_softmax."""

    def put(old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name in _FAST:
            return Call(get(_FAST[new.op.name]), new.args, new.attrs, (), new.span)
        return new

    return per_function(mod, lambda f: rewrite_typed(f, put))


def div_to_mul(mod: IRModule) -> IRModule:
    """Division by a constant as the product with its reciprocal, for floats."""

    def put(old: Expr, new: Expr) -> Expr:
        if _is(new, "divide") and isinstance(new, Call) and isinstance(new.args[1], Constant):
            divisor = new.args[1]
            if divisor.data.dtype.kind == "f" and np.all(divisor.data != 0):
                reciprocal = Constant((1 / divisor.data).astype(divisor.data.dtype))
                reciprocal.checked_type = divisor.checked_type
                return op_call("multiply", [new.args[0], reciprocal], old.checked_type)
        return new

    return per_function(mod, lambda f: rewrite_typed(f, put))
