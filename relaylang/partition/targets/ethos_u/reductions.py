"""Layers for the Ethos-U that combine the numbers along axes, read from their calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, TensorType
from relaylang.ops.reduce import taken_axes
from relaylang.partition.fixed_point import averaging
from relaylang.partition.targets.ethos_u.parts import (
    BYTES,
    RANGES,
    Output,
    constant,
    feature_type,
    op_name,
    scalar,
    tail,
    tensor_of,
)
from relaylang.partition.targets.ethos_u.pools import AvgPool, Pool, average_of

#: The most numbers of a sum: the elements of a kernel.
_MOST = 4096
_MOST_IN_WINDOW = 65536
_MOST_IN_AVERAGE = 256


@dataclass(frozen=True)
class Axes:
    """The axes that go away, or stay with the extent 1 if `keep`."""

    axes: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class SumOver:
    """Sums along axes, less `input_zp`, then `out`. With `rounds`, these are rounded averages of so many numbers."""

    over: Axes
    input_zp: int
    out: Output
    rounds: int = 0


@dataclass(frozen=True)
class MeanOver:
    """Truncated averages along axes: those of windows that have all the numbers."""

    over: Axes
    average: AvgPool


@dataclass(frozen=True)
class ExtremeOver:
    """The largest or smallest numbers along axes."""

    over: Axes
    largest: bool


@dataclass(frozen=True)
class TruthOver:
    """Whether all truth values along axes hold, or any."""

    over: Axes
    every: bool


@dataclass(frozen=True)
class PlaceOver:
    """The place of the largest or smallest number along one axis, the first of several."""

    over: Axes
    largest: bool


def _axes(call: Call, source: TensorType, most: int) -> tuple[Axes, int]:
    """The axes of a reduction, and how many numbers it combines."""
    rank = len(source.shape)
    if not 1 <= rank <= 4:
        raise Unsupported(f"an input of {rank} axes; 1 to 4 are taken")
    axes = tuple(taken_axes(rank, call.attrs.axis, call.attrs.exclude))
    if not axes or (len(axes) == rank and not call.attrs.keepdims):
        raise Unsupported("its result has no axes" if axes else "it combines nothing")
    numbers = math.prod([d for i, d in enumerate(source.shape) if i in axes and isinstance(d, int)])
    if numbers > most:
        raise Unsupported(f"it combines {numbers} numbers; at most {most} are taken")
    return Axes(axes, bool(call.attrs.keepdims)), numbers


def _widened(call: Call) -> TensorType:
    """The source of a cast to int32."""
    source = feature_type(call.args[0])
    if tensor_of(call, "the result of the cast").dtype != "int32":
        raise Unsupported("it is taken on int32 only")
    return source


def read_sum_over(calls: Sequence[Call]) -> SumOver:
    """cast(int32) sum [qnn.requantize [clip | nn.relu | cast]*]"""
    widened, total, *rest = calls
    source = _widened(widened)
    over, numbers = _axes(total, source, _MOST)
    zero_point = 0
    if rest:
        zero_point = scalar(rest[0].args[2], "its input zero point")
        if constant(rest[0].args[1], "its input scale").size != 1:
            raise Unsupported("scales of channels behind a sum")
    bound = max(abs(numbers * end - zero_point) for end in RANGES[source.dtype])
    out = tail(rest, np.array([bound]))
    return SumOver(over, zero_point, out, numbers if _is_average(numbers, zero_point, source.dtype, out) else 0)


def _is_average(numbers: int, zero_point: int, dtype: str, out: Output) -> bool:
    """Whether a sum and its rescale are an average of the accelerator's for every sum, which is the cheaper form."""
    each, rest = divmod(zero_point, numbers)
    low, high = RANGES[dtype]
    if dtype not in BYTES or out.rescale is None or out.dtype != dtype or rest or numbers > _MOST_IN_AVERAGE:
        return False
    if not (low <= each <= high and low <= out.rescale.output_zp <= high):
        return False
    sums = np.arange(numbers * (low - each), numbers * (high - each) + 1)
    average = averaging(numbers).apply(sums) + out.rescale.output_zp
    return np.array_equal(np.clip(out.rescale.apply(sums), low, high), np.clip(average, low, high))


def read_mean_over(calls: Sequence[Call]) -> MeanOver:
    """cast(int32) mean, then cast or qnn.requantize, then limits."""
    widened, mean, *rest = calls
    source = _widened(widened)
    over, numbers = _axes(mean, source, _MOST)
    return MeanOver(over, average_of(Pool((1, numbers), (1, 1), (0, 0, 0, 0), "NHWC"), source, rest))


def read_extreme_over(calls: Sequence[Call]) -> ExtremeOver:
    """max or min of a feature map."""
    (call,) = calls
    over, _ = _axes(call, feature_type(call.args[0]), _MOST_IN_WINDOW)
    return ExtremeOver(over, op_name(call) == "max")


def read_truth_over(calls: Sequence[Call]) -> TruthOver:
    """all or any of a bool tensor."""
    (call,) = calls
    over, _ = _axes(call, feature_type(call.args[0], dtypes=("bool",)), _MOST_IN_WINDOW)
    return TruthOver(over, op_name(call) == "all")


def read_place_over(calls: Sequence[Call]) -> PlaceOver:
    """argmax or argmin along one axis."""
    (call,) = calls
    over, _ = _axes(call, feature_type(call.args[0]), _MOST_IN_WINDOW)
    if len(over.axes) != 1:
        raise Unsupported("it numbers the places of several axes")
    if call.attrs.select_last_index:
        raise Unsupported("it takes the last of several places")
    if tensor_of(call, "its result").dtype != "int32":
        raise Unsupported(f"it makes {tensor_of(call, 'its result').dtype}; the accelerator makes int32")
    return PlaceOver(over, op_name(call) == "argmax")
