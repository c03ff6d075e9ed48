"""FakeQuantizationToInteger: float operators between qnn.dequantize and qnn.quantize become integer ones.

Going down from each dequantize, a tensor is known as whole numbers with a scale and a zero point as long as the
operators on the way have integer forms; a quantize at which such a tensor arrives takes the whole numbers. What scale a
sum has in between is that of the quantize which it flows to. Everything else stays in floats. Results may be off by one
unit of the last place, where the float program rounds once and the integer one twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, define_codes, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    children,
    post_order,
    rebuild,
)
from relaylang.ops import get, make_attrs
from relaylang.ops.record import Op
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import per_function, retype, static_shape, tensor_type

define_codes({"R0516": "an operator has no integer form"})


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
    return bool(call.op.name == "nn.dense") and weight.axis % 2 == 0  # type: ignore[attr-defined]


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


def _out(wanted: Wanted) -> list[Expr]:
    return [_const(wanted.scale.reshape(()), "float32"), _const(wanted.zero.reshape(()), "int32")]


def _unary(name: str, kept: tuple[str, ...] = ()) -> Rule:
    """An operator of the qnn dialect that takes both scales; the result has the one that is wanted."""

    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        x = operands[0]
        if x is None or wanted is None or not x.plain or x.dtype != wanted.dtype:
            return None
        attrs = {k: getattr(call.attrs, k) for k in kept}
        return Affine(op_call(name, [x.ints, *_parts(x), *_out(wanted)], **attrs), wanted.scale, wanted.zero, x.dtype)

    return rule


def _concatenate(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    known = [x for x in operands if x is not None and x.plain]
    if not known or len(known) != len(operands) or len({x.dtype for x in known}) != 1:
        return None
    first, joined = known[0], Tuple([x.ints for x in known])
    if all(x.scale == first.scale and x.zero == first.zero for x in known):
        return Affine(_again(call, [joined]), first.scale, first.zero, first.dtype)
    if wanted is None or wanted.dtype != first.dtype:
        return None
    scales, zeros = (Tuple([_parts(x)[i] for x in known]) for i in (0, 1))
    made = op_call("qnn.concatenate", [joined, scales, zeros, *_out(wanted)], axis=call.attrs.axis)
    return Affine(made, wanted.scale, wanted.zero, first.dtype)


def _mean(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    """The sum, with a scale that divides it: nothing is lost."""
    x, shape, out = operands[0], static_shape(call.args[0].checked_type), static_shape(call.checked_type)
    if x is None or not x.plain or shape is None or out is None or 0 in shape:
        return None
    number = int(np.prod(shape)) // int(np.prod(out))
    kept = {k: getattr(call.attrs, k) for k in ("axis", "keepdims", "exclude")}
    total = op_call("sum", [op_call("cast", [x.ints], dtype="int32")], **kept)
    return Affine(total, x.scale / number, x.zero * number, "int32")


def _topk(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    return _identity(call, operands, wanted) if call.attrs.ret_type == "values" else None


def _channel(call: Call) -> int:
    return int((call.attrs.out_layout or call.attrs.data_layout).index("C"))


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("reshape", "squeeze", "strided_slice", "transpose", "expand_dims", "nn.max_pool2d", "nn.batch_flatten",
         "nn.depth_to_space", "max", "min", "broadcast_to", "split", "take"),
        _identity,
    ),
    **dict.fromkeys(("nn.avg_pool2d", "nn.global_avg_pool2d"), _average),
    "nn.relu": _relu,
    "clip": _clip,
    "nn.pad": _pad,
    "nn.bias_add": _bias,
    "nn.conv2d": _product("qnn.conv2d", _channel),
    "nn.conv2d_transpose": _product("qnn.conv2d_transpose", _channel),
    "nn.dense": _product("qnn.dense", lambda call: 1),
    "nn.batch_matmul": _product("qnn.batch_matmul", lambda call: 2),
    "nn.leaky_relu": _unary("qnn.leaky_relu", ("alpha",)),
    **{name: _unary(f"qnn.{name}") for name in ("sqrt", "rsqrt", "exp", "erf", "sigmoid", "tanh", "abs", "log")},
    "concatenate": _concatenate,
    "mean": _mean,
    "topk": _topk,
    "add": _binary("qnn.add"),
    "subtract": _binary("qnn.subtract"),
    "multiply": _binary("qnn.mul"),
    "maximum": _extreme,
    "minimum": _extreme,
}  # fmt: skip
#: Those that a caller asks for by name.
OPTIONAL: dict[str, Rule] = {"nn.softmax": _unary("qnn.softmax", ("axis",))}
_FLOWS = frozenset({
    "concatenate", "split", "take", "topk", "reshape", "squeeze", "strided_slice", "transpose", "expand_dims",
    "nn.max_pool2d", "nn.relu", "clip", "nn.batch_flatten", "nn.depth_to_space", "maximum", "minimum", "nn.pad",
    "broadcast_to",
})  # fmt: skip


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
        if isinstance(node, (Tuple, TupleGetItem)) and id(node) in found:
            for child in children(node):
                found.setdefault(id(child), found[id(node)])
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


def fake_quantization_to_integer(
    mod: IRModule, hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Sequence[str] = ()
) -> IRModule:
    """A typed module in which fake-quantized parts compute in integers; its types are to be found again.

    `hard_fail`: a part with an operator that has no integer form is an error (`RelayError`, R0516), else it stays in
    floats. `use_qat`: what is known in integers and flows to no quantize is computed in integers too, with a dequantize
    behind it. `optional_qnn_ops`: operators of `OPTIONAL` that are to have integer forms.
    """
    unknown = [name for name in optional_qnn_ops if name not in OPTIONAL and name not in RULES]
    if unknown:
        raise RelayError(error("R0516", f"{unknown[0]} has no integer form", notes=[f"there are {', '.join(OPTIONAL)}"]))
    rules = {**RULES, **{name: rule for name, rule in OPTIONAL.items() if name in optional_qnn_ops}}
    return per_function(mod, lambda f: _Conversion(f, rules, hard_fail, use_qat).run())


class _Conversion:
    """One function. `affine` has what is known in integers; `blame` the first operator that stopped that."""

    def __init__(self, func: Function, rules: dict[str, Rule], hard_fail: bool, use_qat: bool) -> None:
        self.func = func
        self.rules = rules
        self.hard_fail = hard_fail
        self.use_qat = use_qat
        self.order = list(post_order(func))
        self.wanted = _wanted(self.order)
        self.affine: dict[int, Affine] = {}
        self.blame: dict[int, Expr] = {}

    def run(self) -> Expr:
        done: dict[int, Expr] = {}
        for node in self.order:
            new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            if isinstance(new, TupleGetItem) and isinstance(node, TupleGetItem):
                whole = self.affine.get(id(node.tuple_value))
                if whole is not None:
                    part = TupleGetItem(whole.ints, node.index, node.span)
                    self.affine[id(node)] = Affine(part, whole.scale, whole.zero, whole.dtype)
            elif isinstance(new, Call) and isinstance(node, Call) and isinstance(node.op, Op):
                new = self.call(node, new)
            if self.hard_fail and id(node) not in self.affine and id(node) not in self.blame:
                self.follow(node)
            done[id(node)] = new
        return done[id(self.func)]

    def follow(self, node: Expr) -> None:
        """Remember which operator it was that left the integers."""
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "qnn.quantize":
            return
        for child in children(node):
            if id(child) in self.blame:
                self.blame[id(node)] = self.blame[id(child)]
                return
        inner = [f for c in children(node) for f in (c.fields if isinstance(c, Tuple) else (c,))]
        if isinstance(node, Call) and any(id(c) in self.affine for c in inner):
            self.blame[id(node)] = node

    def call(self, node: Call, new: Call) -> Expr:
        assert isinstance(node.op, Op)
        name = node.op.name
        if name == "qnn.dequantize":
            scale, zero = node.args[1:3]
            ty = tensor_type(node.args[0])
            if isinstance(scale, Constant) and isinstance(zero, Constant) and ty is not None:
                self.affine[id(node)] = Affine(new.args[0], scale.data, zero.data, ty.dtype, node.attrs.axis)
        elif name == "qnn.quantize":
            x = self.affine.get(id(node.args[0]))
            if self.hard_fail and id(node.args[0]) in self.blame:
                stopped = self.blame[id(node.args[0])]
                what = stopped.op.name if isinstance(stopped, Call) and isinstance(stopped.op, Op) else "this call"
                raise RelayError(error("R0516", f"{what} has no integer form here", stopped.span))
            made = _quantized(new, x) if x is not None else None
            return retype(made, node) if made is not None else new
        elif name in self.rules:
            given = [f for a in node.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
            operands = [self.affine.get(id(a)) for a in given]
            if any(o is not None for o in operands):
                found = self.rules[name](new, operands, self.wanted.get(id(node)))
                if found is not None:
                    self.affine[id(node)] = found
                    if self.use_qat and isinstance(node.checked_type, TensorType):
                        return retype(_real(found, node.checked_type.dtype), node)
        return new


def _real(x: Affine, dtype: str) -> Expr:
    """What is known in integers as real numbers."""
    scale = x.scale.reshape(()) if x.scale.size == 1 else x.scale
    zero = np.broadcast_to(x.zero, scale.shape) if x.zero.size == 1 else x.zero
    args = [x.ints, _const(scale, "float32"), _const(zero.reshape(scale.shape), "int32")]
    return op_call("qnn.dequantize", args, axis=x.axis, out_dtype=dtype)
