"""Operators of PyTorch on quantised tensors: those that move whole numbers, and those that compute with real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.common import quantized as common
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.frontends.torch.torchscript.node import ScriptNode
from relaylang.frontends.torch.torchscript.schemas import Schema
from relaylang.frontends.torch.torchscript.values import DTYPES, Quant, Tensor
from relaylang.ir import Expr

#: Operators that move whole numbers, or choose among them; the scale stays.
_MOVES = frozenset(
    "flatten reshape view transpose permute t squeeze unsqueeze max_pool1d max_pool2d slice select contiguous chunk split"
    " split_with_sizes unbind dropout feature_dropout clone detach alias pixel_shuffle expand repeat flip upsample_nearest2d"
    " unflatten upsample_nearest3d channel_shuffle native_channel_shuffle index index_select narrow movedim swapaxes"
    " pixel_unshuffle max_pool3d roll unfold diagonal rot90 tile tensor_split".split()
)
#: Padding, whose value is a whole number, too.
_PADS = frozenset("pad constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d".split())
#: Operators that choose among the numbers of a tensor, and may say where they stand.
_SELECTS = frozenset("min max sort topk median amax amin".split())
#: Operators that compute with real numbers; the result has the scale of the operand.
_KEEPS = frozenset(
    "mean avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d leaky_relu"
    " upsample_bilinear2d hardswish elu hardtanh clamp relu6 gelu".split()
)
#: Those of them that are not linear: the real numbers are needed, not their multiples.
_CURVES = frozenset("leaky_relu hardswish elu hardtanh clamp relu6 gelu".split())
#: Operators that compare real numbers.
_COMPARES = frozenset("eq ne lt le gt ge".split())
#: Operators whose results have a scale of their own; the zero points are above the smallest whole number.
_OWN = {"sigmoid": Quant.of(1 / 256, 0), "hardsigmoid": Quant.of(1 / 256, 0), "tanh": Quant.of(2 / 256, 128)}


def operands(b: Builder, quant: Quant) -> tuple[Expr, Expr]:
    """The scale and the zero point as operands of the qnn dialect."""
    zero = quant.zero if quant.zero.any() else np.zeros((), np.int32)
    return b.const(np.asarray(quant.scale)), b.const(np.asarray(zero))


def real(b: Builder, x: Tensor) -> Expr:
    """The real numbers of a tensor."""
    if x.quant is None:
        return x.read()
    axis = x.quant.axis if np.ndim(x.quant.scale) else min(b.rank(x.value) - 1, 1)
    return b.op("qnn.dequantize", x.read(), *operands(b, x.quant), axis=axis, out_dtype="float32")


def whole(b: Builder, value: Expr, scale: Any, zero: Any, dtype: str = "uint8") -> Tensor:
    """Real numbers as a quantised tensor."""
    quant = Quant.of(scale, zero)
    axis = min(b.rank(value) - 1, 1)
    return Tensor(b.op("qnn.quantize", value, *operands(b, quant), out_dtype=dtype, axis=axis), quant)


def at_scale(b: Builder, x: Tensor, quant: Quant) -> Expr:
    """The numbers of a quantised tensor at another scale."""
    assert x.quant is not None
    if (x.quant.scale, x.quant.zero) == (quant.scale, quant.zero):
        return x.read()
    ends = [*operands(b, x.quant), *operands(b, quant)]
    return b.op("qnn.requantize", x.read(), *ends, out_dtype=b.dtype(x.value))


def relu(b: Builder, value: Expr, zero: Any) -> Expr:
    """Numbers not below that of 0."""
    least = common.limits(b.dtype(value))[0]
    clamped: Expr = value if zero <= least else b.op("maximum", value, b.const(zero, b.dtype(value)))
    return clamped


def _parts(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def quantised(b: Builder, rule: Callable[[Any], Any], schema: Schema, bound: dict[str, Any]) -> Any:
    """The result of an operator where an operand is quantised; None where none is. Raises `Unsupported`."""
    x = next(iter(bound.values()), None)
    first = next(iter(_parts(x)), x)
    tensors = [v for value in bound.values() for v in _parts(value)]
    if not any(isinstance(t, Tensor) and t.quant is not None for t in tensors):
        return None
    if not isinstance(first, Tensor) or first.quant is None:
        raise Unsupported("it takes quantised numbers beside real ones")
    call = _QuantisedCall(b, rule, schema, bound, first, first.quant)
    name = schema.operator
    if name in _MOVES | _PADS:
        return call.moved()
    if first.quant.scale.ndim:
        raise Unsupported("it computes with numbers that have a scale for each channel")
    if name in _SELECTS:
        return call.selected()
    if name == "relu":
        return Tensor(relu(b, first.read(), int(first.quant.zero)), first.quant)
    if name in _COMPARES:
        return Tensor(call.ruled({n: real(b, v) if isinstance(v, Tensor) else v for n, v in bound.items()}))
    if name in ("fill", "masked_fill") and isinstance(bound["value"], (int, float)):
        return call.filled(bound["value"])
    if name in ("threshold", "copy", "cat", "stack", "hstack", "vstack", "dstack"):
        return call.of_own_scale()
    if name in _KEEPS:
        return call.computed()
    if name in _OWN:
        result = _first(call.ruled({**bound, next(iter(bound)): real(b, first)}))
        return whole(b, result, _OWN[name].scale, _OWN[name].zero + common.limits(call.dtype)[0], call.dtype)
    raise Unsupported("it takes quantised numbers")


@dataclass(frozen=True)
class _QuantisedCall:
    """A call of an operator whose first operand is quantised; the results have its scale."""

    b: Builder
    rule: Callable[[Any], Any]
    schema: Schema
    bound: dict[str, Any]
    first: Tensor
    quant: Quant

    @property
    def dtype(self) -> str:
        return self.b.dtype(self.first.value)

    def ruled(self, args: dict[str, Any]) -> Any:
        """What the operator's rule makes of these arguments."""
        return self.rule(ScriptNode(self.b, Call(f"aten.{self.schema.operator}.{self.schema.overload}", args, ())))

    def stored(self, value: float) -> int:
        """The whole number that stands for a real one."""
        return int(np.rint(value / self.quant.scale)) + int(self.quant.zero)

    def on_whole_numbers(self, **others: Any) -> Any:
        return self.ruled({**{n: _whole_part(v) for n, v in self.bound.items()}, **others})

    def moved(self) -> Any:
        if self.schema.operator in ("pad", "constant_pad_nd") and self.bound.get("mode", "constant") == "constant":
            return _moved(self.on_whole_numbers(value=self.stored(self.bound.get("value") or 0)), self.quant)
        return _moved(self.on_whole_numbers(), self.quant)

    def selected(self) -> Any:
        """The values have the scale, and their places none."""
        result = self.on_whole_numbers()
        if not isinstance(result, (list, tuple)):
            return _moved(result, self.quant)
        return [_moved(result[0], self.quant), *(Tensor(v) for v in result[1:])]

    def filled(self, value: float) -> Any:
        low, high = common.limits(self.dtype)
        return _moved(self.on_whole_numbers(value=min(max(self.stored(value), int(low)), int(high))), self.quant)

    def of_own_scale(self) -> Any:
        """Operators whose other operands are brought to the scale of the first."""
        b, bound, quant, name = self.b, self.bound, self.quant, self.schema.operator
        if name == "threshold":  # the numbers themselves are compared
            ends = {end: self.stored(bound[end]) for end in ("threshold", "value")}
            return _moved(self.ruled({"self": self.first.read(), **ends}), quant)
        if name == "copy":
            if bound["src"].quant is None:
                raise Unsupported("it takes quantised numbers")
            return Tensor(self.ruled({"self": self.first.read(), "src": at_scale(b, bound["src"], quant)}), quant)
        return _moved(self.ruled({**bound, "tensors": [at_scale(b, t, quant) for t in bound["tensors"]]}), quant)

    def computed(self) -> Tensor:
        """The operator on real numbers, or on multiples of them where it is linear."""
        b, scale, zero = self.b, float(self.quant.scale), self.quant.zero
        is_curve = self.schema.operator in _CURVES
        numbers = b.cast(b.op("subtract", b.cast(self.first.read(), "int32"), b.const(int(zero), "int32")), "float32")
        if is_curve:
            numbers = b.op("multiply", numbers, scale)
        result = _first(self.ruled({**self.bound, next(iter(self.bound)): numbers}))
        if is_curve:
            result = b.op("divide", result, scale)
        return Tensor(common.held(b, b.op("add", common.round_even(b, result), float(zero)), self.dtype), self.quant)


def _whole_part(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_whole_part(v) for v in value]
    return value.read() if isinstance(value, Tensor) else value


def _first(value: Any) -> Expr:
    first: Expr = value[0] if isinstance(value, (list, tuple)) else value
    return first


def _moved(value: Any, quant: Quant) -> Any:
    if isinstance(value, (list, tuple)):
        return [_moved(v, quant) for v in value]
    return Tensor(value, quant)


def _quantize(b: Builder, x: Tensor, scale: Any, zero: Any, dtype: int) -> Tensor:
    return whole(b, x.read(), _known(b, scale), _known(b, zero), DTYPES[dtype])


def _quantize_channels(b: Builder, x: Tensor, scales: Tensor, zeros: Tensor, axis: int, dtype: int) -> Tensor:
    quant = Quant(b.need(scales.read(), "scales").astype("float32"), b.need(zeros.read(), "zero points").astype("int32"), axis)
    return Tensor(b.op("qnn.quantize", x.read(), *operands(b, quant), out_dtype=DTYPES[dtype], axis=axis), quant)


def _known(b: Builder, value: Any) -> Any:
    """A scale or zero point that is a number, or a tensor of one that is known."""
    if isinstance(value, Tensor):
        return b.need(value.read(), "the scale").reshape(())
    if isinstance(value, Expr):
        return b.need(value, "the scale").reshape(())
    return value


def _dequantize(b: Builder, x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_dequantize(b, v) for v in x]
    return Tensor(real(b, x)) if x.quant is not None else x


#: Operators that make, read or end quantised tensors.
SCALED: dict[str, Callable[..., Any]] = {
    "quantize_per_tensor": _quantize,
    "quantize_per_channel": _quantize_channels,
    "dequantize": _dequantize,
    "int_repr": lambda b, x: Tensor(x.read()),
}


def scaled(b: Builder, name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The result of one of `SCALED`."""
    return SCALED[name](b, *args, **named)


__all__ = ["SCALED", "at_scale", "operands", "quantised", "real", "relu", "scaled", "whole"]
