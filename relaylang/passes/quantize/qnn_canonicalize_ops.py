"""qnn.CanonicalizeOps: lower the operators of the qnn dialect to plain integer operators by `relaylang.rules.qnn_lowering`."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, Function, IRModule, Tuple, children
from relaylang.ir.tensors import tensor_type
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.legalizations import MAPS, apply_rule
from relaylang.passes.quantize.requantize_config import current_requantize_config
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.passes.simplify.fold_constant import evaluator
from relaylang.rules.qnn_lowering import RULES
from relaylang.rules.qnn_lowering.numbers import Compute, Numbers
from relaylang.typing import infer


def canonicalize_qnn(mod: IRModule, compute: Compute) -> IRModule:
    """A typed module with its qnn operators lowered; the checker must infer the result's types.

    `compute` makes numbers of calls on constants. `relaylang.qnn.op.requantize_config` says how products are rounded, and
    whether in fixed point or floats, where a requantize does not. Rules of `register_legalize` for "FTVMQnnCanonicalize" go first.
    Raises `RelayError` (R0517) for attributes that mean nothing and an output scale of 0.
    """
    config = current_requantize_config()
    numbers, own = Numbers(compute, config.rounding, config.compute_dtype), MAPS.get("FTVMQnnCanonicalize", {})
    nodes: list[Expr] = []

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(old, Call) or not isinstance(new.op, Op):
            return new
        name = new.op.name
        if name in own:
            other = apply_rule(own[name], "FTVMQnnCanonicalize", old, new, mod)
            if other is not None:
                return other
        ty = tensor_type(old)
        if name not in RULES or ty is None:
            return new
        lowered = RULES[name](numbers, new, [a.checked_type for a in old.args], ty)
        nodes.extend(children(lowered))
        return lowered

    def convert(func: Function) -> Expr:
        nodes.clear()
        new = rewrite_typed(func, put)
        # The results have the types of the calls that they replace; expressions inside them get their own.
        infer(Tuple([m for m in nodes if m.checked_type is None and not isinstance(m, Op)]), fragment=True, module=mod)
        return new

    return per_function(mod, convert)


@dataclass(frozen=True)
class QnnCanonicalizeOps(Pass):
    """Lower the qnn dialect to plain integer operators (TVM: qnn.transform)."""

    name = "qnn.CanonicalizeOps"
    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return canonicalize_qnn(mod, evaluator())
