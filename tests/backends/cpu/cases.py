"""Calls of operators with random arguments: those with which the kernels are compared to TVM."""

from __future__ import annotations

from tests.interpreter.cases import CASES, Case

__all__ = ["CASES", "Case"]
