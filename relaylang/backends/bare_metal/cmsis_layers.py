"""The layers that CMSIS-NN computes with the interpreter's integers.

CMSIS-NN rescales a number v as `(v * multiplier + 2^(shift - 1)) >> shift`, where it is built with
CMSIS_NN_USE_SINGLE_ROUNDING. This is Relay's formula, within the bounds that the Ethos-U has, too. So the readers of that
accelerator say which composites have Relay's integers. Without the macro CMSIS-NN rounds twice, and no sum has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import Call, Constant, Expr, Function, IRModule
from relaylang.partition.api import prepare
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.engine import run
from relaylang.partition.fixed_point import Unsupported
from relaylang.partition.scope import scope_nodes
from relaylang.partition.targets.cmsis_nn import RECIPE, pattern_table
from relaylang.partition.targets.ethos_u.arithmetic import Product, Sum, read_product, read_sum
from relaylang.partition.targets.ethos_u.convolutions import Conv, read_conv, read_dense
from relaylang.partition.targets.ethos_u.parts import RANGES, narrow, op_name, tensor_of
from relaylang.partition.targets.ethos_u.pools import Pool, read_max_pool
from relaylang.typing import check

#: CMSIS-NN keeps extents in 16 bits.
_MAX_EXTENT = 65535
#: Its addition shifts numbers to the left by LEFT. They must fit into 32 bits when they are rescaled.
LEFT = 20
_MIN_SHIFT, _MAX_SHIFT = 32 - LEFT, 62 - LEFT


@dataclass(frozen=True)
class Dense:
    """A fully connected layer; `conv` has its numbers, with a weight of 1 x 1 windows."""

    conv: Conv


@dataclass(frozen=True)
class LimitedPool:
    """A maximum over windows, limited."""

    pool: Pool
    clamp: tuple[int, int]


Layer = Conv | Dense | LimitedPool | Sum | Product


def layer_of(call: Call) -> Layer:
    """The layer of a composite's call. Raises `Unsupported` with the reason where CMSIS-NN gives other integers."""
    assert isinstance(call.op, Function)
    name = call.op.attrs["Composite"]
    if name in _REFUSED:
        raise Unsupported(_REFUSED[name])
    for expr in (call, *call.args):
        ty = tensor_of(expr, "a tensor")
        if ty.dtype != "int8":
            raise Unsupported(f"a tensor is {ty.dtype}; only int8 is rescaled as in Relay")
        if max(map(int, ty.shape), default=1) > _MAX_EXTENT:  # type: ignore[arg-type]
            raise Unsupported(f"an extent is more than {_MAX_EXTENT}")
    calls = [node for node in composite_nodes(call.op) if isinstance(node, Call)]
    return _READERS[name](calls, call)


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
    low, high, _ = narrow(rest, *RANGES["int8"], "int8")
    return LimitedPool(read_max_pool([pool]), (low, high))


def _sum(calls: Sequence[Call], call: Call) -> Sum:
    layer = read_sum(calls)
    _same_shapes(call)
    for operand in layer.operands:
        if not _MIN_SHIFT <= operand.rescale.shifts[0] <= _MAX_SHIFT:
            raise Unsupported("the scales of an operand and of the result are too far from each other")
    return layer


def _product(calls: Sequence[Call], call: Call) -> Product:
    _same_shapes(call)
    return read_product(calls)


def _same_shapes(call: Call) -> None:
    shape = tensor_of(call, "its result").shape
    if any(tensor_of(arg, "a side").shape != shape for arg in call.args if not isinstance(arg, Constant)):
        raise Unsupported("its sides have different shapes")


_READERS: Mapping[str, Callable[[Sequence[Call], Call], Layer]] = {
    "cmsis-nn.qnn_conv2d": _conv,
    "cmsis-nn.qnn_fully_connected": _dense,
    "cmsis-nn.qnn_max_pool2d": _pool,
    "cmsis-nn.qnn_add": _sum,
    "cmsis-nn.qnn_mul": _product,
}
_REFUSED: Mapping[str, str] = {
    "cmsis-nn.qnn_avg_pool2d": "CMSIS-NN rounds averages to the nearest number, where Relay cuts them off",
    "cmsis-nn.qnn_softmax": "CMSIS-NN computes it in whole numbers, where Relay computes in float32",
}


def _refusal(call: Call) -> str | None:
    """Why a composite's call stays on the host, or None."""
    try:
        layer_of(call)
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


def partitioned(mod: IRModule, params: Mapping[str, np.ndarray] | None, entry: str, prefix: str) -> Partitioned:
    """Bind parameters, fold constants, and give CMSIS-NN each call of its table that has the interpreter's integers."""
    outcome = run(prepare(mod, RECIPE.name, params), pattern_table(), RECIPE, entry=entry, prefix=prefix,
                  refuse=_refusal)  # fmt: skip
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


__all__ = ["LEFT", "Dense", "Layer", "LimitedPool", "Partitioned", "layer_of", "partitioned"]
