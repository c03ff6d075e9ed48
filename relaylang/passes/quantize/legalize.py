"""Legalize: replace operators that a target lacks by registered rules.

Example:

    @register_legalize("nn.dense")
    def widen(attrs, inputs, types):
        ...                     # an expression, or None to leave the call as it is
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from relaylang.ir import Call, Expr, IRModule
from relaylang.ops.record import Op
from relaylang.passes.context import PassInfo
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.legalizations import MAPS, apply_rule
from relaylang.passes.quantize.qnn_canonicalize_ops import QnnCanonicalizeOps
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.passes.simplify.fold_constant import evaluator
from relaylang.rules import qnn_legalize
from relaylang.rules.legalize import Rule


def legalize(mod: IRModule, attr_name: str = "FTVMLegalize", more: Mapping[str, Rule] | None = None) -> IRModule:
    """A typed module with a map's rules applied to every call that they cover. The rules `more` apply to calls that
    those leave as they are. Raises `RelayError` for a rule that raises, returns no expression, or one of another type.
    """
    tables = [table for table in (MAPS.get(attr_name), more) if table]
    if not tables:
        return mod

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        for table in tables:
            rule = table.get(new.op.name)
            replacement = apply_rule(rule, attr_name, old, new, mod) if rule is not None else None
            if replacement is not None:
                return replacement
        return new

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class Legalize(Pass):
    """Replace operators that a target lacks, by the rules of `register_legalize`.

    The map "FTVMQnnLegalize" also makes tables of the functions of the qnn dialect. "FTVMQnnCanonicalize" is
    `QnnCanonicalizeOps`.
    """

    legalize_map_attr_name: str = "FTVMLegalize"

    opt_level = 1

    @cached_property
    def info(self) -> PassInfo:
        if self.legalize_map_attr_name == "FTVMQnnCanonicalize":
            return QnnCanonicalizeOps().info
        return PassInfo(self.opt_level, "Legalize", self.required, builtin=True)

    def run(self, mod: IRModule) -> IRModule:
        if self.legalize_map_attr_name == "FTVMQnnCanonicalize":
            return QnnCanonicalizeOps().run(mod)
        tables = qnn_legalize.RULES if self.legalize_map_attr_name == "FTVMQnnLegalize" else {}
        more = {name: rule(evaluator()) for name, rule in tables.items()}
        return legalize(mod, self.legalize_map_attr_name, more)
