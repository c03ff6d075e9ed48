"""What parsers, graphs and plotters of pictures have in common, and the parser that shows operators' attributes."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    children,
)
from relaylang.ops.record import Op

UNKNOWN_TYPE = "unknown"


class VizNode:
    """A node of a picture: its number in the graph, its kind and what else there is to say."""

    def __init__(self, node_id: str, node_type: str, node_detail: str) -> None:
        self.identity = node_id
        self.type_name = node_type
        self.detail = node_detail

    def __repr__(self) -> str:
        return f"VizNode({self.identity}, {self.type_name}, {self.detail!r})"


class VizEdge(NamedTuple):
    """An edge from one node to another, by their numbers."""

    start: str
    end: str


Parsed = tuple[VizNode | None, list[VizEdge]]


class VizParser(abc.ABC):
    """Says what node and which edges stand for an expression."""

    @abc.abstractmethod
    def get_node_edges(self, node: Expr, relay_param: dict[str, Any], node_to_id: dict[Expr, str]) -> Parsed:
        """The node, or None where an expression is not shown, and the edges to add with it."""


class VizGraph(abc.ABC):
    """Takes nodes and edges, operands before those that use them."""

    @abc.abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Add a node."""

    @abc.abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Add an edge."""


class Plotter(abc.ABC):
    """Draws graphs."""

    @abc.abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """A new graph, for the function of this name."""

    @abc.abstractmethod
    def render(self, filename: str | None) -> None:
        """Draw all graphs to a file."""


def into(node: Expr, operands: Sequence[Expr], numbers: Mapping[Expr, str]) -> list[VizEdge]:
    """Edges from operands to the node that uses them."""
    return [VizEdge(numbers[operand], numbers[node]) for operand in operands]


def _lines(attrs: Any) -> list[str]:
    return [f"{key}: {attrs.get_str(key)}" for key in attrs.keys()] if attrs else []


def _name(function: Function) -> str:
    return str(function.attrs["Composite"]) if function.attrs and "Composite" in function.attrs else ""


def _of_call(call: Call) -> tuple[str, list[str]]:
    if isinstance(call.op, Op):
        return f"Call {call.op.name}", _lines(call.attrs)
    if isinstance(call.op, Function):
        return f"Call {_name(call.op) or 'Anonymous Func'}", _lines(call.op.attrs)
    if isinstance(call.op, GlobalVar):
        return "Call GlobalVar", [f"GlobalVar.name_hint: {call.op.name_hint}"]
    return f"Call {type(call.op).__name__}", []


def _of_var(var: Var) -> list[str]:
    ty = var.type_annotation
    if isinstance(ty, TensorType):
        shape = ", ".join(str(extent) for extent in ty.shape) + ("," if len(ty.shape) == 1 else "")
        return [f"name_hint: {var.name_hint}", f"shape: ({shape})", f"dtype: {ty.dtype}"]
    return [f"name_hint: {var.name_hint}"] + ([f"type_annotation: {ty}"] if ty is not None else [])


#: Kind of expression -> its title, its lines, and the operands that have edges to it.
_ROWS: dict[type, Callable[[Any], tuple[str, list[str], Sequence[Expr]]]] = {
    Function: lambda e: (f"Func {_name(e)}", _lines(e.attrs), [e.body]),
    Call: lambda e: (*_of_call(e), e.args),
    Var: lambda e: ("Var(Input)", _of_var(e), ()),
    Tuple: lambda e: ("Tuple", [], e.fields),
    TupleGetItem: lambda e: ("TupleGetItem", [f"idx: {e.index}"], [e.tuple_value]),
    Constant: lambda e: ("Const", [f"shape: {tuple(e.data.shape)}, dtype: {e.data.dtype}"], ()),
}


class DefaultVizParser(VizParser):
    """Shows calls with their attributes; operators and global names are no nodes of their own."""

    def get_node_edges(self, node: Expr, relay_param: dict[str, Any], node_to_id: dict[Expr, str]) -> Parsed:
        if isinstance(node, (GlobalVar, Op)):
            return None, []
        row = _ROWS.get(type(node))
        title, lines, operands = row(node) if row else (type(node).__name__, [], children(node))
        if isinstance(node, Var) and node.name_hint in relay_param:
            title = "Var(Param)"
        shown = [operand for operand in operands if not isinstance(operand, (GlobalVar, Op))]
        return VizNode(node_to_id[node], title, "\n".join(lines)), into(node, shown, node_to_id)
