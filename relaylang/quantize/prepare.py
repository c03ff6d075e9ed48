"""A float network made ready for quantisation: constants for weights, no normalisation, and one bias behind each product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, IRModule, TensorType, children, post_order, rewrite
from relaylang.ir.binding import bind_params
from relaylang.ir.missing import refuse_missing
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import forget_stale_types, retype, typed_constant
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.context import PassContext
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Sequential
from relaylang.passes.normal_forms.to_graph_normal_form import ToGraphNormalForm
from relaylang.passes.rewriting import is_call, per_function
from relaylang.passes.simplify.fold_constant import FoldConstant
from relaylang.passes.simplify.fold_scale_axis import FoldScaleAxis
from relaylang.passes.simplify.simplify_inference import SimplifyInference
from relaylang.rules.quantization.static import ROLES, Role

#: The names of products.
PRODUCTS = tuple([name for name, role in ROLES.items() if role is Role.PRODUCT])


def refuse(title: str, *notes: str, span: Any = None) -> RelayError:
    """The error of a network, or of data, that cannot be quantised."""
    return RelayError(error("R0530", title, span, notes=notes))


def prepare(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """A typed module whose @main is one graph of floats, with constants for parameters of these names.

    Batch normalisation is folded into weights. Constants that are added to a product's sums become one `nn.bias_add`.
    One-dimensional convolutions become two-dimensional. Raises `RelayError` (R0530) for a network that is quantised
    already, and for missing constants.
    """
    if "main" not in mod:
        raise refuse("the module has no function @main")
    refuse_missing(mod)
    mod = InferType()(bind_params(mod, params))
    for node in post_order(mod["main"]):
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name.startswith("qnn."):
            notes = ["float networks are quantised; `FakeQuantizationToInteger` makes integers of quantised ones"]
            raise refuse(f"the network is quantised already: it calls {node.op.name}", *notes, span=node.span)
    steps = [ToGraphNormalForm(), InferType(), SimplifyInference(), FoldConstant(), FoldScaleAxis(), FoldConstant()]
    with PassContext(opt_level=3):
        mod = Sequential([*steps, InferType()])(mod)
    mod = InferType()(per_function(mod, _in_two_dimensions))
    mod = InferType()(per_function(mod, _as_means))
    return InferType()(per_function(mod, _one_bias))


# ---- biases


def _along_channels(constant: np.ndarray, rank: int, axis: int) -> np.ndarray | None:
    """The vector of a constant that is broadcast to a tensor of this rank, where it varies along the axis alone."""
    shape = (1,) * (rank - constant.ndim) + constant.shape
    if len(shape) != rank or any(n != 1 for i, n in enumerate(shape) if i != axis % rank):
        return None
    return constant.reshape(-1)


def channel_axis(call: Call) -> int:
    """The axis of a product's output channels in its result."""
    attrs: Any = call.attrs
    layout = (getattr(attrs, "out_layout", "") or getattr(attrs, "data_layout", "")) if attrs is not None else ""
    return int(layout.index("C")) if "C" in layout else -1


def bias_of(call: Expr, product: Call) -> tuple[Expr, np.ndarray] | None:
    """What a call adds a vector of the product's channels to, and the vector; None for other calls."""
    ty = product.checked_type
    if not isinstance(call, Call) or not isinstance(ty, TensorType):
        return None
    rank, axis = len(ty.shape), channel_axis(product)
    if not rank or call.checked_type != ty:
        return None
    if is_call(call, "nn.bias_add") and isinstance(call.args[1], Constant):
        if call.attrs.axis % rank != axis % rank:
            return None
        return call.args[0], call.args[1].data
    if is_call(call, "add"):
        for x, c in (call.args, call.args[::-1]):
            if isinstance(c, Constant) and (vector := _along_channels(c.data, rank, axis)) is not None:
                return x, vector
    return None


def _one_bias(func: Expr) -> Expr:
    """A function with one `nn.bias_add` behind each product, in the place of sums with constants of its channels."""
    order = list(post_order(func))
    users = Counter(id(child) for node in order for child in children(node))
    biased: dict[int, tuple[Call, np.ndarray]] = {}  # by a sum: its product, and the sum of the constants
    for node in order:
        if not isinstance(node, Call) or not isinstance(node.op, Op):
            continue
        for x in node.args[:2]:
            if is_call(x, *PRODUCTS) and users[id(x)] == 1:
                found = bias_of(node, x)  # type: ignore[arg-type]
                if found is not None and found[0] is x:
                    biased[id(node)] = x, found[1]  # type: ignore[assignment]
            elif id(x) in biased and users[id(x)] == 1:
                product, vector = biased[id(x)]
                found = bias_of(node, product)
                if found is not None and found[0] is x:
                    biased[id(node)] = product, vector + found[1]

    products: dict[int, Expr] = {}

    def put(old: Expr, new: Expr) -> Expr:
        if is_call(old, *PRODUCTS):
            products[id(old)] = new
        if id(old) not in biased:
            return new
        product, vector = biased[id(old)]
        ty = product.checked_type
        assert isinstance(ty, TensorType)
        channels = ty.shape[channel_axis(product)]
        if not isinstance(channels, int):
            return new
        bias = typed_constant(np.broadcast_to(vector, (channels,)).astype("float32"))
        return retype(op_call("nn.bias_add", [products[id(product)], bias], axis=channel_axis(product)), old)

    return forget_stale_types(rewrite(func, put))


# ---- averages over all space


def _as_means(func: Expr) -> Expr:
    """A function in which averages over all space are means, whose integer form is an exact sum."""

    def put(old: Expr, new: Expr) -> Expr:
        if not is_call(new, "nn.global_avg_pool2d") or not isinstance(new, Call) or not new.attrs.layout.isalpha():
            return new
        axes = [i for i, c in enumerate(new.attrs.layout) if c in "HW"]
        return retype(op_call("mean", [new.args[0]], axis=axes, keepdims=True), old)

    return forget_stale_types(rewrite(func, put))


# ---- one dimension


def _in_two_dimensions(func: Expr) -> Expr:
    """A function in which convolutions of one dimension are those of two, along a first axis of one row."""

    def put(old: Expr, new: Expr) -> Expr:
        if not is_call(new, "nn.conv1d") or not isinstance(new, Call) or not isinstance(old, Call):
            return new
        a: Any = new.attrs
        if not isinstance(new.args[1], Constant) or static_shape(old.args[0].checked_type) is None:
            return new
        if (a.data_layout, a.kernel_layout, a.out_layout) not in (("NCW", "OIW", ""), ("NCW", "OIW", "NCW")):
            return new
        left, right = (*a.padding, *a.padding)[:2]
        weight = new.args[1].data[:, :, None, :]
        made = op_call(
            "nn.conv2d",
            [op_call("expand_dims", [new.args[0]], axis=2), typed_constant(weight)],
            strides=(1, *a.strides),
            padding=(0, left, 0, right),
            dilation=(1, *a.dilation),
            groups=a.groups,
            channels=a.channels,
            kernel_size=(1, weight.shape[3]),
        )
        made.span = new.span
        return retype(op_call("squeeze", [made], axis=[2]), old)

    return forget_stale_types(rewrite(func, put))


__all__ = ["PRODUCTS", "bias_of", "channel_axis", "prepare", "refuse"]
