"""TensorFlow to Relay: the walk over a model's graphs. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, Span, did_you_mean, error, first_ones
from relaylang.frontends.common import (
    Builder,
    Imported,
    Layer,
    Listing,
    Malformed,
    Report,
    Unsupported,
    check_axes,
    check_names,
    damaged,
    external,
    failure,
    finish,
    no_model,
    value_for,
)
from relaylang.frontends.contents import main_file
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.frontends.tensorflow.graph import Frame, Graph, Ref
from relaylang.frontends.tensorflow.items import Items
from relaylang.frontends.tensorflow.loops import choice, loop
from relaylang.frontends.tensorflow.node import Node, Text, Variable, need_tensor
from relaylang.frontends.tensorflow.savedmodel import Model, read_model
from relaylang.frontends.tensorflow.table import REFUSED, mixed, table
from relaylang.frontends.tensorflow.tensors import DTYPES, OTHER, array_of, dtype_of, shape_of
from relaylang.ir import Dim, Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes

#: Functions call functions, and loops have loops inside, this deep.
_DEEPEST = 64
#: The results of a node that was not converted.
MISSING = object()
_INPUTS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
#: Nodes that nothing takes, and that are no outputs either.
_NO_OUTPUTS = frozenset(
    (
        "Assert",
        "Assign",
        "AssignVariableOp",
        "Const",
        "MergeV2Checkpoints",
        "NoOp",
        "Placeholder",
        "PlaceholderWithDefault",
        "Print",
        "RestoreV2",
        "SaveV2",
        "VarHandleOp",
        "VarIsInitializedOp",
        "Variable",
        "VariableV2",
    )
)
#: What TensorFlow 2 calls the results of a function that it freezes; other nodes that nothing takes are left over then.
_RESULT = re.compile(r"Identity(_\d+)?")
#: The number of texts as elements.
_STRING = 7
_ASSIGNING = ("Assign", "Scatter", "ResourceScatter", "ResourceApply")


def _is_text(proto: Any) -> bool:
    """Whether a node holds or takes texts, such as the file of a picture."""
    return "dtype" in proto.attr and proto.attr["dtype"].type == _STRING


class Scope:
    """One conversion of a graph: values by node. `frame` is the loop whose turn it is, `parent` the frame around the loop."""

    def __init__(
        self,
        graph: Graph,
        depth: int = 0,
        given: Mapping[str, Any] | None = None,
        parent: Scope | None = None,
        frame: Frame | None = None,
    ) -> None:
        self.graph = graph
        self.depth = depth
        self.given: Mapping[str, Any] = given or {}
        self.parent = parent
        self.frame = frame
        self.values: dict[str, Any] = {}
        self.finished: dict[str, list[Any]] = {}


class Importer:
    """Converts one model. `file` is its name in diagnostics, `outputs` the names of tensors that it gives.

    A graph without names of outputs gives the results of all nodes that no other takes, or of its last one where `last`.
    """

    def __init__(
        self, model: Model, file: str, options: Options, budget: Budget, outputs: Sequence[str] | None = None, last: bool = False
    ) -> None:
        self.model = model
        self.file = file
        self.options = options
        self.budget = budget
        self.budget.grant(layers=len(model.graph.node) + sum(len(f.node_def) for f in model.functions.values()))
        self.outputs = outputs
        self.last = last
        self.rules = table()
        self.report = Report(file, self.rules.names())
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        self._graphs: dict[str, Graph] = {}
        self._spans: dict[tuple[int, str], Span] = {}
        self._reported: set[tuple[int, str]] = set()
        self._constants: dict[tuple[int, str], Any] = {}
        self._variables: dict[str, Expr] = {}
        self._assigned: dict[tuple[int, str], Span | None] = {}

    # ---- the model

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        graph = Graph(self.model.graph.node, self.model.functions)
        scope = Scope(graph)
        wanted = self._wanted(graph)
        inputs = self._inputs(scope, wanted)
        self._demand_all(scope, wanted)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial:
            self.report.raise_if_any()
        results = [self._output(scope, ref) for ref in wanted]
        if self._assigned:
            span = next(iter(self._assigned.values()))
            count = len(self._assigned)
            said = f"{count} assignments of variables are left out" if count > 1 else "an assignment of a variable is left out"
            self.report.warn(said, span, "the program computes with the values in the file at each call")
        return finish(self.builder, inputs, results)

    def _output(self, scope: Scope, ref: Ref) -> Expr:
        values = scope.values.get(ref[0], MISSING)
        if values is MISSING:
            self.report.raise_if_any()
            raise damaged(self.file, "an output of the model is not defined")
        if ref[1] >= len(values) or values[ref[1]] is None:
            raise damaged(self.file, f"the output {ref[0]}:{ref[1]} does not exist; the node has {len(values)} results")
        value = values[ref[1]]
        if not isinstance(value, Expr):
            kind = "texts" if isinstance(value, Text) else "a list or a variable"
            raise RelayError(error("R0801", f"{self.file}: the output {ref[0]} is {kind}, not a tensor of numbers"))
        return value

    def _wanted(self, graph: Graph) -> list[Ref]:
        """The tensors that are the model's outputs."""
        if self.outputs:
            refs = [self._named(graph, name) for name in self.outputs]
        elif self.model.outputs is not None:
            refs = [self._named(graph, place.tensor) for place in self.model.outputs]
        elif self.last:
            refs = [(n.name, 0) for n in graph.order[-1:]]
        else:
            taken = {name for n in graph.nodes for name, _ in self._safe_inputs(graph, n)}
            refs = [(n, 0) for n in graph.nodes if n not in taken and n not in graph.inside and graph.op(n) not in _NO_OUTPUTS]
            refs = [ref for ref in refs if _RESULT.fullmatch(ref[0]) and graph.op(ref[0]) == "Identity"] or refs
        if not refs:
            raise damaged(self.file, "the graph has no outputs" if graph.nodes else "the graph has no nodes")
        return refs

    def _safe_inputs(self, graph: Graph, name: str) -> list[Ref]:
        try:
            return graph.inputs(name)
        except Malformed:
            return []

    def _named(self, graph: Graph, name: str) -> Ref:
        try:
            ref = graph.ref(name)
        except Malformed as wrong:
            raise RelayError(error("R0804", f"{self.file}: {wrong.reason}")) from None
        if ref[0] not in graph.nodes:
            near = did_you_mean(ref[0], graph.nodes)
            raise RelayError(error("R0804", f"{self.file} has no node {name}", notes=[f"did you mean {near}?"] if near else []))
        return ref

    def _inputs(self, scope: Scope, wanted: Sequence[Ref]) -> list[Var]:
        graph = scope.graph
        shapes = self.options.shapes
        names = {n: n for n, node in graph.nodes.items() if graph.op(n) in _INPUTS or (n in shapes and _is_text(node))}
        if self.model.inputs is not None:
            places = {self._named(graph, p.tensor)[0]: p for p in self.model.inputs}
            names = {node: place.name for node, place in places.items()}
        check_names(self.file, self.options, names.values())
        reached = self._reached(graph, wanted)
        variables = []
        for node, name in names.items():
            chosen = name in self.options.shapes or name in self.options.dtypes or name in self.options.values
            if self.model.inputs is None and (node not in reached or (graph.op(node) == "PlaceholderWithDefault" and not chosen)):
                continue
            ty = self._input_type(graph.nodes[node], name)
            if name in self.options.values:
                value = value_for(self.file, name, self.options.values[name], ty.shape, ty.dtype)
                scope.values[node] = [self.builder.const(value)]
                continue
            self.builder.span = self.builder.listing.add(Layer("Input", "", (), (name,)))
            variable = self.builder.variable(self.builder.unique(name), ty)
            scope.values[node] = [variable]
            variables.append(variable)
        return variables

    def _reached(self, graph: Graph, wanted: Sequence[Ref]) -> set[str]:
        """The nodes that the outputs need."""
        seen = {name for name, _ in wanted}
        stack = list(seen)
        while stack:
            for name, _ in self._sources(graph, stack.pop()):
                if name in graph.nodes and name not in seen:
                    seen.add(name)
                    stack.append(name)
        return seen

    def _sources(self, graph: Graph, name: str) -> list[Ref]:
        """The tensors that a node needs; the condition of branches without operands is behind control edges."""
        inputs = self._safe_inputs(graph, name)
        try:
            return [*inputs, graph.branches(name)[0]] if graph.op(name) == "Merge" and graph.entry(name) is None else inputs
        except Malformed:
            return inputs

    def _input_type(self, proto: Any, name: str) -> TensorType:
        """The type of an input: as the options say, else as the signature or the node says."""
        place = next((p for p in self.model.inputs or () if p.name == name), None)
        number = int(place.info.dtype if place is not None else proto.attr["dtype"].type if "dtype" in proto.attr else 1)
        if _is_text(proto) and name in self.options.shapes:  # a picture, which is decoded before the network
            return TensorType(self.options.shapes[name], self.options.dtypes.get(name, "uint8"))
        if number % 100 not in DTYPES:
            kind = OTHER.get(number % 100, f"a tensor of the element type {number}")
            notes = [f"--shape {name}=299x299x3 takes the decoded picture in the place of its file"] if _is_text(proto) else []
            raise RelayError(error("R0801", f"{self.file}: the input {name} has {kind}, not numbers", notes=notes))
        stated = self._stated(place.info.tensor_shape) if place is not None else self._stated_by(proto)
        shape = self.options.shapes.get(name)
        if shape is not None and stated is not None:
            check_axes(self.file, name, stated, shape)
        dims = shape if shape is not None else stated
        if dims is None and name in self.options.values:
            dims = np.shape(self.options.values[name])
        if dims is None:
            notes = [f"--shape {name}=1x224x224x3 gives it one"]
            raise RelayError(error("R0804", f"{self.file}: the input {name} has no shape", notes=notes))
        return TensorType(dims, self.options.dtypes.get(name, dtype_of(number, f"the input {name}")))

    def _stated(self, proto: Any) -> tuple[Dim, ...] | None:
        shape = shape_of(proto)
        return shape if shape is None or len(shape) <= 64 else None

    def _stated_by(self, proto: Any) -> tuple[Dim, ...] | None:
        """The shape that a placeholder states. One without the attribute is of any shape."""
        shape = self._stated(proto.attr["shape"].shape) if "shape" in proto.attr else None
        if not shape and "_output_shapes" in proto.attr and len(proto.attr["_output_shapes"].list.shape):
            shape = self._stated(proto.attr["_output_shapes"].list.shape[0])
        return shape

    # ---- values

    def constant(self, node: Node) -> Any:
        """The value of a Const node. Each is read once."""
        key = id(node.scope.graph), node.name
        value = self._constants.get(key)
        if value is None:
            array = array_of(node._get("value", "tensor", None), self.budget, "its tensor")
            value = Text(array) if array.dtype == object else self.builder.weight(node.name, array)
            self._constants[key] = value
        return value

    def variable(self, variable: Variable) -> Expr:
        """The value of a variable, as it is in the file."""
        weight = self._variables.get(variable.name)
        if weight is None:
            array = self.model.variables.array(variable.name, variable.shared)
            name = variable.shared or variable.name
            weight = self._variables[variable.name] = self.builder.weight(name, array)
        return weight

    def value(self, scope: Scope, ref: Ref) -> Any:
        """A tensor that was converted. Raises `Malformed` where its node has no such result, `_Skipped` where it failed."""
        values = scope.values.get(ref[0], MISSING)
        if values is MISSING:
            raise _Skipped
        if ref[1] >= len(values) or values[ref[1]] is None:
            raise Malformed(f"it takes the result {ref[1]} of {ref[0]}, which relaylang does not compute or which does not exist")
        return values[ref[1]]

    @staticmethod
    def weight_name(x: Expr, node: Node) -> str:
        """The name of a weight that a conversion changes: its own where it is a parameter, else the node's."""
        return x.name_hint if isinstance(x, Var) else node.name

    # ---- graphs

    def names_of(self, name: str, count: int) -> list[str]:
        """The names of a function's operands."""
        proto = self.model.functions.get(name)
        names = [a.name for a in proto.signature.input_arg] if proto is not None else []
        return names if len(names) == count else [f"v{i}" for i in range(count)]

    def call(self, node: Node, name: str, values: Sequence[Any], attributes: Mapping[str, Any] | None = None) -> list[Any]:
        """The results of a function for these operands, converted in place."""
        proto = self.model.functions.get(name)
        if proto is None:
            raise Unsupported(f"it calls the function {name[:60]}, which the file does not have")
        if node.scope.depth >= _DEEPEST:
            raise Unsupported(f"functions call functions more than {_DEEPEST} deep")
        signature = proto.signature
        if any(a.number_attr or a.type_list_attr for a in (*signature.input_arg, *signature.output_arg)):
            raise Unsupported(f"the function {name[:60]} takes or gives lists of tensors")
        if len(values) != len(signature.input_arg):
            raise Malformed(f"it gives {len(values)} operands to the function {name[:60]}, which takes {len(signature.input_arg)}")
        graph = self._graphs.get(name)
        if graph is None:
            graph = self._graphs[name] = Graph(proto.node_def, self.model.functions, proto)
        scope = Scope(graph, node.scope.depth + 1, {k: attributes[k] for k in attributes} if attributes is not None else {})
        for arg, value in zip(signature.input_arg, values):
            scope.values[arg.name] = [value]
        self._note_assignments(graph, list(proto.control_ret.values()))
        return self.evaluate(scope, graph.results)

    def evaluate(self, scope: Scope, refs: Sequence[Ref]) -> list[Any]:
        """Tensors of a graph. Raises `_Skipped` where a node of it was not converted."""
        span = self.builder.span
        self._demand_all(scope, refs)
        self.builder.span = span
        return [self.value(scope, ref) for ref in refs]

    def _demand_all(self, scope: Scope, refs: Sequence[Ref]) -> None:
        for name, _ in refs:
            if name not in scope.values:
                self._demand(scope, name)

    def _demand(self, scope: Scope, start: str) -> None:
        """Convert a node behind those that it needs."""
        stack: list[tuple[str, Iterator[str]]] = [(start, self._needs(scope, start))]
        opened = {start}
        while stack:
            name, needs = stack[-1]
            try:
                needed = next((n for n in needs if n not in scope.values), None)
                if needed is not None and needed in opened:
                    notes = ["only loops have cycles, through NextIteration"]
                    raise RelayError(error("R0802", f"the graph has a cycle through {needed}", self._span(scope, name), notes=notes))
            except Exception as wrong:
                self._failed(scope, name, wrong)
                needed = None
            if needed is not None:
                stack.append((needed, self._needs(scope, needed)))
                opened.add(needed)
                continue
            stack.pop()
            opened.discard(name)
            if name not in scope.values:
                self._convert(scope, name)

    def _needs(self, scope: Scope, name: str) -> Iterator[str]:
        """The nodes that a node needs. Those of a branch come behind the condition, which may be known."""
        graph = scope.graph
        if name not in graph.nodes:
            notes = [f"did you mean {near}?"] if (near := did_you_mean(name, graph.nodes)) else []
            raise RelayError(error("R0802", f"the graph has no node {name[:60]}", self.builder.span, notes=notes))
        op = graph.op(name)
        if op == "Enter" and scope.frame is not None and graph.frame_of(name) == scope.frame.name:
            return
        if op == "Exit":
            frame, _ = graph.left_by(name)
            for enter in frame.enters:
                yield graph.operand(enter, 0)[0]
        elif op == "Merge":
            if graph.entry(name) is not None:
                raise Malformed("it is inside of a loop, and what takes it is outside")
            cond, then, other = graph.branches(name)
            yield cond[0]
            known = self.builder.value(self.value(scope, cond)) if scope.values.get(cond[0]) is not MISSING else None
            if known is None or known.all():
                yield then[0]
            if known is None or not known.all():
                yield other[0]
        else:
            for ref in graph.inputs(name):
                yield ref[0]

    def _span(self, scope: Scope, name: str) -> Span | None:
        """The place of a node, which is listed at its first conversion."""
        key = id(scope.graph), name
        span = self._spans.get(key)
        if span is None:
            proto = scope.graph.nodes.get(name)
            layer = Layer("Missing", name, (), (name,))
            if proto is not None:
                layer = Layer(proto.op, proto.name, tuple(proto.input), (proto.name,))
            span = self._spans[key] = self.builder.listing.add(layer)
        return span

    def _failed(self, scope: Scope, name: str, wrong: Exception) -> None:
        """Note why a node was not converted."""
        span, key = self._span(scope, name), (id(scope.graph), name)
        scope.values[name] = MISSING
        if isinstance(wrong, _Skipped) or key in self._reported:
            return
        self._reported.add(key)
        layer = self.builder.listing.layer_at(span) if span is not None else Layer("", name)
        if isinstance(wrong, Unsupported):
            assert span is not None
            self.report.unsupported(layer.operator, layer.label, span, wrong.reason)
        else:
            results = [(scope.values.get(node, MISSING), index) for node, index in self._operands_of(scope, name)]
            operands = [values[index] for values, index in results if values is not MISSING and index < len(values)]
            self.errors += failure(wrong, layer, span, operands)

    def _operands_of(self, scope: Scope, name: str) -> list[Ref]:
        return self._safe_inputs(scope.graph, name) if name in scope.graph.nodes else []

    def _convert(self, scope: Scope, name: str) -> None:
        """Convert one node whose operands are there."""
        self.builder.span = self._span(scope, name)
        proto = scope.graph.nodes[name]
        node = Node(self, scope, proto)
        try:
            if scope.depth:
                self.budget.take_nodes(1, "writing its functions and loops out")
            converted = self._layer(node, scope.graph.op(name))
            scope.values[name] = [converted] if not isinstance(converted, (list, tuple)) else list(converted)
            self._note_assignments(scope.graph, scope.graph.controls(name))
        except Exception as wrong:
            self._failed(scope, name, wrong)
            if isinstance(wrong, Unsupported) and self.options.partial:
                results = self._external(node)
                if results:
                    scope.values[name] = results

    def _layer(self, node: Node, op: str) -> Any:
        scope, graph, name = node.scope, node.scope.graph, node.name
        if op == "Enter":
            return self._enter(scope, name)
        if op == "Exit":
            return self._exit(node)
        if op == "Merge":
            return self._merge(node)
        rule = self.rules.find(op)
        if rule is None and op not in self.model.functions:
            raise Unsupported(REFUSED.get(op, ""))
        inputs = [self.value(scope, ref) for ref in graph.inputs(name)]
        if rule is None:
            return self.call(node, op, inputs, node.proto.attr)
        if op not in mixed():
            inputs = [need_tensor(x) for x in inputs]
        why = self.rules.wrong_operands(rule, inputs)
        if why:
            raise Malformed(why)
        return rule.convert(node, *inputs)

    # ---- control flow v1

    def _enter(self, scope: Scope, name: str) -> list[Any]:
        """A value from outside of the loop."""
        if scope.frame is None or scope.parent is None or scope.graph.frame_of(name) != scope.frame.name:
            raise Malformed("it enters a loop, and what takes it is outside")
        return [self.value(scope.parent, ref) for ref in scope.graph.inputs(name)[:1]]

    def _exit(self, node: Node) -> Any:
        scope = node.scope
        frame, index = scope.graph.left_by(node.name)
        if frame.name not in scope.finished:
            scope.finished[frame.name] = self._loop(scope, frame)
        return scope.finished[frame.name][index]

    def _loop(self, scope: Scope, frame: Frame) -> list[Any]:
        """The variables behind a loop."""
        graph = scope.graph
        if scope.depth >= _DEEPEST:
            raise Unsupported(f"loops are nested more than {_DEEPEST} deep")
        entries = [graph.entry(merge) or "" for merge in frame.merges]
        first = [self.value(scope, graph.operand(e, 0)) for e in entries]
        turns = [graph.next_of(merge) for merge in frame.merges]

        def inner(values: Sequence[Any]) -> Scope:
            body = Scope(graph, scope.depth + 1, scope.given, scope, frame)
            for merge, value in zip(frame.merges, values):
                body.values[merge] = [value, None]
            for switch, merge in frame.switches.items():
                body.values[switch] = body.values[merge][:1] * 2
            return body

        def test(values: list[Any]) -> Any:
            return self.evaluate(inner(values), [graph.operand(frame.condition, 0)])[0]

        def turn(values: list[Any]) -> list[Any]:
            return self.evaluate(inner(values), [graph.operand(n, 0) for n in turns])

        return loop(self.builder, test, turn, first, frame.merges)

    def _merge(self, node: Node) -> Any:
        """One of two branches."""
        scope = node.scope
        cond, then, other = scope.graph.branches(node.name)
        test = need_tensor(self.value(scope, cond))
        known = self.builder.value(test)
        index = scope.graph.inputs(node.name).index
        if known is not None:
            chosen = then if known.all() else other
            return [self.value(scope, chosen), self.builder.const(index(chosen), "int32")]
        places = [self.builder.const(index(ref), "int32") for ref in (then, other)]
        merged = choice(self.builder, self.builder.scalar(test), [self.value(scope, then)], [self.value(scope, other)])
        return [merged[0], self.builder.if_(self.builder.scalar(test), *places)]

    def _note_assignments(self, graph: Graph, names: Sequence[str]) -> None:
        for name in names:
            if graph.op(name).startswith(_ASSIGNING):
                self._assigned.setdefault((id(graph), name), self.builder.span)

    def _external(self, node: Node) -> list[Expr]:
        """A function without a body, where the node states the types of its results."""
        shapes = node.proto.attr["_output_shapes"].list.shape if "_output_shapes" in node.proto.attr else ()
        number = next((node.proto.attr[k].type for k in ("T", "dtype", "out_type", "output_type") if k in node.proto.attr), 0)
        stated = [shape_of(s) for s in shapes]
        if not stated or None in stated or number % 100 not in DTYPES:
            return []
        types = [TensorType(s, DTYPES[number % 100]) for s in stated if s is not None]
        values = [node.scope.values.get(name, MISSING) for name, _ in self._operands_of(node.scope, node.name)]
        operands = [v[0] for v in values if v is not MISSING and v and isinstance(v[0], Expr)]
        return external(self.builder, node.op, operands, types)


class _Skipped(Exception):
    """The node uses a tensor whose own node was not converted."""


def import_tensorflow(
    model: Any, options: Options = DEFAULTS, file: str = "", outputs: Sequence[str] | None = None, last: bool = False
) -> Imported:
    """A program from a GraphDef, the bytes of a graph or of a SavedModel, or the path of a file or of a SavedModel's folder.

    `outputs` are names of nodes or tensors. Without them a SavedModel gives those of its signature. A graph gives the nodes
    that no other takes, or the last one where `last`. Raises `RelayError`: the file is damaged or one is missing (R0802),
    protobuf is missing (R0803), options do not fit (R0804), nodes are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        path = main_file(os.fspath(model))
        file = file or path
        options = options if options.folder else replace(options, folder=os.path.dirname(os.path.abspath(path)))
        model = read_bytes(path)
    elif hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise RelayError(no_model(model, "TensorFlow model", "the importer takes a GraphDef, its bytes, or a path"))
    with gc_paused(), np.errstate(all="ignore"):
        data, name = bytes(model), file or "the model"
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        return Importer(read_model(data, name, options.folder, budget), name, options, budget, outputs, last).run()


__all__ = ["Importer", "Items", "Scope", "import_tensorflow"]
