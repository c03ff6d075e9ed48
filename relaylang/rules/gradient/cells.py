"""Gradient cells: the operators whose tensors can be promised, and those that compute with promises."""

from __future__ import annotations

from collections.abc import Mapping

#: The constructor of GradCell that stands for what an operator makes.
PROMISES: Mapping[str, str] = {"zeros": "Zero", "zeros_like": "Zero", "ones": "One", "ones_like": "One"}
#: The function of the library that computes with cells as an operator does with tensors.
SHORTCUTS: Mapping[str, str] = {"add": "AddGradCell", "multiply": "MultiplyGradCell"}
