"""PyTorch to Relay: the walk over a program's graph. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, Span, error, first_ones
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
    name_extents,
    need_package,
    no_model,
    value_for,
)
from relaylang.frontends.common.complexes import PARTS, Complex, paired, unpaired
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.frontends.torch import custom
from relaylang.frontends.torch.families.complex_numbers import chosen
from relaylang.frontends.torch.memory import MISSING, Scope, Skipped, View, names_in, operator, values_only, written
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import Graph, Meta, Program, Ref, read_program
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.frontends.torch.table import REFUSED, table
from relaylang.frontends.torch.torchscript import import_torchscript, is_torchscript
from relaylang.frontends.torch.torchscript.schemas import wrong_arguments
from relaylang.ir import ANY, Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes

#: A symbol of an extent: one that an input's shape gives, or a number that the program computes.
_SYMBOL = re.compile(r"\b[su]\d+\b")


class Importer:
    """Converts one program. `file` is its name in diagnostics; `converters` go before the importer's own."""

    def __init__(
        self, program: Program, file: str, options: Options, budget: Budget, converters: Mapping[str, custom.Custom] | None = None
    ) -> None:
        self.budget = budget
        self.budget.grant(layers=len(program.graph.nodes))
        self.program = program
        self.file = file
        self.options = options
        self.converters = converters or {}
        self.rules = table()
        self.report = Report(file, self.rules.names())
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []

    def run(self) -> Imported:
        """The Relay program. Raises `RelayError` with everything that is wrong."""
        program = self.program
        scope = Scope(self, program.graph)
        inputs = self._inputs(scope)
        for name, (path, array) in program.weights.items():
            scope.values[name] = self._weight(path, array)
        scope.values.update(program.constants)
        self._convert(scope)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        self.report.raise_if_any() if not self.options.partial else None
        try:
            outputs = [scope.resolve(o) for o in program.outputs] + [scope.value(v) for _, v in program.mutations]
            outputs += [scope.value(name) for name in program.graph.inputs if name in scope.memory.changed]
        except Skipped:
            self.report.raise_if_any()
            raise damaged(self.file, "a result of the program is not defined") from None
        except (Unsupported, Malformed):
            raise damaged(self.file, "a result shows memory that another call cannot have written") from None
        results = [self._result(o) for o in outputs if o is not None]
        if not results:
            raise damaged(self.file, "the program has no results")
        return finish(self.builder, inputs, results)

    def _weight(self, path: str, array: np.ndarray) -> Any:
        """A weight; a complex one is a parameter with its parts on a last axis."""
        if not np.iscomplexobj(array):
            return self.builder.weight(path, array)
        return unpaired(self.builder, self.builder.weight(path, np.stack([array.real, array.imag], -1)))

    def _result(self, value: Any) -> Expr:
        """A result of the program; complex numbers have their parts on a last axis."""
        if isinstance(value, Complex):
            return paired(self.builder, value)
        return value if isinstance(value, Expr) else self.builder.const(value)

    def _inputs(self, scope: Scope) -> list[Var]:
        names = self.program.inputs
        texts = {n: scope.graph.tensors[n].extents for n in names if n in scope.graph.tensors}
        self.builder.extents.declare(symbol for each in texts.values() for text in each for symbol in _SYMBOL.findall(text))
        name_extents(self.builder, texts)
        check_names(self.file, self.options, names, (), self.builder.extents)
        variables = []
        for name in names:
            meta = scope.graph.tensors.get(name, Meta((), "int64"))
            shape = self.options.shapes.get(name)
            if shape is not None:
                check_axes(self.file, name, meta.shape, shape)
            extents = (
                list(shape)
                if shape is not None
                else [
                    self.builder.extents.dim(text) if d is None else d
                    for d, text in zip(meta.shape, [*meta.extents, *[""] * len(meta.shape)])
                ]
            )
            dtype = self.options.dtypes.get(name, meta.dtype)
            parts = PARTS.get(dtype)
            extents, dtype = (extents, dtype) if parts is None else ([*extents, 2], parts)
            if name in self.options.values:
                scope.values[name] = self.builder.const(value_for(self.file, name, self.options.values[name], extents, dtype))
                continue
            self.builder.span = self.builder.listing.add(Layer("Input", "", (), (name,)))
            variable = self.builder.variable(self.builder.unique(name), TensorType(extents, dtype))
            scope.values[name] = variable if parts is None else unpaired(self.builder, variable)
            variables.append(variable)
        return variables

    def convert_graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        """The results of a graph inside a call, converted in place."""
        inner = Scope(self, graph)
        inner.values.update(zip(graph.inputs, args, strict=True))
        span = self.builder.span
        self.budget.take_nodes(1 + len(graph.nodes), "writing the graphs inside its calls out")
        self._convert(inner)
        self.builder.span = span
        if any(name in inner.memory.changed for name in graph.inputs):
            raise Unsupported("a graph inside it writes into its operands")
        return [inner.resolve(o) for o in graph.outputs]

    def _convert(self, scope: Scope) -> None:
        """Convert a graph's calls in their order."""
        b = self.builder
        for call in scope.graph.nodes:
            layer = Layer(call.target, call.layer, tuple(names_in(call.args.values())), tuple(names_in(call.outputs)))
            b.span = span = b.listing.add(layer)
            converted: Any = MISSING
            try:
                converted = self._call(scope, call)
            except Skipped:
                pass
            except Unsupported as why:
                self.report.unsupported(call.target, layer.label, span, why.reason)
                if self.options.partial and not call.target.rsplit(".", 1)[0].endswith("_"):
                    converted = self._external(scope, call)
            except Exception as wrong:
                operands = [scope.values.get(name) for name in layer.inputs]
                self.errors += failure(wrong, layer, span, operands)
            self._bind(scope, call, converted, span)

    def _bind(self, scope: Scope, call: Call, converted: Any, span: Span) -> None:
        """Give the results their names. One result that is a list of tensors has a name for each."""
        results = converted if isinstance(converted, (list, tuple)) else [converted]
        names: list[Any] = []
        for output in call.outputs:
            names += output if isinstance(output, list) else [output]
        for i, name in enumerate(names):
            if isinstance(name, Ref):
                scope.values[name.name] = MISSING if converted is MISSING or i >= len(results) else results[i]
                if converted is not MISSING and i >= len(results) and name.name in scope.used:
                    said = f"its result {i} is not computed"
                    self.report.unsupported(call.target, call.layer or name.name, span, said)
        if converted is not MISSING:
            scope.memory.follow(call, names)

    def result_of(self, scope: Scope, call: Call) -> Any:
        """A call's result, without a name. Raises `Unsupported` where no conversion fits."""
        own = custom.find(self.converters, call.target)
        if own is not None:
            return custom.convert(self.builder, own, [scope.resolve(a) for a in call.args.values()])
        rule = self.rules.find(operator(call.target))
        if rule is None:
            raise Unsupported(REFUSED.get(operator(call.target), ""))
        self._check(scope, call)
        return chosen(rule.convert, Node(scope, call), operator(call.target).removeprefix("aten."))

    def _check(self, scope: Scope, call: Call) -> None:
        """Raise `Malformed` for arguments that PyTorch's schema of the operator does not have."""
        space, _, rest = call.target.partition(".")
        name, _, overload = rest.partition(".")
        why = wrong_arguments(name, overload, {n: scope.resolve(a) for n, a in call.args.items()}) if space == "aten" else ""
        if why:
            raise Malformed(why)

    def _call(self, scope: Scope, call: Call) -> Any:
        target = written(call)
        if not target:
            return self.result_of(scope, call)
        return self._write(scope, call, call.args[target])

    def _write(self, scope: Scope, call: Call, target: Any) -> Any:
        """A call that writes into an argument; its result is a view of that argument."""
        b = self.builder
        if not isinstance(target, Ref):
            raise Unsupported
        have = scope.value(target.name)
        own, rule = custom.find(self.converters, call.target), self.rules.find(values_only(call.target))
        if own is not None:
            outcome = custom.convert(b, own, [scope.resolve(a) for a in call.args.values()])
        elif rule is not None:
            self._check(scope, call)
            outcome = chosen(rule.convert, Node(scope, call), values_only(call.target).removeprefix("aten."))
        else:
            raise Unsupported
        outcome = outcome[0] if isinstance(outcome, (list, tuple)) else outcome
        outcome = self._as_written(outcome, have)
        scope.memory.write(target.name, outcome)
        for name in call.outputs:
            if isinstance(name, Ref):
                scope.memory.view(name.name, View(target.name, Call("aten.alias", {"self": target}, (name,)), 0))
        return outcome

    def _as_written(self, value: Any, have: Any) -> Any:
        """A value with the element type and the shape of the tensor that takes it."""
        b = self.builder
        if isinstance(value, Complex) or isinstance(have, Complex):
            if not isinstance(value, Complex) or not isinstance(have, Complex):
                raise Unsupported("it writes complex numbers into real ones, or real into complex ones")
            return Complex(self._as_written(value.real, have.real), self._as_written(value.imaginary, have.imaginary))
        value = b.cast(value, b.dtype(have))
        return broadcast_to(b, value, b.shape_of(have)) if b.rank(value) != b.rank(have) else value

    def _external(self, scope: Scope, call: Call) -> Any:
        node = Node(scope, call)
        metas = [node.meta(i) for i in range(len(node.flat_outputs()))]
        if any(m is None for m in metas):
            return MISSING
        types = [TensorType([ANY if d is None else d for d in m.shape], m.dtype) for m in metas]
        try:
            values = [scope.resolve(a) for a in call.args.values()]
        except Skipped:
            return MISSING
        return external(self.builder, call.target.replace(".", "_"), [v for v in values if isinstance(v, Expr)], types) or MISSING


def import_pytorch(
    model: Any,
    options: Options = DEFAULTS,
    file: str = "",
    names: Sequence[str] = (),
    converters: Mapping[str, custom.Custom] | None = None,
) -> Imported:
    """A program from the bytes of a `.pt2` file or TorchScript archive, its path, or torch's object of either kind.

    `names` replace those of a TorchScript program's inputs, by position.
    `converters` has conversions of operators by name, such as "mylib::blur": `convert(inputs, input_types)`.

    Raises `RelayError`: the file is damaged (R0802), options do not fit (R0804), calls are wrong (R0805) or cannot be
    converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        file = file or os.fspath(model)
        model = read_bytes(os.fspath(model))
    data, name = contents(model), file or "the program"
    with gc_paused(), np.errstate(all="ignore"):
        if is_torchscript(data):
            return import_torchscript(data, name, options, names, converters)
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        return Importer(read_program(data, name, budget), name, options, budget, converters).run()


def contents(model: Any) -> bytes:
    """The bytes of a file: given as they are, or written by torch for an ExportedProgram or a ScriptModule."""
    if not isinstance(model, (bytes, bytearray, memoryview)):
        torch = need_package("torch", "torch", "an object of torch")
        script = isinstance(model, torch.jit.ScriptModule)
        if not script and not isinstance(model, torch.export.ExportedProgram):
            raise RelayError(_not_a_program(torch, model))
        buffer = io.BytesIO()
        (torch.jit.save if script else torch.export.save)(model, buffer)
        model = buffer.getvalue()
    return bytes(model)


def _not_a_program(torch: Any, model: Any) -> Diagnostic:
    """The error for an object that holds no graph, with the calls that make one of a module."""
    notes = ["torch.export.export(module, inputs) makes a program", "torch.jit.trace(module, inputs) makes a script module"]
    module = isinstance(model, torch.nn.Module)
    wanted = "the importer takes exported programs, script modules, and files of them"
    if not module:
        return no_model(model, "model of PyTorch", wanted)
    title = f"{type(model).__name__} is a plain module of torch, whose code is Python; {wanted}"
    return error("R0804", title, notes=notes)


__all__ = ["Importer", "Scope", "contents", "import_pytorch"]
