"""MXNet to Relay: the walk over a symbol's graphs. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, Span, error, first_ones
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, value_for
from relaylang.frontends.common.report import failure
from relaylang.frontends.mxnet.node import Graph, Node, dtype_of, listed
from relaylang.frontends.mxnet.reader import VERSIONS, Symbol, read_symbol
from relaylang.frontends.mxnet.reader import Layer as Entry
from relaylang.frontends.mxnet.sources import companion, symbol_text
from relaylang.frontends.mxnet.table import REFUSED, own_name, table
from relaylang.frontends.mxnet.weights import expected, is_weight
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget

#: Graphs inside layers go this deep.
_DEEPEST = 64
#: So many missing weights are named.
_NAMED = 5
#: The value of a result whose layer was not converted.
MISSING = object()


class Pending:
    """A variable that no layer has used yet: its name, the known part of its shape, and its element type."""

    def __init__(self, name: str, shape: tuple[Any, ...] | None, dtype: str, stated: bool) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.stated = stated

    @property
    def complete(self) -> bool:
        """Whether each extent is known, or the caller leaves it open."""
        return self.shape is not None and None not in self.shape


class Importer:
    """Converts one symbol. `file` is its name in diagnostics, `params` its weights by name.

    `dtype` is the element type of inputs for which neither the caller nor the file has one. With `weighted`, every
    weight must be among `params`.
    """

    def __init__(
        self,
        symbol: Symbol,
        file: str,
        params: Mapping[str, np.ndarray],
        options: Options,
        budget: Budget,
        dtype: str = "float32",
        weighted: bool = False,
    ) -> None:
        self.budget = budget
        self.budget.grant(layers=symbol.size())
        self.symbol = symbol
        self.file = file
        self.values = params
        self.options = options
        self.dtype = dtype
        self.weighted = weighted
        self.rules = table()
        self.report = Report(file, self.rules.names(), warnings=VERSIONS.warnings(symbol.version, file))
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        self.inputs: dict[int, Var] = {}
        self.absent: list[str] = []
        self._spans: dict[int, Span] = {}
        self._reported: set[int] = set()

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        graph = Graph(self.symbol, 0)
        nodes = self.symbol.nodes
        names = [nodes[i].name for i in self.symbol.variables]
        check_names(self.file, self.options, names, self.values)
        for i in self.symbol.variables:
            graph.values[i] = [self._variable(nodes[i])]
        self._convert(graph)
        outputs = self._results(graph)
        if self.absent:
            self.errors.insert(0, self._without_values())
        if self.errors:
            raise RelayError(first_ones(self.errors))
        self.report.raise_if_any()
        order = [self.inputs[i] for i in self.symbol.variables if i in self.inputs]
        return finish(self.builder, order, [self._plain(o) for o in outputs])

    def _plain(self, value: Any) -> Expr:
        if not isinstance(value, Expr):
            raise damaged(self.file, "a result of the symbol is not a tensor")
        return value

    def _without_values(self) -> Diagnostic:
        names = ", ".join(self.absent[:_NAMED]) + (", ..." if len(self.absent) > _NAMED else "")
        notes = ["the parameter file of another symbol has other names", "--shape makes an input of a weight"]
        count = len(self.absent)
        said = f"{count} weight{'s' * (count != 1)} of {self.file} {'are' if count != 1 else 'is'} not in its parameter file: {names}"
        return error("R0804", said, notes=notes)

    # ---- variables

    def _variable(self, node: Entry) -> Any:
        """The value of a variable: a constant, a weight, or a `Pending` one."""
        name, options = node.name, self.options
        shape, dtype = self._stated_shape(node), options.dtypes.get(name) or self._stated_dtype(node)
        if name in options.values:
            return self.builder.const(value_for(self.file, name, options.values[name], None, dtype or self.dtype))
        if name in self.values and name not in options.shapes:
            return self.builder.weight(name, self.values[name])
        if name in options.shapes:
            if shape is not None:
                check_axes(self.file, name, shape, options.shapes[name])
            return Pending(name, tuple(options.shapes[name]), dtype or self.dtype, True)
        return Pending(name, shape, dtype or self.dtype, False)

    def _stated_shape(self, node: Entry) -> tuple[int | None, ...] | None:
        """The shape that the file states, None for extents that it leaves open."""
        text = node.attributes.get("__shape__")
        if text is None or text in ("None", "()"):
            return None
        parts = listed(text)
        if len(parts) > 32 or not all(p.lstrip("-").isdecimal() and len(p) < 18 for p in parts):
            return None
        least = 0 if self.symbol.numpy else 1
        return tuple([int(p) if int(p) >= least else None for p in parts])

    def _stated_dtype(self, node: Entry) -> str | None:
        text = node.attributes.get("__dtype__", "-1")
        return None if text in ("-1", "None") else dtype_of(text, f"the element type of {node.name}")

    def known(self, graph: Graph, source: int, index: int, node: Node, operator: str, place: int) -> Any:
        """An operand's value; the variable of one that nothing has used yet."""
        values = graph.values[source]
        if index >= len(values):
            said = f"it uses the result {index} of {graph.symbol.nodes[source].name[:60]}, which has {len(values)} here"
            raise Unsupported(said)
        value = values[index]
        if not isinstance(value, Pending):
            return value
        weight = is_weight(operator, place)
        if not value.complete and place > 0 and node.inputs and isinstance(node.inputs[0], Expr):
            shape = expected(node, operator, place, tuple(self.builder.shape(node.inputs[0])))
            if shape is not None and (value.shape is None or len(value.shape) == len(shape)):
                own = value.shape or [None] * len(shape)
                value.shape = tuple([d if o is None else o for o, d in zip(own, shape)])
        if self.weighted and weight and not value.stated:
            self.absent.append(value.name)
            graph.values[source] = [MISSING]
            return MISSING
        if not value.complete:
            graph.values[source] = [MISSING]
            notes = [f"give it, such as --shape {value.name}=1x3x224x224"]
            raise RelayError(error("R0804", f"{self.file}: the shape of the input {value.name} is not known", notes=notes))
        variable = self._input(value)
        self.inputs[source] = variable
        graph.values[source] = [variable]
        return variable

    def _input(self, value: Pending) -> Var:
        span = self.builder.span
        self.builder.span = self.builder.listing.add(Layer("Input", "", (), (value.name,)))
        variable = self.builder.variable(self.builder.unique(value.name), TensorType(value.shape or (), value.dtype))
        self.builder.span = span
        return variable

    # ---- graphs

    def convert_body(self, node: Node, symbol: Symbol, inputs: Sequence[Any]) -> list[Any]:
        """The results of a graph inside a layer for these inputs, converted in place."""
        graph = Graph(symbol, node.graph.depth + 1)
        if graph.depth > _DEEPEST:
            raise Unsupported(f"graphs are nested more than {_DEEPEST} deep")
        if len(inputs) != len(symbol.variables):
            raise Malformed(f"it gives {len(inputs)} operands to a graph of {len(symbol.variables)}")
        self.budget.take_nodes(1 + len(symbol.nodes), "writing the graphs inside its layers out")
        span = self.builder.span
        for i, value in zip(symbol.variables, inputs):
            graph.values[i] = [value]
        self._convert(graph)
        self.builder.span = span
        results = self._results(graph)
        if any(r is MISSING for r in results):
            raise _Skipped
        return results

    def _results(self, graph: Graph) -> list[Any]:
        results = []
        for source, index in graph.symbol.heads:
            values = graph.values[source]
            value = values[index] if index < len(values) else MISSING
            if isinstance(value, Pending):
                value = self.known(graph, source, index, Node(self, graph, graph.symbol.nodes[source]), "", 0)
            if value is MISSING and not self.errors and not self.report.entries and not self.absent:
                name = graph.symbol.nodes[source].name[:60]
                raise damaged(self.file, f"the result {index} of {name}, which the symbol gives, is not computed")
            results.append(value)
        return results

    def _convert(self, graph: Graph) -> None:
        """Convert a graph's layers in their order."""
        b, nodes = self.builder, graph.symbol.nodes
        for number, entry in enumerate(nodes):
            if entry.op == "null":
                continue
            inputs = tuple([nodes[source].name for source, _ in entry.inputs])
            layer = Layer(entry.op, entry.name, inputs, (entry.name,))
            if id(entry) not in self._spans:  # a body of a loop is converted several times
                self._spans[id(entry)] = b.listing.add(layer)
            b.span = span = self._spans[id(entry)]
            node = Node(self, graph, entry)
            results: Sequence[Any] = ()
            try:
                results = self._layer(graph, entry, node)
            except _Skipped:
                results = [MISSING]
            except Unsupported as why:
                results = [MISSING]
                if id(entry) not in self._reported:
                    self._reported.add(id(entry))
                    self.report.unsupported(entry.op, layer.label, span, why.reason)
            except Exception as wrong:
                results = [MISSING]
                self.errors += failure(wrong, layer, span, node.inputs)
            graph.values[number] = list(results)

    def _layer(self, graph: Graph, entry: Entry, node: Node) -> Sequence[Any]:
        name = own_name(entry.op)
        rule = self.rules.find(name)
        if rule is None:
            raise Unsupported(REFUSED.get(name, ""))
        least = self._used(name)
        missed = False
        for place, (source, index) in enumerate(entry.inputs):
            if least is not None and place >= least:
                break
            if graph.values[source] and graph.values[source][0] is MISSING:
                missed = True
                node.inputs.append(MISSING)
                continue
            value = self.known(graph, source, index, node, name, place)
            missed = missed or value is MISSING
            node.inputs.append(value)
        if missed:
            raise _Skipped
        why = self.rules.wrong_operands(rule, node.inputs)
        if why:
            raise Malformed(why)
        converted = rule.convert(node, *node.inputs)
        return [converted] if isinstance(converted, Expr) else list(converted)

    @staticmethod
    def _used(name: str) -> int | None:
        """How many operands of an operator a network uses; those of losses after them are labels. None: all."""
        return 1 if name in _LOSSES else None


#: Losses, whose further operands are labels. They need no value in a network that is run.
_LOSSES = frozenset(
    (
        "SoftmaxOutput",
        "LinearRegressionOutput",
        "LogisticRegressionOutput",
        "MAERegressionOutput",
        "SVMOutput",
    )
)


class _Skipped(Exception):
    """The layer uses a result whose own layer was not converted."""


def import_mxnet(model: Any, options: Options = DEFAULTS, file: str = "", params: Any = None, dtype: str = "float32") -> Imported:
    """A program from a symbol: its JSON as bytes or text, its path, or a `Symbol` or `HybridBlock` of MXNet.

    `params` are its weights by name, or the path of their file. Where it is None, the weights of a path are in the file
    beside it, and those of a block in the block. A symbol in memory has none then: its weights become inputs.
    `dtype` is the element type of inputs that state none.

    Raises `RelayError`: a file is damaged (R0802), options or weights do not fit (R0804), layers are wrong (R0805) or
    cannot be converted (R0801).
    """
    source = symbol_text(model, file, tuple(options.shapes) or ("data",))
    name = source.name or "the model"
    with gc_paused(), np.errstate(all="ignore"):
        budget = Budget(name, len(source.text), options.nodes, options.bytes, options.work)
        symbol = read_symbol(source.text, name)
        weights, weighted = companion(source, params, options, symbol, budget)
        return Importer(symbol, name, weights, options, budget, dtype, weighted).run()


__all__ = ["Importer", "import_mxnet"]
