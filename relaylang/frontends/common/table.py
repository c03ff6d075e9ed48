"""Tables of conversions: operator and version range to function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
