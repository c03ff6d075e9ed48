"""Functions of each element, of one tensor, of two, and of a tensor and a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr

_Function = Callable[[Builder, Expr], Expr]


def _power(exponent: float) -> _Function:
    return lambda b, x: b.op("power", x, exponent)


def _times(factor: float) -> _Function:
    return lambda b, x: b.op("multiply", x, factor)


def cube_root(b: Builder, x: Expr) -> Expr:
    """The real root, which a negative number has, too."""
    return b.op("multiply", b.op("sign", x), b.op("power", b.op("abs", x), 1 / 3))


#: MXNet's functions that are operators of Relay, with Relay's name.
_SAME = {
    **{name: name for name in (
        "abs", "ceil", "cos", "cosh", "erf", "exp", "floor", "negative", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
        "sqrt", "tan", "tanh", "trunc", "log", "log2", "log10", "zeros_like", "ones_like",
    )},
    "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arccosh": "acosh", "arcsinh": "asinh", "arctanh": "atanh",
    "fix": "trunc", "relu": "nn.relu",
}  # fmt: skip
_COMPOSED: dict[str, _Function] = {
    "square": lambda b, x: b.op("multiply", x, x),
    "reciprocal": lambda b, x: b.op("divide", b.const(1, b.dtype(x)), x),
    "cbrt": cube_root,
    "rcbrt": lambda b, x: b.op("divide", b.const(1, b.dtype(x)), cube_root(b, x)),
    "expm1": nn.expm1,
    "log1p": nn.log1p,
    "degrees": _times(180 / math.pi),
    "radians": _times(math.pi / 180),
    # To the nearest whole number, a half to the one below.
    "rint": lambda b, x: b.op("ceil", b.op("subtract", x, 0.5)),
    "softsign": nn.softsign,
    "log_sigmoid": lambda b, x: b.op("negative", nn.softplus(b, b.op("negative", x))),
    "mish": nn.mish,
}
#: Operators that give their operand in a network that is run.
_NOTHING = (
    "_copy",
    "BlockGrad",
    "MakeLoss",
    "make_loss",
    "cast_storage",
    "IdentityAttachKLSparseReg",
    "_contrib_gradientmultiplier",
    "MAERegressionOutput",
    "SVMOutput",
    "LinearRegressionOutput",
    "Dropout",
)


def _unary(name: str) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        return _COMPOSED[name](n.b, x) if name in _COMPOSED else n.b.op(_SAME[name], x)

    return convert


def same(n: Node, x: Expr) -> Any:
    return x


def logical_not(n: Node, x: Expr) -> Any:
    return n.b.cast(n.b.op("logical_not", n.b.cast(x, "bool")), n.b.dtype(x))


# ---- two tensors

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "mod": "floor_mod",
    "power": "power",
    "maximum": "maximum",
    "minimum": "minimum",
}
_COMPARED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "lesser": "less",
    "lesser_equal": "less_equal",
}
_LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}


def apply(b: Builder, kind: str, x: Expr, y: Expr) -> Any:
    """An operator of two tensors of the same element type, by its name without marks. Comparisons keep the type."""
    dtype = b.dtype(x)
    if kind in _COMPARED:
        return b.cast(b.op(_COMPARED[kind], x, y), dtype)
    if kind in _LOGICAL:
        return b.cast(b.op(_LOGICAL[kind], b.cast(x, "bool"), b.cast(y, "bool")), dtype)
    if kind == "hypot":
        return b.op("sqrt", b.op("add", b.op("multiply", x, x), b.op("multiply", y, y)))
    if kind == "mod":
        # MXNet gives 0 for the divisor 0.
        zero = b.const(0, dtype)
        return b.op("where", b.op("equal", y, zero), b.op("zeros_like", b.op("add", x, y)), b.op("floor_mod", x, y))
    if kind == "div" and "int" in dtype:
        raise Unsupported("it divides whole numbers, of which MXNet makes no numbers of one kind")
    return b.op(_BINARY[kind], x, y)


def _alike(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Both with the element type of the wider one."""
    left, right = b.dtype(x), b.dtype(y)
    if left == right:
        return x, y
    order = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
    if left not in order or right not in order:
        raise Malformed(f"its operands have the element types {left} and {right}")
    wide = max(left, right, key=order.index)
    return b.cast(x, wide), b.cast(y, wide)


def _binary(kind: str) -> Callable[[Node, Expr, Expr], Any]:
    def convert(n: Node, x: Expr, y: Expr) -> Any:
        return apply(n.b, kind, *_alike(n.b, x, y))

    return convert


def add_n(n: Node, *xs: Expr) -> Any:
    if not xs:
        raise Malformed("it adds no tensors")
    total = xs[0]
    for x in xs[1:]:
        total = n.b.op("add", total, x)
    return total


# ---- a tensor and a number


def number(n: Node, x: Expr, name: str = "scalar") -> tuple[Expr, Expr]:
    """The tensor and an attribute's number, of one element type.

    Beside whole numbers, the number loses its fraction, unless `is_int` says that it is a real one: then both are real.
    """
    b, value = n.b, n.float(name)
    dtype = b.dtype(x)
    if "float" in dtype:
        return x, b.const(value, dtype)
    if not n.bool("is_int", True) or not math.isfinite(value):
        return b.cast(x, "float64"), b.const(value, "float64")
    x = b.cast(x, "int64") if dtype == "bool" else x
    return x, b.const(int(value), b.dtype(x))


def _scalar(kind: str, turned: bool = False) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        x, y = number(n, x)
        if kind in ("div", "power") and "int" in n.b.dtype(x):
            x, y = n.b.cast(x, "float32"), n.b.cast(y, "float32")
        return apply(n.b, kind, y, x) if turned else apply(n.b, kind, x, y)

    return convert


def clip(n: Node, x: Expr) -> Any:
    low, high = n.float("a_min", -math.inf), n.float("a_max", math.inf)
    if "float" in n.b.dtype(x):
        return n.b.op("clip", x, a_min=low, a_max=high)
    return nn.clip(n.b, x, None if low == -math.inf else math.ceil(low), None if high == math.inf else math.floor(high))


def smooth_l1(n: Node, x: Expr) -> Any:
    """`(s x)^2 / 2` where `|x| < 1 / s^2`, else `|x| - 1 / (2 s^2)`."""
    b, square = n.b, n.float("scalar", 1.0) ** 2
    inside = b.op("multiply", b.op("multiply", x, x), square / 2)
    size = b.op("abs", x)
    return b.op("where", b.op("less", size, 1 / square), inside, b.op("subtract", size, 1 / (2 * square)))


def quadratic(n: Node, x: Expr) -> Any:
    b = n.b
    square = b.op("multiply", b.op("multiply", x, x), n.float("a", 0.0))
    return b.op("add", b.op("add", square, b.op("multiply", x, n.float("b", 0.0))), n.float("c", 0.0))


def cast(n: Node, x: Expr) -> Any:
    return n.b.cast(x, n.dtype("dtype"))


def amp_multicast(n: Node, *xs: Expr) -> Any:
    """All operands with the widest element type, or with the narrowest one."""
    order = ("float16", "bfloat16", "float32", "float64")
    dtypes = [n.b.dtype(x) for x in xs]
    if not xs or not all(d in order for d in dtypes):
        return list(xs)
    chosen = (min if n.bool("cast_narrow") else max)(dtypes, key=order.index)
    return [n.b.cast(x, chosen) for x in xs]


def where(n: Node, cond: Expr, x: Expr, y: Expr) -> Any:
    b = n.b
    test = b.op("not_equal", cond, b.const(0, b.dtype(cond)))
    if b.rank(cond) == 1 and b.rank(x) > 1:
        test = b.unsqueeze(test, list(range(1, b.rank(x))))
    return b.op("where", test, x, y)


def where_number(turned: bool) -> Callable[[Node, Expr, Expr], Any]:
    """A choice between a tensor and a number, which stands last or, `turned`, before it."""

    def convert(n: Node, cond: Expr, x: Expr) -> Any:
        b = n.b
        test, value = b.op("not_equal", cond, b.const(0, b.dtype(cond))), b.const(n.float("scalar"), b.dtype(x))
        return b.op("where", test, value, x) if turned else b.op("where", test, x, value)

    return convert


def _true_divide(n: Node, x: Expr, y: Expr) -> Any:
    x, y = _alike(n.b, *[v if "float" in n.b.dtype(v) else n.b.cast(v, "float32") for v in (x, y)])
    return n.b.op("divide", x, y)


def _compared(kind: str) -> Callable[[Node, Expr, Expr], Any]:
    """numpy's comparisons give bool."""

    def convert(n: Node, x: Expr, y: Expr) -> Any:
        return n.b.op(_COMPARED[kind], *_alike(n.b, x, y))

    return convert


def _compared_with_number(kind: str) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        return n.b.op(_COMPARED[kind], *number(n, x))

    return convert


_KINDS = [*_BINARY, *_COMPARED, *_LOGICAL, "hypot"]
_ELEMWISE = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul", "div": "elemwise_div"}
_SCALARS = {"add": "_plus_scalar", "sub": "_minus_scalar"}
_TURNED = {"sub": "_rminus_scalar", "div": "_rdiv_scalar", "mod": "_rmod_scalar", "power": "_rpower_scalar"}
_NUMPY = {
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "lesser": "less",
    "lesser_equal": "less_equal",
}

RULES = (
    *(Rule(name, _unary(name)) for name in (*_SAME, *_COMPOSED)),
    *(Rule(name, same) for name in _NOTHING),
    Rule("_identity_with_attr_like_rhs", lambda n, x, like: x),
    Rule("logical_not", logical_not),
    Rule("LogisticRegressionOutput", lambda n, x: n.b.op("sigmoid", x)),
    *(Rule(f"broadcast_{kind}", _binary(kind)) for kind in _KINDS),
    *(Rule(_ELEMWISE.get(kind, f"_{kind}"), _binary(kind)) for kind in _KINDS),
    *(Rule(_SCALARS.get(kind, f"_{kind}_scalar"), _scalar(kind)) for kind in _KINDS),
    *(Rule(name, _scalar(kind, turned=True)) for kind, name in _TURNED.items()),
    Rule("add_n", add_n),
    Rule("clip", clip),
    Rule("smooth_l1", smooth_l1),
    Rule("_contrib_quadratic", quadratic),
    Rule("Cast", cast),
    Rule("amp_cast", lambda n, x: n.b.cast(x, n.dtype("dtype")) if "float" in n.b.dtype(x) else x),
    Rule("amp_multicast", amp_multicast),
    Rule("where", where),
    Rule("_npi_where", where),
    Rule("_npi_where_rscalar", where_number(turned=False)),
    Rule("_npi_where_lscalar", where_number(turned=True)),
    Rule("_npi_true_divide", _true_divide),
    Rule("_npi_true_divide_scalar", _scalar("div")),
    Rule("_npi_rtrue_divide_scalar", _scalar("div", turned=True)),
    *(Rule(f"_npi_{name}", _compared(kind)) for kind, name in _NUMPY.items()),
    *(Rule(f"_npi_{name}_scalar", _compared_with_number(kind)) for kind, name in _NUMPY.items()),
)

__all__ = ["RULES", "cube_root", "number"]
