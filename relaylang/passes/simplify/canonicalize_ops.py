"""CanonicalizeOps: bias_add as the addition that it is."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule, TensorType
from relaylang.ir.tensors import tensor_type
from relaylang.ops.build import op_call
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call, per_function, rewrite_typed


def canonicalize_ops(mod: IRModule) -> IRModule:
    """nn.bias_add as add, with the bias's trailing axes made where they are needed."""

    def put(old: Expr, new: Expr) -> Expr:
        if not is_call(new, "nn.bias_add") or not isinstance(new, Call) or not isinstance(old, Call):
            return new
        ty, bias_type = tensor_type(old.args[0]), tensor_type(old.args[1])
        if ty is None or bias_type is None:
            return new
        axis = new.attrs.axis % len(ty.shape)
        behind = len(ty.shape) - axis - 1
        bias = new.args[1]
        if behind:
            wide = TensorType((*bias_type.shape, *[1] * behind), bias_type.dtype)
            bias = op_call("expand_dims", [bias], wide, axis=1, num_newaxis=behind)
        return op_call("add", [new.args[0], bias], old.checked_type)

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class CanonicalizeOps(Pass):
    """nn.bias_add as add."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return canonicalize_ops(mod)
