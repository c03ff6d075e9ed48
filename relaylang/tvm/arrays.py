"""Values as scripts for TVM give and take them: tensors with `numpy()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.values import Value, to_arrays
from relaylang.ir import Constant


def from_python(given: Any) -> Any:
    """A value as the interpreter takes it: a constant's data, what `numpy()` gives, and so for a tuple's fields."""
    if not isinstance(given, tuple):
        return _leaf_from_python(given)
    work: list[tuple[tuple[Any, ...], list[Any]]] = [(given, [])]
    while True:
        fields, done = work[-1]
        if len(done) < len(fields):
            item = fields[len(done)]
            if isinstance(item, tuple):
                work.append((item, []))
            else:
                done.append(_leaf_from_python(item))
            continue
        work.pop()
        if not work:
            return tuple(done)
        work[-1][1].append(tuple(done))


def arrays_by_name(params: Any) -> dict[str, np.ndarray]:
    """The arrays of parameters by name. Raises `RelayError` (R0640) for other values, by name."""
    if not isinstance(params, Mapping):
        raise RelayError(error("R0640", f"params are tensors by name, not a {type(params).__name__}"))
    values = {str(name): from_python(value) for name, value in params.items()}
    for name, value in values.items():
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            notes = ["a tensor is an array of numpy, of tvm.nd, or a constant"]
            raise RelayError(error("R0640", f"params: {name} is a {type(value).__name__}, which is no tensor", notes=notes))
    return values


def _leaf_from_python(leaf: Any) -> Any:
    if isinstance(leaf, Constant):
        return leaf.data
    if not isinstance(leaf, (np.ndarray, np.generic)) and callable(getattr(leaf, "numpy", None)):
        return leaf.numpy()
    return leaf


class Array(np.ndarray):
    """A numpy array that also answers to the names of TVM's arrays."""

    def numpy(self) -> np.ndarray:
        """The plain array, of the same memory."""
        return self.view(np.ndarray)

    asnumpy = numpy


class DType(str):
    """An element type as scripts for TVM read it: a text. It compares and hashes as one, and has numpy's attributes, too."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) if isinstance(other, str) else np.dtype(str(self)) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getattr__(self, name: str) -> Any:
        return getattr(np.dtype(str(self)), name)


class Data(Array):
    """The array of a constant: its `dtype` is a text."""

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return DType(super().dtype.name)

    @dtype.setter
    def dtype(self, value: Any) -> None:
        vars(np.ndarray)["dtype"].__set__(self, value)


def with_numpy(value: Value) -> Value:
    """A result whose tensors have `numpy()`, also those in tuples, constructed values and cells."""
    return to_arrays(value, lambda tensor: np.asarray(tensor).view(Array))
