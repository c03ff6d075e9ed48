"""Rules of users by which calls of an operator become others: kept here by map and operator."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from typing import Any

from relaylang.rules.legalize import RULES, Rule

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
