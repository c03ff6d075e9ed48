"""QuantizeAnnotate: round a float network's values where they will be whole numbers, by `relaylang.rules.quantization.annotate`."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Function, IRModule, free_vars
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.forward import forward
from relaylang.passes.rewriting import per_function
from relaylang.rules.quantization.annotate import DROPPED, INPUT, RULES, Annotated, Annotation
from relaylang.rules.quantization.common import Mark, QConfig, Value, current_qconfig, plain


def annotate(func: Function, config: QConfig) -> Function:
    """A function with rounded values. Their scales and bounds are parameters behind the function's own."""
    state = Annotation(config)
    enabled = config.debug_enabled_ops

    def change(op: Op, call: Call, args: list[Value]) -> Value:
        rule = RULES.get(op.name)
        if rule is None or (enabled is not None and op.name not in enabled):
            return None
        if state.skips(op):
            return plain(args[0]) if op.name in DROPPED else None
        return rule(call, args, state)

    def shared(mark: Mark) -> Mark:
        return Annotated(state.round(mark.plain(), INPUT), INPUT)

    new = forward(func, change, shared)
    if new is func:
        return func
    return Function([*new.params, *free_vars(new)], new.body, new.ret_type, new.type_params, new.attrs, new.span)


@dataclass(frozen=True)
class QuantizeAnnotate(Pass):
    """Round a float network's values where they will be whole numbers. `relaylang.quantize.qconfig` configures it."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        config = current_qconfig()
        return per_function(mod, lambda func: annotate(func, config))
