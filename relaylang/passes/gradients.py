"""Each operator's gradient: what a change of its operands does to its result, carried backwards.

`GRADIENTS[name](call, grad)` gives the gradient of each operand, or None where it has none (whole numbers, shapes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleType
from relaylang.ops import get, make_attrs
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import static_shape

Grads = list[Any]  # an expression, None, or for a tuple operand a list of such
Gradient = Callable[[Call, Any], Grads]


def _number(value: float, like: Expr) -> Constant:
    ty = like.checked_type
    assert isinstance(ty, TensorType)
    made = Constant(np.asarray(value).astype(np.dtype(ty.dtype)), dtype=ty.dtype)
    made.checked_type = TensorType((), ty.dtype)
    return made


def _of(name: str, *args: Expr, **attrs: Any) -> Call:
    return op_call(name, list(args), **attrs)


def _mul(a: Expr, b: Expr) -> Expr:
    return _of("multiply", a, b)


def _sub(a: Expr, b: Expr) -> Expr:
    return _of("subtract", a, b)


def _div(a: Expr, b: Expr) -> Expr:
    return _of("divide", a, b)


def _square(x: Expr) -> Expr:
    return _mul(x, x)


def _one_less(x: Expr, like: Expr) -> Expr:
    return _sub(_number(1, like), x)


def _unary(slope: Callable[[Expr, Call], Expr]) -> Gradient:
    """The gradient from the slope at x: `slope(x, result)`."""
    return lambda call, grad: [_mul(grad, slope(call.args[0], call))]


def _reduced_to(grad: Expr, operand: Expr, call: Call) -> Expr:
    """A gradient summed over what was broadcast."""
    if operand.checked_type == call.checked_type:
        return grad
    return _of("collapse_sum_like", grad, operand)


def _binary(left: Callable[..., Expr], right: Callable[..., Expr]) -> Gradient:
    def gradient(call: Call, grad: Expr) -> Grads:
        x, y = call.args
        return [_reduced_to(left(grad, x, y, call), x, call), _reduced_to(right(grad, x, y, call), y, call)]

    return gradient


def _mask(grad: Expr, condition: Expr) -> Expr:
    return _of("where", condition, grad, _of("zeros_like", grad))


def _reshaped(call: Call, grad: Expr) -> Grads:
    return [_of("reshape_like", grad, call.args[0]), *[None] * (len(call.args) - 1)]


def _transpose(call: Call, grad: Expr) -> Grads:
    rank = len(call.checked_type.shape)  # type: ignore[union-attr]
    axes = [a % rank for a in call.attrs.axes] if call.attrs.axes else list(reversed(range(rank)))
    return [_of("transpose", grad, axes=[axes.index(i) for i in range(rank)])]


def _axes(call: Call, rank: int) -> list[int]:
    given = call.attrs.axis
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return list(range(rank)) if not call.attrs.exclude else []
    axes = [a % rank for a in ([given] if isinstance(given, int) else given)]
    return [i for i in range(rank) if i not in axes] if call.attrs.exclude else sorted(axes)


def _unreduced(call: Call, value: Expr) -> Expr:
    """A reduction's result, or its gradient, with the axes that it summed over as they were."""
    x = call.args[0]
    shape = static_shape(x.checked_type)
    assert shape is not None
    axes = _axes(call, len(shape))
    if not call.attrs.keepdims:
        kept = [1 if i in axes else d for i, d in enumerate(shape)]
        value = _of("reshape", value, newshape=kept) if kept else value
    return _of("broadcast_to_like", value, x)


def _extent(call: Call) -> int:
    shape = static_shape(call.args[0].checked_type)
    assert shape is not None
    return math.prod(shape[i] for i in _axes(call, len(shape)))


def _mean(call: Call, grad: Expr) -> Grads:
    return [_div(_unreduced(call, grad), _number(_extent(call), call))]


def _variance(call: Call, grad: Expr) -> Grads:
    x, mean = call.args
    divisor = _extent(call) - (1 if call.attrs.unbiased else 0)
    factor = _div(_unreduced(call, grad), _number(divisor / 2, x))
    inner = _mul(factor, _sub(x, mean))
    return [inner, _of("collapse_sum_like", _of("negative", inner), mean)]


def _extreme(call: Call, grad: Expr) -> Grads:
    x = call.args[0]
    shape = static_shape(x.checked_type)
    assert shape is not None
    hit = _of("cast_like", _of("equal", x, _unreduced(call, call)), x)
    axes = _axes(call, len(shape))
    number = _of("broadcast_to_like", _of("sum", hit, axis=axes, keepdims=True), x)
    return [_div(_mul(_unreduced(call, grad), hit), number)]


def _softmax(call: Call, grad: Expr) -> Grads:
    inner = _mul(grad, call)
    total = _of("sum", inner, axis=[call.attrs.axis], keepdims=True)
    return [_mul(_sub(grad, total), call)]


def _log_softmax(call: Call, grad: Expr) -> Grads:
    total = _of("sum", grad, axis=[call.attrs.axis], keepdims=True)
    return [_sub(grad, _mul(_of("exp", call), total))]


def _bias_add(call: Call, grad: Expr) -> Grads:
    rank = len(call.checked_type.shape)  # type: ignore[union-attr]
    axis = call.attrs.axis % rank
    return [grad, _of("sum", grad, axis=[i for i in range(rank) if i != axis])]


def _flat(x: Expr) -> Expr:
    shape = static_shape(x.checked_type)
    return x if shape is not None and len(shape) == 2 else _of("reshape", x, newshape=[-1, shape[-1] if shape else 1])


def _turned(x: Expr) -> Expr:
    return _of("transpose", x, axes=[1, 0])


def _dense(call: Call, grad: Expr) -> Grads:
    data, weight = call.args
    flat_shape = static_shape(call.checked_type)
    assert flat_shape is not None
    flat_grad = grad if len(flat_shape) == 2 else _of("reshape", grad, newshape=[-1, flat_shape[-1]])
    d_data = _of("nn.dense", flat_grad, _turned(weight))
    if len(flat_shape) != 2:
        d_data = _of("reshape_like", d_data, data)
    return [d_data, _of("nn.dense", _turned(flat_grad), _turned(_flat(data)))]


def _product(name: str, call: Call, grad: Expr) -> Grads:
    """Of a product of matrices whose sides may be transposed."""
    x, y = call.args
    ta, tb = call.attrs.transpose_a, call.attrs.transpose_b

    def product(a: Expr, b: Expr, turn_a: bool, turn_b: bool) -> Expr:
        return _of(name, a, b, transpose_a=turn_a, transpose_b=turn_b)

    dx = product(y, grad, tb, True) if ta else product(grad, y, False, not tb)
    dy = product(grad, x, True, ta) if tb else product(x, grad, not ta, False)
    return [dx, dy]


def _matmul(call: Call, grad: Expr) -> Grads:
    return _product("nn.matmul", call, grad)


def _batch_product(call: Call, grad: Expr) -> Grads:
    return [_batches(part, side) for part, side in zip(_product("nn.batch_matmul", call, grad), call.args)]


def _batches(grad: Expr, operand: Expr) -> Expr:
    shape = static_shape(operand.checked_type)
    return _of("sum", grad, axis=[0], keepdims=True) if shape is not None and shape[0] == 1 else grad


def _conv2d(call: Call, grad: Expr) -> Grads:
    data, weight = call.args
    attrs = call.attrs
    shapes = [static_shape(e.checked_type) for e in (data, weight, call)]
    assert None not in shapes
    (_, _, h, w), (_, _, kh, kw), (_, _, oh, ow) = shapes  # type: ignore[misc]
    if (attrs.data_layout, attrs.kernel_layout) != ("NCHW", "OIHW"):
        raise NoGradient(f"nn.conv2d in {attrs.data_layout}, {attrs.kernel_layout}; ConvertLayout makes NCHW of it")
    top, left, bottom, right = _four(attrs.padding)
    sh, sw = attrs.strides
    dh, dw = attrs.dilation
    out_pad = (
        h - ((oh - 1) * sh - top - bottom + (kh - 1) * dh + 1),
        w - ((ow - 1) * sw - left - right + (kw - 1) * dw + 1),
    )
    d_data = op_call(
        "nn.conv2d_transpose", [grad, weight], strides=[sh, sw], padding=[top, left, bottom, right], dilation=[dh, dw],
        groups=attrs.groups, output_padding=list(out_pad), channels=shapes[0][1], kernel_size=[kh, kw],  # type: ignore[index]
    )  # fmt: skip
    kept = {n: getattr(attrs, n) for n in get("nn.conv2d_backward_weight").schema}
    kept.update(padding=[top, left, bottom, right], kernel_size=[kh, kw], kernel_layout="NCHW", out_layout="OIHW")
    op = get("nn.conv2d_backward_weight")
    assert op.attrs is not None
    return [d_data, Call(op, [grad, data], make_attrs(op.attrs, kept))]


def _four(padding: Any) -> tuple[int, int, int, int]:
    given = list(padding)
    if len(given) == 1:
        given = given * 4
    elif len(given) == 2:
        given = given * 2
    return tuple(given)  # type: ignore[return-value]


def _pool(name: str) -> Gradient:
    def gradient(call: Call, grad: Expr) -> Grads:
        op = get(name)
        assert op.attrs is not None
        kept = {n: getattr(call.attrs, n) for n in op.schema if hasattr(call.attrs, n)}
        return [Call(op, [grad, call.args[0]], make_attrs(op.attrs, kept))]

    return gradient


def _global_average(call: Call, grad: Expr) -> Grads:
    shape = static_shape(call.args[0].checked_type)
    assert shape is not None
    number = math.prod(d for d, c in zip(shape, call.attrs.layout) if c in "HW")
    return [_of("broadcast_to_like", _div(grad, _number(number, call)), call.args[0])]


def _extents(tuple_value: Expr, axis: int) -> list[int]:
    ty = tuple_value.checked_type
    assert isinstance(ty, TupleType)
    return [int(t.shape[axis]) for t in ty.fields if isinstance(t, TensorType)]  # type: ignore[arg-type]


def _concatenate(call: Call, grad: Expr) -> Grads:
    rank = len(call.checked_type.shape)  # type: ignore[union-attr]
    axis = call.attrs.axis % rank
    begin = 0
    found: list[Expr] = []
    for extent in _extents(call.args[0], axis):
        found.append(_of("strided_slice", grad, begin=[begin], end=[begin + extent], strides=[1], axes=[axis]))
        begin += extent
    return [found]


def _stack(call: Call, grad: Expr) -> Grads:
    rank = len(call.checked_type.shape)  # type: ignore[union-attr]
    axis = call.attrs.axis % rank
    ty = call.args[0].checked_type
    assert isinstance(ty, TupleType)
    found: list[Expr] = []
    for i in range(len(ty.fields)):
        part = _of("strided_slice", grad, begin=[i], end=[i + 1], strides=[1], axes=[axis])
        found.append(_of("squeeze", part, axis=[axis]))
    return [found]


def _split(call: Call, grads: list[Expr]) -> Grads:
    return [_of("concatenate", Tuple(grads), axis=call.attrs.axis)]


def _strided_slice(call: Call, grad: Expr) -> Grads:
    """The gradient spread out by the strides, turned round where they run backwards, between zeros."""
    x = call.args[0]
    shape, out = static_shape(x.checked_type), static_shape(call.checked_type)
    attrs = call.attrs
    if shape is None or out is None or attrs.slice_mode not in ("end", "size"):
        raise NoGradient("strided_slice of unknown extents")
    given = list(attrs.strides or []) if attrs.slice_mode == "end" else []
    axes = list(attrs.axes) if attrs.axes else list(range(len(attrs.begin)))
    given += [given[0] if len(given) == 1 else 1] * (len(axes) - len(given))
    widths = [[0, 0] for _ in shape]
    strides = [1] * len(shape)
    for axis, begin, stride in zip(axes, attrs.begin, given):
        axis %= len(shape)
        extent, count = shape[axis], out[axis]
        first = begin + extent if begin < 0 else begin
        first = max(0, min(first, extent)) if stride > 0 else max(-1, min(first, extent - 1))
        last = first + (count - 1) * stride
        if stride < 0 and count > 1:
            grad = _of("reverse", grad, axis=axis)
        strides[axis] = abs(stride)
        widths[axis] = [min(first, last), extent - 1 - max(first, last)] if count else [0, extent]
    if any(s > 1 for s in strides) and 0 not in out:
        grad = _of("nn.dilate", grad, strides=strides)
    return [_of("nn.pad", grad, _number(0, call), pad_width=widths)]


def _take(call: Call, grad: Expr) -> Grads:
    """What was taken from one place is added up there; the axis that is taken from stands first meanwhile."""
    data, indices = call.args
    shape, picked = static_shape(data.checked_type), static_shape(indices.checked_type)
    if shape is None or picked is None or call.attrs.batch_dims:
        raise NoGradient("take of unknown extents, or in batches")
    zeros: Expr = _of("zeros_like", data)
    if call.attrs.axis is None:
        axis, shape = 0, (math.prod(shape),)
        zeros = _of("reshape", zeros, newshape=[-1])
    else:
        axis = call.attrs.axis % len(shape)
    rest = [d for i, d in enumerate(shape) if i != axis]
    number, rank = math.prod(picked), len(picked)
    inner = list(range(axis, axis + rank))
    others = [i for i in range(rank + len(shape) - 1) if i not in inner]
    front = _of("transpose", grad, axes=[*inner, *others]) if inner and axis else grad
    updates = _of("reshape", front, newshape=[number, *rest])
    places: Expr = _of("reshape", indices, newshape=[1, number])
    ty = indices.checked_type
    assert isinstance(ty, TensorType)
    if call.attrs.mode == "clip":
        last = Constant(np.asarray(shape[axis] - 1, ty.dtype))
        places = _of("minimum", _of("maximum", places, Constant(np.asarray(0, ty.dtype))), last)
    elif call.attrs.mode == "wrap":
        places = _of("floor_mod", places, Constant(np.asarray(shape[axis], ty.dtype)))
    order = [axis, *[i for i in range(len(shape)) if i != axis]]
    turned = _of("transpose", zeros, axes=order) if axis else zeros
    found = _of("scatter_nd", turned, places, updates, mode="add")
    if axis:
        found = _of("transpose", found, axes=[order.index(i) for i in range(len(shape))])
    return [found if call.attrs.axis is not None else _of("reshape_like", found, data), None]


def _gather_nd(call: Call, grad: Expr) -> Grads:
    if call.attrs.batch_dims:
        raise NoGradient("gather_nd in batches")
    data, indices = call.args
    return [_of("scatter_nd", _of("zeros_like", data), indices, grad, mode="add"), None]


def _where(call: Call, grad: Expr) -> Grads:
    cond, x, y = call.args
    zeros = _of("zeros_like", grad)
    return [
        None,
        _reduced_to(_of("where", cond, grad, zeros), x, call),
        _reduced_to(_of("where", cond, zeros, grad), y, call),
    ]


def _cross_entropy(call: Call, grad: Expr) -> Grads:
    x, y = call.args
    shape = static_shape(x.checked_type)
    assert shape is not None
    scaled = _div(grad, _number(shape[0], x))
    return [_of("negative", _mul(scaled, _div(y, x))), _of("negative", _mul(scaled, _of("log", x)))]


def _cross_entropy_with_logits(call: Call, grad: Expr) -> Grads:
    x, y = call.args
    shape = static_shape(x.checked_type)
    assert shape is not None
    scaled = _div(grad, _number(shape[0], x))
    return [_of("negative", _mul(scaled, y)), _of("negative", _mul(scaled, x))]


def _none(call: Call, grad: Any) -> Grads:
    return [None] * len(call.args)


class NoGradient(Exception):
    """The gradient of a call is not known; the message says of which."""


_PI = 2 / math.sqrt(math.pi)
GRADIENTS: dict[str, Gradient] = {
    "log": lambda c, g: [_div(g, c.args[0])],
    "log2": lambda c, g: [_div(g, _mul(c.args[0], _number(math.log(2), c)))],
    "log10": lambda c, g: [_div(g, _mul(c.args[0], _number(math.log(10), c)))],
    "exp": _unary(lambda x, y: y),
    "sqrt": lambda c, g: [_div(_mul(g, _number(0.5, c)), c)],
    "rsqrt": lambda c, g: [_mul(_mul(g, _number(-0.5, c)), _mul(c, _square(c)))],
    "sin": _unary(lambda x, y: _of("cos", x)),
    "cos": lambda c, g: [_of("negative", _mul(g, _of("sin", c.args[0])))],
    "tan": _unary(lambda x, y: _of("add", _number(1, y), _square(y))),
    "sinh": _unary(lambda x, y: _of("cosh", x)),
    "cosh": _unary(lambda x, y: _of("sinh", x)),
    "tanh": _unary(lambda x, y: _one_less(_square(y), y)),
    "asin": lambda c, g: [_div(g, _of("sqrt", _one_less(_square(c.args[0]), c)))],
    "acos": lambda c, g: [_of("negative", _div(g, _of("sqrt", _one_less(_square(c.args[0]), c))))],
    "atan": lambda c, g: [_div(g, _of("add", _number(1, c), _square(c.args[0])))],
    "asinh": lambda c, g: [_div(g, _of("sqrt", _of("add", _number(1, c), _square(c.args[0]))))],
    "acosh": lambda c, g: [_div(g, _of("sqrt", _sub(_square(c.args[0]), _number(1, c))))],
    "atanh": lambda c, g: [_div(g, _one_less(_square(c.args[0]), c))],
    "sigmoid": _unary(lambda x, y: _mul(y, _one_less(y, y))),
    "erf": _unary(lambda x, y: _mul(_number(_PI, y), _of("exp", _of("negative", _square(x))))),
    # At the corners of these two the right side's slope, as in TVM.
    "nn.relu": lambda c, g: [_mask(g, _of("greater_equal", c.args[0], _number(0, c)))],
    "nn.leaky_relu": lambda c, g: [
        _of("where", _of("greater", c.args[0], _number(0, c)), g, _mul(g, _number(c.attrs.alpha, c)))
    ],
    "abs": lambda c, g: [_of("where", _of("greater_equal", c.args[0], _number(0, c)), g, _of("negative", g))],
    "negative": lambda c, g: [_of("negative", g)],
    "copy": lambda c, g: [g],
    "clip": lambda c, g: [
        _mask(g, _of("logical_and", _of("greater_equal", c.args[0], _number(c.attrs.a_min, c)),
                     _of("less_equal", c.args[0], _number(c.attrs.a_max, c))))
    ],
    "cast": lambda c, g: [_of("cast_like", g, c.args[0])],
    "cast_like": lambda c, g: [_of("cast_like", g, c.args[0]), None],
    "add": _binary(lambda g, x, y, c: g, lambda g, x, y, c: g),
    "subtract": _binary(lambda g, x, y, c: g, lambda g, x, y, c: _of("negative", g)),
    "multiply": _binary(lambda g, x, y, c: _mul(g, y), lambda g, x, y, c: _mul(g, x)),
    "divide": _binary(lambda g, x, y, c: _div(g, y), lambda g, x, y, c: _of("negative", _div(_mul(g, c), y))),
    "power": _binary(
        lambda g, x, y, c: _mul(g, _mul(y, _of("power", x, _sub(y, _number(1, y))))),
        lambda g, x, y, c: _mul(g, _mul(c, _of("log", x))),
    ),
    "maximum": _binary(
        lambda g, x, y, c: _mask(g, _of("greater_equal", x, y)), lambda g, x, y, c: _mask(g, _of("less", x, y))
    ),
    "minimum": _binary(
        lambda g, x, y, c: _mask(g, _of("less_equal", x, y)), lambda g, x, y, c: _mask(g, _of("greater", x, y))
    ),
    **dict.fromkeys(("reshape", "nn.batch_flatten", "squeeze", "expand_dims", "contrib_reverse_reshape",
                     "reshape_like", "dyn.reshape"), _reshaped),
    "transpose": _transpose,
    "sum": lambda c, g: [_unreduced(c, g)],
    "mean": _mean,
    "variance": _variance,
    "max": _extreme,
    "min": _extreme,
    "nn.softmax": _softmax,
    "nn.log_softmax": _log_softmax,
    "nn.bias_add": _bias_add,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _batch_product,
    "nn.conv2d": _conv2d,
    "nn.max_pool2d": _pool("nn.max_pool2d_grad"),
    "nn.avg_pool2d": _pool("nn.avg_pool2d_grad"),
    "nn.global_avg_pool2d": _global_average,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "strided_slice": _strided_slice,
    "take": _take,
    "gather_nd": _gather_nd,
    "where": _where,
    "nn.cross_entropy": _cross_entropy,
    "nn.cross_entropy_with_logits": _cross_entropy_with_logits,
    "collapse_sum_like": lambda c, g: [_of("broadcast_to_like", g, c.args[0]), None],
    "collapse_sum_to": lambda c, g: [_of("broadcast_to_like", g, c.args[0]), *[None] * (len(c.args) - 1)],
    "broadcast_to_like": lambda c, g: [_of("collapse_sum_like", g, c.args[0]), None],
    "broadcast_to": lambda c, g: [_of("collapse_sum_like", g, c.args[0]), *[None] * (len(c.args) - 1)],
    **dict.fromkeys(("zeros", "ones", "zeros_like", "ones_like", "full", "arange", "shape_of", "one_hot", "less_equal", "less",
                     "greater", "greater_equal", "equal", "not_equal", "argmax", "argmin", "dyn.zeros", "dyn.ones",
                     "floor", "ceil", "round", "sign", "ndarray_size", "logical_and", "logical_or"), _none),
}  # fmt: skip
