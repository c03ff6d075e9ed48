"""One layer as a conversion sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.tflite.reader import Operator, Quantization, Tensor
from relaylang.ir import Expr, TensorType, type_text

if TYPE_CHECKING:
    from relaylang.frontends.tflite.importer import Graph, Importer

#: The axes that operands have, by operator and place. Others take any number, or their conversions ask.
RANKS: dict[str, dict[int, int]] = {
    "AVERAGE_POOL_2D": {0: 4},
    "CONV_2D": {0: 4, 1: 4},
    "CONV_3D": {0: 5, 1: 5},
    "CONV_3D_TRANSPOSE": {1: 5, 2: 5},
    "DEPTHWISE_CONV_2D": {0: 4, 1: 4},
    "DEPTH_TO_SPACE": {0: 4},
    "FULLY_CONNECTED": {1: 2},
    "L2_POOL_2D": {0: 4},
    "LOCAL_RESPONSE_NORMALIZATION": {0: 4},
    "MAX_POOL_2D": {0: 4},
    "RESIZE_BILINEAR": {0: 4},
    "RESIZE_NEAREST_NEIGHBOR": {0: 4},
    "RNN": {0: 2, 1: 2, 2: 2},
    "SPACE_TO_DEPTH": {0: 4},
    "SVDF": {0: 2, 1: 2, 2: 2},
    "TRANSPOSE_CONV": {1: 4, 2: 4},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {0: 3},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {0: 3, 1: 2, 2: 2},
    "BIDIRECTIONAL_SEQUENCE_LSTM": {0: 3},
    "BIDIRECTIONAL_SEQUENCE_RNN": {0: 3, 1: 2, 2: 2},
}
#: The schema's ActivationFunctionType: bounds that the result is held to.
_BOUNDS = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


class Listed(list[Any]):
    """The operands or results of a layer. A conversion that asks for one beyond them shows a wrong layer."""

    def __init__(self, what: str, values: Sequence[Any]) -> None:
        super().__init__(values)
        self.what = what

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            raise Malformed(f"the {self.what} {index} is missing: it has {len(self)}") from None


class Node:
    """A layer: operands as they are stored (`x`) or as real numbers (`real`), options, and the builder `b`.

    A quantised tensor is stored as integers. A conversion either computes with real numbers, which `result` quantises
    again, or with the integers, by the scales of `q` and `q_out`. With `part`, complex operands are one of their parts.
    """

    def __init__(self, importer: Importer, graph: Graph, operator: Operator, part: str = "") -> None:
        self.part = part
        self.importer = importer
        self.graph = graph
        self.operator = operator
        self.options = operator.options
        self.b: Builder = importer.builder
        self.ins: list[Tensor | None] = Listed("operand", [graph.tensors[i] if i >= 0 else None for i in operator.inputs])
        self.outs: list[Tensor] = Listed("result", [graph.tensors[i] for i in operator.outputs])

    def __len__(self) -> int:
        return len(self.ins)

    def has(self, index: int) -> bool:
        """Whether the operand is given."""
        return index < len(self.ins) and self.ins[index] is not None

    def x(self, index: int) -> Any:
        """An operand as it is stored."""
        tensor = self.ins[index]
        if tensor is None:
            raise Malformed(f"the operand {index} is missing")
        value = self.graph.value(tensor)
        return getattr(value, self.part) if self.part and isinstance(value, Complex) else value

    def assign(self, index: int, value: Expr) -> None:
        """Give a variable tensor, an operand, its value for the next call."""
        tensor = self.ins[index]
        if tensor is None or not tensor.is_variable:
            raise Unsupported(f"the operand {index} is not a variable")
        self.importer.assign([self.graph.variable(tensor)], [value])

    def real(self, index: int) -> Any:
        """An operand as real numbers: dequantised where it is quantised."""
        q = self.q(index)
        return self.x(index) if q is None else self.dequantized(self.x(index), q)

    def numbers(self, index: int) -> Any:
        """The stored numbers of an operand, as real ones."""
        return self.b.op("qnn.dequantize", self.x(index), *self._plain(), out_dtype="float32")

    def stored(self, numbers: Expr, index: int = 0) -> Any:
        """Real numbers in the type of a result, halves rounded away from zero."""
        return self.b.op("qnn.quantize", numbers, *self._plain(), out_dtype=self.out_dtype(index))

    def _plain(self) -> tuple[Expr, Expr]:
        """The scale 1 and the zero point 0."""
        return self.b.const(np.float32(1)), self.b.const(np.int32(0))

    def q(self, index: int) -> Quantization | None:
        """An operand's scales; None for one that is not quantised."""
        tensor = self.ins[index]
        return tensor.quantization if tensor is not None and _is_quantized(tensor) else None

    def q_out(self, index: int = 0) -> Quantization | None:
        """A result's scales; None for one that is not quantised."""
        return self.outs[index].quantization if _is_quantized(self.outs[index]) else None

    def intermediate(self, index: int) -> Quantization | None:
        """The scales of a value inside of the layer; None where the file leaves them out."""
        tensors = self.operator.intermediates
        place = tensors[index] if index < len(tensors) else -1
        return self.graph.tensors[place].quantization if place >= 0 else None

    def out_dtype(self, index: int = 0) -> str:
        """A result's element type."""
        return self.outs[index].dtype

    def out_shape(self, index: int = 0) -> list[int]:
        """A result's extents as the file states them; -1 for unknown ones."""
        return list(self.outs[index].shape)

    def refined(self, made: Expr, index: int = 0) -> Expr:
        """A result with the extents that the file states, where others are not known. Other inputs may change them."""
        shape = self.out_shape(index)
        if self.b.options.shapes or len(shape) != self.b.rank(made):
            return made
        return self.b.refine(made, [d if d > 0 else None for d in shape])

    def dequantized(self, x: Expr, q: Quantization) -> Any:
        """Real numbers of stored ones. A constant is computed now."""
        value = self.b.value(x)
        if value is not None:
            shape = [-1 if i == q.axis else 1 for i in range(value.ndim)] if not q.per_tensor else [1] * value.ndim
            scales, zeros = q.scales.reshape(shape), q.zero_points.reshape(shape)
            return self.b.const(((value.astype(np.int64) - zeros) * scales).astype(np.float32))
        scale, zero = self.pair(q)
        return self.b.op("qnn.dequantize", x, scale, zero, axis=q.axis, out_dtype="float32")

    def pair(self, q: Quantization) -> tuple[Expr, Expr]:
        """Scale and zero point as Relay's operators take them: scalars, or vectors along the axis."""
        scales, zeros = q.scales, q.zero_points.astype(np.int32)
        if q.per_tensor:
            return self.b.const(scales.reshape(())), self.b.const(zeros.reshape(()))
        return self.b.const(scales), self.b.const(zeros)

    def result(self, real: Expr, index: int = 0, activation: bool = True) -> Any:
        """A result of real numbers as it is stored, behind the layer's fused activation."""
        if activation:
            real = self.activated(real)
        q, dtype = self.q_out(index), self.out_dtype(index)
        if q is None:
            return self.b.cast(real, dtype) if dtype == "float16" else real
        scale, zero = self.pair(q)
        return self.b.op("qnn.quantize", real, scale, zero, axis=q.axis, out_dtype=dtype)

    def activated(self, real: Expr) -> Any:
        """Real numbers behind the layer's fused activation."""
        kind = self.options.get("fused_activation_function", 0)
        if kind == 0:
            return real
        if kind == 1:
            return self.b.op("nn.relu", real)
        if kind in _BOUNDS:
            low, high = _BOUNDS[kind]
            return self.b.op("clip", real, a_min=low, a_max=high)
        if kind == 4:
            return self.b.op("tanh", real)
        raise Unsupported("its fused activation gives sign bits")

    def range_of(self, index: int = 0) -> tuple[int, int]:
        """The stored numbers that the fused activation allows, for a quantised result."""
        q, info = self.q_out(index), np.iinfo(self.out_dtype(index))
        low, high = _BOUNDS.get(self.options.get("fused_activation_function", 0), (None, None))
        assert q is not None
        scale, zero = float(q.scales[0]), int(q.zero_points[0])
        least = info.min if low is None else max(info.min, zero + round(low / scale))
        return least, info.max if high is None else min(info.max, zero + round(high / scale))

    def held(self, made: Expr, index: int = 0) -> Any:
        """Stored numbers, held to those that the fused activation allows."""
        least, most = self.range_of(index)
        info = np.iinfo(self.out_dtype(index))
        return made if (least, most) == (info.min, info.max) else self.b.op("clip", made, a_min=float(least), a_max=float(most))

    def same_scales(self, index: int = 0, out: int = 0) -> bool:
        """Whether an operand and a result are stored alike, so that moving elements needs no arithmetic."""
        return _alike(self.q(index), self.q_out(out))

    def flexible_options(self) -> dict[str, Any]:
        """The options of a custom operator that are a map of flexbuffers."""
        from flatbuffers import flexbuffers

        try:
            options = flexbuffers.Loads(self.operator.custom)
        except Exception:  # flexbuffers checks nothing, and fails in many ways
            raise Unsupported("its options cannot be read") from None
        if not isinstance(options, dict):
            raise Unsupported("its options are no map")
        return options

    def ints(self, index: int, what: str, count: int | None = None) -> list[int]:
        """A constant operand of whole numbers; `count` of them where it is given."""
        values = self.b.need_ints(self.x(index), what)
        if count is not None and len(values) != count:
            raise Malformed(f"{what} has {len(values)} numbers; it must have {count}")
        return values

    def listed(self, name: str, count: int, default: Sequence[int] | None = None) -> list[int]:
        """An option that is a list of so many numbers; the default where it is empty."""
        values = list(self.options[name] or default or ())
        if len(values) != count:
            raise Malformed(f"the option {name} has {len(values)} numbers; it must have {count}")
        return values

    def axis(self, value: int, rank: int, name: str) -> int:
        """An axis of so many, counted from the first. Raises `Malformed` for another."""
        if not -rank <= value < rank:
            raise Malformed(f"the option {name} has the axis {value} of {rank}")
        return value % rank

    def axes(self, name: str, rank: int, count: int | None = None) -> list[int]:
        """An option that is a list of different axes; `count` of them where it is given."""
        values = [self.axis(v, rank, name) for v in self.options[name]]
        if len(set(values)) != len(values) or count not in (None, len(values)):
            raise Malformed(f"the option {name} is {values}; it must have {len(values) if count is None else count} different axes")
        return values

    def wrong_form(self) -> str:
        """The mistake in the axes and scales of the operands, by the table of what operators need; "" for nothing."""
        for index, rank in RANKS.get(self.operator.name, {}).items():
            value = self.graph.value(tensor) if self.has(index) and (tensor := self.ins[index]) is not None else None
            if isinstance(value, Expr) and isinstance(value.checked_type, TensorType) and len(value.checked_type.shape) != rank:
                return f"the operand {index} has the type `{type_text(value.checked_type)}`; it must have {rank} axes"
        for what, tensors in (("operand", self.ins), ("result", self.outs)):
            for index, tensor in enumerate(tensors):
                q = tensor.quantization if tensor is not None and _is_quantized(tensor) else None
                if tensor is None or q is None or q.per_tensor:
                    continue
                if not 0 <= q.axis < len(tensor.shape):
                    return f"the {what} {index} has scales along the axis {q.axis} of {len(tensor.shape)}"
                if tensor.shape[q.axis] not in (-1, q.scales.size):
                    return f"the {what} {index} has {q.scales.size} scales for {tensor.shape[q.axis]} channels"
        return ""


def _is_quantized(tensor: Tensor) -> bool:
    return tensor.quantization is not None and tensor.dtype in ("int8", "uint8", "int16", "int32", "int64", "int4")


def _alike(left: Quantization | None, right: Quantization | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left.scales, right.scales) and np.array_equal(left.zero_points, right.zero_points)


__all__ = ["Complex", "Node"]
