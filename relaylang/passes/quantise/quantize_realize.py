"""QuantizeRealize: whole numbers in the place of rounded floats, by `relaylang.rules.quantisation.realise`."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.passes.quantise.forward import by_table, forward
from relaylang.passes.rewriting import per_function
from relaylang.rules.quantisation.common import current_qconfig
from relaylang.rules.quantisation.realise import RULES


@dataclass(frozen=True)
class QuantizeRealize(Pass):
    """Compute in whole numbers what a calibrated network rounds. `relaylang.quantise.qconfig` configures it."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        change = by_table(RULES, current_qconfig())
        return per_function(mod, lambda func: forward(func, change))
