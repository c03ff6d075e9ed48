"""Arithmetic on extents and other numbers: on numbers now, on unknown extents in the program. Checks have no value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

#: What a number becomes in the program: a function of the builder and of operands of one element type.
Built = Callable[..., Any]


def _kind(b: Builder, value: Any) -> str:
    if isinstance(value, Expr):
        return b.dtype(value)
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"


def _together(b: Builder, values: list[Any], dtype: str = "") -> list[Expr]:
    """Numbers and expressions as expressions of one element type."""
    kinds = [_kind(b, v) for v in values]
    common = dtype or ("float64" if any("float" in k for k in kinds) else "bool" if set(kinds) == {"bool"} else "int64")
    return [b.cast(v, common) for v in values]


def number(now: Callable[..., Any], built: Built | None) -> Callable[[Node], Any]:
    """A function of numbers, and what it is where one of them is not known."""

    def convert(n: Node) -> Any:
        values = [n.scope.resolve(a) for a in n.call.args.values()]
        if not all(isinstance(v, (Expr, bool, int, float)) for v in values):
            raise Malformed("an argument is no number")
        if not any(isinstance(v, Expr) for v in values):
            try:
                return now(*values)
            except (ArithmeticError, TypeError, ValueError):
                raise Malformed(f"its arguments {str(values)[:60]} have no result") from None
        if built is None:
            raise Unsupported("it computes with an unknown extent")
        return built(n.b, *values)

    return convert


def plain(op: str) -> Built:
    """An operator of operands with one element type."""
    return lambda b, *values: b.op(op, *_together(b, list(values)))


def real(op: str) -> Built:
    return lambda b, *values: b.op(op, *_together(b, list(values), "float64"))


def whole(op: str) -> Built:
    """A real number to a whole one."""
    return lambda b, value: b.cast(b.op(op, b.cast(value, "float64")), "int64")


def logic(op: str) -> Built:
    return lambda b, *values: b.op(op, *_together(b, list(values), "bool"))


def shift(b: Builder, x: Any, by: Any) -> Any:
    return b.op("left_shift", *_together(b, [x, by], "int64"))


def choose(b: Builder, test: Any, x: Any, y: Any) -> Any:
    x, y = _together(b, [x, y])
    return b.op("where", test if isinstance(test, Expr) else b.const(test, "bool"), x, y)


_NUMBERS: dict[str, tuple[Callable[..., Any], Built | None]] = {
    "_operator.add": (lambda a, b: a + b, plain("add")),
    "_operator.sub": (lambda a, b: a - b, plain("subtract")),
    "_operator.mul": (lambda a, b: a * b, plain("multiply")),
    "_operator.floordiv": (lambda a, b: a // b, plain("floor_divide")),
    "_operator.mod": (lambda a, b: a % b, plain("floor_mod")),
    "_operator.eq": (lambda a, b: a == b, plain("equal")),
    "_operator.ne": (lambda a, b: a != b, plain("not_equal")),
    "_operator.ge": (lambda a, b: a >= b, plain("greater_equal")),
    "_operator.le": (lambda a, b: a <= b, plain("less_equal")),
    "_operator.gt": (lambda a, b: a > b, plain("greater")),
    "_operator.lt": (lambda a, b: a < b, plain("less")),
    "_operator.neg": (lambda a: -a, plain("negative")),
    "_operator.pos": (lambda a: a, lambda b, value: value),
    "_operator.pow": (lambda a, b: a**b, plain("power")),
    "_operator.truediv": (lambda a, b: a / b, real("divide")),
    "_operator.and_": (lambda a, b: a and b, logic("logical_and")),
    "_operator.or_": (lambda a, b: a or b, logic("logical_or")),
    "_operator.lshift": (lambda a, b: a << b, shift),
    "_operator.rshift": (lambda a, b: a >> b, plain("right_shift")),
    "math.ceil": (math.ceil, whole("ceil")),
    "math.floor": (math.floor, whole("floor")),
    "math.trunc": (math.trunc, whole("trunc")),
    "_operator.round": (round, None),
    "torch.sym_float": (float, lambda b, value: b.cast(value, "float64")),
    "torch.sym_int": (int, whole("trunc")),
    "torch.sym_ite": (lambda t, a, b: a if t else b, choose),
    "torch.sym_max": (max, plain("maximum")),
    "torch.sym_min": (min, plain("minimum")),
    "torch.sym_not": (lambda a: not a, logic("logical_not")),
    "torch._sym_sqrt": (math.sqrt, real("sqrt")),
    "torch.sym_sqrt": (math.sqrt, real("sqrt")),
}


def total(n: Node) -> Any:
    """The sum of a list of extents."""
    values = n.scope.resolve(next(iter(n.call.args.values())))
    if not any(isinstance(v, Expr) for v in values):
        return sum(values)
    subtotal, *rest = _together(n.b, list(values))
    for value in rest:
        subtotal = n.b.op("add", subtotal, value)
    return subtotal


def nothing(n: Node) -> Any:
    """A check of the program has no value."""
    return []


def token(n: Node) -> Any:
    """A check that hands on a token, which nothing computes with."""
    return n.b.const(0, "float32")


def with_effects(n: Node) -> Any:
    """A check in the order of other effects: a token, and the results of the check."""
    name = str(n.get("1")).removeprefix("torch.ops.aten.").partition(".")[0]
    if name not in _CHECKS:
        raise Unsupported(f"it has the effect of {n.get('1')}"[:100])
    return [token(n)]


_CHECKS = (
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_linalg_check_errors",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "_print",
)
_TOKENS = ("_functional_assert_async", "_functional_assert_scalar", "_functional_sym_constrain_range", "_make_dep_token")

RULES = (
    *(Rule(name, number(*how)) for name, how in _NUMBERS.items()),
    Rule("higher_order.with_effects", with_effects),
    Rule("torch.sym_sum", total),
    *(Rule(f"aten.{name}", nothing) for name in _CHECKS),
    *(Rule(f"aten.{name}", token) for name in _TOKENS),
)
