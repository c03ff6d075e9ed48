"""Counts of a program: calls between functions, layers, and operators between quantized values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from relaylang.ir import Call, Constant, Expr, GlobalVar, IRModule, Tuple, TupleGetItem, children, post_order
from relaylang.ops import get
from relaylang.ops.record import Op
from relaylang.ops.traits import Fact, Trait
from relaylang.passes.analysis import call_graph, recursive_functions


class CallGraph:
    """The calls between a module's functions. A function is named by its variable or its name."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.calls = call_graph(module)

    def _var(self, var: GlobalVar | str) -> GlobalVar:
        name = var if isinstance(var, str) else var.name_hint
        return self.module.get_global_var(name)

    @cached_property
    def _recursive(self) -> set[GlobalVar]:
        return recursive_functions(self.module)

    def ref_count(self, var: GlobalVar | str) -> int:
        """How often the module's functions name a function."""
        wanted = self._var(var).name_hint
        return sum(count for calls in self.calls.values() for gv, count in calls.items() if gv.name_hint == wanted)

    def global_call_count(self, var: GlobalVar | str) -> int:
        """How often a function names functions of the module."""
        return sum(self.calls[self._var(var)].values())

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """Whether a function may call itself, directly or through others."""
        return self._var(var) in self._recursive

    def print_var(self, var: GlobalVar | str) -> str:
        """A function and those that it calls, a line each: `@f: 2` is two calls of @f."""
        gv = self._var(var)
        count = self.ref_count(gv)
        lines = [f"@{gv.name_hint}: named {count} time{'s' * (count != 1)}{', recursive' * self.is_recursive(gv)}"]
        return "\n".join([*lines, *(f"  calls @{callee.name_hint}: {count}" for callee, count in self.calls[gv].items())])

    def __str__(self) -> str:
        return "\n".join(self.print_var(gv) for gv in self.calls)


def count_layers(expr: Expr | IRModule, valid_ops: Sequence[str]) -> int:
    """How many calls of these operators the longest way through an expression (a module's @main) has.

    Raises `KeyError` for a name that is no operator's.
    """
    root = expr["main"] if isinstance(expr, IRModule) else expr
    names = {get(name).name for name in valid_ops}
    depth: dict[int, int] = {}
    for node in post_order(root):
        own = isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in names
        depth[id(node)] = max((depth[id(c)] for c in children(node)), default=0) + own
    return depth[id(root)]


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How often each operator stands between qnn.dequantize and qnn.quantize in a module's @main.

    A region is all that a qnn.quantize computes from, and holds calls of operators and tuples only. It counts where all
    its ways end at qnn.dequantize or at constants.
    """
    counts: dict[str, int] = {}
    for end in post_order(mod["main"]):
        if not _calls(end, Trait.QUANTISE):
            continue
        assert isinstance(end, Call)
        names = _region(end.args[0])
        for name in names or ():
            counts[name] = counts.get(name, 0) + 1
    return counts


def _calls(node: Expr, trait: Fact) -> bool:
    return isinstance(node, Call) and isinstance(node.op, Op) and trait in node.op.traits


def _region(expr: Expr) -> list[str] | None:
    """The operators of a region by its last value; None where it is none."""
    names: list[str] = []
    seen = {id(expr)}
    stack = [expr]
    while stack:
        node = stack.pop()
        if _calls(node, Trait.DEQUANTISE):
            continue
        if isinstance(node, Call) and isinstance(node.op, Op):
            quantizes = Trait.QUANTISE in node.op.traits
            names += [] if quantizes else [node.op.name]
            inner: Sequence[Expr] = node.args[:1] if quantizes else node.args
        elif isinstance(node, (Constant, Tuple, TupleGetItem)):
            inner = children(node)
        else:
            return None
        for child in inner:
            if id(child) not in seen:
                seen.add(id(child))
                stack.append(child)
    return names


__all__ = ["CallGraph", "count_layers", "list_fake_quantized_op_freqs"]
