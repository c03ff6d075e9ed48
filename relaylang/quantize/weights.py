"""Quantisation of weights alone: those of dense layers have four bits in blocks, and all numbers that flow stay floats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, IRModule, rewrite
from relaylang.ir.typed import forget_stale_types, typed_constant
from relaylang.ops.build import op_call
from relaylang.passes.infer_type import InferType
from relaylang.passes.rewriting import per_function
from relaylang.quantize.layers import named_layers
from relaylang.quantize.prepare import prepare, refuse
from relaylang.rules.quantization.blocks import in_blocks, row_weight

#: The bits of a weight.
_BITS = 4


def quantize_weights(
    mod: IRModule, params: Mapping[str, Any] | None = None, keep_float: Collection[str] = (), block: int = 32
) -> IRModule:
    """A float network's @main with weights of four bits in dense layers, also those in nested functions and loops.

    `block` neighbours of a row have a scale and a zero point; it is a power of two from 16 on. `keep_float` names layers, as in
    `StaticConfig`. Raises `RelayError` (R0530) where there is no such layer, for names of no layer, and for other blocks.
    """
    if block < 16 or block & (block - 1):
        raise refuse(f"a block has 16, 32, 64 or a greater power of two of weights, not {block}")
    prepared = prepare(mod, params)
    kept = {id(layer.head) for layer in named_layers(prepared, keep_float)}
    done: dict[int, Expr] = {}

    def put(old: Expr, new: Expr) -> Expr:
        weight = row_weight(old)
        if weight is None or not isinstance(new, Call) or id(old) in kept:
            return new
        if not np.isfinite(weight.data).all():
            raise refuse("the weight of a dense layer has numbers that are not finite", span=old.span)
        if id(weight) not in done:
            blocks = in_blocks(weight.data, _BITS, block)
            done[id(weight)] = blocks.expr(lambda name, *args, **attrs: op_call(name, list(args), **attrs), typed_constant)
        return Call(new.op, [new.args[0], done[id(weight)]], new.attrs, (), new.span)

    changed = per_function(prepared, lambda f: forget_stale_types(rewrite(f, put)))
    if not done:
        raise refuse("the network has no dense layer with constant weights", "the other modes quantise convolutions")
    return InferType()(changed)


__all__ = ["quantize_weights"]
