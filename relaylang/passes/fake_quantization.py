"""FakeQuantizationToInteger: float operators between qnn.dequantize and qnn.quantize become integer ones.

Going down from each dequantize, a tensor is known as whole numbers with a scale and a zero point as long as the
operators on the way have integer forms; a quantize at which such a tensor arrives takes the whole numbers. What scale a
sum has in between is that of the quantize which it flows to. Everything else stays in floats. Results may be off by one
unit of the last place, where the float program rounds once and the integer one twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, IRModule, children, post_order, rebuild
from relaylang.ops import get, make_attrs
from relaylang.ops.record import Op
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import per_function, retype, tensor_type


@dataclass(frozen=True)
class Affine:
    """`(ints - zero) * scale` as real numbers; a vector of scales lies along `axis`."""

    ints: Expr
    scale: np.ndarray
    zero: np.ndarray
    dtype: str
    axis: int = -1

    @property
    def plain(self) -> bool:
        return self.scale.size == 1 and self.zero.size == 1


@dataclass(frozen=True)
class Wanted:
    """The scale and zero point of the quantize that a value flows to."""

    scale: np.ndarray
    zero: np.ndarray
    dtype: str


#: `(call, operands, wanted)` to the result in integers, or None.
Rule = Callable[[Call, "list[Affine | None]", "Wanted | None"], "Affine | None"]


def _const(value: Any, dtype: str) -> Constant:
    return Constant(np.asarray(value).astype(dtype))


def _again(call: Call, args: list[Expr], **changed: Any) -> Call:
    if call.attrs is None:
        return Call(call.op, args, None, (), call.span)
    cls = type(call.attrs)
    values = {name: getattr(call.attrs, name) for name in cls.schema}
    return Call(call.op, args, make_attrs(cls, {**values, **changed}), (), call.span)


def _identity(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None or not x.plain:
        return None
    return Affine(_again(call, [x.ints, *call.args[1:]]), x.scale, x.zero, x.dtype)


def _average(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None or not x.plain or any(getattr(call.attrs, "padding", ())):
        return None
    wide = x.ints if x.dtype == "int32" else op_call("cast", [x.ints], dtype="int32")
    return Affine(_again(call, [wide]), x.scale, x.zero, "int32")


def _relu(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None or x.zero.size != 1:
        return None
    if not x.zero.any():
        return Affine(_again(call, [x.ints]), x.scale, x.zero, x.dtype, x.axis)
    made = op_call("maximum", [x.ints, _const(x.zero.reshape(()), x.dtype)])
    return Affine(made, x.scale, x.zero, x.dtype, x.axis)


def _clip(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None or not x.plain:
        return None
    info = np.iinfo(x.dtype)
    low, high = (
        float(np.clip(np.round(v / float(x.scale.reshape(-1)[0])) + float(x.zero.reshape(-1)[0]), info.min, info.max))
        for v in (call.attrs.a_min, call.attrs.a_max)
    )
    return Affine(_again(call, [x.ints], a_min=low, a_max=high), x.scale, x.zero, x.dtype)


def _pad(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x, value = operands[0], call.args[1]
    if x is None or not x.plain or not isinstance(value, Constant) or value.data.size != 1:
        return None
    if call.attrs.pad_mode != "constant":
        return None
    held = np.round(float(value.data.reshape(-1)[0]) / float(x.scale.reshape(-1)[0])) + float(x.zero.reshape(-1)[0])
    return Affine(_again(call, [x.ints, _const(held, "float32")]), x.scale, x.zero, x.dtype)


def _product(name: str, axis_of: Callable[[Call], int]) -> Rule:
    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        x, w = operands[:2]
        if x is None or w is None or not x.plain or w.zero.size != 1 or "int32" in (x.dtype, w.dtype):
            return None
        op = get(name)
        assert op.attrs is not None
        kept = {k: getattr(call.attrs, k) for k in op.schema if hasattr(call.attrs, k)}
        if not w.plain and not _along_outputs(call, w):
            return None
        args = [
            x.ints, w.ints, _const(x.zero.reshape(()), "int32"), _const(w.zero.reshape(()), "int32"),
            _const(x.scale.reshape(()), "float32"), _const(w.scale.reshape(()) if w.plain else w.scale, "float32"),
        ]  # fmt: skip
        made = Call(op, args, make_attrs(op.attrs, {**kept, "out_dtype": "int32"}), (), call.span)
        return Affine(made, x.scale.reshape(()) * w.scale, np.asarray(0, "int32"), "int32", axis_of(call))

    return rule


def _along_outputs(call: Call, weight: Affine) -> bool:
    if hasattr(call.attrs, "kernel_layout"):
        return weight.axis % len(call.attrs.kernel_layout) == call.attrs.kernel_layout.index("O")
    return weight.axis % 2 == 0


def _bias(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x, b = operands[:2]
    if x is None or x.zero.any() or x.dtype != "int32":
        return None
    if b is not None and np.array_equal(b.scale, x.scale) and not b.zero.any() and b.dtype == "int32":
        return Affine(_again(call, [x.ints, b.ints]), x.scale, x.zero, "int32", x.axis)
    values = call.args[1].data if isinstance(call.args[1], Constant) else None
    if b is not None and isinstance(b.ints, Constant):
        values = (b.ints.data.astype("float64") - b.zero) * b.scale
    if values is None:
        return None
    held = np.clip(np.round(values.astype("float64") / x.scale), -(2**31), 2**31 - 1)
    return Affine(_again(call, [x.ints, _const(held, "int32")]), x.scale, x.zero, "int32", x.axis)


def _parts(x: Affine) -> list[Expr]:
    return [_const(x.scale.reshape(()), "float32"), _const(x.zero.reshape(()), "int32")]


def _binary(name: str) -> Rule:
    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        x, y = operands[:2]
        if x is None or y is None or wanted is None or not x.plain or not y.plain or x.dtype != y.dtype:
            return None
        if x.dtype != wanted.dtype:
            return None
        out = [_const(wanted.scale.reshape(()), "float32"), _const(wanted.zero.reshape(()), "int32")]
        made = op_call(name, [x.ints, y.ints, *_parts(x), *_parts(y), *out])
        return Affine(made, wanted.scale, wanted.zero, x.dtype)

    return rule


def _extreme(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x, y = operands[:2]
    if x is None or y is None or x.scale != y.scale or x.zero != y.zero or x.dtype != y.dtype:
        return None
    return Affine(_again(call, [x.ints, y.ints]), x.scale, x.zero, x.dtype)


def _channel(call: Call) -> int:
    return int((call.attrs.out_layout or call.attrs.data_layout).index("C"))


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("reshape", "squeeze", "strided_slice", "transpose", "expand_dims", "nn.max_pool2d", "nn.batch_flatten",
         "nn.depth_to_space", "max", "min", "broadcast_to"),
        _identity,
    ),
    **dict.fromkeys(("nn.avg_pool2d", "nn.global_avg_pool2d"), _average),
    "nn.relu": _relu,
    "clip": _clip,
    "nn.pad": _pad,
    "nn.bias_add": _bias,
    "nn.conv2d": _product("qnn.conv2d", _channel),
    "nn.dense": _product("qnn.dense", lambda call: 1),
    "add": _binary("qnn.add"),
    "subtract": _binary("qnn.subtract"),
    "multiply": _binary("qnn.mul"),
    "maximum": _extreme,
    "minimum": _extreme,
}  # fmt: skip
_FLOWS = frozenset({"reshape", "squeeze", "strided_slice", "transpose", "expand_dims", "nn.max_pool2d", "nn.relu", "clip",
                    "nn.batch_flatten", "nn.depth_to_space", "maximum", "minimum", "nn.pad", "broadcast_to"})  # fmt: skip


def _quantized(call: Call, x: Affine) -> Expr | None:
    """A quantize of a tensor that is known in integers."""
    scale, zero = call.args[1], call.args[2]
    if not isinstance(scale, Constant) or not isinstance(zero, Constant) or scale.data.size != 1:
        return None
    dtype = call.attrs.out_dtype
    same = x.plain and float(x.scale.reshape(-1)[0]) == float(scale.data.reshape(-1)[0])
    if same and int(x.zero.reshape(-1)[0]) == int(zero.data.reshape(-1)[0]) and x.dtype == dtype:
        return x.ints
    in_scale = x.scale.reshape(()) if x.plain else x.scale
    in_zero = x.zero.reshape(()) if x.zero.size == 1 else x.zero
    args = [x.ints, _const(in_scale, "float32"), _const(in_zero, "int32"), scale, zero]
    return op_call("qnn.requantize", args, axis=x.axis, out_dtype=dtype)


def _wanted(order: list[Expr]) -> dict[int, Wanted]:
    found: dict[int, Wanted] = {}
    for node in reversed(order):
        if not isinstance(node, Call) or not isinstance(node.op, Op):
            continue
        if node.op.name == "qnn.quantize":
            scale, zero = node.args[1:3]
            if isinstance(scale, Constant) and isinstance(zero, Constant) and scale.data.size == zero.data.size == 1:
                found[id(node.args[0])] = Wanted(scale.data, zero.data, node.attrs.out_dtype)
        elif node.op.name in _FLOWS and id(node) in found:
            for arg in node.args:
                found.setdefault(id(arg), found[id(node)])
    return found


def fake_quantization_to_integer(mod: IRModule) -> IRModule:
    """A typed module in which fake-quantized parts compute in integers; its types are to be found again."""
    return per_function(mod, _convert)


def _convert(func: Function) -> Expr:
    order = list(post_order(func))
    wanted = _wanted(order)
    affine: dict[int, Affine] = {}
    done: dict[int, Expr] = {}
    for node in order:
        new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
        if isinstance(node, Call) and isinstance(node.op, Op) and isinstance(new, Call):
            name = node.op.name
            if name == "qnn.dequantize":
                scale, zero = node.args[1:3]
                ty = tensor_type(node.args[0])
                if isinstance(scale, Constant) and isinstance(zero, Constant) and ty is not None:
                    affine[id(node)] = Affine(new.args[0], scale.data, zero.data, ty.dtype, node.attrs.axis)
            elif name == "qnn.quantize":
                x = affine.get(id(node.args[0]))
                made = _quantized(new, x) if x is not None else None
                new = retype(made, node) if made is not None else new  # type: ignore[assignment]
            elif name in RULES:
                operands = [affine.get(id(a)) for a in node.args]
                if any(o is not None for o in operands):
                    found = RULES[name](new, operands, wanted.get(id(node)))
                    if found is not None:
                        affine[id(node)] = found
        done[id(node)] = new
    return done[id(func)]


