"""Rules that users register to replace calls of an operator, by map and operator."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, IRModule
from relaylang.ops.record import Op
from relaylang.passes.manager import raised_in
from relaylang.rules.legalize import RULES, Rule
from relaylang.typing import infer

#: Map's name -> operator -> rule. Users' rules for FTVMLegalize lie on top of the table.
MAPS: dict[str, MutableMapping[str, Rule]] = {"FTVMLegalize": ChainMap({}, dict(RULES))}


def register_legalize(op_name: str, rule: Rule | None = None, attr_name: str = "FTVMLegalize") -> Any:
    """Add a rule for an operator to a map; also a decorator."""

    def add(function: Rule) -> Rule:
        MAPS.setdefault(attr_name, {})[op_name] = function
        return function

    return add(rule) if rule is not None else add


def register_qnn_legalize(op_name: str, legal_op: Rule | None = None, level: int = 10) -> Any:
    """Add a rule for `relaylang.qnn.transform.Legalize`, before those that there are; also a decorator."""
    return register_legalize(op_name, legal_op, "FTVMQnnLegalize")


def register_qnn_canonicalize(op_name: str, legal_op: Rule | None = None, level: int = 10) -> Any:
    """Add a rule for `relaylang.qnn.transform.CanonicalizeOps`, before those that there are; also a decorator."""
    return register_legalize(op_name, legal_op, "FTVMQnnCanonicalize")


def apply_rule(rule: Rule, attr_name: str, old: Call, new: Call, mod: IRModule) -> Expr | None:
    """What a rule makes of a call whose operands are done already, typed; None where it leaves it. Raises `RelayError`."""
    name = new.op.name if isinstance(new.op, Op) else ""
    try:
        replacement = rule(new.attrs, new.args, [*[a.checked_type for a in old.args], old.checked_type])
    except RelayError:
        raise
    except Exception as problem:
        raise RelayError(raised_in(f"{attr_name} of {name}", problem, "the rule")) from problem
    if replacement is None:
        return None
    if not isinstance(replacement, Expr):
        said = f"the rule {attr_name} of {name} returned a {type(replacement).__name__}, not an expression"
        raise RelayError(error("R0503", said, old.span))
    diagnostics = infer(replacement, fragment=True, module=mod)
    wrong = [d for d in diagnostics if d.severity == "error"]
    if wrong or replacement.checked_type != old.checked_type:
        title = f"the rule {attr_name} of {name} made `{replacement.checked_type!r}` of `{old.checked_type!r}`"
        raise RelayError([error("R0504", title, old.span), *wrong])
    return replacement
