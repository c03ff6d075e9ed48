"""TVM's importers: `relay.frontend.from_onnx`, `from_tflite` and their like, with its signatures and results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common import Imported
from relaylang.frontends.mxnet import import_mxnet
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.frontends.stablehlo import import_stablehlo
from relaylang.frontends.tensorflow import import_tensorflow
from relaylang.frontends.tflite import import_tflite
from relaylang.frontends.torch import import_pytorch
from relaylang.frontends.torch.importer import contents
from relaylang.frontends.torch.torchscript import is_torchscript
from relaylang.ir import ANY, IRModule
from relaylang.ir.types import Dim
from relaylang.runtime.text import read_bytes
from relaylang.tvm.caffe_graph import from_caffe
from relaylang.tvm.coreml_graph import from_coreml
from relaylang.tvm.darknet_graph import from_darknet
from relaylang.tvm.keras_graph import from_keras
from relaylang.tvm.paddle_graph import from_paddle

#: What TVM's importers return.
Result = tuple[IRModule, dict[str, np.ndarray]]


def _shapes(shape: Mapping[str, Any] | None) -> dict[str, tuple[Dim, ...]]:
    """Shapes by name; anything but a number, such as `relay.Any()`, is an unknown extent. Raises `RelayError` (R0804).

    A number in the place of a shape is that of an extent which the model names.
    """
    if shape is not None and not isinstance(shape, Mapping):
        raise _no_shapes(shape)
    shape = {n: (s,) if isinstance(s, (int, np.integer)) and not isinstance(s, bool) else s for n, s in (shape or {}).items()}
    for name, extents in shape.items():
        if isinstance(extents, (str, bytes)) or not isinstance(name, str) or not hasattr(extents, "__iter__"):
            raise _no_shapes({name: extents})
    return {n: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in s]) for n, s in shape.items()}


def _no_shapes(shape: Any) -> RelayError:
    said = f"the shapes are {repr(shape)[:60]}; they are a mapping of names to shapes"
    return RelayError(error("R0804", said, notes=['such as {"input": (1, 3, 224, 224)}']))


def _result(imported: Imported) -> Result:
    return imported.module, imported.params


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[Any]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    export_node_renamed_model_path: str | None = None,
) -> Result:
    """An ONNX model (a ModelProto, its bytes, or a path) as a module and its parameters.

    `shape` gives shapes of inputs by name; `dtype` their element types, where it is a mapping. With `freeze_params`,
    weights are constants and the parameters are empty. `opset` replaces the version that the model states. TVM's
    `convert_config` and `export_node_renamed_model_path` have no effect here: names of layers are kept as they are.
    Raises `RelayError`.
    """
    if opset is not None and hasattr(model, "opset_import"):
        copied = type(model)()
        copied.CopyFrom(model)
        for entry in copied.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = opset
        model = copied
    shapes = _shapes(shape)
    return _result(import_onnx(model, Options(shapes, dict(dtype) if isinstance(dtype, Mapping) else {}, freeze=freeze_params)))


def from_tensorflow(
    graph: Any,
    layout: str = "NHWC",
    shape: Mapping[str, Sequence[Any]] | None = None,
    outputs: Sequence[str] | str | None = None,
    convert_config: Mapping[str, Any] | None = None,
) -> Result:
    """A TensorFlow graph as a module and its parameters.

    `graph` is a GraphDef, its bytes, a path, or what `TFParser` gives. Paths are those of .pb and .pbtxt files and of folders.
    Weights are parameters, as in TVM. `shape` gives shapes of inputs by name. `outputs` are names of nodes or tensors.
    Without them a graph gives its last node, and a SavedModel what its signature says. With the layout "NCHW",
    convolutions and pools are converted to it. TVM's `convert_config` has no effect. Raises `RelayError`.
    """
    if layout not in ("NHWC", "NCHW", "", None):
        raise RelayError(error("R0804", f"the layout is {layout!r}; it is NHWC or NCHW"))
    names = [outputs] if isinstance(outputs, str) else list(outputs or [])
    options = Options(_shapes(shape), freeze=False, layout="NCHW" if layout == "NCHW" else "")
    return _result(import_tensorflow(getattr(graph, "folder", graph), options, outputs=names, last=True))


def from_tflite(
    model: Any,
    shape_dict: Mapping[str, Sequence[Any]] | None = None,
    dtype_dict: Mapping[str, str] | str | None = None,
    op_converter: Any = None,
) -> Result:
    """A TFLite model as a module and its parameters.

    `model` is a `Model` of the package tflite, the bytes of a file, or a path.
    Weights are parameters, as in TVM. `shape_dict` and `dtype_dict` give shapes and element types of inputs by name.
    TVM's `op_converter` has no effect. Raises `RelayError`.
    """
    dtypes = dict(dtype_dict) if isinstance(dtype_dict, Mapping) else {}
    return _result(import_tflite(model, Options(_shapes(shape_dict), dtypes, freeze=False)))


def from_mxnet(
    symbol: Any,
    shape: Mapping[str, Sequence[Any]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    arg_params: Any = None,
    aux_params: Any = None,
) -> Result:
    """A network of MXNet as a module and its parameters. MXNet is not needed.

    `symbol` is the path of a symbol's file, its JSON, a Symbol, or a HybridBlock. `shape` gives shapes of inputs by name.
    `dtype` is the element type of inputs, or a mapping of their names to types. `arg_params` and `aux_params` are arrays
    by name, or the path of a parameter file. Without them, a path has its parameter file beside it, and a block its own
    values. Weights are parameters, as in TVM; those without a value are inputs. Raises `RelayError`.
    """
    options = Options(_shapes(shape), dict(dtype) if isinstance(dtype, Mapping) else {}, freeze=False)
    params = arg_params
    if isinstance(arg_params, Mapping) or isinstance(aux_params, Mapping):
        params = {**(arg_params or {}), **(aux_params or {})}
    return _result(import_mxnet(symbol, options, params=params, dtype=dtype if isinstance(dtype, str) else "float32"))


def from_pytorch(
    script_module: Any,
    input_infos: Sequence[Any] | None = None,
    custom_convert_map: Mapping[str, Any] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | None = None,
    preserve_pytorch_scopes: bool = False,
) -> Result:
    """An exported program or a script module of PyTorch as a module and its parameters.

    `script_module` is an ExportedProgram, a ScriptModule, the bytes of a .pt2 file or TorchScript archive, or its path.
    `input_infos` has an entry for each input: (name, shape), (name, (shape, dtype)) or (name, tensor). A mapping has
    them by name. A tuple has a list of them. A script module needs them, and gets the names. An exported program has its
    own names and gets the shapes, by position.
    Weights are parameters, as in TVM. Quantised weights are real ones that the program quantises, or whole numbers with
    `keep_quantized_weight`. `custom_convert_map` has conversions by the operator's name, such as "mylib::blur" or
    "aten::gelu". Each is called with the operator's arguments and their types, and gives an expression, or a list of them.
    The other arguments have no effect. Raises `RelayError`.
    """
    if isinstance(script_module, (str, os.PathLike)):
        file = os.fspath(script_module)
        data = read_bytes(file)
    else:
        file, data = "", contents(script_module)
    options, own = Options(freeze=False, keep_quantized=keep_quantized_weight), dict(custom_convert_map or {})
    infos = _infos(input_infos or ())
    if is_torchscript(data):
        parts = [part for info in infos for part in _parts(*info)]
        options = replace(options, shapes=_shapes({n: s for n, s, _ in parts}), dtypes={n: d for n, _, d in parts if d is not None})
        return _result(import_pytorch(data, options, file, [name for name, _, _ in infos], own))
    imported = import_pytorch(data, options, file, converters=own)
    if infos:
        names = [p.name_hint for p in imported.module["main"].params if p.name_hint not in imported.params]
        inputs = [(name, shape, dtype) for name, (_, shape, dtype) in zip(names, infos)]
        options = replace(options, shapes=_shapes({n: s for n, s, _ in inputs}), dtypes={n: d for n, _, d in inputs if d is not None})
        imported = import_pytorch(data, options, file, converters=own)
    return _result(imported)


def _infos(infos: Any) -> list[tuple[str, Any, str | None]]:
    """Names, shapes and element types of `input_infos`: pairs, or a mapping. Raises `RelayError` for another form."""
    if isinstance(infos, (str, bytes)):
        raise _no_info(infos)
    inputs = []
    for info in infos.items() if isinstance(infos, Mapping) else infos:
        if not isinstance(info, (list, tuple)) or len(info) != 2 or not isinstance(info[0], str):
            raise _no_info(info)
        try:
            inputs.append((info[0], *_shape_and_dtype(info[1])))
        except TypeError:
            raise _no_info(info) from None
    return inputs


def _no_info(info: Any) -> RelayError:
    notes = ['a pair is ("input0", (1, 3, 224, 224)), or ("input0", ((1, 3, 224, 224), "float16"))']
    return RelayError(error("R0804", f"input_infos has {str(info)[:60]!r}, which is no pair of a name and a shape", notes=notes))


def from_stablehlo(model: Any, shape: Mapping[str, Sequence[Any]] | None = None, freeze_params: bool = True) -> Result:
    """A program of StableHLO as a module and its parameters. TVM has no such importer.

    `model` is MLIR's text or bytecode, a path, or an object of JAX: `jax.jit(f).lower(x)`, or a `jax.export.Exported`.
    `shape` gives inputs that the program leaves open their shapes by name. Raises `RelayError`.
    """
    return _result(import_stablehlo(model, Options(_shapes(shape), freeze=freeze_params)))


def _shape_and_dtype(info: Any) -> tuple[Any, str | None]:
    """A shape, and the element type where it is stated: `(1, 3)`, or `((1, 3), "float16")`."""
    if hasattr(info, "shape") and hasattr(info, "dtype"):  # a tensor in the place of its shape
        return tuple(info.shape), str(info.dtype).rsplit(".", 1)[-1]
    pair = len(info) == 2 and isinstance(info[1], (str, type, np.dtype))
    if pair:
        return info[0], info[1] if isinstance(info[1], str) else np.dtype(info[1]).name
    if any(isinstance(d, (str, float)) for d in info):
        raise TypeError("no shape")
    return info, None


def _parts(name: str, shape: Any, dtype: str | None) -> list[tuple[str, Any, str | None]]:
    """The inputs of a tuple, `name.0` and so on; a tensor's input itself."""
    if not shape or not all(isinstance(s, (list, tuple)) for s in shape):
        return [(name, shape, dtype)]
    return [part for i, s in enumerate(shape) for part in _parts(f"{name}.{i}", *_shape_and_dtype(s))]


__all__ = [
    "from_caffe",
    "from_coreml",
    "from_darknet",
    "from_keras",
    "from_mxnet",
    "from_onnx",
    "from_paddle",
    "from_pytorch",
    "from_stablehlo",
    "from_tensorflow",
    "from_tflite",
]
