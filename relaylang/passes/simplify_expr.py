"""SimplifyExpr: smaller expressions for the same values.

Each rule looks at one node whose operands are simplified already, and its result is looked at again, so that one walk
does it. Rules that reorder float arithmetic are TVM's too: sums of constants are made beforehand, `x + x` is `x * 2`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylang.ir import Call, Constant, Expr, IRModule, TensorType, Tuple, TupleGetItem
from relaylang.ops.record import Op
from relaylang.passes.build import op_call, scalar
from relaylang.passes.rewriting import per_function, retype, rewrite_typed, static_shape, tensor_type

Rule = Callable[[Call, TensorType], "Expr | None"]
_RESHAPES = frozenset({"reshape", "nn.batch_flatten", "contrib_reverse_reshape", "squeeze", "expand_dims"})
#: So often one node is looked at again; each rule makes the expression smaller or moves it towards constants.
_ROUNDS = 16


def simplify_expr(mod: IRModule) -> IRModule:
    """A typed module with its functions simplified."""
    return per_function(mod, lambda f: rewrite_typed(f, _simplify))


def _simplify(old: Expr, new: Expr) -> Expr:
    for _ in range(_ROUNDS):
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        if not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        ty = tensor_type(new) or tensor_type(old)
        rules = _RULES.get(new.op.name)
        if ty is None or rules is None:
            return new
        for rule in rules:
            made = rule(new, ty)
            if made is not None and made is not new:
                new = retype(made, old)
                break
        else:
            return new
    return new


def _name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _fill(expr: Expr) -> float | None:
    """The number that a constant holds everywhere, or that fills a tensor."""
    if isinstance(expr, Constant) and expr.data.size and expr.data.dtype.kind in "fiub":
        first = expr.data.flat[0]
        return float(first) if np.all(expr.data == first) else None
    name = _name(expr)
    if name in ("zeros", "zeros_like"):
        return 0.0
    if name in ("ones", "ones_like"):
        return 1.0
    if name in ("full", "full_like") and isinstance(expr, Call):
        return _fill(expr.args[-1])
    return None


def _same_type(a: Expr, ty: TensorType) -> bool:
    return tensor_type(a) == ty


def _identity(call: Call, ty: TensorType) -> Expr | None:
    """x + 0, x - 0, x * 1, x / 1 and their mirror images, where x has the result's type."""
    name, (x, y) = _name(call), call.args
    neutral = 1.0 if name in ("multiply", "divide") else 0.0
    if _same_type(x, ty) and _fill(y) == neutral:
        return x
    if name in ("add", "multiply") and _same_type(y, ty) and _fill(x) == neutral:
        return y
    return None


def _double(call: Call, ty: TensorType) -> Expr | None:
    """x + x = x * 2"""
    x, y = call.args
    if x is y and not isinstance(x, Constant):
        return op_call("multiply", [x, scalar(2, ty.dtype)], ty)
    return None


def _constants_together(call: Call, ty: TensorType) -> Expr | None:
    """(x + c) + d = x + (c + d), and the same for products."""
    name = _name(call)
    inner, outer = call.args
    if isinstance(inner, Constant):
        inner, outer = outer, inner
    if not isinstance(outer, Constant) or _name(inner) != name or not isinstance(inner, Call):
        return None
    x, c = inner.args
    if isinstance(x, Constant):
        x, c = c, x
    if not isinstance(c, Constant) or isinstance(x, Constant) or c.dtype != outer.dtype:
        return None
    with np.errstate(all="ignore"):
        try:
            value = (np.add if name == "add" else np.multiply)(c.data, outer.data)
        except ValueError:
            return None
    joined = Constant(np.asarray(value).astype(c.data.dtype), dtype=c.dtype)
    joined.checked_type = TensorType(joined.data.shape, c.dtype)
    return op_call(name, [x, joined], ty)


def _product_of_sum(call: Call, ty: TensorType) -> Expr | None:
    """(x + c) * d = x * d + c * d for constants c and d"""
    inner, d = call.args
    if isinstance(inner, Constant):
        inner, d = d, inner
    if not isinstance(d, Constant) or _name(inner) != "add" or not isinstance(inner, Call):
        return None
    x, c = inner.args
    if isinstance(x, Constant):
        x, c = c, x
    if not isinstance(c, Constant) or isinstance(x, Constant) or ty.dtype.startswith(("int", "uint")):
        return None
    with np.errstate(all="ignore"):
        try:
            value = c.data * d.data
        except ValueError:
            return None
    added = Constant(np.asarray(value).astype(c.data.dtype), dtype=c.dtype)
    added.checked_type = TensorType(added.data.shape, c.dtype)
    product = op_call("multiply", [x, d], None)
    xt, dt = tensor_type(x), TensorType(d.data.shape, d.dtype)
    if xt is None:
        return None
    shape = static_shape(xt)
    if shape is None:
        return None
    product.checked_type = TensorType(np.broadcast_shapes(shape, d.data.shape), dt.dtype)
    return op_call("add", [product, added], ty)


def _square_of_sum(call: Call, ty: TensorType) -> Expr | None:
    """x*x + 2*x*y + y*y = (x + y) * (x + y)"""
    left, right = call.args
    if _name(left) != "add":
        left, right = right, left
    if _name(left) != "add" or not isinstance(left, Call):
        return None
    terms = [*left.args, right]
    squares = [t.args[0] for t in terms if isinstance(t, Call) and _name(t) == "multiply" and t.args[0] is t.args[1]]
    if len(squares) != 2:
        return None
    x, y = squares
    cross = next(t for t in terms if not (isinstance(t, Call) and _name(t) == "multiply" and t.args[0] is t.args[1]))
    if not _is_twice_product(cross, x, y) or not (_same_type(x, ty) and _same_type(y, ty)):
        return None
    total = op_call("add", [x, y], ty)
    return op_call("multiply", [total, total], ty)


def _is_twice_product(expr: Expr, x: Expr, y: Expr) -> bool:
    if _name(expr) != "multiply" or not isinstance(expr, Call):
        return False
    flat: list[Expr] = []
    for arg in expr.args:
        flat += arg.args if isinstance(arg, Call) and _name(arg) == "multiply" else [arg]
    twos = [a for a in flat if _fill(a) == 2.0]
    rest = [a for a in flat if _fill(a) != 2.0]
    return len(flat) == 3 and len(twos) == 1 and {id(a) for a in rest} == {id(x), id(y)} and len(rest) == 2


def _rsqrt(call: Call, ty: TensorType) -> Expr | None:
    """c / sqrt(x) = c * rsqrt(x)"""
    c, root = call.args
    if _name(root) != "sqrt" or not isinstance(root, Call) or not isinstance(c, Constant):
        return None
    inverse = op_call("rsqrt", [root.args[0]], tensor_type(root))
    return inverse if _fill(c) == 1.0 and _same_type(root, ty) else op_call("multiply", [c, inverse], ty)


def _reshape(call: Call, ty: TensorType) -> Expr | None:
    """A reshape of a reshape, and a reshape to the shape that is there already."""
    x = call.args[0]
    if static_shape(ty) is None:
        return None
    if _same_type(x, ty):
        return x
    if _name(x) in _RESHAPES and isinstance(x, Call):
        return op_call("reshape", [x.args[0]], ty, newshape=list(ty.shape))
    return None


def _axes(call: Call, rank: int) -> list[int]:
    axes = call.attrs.axes
    return [a % rank for a in axes] if axes else list(reversed(range(rank)))


def _transpose(call: Call, ty: TensorType) -> Expr | None:
    """Two transposes in one, and one that moves nothing left out."""
    rank = len(ty.shape)
    axes, x = _axes(call, rank), call.args[0]
    if axes == list(range(rank)):
        return x
    if _name(x) == "transpose" and isinstance(x, Call):
        inner = _axes(x, rank)
        return op_call("transpose", [x.args[0]], ty, axes=[inner[a] for a in axes])
    return None


_WIDTH = {"bool": 1, "bfloat16": 16}


def _bits(dtype: str) -> int:
    return _WIDTH.get(dtype) or int("".join(c for c in dtype if c.isdigit()) or 0)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of one element type is one of another."""
    if wide == narrow or narrow == "bool":
        return True
    kinds = [d.rstrip("0123456789") for d in (wide, narrow)]
    if kinds[0] == kinds[1]:
        return _bits(wide) >= _bits(narrow)
    if kinds == ["int", "uint"]:
        return _bits(wide) > _bits(narrow)
    mantissa = {"float16": 11, "float32": 24, "float64": 53}
    return kinds[0] == "float" and kinds[1] in ("int", "uint") and mantissa.get(wide, 0) >= _bits(narrow)


def _cast(call: Call, ty: TensorType) -> Expr | None:
    """A cast to the type that is there, and a cast of a cast that loses nothing."""
    x = call.args[0]
    if _same_type(x, ty):
        return x
    source = tensor_type(x)
    if _name(x) == "cast" and isinstance(x, Call) and source is not None:
        first = tensor_type(x.args[0])
        if first is not None and _holds(source.dtype, first.dtype):
            return x.args[0] if first == ty else op_call("cast", [x.args[0]], ty, dtype=ty.dtype)
    return None


_RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}


def _clip(call: Call, ty: TensorType) -> Expr | None:
    """Two clips in one, and one to the range that the element type has anyway."""
    low, high, x = call.attrs.a_min, call.attrs.a_max, call.args[0]
    whole = _RANGES.get(ty.dtype)
    if whole is not None and low <= whole[0] and high >= whole[1]:
        return x
    if _name(x) == "clip" and isinstance(x, Call):
        inner_low, inner_high = x.attrs.a_min, x.attrs.a_max
        if inner_low <= inner_high and low <= high and max(low, inner_low) <= min(high, inner_high):
            limits = {"a_min": max(low, inner_low), "a_max": min(high, inner_high)}
            return op_call("clip", [x.args[0]], ty, **limits)
    return None


def _like(call: Call, ty: TensorType) -> Expr | None:
    """Operators that take a tensor for its shape, where the shape is known."""
    name, shape = _name(call), static_shape(ty)
    if shape is None:
        return None
    if name in ("zeros_like", "ones_like"):
        return op_call(name.removesuffix("_like"), [], ty, shape=list(shape), dtype=ty.dtype)
    if name == "full_like":
        return op_call("full", [call.args[1]], ty, shape=list(shape), dtype=ty.dtype)
    if name == "reshape_like":
        return op_call("reshape", [call.args[0]], ty, newshape=list(shape))
    if name == "broadcast_to_like":
        return op_call("broadcast_to", [call.args[0]], ty, shape=list(shape))
    if name == "collapse_sum_like":
        return op_call("collapse_sum_to", [call.args[0]], ty, shape=list(shape))
    return op_call("cast", [call.args[0]], ty, dtype=ty.dtype)


def _fill_operand(call: Call, ty: TensorType) -> Expr | None:
    """x + full(c) = x + c, a scalar that broadcasts."""
    for i in (0, 1):
        other, filled = call.args[1 - i], call.args[i]
        if _name(filled) in ("full", "full_like", "zeros", "zeros_like", "ones", "ones_like"):
            value = _fill(filled)
            if value is not None and _same_type(other, ty):
                args = [scalar(value, ty.dtype), other] if i == 0 else [other, scalar(value, ty.dtype)]
                return op_call(_name(call), args, ty)
    return None


def _of_dequantized(call: Call, ty: TensorType) -> Expr | None:
    """argmax, argmin and argsort of a dequantized tensor are those of the tensor: the scale is positive."""
    x = call.args[0]
    if _name(x) != "qnn.dequantize" or not isinstance(x, Call):
        return None
    scale = x.args[1]
    if not isinstance(scale, Constant) or scale.data.size != 1 or not np.all(scale.data > 0):
        return None
    return Call(call.op, [x.args[0]], call.attrs, call.type_args, call.span)


_RULES: dict[str, list[Rule]] = {
    "add": [_identity, _double, _fill_operand, _square_of_sum, _constants_together],
    "subtract": [_identity, _fill_operand],
    "multiply": [_identity, _fill_operand, _constants_together, _product_of_sum],
    "divide": [_identity, _fill_operand, _rsqrt],
    "reshape": [_reshape],
    "nn.batch_flatten": [_reshape],
    "transpose": [_transpose],
    "cast": [_cast],
    "clip": [_clip],
    "zeros_like": [_like],
    "ones_like": [_like],
    "full_like": [_like],
    "reshape_like": [_like],
    "broadcast_to_like": [_like],
    "collapse_sum_like": [_like],
    "cast_like": [_like],
    "argmax": [_of_dequantized],
    "argmin": [_of_dequantized],
    "argsort": [_of_dequantized],
}
