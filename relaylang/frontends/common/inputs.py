"""What the caller gives for a model's inputs: names, shapes, element types and values that fit the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.options import Options
from relaylang.ir import TensorType
from relaylang.typing.valid_types import unsound


def check_names(file: str, options: Options, names: Iterable[str], weights: Iterable[str] = (), extents: Iterable[str] = ()) -> None:
    """Raise `RelayError` (R0804) where an option names no input, or an element type that there is not.

    `names` are those of the inputs; `weights` are those of them that have values in the file. The shape of one of the
    named `extents` is a number.
    """
    known, named = set(names), set(extents)
    for name in [*options.shapes, *options.dtypes, *options.values]:
        if name not in known and name in named and name in options.shapes:
            if len(options.shapes[name]) != 1:
                said = f"{file}: {name} is an extent, and its number must be one, not {_text(options.shapes[name])}"
                raise RelayError(error("R0804", said, notes=[f"--shape {name}=1 gives it one"]))
        elif name not in known:
            near = did_you_mean(name, known | named)
            notes = [f"did you mean {near}?" if near else f"its inputs: {', '.join(sorted(known - set(weights)))}"]
            raise RelayError(error("R0804", f"{file} has no input {name}", notes=notes))
    for name, dtype in options.dtypes.items():
        wrong = unsound(TensorType((), dtype))
        if wrong is not None:
            raise RelayError(error("R0804", f"{file}: the element type of the input {name}: {wrong}"))


def name_extents(b: Builder, inputs: Mapping[str, Sequence[str]]) -> None:
    """Name the extents of a model's inputs, each by its text, and give numbers to those that the options fix.

    An input that has a value says what the names of its extents are.
    """
    b.extents.declare(text for texts in inputs.values() for text in texts)
    values = {name: np.shape(v) for name, v in b.options.values.items() if v is not None and not isinstance(v, (list, tuple))}
    b.extents.fix({**values, **b.options.shapes}, inputs)


def check_axes(file: str, name: str, stated: Sequence[Any], shape: Sequence[Any]) -> None:
    """Raise `RelayError` (R0804) where a shape has another number of axes than the model states."""
    if len(stated) != len(shape):
        raise RelayError(error("R0804", f"{file}: the input {name} has {len(stated)} axes, not {len(shape)}"))


def value_for(file: str, name: str, value: Any, stated: Sequence[Any] | None, dtype: str) -> np.ndarray:
    """A value for an input with this shape (None: any) and element type. A single number fits extents of 1.

    Raises `RelayError` (R0804) for another shape, and for elements that the type does not hold.
    """
    array = np.asarray(value)
    if stated is not None:
        known = all(not isinstance(n, int) or n == 1 for n in stated)
        array = array.reshape([1] * len(stated)) if array.size == 1 and known else array
        check_axes(file, name, stated, array.shape)
        if any(isinstance(n, int) and n != m for n, m in zip(stated, array.shape)):
            said = f"{file}: the input {name} has the shape {_text(stated)}, and its value {_text(array.shape)}"
            raise RelayError(error("R0804", said))
    if array.dtype.name == dtype:
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(np.dtype(dtype))
    if converted.dtype.kind in "biu" and not np.array_equal(converted, array):
        raise RelayError(error("R0804", f"{file}: the input {name} is {dtype}, which does not hold its value"))
    return converted


def _text(shape: Sequence[Any]) -> str:
    return f"({', '.join(str(n) if isinstance(n, int) else '?' for n in shape)})"


#: A package whose objects people give to an importer -> what reads them.
_ROUTES = {
    "onnx": "relay.frontend.from_onnx reads models of ONNX",
    "torch": "torch.export.export(module, inputs) makes a program, and relay.frontend.from_pytorch reads it",
    "tflite": "relay.frontend.from_tflite reads models of TFLite",
    **dict.fromkeys(("keras", "tf_keras"), "relay.frontend.from_keras reads models of Keras"),
    "caffe": "relay.frontend.from_caffe reads a .caffemodel and a .prototxt",
    "coremltools": "relay.frontend.from_coreml reads models of Core ML",
    "mxnet": "relay.frontend.from_mxnet reads symbols of MXNet",
    "paddle": "relay.frontend.from_paddle reads a Program, a TranslatedLayer, or a .pdmodel or .json file",
    "tensorflow": "relay.frontend.from_tensorflow reads a GraphDef, or the folder of a SavedModel",
    "relaylang": "it is a program of Relay, and needs no importer",
}


def no_model(value: Any, kind: str, wanted: str) -> Diagnostic:
    """The error (R0804) for a value that is no model of a kind; `wanted` says what the importer takes."""
    own = value if isinstance(value, type) else type(value)
    name = f"the class {own.__name__}" if own is value else "None" if value is None else f"a value of type {own.__name__}"
    route = _ROUTES.get(own.__module__.partition(".")[0])
    return error("R0804", f"{name} is no {kind}; {wanted}", notes=[route] if route is not None else [])


__all__ = ["check_axes", "check_names", "name_extents", "no_model", "value_for"]
