"""EliminateCommonSubexpr: share one node among equal calls.

Operands are the same if they are one node, equal scalars, or tuples of such. Operators with hidden state, and what
`skip` says, are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from relaylang.ir import Call, Constant, Expr, Function, IRModule, Tuple, TupleGetItem, post_order, rebuilt
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_primitive, per_function

_P = TypeVar("_P", IRModule, Expr)


def eliminate_common_subexpr(program: _P, skip: Callable[[Expr], bool] | None = None) -> _P:
    """A typed module or expression with each computation made once."""
    if isinstance(program, IRModule):
        return per_function(program, lambda f: _eliminate(f, skip))  # type: ignore[return-value]
    return _eliminate(program, skip)


class Keys:
    """Keys of nodes: two nodes of one key compute the same."""

    def __init__(self) -> None:
        self._operands: dict[int, Hashable] = {}
        self._attrs: dict[int, str] = {}

    def of(self, node: Expr, instead: Mapping[int, Expr] = MappingProxyType({})) -> Hashable:
        """The key of a call without hidden state, or of a part of a tuple; None for others.

        `instead` has the nodes, by id, that another one stands for.
        """
        if isinstance(node, Call) and isinstance(node.op, Op) and not node.op.stateful:
            return (node.op.name, self._attributes(node.attrs), *[self._operand(instead.get(id(a), a)) for a in node.args])
        if isinstance(node, TupleGetItem):
            return (id(instead.get(id(node.tuple_value), node.tuple_value)), node.index)
        return None

    def _operand(self, node: Expr) -> Hashable:
        key = self._operands.get(id(node))
        if key is None:
            if isinstance(node, Constant) and node.data.ndim == 0:
                key = (node.dtype, node.data.tobytes())
            elif isinstance(node, Tuple):
                key = ("tuple", *[self._operand(f) if not isinstance(f, Tuple) else id(f) for f in node.fields])
            else:
                key = id(node)
            self._operands[id(node)] = key
        return key

    def _attributes(self, attrs: Any) -> str:
        if attrs is None:
            return ""
        text = self._attrs.get(id(attrs))
        if text is None:
            text = self._attrs[id(attrs)] = repr(attrs)
        return text


def _eliminate(expr: Expr, skip: Callable[[Expr], bool] | None) -> Expr:
    done: dict[int, Expr] = {}
    known: dict[Hashable, Expr] = {}
    keys = Keys()
    order = list(post_order(expr))
    closed = {
        id(n)
        for f in order
        if isinstance(f, Function) and f is not expr and (is_primitive(f) or "Compiler" in f.attrs)
        for n in post_order(f)
        if not isinstance(n, Op)
    }
    kept: list[Expr] = []  # ids are keys, so nodes made on the way must stay alive
    for node in order:
        new = retype(rebuilt(node, done), node)
        kept.append(new)
        if id(node) not in closed:
            key = keys.of(new)
            if key is not None and not (skip is not None and skip(new)):
                new = known.setdefault(key, new)
        done[id(node)] = new
    return done[id(expr)]


@dataclass(frozen=True)
class EliminateCommonSubexpr(Pass):
    """Share one node among equal calls. `fskip(expr)` is true for expressions to leave alone."""

    fskip: Callable[[Expr], bool] | None = None

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return eliminate_common_subexpr(mod, self.fskip)
