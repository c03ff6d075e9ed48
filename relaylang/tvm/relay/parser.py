"""The reader as scripts for TVM expect it: `tvm.relay.parse` finds the types of the module that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import Expr, IRModule
from relaylang.syntax import parse_expr as read_expr
from relaylang.tvm import parser
from relaylang.tvm.conventions import typed
from relaylang.typing import check


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Any] | None = None,
) -> IRModule:
    """The module that a text holds, with types; an expression becomes its @main. Raises `RelayError`.

    `init_module` holds definitions that the text may use, which come into the result.
    """
    mod = parser.parse(source, source_name, init_module)
    check(mod)
    return typed(mod)


def parse_expr(source: str) -> Expr:
    """The expression that a text holds, without types. Raises `RelayError`."""
    return read_expr(source)


def fromtext(source: str, source_name: str = "from_string") -> Any:
    """The module that a text holds, with types. Raises `RelayError`."""
    return parse(source, source_name)


__all__ = ["fromtext", "parse", "parse_expr"]
