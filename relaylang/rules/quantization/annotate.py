"""Where a network's values are rounded: `simulated_quantize` in front of operators that take few bits.

Scales and bounds are free variables until the network is calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relaylang.ir import Call, Constant, Expr, Var
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.rules.quantization.common import (
    CAST_HINT,
    SIMULATED,
    STOP_FUSION,
    Mark,
    QAnnotateKind,
    QConfig,
    Rules,
    Value,
    plain,
    with_args,
)

#: The operator whose calls `skip_conv_layers` counts.
CONVOLUTION = "nn.conv2d"
INPUT, WEIGHT, ACTIVATION = QAnnotateKind.INPUT, QAnnotateKind.WEIGHT, QAnnotateKind.ACTIVATION


@dataclass(frozen=True)
class Annotated(Mark):
    """A value that will be whole numbers of a kind."""

    expr: Expr
    kind: QAnnotateKind

    def plain(self) -> Expr:
        return self.expr


@dataclass
class Annotation:
    """The state of a run: its convolutions so far, its rounded values, and whether the rest stays in floats."""

    config: QConfig
    convolutions: int = 0
    stopped: bool = False
    rounded: dict[tuple[Expr, int, bool, str], Call] = field(default_factory=dict)

    def skips(self, op: Op) -> bool:
        """Whether a call of an operator stays as it is. Counts the convolutions."""
        if self.stopped:
            return True
        if op.name != CONVOLUTION:
            return False
        self.convolutions += 1
        return self.convolutions - 1 in (self.config.skip_conv_layers or ())

    def round(self, expr: Expr, kind: int, sign: bool = True, rounding: str = "round") -> Expr:
        """A value rounded as one of a kind, once for all of its users."""
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == SIMULATED:
            attrs = expr.attrs
            if (attrs.kind, attrs.sign, attrs.rounding) == (kind, sign, rounding):
                return expr
        key = expr, int(kind), sign, rounding
        if key not in self.rounded:
            scale = [Var(name) for name in ("dom_scale", "clip_min", "clip_max")]
            self.rounded[key] = op_call(SIMULATED, [expr, *scale], kind=int(kind), sign=sign, rounding=rounding)
        return self.rounded[key]

    def operand(self, value: Value) -> Expr:
        """A value in the bits of an operator's input, or of its weights where it is a constant."""
        if isinstance(value, Annotated) and value.kind is INPUT:
            return value.expr
        expr = plain(value)
        return self.round(expr, WEIGHT if isinstance(expr, Constant) else INPUT)


def _any_marked(args: Sequence[Value]) -> bool:
    return any([isinstance(a, Annotated) for a in args])


def _weighted(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    data, weight = args
    if isinstance(weight, Annotated):  # two computed operands
        return None
    data = data.expr if isinstance(data, Annotated) and data.kind is INPUT else state.round(plain(data), INPUT)
    return Annotated(with_args(call, [data, state.round(plain(weight), WEIGHT)]), ACTIVATION)


def _dense(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    return None if state.config.skip_dense_layer else _weighted(call, args, state)


def _product(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    return Annotated(with_args(call, [state.operand(a) for a in args]), ACTIVATION)


def _multiply(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    return _product(call, args, state) if _any_marked(args) else None


def _add(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    if not _any_marked(args):
        return None
    lhs, rhs = [a.expr if isinstance(a, Annotated) else state.operand(a) for a in args]
    if all(isinstance(a, Annotated) and a.kind is ACTIVATION for a in args):
        rhs = state.round(rhs, INPUT)
    return Annotated(with_args(call, [lhs, rhs]), ACTIVATION)


def _same(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    value = args[0]
    return Annotated(with_args(call, [value.expr]), value.kind) if isinstance(value, Annotated) else None


def _pool(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    return Annotated(with_args(call, [state.operand(args[0])]), INPUT) if _any_marked(args) else None


def _concatenate(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    if not isinstance(args[0], tuple) or not _any_marked(args[0]):
        return None
    fields = tuple([v.expr if isinstance(v, Annotated) else state.round(plain(v), ACTIVATION) for v in args[0]])
    return Annotated(with_args(call, [plain(fields)]), ACTIVATION)


def _global_pool(call: Call, args: Sequence[Value], state: Annotation) -> Value:
    if _any_marked(args):
        state.stopped = True
    return None


RULES: Rules = {
    **dict.fromkeys(("nn.conv1d", CONVOLUTION), _weighted),
    "nn.dense": _dense,
    "nn.batch_matmul": _product,
    "multiply": _multiply,
    "add": _add,
    **dict.fromkeys(
        ("reshape", "clip", "nn.relu", "strided_slice", "nn.avg_pool2d", "nn.batch_flatten", "transpose", STOP_FUSION), _same
    ),
    **dict.fromkeys(("nn.max_pool1d", "nn.max_pool2d"), _pool),
    CAST_HINT: lambda call, args, state: _pool(call, args, state) or args[0],
    "concatenate": _concatenate,
    "nn.global_avg_pool2d": _global_pool,
}
#: Marks that go where their operand stays in floats.
DROPPED = frozenset({CAST_HINT})
