"""Tables of conversions: operator and version range to function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from itertools import pairwise
from typing import Any

#: A conversion: `convert(builder, node, *inputs)` returns an expression, or a list of them for several results.
Convert = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """One conversion: `convert` takes the layers of an operator from version `since` to version `until` (None: all later).

    `domain` is the namespace of the operator, such as ONNX's "com.microsoft".
    """

    name: str
    convert: Convert
    since: int = 1
    until: int | None = None
    domain: str = ""


#: Operands beyond this one are alike.
_MANY = 62


@cache
def _operands(convert: Convert) -> tuple[int, int, int]:
    """The least and the largest number of operands of a conversion, and a bit for each that cannot be left out.

    A parameter after the layer's stands for an operand; its annotation says whether it may be None. One of a lambda may not.
    """
    least = most = needed = 0
    for index, p in enumerate(list(signature(convert).parameters.values())[1:]):
        may_miss = p.default is not p.empty or "None" in str(p.annotation) or p.annotation in ("Any", Any)
        if p.kind is p.VAR_POSITIONAL:
            rest = 0 if may_miss or p.annotation is p.empty else ((1 << (_MANY + 1)) - 1) >> index << index
            return least, 1 << 31, needed | rest
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            most = index + 1
            if p.default is p.empty:
                least = index + 1
            needed |= (not may_miss) << index
    return least, most, needed


class Table:
    """The conversions of one format, by domain, name and version."""

    def __init__(self, *families: Iterable[Rule]) -> None:
        self._rules: dict[tuple[str, str], list[Rule]] = {}
        for family in families:
            for rule in family:
                self._rules.setdefault((rule.domain, rule.name), []).append(rule)
        for key, rules in self._rules.items():
            rules.sort(key=lambda r: r.since)
            for earlier, later in pairwise(rules):
                assert earlier.until is not None and earlier.until < later.since, f"two conversions of {key}"

    @staticmethod
    def wrong_operands(rule: Rule, operands: Sequence[Any]) -> str:
        """The mistake in the operands of a conversion that takes them by position; "" for nothing."""
        least, most, needed = _operands(rule.convert)
        if len(operands) > most:
            return f"it has {len(operands)} operands, and the operator takes at most {most}"
        for index in range(max(least, len(operands))):
            if index >= len(operands) or (operands[index] is None and (needed >> min(index, _MANY)) & 1):
                return f"the operand {index} is missing"
        return ""

    def find(self, name: str, version: int = 1, domain: str = "") -> Rule | None:
        """The conversion of an operator in a version, or None."""
        for rule in self._rules.get((domain, name), ()):
            if rule.since <= version and (rule.until is None or version <= rule.until):
                return rule
        return None

    def names(self) -> list[str]:
        """The names of all operators."""
        return sorted({name for _, name in self._rules})

    def __iter__(self) -> Iterator[Rule]:
        return (rule for key in sorted(self._rules) for rule in self._rules[key])


__all__ = ["Convert", "Rule", "Table"]
