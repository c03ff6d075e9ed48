"""A graph or a function's body: nodes by name, the tensors between them, and the frames of its loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from relaylang.frontends.common.report import Malformed

#: The results of operators that have several, by their names. Those of all others have one name.
_RESULTS = {
    "BlockLSTM": "i cs f o ci co h",
    "BlockLSTMV2": "i cs f o ci co h",
    "BroadcastGradientArgs": "r0 r1",
    "CombinedNonMaxSuppression": "nmsed_boxes nmsed_scores nmsed_classes valid_detections",
    "FusedBatchNorm": "y batch_mean batch_variance reserve_space_1 reserve_space_2",
    "FusedBatchNormV2": "y batch_mean batch_variance reserve_space_1 reserve_space_2",
    "FusedBatchNormV3": "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3",
    "GRUBlockCell": "r u c h",
    "LSTMBlockCell": "i cs f o ci co h",
    "ListDiff": "out idx",
    "MaxPoolWithArgmax": "output argmax",
    "Merge": "output value_index",
    "NonMaxSuppressionV4": "selected_indices valid_outputs",
    "NonMaxSuppressionV5": "selected_indices selected_scores valid_outputs",
    "QuantizeV2": "output output_min output_max",
    "RefMerge": "output value_index",
    "RefSwitch": "output_false output_true",
    "SoftmaxCrossEntropyWithLogits": "loss backprop",
    "SparseSoftmaxCrossEntropyWithLogits": "loss backprop",
    "SparseFillEmptyRows": "output_indices output_values empty_row_indicator reverse_index_map",
    "SparseReshape": "output_indices output_shape",
    "Switch": "output_false output_true",
    "TensorArrayConcatV3": "value lengths",
    "TensorArrayV3": "handle flow",
    "TensorListConcat": "tensor lengths",
    "TensorListConcatV2": "tensor lengths",
    "TensorListPopBack": "output_handle tensor",
    "TopK": "values indices",
    "TopKV2": "values indices",
    "Unique": "y idx",
    "UniqueV2": "y idx",
    "UniqueWithCounts": "y idx count",
    "UniqueWithCountsV2": "y idx count",
}
RESULTS: dict[str, list[str]] = {op: names.split() for op, names in _RESULTS.items()}

#: A tensor: the name of the node that makes it, and the number of the result.
Ref = tuple[str, int]


@dataclass
class Frame:
    """A loop of control flow v1: for each variable its Merge, its Enter and its NextIteration, and the condition."""

    name: str
    enters: list[str] = field(default_factory=list)
    merges: list[str] = field(default_factory=list)
    switches: dict[str, str] = field(default_factory=dict)
    condition: str = ""


class Graph:
    """The nodes of a GraphDef, or of a FunctionDef with its signature's operands in `args`."""

    def __init__(self, nodes: Sequence[Any], functions: Mapping[str, Any], function: Any = None) -> None:
        self.nodes: dict[str, Any] = {n.name: n for n in nodes}
        self.order = nodes
        self.functions = functions
        self.function = function
        self.args: dict[str, int] = {a.name: i for i, a in enumerate(function.signature.input_arg)} if function is not None else {}
        self._inputs: dict[str, list[Ref]] = {}

    @property
    def results(self) -> list[Ref]:
        """The tensors that a function returns."""
        assert self.function is not None
        return [self.ref(self.function.ret[a.name] if a.name in self.function.ret else "") for a in self.function.signature.output_arg]

    def ref(self, text: str) -> Ref:
        """The tensor of a name: `node`, `node:1`, or in functions `node:result:1`. Raises `Malformed` for another form."""
        parts = text.split(":")
        number = parts[-1] if len(parts) > 1 else "0"
        if len(parts) > 3 or not number.isdecimal() or len(number) > 9:
            raise Malformed(f"it names the tensor {text[:60]!r}, which is no tensor's name")
        if len(parts) < 3:
            return parts[0], int(number)
        return parts[0], self._first(parts[0], parts[1]) + int(number)

    def _first(self, node: str, result: str) -> int:
        """The number of a node's result by its name."""
        proto = self.nodes.get(node)
        if proto is None:
            return 0
        function = self.functions.get(proto.op)
        names = [a.name for a in function.signature.output_arg] if function is not None else RESULTS.get(proto.op, [])
        return names.index(result) if result in names else 0

    def inputs(self, name: str) -> list[Ref]:
        """The tensors that a node takes, without control edges."""
        refs = self._inputs.get(name)
        if refs is None:
            refs = self._inputs[name] = [self.ref(text) for text in self.nodes[name].input if not text.startswith("^")]
        return refs

    def controls(self, name: str) -> list[str]:
        """The nodes that must run before a node."""
        return [text[1:] for text in self.nodes[name].input if text.startswith("^")]

    def op(self, name: str) -> str:
        """The operator of a node; "" where there is no such node."""
        node = self.nodes.get(name)
        return str(node.op).removeprefix("Ref") if node is not None else ""

    def source(self, name: str, index: int) -> str:
        """The node that makes an operand of a node, in front of identities."""
        at = self.operand(name, index)[0]
        for _ in range(64):
            if self.op(at) != "Identity":
                break
            at = self.operand(at, 0)[0]
        return at

    def operand(self, name: str, index: int) -> Ref:
        """One of the tensors that a node takes. Raises `Malformed` where it has fewer."""
        inputs = self.inputs(name)
        if index >= len(inputs):
            raise Malformed(f"the operand {index} of {name} is missing")
        return inputs[index]

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The loops by the names of their frames."""
        frames: dict[str, Frame] = {}
        for name in self.nodes:
            if self.op(name) == "Enter":
                frame = self.frame_of(name)
                frames.setdefault(frame, Frame(frame)).enters.append(name)
        owner: dict[str, Frame] = {}
        for name in self.nodes:
            if self.op(name) == "Merge" and (enter := self.entry(name)) is not None:
                owner[name] = frame_ = frames[self.frame_of(enter)]
                frame_.merges.append(name)
        for name in self.nodes:
            if self.op(name) == "Switch" and self.op(self.source(name, 1)) == "LoopCond":
                merge = self.source(name, 0)
                if merge in owner:
                    owner[merge].switches[name] = merge
                    owner[merge].condition = self.source(name, 1)
        return frames

    @cached_property
    def inside(self) -> set[str]:
        """The nodes inside of loops: those after an Enter, up to an Exit."""
        inside = {name for name in self.nodes if self.op(name) == "Enter"}
        if not inside:
            return inside
        after: dict[str, list[str]] = {}
        for name in self.nodes:
            for before in [*[i for i, _ in self.inputs(name)], *[c.split(":")[0] for c in self.controls(name)]]:
                after.setdefault(before, []).append(name)
        stack = list(inside)
        while stack:
            for name in after.get(stack.pop(), ()):
                if name not in inside and self.op(name) != "Exit":
                    inside.add(name)
                    stack.append(name)
        return inside

    def frame_of(self, enter: str) -> str:
        """The name of the frame that an Enter leads to."""
        return str(self.nodes[enter].attr["frame_name"].s.decode("utf-8", "replace")) if "frame_name" in self.nodes[enter].attr else ""

    def entry(self, merge: str) -> str | None:
        """The Enter of a Merge that is a loop's variable; None for a Merge of branches."""
        inputs = [i for i, _ in self.inputs(merge)]
        if not any(self.op(i) == "NextIteration" for i in inputs):
            return None
        return next((i for i in inputs if self.op(i) == "Enter"), None)

    def next_of(self, merge: str) -> str:
        """The NextIteration of a loop's variable."""
        return next(i for i, _ in self.inputs(merge) if self.op(i) == "NextIteration")

    @cached_property
    def _leaving(self) -> dict[str, tuple[Frame, int]]:
        """The loop of each Switch by a loop's condition, and the number of its variable."""
        leaving = {}
        for frame in self.frames.values():
            places = {merge: i for i, merge in enumerate(frame.merges)}
            leaving.update({switch: (frame, places[merge]) for switch, merge in frame.switches.items()})
        return leaving

    def left_by(self, name: str) -> tuple[Frame, int]:
        """The loop that an Exit leaves, and the number of the variable that it gives."""
        left = self._leaving.get(self.source(name, 0))
        if left is None:
            raise Malformed("it leaves no loop: its operand is no Switch by the condition of a loop")
        return left

    # ---- branches of control flow v1

    @cached_property
    def _guards(self) -> dict[str, dict[Ref, int]]:
        return {}

    def guards(self, start: str) -> dict[Ref, int]:
        """The branches in which a node runs: the condition of each Switch before it, and the number of its result."""
        memory, stack = self._guards, [start]
        opened: set[str] = set()
        while stack:
            name = stack[-1]
            if name in memory:
                stack.pop()
                continue
            before = self._before(name)
            waiting = [n for n, _ in before if n in self.nodes and n not in memory and n not in opened]
            if waiting and name not in opened:
                opened.add(name)
                stack += waiting
                continue
            stack.pop()
            memory[name] = self._joined(name, before)
        return memory[start]

    def _before(self, name: str) -> list[Ref]:
        if name not in self.nodes:
            return []
        if self.op(name) == "Merge" and (enter := self.entry(name)) is not None:
            return [(enter, 0)]
        return [*self.inputs(name), *((c.split(":")[0], -1) for c in self.controls(name))]

    def _joined(self, name: str, before: list[Ref]) -> dict[Ref, int]:
        parts = [self.guarded(ref) for ref in before if ref[0] in self.nodes]
        if self.op(name) == "Merge" and self.entry(name) is None and len(parts) > 1:
            common = parts[0].items()
            for part in parts[1:]:
                common = common & part.items()  # type: ignore[assignment]
            return dict(common)
        guards: dict[Ref, int] = {}
        for part in parts:
            guards = part if not guards else guards if not part else {**guards, **part}
        return guards

    def guarded(self, ref: Ref) -> dict[Ref, int]:
        """The branches in which a tensor is made; its node must have them already."""
        name, index = ref
        guards = self._guards.get(name, {})
        if self.op(name) == "Switch" and index >= 0 and self.op(self.source(name, 1)) != "LoopCond":
            return {**guards, self.inputs(name)[1]: index}
        return guards

    def branches(self, merge: str) -> tuple[Ref, Ref, Ref]:
        """The condition of a Merge of two branches, the tensor where it holds, and that where it does not."""
        inputs = self.inputs(merge)
        if len(inputs) != 2:
            raise Malformed(f"it has {len(inputs)} branches; a Merge of a condition has two")
        for name, _ in inputs:
            self.guards(name)
        first, second = (self.guarded(ref) for ref in inputs)
        apart = [c for c, side in first.items() if second.get(c, side) != side]
        apart = apart or [c for c in {**first, **second} if (c in first) != (c in second)]
        if not apart:
            raise Malformed("no Switch before it chooses one of its operands")
        chosen = apart[-1]
        side = first[chosen] if chosen in first else 1 - second[chosen]
        return (chosen, inputs[0], inputs[1]) if side == 1 else (chosen, inputs[1], inputs[0])


__all__ = ["RESULTS", "Frame", "Graph", "Ref"]
