"""Where quantised parts of a network end: values that go on in 8 bits, apart from the kernels behind them.

Behind a convolution a value keeps the sums' element type, through additions of constants and element-wise operators. It
is cut (`cast_hint`, `stop_fusion`) where it is convolved again, pooled over all space, or meets another branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.ir import Call, Constant, Expr
from relaylang.ops.build import op_call
from relaylang.rules.quantization.common import CAST_HINT, STOP_FUSION, Mark, QConfig, Rules, Value, plain, with_args


@dataclass(frozen=True)
class Cut(Mark):
    """A value that is cut where it is used as it is."""

    expr: Expr
    dtype: str

    def plain(self) -> Expr:
        return op_call(STOP_FUSION, [op_call(CAST_HINT, [self.expr], dtype=self.dtype)])


def _within(value: Value) -> Expr:
    """The value before the cut."""
    return value.expr if isinstance(value, Cut) else plain(value)


def _convolution(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    return Cut(with_args(call, [plain(a) for a in args]), config.dtype_input)


def _add(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    lhs, rhs = args
    if isinstance(lhs, Cut) and isinstance(rhs, Constant):  # a bias
        return Cut(with_args(call, [lhs.expr, rhs]), config.dtype_input)
    total = with_args(call, [plain(lhs), plain(rhs)])
    return Cut(total, config.dtype_input) if isinstance(lhs, Cut) and isinstance(rhs, Cut) else total


def _multiply(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    lhs, rhs = args
    if isinstance(lhs, Cut):
        return Cut(with_args(call, [plain(lhs), _within(rhs)]), config.dtype_input)
    return Cut(with_args(call, [plain(lhs), plain(rhs)]), config.dtype_input) if isinstance(rhs, Cut) else None


def _global_pool(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    return with_args(call, [Cut(_within(args[0]), config.dtype_input).plain()])


RULES: Rules = {
    "nn.conv2d": _convolution,
    **dict.fromkeys(
        ("clip", "nn.relu", "nn.max_pool2d"),
        lambda call, args, config: Cut(with_args(call, [_within(args[0])]), config.dtype_input) if isinstance(args[0], Cut) else None,
    ),
    "add": _add,
    "multiply": _multiply,
    "nn.global_avg_pool2d": _global_pool,
}
