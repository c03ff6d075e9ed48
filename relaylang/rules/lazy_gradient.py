"""LazyGradientInit: the operators that make zeros and ones, and those that compute with promises of them.

A rule names a definition of the library `gradient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """The constructor of GradCell that promises the call's value."""

    constructor: str


@dataclass(frozen=True)
class Shortcut:
    """The function that computes with cells as the operator does with tensors."""

    function: str


Rule = Promise | Shortcut

RULES: Mapping[str, Rule] = {
    "zeros": Promise("Zero"),
    "zeros_like": Promise("Zero"),
    "ones": Promise("One"),
    "ones_like": Promise("One"),
    "add": Shortcut("AddGradCell"),
    "multiply": Shortcut("MultiplyGradCell"),
}
#: The functions that the rules name.
FUNCTIONS = tuple([rule.function for rule in RULES.values() if isinstance(rule, Shortcut)])
