"""The reader as scripts for TVM expect it: `tvm.relay.parse` finds the types of the module that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, IRModule, post_order
from relaylang.passes.manager import Pass
from relaylang.syntax import parse_expr as read_expr
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.tvm import parser
from relaylang.tvm.arrays import from_python
from relaylang.tvm.ir import diagnostics
from relaylang.tvm.typed_results import typed
from relaylang.typing import check


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Any] | None = None,
) -> IRModule:
    """The module that a text holds, with types; an expression becomes its @main. Raises `RelayError`.

    `init_module` holds definitions that the text may use, which come into the result. `init_meta_table` has the values of
    references such as `meta[relay.Constant][0]` that the text does not carry: type key -> values.
    """
    try:
        return _parsed(source, source_name, init_module, init_meta_table)
    except RelayError as wrong:
        diagnostics.show(wrong)
        raise


def _parsed(source: str, source_name: str, init_module: IRModule | None, init_meta_table: Mapping[str, Any] | None) -> IRModule:
    table = {key: [_value(v) for v in values] for key, values in (init_meta_table or {}).items()}
    mod = parser.parse(source, source_name, init_module, table)
    check(mod)
    return typed(mod)


def _value(value: Any) -> Any:
    """A value of the metadata: an expression or a node as it is, an array as a constant."""
    return value if isinstance(value, (Expr, MetaNode)) else Constant(from_python(value))


def parse_expr(source: str) -> Expr:
    """The expression that a text holds, without types. Raises `RelayError`."""
    return read_expr(source)


def fromtext(source: str, source_name: str = "from_string") -> Any:
    """The module that a text holds, with types. Raises `RelayError`."""
    return parse(source, source_name)


@dataclass(frozen=True)
class SpanCheck(Pass):
    """Raises `RelayError` for a call without a place in a text."""

    required = ()

    def run(self, mod: IRModule) -> IRModule:
        for gv, func in mod.functions.items():
            for node in post_order(func):
                if isinstance(node, Call) and node.span is None:
                    raise RelayError(error("R0504", f"a call in @{gv.name_hint} has no place in a text"))
        return mod


__all__ = ["SpanCheck", "fromtext", "parse", "parse_expr"]
