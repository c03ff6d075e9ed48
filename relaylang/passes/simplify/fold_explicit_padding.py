"""FoldExplicitPadding: fold nn.pad into the padding of the convolution or pool behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule
from relaylang.ir.tensors import scalar_value
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call, per_function, rewrite_typed, with_attrs
from relaylang.rules.padding import PAD, RULES, Rule, both_sides


def fold_explicit_padding(mod: IRModule) -> IRModule:
    """A typed module in which nn.pad is part of the convolution or pool behind it, where that computes the same."""

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not new.args or not is_call(new.args[0], PAD):
            return new
        pad, rule = new.args[0], RULES.get(new.op.name)
        assert isinstance(pad, Call)
        if rule is None or pad.attrs.pad_mode != "constant":
            return new
        padding = _total_padding(rule, new, pad)
        return new if padding is None else with_attrs(new, [pad.args[0], *new.args[1:]], padding=padding, **rule.changes)

    return per_function(mod, lambda f: rewrite_typed(f, put))


def _total_padding(rule: Rule, call: Call, pad: Call) -> list[int] | None:
    """The padding of an operator and of the nn.pad in front of it; None where the operator cannot pad so."""
    parts = re.findall(r"\d*[A-Za-z]", getattr(call.attrs, rule.layout))
    axes = [i for i, c in enumerate(parts) if c in ("D", "H", "W")]
    widths = [(int(b), int(a)) for b, a in pad.attrs.pad_width]
    if len(parts) != len(widths) or any(w != (0, 0) for i, w in enumerate(widths) if i not in axes):
        return None
    if any(w < 0 for pair in widths for w in pair):
        return None
    value = scalar_value(pad.args[1])
    if value is None or not rule.fills(call, value, getattr(pad.args[0].checked_type, "dtype", "")):
        return None
    own = both_sides(call.attrs.padding, len(axes))
    before = [own[i] + widths[a][0] for i, a in enumerate(axes)]
    return before + [own[len(axes) + i] + widths[a][1] for i, a in enumerate(axes)]


@dataclass(frozen=True)
class FoldExplicitPadding(Pass):
    """Fold nn.pad into the padding of the convolution or pool behind it."""

    def run(self, mod: IRModule) -> IRModule:
        return fold_explicit_padding(mod)
