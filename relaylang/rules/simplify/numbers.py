"""SimplifyExpr's rules of arithmetic: neutral elements, constants that meet, products of sums, tensors of one number.

Whole numbers wrap, so that every rule of a ring holds for them exactly. As in TVM, some rules reorder float arithmetic.
They apply where no constant becomes infinite, nan or too small on the way. Results differ by rounding alone, and zeros
in their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt
from operator import itemgetter

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ir.typed import typed_constant
from relaylang.ops import Trait, having
from relaylang.ops.build import op_call
from relaylang.ops.record import Op

#: `(call, its type)` to an expression of that type, or None.
Rule = Callable[[Call, TensorType], "Expr | None"]
_FULL = frozenset(having(Trait.FILL, without=[Trait.DYNAMIC]))


def name_of(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def is_whole(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def number(value: float | Fraction, dtype: str) -> Constant:
    exact = int(value) if is_whole(dtype) else float(value)
    return typed_constant(np.asarray(exact).astype(np.dtype(dtype)), dtype)


# ---- tensors of one number


def _filled(expr: Expr) -> np.ndarray | None:
    """The number, in the element type, that fills a tensor."""
    name, ty = name_of(expr), tensor_type(expr)
    if name not in _FULL or ty is None or not isinstance(expr, Call) or static_shape(ty) is None:
        return None
    if name.startswith(("zeros", "ones")):
        return np.asarray(int(name.startswith("ones"))).astype(np.dtype(ty.dtype))
    value = expr.args[0 if name == "full" else 1]
    if not isinstance(value, Constant) or value.data.size != 1 or value.data.dtype.kind not in "fiub":
        return None
    with np.errstate(all="ignore"):
        fill = value.data.reshape(()).astype(np.dtype(ty.dtype))
        kept = fill.astype(value.data.dtype) == value.data.reshape(())
    return fill if kept else None


def _holds(expr: Expr, wanted: int) -> bool:
    """Whether a tensor of known extents is this number everywhere."""
    if isinstance(expr, Constant):
        data = expr.data
        known = data.size > 0 and data.dtype.kind in "fiub" and data.flat[0] == wanted
        return bool(known and np.all(data == wanted))
    value = _filled(expr)
    return value is not None and value.dtype.kind in "fiub" and bool(value == wanted)


def identity(call: Call, ty: TensorType) -> Expr | None:
    """x + 0, 0 + x, x - 0, x * 1, 1 * x and x / 1, where x has the result's type."""
    name, (x, y) = name_of(call), call.args
    neutral = 1 if name in ("multiply", "divide") else 0
    if tensor_type(x) == ty and _holds(y, neutral):
        return x
    commutes = isinstance(call.op, Op) and Trait.COMMUTATIVE in call.op.traits
    if commutes and tensor_type(y) == ty and _holds(x, neutral):
        return y
    return None


def fill_operand(call: Call, ty: TensorType) -> Expr | None:
    """x + full(c) = x + c, for every operator that broadcasts, where x has the whole shape."""
    for i in (0, 1):
        other, value = tensor_type(call.args[1 - i]), None
        if other is not None and other.shape == ty.shape:
            value = _filled(call.args[i])
        if value is not None:
            args = list(call.args)
            args[i] = typed_constant(value, tensor_type(call.args[i]).dtype)  # type: ignore[union-attr]
            return Call(call.op, args, call.attrs, call.type_args, call.span)
    return None


# ---- sums and products


def double(call: Call, ty: TensorType) -> Expr | None:
    """x + x = x * 2"""
    x, y = call.args
    if x is y and not isinstance(x, Constant) and (is_float(ty.dtype) or is_whole(ty.dtype)):
        return op_call("multiply", [x, number(2, ty.dtype)], ty)
    return None


def _with_constant(call: Expr, name: str) -> tuple[Expr, Constant] | None:
    """The two operands of a call of `name`, the constant one last."""
    if name_of(call) != name or not isinstance(call, Call):
        return None
    x, c = call.args
    if isinstance(x, Constant):
        x, c = c, x
    return (x, c) if isinstance(c, Constant) and not isinstance(x, Constant) else None


def _joined(name: str, c: Constant, d: Constant) -> Constant | None:
    """The sum or product of two constants, where the one constant can stand for both."""
    if c.dtype != d.dtype or not (is_whole(c.dtype) or is_float(c.dtype)):
        return None
    with np.errstate(all="ignore"):
        try:
            value = np.asarray((np.add if name == "add" else np.multiply)(c.data, d.data)).astype(c.data.dtype)
        except ValueError:
            return None
        if is_float(c.dtype):
            wide = np.abs(value.astype(np.float64))
            least = float(np.finfo(value.dtype).tiny) if value.dtype.kind == "f" else 2.0**-126
            small = (wide < least) & (wide > 0) if name == "add" else (wide < least) & (c.data != 0) & (d.data != 0)
            if not np.isfinite(wide).all() or bool(np.any(small)):
                return None
    return typed_constant(value, c.dtype)


def constants_together(call: Call, ty: TensorType) -> Expr | None:
    """(x + c) + d = x + (c + d), and the same for products."""
    name = name_of(call)
    outer = _with_constant(call, name)
    inner = _with_constant(outer[0], name) if outer is not None else None
    if outer is None or inner is None:
        return None
    joined = _joined(name, inner[1], outer[1])
    return op_call(name, [inner[0], joined], ty) if joined is not None else None


def _broadcast(x: TensorType | None, c: Constant) -> TensorType | None:
    """The type of a tensor with a constant broadcast to it."""
    if x is None:
        return None
    shape = static_shape(x)
    if shape is not None:
        return TensorType(np.broadcast_shapes(shape, c.data.shape), x.dtype)
    behind = x.shape[len(x.shape) - c.data.ndim :]
    fits = c.data.ndim <= len(x.shape) and all(d in (1, e) for d, e in zip(c.data.shape, behind))
    return x if fits else None


def product_of_sum(call: Call, ty: TensorType) -> Expr | None:
    """(x + c) * d = x * d + c * d for constants c and d"""
    outer = _with_constant(call, "multiply")
    inner = _with_constant(outer[0], "add") if outer is not None else None
    if outer is None or inner is None:
        return None
    added, between = _joined("multiply", inner[1], outer[1]), _broadcast(tensor_type(inner[0]), outer[1])
    if added is None or between is None:
        return None
    product = op_call("multiply", [inner[0], outer[1]], between)
    return op_call("add", [constants_together(product, between) or product, added], ty)


# ---- a x x + b x y + c y y


def _factors(term: Expr) -> tuple[Fraction, list[Expr]] | None:
    """A product of a few operands, as a number and the other factors."""
    leaves, todo = [], [(term, 0)]
    while todo:
        expr, depth = todo.pop()
        if name_of(expr) == "multiply" and isinstance(expr, Call) and depth < 3:
            todo += [(a, depth + 1) for a in expr.args]
        else:
            leaves.append(expr)
    scale, rest = Fraction(1), []
    for leaf in leaves:
        if isinstance(leaf, Constant) and leaf.data.ndim == 0 and leaf.data.dtype.kind in "fiu":
            value = leaf.data.item()
            if not np.isfinite(value):
                return None
            scale *= Fraction(value)
        else:
            rest.append(leaf)
    return (scale, rest) if len(rest) == 2 else None


def _root(value: Fraction) -> Fraction | None:
    """The square root of a fraction that is a square."""
    if value < 0:
        return None
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    return Fraction(top, bottom) if top * top == value.numerator and bottom * bottom == value.denominator else None


def _exact(value: Fraction, dtype: str) -> bool:
    """Whether an element type has this number exactly, and the number is not too large."""
    if abs(value) > 1 << 16:
        return False
    if is_whole(dtype):
        info = np.iinfo(dtype)
        return value.denominator == 1 and info.min <= value <= info.max
    return bool(Fraction(float(np.asarray(float(value)).astype(np.dtype(dtype)))) == value)


Term = tuple[Fraction, list[Expr]]


def _quadratic(terms: Sequence[Term | None]) -> tuple[tuple[Fraction, Expr], Fraction, tuple[Fraction, Expr]] | None:
    """(a, x), b, (c, y) of the terms of `a x x + b x y + c y y` in any order; None for other terms."""
    known = [term for term in terms if term is not None]
    squares = [term for term in known if term[1][0] is term[1][1]]
    cross = [term for term in known if term[1][0] is not term[1][1]]
    if len(squares) != 2 or len(cross) != 1:
        return None
    (a, (x, _)), (c, (y, _)), (b, mixed) = *squares, cross[0]
    return ((a, x), b, (c, y)) if {id(x), id(y)} == {id(v) for v in mixed} else None


def _factored(a: Fraction, b: Fraction, c: Fraction, dtype: str) -> tuple[int, Fraction, Fraction, Fraction] | None:
    """The cost of `a (x + p y) (x + q y) = a x x + b x y + c y y`, and a, p and q, if an element type has them exactly."""
    root = _root(b * b - 4 * a * c) if a else None
    if root is None:
        return None
    p, q = (b + root) / (2 * a), (b - root) / (2 * a)
    if p * q * a != c or not all(_exact(n, dtype) for n in (a, p, q)):
        return None
    return (a != 1) + (abs(p) != 1) + (p != q and abs(q) != 1), a, p, q


def binomial(call: Call, ty: TensorType) -> Expr | None:
    """`a x x + b x y + c y y = a (x + p y) (x + q y)`, where a, p and q are exact. x and y may change places."""
    left, right = call.args
    if name_of(left) != "add":
        left, right = right, left
    if name_of(left) != "add" or not isinstance(left, Call) or not (is_float(ty.dtype) or is_whole(ty.dtype)):
        return None
    if not all(name_of(t) == "multiply" for t in (*left.args, right)):
        return None
    terms = _quadratic([_factors(term) for term in (*left.args, right)])
    if terms is None:
        return None
    (a, x), b, (c, y) = terms
    if tensor_type(x) != ty or tensor_type(y) != ty:
        return None
    ways = [(*way, u, v) for k, m, u, v in ((a, c, x, y), (c, a, y, x)) if (way := _factored(k, b, m, ty.dtype)) is not None]
    if not ways:
        return None
    _, lead, p, q, u, v = min(ways, key=itemgetter(0))
    first = _plus(u, v, p, ty)
    second = first if p == q else _plus(u, v, q, ty)
    scaled = first if lead == 1 else op_call("multiply", [first, number(lead, ty.dtype)], ty)
    return op_call("multiply", [scaled, second], ty)


def _plus(x: Expr, y: Expr, factor: Fraction, ty: TensorType) -> Expr:
    """x + factor * y"""
    if factor == 0:
        return x
    if abs(factor) == 1:
        return op_call("add" if factor > 0 else "subtract", [x, y], ty)
    return op_call("add", [x, op_call("multiply", [y, number(factor, ty.dtype)], ty)], ty)


# ---- roots


def rsqrt(call: Call, ty: TensorType) -> Expr | None:
    """x / sqrt(y) = x * rsqrt(y) for floats"""
    x, root = call.args
    if name_of(root) != "sqrt" or not isinstance(root, Call) or not is_float(ty.dtype):
        return None
    inverse = op_call("rsqrt", [root.args[0]], tensor_type(root))
    return inverse if tensor_type(root) == ty and _holds(x, 1) else op_call("multiply", [x, inverse], ty)
