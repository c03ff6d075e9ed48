"""ONNX to Relay: the walk over a model's graphs. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.diagnostics.source import Span
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported, failure
from relaylang.frontends.common.files import damaged, need_package
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_names, name_extents, no_model
from relaylang.frontends.common.lists import NOTHING, fit, get, is_option
from relaylang.frontends.common.partial import external
from relaylang.frontends.onnx import schema, texts
from relaylang.frontends.onnx.inputs import dense, input_type, input_value, stated_value
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.table import REFUSED, table
from relaylang.frontends.onnx.tensors import TEXTS, array_of, dtype_of, type_of
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes

#: Graphs inside layers, and functions that call functions, go this deep.
_DEEPEST = 64
#: The value of a tensor whose layer was not converted.
MISSING = object()


class Graph:
    """A graph that is being converted: values by name, the graph around it, and the attributes of a function's caller."""

    def __init__(self, outer: Graph | None, given: Mapping[str, Any], depth: int, versions: Mapping[str, int]) -> None:
        self.outer = outer
        self.given = given
        self.depth = depth
        self.versions = versions
        self.values: dict[str, Any] = {}
        self.weights: dict[str, Any] = {}
        self.stated: dict[str, Any] = {}

    def stated_type(self, name: str) -> TensorType | None:
        """The type that the graph states for a tensor."""
        proto = self.stated.get(name)
        return type_of(proto, "", name) if proto is not None else None


class Importer:
    """Converts one model. `file` is its name in diagnostics, `size` its length in bytes, 0 where it is not known."""

    def __init__(self, model: Any, file: str, options: Options, size: int = 0) -> None:
        self.budget = Budget(file, size or _size(model), options.nodes, options.bytes, options.work)
        self.budget.grant(layers=len(model.graph.node) + sum(len(f.node) for f in model.functions))
        self.model = model
        self.file = file
        self.options = options
        self.rules = table()
        self.report = Report(file, self.rules.names(), warnings=schema.FORMS.warnings(model.ir_version, file))
        self.builder = Builder(Listing(file), self.report, options, self.budget)
        self.versions = {("" if o.domain == "ai.onnx" else o.domain): int(o.version) for o in model.opset_import} or {"": 1}
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.errors: list[Diagnostic] = []

    # ---- the model

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        schema.check_versions(self.model, self.file)
        proto = self.model.graph
        graph = Graph(None, {}, 0, self.versions)
        self._load(graph, proto)
        inputs = self._inputs(graph, proto)
        self._convert(graph, proto.node)
        outputs = [self._result(graph, o.name) for o in proto.output]
        if not outputs:
            raise damaged(self.file, "the model has no outputs")
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if any(o is MISSING for o in outputs):
            self.report.raise_if_any()
            raise damaged(self.file, "an output of the model is not defined")
        return finish(self.builder, inputs, [self._plain(v, o) for v, o in zip(outputs, proto.output)])

    def _plain(self, value: Any, stated: Any) -> Expr:
        """A result as one expression; a Python list (a sequence of known length) is a tuple."""
        if value is NOTHING:
            ty = stated_value(self.builder, stated.type, self.file, f"the output {stated.name}")
            if ty is None or not stated.type.HasField("optional_type"):
                raise RelayError(error("R0801", f"{self.file}: the output {stated.name} is an optional of no known type"))
            return fit(self.builder, value, ty)
        if is_option(value) and stated.type.WhichOneof("value") in ("tensor_type", "sequence_type"):
            return get(self.builder, value)
        if isinstance(value, texts.Texts):
            return value.codes
        return value if isinstance(value, Expr) else self.builder.tuple([self._plain(v, stated) for v in value])

    def _inputs(self, graph: Graph, proto: Any) -> list[Var]:
        texts_of = {i.name: [d.dim_param for d in i.type.tensor_type.shape.dim] for i in proto.input}
        self._texts([text for texts in texts_of.values() for text in texts])
        name_extents(self.builder, texts_of)
        check_names(self.file, self.options, texts_of, graph.weights, self.builder.extents)
        inputs = []
        for value in proto.input:
            if value.name in graph.weights and value.name not in self.options.shapes:
                continue  # an initialiser is the value of this input
            graph.weights.pop(value.name, None)
            if value.name in self.options.values:
                known = self.options.values[value.name]
                if value.type.HasField("tensor_type") and known is not None:
                    known = input_value(value, known, self.file, self.options)
                graph.values[value.name] = self._given(known)
                continue
            self.builder.span = self.builder.listing.add(Layer("Input", "", (), (value.name,)))
            variable = self.builder.variable(self.builder.unique(value.name), input_type(self.builder, value, self.file, self.options))
            is_text = value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type == TEXTS
            graph.values[value.name] = texts.Texts(variable) if is_text else variable
            inputs.append(variable)
        return inputs

    def _given(self, value: Any) -> Any:
        """A value that the caller gives for an input."""
        if isinstance(value, (list, tuple)):
            return [self._given(v) for v in value]
        if value is None:
            return NOTHING
        array = np.asarray(value)
        return (
            texts.constant(self.builder, list(array.reshape(-1)), array.shape)
            if array.dtype.kind in "OSU"
            else self.builder.const(array)
        )

    def _load(self, graph: Graph, proto: Any) -> None:
        """Note a graph's weights and the types that it states."""
        self._texts([v.name for v in (*proto.initializer, *proto.input, *proto.value_info, *proto.output)])
        graph.weights = {t.name: t for t in proto.initializer}
        if proto.sparse_initializer:
            graph.weights.update({t.values.name: t for t in proto.sparse_initializer})
        for value in (*proto.value_info, *proto.output):
            graph.stated[value.name] = value

    def _texts(self, names: Iterable[Any]) -> None:
        """Raises `RelayError` for a name that is not UTF-8: protobuf gives its bytes."""
        if not all([type(name) is str for name in names]):
            raise damaged(self.file, "a name in it is not UTF-8")

    # ---- values

    def array(self, proto: Any) -> np.ndarray:
        """The array of a TensorProto."""
        return array_of(proto, self.file, self.options.folder, self.budget)

    def texts_of(self, proto: Any) -> texts.Texts:
        """The texts of a TensorProto."""
        return texts.constant(self.builder, proto.string_data, tuple(proto.dims))

    def dtype(self, number: int, what: str) -> str:
        """The element type of ONNX's number."""
        return dtype_of(number, self.file, what)

    def lookup(self, graph: Graph, name: str) -> Any:
        """The value of a name, in the graph or those around it. Raises `RelayError` for an undefined one."""
        level: Graph | None = graph
        while level is not None:
            if name in level.values:
                return level.values[name]
            if name in level.weights:
                value = level.values[name] = self._weight(name, level.weights[name])
                return value
            level = level.outer
        raise RelayError(
            error(
                "R0802",
                f"no layer before this one makes the tensor {name}",
                self.builder.span,
                notes=["an ONNX graph lists its layers in the order of their computation, without cycles"],
            )
        )

    def _weight(self, name: str, proto: Any) -> Any:
        if getattr(proto, "data_type", 0) == TEXTS:
            return self.texts_of(proto)
        if hasattr(proto, "values"):
            return self.builder.weight(name, dense(proto, self))
        return self.builder.weight(name, self.array(proto))

    def _result(self, graph: Graph, name: str) -> Any:
        try:
            return self.lookup(graph, name)
        except RelayError as wrong:
            if not self.errors and not self.report.entries:
                self.errors += wrong.diagnostics
            return MISSING

    # ---- graphs

    def convert_body(self, node: Node, proto: Any, inputs: Sequence[Any], spelled: bool) -> list[Any]:
        """The results of a graph inside a layer; texts among them where `spelled`."""
        graph = Graph(node.graph, node.graph.given, node.graph.depth + 1, node.graph.versions)
        if len(inputs) > len(proto.input):
            raise Unsupported(f"its body has {len(proto.input)} inputs, not {len(inputs)}")
        graph.values.update(zip([i.name for i in proto.input], inputs))
        results = self._inner(graph, proto, [o.name for o in proto.output])
        if not spelled and any(isinstance(r, texts.Texts) for r in results):
            raise Unsupported("a graph inside of it gives texts")
        return results

    def attempt_body(self, node: Node, proto: Any) -> list[Any] | RelayError:
        """As `convert_body` without operands; where operators in it do not take their operands' types, the error."""
        before, span = len(self.errors), self.builder.span
        try:
            return self.convert_body(node, proto, (), True)
        except _Skipped:
            wrong = self.errors[before:]
            if not wrong or any(not d.code.startswith("R03") for d in wrong):
                raise
            del self.errors[before:]
            self.builder.span = span
            return RelayError(first_ones(wrong))

    def _inner(self, graph: Graph, proto: Any, outputs: list[str]) -> list[Any]:
        if graph.depth > _DEEPEST:
            raise Unsupported(f"graphs and functions are nested more than {_DEEPEST} deep")
        span = self.builder.span
        if hasattr(proto, "initializer"):
            self._load(graph, proto)
        self._convert(graph, proto.node)
        results = [self.lookup(graph, name) for name in outputs]
        self.builder.span = span
        if any(r is MISSING for r in results):
            raise _Skipped
        return results

    def _convert(self, graph: Graph, nodes: Sequence[Any]) -> None:
        """Convert a graph's layers in their order."""
        b = self.builder
        for proto in nodes:
            self._texts((proto.op_type, proto.domain, proto.name, *proto.input, *proto.output))
            layer = Layer(proto.op_type, proto.name, tuple(proto.input), tuple(proto.output))
            b.span = span = b.listing.add(layer)
            results: Sequence[Any] = ()
            try:
                if graph.depth:
                    self.budget.take_nodes(1, "writing its functions and the graphs inside its layers out")
                results = self._layer(graph, proto, span, layer)
            except _Skipped:
                pass
            except Unsupported as why:
                results = self._unsupported(graph, proto, span, layer, why.reason)
            except Exception as wrong:
                operands = [graph.values.get(name) for name in proto.input]
                reason = "" if isinstance(wrong, (RelayError, Malformed)) else self._refused(graph, proto, operands)
                self.errors += failure(wrong, layer, span, operands, reason)
            for i, name in enumerate(proto.output):
                if name:
                    graph.values[name] = results[i] if i < len(results) and results[i] is not None else MISSING

    def _layer(self, graph: Graph, proto: Any, span: Span, layer: Layer) -> Sequence[Any]:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        function = self.functions.get((proto.domain, proto.op_type)) or self.functions.get((domain, proto.op_type))
        version = graph.versions.get(domain, 1)
        rule = self.rules.find(proto.op_type, version, domain)
        inputs = [self.lookup(graph, name) if name else None for name in proto.input]
        if rule is None and function is None:
            raise Unsupported(self._why_not(proto.op_type, version, domain))
        if any(x is MISSING for x in inputs):
            raise _Skipped
        node = Node(self, graph, proto, version)
        node.inputs = inputs
        if function is not None:
            return self._call(node, function, inputs)
        assert rule is not None
        why = schema.wrong_form(proto, domain, version, node.attributes) or self.rules.wrong_operands(rule, inputs)
        if why:
            raise Malformed(why)
        of_texts = any(isinstance(x, texts.Texts) for x in inputs)
        convert = partial(rule.convert, node)
        converted = texts.converted(self.builder, rule.name, convert, inputs) if of_texts else convert(*inputs)
        return [converted] if isinstance(converted, (Expr, texts.Texts)) else list(converted)

    def _why_not(self, name: str, version: int, domain: str) -> str:
        if name in REFUSED:
            return REFUSED[name]
        others = [r for r in self.rules if r.name == name]
        if any(r.domain == domain for r in others):
            return f"the importer has it, but not in version {version} of its operator set"
        return f"the importer has it in the domain {others[0].domain or 'ai.onnx'}, not in {domain}" if others else ""

    def _refused(self, graph: Graph, proto: Any, operands: Sequence[Any]) -> str:
        """Why the operator's schema refuses a layer whose conversion failed; "" where it does not."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        return schema.refusal(proto, domain, graph.versions.get(domain, 1), operands, self.builder)

    def _call(self, node: Node, function: Any, inputs: Sequence[Any]) -> list[Any]:
        """A call of a function that the model defines, converted in place."""
        defaults = {a.name: a for a in function.attribute_proto}
        versions = {("" if o.domain == "ai.onnx" else o.domain): int(o.version) for o in function.opset_import}
        graph = Graph(None, {**defaults, **node.attributes}, node.graph.depth + 1, versions or node.graph.versions)
        graph.values.update(zip(function.input, inputs))
        graph.values.update({name: None for name in list(function.input)[len(inputs) :]})
        return self._inner(graph, function, list(function.output))

    def _unsupported(self, graph: Graph, proto: Any, span: Span, layer: Layer, reason: str) -> Sequence[Any]:
        self.report.unsupported(proto.op_type, layer.label, span, reason)
        if not self.options.partial:
            return ()
        types = [graph.stated_type(o) for o in proto.output if o]
        inputs = [v for v in (self.lookup(graph, n) for n in proto.input if n) if isinstance(v, Expr)]
        return external(self.builder, proto.op_type, inputs, types)


class _Skipped(Exception):
    """The layer uses a tensor whose own layer was not converted."""


def import_onnx(model: Any, options: Options = DEFAULTS, file: str = "") -> Imported:
    """A program from a ModelProto, the bytes of one, or the path of a file.

    Raises `RelayError`: the file is damaged (R0802), the package onnx is missing (R0803), options do not fit (R0804),
    layers are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        file, options = file or path, _beside(options, path)
    if isinstance(model, (str, os.PathLike)):
        model = read_bytes(os.fspath(model))
    size = len(model) if isinstance(model, (bytes, bytearray, memoryview)) else 0
    model = load_onnx(model, file)
    with gc_paused(), np.errstate(all="ignore"):
        return Importer(model, file or "the model", options, size).run()


def load_onnx(model: Any, file: str = "") -> Any:
    """The ModelProto of a path or of bytes. Raises `RelayError`."""
    onnx = need_package("onnx", "onnx", "the ONNX reader")
    if isinstance(model, (str, os.PathLike)):
        model = read_bytes(os.fspath(model))
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parse(onnx, bytes(model), file or "the model")
    if not isinstance(model, onnx.ModelProto) and not hasattr(model, "graph"):
        raise RelayError(no_model(model, "ONNX model", "the importer takes an onnx.ModelProto, a file's bytes, or its path"))
    return model


def _size(model: Any) -> int:
    """The bytes of a model in memory; a message of more than 2 GB has no size of its own, but its parts have."""
    return sum(part.ByteSize() for part in (*model.graph.initializer, *model.graph.node, *model.functions))


def _beside(options: Options, file: str) -> Options:
    return options if options.folder or file == "-" else replace(options, folder=os.path.dirname(os.path.abspath(file)))


def _parse(onnx: Any, data: bytes, file: str) -> Any:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as wrong:  # protobuf's DecodeError has no stable home
        if type(wrong).__name__ != "DecodeError":
            raise
        raise damaged(file, "this is not an ONNX model, or it is cut short") from None
    if not model.HasField("graph") or not (model.opset_import or model.ir_version):
        raise damaged(file, "this is not an ONNX model: it has no graph")
    return model


__all__ = ["Importer", "import_onnx", "load_onnx"]
