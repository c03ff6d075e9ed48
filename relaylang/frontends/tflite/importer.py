"""TFLite to Relay: the walk over a file's graphs. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error, first_ones
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Options, Report, Unsupported
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.options import DEFAULTS
from relaylang.frontends.common.partial import external
from relaylang.frontends.common.report import MALFORMED
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.reader import Model, Operator, Subgraph, Tensor, read_model
from relaylang.frontends.tflite.table import table
from relaylang.frontends.tflite.tensors import OTHER
from relaylang.ir import ANY, Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.text import read_bytes

#: Graphs call graphs this deep.
_DEEPEST = 64
#: The value of a tensor whose layer was not converted.
MISSING = object()


class Graph:
    """A subgraph that is being converted: its tensors, and their values by index."""

    def __init__(self, importer: Importer, subgraph: Subgraph, depth: int) -> None:
        self.importer = importer
        self.subgraph = subgraph
        self.tensors = subgraph.tensors
        self.depth = depth
        self.values: dict[int, Any] = {}

    def value(self, tensor: Tensor) -> Any:
        """The value of a tensor. Raises `RelayError` where no layer before made it."""
        found = self.values.get(tensor.index)
        if found is None:
            if tensor.data is None:
                raise self.importer.undefined(tensor)
            found = self.values[tensor.index] = self.importer.weight(tensor)
        return found


class Importer:
    """Converts one model. `file` is its name in diagnostics."""

    def __init__(self, model: Model, file: str, options: Options) -> None:
        self.model = model
        self.file = file
        self.options = options
        self.rules = table()
        self.report = Report(file, self.rules.names())
        self.builder = Builder(Listing(file), self.report, options)
        self.errors: list[Diagnostic] = []

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        subgraph = self.model.subgraphs[0]
        graph = Graph(self, subgraph, 0)
        inputs = self._inputs(graph)
        self._convert(graph)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial:
            self.report.raise_if_any()
        outputs = [graph.value(graph.tensors[i]) for i in subgraph.outputs]
        if not outputs or any(o is MISSING for o in outputs):
            self.report.raise_if_any()
            raise damaged(self.file, "an output of the model is not defined")
        return finish(self.builder, inputs, outputs)

    def _inputs(self, graph: Graph) -> list[Var]:
        tensors = [graph.tensors[i] for i in graph.subgraph.inputs]
        names = {t.name for t in tensors}
        for name in [*self.options.shapes, *self.options.dtypes]:
            if name not in names:
                near = did_you_mean(name, names)
                notes = [f"did you mean {near}?" if near else f"its inputs: {', '.join(sorted(names))}"]
                raise RelayError(error("R0804", f"{self.file} has no input {name}", notes=notes))
        made = []
        for tensor in tensors:
            shape = self.options.shapes.get(tensor.name)
            if tensor.dtype in OTHER.values():
                raise RelayError(error("R0801", f"{self.file}: the input {tensor.name} is a {tensor.dtype}, not a tensor of numbers"))
            if shape is not None and len(shape) != len(tensor.shape) and tensor.shape:
                said = f"{self.file}: the input {tensor.name} has {len(tensor.shape)} axes, not {len(shape)}"
                raise RelayError(error("R0804", said))
            self.builder.span = self.builder.listing.add(Layer("Input", "", (), (tensor.name,)))
            ty = TensorType(shape or [ANY if d < 0 else d for d in tensor.shape], self.options.dtypes.get(tensor.name, tensor.dtype))
            variable = self.builder.variable(self.builder.unique(tensor.name), ty)
            graph.values[tensor.index] = variable
            made.append(variable)
        return made

    def weight(self, tensor: Tensor) -> Expr:
        """A constant tensor; scales and shapes are found by its value."""
        assert tensor.data is not None
        return self.builder.weight(tensor.name, np.ascontiguousarray(tensor.data).reshape(tensor.data.shape))

    def undefined(self, tensor: Tensor) -> RelayError:
        """The error for a tensor that no layer before made."""
        notes = ["a file lists its layers in the order of their computation, without cycles"]
        return RelayError(
            error("R0802", f"no layer before this one makes the tensor {tensor.name}", self.builder.span, notes=notes)
        )

    def convert_subgraph(self, node: Node, index: int, inputs: Sequence[Any]) -> list[Any]:
        """The results of another subgraph for these inputs, converted in place."""
        if not 0 <= index < len(self.model.subgraphs):
            raise Unsupported(f"it calls the graph {index} of {len(self.model.subgraphs)}")
        subgraph = self.model.subgraphs[index]
        graph = Graph(self, subgraph, node.graph.depth + 1)
        if graph.depth > _DEEPEST:
            raise Unsupported(f"graphs call graphs more than {_DEEPEST} deep")
        span = self.builder.span
        graph.values.update(zip(subgraph.inputs, inputs, strict=True))
        self._convert(graph)
        self.builder.span = span
        results = [graph.value(graph.tensors[i]) for i in subgraph.outputs]
        if any(r is MISSING for r in results):
            raise _Skipped
        return results

    def _convert(self, graph: Graph) -> None:
        """Convert a graph's layers in their order."""
        b, names = self.builder, [t.name for t in graph.tensors]
        for operator in graph.subgraph.operators:
            inputs = tuple([names[i] if i >= 0 else "" for i in operator.inputs])
            layer = Layer(operator.name, "", inputs, tuple([names[i] for i in operator.outputs if i >= 0]))
            b.span = span = b.listing.add(layer)
            results: Sequence[Any] = ()
            try:
                results = self._layer(graph, operator)
            except _Skipped:
                pass
            except Unsupported as why:
                self.report.unsupported(operator.name, layer.label, span, why.reason)
                results = self._external(graph, operator) if self.options.partial else ()
            except RelayError as wrong:
                self.errors += wrong.diagnostics
            except MALFORMED:
                if os.environ.get("RELAY_TRACEBACK"):
                    raise
                said = f"{layer.operator} {layer.label}: its operands or options do not fit the operator"
                self.errors.append(error("R0805", said, span))
            for i, index in enumerate(operator.outputs):
                graph.values[index] = results[i] if i < len(results) and results[i] is not None else MISSING

    def _layer(self, graph: Graph, operator: Operator) -> Sequence[Any]:
        rule = self.rules.find(operator.name)
        if rule is None:
            raise Unsupported
        if any(graph.values.get(i) is MISSING for i in operator.inputs):
            raise _Skipped
        made = rule.convert(Node(self, graph, operator))
        return [made] if isinstance(made, Expr) else list(made)

    def _external(self, graph: Graph, operator: Operator) -> Sequence[Any]:
        outputs = [graph.tensors[i] for i in operator.outputs]
        if any(t.dtype in OTHER.values() for t in outputs):
            return ()
        types = [TensorType([ANY if d < 0 else d for d in t.shape], t.dtype) for t in outputs]
        inputs = [v for v in (graph.value(graph.tensors[i]) for i in operator.inputs if i >= 0) if isinstance(v, Expr)]
        return external(self.builder, operator.name, inputs, types)


class _Skipped(Exception):
    """The layer uses a tensor whose own layer was not converted."""


def import_tflite(model: Any, options: Options = DEFAULTS, file: str = "") -> Imported:
    """A program from the bytes of a TFLite file, its path, or a `Model` of the package tflite.

    Raises `RelayError`: the file is damaged (R0802), the package tflite is missing (R0803), options do not fit (R0804),
    layers are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        file = file or os.fspath(model)
        model = read_bytes(os.fspath(model))
    elif hasattr(model, "_tab"):
        model = model._tab.Bytes
    with gc_paused():
        imported = Importer(read_model(bytes(model), file or "the model"), file or "the model", options).run()
    return imported


__all__ = ["Importer", "import_tflite"]
