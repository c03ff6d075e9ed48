"""Reads a symbol's JSON, of MXNet 0.8 to 1.9, and applies the rules by which MXNet upgrades old symbols."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.versions import Versions

#: Graphs inside layers go this deep.
_DEEPEST = 64
#: The version of a file that states none: 0.8 had no field for it.
_UNSTATED = 800
#: MXNet warns of symbols that a newer version wrote, and reads them.
VERSIONS = Versions("MXNet's version", 0, 10999, lambda number: f"{number // 10000}.{number // 100 % 100}")
#: Operators that states belong to, with the states' names. Files of 0.8 leave these operands out.
_STATES = {"BatchNorm": ("gamma", "beta", "moving_mean", "moving_var")}


@dataclass
class Layer:
    """A node: its operator ("null" for a variable), attributes as texts, and operands as pairs of node and result."""

    op: str
    name: str
    attributes: dict[str, str]
    inputs: list[tuple[int, int]]
    graphs: list[Symbol] = field(default_factory=list)


@dataclass
class Symbol:
    """A graph: nodes in the order of their computation, its variables' numbers in order, and its results.

    `version` is MXNet's that wrote the file, as 10901 for 1.9.1. With `numpy`, the extent 0 of a stated shape is no open one.
    """

    nodes: list[Layer]
    variables: list[int]
    heads: list[tuple[int, int]]
    version: int = _UNSTATED
    numpy: bool = False

    def size(self) -> int:
        """The number of nodes, with those of graphs inside layers."""
        count, waiting = 0, [self]
        while waiting:
            symbol = waiting.pop()
            count += len(symbol.nodes)
            waiting += [graph for node in symbol.nodes for graph in node.graphs]
        return count


def read_symbol(text: bytes | str, file: str) -> Symbol:
    """A symbol from its JSON. Raises `RelayError` (R0802) where it is damaged."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise damaged(file, "its JSON is nested too deeply") from None
    except ValueError as wrong:
        place = f" at character {wrong.pos}" if isinstance(wrong, json.JSONDecodeError) else ""
        raise damaged(file, f"this is not a symbol of MXNet, or it is cut short: its JSON is wrong{place}") from None
    version = _number(document, "mxnet_version", _UNSTATED)
    if version < 0:
        raise damaged(file, f"this is not a symbol of MXNet: it states the version {version}")
    symbol = _Reader(file, version).graph(document, 0)
    symbol.numpy = bool(_number(document, "is_np_shape", 0))
    return symbol


def _number(document: Any, name: str, default: int) -> int:
    """A number among the attributes of the whole symbol: it stands alone, or behind its type."""
    stated = document.get("attrs") if isinstance(document, dict) else None
    entry = stated.get(name) if isinstance(stated, dict) else None
    value = entry[1] if isinstance(entry, list) and len(entry) == 2 else entry
    return value if isinstance(value, int) else int(value) if isinstance(value, str) and value.isdecimal() else default


class _Reader:
    def __init__(self, file: str, version: int) -> None:
        self.file = file
        self.version = version

    def wrong(self, what: str) -> RelayError:
        return damaged(self.file, f"this is not a symbol of MXNet: {what}")

    def graph(self, found: Any, depth: int) -> Symbol:
        if depth > _DEEPEST:
            raise self.wrong(f"graphs are nested more than {_DEEPEST} deep")
        if not isinstance(found, dict) or not isinstance(found.get("nodes"), list):
            raise self.wrong("a graph has no list of nodes")
        entries = found["nodes"]
        nodes = [self._node(entry, number, len(entries), depth) for number, entry in enumerate(entries)]
        heads = [self._operand(head, "a result", len(nodes)) for head in self._list(found, "heads", "a graph")]
        if not heads:
            raise self.wrong("a graph has no results")
        stated = found.get("arg_nodes")
        variables = [i for i, node in enumerate(nodes) if node.op == "null"]
        if isinstance(stated, list) and sorted(stated, key=repr) == sorted(variables, key=repr):
            variables = stated
        if self.version < 900:
            nodes, variables, heads = _with_states(nodes, variables, heads)
        return Symbol(nodes, variables, heads, self.version)

    def _list(self, entry: Mapping[str, Any], key: str, what: str) -> Sequence[Any]:
        value = entry.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(f"the field {key} of {what} is no list")
        return value

    def _node(self, entry: Any, number: int, count: int, depth: int) -> Layer:
        what = f"node {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("op"), str) or not isinstance(entry.get("name"), str):
            raise self.wrong(f"{what} has no operator, or no name")
        attributes: dict[str, str] = {}
        # 0.8 has the operator's own in `param`, later versions in `attr`, those from 1.0 on in `attrs`.
        for key in ("attr", "attrs", "param"):
            values = entry.get(key) or {}
            if not isinstance(values, dict):
                raise self.wrong(f"the attributes of {what} are no mapping")
            attributes.update({name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()})
        inputs = [self._operand(operand, f"an operand of {what}", count) for operand in self._list(entry, "inputs", what)]
        for source, _ in inputs:
            if source >= number:
                notes = ["a symbol lists its nodes in the order of their computation, without cycles"]
                raise damaged(self.file, f"{what}, {entry['name'][:60]!r}, uses node {source}, which does not stand before it", *notes)
        graphs = [self.graph(inner, depth + 1) for inner in self._list(entry, "subgraphs", what)]
        return self._upgraded(Layer(entry["op"], entry["name"], attributes, inputs, graphs))

    def _operand(self, operand: Any, what: str, count: int) -> tuple[int, int]:
        plain = isinstance(operand, list) and len(operand) in (2, 3) and all(type(n) is int for n in operand)
        if not plain or not 0 <= operand[0] < count or not 0 <= operand[1] < 1 << 31:
            raise self.wrong(f"{what} is {json.dumps(operand)[:60]}, which names no node")
        return operand[0], operand[1]

    def _upgraded(self, layer: Layer) -> Layer:
        """The layer with attributes as 1.9 reads them."""
        if layer.op == "CuDNNBatchNorm":
            layer.op = "BatchNorm"
        # Before 0.9.5, the axis -1 of argmax and argmin stood for all axes.
        if self.version < 905 and layer.op in ("argmax", "argmin") and layer.attributes.get("axis") == "-1":
            del layer.attributes["axis"]
        return layer


def _with_states(
    nodes: list[Layer], variables: list[int], heads: list[tuple[int, int]]
) -> tuple[list[Layer], list[int], list[tuple[int, int]]]:
    """A graph of 0.8 with a variable for each state that its operators leave out."""
    layers: list[Layer] = []
    places: list[int] = []
    added: set[int] = set()
    for node in nodes:
        inputs = [(places[source], index) for source, index in node.inputs]
        names = _STATES.get(node.op, ())
        for name in names[max(len(inputs) - 1, 0) :]:
            added.add(len(layers))
            inputs.append((len(layers), 0))
            layers.append(Layer("null", f"{node.name}_{name}" if node.name else name, {}, []))
        places.append(len(layers))
        layers.append(Layer(node.op, node.name, node.attributes, inputs, node.graphs))
    order = [places[i] for i in variables] + sorted(added)
    return layers, order, [(places[i], index) for i, index in heads]


__all__ = ["VERSIONS", "Layer", "Symbol", "read_symbol"]
