"""A region as a TOSA graph.

TOSA wants NHWC and int8. A tensor is stored with its channels last where a layer asked for that. It is transposed back
where the region ends. A uint8 tensor is stored less 128, in int8. A rescale converts it at the region's edges, the one
place where TOSA knows unsigned numbers. The graph's inputs and outputs have the shapes, layouts and bytes that the
Relay function has.
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from relaylang.backends.ethosu.tosa import Graph, Tensor
from relaylang.ir import Call, Expr, Function, TensorType, Tuple, Var, post_order
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.fixed_point import IDENTITY, Rescale
from relaylang.partition.targets.ethos_u import layers, pools
from relaylang.partition.targets.ethos_u.table import READERS

#: A padding: four numbers of rows and columns, in the order that each function says.
Sides = tuple[int, int, int, int]

_CHANNELS_LAST = {"NCHW": (0, 2, 3, 1), "NHWC": (0, 1, 2, 3), "NC": (0, 1)}


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


def emit_region(func: Function, name: str) -> Graph:
    """The TOSA graph of a region function whose types have been found; its body consists of composite calls."""
    writer = _Writer(Graph(name, layer="input"))
    for param in func.params:
        writer.values[id(param)] = writer.input(param)
    for node in post_order(func.body):
        if isinstance(node, Call) and isinstance(node.op, Function):
            writer.composite(node)
    outputs = func.body.fields if isinstance(func.body, Tuple) else (func.body,)
    writer.graph.layer = "output"
    for out in outputs:
        writer.output(out)
    return writer.graph


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: dict[int, Value] = {}

    # ---- edges

    def input(self, param: Var) -> Value:
        ty = param.checked_type or param.type_annotation
        assert isinstance(ty, TensorType)
        dtype = "int8" if ty.dtype == "uint8" else ty.dtype
        tensor = self.graph.input(param.name_hint, [int(d) for d in ty.shape], dtype)  # type: ignore[arg-type]
        if ty.dtype == "uint8":
            tensor = self.graph.rescale(
                tensor, "int8", np.array([IDENTITY[0]]), np.array([IDENTITY[1]]), input_zp=128, input_unsigned=True
            )
        return Value(ty.dtype, {tuple(range(len(ty.shape))): tensor})

    def output(self, node: Expr) -> None:
        value = self.values[id(node)]
        tensor = self.in_order(value)
        if value.dtype == "uint8":
            # Vela joins a conversion from zero point 0 to the operator in front, whose numbers it then cuts at 127.
            tensor = self.graph.rescale(
                tensor, "int8", np.array([IDENTITY[0]]), np.array([IDENTITY[1]]), input_zp=1, output_zp=129, output_unsigned=True
            )
        if tensor.name in self.graph.inputs or tensor.name in self.graph.outputs:
            tensor = self.graph.identity(tensor)
        self.graph.output(tensor)

    # ---- orders of axes

    def in_order(self, value: Value, perm: tuple[int, ...] | None = None) -> Tensor:
        """The tensor with its axes in an order; in Relay's where none is given."""
        if value.flat is not None and not value.stored:
            whole = self.in_order(value.flat)
            value.stored[(0, 1)] = self.graph.reshape(whole, (whole.shape[0], int(np.prod(whole.shape[1:]))))
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

    # ---- layers

    def composite(self, call: Call) -> None:
        func = call.op
        assert isinstance(func, Function)
        name = composite_name(call) or ""
        place = f" line {call.span.line}" if call.span is not None and call.span.source.text else ""
        self.graph.layer = name.removeprefix("ethos-u.") + place
        layer = READERS[name]([node for node in composite_nodes(func) if isinstance(node, Call)])
        inputs = [self.values[id(arg)] for arg in call.args]
        ty = call.checked_type or func.ret_type
        assert isinstance(ty, TensorType)
        shape = tuple(int(d) for d in ty.shape)  # type: ignore[arg-type]
        match layer:
            case layers.Conv():
                value = self.conv(layer, inputs[0])
            case pools.Pool():
                value = self.pool(layer, inputs[0])
            case pools.AvgPool():
                value = self.average(layer, inputs[0])
            case layers.Add():
                value = self.add(layer, inputs[0], inputs[-1], len(shape))
            case layers.Concat():
                value = self.concat(layer, self.concat_inputs(func, inputs), ty.dtype)
            case layers.Pad():
                value = self.pad(layer, inputs[0])
            case layers.Elementwise():
                value = self.elementwise(layer, inputs[0])
            case _:
                value = self.reshape(inputs[0], shape)
        self.values[id(call)] = value

    def conv(self, layer: layers.Conv, source: Value) -> Value:
        graph = self.graph
        perm = _CHANNELS_LAST[layer.layout]
        weight, weight_zp = _as_int8(layer.weight, layer.weight_zp)
        depthwise = layer.depthwise and weight.shape[3] == 1
        if layer.depthwise and not depthwise:
            weight = _full(weight, weight_zp)
        if layer.layout == "NC":
            x, weight = self.matrix(source, weight)
        else:
            x = self.fit(self.in_order(source, perm), layer.pad)
        x, pad = self.padded(x, layer.pad, layer.input_zp - source.offset)
        out = graph.conv2d(
            x,
            weight,
            layer.bias,
            pad=pad,
            stride=layer.stride,
            dilation=layer.dilation,
            input_zp=layer.input_zp - source.offset,
            weight_zp=weight_zp,
            depthwise=depthwise,
        )
        out = self.finish(out, layer.out)
        if layer.layout == "NC":
            out = graph.reshape(out, (out.shape[1], out.shape[3]))
        return Value(layer.out.dtype, {perm: out})

    def matrix(self, source: Value, weight: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """A dense layer's input as (1, rows, 1, inputs) and its weight to match.

        A flattened NCHW tensor stays channels-last; the weight's columns are put in that order instead.
        """
        if source.flat is not None and not source.stored:
            n, h, w, c = _CHANNELS_LAST["NCHW"]
            x = self.in_order(source.flat, (n, h, w, c))
            rows, height, width, channels = x.shape
            columns = weight.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
            weight = np.ascontiguousarray(columns).reshape(weight.shape)
            return self.graph.reshape(x, (1, rows, 1, height * width * channels)), weight
        x = self.in_order(source)
        return self.graph.reshape(x, (1, x.shape[0], 1, x.shape[1])), weight

    def fit(self, x: Tensor, pad: Sides) -> Tensor:
        """NHWC without the last rows and columns that a negative padding says no window reaches."""
        n, h, w, c = x.shape
        return self.graph.slice(x, (0, 0, 0, 0), (n, h + min(pad[2], 0), w + min(pad[3], 0), c))

    def padded(self, x: Tensor, pad: Sides, zero: int) -> tuple[Tensor, Sides]:
        """A window's input and padding, as TOSA has it, by axes. `pad` is (top, left, bottom, right).

        Vela splits operators on several images. It then moves padding from the top to the bottom, and from the left to the
        right. So several images are padded in front.
        """
        top, left, bottom, right = (max(p, 0) for p in pad)
        if x.shape[0] > 1 and (top or left):
            return self.graph.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)], zero), (0, 0, 0, 0)
        return x, (top, bottom, left, right)

    def finish(self, x: Tensor, out: layers.Output, input_zp: int = 0) -> Tensor:
        """The way out of a sum: rescale and saturate, then clamp. Channels are last."""
        if out.rescale is not None:
            x = self.rescale(x, out.rescale, out.dtype, input_zp)
        return self.clamp(x, out)

    def clamp(self, x: Tensor, out: layers.Output) -> Tensor:
        if out.clamp is None:
            return x
        offset = 128 if out.dtype == "uint8" else 0
        return self.graph.clamp(x, out.clamp[0] - offset, out.clamp[1] - offset)

    def rescale(self, x: Tensor, rescale: Rescale, dtype: str, input_zp: int = 0) -> Tensor:
        """To a Relay type `dtype`; `input_zp` is that of the stored numbers."""
        return self.graph.rescale(
            x,
            "int8" if dtype == "uint8" else dtype,
            np.array(rescale.multipliers),
            np.array(rescale.shifts),
            input_zp=input_zp,
            output_zp=rescale.output_zp - (128 if dtype == "uint8" else 0),
            per_channel=len(rescale.shifts) > 1,
        )

    def pool(self, layer: pools.Pool, source: Value) -> Value:
        perm = _CHANNELS_LAST[layer.layout]
        x = self.fit(self.in_order(source, perm), layer.pad)
        x, pad = self.padded(x, layer.pad, -128)
        out = self.graph.max_pool2d(x, layer.kernel, layer.stride, pad)
        return Value(source.dtype, {perm: out})

    def average(self, layer: pools.AvgPool, source: Value) -> Value:
        """Sums whose rescale rounds down, and up where sums can be negative; see `pools`.

        Vela takes convolutions with equal weights for one, though their biases differ. So each direction has its own weight.
        """
        graph, window = self.graph, layer.window
        perm = _CHANNELS_LAST[window.layout]
        x = self.fit(self.in_order(source, perm), window.pad)
        x, pad = self.padded(x, window.pad, -source.offset)
        channels = x.shape[3]

        def divided(weight: int, rounding: int, dtype: str) -> Tensor:
            total = graph.conv2d(
                x,
                np.full((*window.kernel, channels, 1), weight, np.int8),
                np.full(channels, weight // 2 * rounding, np.int32),
                pad=pad,
                stride=window.stride,
                dilation=(1, 1),
                input_zp=-source.offset,
                weight_zp=0,
                depthwise=True,
            )
            return self.rescale(total, layer.division(weight), dtype)

        n = layer.numbers
        if layer.signed:
            zero = graph.constant(np.zeros((1, 1, 1, 1), np.int32), "zero")
            up = graph.binary("MINIMUM", divided(4, n - 1, "int32"), zero)
            average = graph.binary("MAXIMUM", divided(2, 1 - n, "int32"), up)
            average = self.rescale(average, Rescale((IDENTITY[0],), (IDENTITY[1],), 0), source.dtype)
        else:
            average = divided(2, 1 - n, source.dtype)
        zero_point = layer.out_input_zp - source.offset
        return Value(layer.out.dtype, {perm: self.finish(average, layer.out, zero_point)})

    def add(self, layer: layers.Add, left: Value, right: Value, rank: int) -> Value:
        perm, x = self.any_order(left)
        y = self.in_order(right, perm)
        sides = []
        for tensor, value, operand in ((x, left, layer.operands[0]), (y, right, layer.operands[1])):
            sides.append(self.rescale(tensor, operand.rescale, "int32", operand.input_zp - value.offset))
        total = self.graph.binary("ADD", sides[0], sides[1])
        back = Rescale((IDENTITY[0],), (IDENTITY[1],), layer.output_zp)
        out = self.clamp(self.rescale(total, back, layer.out.dtype), layer.out)
        return Value(layer.out.dtype, {perm: out})

    def concat_inputs(self, func: Function, inputs: list[Value]) -> list[Value]:
        """The values of the concatenated tuple's fields, one of which may stand there twice."""
        by_param = {id(param): value for param, value in zip(func.params, inputs)}
        calls = [node for node in composite_nodes(func) if isinstance(node, Call)]
        data = calls[-1].args[0]
        assert isinstance(data, Tuple)
        return [by_param[id(f)] for f in data.fields]

    def concat(self, layer: layers.Concat, inputs: list[Value], dtype: str) -> Value:
        perm, _ = self.any_order(inputs[0])
        parts = []
        for value, operand in zip(inputs, layer.operands):
            tensor = self.in_order(value, perm)
            if operand is not None:
                tensor = self.rescale(tensor, operand.rescale, dtype, operand.input_zp - value.offset)
            parts.append(tensor)
        out = parts[0] if len(parts) == 1 else self.graph.concat(parts, perm.index(layer.axis))
        return Value(dtype, {perm: out})

    def pad(self, layer: layers.Pad, source: Value) -> Value:
        perm, x = self.any_order(source)
        out = self.graph.pad(x, [layer.widths[axis] for axis in perm], layer.value - source.offset)
        return Value(source.dtype, {perm: out})

    def elementwise(self, layer: layers.Elementwise, source: Value) -> Value:
        rescale = layer.out.rescale
        perm, x = self.any_order(source, rescale.axis if rescale is not None else None)
        zero_point = layer.input_zp - source.offset if rescale is not None else 0
        return Value(layer.out.dtype, {perm: self.finish(x, layer.out, zero_point)})

    def reshape(self, source: Value, shape: tuple[int, ...]) -> Value:
        last = _CHANNELS_LAST["NCHW"]
        if len(shape) == 2 and last in source.stored and source.stored[last].shape[0] == shape[0]:
            if (0, 1, 2, 3) not in source.stored:
                return Value(source.dtype, {}, source)
        out = self.graph.reshape(self.in_order(source), shape)
        return Value(source.dtype, {tuple(range(len(shape))): out})


def _as_int8(weight: np.ndarray, zero_point: int) -> tuple[np.ndarray, int]:
    if weight.dtype == np.uint8:
        return (weight.astype(np.int16) - 128).astype(np.int8), zero_point - 128
    return np.ascontiguousarray(weight), zero_point


def _full(weight: np.ndarray, zero_point: int) -> np.ndarray:
    """The weight (OHWI) of a convolution that computes a depthwise one (HWCM) with several outputs for each channel.

    Vela splits such depthwise convolutions, and may give their outputs the order of a transposition that follows.
    """
    height, width, channels, several = weight.shape
    full = np.full((channels, several, height, width, channels), zero_point, np.int8)
    for channel in range(channels):
        full[channel, :, :, :, channel] = weight[:, :, channel].transpose(2, 0, 1)
    return full.reshape(channels * several, height, width, channels)
