"""QuantizeRealize: whole numbers in the place of rounded floats, by `relaylang.rules.quantization.realise`."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.forward import by_table, forward
from relaylang.passes.rewriting import per_function
from relaylang.rules.quantization.common import current_qconfig
from relaylang.rules.quantization.realise import RULES


@dataclass(frozen=True)
class QuantizeRealize(Pass):
    """Compute in whole numbers what a calibrated network rounds. `relaylang.quantize.qconfig` configures it."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        change = by_table(RULES, current_qconfig())
        return per_function(mod, lambda func: forward(func, change))
