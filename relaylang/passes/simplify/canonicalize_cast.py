"""CanonicalizeCast: repeat a widening cast for each of its users, so that it fuses with them."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, Function, IRModule, children, post_order, rebuild
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import retype
from relaylang.ops.record import Op, OpPattern
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call, per_function
from relaylang.rules.precision import CAST


def _bits(dtype: str) -> int:
    digits = "".join(c for c in dtype if c.isdigit())
    return int(digits) if digits else 1


def canonicalize_cast(mod: IRModule) -> IRModule:
    """A cast to a wider type that several element-wise or broadcast operators use is made once for each of them."""

    def convert(func: Function) -> Expr:
        done: dict[int, Expr] = {}
        used: set[int] = set()
        for node in post_order(func):
            inner = [done[id(c)] for c in children(node)]
            if isinstance(node, Call) and isinstance(node.op, Op) and node.op.pattern <= OpPattern.BROADCAST:
                for i, arg in enumerate(node.args):
                    source = tensor_type(arg.args[0]) if isinstance(arg, Call) and arg.args else None
                    if not is_call(arg, CAST) or source is None or not isinstance(arg, Call):
                        continue
                    if _bits(source.dtype) >= _bits(arg.attrs.dtype):
                        continue
                    if id(arg) in used:
                        one = inner[i]
                        assert isinstance(one, Call)
                        inner[i] = retype(Call(one.op, one.args, one.attrs, one.type_args, one.span), arg)
                    used.add(id(arg))
            done[id(node)] = retype(rebuild(node, tuple(inner)), node)
        return done[id(func)]

    return per_function(mod, convert)


@dataclass(frozen=True)
class CanonicalizeCast(Pass):
    """Repeat a widening cast for each of its users, so that it fuses with them."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return canonicalize_cast(mod)
