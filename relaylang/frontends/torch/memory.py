"""The values of a graph, and tensors that share memory: what writing into one view does to the others.

A program that was not decomposed writes into tensors: `add_`, `copy_`, `y[0] = 1`. Relay has values only. A write gives the
name a new value, the tensors below the view get theirs through the view, and other views are made again when they are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.torch.pt2 import Graph, Meta, Ref
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.frontends.torch.updates import replace_row, replace_slice
from relaylang.ir import Expr

#: Views that keep the order of elements.
KEPT = frozenset(
    "alias detach detach_ dropout feature_dropout alpha_dropout unsqueeze squeeze view view_as unflatten lift_fresh"
    " resolve_conj resolve_neg atleast_1d atleast_2d atleast_3d positive".split()
)
#: Views where the memory's layout allows it, copies otherwise.
PERHAPS = frozenset("reshape reshape_as flatten ravel contiguous".split())
#: Views only where the element type stays.
_SAME_DTYPE = frozenset("to type_as float double half bfloat16 int long bool".split())
#: Two of them undo each other.
SWAPS = frozenset("transpose t swapaxes swapdims numpy_T mT mH adjoint".split())
OTHERS = frozenset(
    "permute select slice split split_with_sizes chunk tensor_split unbind expand expand_as broadcast_to diagonal narrow"
    " movedim moveaxis as_strided unfold hsplit vsplit dsplit".split()
)
#: What changes a tensor's shape in place.
_SHAPES = frozenset("t_ transpose_ squeeze_ unsqueeze_ swapaxes_ swapdims_ resize_ resize_as_ set_ as_strided_".split())


#: The value of a name whose call was not converted.
MISSING = object()


class Skipped(Exception):
    """The call uses a value whose own call was not converted."""


class Conversions(Protocol):
    """What the values of a graph, and the conversions of its calls, need of the importer."""

    builder: Builder

    def result_of(self, scope: Scope, call: Call) -> Any:
        """A call's result. Raises `Unsupported` where no conversion fits."""

    def convert_graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        """The results of a graph inside a call, converted in place."""


class Scope:
    """A graph that is being converted, and its values by name."""

    def __init__(self, importer: Conversions, graph: Graph) -> None:
        self.importer = importer
        self.graph = graph
        self.values: dict[str, Any] = {}
        self.memory = Memory(self)
        self.used = {name for call in graph.nodes for name in names_in(call.args.values())}
        self.used.update(names_in([*graph.outputs]))

    def resolve(self, argument: Any) -> Any:
        """An argument with values in the place of names."""
        if isinstance(argument, Ref):
            return self.value(argument.name)
        if isinstance(argument, list):
            return [self.resolve(a) for a in argument]
        return argument

    def value(self, name: str) -> Any:
        """The value of a name. Raises `RelayError` where no call before made it."""
        if name not in self.values:
            raise RelayError(error("R0802", f"no call before this one makes the value {name}", self.importer.builder.span))
        self.memory.fresh(name)
        if self.values[name] is MISSING:
            raise Skipped
        return self.values[name]


@dataclass(frozen=True)
class View:
    """A result of a call that shows another tensor's memory."""

    base: str
    call: Call
    index: int


def operator(target: str) -> str:
    """A target without its overload: `aten.add` of `aten.add.Tensor`."""
    return target.rsplit(".", 1)[0] if target.count(".") > 1 else target


def written(call: Call) -> str:
    """The name of the argument into which an operator writes; "" for none."""
    name = operator(call.target).rsplit(".", 1)[-1]
    if not call.target.startswith("aten.") or name in ("detach_", "alias_"):
        return ""
    if name in _SHAPES:
        raise Unsupported("it changes the shape of a tensor in place")
    if call.target.endswith((".out", "_out")) and isinstance(call.args.get("out"), Ref):
        return "out"
    inside = name.endswith("_") and not name.endswith("__")
    return next(iter(call.args), "") if inside or name.startswith("__i") else ""


def values_only(target: str) -> str:
    """The operator that gives the new value: `aten.add` of `aten.add_`."""
    name = operator(target)
    return name.replace(".__i", ".__") if ".__i" in name else name.rstrip("_")


class Memory:
    """Which names of a graph share memory. `changed` has the names of tensors that were written, without their views."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.changed: set[str] = set()
        self._views: dict[str, View] = {}
        self._children: dict[str, list[str]] = {}
        self._stale: set[str] = set()
        self._unsure: set[str] = set()

    def follow(self, call: Call, names: list[Any]) -> None:
        """Note that a call's results show the memory of its first argument."""
        base, first = next(iter(call.args.values()), None), next(iter(names), None)
        name = operator(call.target).rsplit(".", 1)[-1]
        if not isinstance(base, Ref) or not isinstance(first, Ref) or not call.target.startswith("aten."):
            return
        sure: bool | None = name in KEPT or name in SWAPS or name in OTHERS
        if name in PERHAPS:
            sure = self._shares(base.name, first.name)
        elif name in _SAME_DTYPE:
            metas = [self.scope.graph.tensors.get(n) for n in (base.name, first.name)]
            sure = None if None in metas else metas[0].dtype == metas[1].dtype and not call.args.get("copy")  # type: ignore[union-attr]
        if sure is False:
            return
        for i, ref in enumerate(names):
            if isinstance(ref, Ref):
                self.view(ref.name, View(base.name, call, i))
                if sure is None:
                    self._unsure.add(ref.name)

    def view(self, name: str, view: View) -> None:
        """Note one view."""
        self._views[name] = view
        self._children.setdefault(view.base, []).append(name)

    def _shares(self, base: str, reshaped: str) -> bool | None:
        """Whether a reshape shows the same memory; None where the file does not tell it."""
        have, new = self.scope.graph.tensors.get(base), self.scope.graph.tensors.get(reshaped)
        if have is None or new is None:
            return None
        if in_order(have):
            return True
        if have.strides is None or None in (*have.strides, *have.shape, *new.shape) or 0 in have.shape:
            return None
        shown = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), have.shape, have.strides)  # type: ignore[arg-type]
        try:
            shown.shape = new.shape  # type: ignore[assignment]
        except (AttributeError, ValueError):  # a copy, or a file whose extents do not fit, which the conversion refuses
            return False
        return True

    def fresh(self, name: str) -> None:
        """Make a view's value again where the memory below it was written."""
        if not self._stale:
            return
        chain = []
        while name in self._stale:
            chain.append(name)
            name = self._views[name].base
        for late in reversed(chain):
            self._stale.discard(late)
            self.scope.values[late] = self._again(self._views[late])

    def _again(self, view: View) -> Any:
        result = self.scope.importer.result_of(self.scope, view.call)
        return result[view.index] if isinstance(result, (list, tuple)) else result

    def write(self, name: str, value: Any) -> None:
        """Give a tensor a new value, and with it all that shares its memory."""
        scope = self.scope
        chain = [name]
        while chain[-1] in self._views:
            if chain[-1] in self._unsure:
                raise Unsupported("it writes into a tensor that may be a copy or a view")
            chain.append(self._views[chain[-1]].base)
        for base in reversed(chain):
            self.fresh(base)
        for below, base in pairwise(chain):
            scope.values[below] = value
            value = self._below(self._views[below], scope.values[base], value)
        scope.values[chain[-1]] = value
        self.changed.add(chain[-1])
        pending = list(self._children.get(chain[-1], ()))
        while pending:
            at = pending.pop()
            if at in self._unsure:
                raise Unsupported("it writes into a tensor that may have a copy or a view")
            if at not in chain:
                self._stale.add(at)
            pending += self._children.get(at, ())

    def _below(self, view: View, base: Any, value: Any) -> Any:
        """The tensor below a view, once the view has a new value."""
        b, name = self.scope.importer.builder, operator(view.call.target).rsplit(".", 1)[-1]
        if isinstance(base, Complex) or isinstance(value, Complex):
            if name not in KEPT or b.shape(base.real) != b.shape(value.real):
                raise Unsupported("it writes complex numbers into a view")
            return value
        if name in SWAPS:
            return self._shown(view, value)
        if name in KEPT or name in PERHAPS or name in _SAME_DTYPE:
            if b.shape(base) == b.shape(value):
                return value
            return b.reshape_to(value, b.shape_of(base))
        if name == "permute":
            rank = b.rank(base)
            order = [int(d) % rank for d in self.scope.resolve(view.call.args["dims"])]
            return b.transpose(value, np.argsort(order).tolist())
        args = {k: self.scope.resolve(v) for k, v in view.call.args.items()}
        if name == "slice":
            return replace_slice(b, base, value, args.get("dim", 0), args.get("start"), args.get("end"), args.get("step", 1))
        if name == "select":
            return replace_row(b, base, value, args["dim"], args["index"])
        return self._by_position(view, base, value)

    def _shown(self, view: View, base: Expr) -> Any:
        """The view of another tensor."""
        kept = self.scope.values[view.base]
        self.scope.values[view.base] = base
        try:
            return self._again(view)
        finally:
            self.scope.values[view.base] = kept

    def _by_position(self, view: View, base: Expr, value: Expr) -> Expr:
        """The elements of a view put to their positions, which the view itself shows."""
        b: Builder = self.scope.importer.builder
        shape = b.static_shape(base, "the tensor below a view that is written")
        numbers = b.arrays.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        positions = b.value(self._shown(view, b.const(numbers)))
        if positions is None or np.unique(positions).size != positions.size:
            raise Unsupported("it writes into a view whose elements lie at computed places, or share a place")
        flat = b.reshape_exactly(base, [numbers.size])
        updated = b.op("scatter_elements", flat, b.const(positions.reshape(-1)), b.reshape_exactly(value, [positions.size]), axis=0)
        return b.reshape_exactly(updated, list(shape))


def names_in(values: Any) -> list[str]:
    """The names of values among arguments or results."""
    names = []
    for value in values:
        names += [v.name for v in (value if isinstance(value, list) else [value]) if isinstance(v, Ref)]
    return names


def in_order(meta: Meta) -> bool:
    """Whether the file says that a tensor's elements lie behind each other."""
    step: int | None = 1
    for extent, stride in zip(reversed(meta.shape), reversed(meta.strides or ())):
        if extent != 1 and (stride is None or stride != step):
            return False
        step = None if extent is None or step is None else step * max(extent, 1)
    return meta.strides is not None


__all__ = [
    "KEPT",
    "MISSING",
    "OTHERS",
    "PERHAPS",
    "SWAPS",
    "Scope",
    "Skipped",
    "View",
    "in_order",
    "names_in",
    "operator",
    "values_only",
    "written",
]
