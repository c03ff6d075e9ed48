"""Gradients of arithmetic on tensors: functions of one and two operands, casts and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.ir import Call, Expr
from relaylang.ops import Trait, having
from relaylang.rules.gradient.common import (
    Gradient,
    Grads,
    NoGradient,
    axes_of,
    div,
    extents,
    is_float,
    mask,
    mul,
    number,
    of,
    reduced_to,
    square,
    sub,
    unreduced,
)


def _one_less(x: Expr, like: Expr) -> Expr:
    return sub(number(1, like), x)


def _unary(slope: Callable[[Expr, Call], Expr]) -> Gradient:
    """The gradient from the slope at x: `slope(x, result)`."""
    return lambda call, grad: [mul(grad, slope(call.args[0], call))]


def _binary(left: Callable[..., Expr], right: Callable[..., Expr]) -> Gradient:
    def gradient(call: Call, grad: Expr) -> Grads:
        x, y = call.args
        return [reduced_to(left(grad, x, y, call), x, call), reduced_to(right(grad, x, y, call), y, call)]

    return gradient


def _counted(call: Call, name: str) -> int:
    """The number of the data's elements that a reduction combines into one."""
    shape = extents(call.args[0], name)
    return math.prod(shape[i] for i in axes_of(call))


def _mean(call: Call, grad: Expr) -> Grads:
    return [div(unreduced(call, grad), number(_counted(call, "mean"), call))]


def _variance(call: Call, grad: Expr) -> Grads:
    x, mean = call.args
    divisor = _counted(call, "variance") - (1 if call.attrs.unbiased else 0)
    if divisor == 0:
        raise NoGradient("the unbiased variance of one number")
    factor = div(unreduced(call, grad), number(divisor / 2, x))
    inner = mul(factor, sub(x, mean))
    return [inner, of("collapse_sum_like", of("negative", inner), mean)]


def _extreme(call: Call, grad: Expr) -> Grads:
    """Equal extremes share the gradient."""
    x, axes = call.args[0], axes_of(call)
    if not axes:
        return [unreduced(call, grad)]
    hit = of("cast_like", of("equal", x, unreduced(call, call)), x)
    number_of = of("broadcast_to_like", of("sum", hit, axis=axes, keepdims=True), x)
    return [div(mul(unreduced(call, grad), hit), number_of)]


def _cast(call: Call, grad: Expr) -> Grads:
    """Rounding to whole numbers has slope 0; between whole numbers, and between floats, a cast is the identity."""
    x = call.args[0]
    same = is_float(x.checked_type) == is_float(call.checked_type)
    return [of("cast_like", grad, x) if same else None, *[None] * (len(call.args) - 1)]


def no_gradient(call: Call, grad: Any) -> Grads:
    return [None] * len(call.args)


_PI = 2 / math.sqrt(math.pi)
RULES: dict[str, Gradient] = {
    "log": lambda c, g: [div(g, c.args[0])],
    "log2": lambda c, g: [div(g, mul(c.args[0], number(math.log(2), c)))],
    "log10": lambda c, g: [div(g, mul(c.args[0], number(math.log(10), c)))],
    "exp": _unary(lambda x, y: y),
    "sqrt": lambda c, g: [div(mul(g, number(0.5, c)), c)],
    "rsqrt": lambda c, g: [mul(mul(g, number(-0.5, c)), mul(c, square(c)))],
    "sin": _unary(lambda x, y: of("cos", x)),
    "cos": lambda c, g: [of("negative", mul(g, of("sin", c.args[0])))],
    "tan": _unary(lambda x, y: of("add", number(1, y), square(y))),
    "sinh": _unary(lambda x, y: of("cosh", x)),
    "cosh": _unary(lambda x, y: of("sinh", x)),
    "tanh": _unary(lambda x, y: _one_less(square(y), y)),
    "asin": lambda c, g: [div(g, of("sqrt", _one_less(square(c.args[0]), c)))],
    "acos": lambda c, g: [of("negative", div(g, of("sqrt", _one_less(square(c.args[0]), c))))],
    "atan": lambda c, g: [div(g, of("add", number(1, c), square(c.args[0])))],
    "asinh": lambda c, g: [div(g, of("sqrt", of("add", number(1, c), square(c.args[0]))))],
    "acosh": lambda c, g: [div(g, of("sqrt", sub(square(c.args[0]), number(1, c))))],
    "atanh": lambda c, g: [div(g, _one_less(square(c.args[0]), c))],
    "sigmoid": _unary(lambda x, y: mul(y, _one_less(y, y))),
    "erf": _unary(lambda x, y: mul(number(_PI, y), of("exp", of("negative", square(x))))),
    # At their corners, the gradients of these two use the slope of the right side, as in TVM.
    "nn.relu": lambda c, g: [mask(g, of("greater_equal", c.args[0], number(0, c)))],
    "nn.leaky_relu": lambda c, g: [of("where", of("greater", c.args[0], number(0, c)), g, mul(g, number(c.attrs.alpha, c)))],
    "abs": lambda c, g: [of("where", of("greater_equal", c.args[0], number(0, c)), g, of("negative", g))],
    "negative": lambda c, g: [of("negative", g)],
    **dict.fromkeys(("copy", "annotation.checkpoint"), lambda c, g: [g]),
    "clip": lambda c, g: [
        mask(
            g,
            of(
                "logical_and",
                of("greater_equal", c.args[0], number(c.attrs.a_min, c)),
                of("less_equal", c.args[0], number(c.attrs.a_max, c)),
            ),
        )
    ],
    "cast": _cast,
    "cast_like": _cast,
    "add": _binary(lambda g, x, y, c: g, lambda g, x, y, c: g),
    "subtract": _binary(lambda g, x, y, c: g, lambda g, x, y, c: of("negative", g)),
    "multiply": _binary(lambda g, x, y, c: mul(g, y), lambda g, x, y, c: mul(g, x)),
    "divide": _binary(lambda g, x, y, c: div(g, y), lambda g, x, y, c: of("negative", div(mul(g, c), y))),
    "power": _binary(
        lambda g, x, y, c: mul(g, mul(y, of("power", x, sub(y, number(1, y))))),
        # x with 1 in place of 0, so that the gradient of `0 ** y` for y is 0 * log(1).
        lambda g, x, y, c: mul(g, mul(c, of("log", of("where", of("equal", x, number(0, x)), of("ones_like", x), x)))),
    ),
    "maximum": _binary(lambda g, x, y, c: mask(g, of("greater_equal", x, y)), lambda g, x, y, c: mask(g, of("less", x, y))),
    "minimum": _binary(lambda g, x, y, c: mask(g, of("less_equal", x, y)), lambda g, x, y, c: mask(g, of("greater", x, y))),
    "sum": lambda c, g: [unreduced(c, g)],
    "mean": _mean,
    "variance": _variance,
    "max": _extreme,
    "min": _extreme,
    # Steps, counts and constants: no change of an operand changes the result.
    **dict.fromkeys(having(Trait.COMPARISON), no_gradient),
    **dict.fromkeys(having(Trait.ARG_REDUCTION), no_gradient),
    **dict.fromkeys(("zeros", "ones", "zeros_like", "ones_like", "dyn.zeros", "dyn.ones"), no_gradient),
    **dict.fromkeys(("shape_of", "ndarray_size"), no_gradient),
    **dict.fromkeys(("floor", "ceil", "round", "sign", "logical_and", "logical_or"), no_gradient),
}
