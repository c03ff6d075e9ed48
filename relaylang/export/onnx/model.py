"""A whole ONNX model of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.export.onnx.emitter import OPSET, Emitter
from relaylang.export.onnx.table import RULES
from relaylang.export.walk import leaves, tensor_types
from relaylang.ir import IRModule

#: The largest file that a protocol buffer can be.
_LARGEST = 2**31 - 1
#: Constants of fewer bytes stay in the model; the others begin at such multiples.
_SMALL, _PAGE = 1024, 4096


def export_onnx(mod: IRModule, entry: str = "main", file: str = "<module>", outputs: Sequence[str] = ()) -> Any:
    """A typed program as an ONNX ModelProto of opset 21 (https://onnx.ai/onnx/repo-docs/IR.html).

    The parameters of `@main` are the graph's inputs, its constants the initialisers. `outputs` name the results. Layers have
    the names of the imported network's, or those of variables. Integers of the qnn dialect become QLinearConv and QLinearMatMul
    where a requantize follows, else layers between DequantizeLinear and QuantizeLinear. Raises `RelayError`: R0803 without the
    package onnx, R0806 with every operator that ONNX lacks.
    """
    e = Emitter(mod, file, RULES)
    parameters, result, ty = e.entry(entry)
    helper = e.onnx.helper
    types = tensor_types(ty)
    if not types:
        raise RelayError(error("R0806", f"@{entry} has no results; an ONNX model has one at least"))
    infos = []
    layers = e.blocks[0]
    for number, (value, form) in enumerate(zip(leaves(result), types)):
        wish = outputs[number] if number < len(outputs) else value.name
        name = e.unique(wish)
        layers.append(helper.make_node("Identity", [value.name], [name], name=name))
        infos.append(e.info(name, form))
    live, used = _live(layers)
    weights = [w for w in e.weights if w.name in used]
    graph = helper.make_graph(live, entry, [e.info(p.name, p.type) for p in parameters], infos, weights)
    _shorten(graph, keep=set(outputs))
    domains = sorted({layer.domain for layer in _layers(live)} - {""})
    opsets = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="relaylang")
    model.ir_version = 10
    return model


def _layers(layers: Sequence[Any]) -> list[Any]:
    """Layers, and those of the graphs inside them."""
    out, stack = [], list(layers)
    while stack:
        out.append(layer := stack.pop())
        stack += [inner for attribute in layer.attribute if attribute.HasField("g") for inner in attribute.g.node]
    return out


def external_data(model: Any, location: str) -> bytes:
    """Take the large constants out of a model: their bytes, which stand at `location` beside the model's file.

    Each begins at a multiple of 4096 (https://onnx.ai/onnx/repo-docs/ExternalData.html).
    """
    parts: list[bytes] = []
    at = 0
    for tensor in model.graph.initializer:
        data = tensor.raw_data
        if len(data) < _SMALL:
            continue
        entries = {"location": location, "offset": str(at), "length": str(len(data))}
        tensor.ClearField("raw_data")
        tensor.data_location = 1
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        behind = -len(data) % _PAGE
        parts += [data, bytes(behind)]
        at += len(data) + behind
    return b"".join(parts)


def serialized(model: Any) -> bytes:
    """The bytes of a model's file. Raises `RelayError` (R0806) where there are more than a file holds."""
    size = sum(len(w.raw_data) for w in model.graph.initializer)
    if size > _LARGEST:
        notes = ["--constants FILE puts the constants beside the model"]
        raise RelayError(error("R0806", f"the constants have {size / 2**30:.1f} GiB; an ONNX file holds 2 GiB", notes=notes))
    return bytes(model.SerializeToString())


def _live(layers: list[Any]) -> tuple[list[Any], set[str]]:
    """The layers whose results something uses, and the names that they use. The last layers make the results."""
    used: set[str] = set()
    kept: list[Any] = []
    results = _trailing(layers)
    for number, layer in reversed(list(enumerate(layers))):
        if number < results and not any(name in used for name in layer.output):
            continue
        kept.append(layer)
        used.update(name for name in layer.input if name)
        for attribute in layer.attribute:
            if attribute.HasField("g"):
                used |= _pruned(attribute.g)
    return kept[::-1], used


def _trailing(layers: list[Any]) -> int:
    """The number of the first of the layers at the end that name the results."""
    number = len(layers)
    while number and layers[number - 1].op_type == "Identity":
        number -= 1
    return number


def _pruned(graph: Any) -> set[str]:
    """Drop the layers of an inner graph that nothing uses; gives the names that its layers use."""
    live, used = _live(list(graph.node))
    del graph.node[:]
    graph.node.extend(live)
    return used | {o.name for o in graph.output}


def _shorten(graph: Any, keep: set[str]) -> None:
    """Let layers make the results, where only a copy of their result does. The names in `keep` stay."""
    uses: dict[str, int] = {}
    makers: dict[str, Any] = {}
    for layer in graph.node:
        for name in layer.input:
            uses[name] = uses.get(name, 0) + 1
        for attribute in layer.attribute:
            if attribute.HasField("g"):
                for name in _inner_names(attribute.g):
                    uses[name] = uses.get(name, 0) + 1
        for name in layer.output:
            makers[name] = layer
    outputs = {o.name: o for o in graph.output}
    layers = []
    for layer in graph.node:
        own = layer.output[0]
        source = layer.input[0] if layer.op_type == "Identity" and own in outputs else ""
        maker = makers.get(source)
        if maker is None or source in outputs or (own in keep and uses[source] > 1):
            layers.append(layer)
        elif own in keep:
            maker.output[list(maker.output).index(source)] = own
            makers[own] = maker
        else:
            outputs[source] = outputs.pop(own)
            outputs[source].name = source
    del graph.node[:]
    graph.node.extend(layers)


def _inner_names(graph: Any) -> set[str]:
    stack, names = [graph], set()
    while stack:
        top = stack.pop()
        names |= {o.name for o in top.output}
        for layer in top.node:
            names.update(layer.input)
            stack.extend(a.g for a in layer.attribute if a.HasField("g"))
    return names


__all__ = ["export_onnx", "external_data", "serialized"]
