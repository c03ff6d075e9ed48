"""A TOSA 1.0 graph as plain data, and its flatbuffer.

The graph is one basic block. Tensors are named. TOSA 1.0 wants some operands as constant tensors (multipliers, shifts,
zero points), others as shapes (reshape targets, slice bounds, paddings). The `Graph` methods add both. The file format
is Arm's `tosa.fbs`, whose slot numbers are used below; `tosa.Op` has the numbers of operators. In its union, an operator's
attribute table has the operator's own number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from relaylang.backends.ethosu.vela import CompileError

# DType of the schema.
DTYPES = {"bool": 1, "int8": 3, "int16": 4, "int32": 5, "int48": 6}
#: The type of sums of products, by that of the input.
SUMS = {"int8": "int32", "int16": "int48"}

SINGLE_ROUND = 1
_NAN_PROPAGATE = 1
VERSION = (1, 0, 0)


@dataclass(frozen=True)
class Tensor:
    """A tensor of the block: `data` is set for constants (C order). Those of int48 have numbers of int64."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: np.ndarray | None = None


@dataclass(frozen=True)
class Shape:
    """A constant shape operand: int64 values."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True)
class Operator:
    """`attributes` are (slot, kind, value); kinds: int32s, bool, uint32, int32, bytes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[int, str, object], ...] = ()


@dataclass
class Graph:
    """One TOSA basic block under construction."""

    name: str = "main"
    tensors: dict[str, Tensor] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    #: The prefix of the names of operators added next, for reports: the layer that they belong to.
    layer: str = ""
    #: The operators that made tensors, by the names of these.
    makers: dict[str, Operator] = field(default_factory=dict)
    _constants: dict[tuple, str] = field(default_factory=dict)
    #: The biases of convolutions, by the shapes and digests of their weights.
    _biases: dict[tuple[tuple[int, ...], bytes], Tensor] = field(default_factory=dict)

    # ---- tensors

    def fresh(self, hint: str) -> str:
        """A name that no tensor or shape of the graph has."""
        name, n = hint, 1
        while name in self.tensors or name in self.shapes:
            name, n = f"{hint}_{n}", n + 1
        return name

    def input(self, name: str, shape: Sequence[int], dtype: str) -> Tensor:
        """A graph input, in order of the calls."""
        tensor = self._tensor(name, tuple(shape), dtype)
        self.inputs.append(tensor.name)
        return tensor

    def output(self, tensor: Tensor) -> None:
        """Marks a graph output, in order of the calls."""
        self.outputs.append(tensor.name)

    def constant(self, value: np.ndarray, hint: str = "const", dtype: str = "") -> Tensor:
        """A constant tensor, of a type that numpy lacks where `dtype` is given; equal small constants are written once."""
        value = np.asarray(value, order="C")
        dtype = dtype or value.dtype.name
        key = (dtype, value.shape, value.tobytes()) if value.size <= 64 else None
        if key is not None and key in self._constants:
            return self.tensors[self._constants[key]]
        tensor = self._tensor(hint, value.shape, dtype, value)
        self.operators.append(Operator("CONST", (), (tensor.name,)))
        if key is not None:
            self._constants[key] = tensor.name
        return tensor

    def shape(self, values: Sequence[int], hint: str = "shape") -> str:
        """A constant shape; returns its name."""
        key = ("shape", tuple(values))
        if key not in self._constants:
            name = self.fresh(hint)
            self.shapes[name] = Shape(name, tuple(int(v) for v in values))
            self.operators.append(Operator("CONST_SHAPE", (), (name,)))
            self._constants[key] = name
        return self._constants[key]

    def _tensor(self, hint: str, shape: tuple[int, ...], dtype: str, data: np.ndarray | None = None) -> Tensor:
        tensor = Tensor(self.fresh(hint), shape, dtype, data)
        self.tensors[tensor.name] = tensor
        return tensor

    def _emit(
        self,
        op: str,
        inputs: Sequence[Tensor | str],
        shape: Sequence[int],
        dtype: str,
        *attributes: tuple[int, str, object],
    ) -> Tensor:
        names = tuple(i if isinstance(i, str) else i.name for i in inputs)
        hint = f"{self.layer}/{op.lower()}" if self.layer else op.lower()
        out = self._tensor(hint, tuple(int(d) for d in shape), dtype)
        self.operators.append(Operator(op, names, (out.name,), attributes))
        self.makers[out.name] = self.operators[-1]
        return out

    # ---- operators (NHWC)

    def _zero_point(self, value: int, dtype: str) -> Tensor:
        return self._numbers(np.array([value]), dtype, "zp")

    def _numbers(self, values: np.ndarray, dtype: str, hint: str) -> Tensor:
        return self.constant(values.astype("int64" if dtype == "int48" else dtype), hint, dtype)

    def conv2d(
        self,
        x: Tensor,
        weight: np.ndarray,
        bias: np.ndarray,
        *,
        pad: tuple[int, int, int, int],
        stride: tuple[int, int],
        dilation: tuple[int, int],
        input_zp: int,
        weight_zp: int,
        depthwise: bool = False,
    ) -> Tensor:
        """int8 or int16 NHWC `x`, int8 weight OHWI (depthwise: HWCM), bias [O]; NHWC out. Bias and sums are int32 or int48.

        `pad` is (top, bottom, left, right). The caller has seen to it that the strides divide exactly, as TOSA wants.
        """
        if depthwise:
            kh, kw, channels, multiplier = weight.shape
            out_channels = channels * multiplier
        else:
            out_channels, kh, kw, _ = weight.shape
        n, h, w, _ = x.shape
        sums = SUMS[x.dtype]
        oh = exact_output(h, kh, pad[0] + pad[1], stride[0], dilation[0])
        ow = exact_output(w, kw, pad[2] + pad[3], stride[1], dilation[1])
        return self._emit(
            "DEPTHWISE_CONV2D" if depthwise else "CONV2D",
            (x, *self._factors(weight, self._numbers(bias, sums, "bias"), weight_zp, self._zero_point(input_zp, x.dtype))),
            (n, oh, ow, out_channels),
            sums,
            (0, "int32s", pad),
            (1, "int32s", stride),
            (2, "int32s", dilation),
            (3, "bool", False),
            (4, "uint32", DTYPES[sums]),
        )

    def _factors(self, weight: np.ndarray, bias: Tensor, weight_zp: int, input_zp: Tensor) -> tuple[Tensor, ...]:
        """The operands of a convolution behind its input.

        Vela takes convolutions with equal weights for one, though their biases differ. The weights of a second one are
        moved, with their zero point, until they differ. Raises `CompileError` where they have all numbers of their type.
        """
        low, high = int(min(weight.min(initial=0), weight_zp)), int(max(weight.max(initial=0), weight_zp))
        for move in sorted(range(-128 - low, 128 - high), key=abs):
            moved = weight + np.int8(move)
            key = (moved.shape, sha256(moved.tobytes()).digest())
            other = self._biases.setdefault(key, bias)
            assert other.data is not None and bias.data is not None
            if np.array_equal(other.data, bias.data):
                return self.constant(moved, "weight"), bias, input_zp, self._zero_point(weight_zp + move, weight.dtype.name)
        raise CompileError("two convolutions have equal weights and other biases")

    def transpose_conv2d(
        self,
        x: Tensor,
        weight: np.ndarray,
        bias: np.ndarray,
        *,
        pad: tuple[int, int, int, int],
        stride: tuple[int, int],
        input_zp: int,
        weight_zp: int,
    ) -> Tensor:
        """As `conv2d`. `pad` (top, bottom, left, right) widens the result."""
        out_channels, kh, kw, _ = weight.shape
        n, h, w, _ = x.shape
        sums = SUMS[x.dtype]
        shape = (n, (h - 1) * stride[0] + pad[0] + pad[1] + kh, (w - 1) * stride[1] + pad[2] + pad[3] + kw, out_channels)
        return self._emit(
            "TRANSPOSE_CONV2D",
            (x, *self._factors(weight, self._numbers(bias, sums, "bias"), weight_zp, self._zero_point(input_zp, x.dtype))),
            shape,
            sums,
            (0, "int32s", pad),
            (1, "int32s", stride),
            (2, "bool", False),
            (3, "uint32", DTYPES[sums]),
        )

    def matmul(self, a: Tensor, b: Tensor, a_zp: int, b_zp: int) -> Tensor:
        """int8 or int16 (N, H, C) times (N, C, W), less their zero points: int32 or int48 (N, H, W)."""
        shape = (a.shape[0], a.shape[1], b.shape[2])
        return self._emit("MATMUL", (a, b, self._zero_point(a_zp, a.dtype), self._zero_point(b_zp, b.dtype)), shape, SUMS[a.dtype])

    def rescale(
        self,
        x: Tensor,
        dtype: str,
        multiplier: np.ndarray,
        shift: np.ndarray,
        *,
        input_zp: int = 0,
        output_zp: int = 0,
        per_channel: bool = False,
        input_unsigned: bool = False,
        output_unsigned: bool = False,
    ) -> Tensor:
        """`((x - input_zp) * multiplier + 2^(shift-1)) >> shift`, plus `output_zp`, saturated to `dtype`.

        Multipliers have 31 bits, for int48 15 bits; as many as shifts, 1 or those of the last axis. One rounding, half up.
        Zero points of unsigned tensors are given as unsigned numbers and stored in the same byte.
        """
        return self._emit(
            "RESCALE",
            (
                x,
                self.constant(multiplier.astype(np.int16 if x.dtype == "int48" else np.int32), "multiplier"),
                self.constant(shift.astype(np.int8), "shift"),
                self._zero_point(_as_signed(input_zp, input_unsigned), x.dtype),
                self._zero_point(_as_signed(output_zp, output_unsigned), dtype),
            ),
            x.shape,
            dtype,
            (0, "bool", x.dtype != "int48"),
            (1, "uint32", SINGLE_ROUND),
            (2, "bool", per_channel),
            (3, "bool", input_unsigned),
            (4, "bool", output_unsigned),
        )

    def max_pool2d(self, x: Tensor, kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int, int, int]) -> Tensor:
        """NHWC; `pad` is (top, bottom, left, right) and never wins; strides divide exactly."""
        n, h, w, c = x.shape
        oh = exact_output(h, kernel[0], pad[0] + pad[1], stride[0], 1)
        ow = exact_output(w, kernel[1], pad[2] + pad[3], stride[1], 1)
        return self._emit(
            "MAX_POOL2D",
            (x,),
            (n, oh, ow, c),
            x.dtype,
            (0, "int32s", kernel),
            (1, "int32s", stride),
            (2, "int32s", pad),
            (3, "uint32", _NAN_PROPAGATE),
        )

    def avg_pool2d(
        self,
        x: Tensor,
        kernel: tuple[int, int],
        input_zp: int,
        output_zp: int,
        *,
        stride: tuple[int, int] = (1, 1),
        pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> Tensor:
        """Averages of int8 numbers in NHWC, halves away from zero; `pad` (top, bottom, left, right) does not count."""
        n, h, w, c = x.shape
        oh = exact_output(h, kernel[0], pad[0] + pad[1], stride[0], 1)
        ow = exact_output(w, kernel[1], pad[2] + pad[3], stride[1], 1)
        return self._emit(
            "AVG_POOL2D",
            (x, self._zero_point(input_zp, x.dtype), self._zero_point(output_zp, x.dtype)),
            (n, oh, ow, c),
            x.dtype,
            (0, "int32s", kernel),
            (1, "int32s", stride),
            (2, "int32s", pad),
            (3, "uint32", DTYPES["int32"]),
        )

    def clamp(self, x: Tensor, low: int, high: int) -> Tensor:
        """Limits to [low, high], both of x's type."""
        dtype = np.dtype(x.dtype).newbyteorder("<")
        return self._emit(
            "CLAMP",
            (x,),
            x.shape,
            x.dtype,
            (0, "bytes", np.array([low], dtype).tobytes()),
            (1, "bytes", np.array([high], dtype).tobytes()),
            (2, "uint32", _NAN_PROPAGATE),
        )

    def binary(self, op: str, a: Tensor, b: Tensor, *, dtype: str | None = None) -> Tensor:
        """ADD, SUB, MAXIMUM, MINIMUM and others of tensors of one rank and type, with broadcasting.

        `dtype` is the result's where that is another one.
        """
        shape = np.broadcast_shapes(a.shape, b.shape)
        extra = ((0, "uint32", _NAN_PROPAGATE),) if op in ("MAXIMUM", "MINIMUM") else ()
        return self._emit(op, (a, b), shape, dtype or a.dtype, *extra)

    def select(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """`a` where a bool tensor holds, else `b`, with broadcasting."""
        return self._emit("SELECT", (condition, a, b), np.broadcast_shapes(condition.shape, a.shape, b.shape), a.dtype)

    def gather(self, x: Tensor, indices: Tensor) -> Tensor:
        """(N, K, C) at int32 indices (N, W) along the second axis: (N, W, C)."""
        return self._emit("GATHER", (x, indices), (x.shape[0], indices.shape[1], x.shape[2]), x.dtype)

    def scatter(self, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        """(N, K, C) with (N, W, C) in place of the entries at different int32 indices (N, W)."""
        return self._emit("SCATTER", (x, indices, updates), x.shape, x.dtype)

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """The low 32 bits of products of int32 tensors of one rank, with broadcasting."""
        shift = self.constant(np.zeros(1, np.int8), "shift")
        return self._emit("MUL", (a, b, shift), np.broadcast_shapes(a.shape, b.shape), a.dtype)

    def argmax(self, x: Tensor, axis: int) -> Tensor:
        """The first place of the largest number along an axis, which goes away; int32."""
        shape = [d for i, d in enumerate(x.shape) if i != axis]
        return self._emit("ARGMAX", (x,), shape, "int32", (0, "int32", axis), (1, "uint32", _NAN_PROPAGATE))

    def shift_right(self, a: Tensor, b: Tensor) -> Tensor:
        """int32 numbers by 0 to 31 bits, halves up, with broadcasting. Vela would round on U55 in any case."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        return self._emit("ARITHMETIC_RIGHT_SHIFT", (a, b), shape, a.dtype, (0, "bool", True))

    def shift_left(self, a: Tensor, b: Tensor) -> Tensor:
        """int32 numbers by 0 to 31 bits, with broadcasting; bits fall off the top."""
        return self.binary("LOGICAL_LEFT_SHIFT", a, b)

    def unary(self, op: str, x: Tensor) -> Tensor:
        """CLZ of an int32 tensor, LOGICAL_NOT of a bool one."""
        return self._emit(op, (x,), x.shape, x.dtype)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        """Truth values of numbers, or 0 and 1 of truth values."""
        return self._emit("CAST", (x,), x.shape, dtype)

    def reduce_sum(self, x: Tensor, axis: int) -> Tensor:
        """Sums of int32 along an axis, which stays with the extent 1."""
        shape = [1 if i == axis else d for i, d in enumerate(x.shape)]
        return self._emit("REDUCE_SUM", (x,), shape, x.dtype, (0, "int32", axis))

    def reduce_truth(self, op: str, x: Tensor, axis: int) -> Tensor:
        """REDUCE_ALL or REDUCE_ANY of bool along an axis, which stays with the extent 1."""
        shape = [1 if i == axis else d for i, d in enumerate(x.shape)]
        return self._emit(op, (x,), shape, x.dtype, (0, "int32", axis))

    def table(self, x: Tensor, entries: np.ndarray) -> Tensor:
        """`entries[x + 128]` of an int8 tensor: 256 int8 numbers."""
        return self._emit("TABLE", (x, self.constant(entries, "table")), x.shape, entries.dtype.name)

    def concat(self, xs: Sequence[Tensor], axis: int) -> Tensor:
        """Concatenation along `axis` (non-negative)."""
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return self._emit("CONCAT", xs, shape, xs[0].dtype, (0, "int32", axis))

    def pad(self, x: Tensor, padding: Sequence[tuple[int, int]], value: int) -> Tensor:
        """(before, after) for each axis, filled with `value`."""
        flat = [amount for pair in padding for amount in pair]
        shape = [d + a + b for d, (a, b) in zip(x.shape, padding)]
        fill = self.constant(np.array([value], x.dtype), "pad_value")
        return self._emit("PAD", (x, self.shape(flat), fill), shape, x.dtype)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in row-major order; nothing is emitted where the shape stays."""
        if tuple(shape) == x.shape:
            return x
        return self._emit("RESHAPE", (x, self.shape(shape)), shape, x.dtype)

    def slice(self, x: Tensor, start: Sequence[int], size: Sequence[int]) -> Tensor:
        """x[start : start + size] on every axis; nothing is emitted where it is the whole."""
        if tuple(size) == x.shape:
            return x
        return self._emit("SLICE", (x, self.shape(start), self.shape(size)), size, x.dtype)

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """Axis i of the result is axis perm[i] of x; nothing is emitted for the identity."""
        if list(perm) == list(range(len(perm))):
            return x
        return self._emit("TRANSPOSE", (x,), [x.shape[p] for p in perm], x.dtype, (0, "int32s", tuple(perm)))

    def identity(self, x: Tensor) -> Tensor:
        """A copy, for a graph output that is a graph input."""
        return self._emit("IDENTITY", (x,), x.shape, x.dtype)


def exact_output(size: int, kernel: int, padding: int, stride: int, dilation: int) -> int:
    """Output length of a window that TOSA requires to divide exactly."""
    span = size - 1 + padding - (kernel - 1) * dilation
    assert span >= 0 and span % stride == 0, (size, kernel, padding, stride, dilation)
    return span // stride + 1


def _as_signed(value: int, unsigned: bool) -> int:
    return value - 256 if unsigned and value > 127 else value
