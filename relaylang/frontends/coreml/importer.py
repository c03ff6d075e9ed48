"""Core ML to Relay: the inputs and results of a model, and which walk converts its parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, no_model, value_for
from relaylang.frontends.common.versions import Versions
from relaylang.frontends.contents import main_file
from relaylang.frontends.coreml.network import Network
from relaylang.frontends.coreml.program import NOTHING, Program, State
from relaylang.frontends.coreml.reader import Files, opened
from relaylang.frontends.coreml.table import CONTROL, CONTROL_LAYERS, layer_table, table
from relaylang.frontends.coreml.values import dtype_of, extents
from relaylang.frontends.coreml.walk import MISSING
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import ANY, Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes
from relaylang.typing.valid_types import unsound

_WANTED = "the importer takes a .mlmodel or .mlpackage: its path, its contents, or a model of coremltools"
#: Extents of a file are at most so large.
_LARGEST = 1 << 31
_NETWORKS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")
#: The versions of iOS 11 to iOS 26, of which each adds layers and operators.
_VERSIONS = Versions("the specification version", 1, 10)
_PIPELINES = ("pipeline", "pipelineClassifier", "pipelineRegressor")


@dataclass(frozen=True)
class Feature:
    """An input as the file states it. An extent is None where it is not stated, and so is a shape."""

    shape: tuple[int | None, ...] | None
    dtype: str
    fixed: bool = True  # whether another number of axes is wrong
    state: bool = False


class Importer:
    """Converts one model. `file` is its name in diagnostics."""

    def __init__(self, model: Any, files: Files, file: str, options: Options, budget: Budget) -> None:
        self.model = model
        self.files = files
        self.file = file
        self.options = options
        names = [*table().names(), *layer_table().names(), *CONTROL, *CONTROL_LAYERS]
        self.report = Report(file, sorted(set(names)), warnings=_VERSIONS.warnings(model.specificationVersion, file))
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        self.inputs: list[Var] = []

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        declared = self._declared()
        check_names(self.file, self.options, declared)
        features = {name: self._input(name, feature) for name, feature in declared.items()}
        states = {name: State(value) for name, value in features.items() if declared[name].state}
        try:
            results = self._model(self.model, {**features, **states})
        except Unsupported as why:
            raise RelayError(error("R0801", f"{self.file}: {why.reason}")) from None
        except Malformed as wrong:
            if not self.errors:
                raise damaged(self.file, wrong.reason) from None
            results = {}
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial or MISSING in results.values():
            self.report.raise_if_any()
        outputs = [value for value in results.values() if isinstance(value, Expr)]
        outputs += [state.value for state in states.values()]
        if not outputs:
            raise damaged(self.file, "it has no layers that give a result")
        return finish(self.builder, self.inputs, outputs)

    # ---- inputs

    def _declared(self) -> dict[str, Feature]:
        """The inputs of the model by name. Raises `RelayError`."""
        try:
            if self.model.WhichOneof("type") == "mlProgram":
                return {feature.name: _of_type(feature.type) for feature in self._function(self.model).inputs}
            exact = self.model.WhichOneof("type") in _NETWORKS and _network(self.model).arrayInputShapeMapping == 1
            wide = self.model.WhichOneof("type") in _NETWORKS and _network(self.model).imageInputShapeMapping == 1
            return {feature.name: _of_feature(feature, exact, wide) for feature in self.model.description.input}
        except Malformed as wrong:
            raise damaged(self.file, wrong.reason) from None

    def _function(self, model: Any) -> Any:
        """The function of a program that runs. Raises `RelayError`."""
        functions = model.mlProgram.functions
        names = [model.description.defaultFunctionName or "main", *sorted(functions)]
        name = next((name for name in names if name in functions), None)
        if name is None:
            raise damaged(self.file, "its program has no function")
        return functions[name]

    def _input(self, name: str, feature: Feature) -> Expr:
        """An input of the program, or a constant of its value. Raises `RelayError`."""
        b, stated = self.builder, feature.shape
        shape = self.options.shapes.get(name)
        if shape is None:
            if stated is None:
                notes = [f"give it, such as --shape {name}=1x3x224x224"]
                raise RelayError(error("R0804", f"{self.file}: the shape of the input {name} is not known", notes=notes))
            shape = tuple([ANY if d is None else d for d in stated])
        elif stated is not None and feature.fixed:
            check_axes(self.file, name, stated, shape)
        if any(isinstance(d, int) and not 0 <= d < _LARGEST for d in shape) or len(shape) > 32:
            raise damaged(self.file, f"the input {name} has the shape {str(tuple(shape))[:80]}")
        ty = TensorType(list(shape), self.options.dtypes.get(name, feature.dtype))
        why = unsound(ty)
        if why is not None:
            raise damaged(self.file, f"the input {name}: {why}")
        if name in self.options.values:
            return b.const(value_for(self.file, name, self.options.values[name], ty.shape, ty.dtype))
        span = b.span
        b.span = b.listing.add(Layer("input", "", (), (name,)))
        variable = b.variable(b.unique(name), ty)
        b.span = span
        self.inputs.append(variable)
        return variable

    # ---- models

    def _model(self, model: Any, features: Mapping[str, Any]) -> dict[str, Any]:
        """The results of a model by name. Raises `Malformed` and `Unsupported`."""
        kind = model.WhichOneof("type")
        if kind is None:
            raise Malformed("it holds no model that the importer knows")
        if kind in _NETWORKS:
            self.builder.budget.grant(layers=len(_network(model).layers))
            walk = Network(self.builder, self.files, self.errors)
            return walk.run(_network(model), model.description, features, kind == "neuralNetworkClassifier")
        if kind == "mlProgram":
            return self._program(model, features)
        if kind in _PIPELINES:
            return self._pipeline(model, getattr(model, kind), features)
        raise Unsupported(f"it is a model of the kind {kind}, and the importer takes networks, programs and pipelines of them")

    def _program(self, model: Any, features: Mapping[str, Any]) -> dict[str, Any]:
        function = self._function(model)
        blocks = function.block_specializations
        if function.opset not in blocks and len(blocks) != 1:
            raise Malformed(f"its function has no block for {function.opset[:40]!r}")
        block = blocks[function.opset] if function.opset in blocks else next(iter(blocks.values()))
        self.builder.budget.grant(layers=len(block.operations))
        missing = [feature.name for feature in function.inputs if feature.name not in features]
        if missing:
            raise Malformed(f"its input {missing[0][:60]!r} is no feature of the models before it")
        names = {feature.name: features[feature.name] for feature in function.inputs}
        results = Program(self.builder, self.files, self.errors).block(block, names)
        return {name: value for name, value in zip(block.outputs, results) if value is not NOTHING}

    def _pipeline(self, model: Any, network: Any, features: Mapping[str, Any]) -> dict[str, Any]:
        """The models of a pipeline, each of which takes features by name. Those that are no network are listed."""
        names = dict(features)
        models = (network.pipeline if hasattr(network, "pipeline") else network).models
        results: dict[str, Any] = {}
        for part in models:
            layer = Layer(part.WhichOneof("type") or "model", "", [f.name for f in part.description.input], ())
            span = self.builder.listing.add(layer)
            try:
                results = self._model(part, names)
            except Unsupported as why:
                self.report.unsupported(layer.operator, layer.label, span, why.reason)
                results = {f.name: MISSING for f in part.description.output}
            names.update(results)
        wanted = [f.name for f in model.description.output if f.name in names]
        return {name: names[name] for name in wanted} if wanted else results


def _network(model: Any) -> Any:
    return getattr(model, model.WhichOneof("type"))


def _of_type(ty: Any) -> Feature:
    """An input of a program."""
    kind = ty.WhichOneof("type")
    if kind == "stateType":
        return replace(_of_type(ty.stateType.wrappedType), state=True)
    if kind != "tensorType":
        raise Malformed(f"an input is of the type {kind}, and the importer takes tensors")
    return Feature(tuple(extents(ty.tensorType)), dtype_of(ty.tensorType.dataType))


#: Element types of arrays that are not real.
_ARRAYS = {131104: "int32", 131080: "int8", 65552: "float16"}


def _of_feature(feature: Any, exact: bool, wide: bool) -> Feature:
    """An input of a neural network. Reals are float32; pictures are (1, channels, rows, columns)."""
    kind = feature.type.WhichOneof("type")
    if kind == "imageType":
        image = feature.type.imageType
        channels = 1 if image.colorSpace in (10, 40) else 3
        return Feature((1, channels, image.height, image.width), "float32", wide)
    if kind == "multiArrayType":
        array = feature.type.multiArrayType
        shape = tuple(int(d) for d in array.shape)
        return Feature(shape if shape or exact else None, _ARRAYS.get(array.dataType, "float32"), exact)
    if kind in ("int64Type", "doubleType"):
        return Feature((1,), "int32" if kind == "int64Type" else "float32", False)
    raise Malformed(f"the input {feature.name[:60]!r} is of the kind {kind}, and the importer takes arrays and pictures")


def import_coreml(model: Any, options: Options = DEFAULTS, file: str = "") -> Imported:
    """A program from a model: the path or the bytes of a `.mlmodel` or `.mlpackage`, or a model or spec of coremltools.

    A package is a folder, or a zip archive of one. Raises `RelayError`: a file is damaged or missing (R0802), options do not
    fit (R0804), layers are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        path = main_file(os.fspath(model))
        file = file or os.fspath(model)
        if os.path.isdir(path):
            raise damaged(file, "it is a folder whose Manifest.json names no model that is there")
        options = options if options.folder else replace(options, folder=os.path.dirname(os.path.abspath(path)))
        data = read_bytes(path)
    else:
        data, folder = _contents(model)
        options = replace(options, folder=folder) if folder and not options.folder else options
    name = file or "the model"
    with gc_paused(), np.errstate(all="ignore"):
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        network, files = opened(data, name, options.folder, budget)
        return Importer(network, files, name, options, budget).run()


def _contents(model: Any) -> tuple[bytes, str]:
    """The bytes of a model that a caller has, and the folder of the files beside it. Raises `RelayError`."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), ""
    folder = ""
    if hasattr(model, "get_spec") and not isinstance(model, type):
        weights = getattr(model, "weights_dir", None)
        folder, model = os.path.dirname(weights) if weights else "", model.get_spec()
    if hasattr(model, "SerializeToString") and not isinstance(model, type):
        return bytes(model.SerializeToString()), folder
    raise RelayError(no_model(model, "model of Core ML", _WANTED))


__all__ = ["Importer", "import_coreml"]
