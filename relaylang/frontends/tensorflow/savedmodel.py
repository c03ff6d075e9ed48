"""Files of TensorFlow: frozen graphs, SavedModels with their signatures, and the values of their variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common.files import check_version, damaged
from relaylang.frontends.common.protobuf import parsed, parsed_text
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.contents import is_saved_model, is_text
from relaylang.frontends.tensorflow.bundle import Bundle
from relaylang.frontends.tensorflow.schema import tensorflow
from relaylang.runtime.budget import Budget

#: The signature that serving calls, and the name of the signature that only initialises tables.
SERVING = "serving_default"
_INIT = "__saved_model_init_op"
#: The key of a bundle that has the graph of objects.
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"


@dataclass(frozen=True)
class Place:
    """An input or an output of a signature: its name, and the tensor. `info` has the element type and the shape."""

    name: str
    tensor: str
    info: Any


class Variables:
    """The values of variables by the names of the nodes that make them. Each is read when a layer asks for it."""

    def __init__(self, bundle: Bundle | None = None, keys: Mapping[str, str] | None = None) -> None:
        self._bundle = bundle
        self._keys = keys or {}

    def array(self, name: str, shared: str = "") -> np.ndarray:
        """The value of a variable: `name` is its node's, `shared` its own. Raises `Malformed` where there is none."""
        key = next((k for k in (self._keys.get(name), self._keys.get(shared), shared, name) if k and self._has(k)), None)
        if key is None or self._bundle is None:
            said = "has no value in the file; freeze the graph, or give the SavedModel's folder"
            raise Malformed(f"the variable {shared or name} {said}")
        return self._bundle.array(key)

    def _has(self, key: str) -> bool:
        return self._bundle is not None and key in self._bundle


@dataclass
class Model:
    """A graph with the functions that it calls. A SavedModel has the inputs and outputs of its signature."""

    graph: Any
    functions: dict[str, Any]
    inputs: list[Place] | None = None
    outputs: list[Place] | None = None
    variables: Variables = field(default_factory=Variables)


def read_model(data: bytes, file: str, folder: str, budget: Budget) -> Model:
    """The model in the bytes of a GraphDef or a SavedModel; `folder` is where the variables of the latter are.

    Raises `RelayError` (R0802) where the bytes are damaged or a file is missing.
    """
    text = is_text(data)
    saved = is_saved_model(data)
    kind = tensorflow()["SavedModel" if saved else "GraphDef"]
    read = parsed_text if text else parsed
    proto = read(kind, data, file, "the SavedModel" if saved else "the graph")
    if not saved:
        return Model(proto, {f.signature.name: f for f in proto.library.function})
    return _saved(proto, file, folder, budget)


def _saved(proto: Any, file: str, folder: str, budget: Budget) -> Model:
    check_version(file, "its schema", proto.saved_model_schema_version, 1)
    metas = list(proto.meta_graphs)
    if not metas:
        raise damaged(file, "the SavedModel has no graph")
    meta = next((m for m in metas if "serve" in m.meta_info_def.tags), metas[0])
    name, signature = _signature(meta, file)
    functions = {f.signature.name: f for f in meta.graph_def.library.function}
    inputs = [_place(k, v, file, name) for k, v in _sorted(signature.inputs)]
    outputs = [_place(k, v, file, name) for k, v in _sorted(signature.outputs)]
    return Model(meta.graph_def, functions, inputs, outputs, _variables(meta, functions, file, folder, budget))


def _sorted(places: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Inputs or outputs in the order of their names; numbers in names count as numbers."""
    return sorted(places.items(), key=lambda p: [(int(t), "") if t.isdigit() else (-1, t) for t in re.split(r"(\d+)", p[0])])


def _signature(meta: Any, file: str) -> tuple[str, Any]:
    names = [n for n in sorted(meta.signature_def) if n != _INIT]
    if SERVING in names or len(names) == 1:
        name = SERVING if SERVING in names else names[0]
        return name, meta.signature_def[name]
    notes = ["tf.saved_model.save(module, folder, signatures=module.f.get_concrete_function(...)) states one"]
    said = f"{len(names)} signatures, none of them {SERVING}: {', '.join(names)}" if names else "no signature"
    raise RelayError(error("R0801", f"{file}: the SavedModel has {said}", notes=notes))


def _place(name: str, info: Any, file: str, signature: str) -> Place:
    if info.WhichOneof("encoding") != "name":
        raise RelayError(error("R0801", f"{file}: {name} of the signature {signature} is a composite tensor, not one of numbers"))
    return Place(name, info.name, info)


def _variables(meta: Any, functions: Mapping[str, Any], file: str, folder: str, budget: Budget) -> Variables:
    graph = meta.graph_def
    bodies = [f.node_def for f in functions.values()]
    if not any(node.op in ("VarHandleOp", "VariableV2", "Variable") for nodes in (graph.node, *bodies) for node in nodes):
        return Variables()
    if not folder:
        raise RelayError(error("R0802", f"{file}: the variables of a SavedModel are in its folder; give the folder, not bytes"))
    bundle = Bundle(os.path.join(folder, "variables", "variables"), file, budget)
    keys = dict(_named_by_objects(bundle, file))
    keys.update(_restored(graph.node, {}))
    for node in graph.node:
        function = functions.get(_called(node))
        if function is not None and any(n.op == "RestoreV2" for n in function.node_def):
            operands = {arg.name: i for arg, i in zip(function.signature.input_arg, node.input)}
            keys.update(_restored(function.node_def, operands))
    return Variables(bundle, keys)


def _called(node: Any) -> str:
    function = node.attr["f"].func.name if "f" in node.attr else ""
    return str(function or node.op)


def _restored(nodes: Iterable[Any], operands: Mapping[str, str]) -> dict[str, str]:
    """The keys of variables by their nodes, from the layers that restore them. `operands` are a function's operands by name."""
    by_name = {n.name: n for n in nodes}
    names = {n.name: _texts(by_name, n) for n in by_name.values() if n.op == "RestoreV2" and len(n.input) > 1}
    restored = {}
    for node in by_name.values():
        if node.op not in ("Assign", "AssignVariableOp") or len(node.input) < 2:
            continue
        source = node.input[1]
        for _ in range(8):  # casts and identities may stand between
            maker = by_name.get(source.split(":")[0])
            if maker is None or maker.op not in ("Identity", "Cast") or not maker.input:
                break
            source = maker.input[0]
        keys, at = names.get(source.split(":")[0]), source.rpartition(":")[2]
        index = int(at) if at.isdigit() and ":" in source else 0
        if keys is not None and index < len(keys):
            target = node.input[0]
            restored[operands.get(target, target).split(":")[0]] = keys[index]
    return restored


def _texts(by_name: Mapping[str, Any], restore: Any) -> list[str]:
    names = by_name.get(restore.input[1].split(":")[0])
    if names is None or "value" not in names.attr:
        return []
    return [v.decode("utf-8", "replace") for v in names.attr["value"].tensor.string_val]


def _named_by_objects(bundle: Bundle, file: str) -> Iterable[tuple[str, str]]:
    """The keys of variables by their full names, from the graph of objects."""
    if _OBJECTS not in bundle:
        return
    graph = parsed(tensorflow()["TrackableObjectGraph"], bundle.text(_OBJECTS), file, "the graph of objects")
    for node in graph.nodes:
        for saved in node.attributes:
            if saved.name == "VARIABLE_VALUE" and saved.full_name:
                yield saved.full_name, saved.checkpoint_key


__all__ = ["SERVING", "Model", "Place", "Variables", "read_model"]
