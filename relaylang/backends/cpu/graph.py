"""A compiled program as the JSON graph of TVM's graph executor: tensors that come in, kernels, and where results lie.

`nodes` are inputs, parameters, and the instructions in the order in which they run, those before the first run included.
Kernels that write parts of one tensor are joined by a node that does nothing (`__nop`).
Equal numbers of `storage_id` are the same memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.program import Branch, Copy, Instruction, Looped, Outside, PackIn, Program, Run, Slot, Turns, View, walk

#: A node and one of its results, as `inputs` and `heads` name them.
_Entry = tuple[int, int]


class _Graph:
    def __init__(self, program: Program, prefix: str) -> None:
        self.program = program
        self.prefix = prefix
        self.nodes: list[dict[str, Any]] = []
        self.arguments: list[int] = []
        self.shapes: list[list[int]] = []
        self.dtypes: list[str] = []
        self.storage: list[int] = []
        self.places: list[list[Any]] = []
        self.rows = [0]
        self.numbers: dict[tuple[str, int], int] = {}
        #: Who wrote each slot: one entry, or those of its parts.
        self.writers: dict[Any, list[_Entry]] = {}
        self.names: dict[str, dict[int, str]] = {}

    def _node(self, op: str, name: str, inputs: Sequence[_Entry], results: Sequence[View], attrs: dict[str, str] | None = None) -> int:
        node: dict[str, Any] = {"op": op, "name": name, "inputs": [[*entry, 0] for entry in inputs]}
        if attrs is not None:
            counts = {"num_outputs": str(len(results)), "num_inputs": str(len(inputs)), "flatten_data": "0"}
            node["attrs"] = {**counts, **attrs}
        number = len(self.nodes)
        self.nodes.append(node)
        for index, view in enumerate(results):
            self.shapes.append(list(view.shape))
            self.dtypes.append(view.slot.dtype)
            self.storage.append(self.numbers.setdefault(_place(view.slot), len(self.numbers)))
            self.places.append([*_place(view.slot), view.start, list(view.strides)])
            known = [] if view.is_whole else self.writers.setdefault(_key(view.slot), [])
            self.writers[_key(view.slot)] = [*known, (number, index)]
        self.rows.append(len(self.shapes))
        return number

    def argument(self, name: str, slot: Slot) -> None:
        self.arguments.append(self._node("null", name, (), [View(slot, slot.shape)]))

    def entry(self, slot: Slot) -> _Entry:
        """The node that gives a slot's whole tensor."""
        writers = self.writers[_key(slot)]
        if len(writers) > 1:
            self._node("tvm_op", f"{self.prefix}_join_{len(self.nodes)}", writers, [View(slot, slot.shape)], {"func_name": "__nop"})
        return self.writers[_key(slot)][0]

    def instruction(self, item: Instruction) -> None:
        if isinstance(item, Copy) and item.source.slot is item.outputs[0]:
            return
        reads = [s for s in dict.fromkeys(_reads(item)) if _key(s) in self.writers]
        inputs = [self.entry(slot) for slot in reads]
        results = item.results if isinstance(item, (Run, Outside, Turns)) else [View(s, s.shape) for s in item.outputs]
        name = self._name(item)
        self._node("tvm_op", name, inputs, results, {"func_name": name})

    def _name(self, item: Instruction) -> str:
        """The name of an instruction's code: the same for the same kernel, and for no other."""
        match item:
            case Run():
                words, own = ["fused", *(c.op.name for c in calls_of(item.function))], id(item.kernel)  # type: ignore[attr-defined]
            case Outside():
                return item.op.region.symbol
            case PackIn():
                words, own = ["pack"], id(item.pack)
            case Copy():
                words, own = ["copy"], 0
            case Turns():
                words, own = ["loop"], id(item.region)
            case Looped():
                words, own = ["loops"], 0
            case _:
                words, own = ["if"], id(item)
        base = "_".join([self.prefix, *(re.sub(r"\W", "_", word) for word in words)])[:160]
        same = self.names.setdefault(base, {})
        return same.setdefault(own, base if not same else f"{base}_{len(same)}")

    def text(self, places: bool) -> str:
        heads = [[*self.entry(slot), 0] for slot in self.program.outputs]
        record = {
            "nodes": self.nodes,
            "arg_nodes": self.arguments,
            "heads": heads,
            "attrs": {
                "dltype": ["list_str", self.dtypes],
                "device_index": ["list_int", [1] * len(self.shapes)],
                "storage_id": ["list_int", self.storage],
                "shape": ["list_shape", self.shapes],
            },
            "node_row_ptr": self.rows,
        }
        if places:
            record["places"] = self.places
        return json.dumps(record, separators=(",", ":"))


def _key(slot: Slot) -> Any:
    return id(slot) if slot.kind == "made" else (slot.kind, slot.number)


def _place(slot: Slot) -> tuple[str, int]:
    """A slot's memory: an array of the caller's, or a place in one of the two memories of the program."""
    return (slot.kind, slot.number) if slot.kind != "made" else ("fixed" if slot.fixed else "arena", slot.offset)


def _reads(item: Instruction) -> list[Slot]:
    """What an instruction reads; of a branch, what it does not make itself."""
    if not isinstance(item, Branch):
        return _taken(item)
    inner = walk([item])
    local = {id(s) for i in inner for s in i.outputs}
    return [s for i in inner for s in _taken(i) if id(s) not in local]


def _taken(item: Instruction) -> list[Slot]:
    """What an instruction reads, and the part of its result that lies in its place already."""
    inside = [v.slot for v in item.inputs if any(v.slot is s for s in item.outputs)] if isinstance(item, Run) else []
    return [*inside, *item.reads()]


def input_name(name: str, path: Sequence[int]) -> str:
    """The name of a tensor that is an input, or a part of one that is a tuple: `%p.1.0`."""
    return ".".join([name, *map(str, path)])


def _shape(ty: Any) -> list[int]:
    """The extents of a tensor, all of them known."""
    return [int(d) for d in ty.shape]


def graph_json(program: Program, prefix: str = "tvmgen_default", places: bool = False) -> str:
    """The graph of a program whose memory is planned; `prefix` begins the names of its functions.

    With `places`, it has the place of each tensor, too: memory, number or offset there, first element, strides.
    """
    graph = _Graph(program, prefix)
    for number, (name, ty, path) in enumerate(program.inputs):
        graph.argument(input_name(name, path), Slot("input", number, _shape(ty), ty.dtype))
    for number, (name, ty) in enumerate(program.params):
        graph.argument(name, Slot("param", number, _shape(ty), ty.dtype))
    for item in [*program.prepare, *program.run]:
        graph.instruction(item)
    return graph.text(places)


__all__ = ["graph_json", "input_name"]
