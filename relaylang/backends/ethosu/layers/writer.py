"""The values of a region, their orders of axes, and what the writers of layers share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relaylang.backends.ethosu.layers.operands import Output, joined
from relaylang.backends.ethosu.tosa import Graph, Operator, Tensor
from relaylang.ir import Call, Constant, Expr, TensorType, Type, Var
from relaylang.partition.fixed_point import IDENTITY, Rescale

#: A padding: four numbers of rows and columns, in the order that each function says.
Sides = tuple[int, int, int, int]

#: Operators of which Vela makes copies of parts.
_MOVES = frozenset({"PAD", "CONCAT", "SLICE", "RESHAPE", "TRANSPOSE"})
CHANNELS_LAST = {"NCHW": (0, 2, 3, 1), "NHWC": (0, 1, 2, 3), "NC": (0, 1)}


@dataclass
class Value:
    """A Relay tensor inside the graph.

    `dtype` is Relay's type. `stored` has the tensor in each existing order of axes: axis i of `stored[perm]` is Relay's
    axis perm[i]. `flat` is set for a matrix that is a flattened NCHW tensor whose transposition is put off.
    """

    dtype: str
    stored: dict[tuple[int, ...], Tensor] = field(default_factory=dict)
    flat: Value | None = None

    @property
    def offset(self) -> int:
        """The difference of a number of the Relay tensor and the stored one."""
        return 128 if self.dtype == "uint8" else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Relay's shape."""
        if not self.stored:
            assert self.flat is not None
            first, *others = self.flat.shape
            return (first, math.prod(others))
        perm, tensor = next(iter(self.stored.items()))
        return tuple(tensor.shape[perm.index(axis)] for axis in range(len(perm)))


def as_stored(numbers: np.ndarray) -> np.ndarray:
    """Numbers of a Relay tensor as the graph holds them."""
    return (numbers.astype(np.int16) - 128).astype(np.int8) if numbers.dtype == np.uint8 else numbers


class Writer:
    """A graph under construction, and the values of Relay's nodes by their ids.

    `is_u85` says how the accelerator scales. The U85 adds operands of different scales in one operation. It scales int48
    sums by 15 bits, and Vela would join a longer rescale with them nevertheless.
    """

    def __init__(self, graph: Graph, is_u85: bool = False) -> None:
        self.graph = graph
        self.is_u85 = is_u85
        self.values: dict[int, Value | list[Value]] = {}

    # ---- edges

    def input(self, param: Var) -> Value:
        ty = param.checked_type or param.type_annotation
        assert isinstance(ty, TensorType)
        dtype = "int8" if ty.dtype == "uint8" else ty.dtype
        tensor = self.graph.input(param.name_hint, [int(d) for d in ty.shape], dtype)  # type: ignore[arg-type]
        if ty.dtype == "uint8":
            tensor = self.converted(tensor, "int8", input_zp=128, input_unsigned=True)
        return Value(ty.dtype, {tuple(range(len(ty.shape))): tensor})

    def value(self, node: Expr) -> Value:
        """The value of a node that is one tensor."""
        value = self.values[id(node)]
        assert isinstance(value, Value)
        return value

    def constant(self, node: Constant) -> Value:
        """A constant of the program."""
        stored = as_stored(node.data)
        return Value(node.data.dtype.name, {tuple(range(stored.ndim)): self.graph.constant(stored)})

    def number(self, value: int, rank: int = 4) -> Tensor:
        """An int32 number that is broadcast to tensors of `rank` axes."""
        return self.graph.constant(np.full((1,) * rank, value, np.int32), "number")

    def output(self, value: Value) -> None:
        tensor = self.in_order(value)
        if value.dtype == "uint8":
            # Vela joins a conversion from zero point 0 to the operator in front, whose numbers it then cuts at 127.
            tensor = self.converted(tensor, "int8", input_zp=1, output_zp=129, output_unsigned=True)
        if tensor.name in self.graph.inputs or tensor.name in self.graph.outputs:
            tensor = self.graph.identity(tensor)
        self.graph.output(tensor)

    # ---- orders of axes

    def in_order(self, value: Value, perm: tuple[int, ...] | None = None) -> Tensor:
        """The tensor with its axes in an order; in Relay's where none is given."""
        if value.flat is not None and not value.stored:
            flat = self.in_order(value.flat)
            value.stored[(0, 1)] = self.graph.reshape(flat, (flat.shape[0], int(np.prod(flat.shape[1:]))))
        have, tensor = next(iter(value.stored.items()))
        wanted = perm or tuple(range(len(have)))
        if wanted in value.stored:
            return value.stored[wanted]
        move = [have.index(axis) for axis in wanted]
        shape = [tensor.shape[m] for m in move]
        # Where the axes longer than 1 keep their order no byte moves.
        if [m for m in move if tensor.shape[m] > 1] == sorted(m for m in move if tensor.shape[m] > 1):
            moved = self.graph.reshape(tensor, shape)
        else:
            moved = self.graph.transpose(tensor, move)
        value.stored[wanted] = moved
        return moved

    def with_rank(self, value: Value, rank: int) -> Value:
        """The tensor with axes of extent 1 in front, as broadcasting wants."""
        missing = rank - len(value.shape)
        if not missing:
            return value
        tensor = self.graph.reshape(self.in_order(value), (*(1,) * missing, *value.shape))
        return Value(value.dtype, {tuple(range(rank)): tensor})

    def any_order(self, value: Value, last: int | None = None) -> tuple[tuple[int, ...], Tensor]:
        """The tensor in an order in which it exists. Relay's axis `last` comes last if given."""
        if value.flat is not None and not value.stored:
            self.in_order(value)
        for perm, tensor in value.stored.items():
            if last is None or perm[-1] == last:
                return perm, tensor
        assert last is not None
        rank = len(next(iter(value.stored)))
        perm = (*(axis for axis in range(rank) if axis != last), last)
        return perm, self.in_order(value, perm)

    def operands(self, at: Composite, nodes: Sequence[Expr]) -> tuple[tuple[int, ...], list[tuple[Tensor, Value]]]:
        """An order of axes, and operands in it that are broadcast to a composite's result, `Composite.broadcast`.

        They have as many axes. Of more than 4, neighbours are joined along which all operands are alike. Otherwise Vela reads
        a single number behind its end (U55, U65).
        """
        values = [at.operand(node) for node in nodes]
        rank = max(len(value.shape) for value in values)
        wide = [self.with_rank(value, rank) for value in values]
        kept = next((new for old, new in zip(values, wide) if old is new and old.shape == at.shape), wide[0])
        perm, _ = self.any_order(kept)
        tensors = [self.in_order(value, perm) for value in wide]
        if rank > 4:
            tensors = [self.graph.reshape(x, shape) for x, shape in zip(tensors, joined([x.shape for x in tensors]))]
        return perm, list(zip(tensors, wide))

    # ---- parts of layers

    def cut(self, x: Tensor, axis: int, first: int, count: int) -> Tensor:
        """Some neighbouring entries along an axis."""
        start = [first if i == axis else 0 for i in range(len(x.shape))]
        return self.graph.slice(x, start, [count if i == axis else d for i, d in enumerate(x.shape)])

    def fit(self, x: Tensor, pad: Sides) -> Tensor:
        """NHWC without the last rows and columns that a negative padding says no window reaches.

        Vela joins a slice of several images and the pad behind it with the window, whose padding moves as below. So such a
        slice is copied.
        """
        n, h, w, c = x.shape
        kept = self.graph.slice(x, (0, 0, 0, 0), (n, h + min(pad[2], 0), w + min(pad[3], 0), c))
        return kept if n == 1 or kept is x else self.graph.concat([kept], 1)

    def padded(self, x: Tensor, pad: Sides, zero: int, stride: tuple[int, int] = (1, 1)) -> tuple[Tensor, Sides]:
        """A window's input and padding, as TOSA has it, by axes. `pad` is (top, left, bottom, right).

        Vela splits operators on several images, and those of strides above 3. Of the parts, it moves padding from the top to
        the bottom, and from the left to the right. So such an operator's input is padded in front.
        """
        top, left, bottom, right = (max(p, 0) for p in pad)
        if (x.shape[0] > 1 or max(stride) > 3) and (top or left):
            x, top, bottom, left, right = self.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)], zero), 0, 0, 0, 0
        return self._behind_pad(x), (top, bottom, left, right)

    def _behind_pad(self, x: Tensor) -> Tensor:
        """The input of a convolution. Vela would join a pad with zeros in front, whatever the zero point and the images."""
        maker = self._maker(x, "RESHAPE")
        if maker is None or maker.op != "PAD":
            return x
        fill = self.graph.tensors[maker.inputs[2]].data
        return x if fill is None or fill.any() else self.held(x)

    def finish(self, x: Tensor, out: Output, input_zp: int = 0) -> Tensor:
        """The way out of a sum: rescale and saturate, then clamp. Channels are last."""
        if out.rescale is not None:
            x = self.rescale(x, out.rescale, out.dtype, input_zp)
        elif x.dtype == "int48":
            x = self.converted(x, out.dtype)
        return self.clamp(x, out)

    def clamp(self, x: Tensor, out: Output) -> Tensor:
        if out.clamp is None:
            return x
        offset = 128 if out.dtype == "uint8" else 0
        return self.graph.clamp(x, out.clamp[0] - offset, out.clamp[1] - offset)

    def converted(self, x: Tensor, dtype: str, **zero_points: Any) -> Tensor:
        """The numbers as another type of the graph, moved from one zero point to another."""
        multiplier, shift = (1 << 14, 14) if x.dtype == "int48" else IDENTITY
        if x.dtype == "int16":
            x = self.apart(x, per_channel=False)
        return self.graph.rescale(x, dtype, np.array([multiplier]), np.array([shift]), **zero_points)

    def _narrow(self, x: Tensor, rescale: Rescale) -> tuple[Tensor, Rescale]:
        """int48 sums as int32 numbers, perhaps doubled, and the rescale behind them: Vela joins no two real ones."""
        if not self.is_u85:
            return self.converted(x, "int32"), rescale
        doubled = self.graph.rescale(x, "int32", np.array([1 << 14]), np.array([13]))
        return doubled, replace(rescale, shifts=tuple([shift + 1 for shift in rescale.shifts]))

    def as_int32(self, x: Tensor) -> Tensor:
        """Stored numbers in int32."""
        return x if x.dtype == "int32" else self.converted(x, "int32")

    def apart(self, x: Tensor, per_channel: bool) -> Tensor:
        """A tensor that Vela does not join with a rescale behind it.

        Joined with one of scale 1 in front, saturation in between is lost. That holds for the parts of a pad or a
        concatenation, too. Parts of channels all get the scales of the first channels. On the U55 and U65, parts go to
        wrong places. The U85 reads a tensor of another shape, where a reshape is between.
        """
        maker, behind = self._maker(x, "CLAMP"), self._maker(x, "CLAMP", "RESHAPE")
        if x.dtype not in ("int8", "int16") or maker is None:
            return x
        is_one = behind is not None and behind.op == "RESCALE" and self._is_one(behind)
        has_parts = behind is not None and behind.op in ("CONCAT", "PAD")
        is_reshaped = self.is_u85 and self.graph.makers[x.name].op == "RESHAPE"
        return self.held(x) if is_one or has_parts or is_reshaped or (per_channel and maker.op in _MOVES) else x

    def table(self, x: Tensor, entries: np.ndarray) -> Tensor:
        """`entries[x + 128]`. On the U85 with a transposition in front, Vela loses another table, or crashes behind limits."""
        behind = self._maker(x, "TRANSPOSE", "RESHAPE")
        if self.is_u85 and behind is not None and behind is not self.graph.makers[x.name]:
            x = self.held(x)
        return self.graph.table(x, entries)

    def pad(self, x: Tensor, widths: Sequence[tuple[int, int]], value: int) -> Tensor:
        """(before, after) for each axis, filled with `value`.

        On the U55 and U65, Vela joins an operator in front, and writes parts of its numbers to wrong places.
        """
        return self.graph.pad(self.held(x) if x.name in self.graph.makers else x, widths, value)

    def _maker(self, x: Tensor, *through: str) -> Operator | None:
        """The operator that makes a tensor, or that is in front of others of these kinds; None for an input."""
        maker = self.graph.makers.get(x.name)
        while maker is not None and maker.op in through:
            maker = self.graph.makers.get(maker.inputs[0])
        return maker

    def held(self, x: Tensor) -> Tensor:
        """The tensor behind an operator that Vela joins to none: a pool of one element.

        On the U85 it takes several images as they are. Behind a reshape, other readers of `x` read bytes without values.
        """
        is_image = len(x.shape) == 4 and (self.is_u85 or x.shape[0] == 1)
        flat = x if is_image else self.graph.reshape(x, (1, math.prod(x.shape[:-1]), 1, x.shape[-1]))
        return self.graph.reshape(self.graph.max_pool2d(flat, (1, 1), (1, 1), (0, 0, 0, 0)), x.shape)

    def hold_shared(self) -> None:
        """Keep rescales and reshapes apart that are in front of several operators.

        Vela makes a rescale for each reader, which takes the shape behind the reshape for the one in front. So bytes are held
        in between, and numbers of int32 get their shape in front of the rescale.
        """
        graph = self.graph
        readers = Counter(name for operator in graph.operators for name in operator.inputs)
        written, graph.operators = graph.operators, []
        for operator in written:
            if operator.op == "RESHAPE" and readers[operator.outputs[0]] > 1:
                x = graph.tensors[operator.inputs[0]]
                maker = self._maker(x, "RESHAPE")
                if maker is not None and maker.op == "RESCALE":
                    graph.layer = x.name.partition("/")[0]
                    if x.dtype != "int32":
                        operator = replace(operator, inputs=(self.held(x).name, *operator.inputs[1:]))
                    elif not self._has_channels(maker):
                        source = graph.reshape(graph.tensors[maker.inputs[0]], graph.tensors[operator.outputs[0]].shape)
                        operator = replace(maker, inputs=(source.name, *maker.inputs[1:]), outputs=operator.outputs)
                    graph.makers[operator.outputs[0]] = operator
            graph.operators.append(operator)
        # Pools share constants with operators behind them.
        graph.operators.sort(key=lambda operator: not operator.op.startswith("CONST"))

    def _has_channels(self, rescale: Operator) -> bool:
        """Whether a rescale has several multipliers."""
        return math.prod(self.graph.tensors[rescale.inputs[1]].shape) > 1

    def _is_one(self, rescale: Operator) -> bool:
        """Whether a rescale cuts int32 numbers to narrower ones and leaves their scale."""
        x, multiplier, shift = (self.graph.tensors[name] for name in rescale.inputs[:3])
        assert multiplier.data is not None and shift.data is not None
        return x.dtype == "int32" and (multiplier.data.tolist(), shift.data.tolist()) == ([IDENTITY[0]], [IDENTITY[1]])

    def rescale(self, x: Tensor, rescale: Rescale, dtype: str, input_zp: int = 0) -> Tensor:
        """To a Relay type `dtype`; `input_zp` is that of the stored numbers. int48 ones fit 31 bits, or multipliers 15."""
        if x.dtype == "int48" and max(rescale.multipliers) >= 1 << 15:
            x, rescale = self._narrow(x, rescale)
        return self.graph.rescale(
            self.apart(x, len(rescale.shifts) > 1),
            "int8" if dtype == "uint8" else dtype,
            np.array(rescale.multipliers),
            np.array(rescale.shifts),
            input_zp=input_zp,
            output_zp=rescale.output_zp - (128 if dtype == "uint8" else 0),
            per_channel=len(rescale.shifts) > 1,
        )


@dataclass(frozen=True)
class Composite:
    """A composite's call: its own calls, producers first, the values of its parameters by their ids, and its type."""

    writer: Writer
    calls: Sequence[Call]
    inputs: Mapping[int, Value]
    type: Type | None

    @property
    def source(self) -> Value:
        """The value of the one parameter."""
        (value,) = self.inputs.values()
        return value

    @property
    def dtype(self) -> str:
        assert isinstance(self.type, TensorType)
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        assert isinstance(self.type, TensorType)
        return tuple(int(d) for d in self.type.shape)  # type: ignore[arg-type]

    def broadcast(self, dtype: str, perm: tuple[int, ...], out: Tensor) -> Value:
        """The value of a result of `Writer.operands`."""
        return Value(dtype, {perm: self.writer.graph.reshape(out, [self.shape[axis] for axis in perm])})

    def operand(self, node: Expr) -> Value:
        """The value of a parameter or constant."""
        return self.writer.constant(node) if isinstance(node, Constant) else self.inputs[id(node)]


#: Writes a layer, and returns the composite's value, or one for each field of a tuple.
Write = Callable[[Writer, Any, Composite], "Value | list[Value]"]
