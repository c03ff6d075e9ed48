"""LSTM and SVDF on stored integers: activations of int8, states of int16. Every number is as the runtime's.

Source: TensorFlow Lite, kernels/lstm_eval.cc, kernels/unidirectional_sequence_lstm.cc, and kernels/internal/reference/svdf.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log2
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Unsupported
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.tflite.fixed_point import (
    inverse_root,
    looked_up,
    multiplied,
    product_high,
    rounded_shift,
    sigmoid_table,
    tanh_table,
)
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.reader import Quantization
from relaylang.ir import Expr

#: The bits behind the point of a gate's sums.
_GATE = np.float32(2.0**-12)
#: Intermediate tensors of the layer: four gates before normalisation, and the hidden state before projection.
_HIDDEN, _INTERMEDIATES = 4, 5


def _held(b: Builder, x: Expr, dtype: str) -> Expr:
    """int32 numbers, held to the range of a narrower type."""
    limits = np.iinfo(dtype)
    held: Expr = b.op("clip", x, a_min=float(limits.min), a_max=float(limits.max))
    return held


def _one(quantization: Quantization | None, what: str) -> tuple[np.float32, int]:
    """The scale and the zero point of a tensor that has one."""
    if quantization is None or not quantization.per_tensor:
        raise Unsupported(f"{what} must have one scale")
    scale = np.float32(quantization.scales[0])
    if not 0 < scale < np.inf:
        raise Malformed(f"{what} has the scale {scale}")
    return scale, int(quantization.zero_points[0])


def _operand(n: Node, index: int, dtype: str) -> Expr:
    """An operand of one element type."""
    x: Expr = n.x(index)
    if n.b.dtype(x) != dtype:
        raise Unsupported(f"its operand {index} is of {n.b.dtype(x)}; with operands of int8 it must be of {dtype}")
    return x


def _shifted_bias(b: Builder, weights: Expr, zero: int, bias: Expr | None) -> Expr:
    """What stored numbers without their zero point add to a product: `bias + zero * (sum of each unit's weights)`."""
    more: Expr = b.op("multiply", b.op("sum", b.cast(weights, "int32"), axis=(1,)), zero)
    return more if bias is None else b.op("add", more, bias)


def _sums(b: Builder, x: Expr, weights: Expr, bias: Expr) -> Expr:
    """Rows (batch, depth) of int8 with each unit, as int32: (batch, units)."""
    products = b.unfolded("nn.dense", x, weights, units=b.extent(weights, 0), out_dtype="int32")
    return b.op("add", products, bias)


@dataclass(frozen=True)
class IntegerLSTM:
    """An LSTM of int8. `gates` are those that the layer has, of input, forget, cell and output.

    The operands begin with the data, four weights, four recurrent weights, three peepholes, four biases, and a projection;
    the states and four vectors of normalisation follow.
    """

    n: Node
    gates: tuple[int, ...]

    @cached_property
    def normal(self) -> bool:
        return self.n.has(21)

    @cached_property
    def cell_bits(self) -> int:
        """The power of two that is the cell's scale."""
        scale, _ = _one(self.n.q(19), "the state of cells")
        power = round(log2(scale))
        if abs(log2(scale) - power) >= 1e-3 or not 0 <= 15 + power <= 6:
            raise Unsupported(f"the scale of its cells is {scale}, not a power of two from 2**-15 to 2**-9")
        return power

    def scale(self, index: int) -> np.float32:
        return _one(self.n.q(index), f"the operand {index}")[0]

    def gate_scale(self, gate: int) -> np.float32:
        """The scale of a gate's sums."""
        return _one(self.n.intermediate(gate), f"the intermediate tensor {gate}")[0] if self.normal else _GATE

    def matrix(self, first: int, data: int, biased: bool) -> tuple[Expr, Expr, np.ndarray]:
        """The weights of all gates, what their zero points and biases add, and the factors of the sums."""
        n, b = self.n, self.n.b
        data_scale, zero = _one(n.q(data), f"the operand {data}")
        parts, biases, factors = [], [], []
        for gate in self.gates:
            weights = _operand(n, first + gate, "int8")
            bias = _operand(n, 12 + gate, "int32") if biased else None
            parts.append(weights)
            biases.append(_shifted_bias(b, weights, -zero, bias))
            factor = self.scale(first + gate) * data_scale / self.gate_scale(gate)
            factors.append(np.broadcast_to(factor, b.arrays.reserve(b.extent(weights, 0))))
        return b.concat(parts, 0), b.concat(biases, 0), np.concatenate(factors)

    def gate(self, gate: int, sums: Expr, cell: Expr | None) -> Expr:
        """A gate of sums (batch, cells): peepholes, normalisation, and the table of its function."""
        n, b = self.n, self.n.b
        peephole = 9 + (0, 1, -1, 2)[gate]
        if cell is not None and n.has(peephole):
            weights = b.cast(self.peephole(peephole), "int32")
            factor = np.float32(2.0**self.cell_bits * self.scale(peephole) / self.gate_scale(gate))
            sums = _held(b, b.op("add", sums, multiplied(b, b.unfolded("multiply", weights, cell), factor)), "int16")
        if self.normal:
            sums = self.normalised(gate, sums)
        return looked_up(b, self.table("tanh", 3) if gate == 2 else self.table("sigmoid"), sums)

    def peephole(self, index: int) -> Expr:
        """The weights of cells. With a projection, the runtime takes rows of its width, and reads the first of them alone.

        Rows of the whole batch follow each other where the steps come first.
        """
        n, b = self.n, self.n.b
        weights = _operand(n, index, "int16")
        if not n.has(16):
            return weights
        cells, width = b.extent(weights, 0), b.extent(n.x(16), 0)
        if width > cells:
            raise Unsupported("its projection is wider than its cells, and it has peepholes")
        rows = 1 if n.options.get("time_major") is False else b.extent(n.x(19), 0, "the batch")
        flat = b.arrays.zeros(rows * cells, np.int16)
        flat[: rows * width] = b.arrays.tile(b.need(weights, "the weights of cells")[:width], (rows,))
        return b.const(flat.reshape(rows, cells))

    def table(self, function: str, bits: int = 0) -> Expr:
        """A table as a weight, the same one for all layers."""
        tables = self.n.importer.tables
        if (function, bits) not in tables:
            values = sigmoid_table() if function == "sigmoid" else tanh_table(bits)
            tables[function, bits] = self.n.b.weight(f"{function}_of_{bits}_bits" if bits else function, values)
        return tables[function, bits]

    def normalised(self, gate: int, sums: Expr) -> Expr:
        """Sums less their mean, by their deviation, with ten bits more; times weights, plus the bias."""
        n, b = self.n, self.n.b
        weights, bias = b.cast(_operand(n, 20 + gate, "int16"), "int32"), _operand(n, 12 + gate, "int32")
        scale, count = self.scale(20 + gate), b.extent(sums, 1)
        x = b.cast(sums, "int64")
        mean = b.op("divide", b.op("multiply", b.op("sum", x, axis=(1,), keepdims=True), 1024), count)
        squares = b.op("multiply", b.op("sum", b.op("multiply", x, x), axis=(1,), keepdims=True), (1 << 20) // count)
        variance = b.op("divide", b.op("subtract", squares, b.op("multiply", mean, mean)), 1 << 20)
        least = b.const(max(1, int(np.float32(10000) * scale)), "int64")
        factor, shift = inverse_root(b, b.op("where", b.op("less", variance, 1), least, variance))
        shifted = b.op("subtract", b.op("multiply", x, 1024), mean)
        units = b.cast(rounded_shift(b, product_high(b, shifted, factor), shift), "int32")
        wide = b.op("add", b.op("multiply", units, weights), bias)
        half = b.op("where", b.op("greater", wide, 0), b.const(512, "int64"), b.const(-512, "int64"))
        steps = b.op("divide", b.op("add", b.cast(wide, "int64"), half), 1024)
        return _held(b, multiplied(b, steps, float(scale) * 4096), "int16")

    def bound(self, option: str, scale: np.float32, dtype: str) -> int:
        """A bound of the options as a stored number; 0 for none."""
        bound = np.float32(self.n.options[option])
        return int(min(bound / scale, np.float32(np.iinfo(dtype).max))) if bound > 0 else 0

    def outputs(self, xs: Expr) -> Expr:
        """The outputs for data (steps, batch, depth). The states are assigned."""
        n, b = self.n, self.n.b
        weights, bias, factors = self.matrix(1, 0, not self.normal)
        depth, units = b.extent(xs, 2, "the depth of the operand"), b.extent(weights, 0)
        if not units:
            raise Malformed("it has no cells")
        now = multiplied(b, _sums(b, b.reshape(xs, [-1, depth]), weights, bias), factors)
        now = b.reshape(_held(b, now, "int16"), [-1, b.extent(xs, 1, "the batch"), units])
        recurrent, shift, by = self.matrix(5, 18, False)
        hidden_scale, hidden_zero = _one(n.intermediate(_HIDDEN), f"the intermediate tensor {_HIDDEN}")
        out_scale, out_zero = _one(n.q(18), "the operand 18")
        most = self.bound("cell_clip", self.scale(19), "int16")
        project = n.has(16)
        projected = self.projection(hidden_zero) if project else None

        def step(sums: Expr, before: list[Expr]) -> list[Expr]:
            hidden, cell = before[0], b.cast(before[1], "int32")
            products = multiplied(b, _sums(b, hidden, recurrent, shift), by)
            sums = _held(b, b.op("add", sums, products), "int16")
            parts = dict(zip(self.gates, b.fields(b.op("split", sums, indices_or_sections=len(self.gates), axis=1))))
            forget = self.gate(1, parts[1], cell)
            take = self.gate(0, parts[0], cell) if 0 in parts else b.op("subtract", b.const(32767, "int32"), forget)
            fresh = b.op("multiply", take, self.gate(2, parts[2], None))
            kept = rounded_shift(b, b.op("multiply", forget, cell), 15)
            cell = _held(b, b.op("add", kept, rounded_shift(b, fresh, 30 + self.cell_bits)), "int16")
            if most:
                cell = b.op("clip", cell, a_min=float(-most), a_max=float(most))
            opened = b.op("multiply", self.gate(3, parts[3], cell), looked_up(b, self.table("tanh", 15 + self.cell_bits), cell))
            output = multiplied(b, opened, np.float32(2.0**-15 / float(hidden_scale) * 2.0**-15))
            output = b.cast(_held(b, b.op("add", output, -hidden_zero if project else hidden_zero), "int8"), "int8")
            if projected is not None:
                matrix, added = projected
                output = multiplied(b, _sums(b, output, matrix, added), self.scale(16) * hidden_scale / out_scale)
                output = _held(b, b.op("add", output, out_zero), "int8")
                bound = self.bound("proj_clip", _one(n.q_out(), "the result")[0], "int8")
                output = b.cast(b.op("clip", output, a_min=float(-bound), a_max=float(bound)) if bound else output, "int8")
            return [output, b.cast(cell, "int16")]

        states = [_operand(n, 18, "int8"), _operand(n, 19, "int16")]
        outputs, last = recurrence(b, now, states, step)
        n.assign(18, last[0])
        n.assign(19, last[1])
        return outputs

    def projection(self, zero: int) -> tuple[Expr, Expr]:
        """The projection's weights, and what the zero point of the hidden state and the bias add."""
        n = self.n
        weights = _operand(n, 16, "int8")
        bias = _operand(n, 17, "int32") if n.has(17) else None
        return weights, _shifted_bias(n.b, weights, zero, bias)


def integer_lstm(n: Node, xs: Expr) -> Expr:
    """The outputs of an LSTM of int8 for (steps, batch, depth); its states are assigned."""
    if n.b.dtype(xs) != "int8" or n.out_dtype() != "int8":
        raise Unsupported(f"its operand is of {n.b.dtype(xs)} and its result of {n.out_dtype()}, not both of int8")
    if len(n.operator.intermediates) != _INTERMEDIATES:
        count = len(n.operator.intermediates)
        raise Unsupported(f"it has {count} intermediate tensors; an LSTM with cells of int16 has {_INTERMEDIATES}")
    if n.b.rank(n.x(6)) != 2:
        raise Unsupported("its recurrent weights are diagonal")
    return IntegerLSTM(n, tuple(range(0 if n.has(1) else 1, 4))).outputs(xs)


def integer_svdf(n: Node, filters: int, depth: int, rank: int) -> Any:
    """The filters of int8 over features, and those of int16 over time, with a memory of int16."""
    b = n.b
    x_scale, features, times, state = (_one(n.q(i), f"the operand {i}")[0] for i in (0, 1, 2, 4))
    out, out_zero = _one(n.q_out(), "the result")
    weights, over_time = _operand(n, 1, "int8"), b.cast(_operand(n, 2, "int16"), "int32")
    batch = b.extent(n.x(0), 0, "the batch")
    _, zero = _one(n.q(0), "the operand 0")
    sums = _sums(b, _operand(n, 0, "int8"), weights, _shifted_bias(b, weights, -zero, None))
    now = b.unsqueeze(b.cast(_held(b, multiplied(b, sums, x_scale * features / state), "int16"), "int16"), [2])
    memory = b.reshape(_operand(n, 4, "int16"), [batch, filters, depth])
    window = b.concat([b.slice(memory, [0], [depth - 1], [2]), now], 2)
    products = b.op("sum", b.op("multiply", b.cast(window, "int32"), over_time), axis=(2,))
    sums = b.op("sum", b.reshape(products, [batch, filters // rank, rank]), axis=(2,))
    if n.has(3):
        sums = b.op("add", sums, _operand(n, 3, "int32"))
    output = multiplied(b, sums, state * times / out)
    output = _held(b, b.op("add", output, out_zero), "int8")
    later = b.concat([b.slice(window, [1], [depth], [2]), b.op("zeros_like", now)], 2)
    n.assign(4, b.reshape(later, b.static_shape(n.x(4))))
    return b.cast(output, "int8")


__all__ = ["integer_lstm", "integer_svdf"]
