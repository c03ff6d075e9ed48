"""The layers that CMSIS-NN computes with the interpreter's integers.

CMSIS-NN rescales a number v as `(v * multiplier + 2^(shift - 1)) >> shift`, where it is built with
CMSIS_NN_USE_SINGLE_ROUNDING. This is Relay's formula, within the bounds that the Ethos-U has, too. So the readers of that
accelerator say which composites have Relay's integers. Without the macro CMSIS-NN rounds twice, and no sum has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from relaylang.backends.ethosu.layers.arithmetic import Product, Sum, read_product, read_sum
from relaylang.backends.ethosu.layers.convolutions import Conv, read_conv, read_dense
from relaylang.backends.ethosu.layers.operands import RANGES, narrow, op_name, scales, tensor_of
from relaylang.backends.ethosu.layers.pools import Pool, read_avg_pool, read_max_pool
from relaylang.diagnostics import Diagnostic, error
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, Expr, Function, IRModule
from relaylang.partition.api import prepare
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.engine import run
from relaylang.partition.scope import scope_nodes
from relaylang.partition.targets.cmsis_nn import RECIPE, pattern_table
from relaylang.typing import check

#: CMSIS-NN keeps extents in 16 bits.
_MAX_EXTENT = 65535
#: Its addition shifts numbers to the left by so many bits. They must fit into 32 bits when they are rescaled, and their sum
#: into 30.
LEFT = {"int8": 20, "int16": 15}
_MIN_SHIFT = {"int8": 12, "int16": 19}
_MOST_SHIFT = 62
#: The least scale of softmax: below it, CMSIS-NN's multiplier of int8 shifts to the right.
_MIN_SOFTMAX = 2.0**-27


@dataclass(frozen=True)
class Dense:
    """A fully connected layer; `conv` has its numbers, with a weight of 1 x 1 windows."""

    conv: Conv


@dataclass(frozen=True)
class LimitedPool:
    """A maximum over windows, or an average rounded to the nearest number, limited."""

    pool: Pool
    clamp: tuple[int, int]
    average: bool = False


@dataclass(frozen=True)
class Softmax:
    """Softmax along the last axis of numbers with a scale."""

    scale: float


Layer = Conv | Dense | LimitedPool | Sum | Product | Softmax


def layer_of(call: Call, approximate: bool = False) -> Layer:
    """The layer of a composite's call.

    Raises `Unsupported` with the reason where CMSIS-NN gives other integers. `approximate` takes averages and
    softmax, whose integers differ as `docs/bare-metal.md` says.
    """
    assert isinstance(call.op, Function)
    name = call.op.attrs["Composite"]
    for expr in (call, *call.args):
        ty = tensor_of(expr, "a tensor")
        if ty.dtype != "int8" and (ty.dtype != "int16" or name in _BYTES_ONLY):
            raise Unsupported(f"a tensor is {ty.dtype}; only int8 is rescaled as in Relay")
        if max(map(int, ty.shape), default=1) > _MAX_EXTENT:  # type: ignore[arg-type]
            raise Unsupported(f"an extent is more than {_MAX_EXTENT}")
    calls = [node for node in composite_nodes(call.op) if isinstance(node, Call)]
    layer = _READERS[name](calls, call)
    # Relay cuts averages off that a cast to a wider type precedes.
    differs = "averages" if name in _AVERAGES and op_name(calls[0]) == "cast" else "softmax" if isinstance(layer, Softmax) else ""
    if differs and not approximate:
        raise Unsupported(_DIFFERENT[differs])
    return layer


def _conv(calls: Sequence[Call], call: Call) -> Conv:
    conv = read_conv(calls)
    batch = tensor_of(call.args[0], "its input").shape[0]
    if conv.depthwise and batch != 1:
        raise Unsupported(f"a depthwise convolution of {batch} images; it takes one")
    kernel = conv.weight.shape[:2] if conv.depthwise else conv.weight.shape[1:3]
    if any(pad >= extent for pad, extent in zip(conv.pad, kernel)):
        raise Unsupported("a padding as wide as the kernel")
    return conv


def _dense(calls: Sequence[Call], call: Call) -> Dense:
    return Dense(read_dense(calls))


def _pool(calls: Sequence[Call], call: Call) -> LimitedPool:
    pool, *rest = calls
    dtype = _dtype(call)
    low, high, _ = narrow(rest, *RANGES[dtype], dtype)
    return LimitedPool(read_max_pool([pool]), (low, high))


def _average(calls: Sequence[Call], call: Call) -> LimitedPool:
    dtype = _dtype(call)
    pool = read_avg_pool(calls[:3])
    low, high, _ = narrow(calls[3:], *RANGES[dtype], dtype)
    return LimitedPool(pool.window, (low, high), average=True)


def _softmax(calls: Sequence[Call], call: Call) -> Softmax:
    dequantize, softmax, _ = calls
    rank = len(tensor_of(call, "its result").shape)
    if softmax.attrs.axis not in (-1, rank - 1):
        raise Unsupported(f"softmax along axis {softmax.attrs.axis}; it takes the last one")
    scale = scales(dequantize.args[1], "its input scale")
    if scale.size != 1 or not scale.flat[0] > _MIN_SOFTMAX:
        raise Unsupported("the scale of its input is 0, or one for each channel")
    return Softmax(float(scale.flat[0]))


def _sum(calls: Sequence[Call], call: Call) -> Sum:
    layer = read_sum(calls)
    _same_shapes(call)
    dtype = _dtype(call)
    for operand in layer.operands:
        if not _MIN_SHIFT[dtype] <= operand.rescale.shifts[0] <= _MOST_SHIFT - LEFT[dtype]:
            raise Unsupported("the scales of an operand and of the result are too far from each other")
    return layer


def _product(calls: Sequence[Call], call: Call) -> Product:
    _same_shapes(call)
    return read_product(calls)


def _dtype(call: Call) -> str:
    return tensor_of(call, "its result").dtype


def _same_shapes(call: Call) -> None:
    shape = tensor_of(call, "its result").shape
    if any(tensor_of(arg, "a side").shape != shape for arg in call.args if not isinstance(arg, Constant)):
        raise Unsupported("its sides have different shapes")


_READERS: Mapping[str, Callable[[Sequence[Call], Call], Layer]] = {
    "cmsis-nn.qnn_conv2d": _conv,
    "cmsis-nn.qnn_fully_connected": _dense,
    "cmsis-nn.qnn_max_pool2d": _pool,
    "cmsis-nn.qnn_avg_pool2d": _average,
    "cmsis-nn.qnn_softmax": _softmax,
    "cmsis-nn.qnn_add": _sum,
    "cmsis-nn.qnn_mul": _product,
}
#: CMSIS-NN rescales the sums of int16 by multipliers of 16 bits.
_BYTES_ONLY = ("cmsis-nn.qnn_conv2d", "cmsis-nn.qnn_fully_connected")
_AVERAGES = ("cmsis-nn.qnn_avg_pool2d",)
_ALLOWED = "; -approximate allows that"
_DIFFERENT: Mapping[str, str] = {
    "averages": f"CMSIS-NN rounds averages to the nearest number, where Relay cuts them off{_ALLOWED}",
    "softmax": f"CMSIS-NN computes it in whole numbers, where Relay computes in float32{_ALLOWED}",
}


def _refusal(call: Call, approximate: bool) -> str | None:
    """Why a composite's call stays on the host, or None."""
    try:
        layer_of(call, approximate)
    except Unsupported as refused:
        return refused.reason
    return None


@dataclass(frozen=True)
class Partitioned:
    """A module with regions for CMSIS-NN, their number, and a note for each composite that stays on the host."""

    module: IRModule
    regions: int
    notes: list[Diagnostic]

    def report(self) -> str:
        """The calls on the host with places and reasons."""
        lines = [f"cmsis-nn: {self.regions} calls, and {len(self.notes)} of its table on the host"]
        for note in self.notes:
            place = f"{note.span.line}:{note.span.column} " if note.span is not None and note.span.source.text else ""
            lines.append(f"  {place}{note.title}")
        return "\n".join(lines)


def partitioned(
    mod: IRModule, params: Mapping[str, np.ndarray] | None, entry: str, prefix: str, approximate: bool = False
) -> Partitioned:
    """Bind parameters, fold constants, and give CMSIS-NN each call of its table that has the interpreter's integers.

    `approximate` gives it those averages and softmax, too, whose integers differ.
    """
    outcome = run(
        prepare(mod, RECIPE.name, params),
        pattern_table(),
        RECIPE,
        entry=entry,
        prefix=prefix,
        refuse=partial(_refusal, approximate=approximate),
    )
    check(outcome.module)
    notes = []
    for trace in outcome.traces.values():
        for node in scope_nodes(trace.func.body):
            if composite_name(node) is not None and id(node) in trace.reasons and id(node) not in trace.inside:
                notes.append(error("R0620", f"{_names(node)}: {trace.reasons[id(node)]}", node.span, severity="note"))
    regions = sum(f.attrs.get("Compiler") == RECIPE.name for f in outcome.module.functions.values())
    return Partitioned(outcome.module, regions, notes)


def _names(composite: Expr) -> str:
    assert isinstance(composite, Call) and isinstance(composite.op, Function)
    return " + ".join(op_name(node) for node in composite_nodes(composite.op))


__all__ = ["LEFT", "Dense", "Layer", "LimitedPool", "Partitioned", "Softmax", "layer_of", "partitioned"]
