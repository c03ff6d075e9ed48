"""EliminateCommonSubexpr: share one node among equal calls.

Operands are the same if they are one node, equal scalars, or tuples of such. Operators with hidden state, and what
`skip` says, are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
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


def _eliminate(expr: Expr, skip: Callable[[Expr], bool] | None) -> Expr:
    done: dict[int, Expr] = {}
    known: dict[Hashable, Expr] = {}
    keys: dict[int, Hashable] = {}  # operands' keys by identity
    attrs_keys: dict[int, str] = {}
    order = list(post_order(expr))
    closed = {
        id(n)
        for f in order
        if isinstance(f, Function) and f is not expr and (is_primitive(f) or "Compiler" in f.attrs)
        for n in post_order(f)
        if not isinstance(n, Op)
    }

    def key_of(node: Expr) -> Hashable:
        found = keys.get(id(node))
        if found is None:
            if isinstance(node, Constant) and node.data.ndim == 0:
                found = (node.dtype, node.data.tobytes())
            elif isinstance(node, Tuple):
                found = ("tuple", *[key_of(f) if not isinstance(f, Tuple) else id(f) for f in node.fields])
            else:
                found = id(node)
            keys[id(node)] = found
        return found

    def attrs_key(attrs: Any) -> str:
        if attrs is None:
            return ""
        found = attrs_keys.get(id(attrs))
        if found is None:
            found = attrs_keys[id(attrs)] = repr(attrs)
        return found

    kept: list[Expr] = []  # ids are keys, so nodes made on the way must stay alive
    for node in order:
        new = retype(rebuilt(node, done), node)
        kept.append(new)
        if id(node) not in closed:
            key: Hashable = None
            if isinstance(new, Call) and isinstance(new.op, Op) and not new.op.stateful:
                key = (new.op.name, attrs_key(new.attrs), *[key_of(a) for a in new.args])
            elif isinstance(new, TupleGetItem):
                key = (id(new.tuple_value), new.index)
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
