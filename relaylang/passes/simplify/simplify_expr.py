"""SimplifyExpr: smaller expressions for the same values.

Each rule looks at one node whose operands are simplified already, and its result is looked at again, so that one walk
does it. The rules stand in `simplify_numbers` and `simplify_shapes`.
"""

from __future__ import annotations

from relaylang.ir import Call, Expr, IRModule, Tuple, TupleGetItem
from relaylang.ops.record import Op
from relaylang.passes.rewriting import per_function, retype, rewrite_typed, tensor_type
from relaylang.passes.simplify import simplify_numbers as numbers
from relaylang.passes.simplify import simplify_shapes as shapes
from relaylang.passes.simplify.simplify_numbers import Rule

#: So often one node is looked at again; each rule makes the expression smaller or moves it towards constants.
_ROUNDS = 16

_LIKE = (
    "zeros_like", "ones_like", "full_like", "reshape_like", "broadcast_to_like", "collapse_sum_like", "cast_like",
)  # fmt: skip
_RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(numbers.BROADCAST, (numbers.fill_operand,)),
    "add": (numbers.identity, numbers.double, numbers.fill_operand, numbers.binomial, numbers.constants_together),
    "subtract": (numbers.identity, numbers.fill_operand),
    "multiply": (numbers.identity, numbers.fill_operand, numbers.constants_together, numbers.product_of_sum),
    "divide": (numbers.identity, numbers.fill_operand, numbers.rsqrt),
    **dict.fromkeys(("reshape", "nn.batch_flatten", "contrib_reverse_reshape"), (shapes.reshape,)),
    "transpose": (shapes.transpose,),
    "layout_transform": (shapes.layout,),
    "cast": (shapes.cast,),
    "clip": (shapes.clip,),
    **dict.fromkeys(_LIKE, (shapes.like,)),
    **dict.fromkeys(("argmax", "argmin", "argsort"), (shapes.of_dequantized,)),
}


def simplify_expr(mod: IRModule) -> IRModule:
    """A typed module with its functions simplified."""
    return per_function(mod, lambda f: rewrite_typed(f, _simplify))


def _simplify(old: Expr, new: Expr) -> Expr:
    for _ in range(_ROUNDS):
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        if not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        ty = tensor_type(new) or tensor_type(old)
        rules = _RULES.get(new.op.name)
        if ty is None or rules is None:
            return new
        for rule in rules:
            made = rule(new, ty)
            if made is not None and made is not new:
                new = retype(made, old)
                break
        else:
            return new
    return new
