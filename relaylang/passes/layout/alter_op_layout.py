"""AlterOpLayout: change calls to the layouts that suit a target; their neighbours follow.

Which call an operator becomes, a function says that was registered for it (`register_alter_op_layout`). Without one,
2-D convolutions of NCHW get their channels in blocks, as processors with vectors like them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, IRModule
from relaylang.passes.layout.convert_layout import checked_call, refusal, tensors
from relaylang.passes.layout.registry import ALTER
from relaylang.passes.layout.rewriter import Rewriter
from relaylang.passes.manager import Pass, raised_in
from relaylang.passes.rewriting import per_function
from relaylang.rules.alter_layout import RULES
from relaylang.rules.layout.rule import named


def alter_op_layout(mod: IRModule) -> IRModule:
    """A typed module with the operators in the layouts that the registered functions give them. Raises `RelayError` for a
    function that raises, or makes no call, or one that is wrong."""
    functions = {**RULES, **ALTER}

    def change(call: Call, attrs: Any, args: list[Expr]) -> Call | None:
        name = named(call)
        function = functions[name]
        if function is None:
            return None
        try:
            altered = function(attrs, args, tensors(call), call.checked_type)
        except RelayError:
            raise
        except Exception as problem:
            raise RelayError(raised_in(f"FTVMAlterOpLayout of {name}", problem, "the function")) from problem
        return checked_call(altered, call, f"the function FTVMAlterOpLayout of {name}")

    refuse = refusal("the function FTVMAlterOpLayout")
    return per_function(mod, lambda f: Rewriter(mod, functions.__contains__, change, refuse).rewrite(f))


@dataclass(frozen=True)
class AlterOpLayout(Pass):
    """Change operators to the layouts of `register_alter_op_layout`, or 2-D convolutions to blocked channels."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return alter_op_layout(mod)
