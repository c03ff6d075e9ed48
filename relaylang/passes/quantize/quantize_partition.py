"""QuantizePartition: cut a float network where its quantised parts end, by `relaylang.rules.quantization.partition`."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.forward import by_table, forward
from relaylang.passes.rewriting import per_function
from relaylang.rules.quantization.common import current_qconfig
from relaylang.rules.quantization.partition import RULES


@dataclass(frozen=True)
class QuantizePartition(Pass):
    """Cut a float network where its quantised parts end. `relaylang.quantize.qconfig` configures it."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        change = by_table(RULES, current_qconfig())
        return per_function(mod, lambda func: forward(func, change))
