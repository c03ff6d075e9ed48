"""One call of a layer as a conversion sees it."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.arrays import contiguous
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.keras.spec import Path, Spec
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.keras.importer import Importer

_ABSENT = object()
#: Numbers in a configuration are at most so large.
_LARGEST = 1 << 40


class Tensor(NamedTuple):
    """A value of the network, and Keras's mask of it: bool of its first axes, true where a step counts."""

    x: Expr
    mask: Expr | None = None


class Node:
    """A call of a layer: its configuration, its weights, the other arguments of the call, and the builder `b`.

    `dtype` is the element type in which the layer computes. `masks` are those of the first argument's tensors.
    """

    def __init__(
        self, importer: Importer, spec: Spec, path: Path, masks: Sequence[Expr | None], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.importer = importer
        self.spec = spec
        self.path = path
        self.config = spec.config
        self.masks = list(masks)
        self.args = args
        self.kwargs = kwargs
        self.b: Builder = importer.builder
        self.dtype = compute_dtype(spec.config.get("dtype"))

    @property
    def mask(self) -> Expr | None:
        """The mask of the first tensor."""
        return self.masks[0] if self.masks else None

    def mask_of(self, argument: builtins.int | str) -> Expr | None:
        """The mask of an argument of the call, by its place or its name."""
        if isinstance(argument, str):
            operand = self.kwargs.get(argument)
        else:
            operand = self.args[argument] if argument < len(self.args) else None
        return operand.mask if isinstance(operand, Tensor) else None

    # ---- weights

    def count(self) -> builtins.int:
        """The number of the layer's weights."""
        return len(self.importer.arrays(self.path, self.spec))

    def array(self, index: builtins.int, rank: builtins.int | None = None) -> np.ndarray:
        """A weight as the file has it. Raises `Malformed` where it is missing, or has another number of axes."""
        arrays = self.importer.arrays(self.path, self.spec)
        if not 0 <= index < len(arrays):
            raise Malformed(f"it has {len(arrays)} weights, and it needs more")
        array = arrays[index]
        if rank is not None and array.ndim != rank:
            raise Malformed(f"its weight {index} has the shape {array.shape}, and it must have {rank} axes")
        return array

    def weight(
        self,
        index: builtins.int,
        name: str,
        change: Callable[[np.ndarray], np.ndarray] | None = None,
        rank: builtins.int | None = None,
        dtype: str = "",
        key: str = "",
    ) -> Expr:
        """A weight in the element type of the layer, after a change of its form. Calls of a shared layer share it.

        `key` tells changes of one weight apart.
        """
        dtype = dtype or self.dtype

        def changed() -> np.ndarray:
            array = self.array(index, rank)
            array = array if change is None else contiguous(change(array))
            kind = np.dtype(dtype)
            return array if array.dtype == kind else array.astype(kind)

        return self.importer.weight((self.path, index, key, dtype), f"{self.spec.name}/{name}", changed)

    # ---- the configuration

    def value(self, key: str, default: Any = _ABSENT) -> Any:
        """An entry of the configuration. Raises `Malformed` where it is missing and has no default."""
        entry = self.config.get(key, default)
        if entry is _ABSENT:
            raise Malformed(f"its configuration has no {key}")
        return entry

    def _wrong(self, key: str, value: Any, wanted: str) -> Malformed:
        return Malformed(f"its {key} is {repr(value)[:60]}, and it must be {wanted}")

    def int(self, key: str, default: Any = _ABSENT, least: builtins.int | None = None) -> builtins.int:
        """A whole number of the configuration."""
        number = self.value(key, default)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) > _LARGEST:
            raise self._wrong(key, number, "a whole number")
        if least is not None and number < least:
            raise self._wrong(key, number, f"{least} or more")
        return number

    def float(self, key: str, default: Any = _ABSENT) -> builtins.float:
        """A number of the configuration."""
        number = self.value(key, default)
        if isinstance(number, Mapping):  # numbers of numpy stand as {"type": "ndarray", "value": 0.1}
            number = number.get("value")
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise self._wrong(key, number, "a number")
        return float(number)

    def bool(self, key: str, default: Any = _ABSENT) -> builtins.bool:
        """A truth value of the configuration."""
        entry = self.value(key, default)
        if entry is None and default is not _ABSENT:
            return bool(default)
        if not isinstance(entry, (bool, int)):
            raise self._wrong(key, entry, "true or false")
        return bool(entry)

    def choice(self, key: str, default: Any, choices: Sequence[str]) -> str:
        """A word of the configuration, one of several."""
        word = self.value(key, default)
        word = default if word is None else word
        if not isinstance(word, str) or word not in choices:
            raise self._wrong(key, word, f"one of {', '.join(choices)}")
        return word

    def ints(
        self, key: str, count: builtins.int | None = None, default: Any = _ABSENT, least: builtins.int | None = None
    ) -> list[builtins.int]:
        """A list of whole numbers; one number stands for `count` of them."""
        numbers = self.value(key, default)
        numbers = plain(numbers)
        if isinstance(numbers, (int, float)) and not isinstance(numbers, bool):
            numbers = [numbers] * (count or 1)
        if not isinstance(numbers, (list, tuple)) or not all(_is_whole(v) for v in numbers):
            raise self._wrong(key, numbers, "a list of whole numbers")
        values = [int(v) for v in numbers]
        if count is not None and len(values) != count:
            raise self._wrong(key, numbers, f"a list of {count} whole numbers")
        if least is not None and any(v < least for v in values):
            raise self._wrong(key, numbers, f"a list of numbers from {least} on")
        return values

    def axes(self, key: str, rank: builtins.int, default: Any = _ABSENT) -> list[builtins.int]:
        """An axis or a list of different ones, counted from the first."""
        return axes_of(self.ints(key, None, default), rank, key)

    def axis(self, key: str, rank: builtins.int, default: Any = _ABSENT) -> builtins.int:
        """One axis, counted from the first."""
        values = self.axes(key, rank, default)
        if len(values) != 1:
            raise self._wrong(key, values, "one axis")
        return values[0]

    def channels_first(self) -> builtins.bool:
        """Whether the channels are the second axis."""
        return self.choice("data_format", "channels_last", ("channels_last", "channels_first", "default")) == "channels_first"

    # ---- values

    def real(self, x: Expr) -> Expr:
        """A tensor in the layer's element type, where it holds whole numbers."""
        return x if self.b.dtype(x).startswith(("float", "bfloat")) else self.b.cast(x, self.dtype)

    def argument(self, name: str) -> Any:
        """Another argument of the call, without its mask; None where it is not given."""
        operand = self.kwargs.get(name)
        return operand.x if isinstance(operand, Tensor) else operand

    def flag(self, name: str) -> builtins.bool:
        """An argument of the call that is a truth value."""
        entry = self.kwargs.get(name)
        if entry is not None and not isinstance(entry, (bool, int)):
            raise Unsupported(f"its argument {name} is computed")
        return bool(entry)

    def inner(self, key: str, spec: Spec, x: Any, **kwargs: Any) -> list[Tensor]:
        """The results of a layer inside this one."""
        return self.importer.apply(spec, (*self.path, *key.split("/")), [x], kwargs)


def plain(value: Any) -> Any:
    """A tuple of Keras 3's JSON as a list."""
    if isinstance(value, Mapping) and value.get("class_name") == "__tuple__":
        value = value.get("items", value.get("config"))
        return value.get("items") if isinstance(value, Mapping) else value
    return value


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) and value == int(value) and abs(value) <= _LARGEST


def axes_of(values: Sequence[int], rank: int, name: str) -> list[int]:
    """Different axes of so many, counted from the first. Raises `Malformed`."""
    if any(not -rank <= v < rank for v in values) or len({v % rank for v in values}) != len(values):
        raise Malformed(f"its {name} is {list(values)}, and its operand has {rank} axes")
    return [v % rank for v in values]


#: The element types in which layers compute under policies of mixed precision.
_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
_DTYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


def policy(dtype: Any) -> str:
    """The name of a policy of element types; float32 by default."""
    if isinstance(dtype, Mapping):
        config = dtype.get("config")
        dtype = config.get("name") if isinstance(config, Mapping) else None
    return dtype if isinstance(dtype, str) else "float32"


def compute_dtype(dtype: Any) -> str:
    """The element type in which a layer computes. Raises `Unsupported` for one that the importer does not know."""
    name = policy(dtype)
    name = _MIXED.get(name, name)
    if name in _DTYPES:
        return name
    raise Unsupported(f"its element type is {name[:40]}")


__all__ = ["Node", "Tensor", "axes_of", "compute_dtype", "plain", "policy"]
