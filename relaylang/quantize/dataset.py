"""Calibration data: batches of inputs by name, checked before a network is compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from relaylang.diagnostics import did_you_mean
from relaylang.ir import Function, TensorType, type_text
from relaylang.quantize.observe import Batch
from relaylang.quantize.prepare import refuse


def checked(dataset: Iterable[Any], func: Function) -> Iterator[Batch]:
    """The batches of a data set for a typed function. Those of a sequence are checked now.

    Of an iterator, those up to the first that is not constant are checked now, each other when it is taken.

    An item is a mapping from names to arrays, or an array where the function has one parameter. An array with several times
    the rows that the parameter has is several batches. Raises `RelayError` (R0530) for no data, other names, shapes and element
    types, empty arrays, numbers that are not finite, and data that are one number throughout.
    """
    if isinstance(dataset, (str, Mapping)) or not isinstance(dataset, Iterable):
        raise refuse(
            f"the data set is no list of batches, but {type(dataset).__name__}", "a batch is a mapping from inputs' names to arrays"
        )
    if isinstance(dataset, Sequence):
        for number, item in enumerate(dataset):
            for _ in _batches(item, number, func):
                pass
    batches = _varying(chain.from_iterable(_batches(item, number, func) for number, item in enumerate(dataset)))
    first = next(batches, None)
    if first is None:
        raise refuse("the data set has no batches", "it gives mappings from inputs' names to arrays")
    return chain([first], batches)


def _varying(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches, from the moment on that one of their inputs has two different numbers: all before are the first again.

    Raises `RelayError` (R0530) where none has.
    """
    first: Batch | None = None
    same = 0
    for batch in batches:
        first = batch if first is None else first
        if not first or any((array != first[name].flat[0]).any() for name, array in batch.items()):
            yield from repeat(first, same)
            yield batch
            yield from batches
            return
        same += 1
    if first is not None:
        shown = ", ".join(f"{name} is {array.flat[0]:g}" for name, array in first.items())
        raise refuse("the calibration data are constant", f"{shown} in all batches")


def _batches(item: Any, number: int, func: Function) -> Iterator[Batch]:
    params = func.params
    names = [p.name_hint for p in params]
    if not isinstance(item, Mapping):
        if len(params) != 1:
            raise refuse(
                f"batch {number} is no mapping from names to arrays", f"the inputs of the network: {', '.join(names) or 'none'}"
            )
        item = {names[0]: item}
    for name in item:
        if name not in names:
            near = did_you_mean(str(name), names)
            more = f"did you mean {near}?" if near else f"the inputs of the network: {', '.join(names) or 'none'}"
            raise refuse(f"batch {number} has values for {name}, which no input is called", more)
    missing = [p for p in params if p.name_hint not in item]
    if missing:
        shown = type_text(missing[0].checked_type) if missing[0].checked_type is not None else "unknown"
        raise refuse(
            f"batch {number} has no value for the input {missing[0].name_hint}: {shown}",
            "a weight gets its value with params",
            span=missing[0].span,
        )
    arrays = {p.name_hint: _array(item[p.name_hint], p.checked_type, f"{p.name_hint} of batch {number}") for p in params}
    counts = {name: count for name, (_, count) in arrays.items()}
    count = max(counts.values(), default=1)
    if any(n not in (1, count) for n in counts.values()):
        raise refuse(f"the inputs of batch {number} have different numbers of rows")
    for i in range(count):
        yield {name: _rows(array, i if n > 1 else 0, n) for name, (array, n) in arrays.items()}


def _rows(array: np.ndarray, number: int, count: int) -> np.ndarray:
    if count == 1:
        return array
    size = len(array) // count
    return np.ascontiguousarray(array[number * size : (number + 1) * size])


def _array(value: Any, ty: Any, what: str) -> tuple[np.ndarray, int]:
    """An array that fits a type, and how many times its rows."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        raise refuse(f"{what} is no array") from None
    wanted = type_text(ty)
    if not isinstance(ty, TensorType):
        raise refuse(f"{what.partition(' ')[0]} is an input of the type {wanted}; networks with tensors as inputs are quantised")
    if array.dtype.name != ty.dtype:
        raise refuse(f"{what} has the element type {array.dtype.name}, the input is {wanted}", f"convert it: x.astype({ty.dtype!r})")
    if not all(isinstance(d, int) for d in ty.shape):
        raise refuse(
            f"{what.partition(' ')[0]} has a shape that is not known: {wanted}", "--shape NAME=... gives a network's input its shape"
        )
    shape: Sequence[int] = [int(d) for d in ty.shape]  # type: ignore[arg-type]
    if array.ndim == len(shape) - 1 and list(array.shape) == list(shape[1:]) and shape[0] == 1:
        array = array[None]
    count = len(array) // shape[0] if array.ndim and array.ndim == len(shape) and shape[0] else 1
    fits = array.ndim == len(shape) and (
        list(array.shape) == list(shape) or (list(array.shape[1:]) == list(shape[1:]) and count * shape[0] == len(array))
    )
    if not array.size:
        raise refuse(f"{what} is empty: its shape is {array.shape}", f"the input is {wanted}")
    if not fits:
        raise refuse(
            f"{what} has the shape {array.shape}, the input is {wanted}", "an array may hold several batches, one after another"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise refuse(f"{what} has numbers that are not finite", "NaN and infinities have no form in whole numbers")
    return np.ascontiguousarray(array), max(count, 1)


__all__ = ["checked"]
