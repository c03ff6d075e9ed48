"""Legalize: operators that a target does not have become others, by functions that were registered for them.

    @register_legalize("nn.dense")
    def widen(attrs, inputs, types):
        ...                     # an expression, or None to leave the call as it is
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, IRModule, Type
from relaylang.ops.record import Op
from relaylang.passes.manager import raised_in
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.typing import infer

#: `(attributes, operands, types of the operands and of the result)` to an expression, or None.
Rule = Callable[[Any, Sequence[Expr], Sequence["Type | None"]], "Expr | None"]
#: Map's name -> operator -> rule.
MAPS: dict[str, dict[str, Rule]] = {}


def register_legalize(op_name: str, rule: Rule | None = None, attr_name: str = "FTVMLegalize") -> Any:
    """Add a rule for an operator to a map; also a decorator."""

    def add(function: Rule) -> Rule:
        MAPS.setdefault(attr_name, {})[op_name] = function
        return function

    return add(rule) if rule is not None else add


def legalize(mod: IRModule, attr_name: str = "FTVMLegalize", more: Mapping[str, Rule] | None = None) -> IRModule:
    """A typed module with a map's rules used on every call that they are for; `more` are rules for operators for which the
    map has none. Raises `RelayError` for a rule that raises, returns no expression, or one of another type."""
    rules = {**(more or {}), **MAPS.get(attr_name, {})}
    if not rules:
        return mod

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        rule = rules.get(new.op.name)
        made = apply_rule(rule, attr_name, old, new, mod) if rule is not None else None
        return new if made is None else made

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
