"""A float network made ready for quantisation: constants for weights, no normalisation, and one bias behind each product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, IRModule, TensorType, children, post_order, rewrite
from relaylang.ir.binding import bind_params
from relaylang.ir.missing import refuse_missing
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import forget_stale_types, retype, typed_constant
from relaylang.ops.record import Op
from relaylang.passes.context import PassContext
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Sequential
from relaylang.passes.normal_forms.to_graph_normal_form import ToGraphNormalForm
from relaylang.passes.rewriting import is_call, per_function
from relaylang.passes.simplify.fold_constant import FoldConstant
from relaylang.passes.simplify.fold_scale_axis import FoldScaleAxis
from relaylang.passes.simplify.simplify_inference import SimplifyInference
from relaylang.rules.quantization.forms import as_mean, bias_of, channel_axis, in_two_dimensions, with_bias
from relaylang.rules.quantization.static import ROLES, Role

#: The names of products.
PRODUCTS = tuple([name for name, role in ROLES.items() if role is Role.PRODUCT])


def refuse(title: str, *notes: str, span: Any = None) -> RelayError:
    """The error of a network, or of data, that cannot be quantised."""
    return RelayError(error("R0530", title, span, notes=notes))


def prepare(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """A typed module whose @main is one graph of floats, with constants for parameters of these names.

    Batch normalisation is folded into weights. Computed factors, such as gates, stay behind their layers. Constants that
    are added to a product's sums become one `nn.bias_add`.
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
    steps = [ToGraphNormalForm(), InferType(), SimplifyInference(), FoldConstant(), FoldScaleAxis(computed=False), FoldConstant()]
    with PassContext(opt_level=3):
        mod = Sequential([*steps, InferType()])(mod)
    mod = InferType()(per_function(mod, partial(_in_one_form, form=in_two_dimensions)))
    mod = InferType()(per_function(mod, partial(_in_one_form, form=as_mean)))
    return InferType()(per_function(mod, _one_bias))


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
                bias = bias_of(node, x)
                if bias is not None and bias[0] is x:
                    biased[id(node)] = x, bias[1]
            elif id(x) in biased and users[id(x)] == 1:
                product, vector = biased[id(x)]
                bias = bias_of(node, product)
                if bias is not None and bias[0] is x:
                    biased[id(node)] = product, vector + bias[1]

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
        return retype(with_bias(products[id(product)], bias, channel_axis(product)), old)

    return forget_stale_types(rewrite(func, put))


def _in_one_form(func: Expr, form: Callable[[Call], Call | None]) -> Expr:
    """A function in which a form takes the place of the calls that have one."""

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not isinstance(old, Call) or not old.args:
            return new
        # Operands that were rewritten have no types yet.
        rewritten = form(new) if static_shape(old.args[0].checked_type) is not None else None
        return new if rewritten is None else retype(rewritten, old)

    return forget_stale_types(rewrite(func, put))


__all__ = ["PRODUCTS", "prepare", "refuse"]
