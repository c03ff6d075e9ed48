"""Random regions of every operator that the Ethos-U backend takes, with hostile shapes, weights and scales.

A row of `ROWS` is a function that puts a layer behind a network's value. One of `ENDS` may stand at the end alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, IRModule, Tuple
from relaylang.typing import check
from tests.backends.ethosu.networks import RANGE, Builder, call, fields, random_input


class Region(Builder):
    """A builder whose draws go to the limits."""

    def __init__(self, seed: int) -> None:
        is_wide = np.random.default_rng([seed, 1]).integers(4) == 0
        super().__init__(seed, ("int16", "int16", "int8") if is_wide else ("int8", "uint8"))
        if self.pick(0, 0, 1):  # stored as 0, which tools may take for none
            self.zero_point = 128 if self.dtype == "uint8" else 0

    def input_sizes(self) -> dict[str, int]:
        kind = self.pick("plain", "plain", "deep", "wide", "row")
        most = {"plain": (8, 13, 13), "deep": (70, 6, 6), "wide": (6, 30, 40), "row": (20, 1, 60)}[kind]
        return {"N": self.pick(1, 1, 1, 2, 3), **{axis: self.number(1, extent) for axis, extent in zip("CHW", most)}}

    def weights(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        if dtype != "int8" or self.pick(0, 1):
            return super().weights(shape, dtype)
        return some_weights(self.rng, tuple(shape))

    def scale(self, top: float, count: int | None = None) -> np.ndarray:
        """Now and then far too large or too small, or a power of two, whose products have halves."""
        found, kind = super().scale(top, count), self.number(0, 15)
        if kind == 0:
            return np.asarray(found * np.float32(10.0 ** self.number(-7, 5)), np.float32)
        if kind == 1:
            return np.exp2(np.round(np.log2(found))).astype(np.float32)
        return found

    def window(self) -> dict[str, Any]:
        found = super().window()
        if self.pick(0, 0, 1):
            found["pool_size"] = [self.number(1, min(12, self.extent(a))) for a in "HW"]
            found["strides"] = [self.number(1, 9) for _ in "HW"]
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the value."""
        return tuple(self.value.checked_type.shape)  # type: ignore[union-attr]


def some_weights(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """int8 weights of any kind, of few values, with many zeros, or with two zeros in each four."""
    values = rng.integers(-127, 128, shape)
    kind = rng.integers(5)
    if kind in (1, 2):
        values = rng.choice(rng.integers(-127, 128, (0, 3, 12)[kind]), shape)
    elif kind == 3:
        values = np.where(rng.random(shape) < 0.8, 0, values)
    elif kind == 4 and shape[-1] % 4 == 0:
        fours = values.reshape(-1, 4)
        values = np.where(np.argsort(rng.random(fours.shape), 1) < 2, fours, 0).reshape(shape)
    return values.astype("int8")


# ---- products


def window(b: Region, most: int) -> dict[str, list[int]]:
    """Kernel, strides, dilation and padding that fit."""
    kernel, dilation, before, after = [], [], [], []
    for axis in "HW":
        extent = b.extent(axis)
        size = b.number(1, most)
        pads = [b.number(0, size - 1) if b.pick(0, 1) else 0 for _ in range(2)]
        size = min(size, extent + sum(pads))
        spread = b.pick(1, 1, 2, 3, 4) if (size - 1) * 4 < extent + sum(pads) else 1
        kernel.append(size)
        dilation.append(spread)
        before.append(pads[0])
        after.append(pads[1])
    strides = [b.pick(1, 1, 2, 3, b.number(1, 9)) for _ in "HW"]
    return {"kernel": kernel, "dilation": dilation, "padding": before + after, "strides": strides}


def convolution(b: Region) -> None:
    """Of any window, regular, grouped or depthwise."""
    channels = b.extent("C")
    divisors = [n for n in range(2, channels + 1) if channels % n == 0] or [1]
    groups = b.pick(1, 1, b.pick(*divisors), channels)
    out = groups * (b.number(1, 3) if groups > 1 else b.pick(b.number(1, 8), b.number(1, 80)))
    drawn = window(b, b.pick(3, 3, 5, 12))
    height, width = drawn.pop("kernel")
    sizes = {"O": out, "I": channels // groups, "H": height, "W": width}
    terms = height * width * channels // groups
    b.product("qnn.conv2d", sizes, b.pick("OIHW", "HWIO"), out, terms, groups=groups, **drawn)


def matrices(b: Region) -> None:
    """A product of the value and itself, as batches of matrices."""
    if b.is_wide:
        clip(b)
        return
    images, *rest = b.shape
    rows = b.pick(rest[0], rest[0] * rest[1])
    flat = call("reshape", b.value, newshape=[images, rows, -1])
    inner = flat.checked_type.shape[2]  # type: ignore[union-attr]
    other = call("clip", flat, a_min=float(RANGE[b.dtype][0] + 1), a_max=float(RANGE[b.dtype][1]))
    turned = bool(b.pick(0, 1))
    scale = np.float32(0.1)
    summed = call(
        "qnn.batch_matmul",
        flat,
        other,
        b.zero_point,
        b.number(*RANGE[b.dtype]),
        scale,
        scale,
        out_dtype="int32",
        transpose_a=turned,
        transpose_b=not turned,
    )
    side, dtype, b.zero_point = inner if turned else rows, b.pick("int8", "uint8"), 3
    if side > 70:
        return
    made = b.requantized(summed, dtype, 3, 0.02 / inner**0.5, 1, 0)
    b.value = call("reshape", made, newshape=[images, 1, side, side])


# ---- shapes


def reshape(b: Region) -> None:
    """To other extents, or through other ranks."""
    images, *rest = b.shape
    kind = b.pick("reshape", "squeeze", "layout")
    if kind == "reshape":
        axis = b.number(0, 2)
        b.value = call("reshape", b.value, newshape=[images, *[rest[(axis + i) % 3] for i in range(3)]])
    elif kind == "squeeze":
        wide = call("expand_dims", call("reshape", b.value, newshape=[images, -1, rest[2]]), axis=b.number(1, 2))
        b.value = call("squeeze", call("expand_dims", wide, axis=1), axis=[1])
    else:
        other = "NHWC" if b.layout == "NCHW" else "NCHW"
        b.value = call("layout_transform", b.value, src_layout=b.layout, dst_layout=other)
        b.layout = other


def upsampling(b: Region) -> None:
    height, width = (float(b.number(1, 3)) for _ in "HW")
    b.value = call("nn.upsampling", b.value, scale_h=height, scale_w=width, layout=b.layout)


def _real(b: Region, name: str, *operands: Any, scale: Any = None, **attrs: Any) -> None:
    """A function of real numbers behind the value, and quantised again, by default at the same scale."""
    scale = b.scale(0.2) if scale is None else scale
    real = call("qnn.dequantize", b.value, scale, b.zero_point, out_dtype="float32", axis=-1)
    b.zero_point = b.pick(b.zero_point, b.zero(b.dtype))
    b.value = call("qnn.quantize", call(name, real, *operands, **attrs), scale, b.zero_point, out_dtype=b.dtype, axis=-1)


def few_bits(b: Region) -> np.float32:
    """A scale whose products float32 holds."""
    return np.float32(b.pick(1, 1, 0.25, 0.75, 5 / 64))


def mixed_pixels(b: Region) -> None:
    """Means of neighbours, on stored or real numbers."""
    mode = b.pick("half_pixel", "asymmetric", "align_corners")
    factors = [b.pick(1, 2, 2, 4, 8) for _ in "HW"]
    extents = [b.extent(axis) for axis in "HW"]
    size = [(n - 1) * f + 1 if mode == "align_corners" else n * f for n, f in zip(extents, factors)]
    attrs = {"size": size, "layout": b.layout, "method": "linear", "roi": [0.0] * 4, "coordinate_transformation_mode": mode}
    if b.pick(0, 1):
        b.value = call("image.resize2d", b.value, **attrs)
    else:
        _real(b, "image.resize2d", scale=few_bits(b), **attrs)


def rounded_average(b: Region) -> None:
    """Averages of what lies on the image."""
    found = b.window()
    if b.pick(0, 1) and b.shape[0] == 1:
        found["padding"] = [b.number(0, size - 1) for _ in "ab" for size in found["pool_size"]]
    _real(b, "nn.avg_pool2d", scale=few_bits(b), **found)


def slopes(b: Region) -> None:
    """A slope for each channel below zero."""
    values = b.rng.uniform(-0.5, 1.5, b.extent("C")).astype("float32")
    _real(b, "nn.prelu", np.round(values, b.pick(1, 9)), axis=b.layout.index("C"))


def joined(b: Region) -> None:
    """Both ends of a path, which are added, multiplied or compared."""
    before, zero = b.value, b.zero_point
    b.function()
    name, numbers = b.pick("qnn.add", "qnn.subtract", "qnn.mul", "minimum", "maximum"), []
    for zero_point in (b.zero_point, zero, b.zero(b.dtype)):
        numbers += [b.scale(0.5), zero_point]
    b.value = call(name, b.value, before, *(numbers if name.startswith("qnn") else ()))
    if name.startswith("qnn"):
        b.zero_point = numbers[-1]


def clip(b: Region) -> None:
    b.value = b.limited(b.value, b.dtype)


def other_of(b: Region) -> Expr:
    """A tensor like the value, with other numbers."""
    low, high = RANGE[b.dtype]
    return b.pick(call("clip", b.value, a_min=float(low + 9), a_max=float(high - 50)), call("reverse", b.value, axis=3))


def stacked(b: Region) -> None:
    """Two tensors beside one another, on an axis of their own that joins the next."""
    axis, shape = b.number(1, 3), list(b.shape)
    shape[axis] *= 2
    b.value = call("reshape", call("stack", Tuple([b.value, other_of(b)]), axis=axis), newshape=shape)


def gathered(b: Region) -> None:
    """Rows that the places of maxima choose."""
    images, *rest = b.shape
    places = call("argmax", b.value, axis=[b.number(1, 2)], keepdims=False, exclude=False)
    table = call("reshape", b.value, newshape=[-1, rest[2]])
    taken = call("take", table, call("reshape", places, newshape=[-1]), axis=0)
    b.value = call("reshape", taken, newshape=[images, -1, 1, rest[2]])


def scattered(b: Region) -> None:
    """Rows in other places, of which no two are the same."""
    rows, others = (call("reshape", x, newshape=[-1, b.shape[3]]) for x in (b.value, other_of(b)))
    extent = rows.checked_type.shape[0]  # type: ignore[union-attr]
    places = b.rng.permutation(extent)[None, : b.number(1, extent)].astype("int32")
    updates = call("strided_slice", others, begin=[0], end=[places.shape[1]], strides=[1], axes=[0])
    b.value = call("reshape", call("scatter_nd", rows, places, updates, mode="update"), newshape=list(b.shape))


def bits(b: Region) -> None:
    b.value = call(b.pick("bitwise_and", "bitwise_or", "bitwise_xor"), b.value, other_of(b))


# ---- ends


def places(b: Region) -> None:
    """The places of the largest or smallest numbers."""
    b.value = call(b.pick("argmax", "argmin"), b.value, axis=[b.number(1, 3)], keepdims=bool(b.pick(0, 1)), exclude=False)


def sums(b: Region) -> None:
    """Sums of 32 bits."""
    axes = b.pick([1], [2], [3], [1, 2], [2, 3])
    b.value = call("sum", call("cast", b.value, dtype="int32"), axis=axes, keepdims=bool(b.pick(0, 1)), exclude=False)


def shifts(b: Region) -> None:
    """Sums of 32 bits, shifted."""
    sums(b)
    amounts = b.rng.integers(0, 32, b.pick((), b.shape[-1:])).astype("int32")
    b.value = call(b.pick("left_shift", "right_shift"), b.value, np.asarray(amounts))


def choices(b: Region) -> None:
    """The value, or its limits where it lies beyond: the larger one of both, written as a choice."""
    other = call("clip", b.value, a_min=float(RANGE[b.dtype][0] + 9), a_max=float(RANGE[b.dtype][1] - 50))
    holds = call(b.pick("less", "greater_equal", "equal", "not_equal"), b.value, other)
    b.value = b.pick(holds, call("where", holds, b.value, other), call(b.pick("all", "any"), holds, axis=[1], keepdims=True))


def truths(b: Region) -> None:
    """Comparisons, which are combined."""
    names = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    one, two = (call(b.pick(*names), b.value, other_of(b)) for _ in "ab")
    name = b.pick("logical_and", "logical_or", "logical_xor", "logical_not")
    b.value = call(name, *((one,) if name == "logical_not" else (one, two)))


def quotients(b: Region) -> None:
    """int32 numbers by others, which are not zero."""
    by = call("cast", call("clip", b.value, a_min=1.0, a_max=float(b.number(2, 120))), dtype="int32")
    b.value = call("divide", call("cast", b.value, dtype="int32"), by)


def two_matrices(b: Region) -> None:
    """A dense layer of two computed tensors, quantised or in fixed point."""
    if b.is_wide:
        sums(b)
        return
    flat = call("reshape", b.value, newshape=[b.shape[0], -1])
    units, terms = flat.checked_type.shape  # type: ignore[union-attr]
    low, high = RANGE[b.dtype]
    other = call("clip", flat, a_min=float(low + 9), a_max=float(high - 50))
    if b.dtype == "int8" and b.pick(0, 1):
        whole = [call("cast", x, dtype="int32") for x in (flat, other)]
        operands = [call("fixed_point_multiply", x, multiplier=2147483647, shift=0) for x in whole]
        by = {"multiplier": b.number(1, 1 << 30), "shift": b.number(0, 4)}
        summed = call("fixed_point_multiply", call("nn.dense", *operands, units=units), **by)
        b.value = call("cast", call("clip", summed, a_min=-128.0, a_max=127.0), dtype="int8")
        return
    scale = np.float32(0.1)
    summed = call("qnn.dense", flat, other, b.zero_point, b.zero(b.dtype), scale, scale, units=units, out_dtype="int32")
    b.value = b.requantized(summed, "int8", 3, 0.02 / terms**0.5, 1, 0)


def integer_softmax(b: Region) -> None:
    if b.is_wide:
        sums(b)
        return
    if b.dtype == "uint8":
        b.value = call("qnn.requantize", b.value, np.float32(1), b.zero_point, np.float32(1), 0, axis=1, out_dtype="int8")
    b.value = call("qnn.softmax", b.value, b.scale(0.2), 0, b.scale(0.02), b.number(-128, 127), axis=b.number(1, 3))


def softmax(b: Region) -> None:
    real = call("qnn.dequantize", b.value, b.scale(0.2), b.zero_point, out_dtype="float32", axis=-1)
    if b.pick(0, 1):
        real = call("multiply", real, np.float32(b.rng.random() + 0.1))
    low, high = RANGE[b.dtype]
    scale, zero = b.pick((np.float32(1 / 256), low), (b.scale(0.02), b.number(low, high)))
    b.value = call("qnn.quantize", call("nn.softmax", real, axis=b.number(1, 3)), scale, zero, out_dtype=b.dtype, axis=-1)


def parts(b: Region) -> None:
    """Several outputs."""
    axis = b.number(1, 3)
    divisors = [n for n in range(1, b.shape[axis] + 1) if b.shape[axis] % n == 0]
    b.value = call("split", b.value, indices_or_sections=b.pick(*divisors), axis=axis)


Row = Callable[[Region], None]
#: Layers by name. Those of `Builder` are its methods.
ROWS: Mapping[str, Row] = {
    "conv": convolution,
    "conv with pad": Builder.conv,
    "depthwise": Builder.depthwise,
    "transposed": Builder.transposed,
    "matrices": matrices,
    "max_pool": Builder.max_pool,
    "average": Builder.average,
    "add": Builder.add,
    "joined": joined,
    "binary": Builder.binary,
    "function": Builder.function,
    "concatenate": Builder.concatenate,
    "requantize": Builder.requantize,
    "pad": Builder.pad,
    "slice": Builder.slice,
    "split": Builder.split,
    "move": Builder.move,
    "reduce": Builder.reduce,
    "reshape": reshape,
    "upsampling": upsampling,
    "clip": clip,
    "stacked": stacked,
    "gathered": gathered,
    "scattered": scattered,
    "bits": bits,
    "mixed pixels": mixed_pixels,
    "rounded average": rounded_average,
    "slopes": slopes,
}
ENDS: Mapping[str, Row] = {
    "dense": Builder.dense,
    "places": places,
    "sums": sums,
    "shifts": shifts,
    "choices": choices,
    "softmax": softmax,
    "integer softmax": integer_softmax,
    "parts": parts,
    "truths": truths,
    "quotients": quotients,
    "two matrices": two_matrices,
}
#: The most elements of a value; a layer that makes more is left out.
MOST = 20_000


@dataclass(frozen=True)
class Network:
    """A network, the names of its rows, and how far the interpreter's integers may lie away: 1 for softmax."""

    function: Function
    rows: tuple[str, ...]
    apart: int


def random_region(seed: int) -> Network:
    """A network of one to five rows of one input, whose draws come from the seed."""
    b = Region(seed)
    names: list[str] = []
    for _ in range(b.number(1, 4)):
        name = b.pick(*ROWS)
        before = b.value, b.zero_point, b.layout
        ROWS[name](b)
        if math.prod(b.shape) > MOST or 0 in b.shape:
            b.value, b.zero_point, b.layout = before
        else:
            names.append(name)
    if b.pick(0, 0, 1) or not names:
        name = b.pick(*ENDS)
        ENDS[name](b)
        names.append(name)
    made = Function([b.x], b.value)
    check(made)
    return Network(made, tuple(names), int(names[-1] == "softmax"))


def compare(seed: int, accelerator: str) -> int:
    """Compile the region of a seed, and compare the simulator's integers with the interpreter's.

    Returns the number of regions that the accelerator computes; 0 where all stays on the host.
    """
    network = random_region(seed)
    x = random_input(network.function, seed)
    try:
        artifact = ethosu.compile(IRModule.from_expr(network.function), {"accelerator": accelerator})
    except RelayError as nothing:
        assert nothing.diagnostics[0].code == "R0614", nothing
        return 0
    artifact.executor = "ethosu-sim"
    found, wanted = fields(artifact.run(x=x)), fields(evaluate(network.function, x))
    assert [f.dtype for f in found] == [w.dtype for w in wanted]
    if network.apart:
        artifact.executor = "tosa"
        for field, real in zip(found, wanted, strict=True):
            assert np.abs(field.astype(int) - real).max() <= network.apart
        wanted = fields(artifact.run(x=x))
    for field, value in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(field, value)
    return len(artifact.regions)
