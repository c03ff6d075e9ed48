"""Legalize: operators that a target does not have become others, by functions that were registered for them.

    @register_legalize("nn.dense")
    def widen(attrs, inputs, types):
        ...                     # an expression, or None to leave the call as it is
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, IRModule
from relaylang.ops.record import Op
from relaylang.passes.manager import raised_in
from relaylang.passes.quantise.legalizations import MAPS as MAPS
from relaylang.passes.quantise.legalizations import register_legalize as register_legalize
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.rules.legalize import Rule as Rule
from relaylang.typing import infer


def legalize(mod: IRModule, attr_name: str = "FTVMLegalize", more: Mapping[str, Rule] | None = None) -> IRModule:
    """A typed module with a map's rules used on every call that they are for; `more` are rules for calls that those leave
    as they are. Raises `RelayError` for a rule that raises, returns no expression, or one of another type."""
    tables = [table for table in (MAPS.get(attr_name), more) if table]
    if not tables:
        return mod

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        for table in tables:
            rule = table.get(new.op.name)
            made = apply_rule(rule, attr_name, old, new, mod) if rule is not None else None
            if made is not None:
                return made
        return new

    return per_function(mod, lambda f: rewrite_typed(f, put))


def apply_rule(rule: Rule, attr_name: str, old: Call, new: Call, mod: IRModule) -> Expr | None:
    """What a rule makes of a call whose operands are done already, typed; None where it leaves it. Raises `RelayError`."""
    name = new.op.name if isinstance(new.op, Op) else ""
    try:
        made = rule(new.attrs, new.args, [*[a.checked_type for a in old.args], old.checked_type])
    except RelayError:
        raise
    except Exception as problem:
        raise RelayError(raised_in(f"{attr_name} of {name}", problem, "the rule")) from problem
    if made is None:
        return None
    if not isinstance(made, Expr):
        said = f"the rule {attr_name} of {name} returned a {type(made).__name__}, not an expression"
        raise RelayError(error("R0503", said, old.span))
    found = infer(made, fragment=True, module=mod)
    wrong = [d for d in found if d.severity == "error"]
    if wrong or made.checked_type != old.checked_type:
        title = f"the rule {attr_name} of {name} made `{made.checked_type!r}` of `{old.checked_type!r}`"
        raise RelayError([error("R0504", title, old.span), *wrong])
    return made
