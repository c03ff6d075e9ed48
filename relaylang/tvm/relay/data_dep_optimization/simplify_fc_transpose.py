"""Dense layers without transpositions of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import Function
from relaylang.passes.sparse_weights import without_transposes
from relaylang.tvm.relay.data_dep_optimization import converted


def convert(func: Function, params: Mapping[str, Any]) -> tuple[Function, Any]:
    """A function whose dense layers take `w.T` for the transposition of a parameter `w`, and its parameters."""
    return converted(func, params, without_transposes)


__all__ = ["convert"]
