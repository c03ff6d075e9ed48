"""SimplifyInference: what normalisation and dropout compute when a trained network runs, in plain operators.

`batch_norm(x)` with fixed statistics is `x * scale + shift` with one factor and one summand a channel; dropout is the
identity; layer, group, instance and L2 normalisation are spelt out as means and variances.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.ir import Call, Expr, IRModule, TensorType, TupleGetItem, post_order, rebuilt
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass

Shape = tuple[Any, ...]


def _per_axis(vector: Expr, ndim: int, axis: int) -> Expr:
    """A vector along `axis`, with trailing axes of extent 1 so that it broadcasts to `ndim` dimensions."""
    behind = ndim - axis - 1
    if behind == 0:
        return vector
    assert isinstance(vector.checked_type, TensorType)
    ty = TensorType((*vector.checked_type.shape, *[1] * behind), vector.checked_type.dtype)
    return op_call("expand_dims", [vector], ty, axis=1, num_newaxis=behind)


def _batch_norm(call: Call, ty: TensorType) -> Expr:
    data, gamma, beta, mean, var = call.args
    attrs = call.attrs
    axis = attrs.axis % len(ty.shape)
    vector = TensorType((ty.shape[axis],), ty.dtype)
    scale: Expr = op_call("sqrt", [op_call("add", [var, scalar(attrs.epsilon, ty.dtype)], vector)], vector)
    scale = op_call("divide", [scalar(1.0, ty.dtype), scale], vector)
    if attrs.scale:
        scale = op_call("multiply", [scale, gamma], vector)
    shift: Expr = op_call("multiply", [op_call("negative", [mean], vector), scale], vector)
    if attrs.center:
        shift = op_call("add", [shift, beta], vector)
    scaled = op_call("multiply", [data, _per_axis(scale, len(ty.shape), axis)], ty)
    return op_call("add", [scaled, _per_axis(shift, len(ty.shape), axis)], ty)


def _normalised(data: Expr, ty: TensorType, axes: Sequence[int], epsilon: float) -> Expr:
    """`(data - mean) / sqrt(variance + epsilon)` over some axes."""
    kept = TensorType([1 if i in axes or i - len(ty.shape) in axes else d for i, d in enumerate(ty.shape)], ty.dtype)
    mean = op_call("mean", [data], kept, axis=list(axes), keepdims=True)
    var = op_call("variance", [data, mean], kept, axis=list(axes), keepdims=True)
    root = op_call("sqrt", [op_call("add", [var, scalar(epsilon, ty.dtype)], kept)], kept)
    return op_call("divide", [op_call("subtract", [data, mean], ty), root], ty)


def _affine(out: Expr, call: Call, ty: TensorType, axis: int) -> Expr:
    """The learnt factor and summand of a normalisation, where it has them."""
    gamma, beta = call.args[1:3]
    ndim = len(ty.shape)
    if call.attrs.scale:
        out = op_call("multiply", [out, _per_axis(gamma, ndim, axis)], ty)
    if call.attrs.center:
        out = op_call("add", [out, _per_axis(beta, ndim, axis)], ty)
    return out


def _layer_norm(call: Call, ty: TensorType) -> Expr:
    axis = call.attrs.axis
    out = _normalised(call.args[0], ty, [axis], call.attrs.epsilon)  # as TVM, with the axis as it is written
    return _affine(out, call, ty, axis % len(ty.shape))


def _instance_norm(call: Call, ty: TensorType) -> Expr:
    axis = call.attrs.axis % len(ty.shape)
    axes = [i for i in range(1, len(ty.shape)) if i != axis]
    return _affine(_normalised(call.args[0], ty, axes, call.attrs.epsilon), call, ty, axis)


def _group_norm(call: Call, ty: TensorType) -> Expr | None:
    axis = call.attrs.axis % len(ty.shape)
    if not all(isinstance(d, int) for d in ty.shape):
        return None
    groups = call.attrs.num_groups
    shape = (*ty.shape[:axis], groups, ty.shape[axis] // groups, *ty.shape[axis + 1 :])  # type: ignore[operator]
    split = TensorType(shape, ty.dtype)
    data = op_call("reshape", [call.args[0]], split, newshape=list(shape))
    out = _normalised(data, split, range(axis + 1, len(shape)), call.attrs.epsilon)
    return _affine(op_call("reshape", [out], ty, newshape=list(ty.shape)), call, ty, axis)


def _l2_normalize(call: Call, ty: TensorType) -> Expr:
    data = call.args[0]
    axes = call.attrs.axis
    whole = axes is None or len(axes) == 0
    norm = {i for i in range(len(ty.shape))} if whole else {a % len(ty.shape) for a in axes}
    kept = TensorType([1 if i in norm else d for i, d in enumerate(ty.shape)], ty.dtype)
    total = op_call("sum", [op_call("multiply", [data, data], ty)], kept, axis=sorted(norm), keepdims=True)
    total = op_call("maximum", [total, scalar(call.attrs.eps, ty.dtype)], kept)
    return op_call("divide", [data, op_call("sqrt", [total], kept)], ty)


_CALLS: dict[str, Callable[[Call, TensorType], Expr | None]] = {
    "nn.layer_norm": _layer_norm,
    "nn.group_norm": _group_norm,
    "nn.instance_norm": _instance_norm,
    "nn.l2_normalize": _l2_normalize,
}


def simplify_expr(expr: Expr) -> Expr:
    """Simplify one typed expression; see `simplify_inference`."""
    done: dict[int, Expr] = {}
    for old in post_order(expr):
        new = rebuilt(old, done)
        if new is not old:
            new.checked_type = old.checked_type
        replaced: Expr | None = None
        if isinstance(old, Call) and isinstance(old.op, Op):
            ty = old.args[0].checked_type if old.args else None
            lower = _CALLS.get(old.op.name)
            if lower is not None and isinstance(new, Call) and isinstance(ty, TensorType):
                replaced = lower(new, ty)
        elif isinstance(new, TupleGetItem) and new.index == 0:
            call = new.tuple_value
            if isinstance(call, Call) and isinstance(call.op, Op):
                ty = old.checked_type
                if call.op.name == "nn.batch_norm" and isinstance(ty, TensorType):
                    replaced = _batch_norm(call, ty)
                elif call.op.name == "nn.dropout":
                    replaced = call.args[0]
        if replaced is not None and replaced.span is None:
            replaced.span = old.span
        done[id(old)] = new if replaced is None else replaced
    return done[id(expr)]


def simplify_inference(mod: Any) -> Any:
    """Simplify every function of a typed module (also usable on a single expression). The result is typed."""
    if isinstance(mod, Expr):
        return simplify_expr(mod)
    return mod.with_functions({gv: simplify_expr(f) for gv, f in mod.functions.items()})  # type: ignore[misc]


@dataclass(frozen=True)
class SimplifyInference(Pass):
    """Batch normalisation, dropout and the like as the arithmetic that they are when a network only answers."""

    def run(self, mod: IRModule) -> IRModule:
        made: IRModule = simplify_inference(mod)
        return made
