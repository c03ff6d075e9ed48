"""Dynamic quantisation: int8 weights of dense layers, whose data get a scale at run time.

The data of a product are symmetric: the scale is the largest magnitude of the tensor over 127. Recurrent networks and
attention are products of such layers with constants; products of two computed tensors stay in floats.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, IRModule, rewrite
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import forget_stale_types, typed_constant
from relaylang.ops.build import op_call, scalar
from relaylang.passes.infer_type import InferType
from relaylang.passes.rewriting import is_call, per_function
from relaylang.quantize.insert import Scale
from relaylang.quantize.layers import Layer, named_layers
from relaylang.quantize.prepare import prepare, refuse
from relaylang.quantize.static import StaticConfig, quantized_weight
from relaylang.rules.quantization.static import Role

#: The least scale of data: smaller ones have no reciprocal in float32.
_LEAST = float(np.finfo("float32").tiny) * 2**8


def quantize_dynamic(
    mod: IRModule, params: Mapping[str, Any] | None = None, keep_float: Collection[str] = (), weights: str = "max"
) -> IRModule:
    """A float network's @main with int8 weights in dense layers, also those in nested functions and loops.

    Weights have one scale for each output. `keep_float` and `weights` are as in `StaticConfig`. Raises `RelayError` (R0530)
    where there is no such layer, and for names of no layer.
    """
    prepared = prepare(mod, params)
    config = StaticConfig(weights=weights)
    kept = {id(layer.head) for layer in named_layers(prepared, keep_float)}
    count = 0
    rounded: dict[int, tuple[Expr, Expr, Expr]] = {}  # data, their whole numbers and scale, once for all products of them

    def put(old: Expr, new: Expr) -> Expr:
        nonlocal count
        if not is_call(old, "nn.dense") or not isinstance(new, Call) or not isinstance(old, Call) or id(old) in kept:
            return new
        weight, ty = old.args[1], tensor_type(old.args[0])
        if not isinstance(weight, Constant) or ty is None or ty.dtype != "float32" or weight.dtype != "float32":
            return new
        if not weight.data.size:
            return new
        if not np.isfinite(weight.data).all():
            raise refuse("the weight of a dense layer has numbers that are not finite", span=old.span)
        count += 1
        x = new.args[0]
        if id(x) not in rounded:
            rounded[id(x)] = x, *_rounded(x)
        whole = quantized_weight(Layer("", old, Role.PRODUCT, [], weight), Scale(1.0, 0, "int8"), None, config)
        return _dense(*rounded[id(x)][1:], whole)

    changed = per_function(prepared, lambda f: forget_stale_types(rewrite(f, put)))
    if not count:
        raise refuse("the network has no dense layer with constant weights", "the other modes quantise convolutions")
    return InferType()(changed)


def _rounded(x: Expr) -> tuple[Expr, Expr]:
    """Data as int8, and their scale."""
    most = op_call("max", [op_call("abs", [x])])
    scale = op_call("maximum", [op_call("divide", [most, scalar(127.0, "float32")]), scalar(_LEAST, "float32")])
    return op_call("qnn.quantize", [x, scale, scalar(0, "int32")], axis=-1, out_dtype="int8"), scale


def _dense(ints: Expr, scale: Expr, weight: Any) -> Expr:
    """A product of rounded data and whole weights."""
    zero = scalar(0, "int32")
    scales = typed_constant(weight.scales)
    operands = [ints, typed_constant(weight.ints), zero, zero, scale, scales]
    sums = op_call("qnn.dense", operands, units=len(weight.ints), out_dtype="int32")
    real = op_call("cast", [sums], dtype="float32")
    return op_call("multiply", [real, op_call("multiply", [scale, scales])])


__all__ = ["quantize_dynamic"]
