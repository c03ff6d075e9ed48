"""TFLite to Relay: the walk over a file's graphs. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.diagnostics.source import Span
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, no_model, value_for
from relaylang.frontends.common.partial import external
from relaylang.frontends.common.report import failure
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.frontends.tflite.node import Complex, Node
from relaylang.frontends.tflite.reader import Model, Operator, Tensor, read_model
from relaylang.frontends.tflite.states import Variable, assigned
from relaylang.frontends.tflite.table import REFUSED, table
from relaylang.frontends.tflite.tensors import OTHER, PARTS
from relaylang.ir import ANY, Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes

#: Graphs call graphs this deep.
_DEEPEST = 64
#: Operators that move the elements of complex tensors, too.
_MOVING = frozenset(
    (
        "BROADCAST_TO",
        "CONCATENATION",
        "DYNAMIC_UPDATE_SLICE",
        "EXPAND_DIMS",
        "FILL",
        "GATHER",
        "GATHER_ND",
        "MIRROR_PAD",
        "PACK",
        "RESHAPE",
        "REVERSE_V2",
        "SELECT",
        "SELECT_V2",
        "SLICE",
        "SPLIT",
        "SPLIT_V",
        "SQUEEZE",
        "STRIDED_SLICE",
        "TILE",
        "TRANSPOSE",
        "UNPACK",
    )
)
#: Operators that take complex tensors whole.
_COMPLEX = frozenset(
    (
        "ASSIGN_VARIABLE",
        "CALL",
        "CAST",
        "COMPLEX_ABS",
        "IF",
        "IMAG",
        "MUL",
        "REAL",
        "STABLEHLO_COMPOSITE",
        "STABLEHLO_WHILE",
        "WHILE",
    )
)
#: Operators that use the extents of a tensor alone.
_EXTENTS = frozenset(("RANK", "SHAPE"))
#: The function beside `@main` that gives the first values of variables.
INITIAL = "initial_state"
#: The value of a tensor whose layer was not converted.
MISSING = object()


class Graph:
    """A subgraph that is being converted: its tensors, and their values by index."""

    def __init__(self, importer: Importer, index: int, depth: int) -> None:
        self.importer = importer
        self.index = index
        self.subgraph = subgraph = importer.model.subgraphs[index]
        self.tensors = subgraph.tensors
        self.depth = depth
        self.values: dict[int, Any] = {}

    def value(self, tensor: Tensor) -> Any:
        """The value of a tensor. Raises `RelayError` where no layer before made it."""
        value = self.values.get(tensor.index)
        if value is None:
            if tensor.data is None and tensor.is_variable:
                return self.importer.read(self.variable(tensor))
            if tensor.data is None and 0 in tensor.shape and min(tensor.shape) == 0 and tensor.dtype not in OTHER.values():
                # The buffer of a constant without elements is empty, as those of computed tensors are.
                return self.importer.builder.const(self.importer.builder.arrays.zeros(tensor.shape, np.dtype(tensor.dtype)))
            if tensor.data is None:
                raise self.importer.undefined(tensor)
            value = self.values[tensor.index] = self.importer.constant(tensor)
        return value

    def variable(self, tensor: Tensor) -> Variable:
        """The variable of a variable tensor."""
        return Variable(tensor.name, place=(self.index, tensor.index))


class Importer:
    """Converts one model. `file` is its name in diagnostics."""

    def __init__(self, model: Model, file: str, options: Options, budget: Budget | None = None) -> None:
        self.budget = budget or Budget(file, 0, options.nodes, options.bytes, options.work)
        self.budget.grant(layers=sum(len(g.operators) for g in model.subgraphs))
        self.model = model
        self.file = file
        self.options = options
        self.rules = table()
        self.report = Report(file, self.rules.names())
        self.builder = Builder(Listing(file), self.report, options, self.budget)
        self.errors: list[Diagnostic] = []
        #: The variables that a call of the network assigns, and the values of all variables at the current layer.
        self.states = assigned(model, 0, ())
        self.values: dict[Variable, Expr] = {}
        #: Parameters for variables from the call before, and the values of the first call.
        self.params: dict[Variable, Var] = {}
        self.first: list[Expr] = []
        #: Tables of functions of stored numbers, by function and integer bits.
        self.tables: dict[tuple[str, int], Expr] = {}
        self._initialised: set[int] = set()
        self._spans: dict[int, Span] = {}
        self._reported: set[int] = set()

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        graph = Graph(self, 0, 0)
        inputs = self._inputs(graph)
        self._convert(graph)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial:
            self.report.raise_if_any()
        outputs = [graph.value(graph.tensors[i]) for i in graph.subgraph.outputs]
        outputs += [self.values[v] for v in self.params]
        if not outputs or any(o is MISSING for o in outputs):
            self.report.raise_if_any()
            raise damaged(self.file, "an output of the model is not defined")
        for tensor in [graph.tensors[i] for i in graph.subgraph.outputs]:
            if isinstance(graph.value(tensor), Complex):
                notes = ["COMPLEX_ABS, REAL and IMAG make real numbers of them"]
                raise RelayError(error("R0801", f"{self.file}: the output {tensor.name} has complex numbers", notes=notes))
        if not all(isinstance(o, Expr) for o in outputs):
            raise damaged(self.file, "an output of the model is not a tensor")
        if self.params:
            self.builder.module[INITIAL] = self.builder.function([], self.builder.tuple(self.first))
            said = f"{self.file} keeps {len(self.params)} variables: they are the last parameters and results of @main"
            self.report.warn(said, None, f"@{INITIAL} gives their first values")
        return finish(self.builder, [*inputs, *self.params.values()], outputs)

    def _inputs(self, graph: Graph) -> list[Var]:
        tensors = [graph.tensors[i] for i in graph.subgraph.inputs]
        check_names(self.file, self.options, [t.name for t in tensors])
        variables = []
        for tensor in tensors:
            shape = self.options.shapes.get(tensor.name)
            if tensor.dtype in OTHER.values():
                raise RelayError(error("R0801", f"{self.file}: the input {tensor.name} is a {tensor.dtype}, not a tensor of numbers"))
            if shape is not None and tensor.shape:
                check_axes(self.file, tensor.name, tensor.shape, shape)
            ty = TensorType(shape or [ANY if d < 0 else d for d in tensor.shape], self.options.dtypes.get(tensor.name, tensor.dtype))
            if tensor.name in self.options.values:
                extents = ty.shape if ty.shape else None
                value = value_for(self.file, tensor.name, self.options.values[tensor.name], extents, ty.dtype)
                graph.values[tensor.index] = self.builder.const(value)
                continue
            self.builder.span = self.builder.listing.add(Layer("Input", "", (), (tensor.name,)))
            variable = self.builder.variable(self.builder.unique(tensor.name), ty)
            graph.values[tensor.index] = variable
            variables.append(variable)
        return variables

    def constant(self, tensor: Tensor) -> Any:
        """A constant tensor; scales and shapes are found by its value."""
        assert tensor.data is not None
        if np.iscomplexobj(tensor.data):
            return Complex(self._weight(tensor.name, tensor.data.real), self._weight(f"{tensor.name}_imaginary", tensor.data.imag))
        return self._weight(tensor.name, tensor.data)

    def _weight(self, name: str, data: np.ndarray) -> Expr:
        return self.builder.weight(name, np.ascontiguousarray(data).reshape(data.shape))

    def undefined(self, tensor: Tensor) -> RelayError:
        """The error for a tensor that no layer before made."""
        notes = ["a file lists its layers in the order of their computation, without cycles"]
        return RelayError(error("R0802", f"no layer before this one makes the tensor {tensor.name}", self.builder.span, notes=notes))

    def convert_subgraph(self, node: Node, index: int, inputs: Sequence[Any]) -> list[Any]:
        """The results of another subgraph for these inputs, converted in place."""
        if not 0 <= index < len(self.model.subgraphs):
            raise Unsupported(f"it calls the graph {index} of {len(self.model.subgraphs)}")
        graph = Graph(self, index, node.graph.depth + 1)
        if graph.depth > _DEEPEST:
            raise Unsupported(f"graphs call graphs more than {_DEEPEST} deep")
        self.budget.take_nodes(1 + len(graph.subgraph.operators), "writing called graphs out")
        if len(inputs) != len(graph.subgraph.inputs):
            raise Unsupported(f"it gives {len(inputs)} operands to a graph of {len(graph.subgraph.inputs)}")
        span = self.builder.span
        graph.values.update(zip(graph.subgraph.inputs, inputs, strict=True))
        self._convert(graph)
        self.builder.span = span
        if any(graph.values.get(i) is MISSING for i in graph.subgraph.outputs):
            raise _Skipped
        return [graph.value(graph.tensors[i]) for i in graph.subgraph.outputs]

    def tensor_name(self, index: int, at: int) -> str:
        """The name of a subgraph's input."""
        subgraph = self.model.subgraphs[index]
        return subgraph.tensors[subgraph.inputs[at]].name

    # ---- variables

    def assigned_by(self, index: int, inputs: Sequence[Any]) -> list[Variable]:
        """The variables that a subgraph assigns for these operands."""
        return list(assigned(self.model, index, inputs))

    def read(self, variable: Variable) -> Expr:
        """A variable's value. One that nothing has assigned yet has the value of the call before."""
        value = self.values.get(variable)
        if value is None:
            tensor = self.states.get(variable)
            if tensor is None:
                raise Unsupported(f"nothing assigns the variable {variable.name}")
            if tensor.dtype in OTHER.values() or any(d < 0 for d in tensor.shape):
                raise Unsupported(f"the variable {variable.name} has no known type")
            q = tensor.quantization
            zero = int(q.zero_points[0]) if q is not None and tensor.dtype == "int8" else 0
            first = self.builder.op("full", self.builder.const(zero, tensor.dtype), shape=tensor.shape, dtype=tensor.dtype)
            value = self._state(variable, first)
        return value

    def assign(self, variables: Sequence[Variable], values: Sequence[Expr]) -> None:
        """Give variables their values."""
        for variable, value in zip(variables, values, strict=True):
            if not isinstance(value, Expr):
                raise Unsupported(f"the variable {variable.name} gets no tensor")
            if variable in self.states:
                self.read(variable)
            self.values[variable] = value

    def run_once(self, node: Node, index: int) -> None:
        """Convert the subgraph that gives variables their first values."""
        if index in self._initialised:
            return
        self._initialised.add(index)
        before, states = self.values, self.states
        self.values, self.states = {}, {}
        try:
            self.convert_subgraph(node, index, ())
            initial = self.values
        finally:
            self.values, self.states = before, states
        for variable, value in initial.items():
            if variable in before:
                raise Unsupported(f"it assigns the variable {variable.name}, which a layer before it uses")
            if variable in states:
                self._state(variable, value)
            else:
                self.values[variable] = value

    def _state(self, variable: Variable, first: Expr) -> Var:
        """The parameter of `@main` for a variable."""
        b = self.builder
        assert first.checked_type is not None
        state = b.variable(b.unique(variable.name or "variable"), first.checked_type)
        self.first.append(first)
        self.params[variable] = self.values[variable] = state
        return state

    # ---- layers

    def _convert(self, graph: Graph) -> None:
        """Convert a graph's layers in their order."""
        b, names = self.builder, [t.name for t in graph.tensors]
        for operator in graph.subgraph.operators:
            inputs = tuple([names[i] if i >= 0 else "" for i in operator.inputs])
            layer = Layer(operator.name, "", inputs, tuple([names[i] for i in operator.outputs if i >= 0]))
            if id(operator) not in self._spans:  # a body of a loop is converted several times
                self._spans[id(operator)] = b.listing.add(layer)
            b.span = span = self._spans[id(operator)]
            results: Sequence[Any] = ()
            try:
                results = self._layer(graph, operator)
            except _Skipped:
                pass
            except Unsupported as why:
                if id(operator) not in self._reported:
                    self._reported.add(id(operator))
                    self.report.unsupported(operator.name, layer.label, span, why.reason)
                results = self._external(graph, operator) if self.options.partial else ()
            except Exception as wrong:
                self.errors += failure(wrong, layer, span, [graph.values.get(i) for i in operator.inputs])
            for i, index in enumerate(operator.outputs):
                graph.values[index] = results[i] if i < len(results) and results[i] is not None else MISSING

    def _layer(self, graph: Graph, operator: Operator) -> Sequence[Any]:
        rule = self.rules.find(operator.name)
        if rule is None:
            raise Unsupported(REFUSED.get(operator.name, ""))
        if any(graph.values.get(i) is MISSING for i in operator.inputs):
            raise _Skipped
        by_parts = operator.name not in _COMPLEX | _EXTENTS and any(self._is_complex(graph, i) for i in operator.inputs)
        if by_parts and operator.name not in _MOVING:
            raise Unsupported("it has no form for complex numbers")
        if by_parts:
            parts = [_listed(rule.convert(Node(self, graph, operator, part))) for part in ("real", "imaginary")]
            return [Complex(x, y) for x, y in zip(*parts)]
        node = Node(self, graph, operator, "real" if operator.name in _EXTENTS else "")
        why = node.wrong_form()
        if why:
            raise Malformed(why)
        return _listed(rule.convert(node))

    @staticmethod
    def _is_complex(graph: Graph, index: int) -> bool:
        return index >= 0 and graph.tensors[index].dtype in PARTS

    def _external(self, graph: Graph, operator: Operator) -> Sequence[Any]:
        outputs = [graph.tensors[i] for i in operator.outputs]
        if any(t.dtype in OTHER.values() for t in outputs):
            return ()
        types = [TensorType([ANY if d < 0 else d for d in t.shape], t.dtype) for t in outputs]
        inputs = [v for v in (graph.value(graph.tensors[i]) for i in operator.inputs if i >= 0) if isinstance(v, Expr)]
        return external(self.builder, operator.name, inputs, types)


def _listed(converted: Any) -> list[Any]:
    return [converted] if isinstance(converted, Expr) else list(converted)


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
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise RelayError(no_model(model, "TFLite model", "the importer takes a tflite.Model, a file's bytes, or its path"))
    with gc_paused(), np.errstate(all="ignore"):
        data, name = bytes(model), file or "the model"
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        return Importer(read_model(data, name, budget), name, options, budget).run()


__all__ = ["Importer", "import_tflite"]
