"""The C of a region for CMSIS-NN: constants, and a call of one of its functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from relaylang.backends.bare_metal.cmsis_layers import LEFT, Dense, LimitedPool, Softmax, layer_of
from relaylang.backends.bare_metal.rom import head, stored
from relaylang.backends.ethosu.layers.arithmetic import Product, Sum
from relaylang.backends.ethosu.layers.convolutions import Conv
from relaylang.backends.ethosu.layers.operands import RANGES, Output, tensor_of
from relaylang.ir import Call, Constant, Expr, Function, Var
from relaylang.partition.composites import composite_nodes
from relaylang.partition.fixed_point import Rescale, multiplier_and_shift
from relaylang.runtime.external import Code, Region

#: CMSIS-NN's header, which is the user's, and the macro with which it rounds as Relay does.
HEADER = "arm_nnfunctions.h"
SINGLE_ROUNDING = "CMSIS_NN_USE_SINGLE_ROUNDING"
#: The channels that its depthwise convolution has in memory at once, on processors with vectors.
_BLOCK = 124
#: A multiplier and a shift that leave a number as it is.
_ONE = (1 << 30, 1)


@dataclass
class _Writer:
    """The parts of a region's C. `operands` are its inputs in C; `workspace` are the bytes of memory that it needs.

    The program's names begin with `prefix`. `dtype` is that of the operands and of the result.
    """

    prefix: str
    dtype: str
    operands: list[str]
    shapes: list[tuple[int, ...]]
    shape: tuple[int, ...]
    constants: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    workspace: int = 0
    constant_bytes: int = 0

    @property
    def suffix(self) -> str:
        """What the names of functions end with."""
        return self.dtype.replace("int", "s")

    def constant(self, name: str, values: np.ndarray) -> None:
        content = np.ascontiguousarray(values).tobytes()
        self.constants.append(stored(self.prefix, name, content))
        self.constant_bytes += len(content)

    def dims(self, name: str, *numbers: int) -> None:
        self.lines.append(f"const cmsis_nn_dims {name} = {{{', '.join(map(str, numbers))}}};")

    def call(self, function: str, *arguments: str) -> None:
        self.lines.append(f"return {function}({', '.join(arguments)}) == ARM_CMSIS_NN_SUCCESS ? 0 : 1;")

    # --- layers ---

    def conv(self, layer: Conv) -> None:
        kind = "dw_conv" if layer.depthwise else "conv"
        function = "arm_depthwise_conv_wrapper_s8" if layer.depthwise else "arm_convolve_wrapper_s8"
        kh, kw = layer.weight.shape[:2] if layer.depthwise else layer.weight.shape[1:3]
        channels, out_channels = self.shapes[0][3], self.shape[3]
        params = [
            f".input_offset = {-layer.input_zp}",
            f".output_offset = {_zero_point(layer.out)}",
            *([f".ch_mult = {layer.weight.shape[3]}"] if layer.depthwise else []),
            *(
                f".{name} = {{.h = {h}, .w = {w}}}"
                for name, (h, w) in (("stride", layer.stride), ("padding", layer.pad[:2]), ("dilation", layer.dilation))
            ),
            f".activation = {{{self.limits(layer.out)}}}",
        ]
        self.lines.append(f"const cmsis_nn_{kind}_params params = {{{', '.join(params)}}};")
        self.dims("input", *self.shapes[0])
        self.dims("filter", *((1, kh, kw, out_channels) if layer.depthwise else layer.weight.shape))
        self.dims("bias", 1, 1, 1, out_channels)
        self.dims("output", *self.shape)
        self._weights(layer)
        self._channels(layer, out_channels)
        self.workspace = _workspace(layer, channels, kh, kw)
        self.lines.append(f"if ({function}_get_buffer_size(&params, &input, &filter, &output) > {self.workspace}) return 1;")
        self.lines.append(f"const cmsis_nn_context context = {{workspace, {self.workspace}}};")
        self._call_filter(function)

    def dense(self, layer: Conv) -> None:
        units, inputs = layer.weight.shape[0], layer.weight.size // layer.weight.shape[0]
        params = [
            f".input_offset = {-layer.input_zp}",
            ".filter_offset = 0",
            f".output_offset = {_zero_point(layer.out)}",
            f".activation = {{{self.limits(layer.out)}}}",
        ]
        self.lines.append(f"const cmsis_nn_fc_params params = {{{', '.join(params)}}};")
        self.dims("input", self.shape[0], 1, 1, inputs)
        self.dims("filter", inputs, 1, 1, units)
        self.dims("bias", 1, 1, 1, units)
        self.dims("output", self.shape[0], 1, 1, units)
        self._weights(layer)
        # The sums of `arm_vector_sum_s8`, which processors with vectors read.
        sums = layer.weight.reshape(units, -1).sum(1, dtype=np.int64)
        self.constant("sums", (layer.bias - layer.input_zp * sums).astype(np.int32))
        self.lines.append(f"const cmsis_nn_context context = {{(void*)sums, {4 * units}}};")
        assert layer.out.rescale is not None
        several = len(layer.out.rescale.shifts) > 1
        if several:
            self._channels(layer, units)
        else:
            multiplier, shift = _one(layer.out.rescale)
            self.lines.append(f"const cmsis_nn_per_tensor_quant_params channels = {{{multiplier}, {shift}}};")
        self._call_filter("arm_fully_connected_per_channel_s8" if several else "arm_fully_connected_s8")

    def _call_filter(self, function: str) -> None:
        """Call a function of weights and biases, whose structures are defined."""
        structures = ("&context", "&params", "&channels")
        weights = ("&filter", "(const int8_t*)weights", "&bias", "(const int32_t*)biases")
        self.call(function, *structures, "&input", self.operands[0], *weights, "&output", "out0")

    def _weights(self, layer: Conv) -> None:
        self.constant("weights", layer.weight.astype(np.int8))
        self.constant("biases", layer.bias.astype(np.int32))

    def _channels(self, layer: Conv, count: int) -> None:
        """The multipliers and shifts of channels."""
        rescale = layer.out.rescale
        assert rescale is not None
        self.constant("multipliers", np.broadcast_to(np.array(rescale.multipliers, np.int32), (count,)))
        self.constant("shifts", np.broadcast_to(31 - np.array(rescale.shifts, np.int32), (count,)))
        self.lines.append("const cmsis_nn_per_channel_quant_params channels = {(int32_t*)multipliers, (int32_t*)shifts};")

    def pool(self, layer: LimitedPool) -> None:
        pool, channels = layer.pool, self.shapes[0][3]
        params = [f".{name} = {{.h = {h}, .w = {w}}}" for name, (h, w) in (("stride", pool.stride), ("padding", pool.pad[:2]))]
        self.lines.append(f"const cmsis_nn_pool_params params = {{{', '.join(params)}, .activation = {{{_pair(layer.clamp)}}}}};")
        self.dims("input", *self.shapes[0])
        self.dims("filter", 1, *pool.kernel, 1)
        self.dims("output", *self.shape)
        function = f"arm_{'avgpool' if layer.average else 'max_pool'}_{self.suffix}"
        if layer.average:
            self.workspace = 4 * channels
            self.lines.append(f"if ({function}_get_buffer_size({self.shape[2]}, {channels}) > {self.workspace}) return 1;")
        context = f"workspace, {self.workspace}" if layer.average else "0, 0"
        self.lines.append(f"const cmsis_nn_context context = {{{context}}};")
        self.call(function, "&context", "&params", "&input", self.operands[0], "&filter", "&output", "out0")

    def softmax(self, layer: Softmax) -> None:
        """Numbers less the largest of their row. Those of int8 have 5 bits before the point; of int16, parts of 10 / 65535."""
        row = self.shape[-1]
        rows = int(np.prod(self.shape[:-1]))
        wide = self.dtype == "int16"
        ratio = layer.scale * 6553.5 if wide else min(layer.scale * 2.0**26, 2.0**31 - 1)
        multiplier, right = multiplier_and_shift(ratio)
        shift = 31 - right
        operands = [self.operands[0], *map(str, (rows, row, multiplier, shift))]
        if not wide:
            self.lines.append(f"arm_softmax_s8({', '.join([*operands, str(-((31 << 26) >> shift)), 'out0'])});")
            self.lines.append("return 0;")
            return
        for name, values in (("exponents", _EXPONENTS), ("reciprocals", _RECIPROCALS)):
            self.constant(name, values)
        self.lines.append("const cmsis_nn_softmax_lut_s16 tables = {(const int16_t*)exponents, (const int16_t*)reciprocals};")
        self.call("arm_softmax_s16", *operands, "&tables", "out0")

    def sum(self, layer: Sum) -> None:
        numbers, left = [], LEFT[self.dtype]
        for operand in layer.operands:
            multiplier, shift = _one(operand.rescale)
            numbers += [-operand.input_zp, multiplier, shift - left]
        self.call(
            f"arm_elementwise_add_{self.suffix}",
            *self.operands,
            *map(str, numbers),
            str(left),
            "out0",
            str(layer.output_zp),
            *map(str, _ONE),
            self.limits(layer.out),
            str(int(np.prod(self.shape))),
        )

    def product(self, layer: Product) -> None:
        assert layer.out.rescale is not None
        multiplier, shift = _one(layer.out.rescale)
        numbers = [_zero_point(layer.out), multiplier, shift]
        self.call(
            f"arm_elementwise_mul_{self.suffix}",
            *self.operands,
            *(str(-zp) for zp in layer.zero_points),
            "out0",
            *map(str, numbers),
            self.limits(layer.out),
            str(int(np.prod(self.shape))),
        )

    def limits(self, out: Output) -> str:
        return _pair(out.clamp or RANGES[self.dtype])


def _table(function: Callable[[np.ndarray], np.ndarray], first: float, last: float) -> np.ndarray:
    """513 numbers in parts of 2^15, between which CMSIS-NN interpolates.

    A chord lies above a convex function. So half of its distance is taken off.
    """
    x = np.linspace(first, last, 513)
    y = function(x)
    half = (x[1] - x[0]) / 2
    bulge = (y + function(x + 2 * half)) / 2 - function(x + half)
    return (y - bulge / 2) * 2**15


_EXPONENTS = np.minimum(np.round(_table(np.exp, -10.0, 10 / 65535)), 2**15 - 1).astype(np.int16)
#: Too small by one: CMSIS-NN does not saturate, and a product of 1 would become -1.
_RECIPROCALS = (np.floor(_table(lambda x: 1 / (1 + x), 0.0, 1.0)) - 1).astype(np.int16)


def _one(rescale: Rescale) -> tuple[int, int]:
    """The multiplier and the shift to the left of a rescale with one scale."""
    return rescale.multipliers[0], 31 - rescale.shifts[0]


def _zero_point(out: Output) -> int:
    assert out.rescale is not None
    return out.rescale.output_zp


def _pair(clamp: tuple[int, int]) -> str:
    return f"{clamp[0]}, {clamp[1]}"


def _workspace(layer: Conv, channels: int, kh: int, kw: int) -> int:
    """Bytes that suffice on every processor: with vectors, with the DSP extension, and without both."""
    window = kh * kw * (1 if layer.depthwise else channels)
    # Four windows of whole vectors, or two windows of int16; and one row with its padding.
    unfolded = max(4 * -(-window // 16) * 16, (kw + layer.pad[1] + layer.pad[3] + 1) * channels)
    if not layer.depthwise:
        return unfolded
    im2col = unfolded + layer.weight.size if channels == 1 else 0
    return max(2 * channels * kh * kw, 4 * _BLOCK * kh * kw, im2col)


def region_source(prefix: str, region: Region) -> Code:
    """The C of a region that consists of one composite's call. The program's names begin with `prefix`."""
    composite = region.function.body
    assert isinstance(composite, Call) and isinstance(composite.op, Function)
    layer = layer_of(composite, approximate=True)  # `partitioned` has refused what may not differ
    first = next(node for node in composite_nodes(composite.op) if isinstance(node, Call))
    bindings = dict(zip(composite.op.params, composite.args))
    data = [bindings[arg] for arg in first.args[: 2 if isinstance(layer, (Sum, Product)) else 1] if isinstance(arg, Var)]
    numbers = {id(param): n for n, param in enumerate(region.function.params)}
    shape = _shape(composite)
    dtype = tensor_of(composite, "its result").dtype
    writer = _Writer(prefix, dtype, [], [_shape(arg) for arg in data], shape)
    for n, arg in enumerate(data):
        if isinstance(arg, Constant):
            writer.constant(f"side{n}", np.broadcast_to(arg.data, shape))
            writer.operands.append(f"(const {dtype}_t*)side{n}")
        else:
            writer.operands.append(f"in{numbers[id(arg)]}")
    match layer:
        case Conv():
            writer.conv(layer)
        case Dense():
            writer.dense(layer.conv)
        case LimitedPool():
            writer.pool(layer)
        case Softmax():
            writer.softmax(layer)
        case Sum():
            writer.sum(layer)
        case Product():
            writer.product(layer)
    params = [f"const {dtype}_t* in{n}" for n in numbers.values()]
    params += [f"{dtype}_t* out0", *["void* workspace"] * bool(writer.workspace)]
    signature = f"int32_t {region.symbol}({', '.join(params)})"
    source = "\n".join(
        [
            f"// {region.symbol}, made by relaylang",
            f"#ifndef {SINGLE_ROUNDING}",
            f'#error "compile CMSIS-NN and this file with -D{SINGLE_ROUNDING}: Relay rounds once"',
            "#endif",
            "#include <stdint.h>",
            f'#include "{HEADER}"',
            head(prefix),
            "",
            *writer.constants,
            "",
            f"{signature};",
            f"{signature} {{",
            *(f"  {line}" for line in writer.lines),
            "}",
            "",
        ]
    )
    return Code(source=source, workspace=writer.workspace, constant_bytes=writer.constant_bytes)


def _shape(expr: Expr) -> tuple[int, ...]:
    return tuple(int(extent) for extent in tensor_of(expr, "a tensor").shape)  # type: ignore[arg-type]


__all__ = ["HEADER", "SINGLE_ROUNDING", "region_source"]
