"""What the Ethos-U's pattern table takes, and what it says of the rest."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaylang.backends.ethosu.offload import Partitioned, offload
from relaylang.ir import Call, Constant, Expr, Function, post_order, rewrite
from relaylang.ops.record import Op
from relaylang.partition.composites import composite_name
from relaylang.partition.lift import regions_of
from relaylang.syntax import fromtext
from relaylang.typing import check

WEIGHT = 'zeros(shape=[4, 3, 3, 3], dtype="int8")'


def partition(body: str, params: str = "%x: Tensor[(1, 3, 8, 8), int8]", last: int | None = None) -> Partitioned:
    """Partition a program whose constant tensors are written as `zeros` or `ones`. `last` replaces their last elements."""
    mod = fromtext(f"def @main({params}) {{\n{body}\n}}", "net.relay")
    check(mod)

    def place(old: Expr, new: Expr) -> Expr:
        if isinstance(old, Call) and isinstance(old.op, Op) and old.op.name in ("zeros", "ones"):
            value = getattr(np, old.op.name)(old.attrs.shape, old.attrs.dtype)
            if last is not None:
                value.reshape(-1)[-1] = last
            return Constant(value)
        return new

    main = mod["main"]
    mod["main"] = Function(main.params, rewrite(main.body, place), main.ret_type)
    check(mod)
    return offload(mod)


def conv(weight: str = WEIGHT, zero_points: str = "0, 0", **attrs: object) -> str:
    given = {"channels": 4, "kernel_size": [3, 3], "padding": [1, 1, 1, 1], "out_dtype": '"int32"', **attrs}
    text = ", ".join(f"{k}={v}" for k, v in given.items())
    return f"qnn.conv2d(%x, {weight}, {zero_points}, 0.1f, 0.1f, {text})"


TAKEN = {
    "convolution": (f"{conv()}", 1),
    "with a bias": (f'nn.bias_add({conv()}, zeros(shape=[4], dtype="int32"))', 2),
    "with all": (
        f'%1 = nn.bias_add({conv()}, zeros(shape=[4], dtype="int32")); '
        '%2 = qnn.requantize(%1, 0.01f, 0, 1f, 3, axis=1, out_dtype="int8"); clip(%2, a_min=0f, a_max=99f)',
        4,
    ),
    "relu on int32": (f'qnn.requantize(nn.relu({conv()}), 0.01f, 0, 1f, 3, axis=1, out_dtype="uint8")', 3),
    "through int32": (
        f'%1 = qnn.requantize({conv()}, 0.01f, 0, 1f, 3, axis=1, out_dtype="int32"); '
        'cast(clip(%1, a_min=0f, a_max=255f), dtype="uint8")',
        4,
    ),
    "pool and flatten": ("nn.batch_flatten(nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]))", 2),
    "sum": ("qnn.add(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3)", 1),
    "average": ('cast(nn.global_avg_pool2d(cast(%x, dtype="int32")), dtype="int8")', 3),
    "difference": ("qnn.subtract(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3)", 1),
    "product with a constant": ('nn.relu(qnn.mul(%x, zeros(shape=[3, 1, 1], dtype="int8"), 0.1f, 0, 0.1f, 0, 0.2f, 3))', 2),
    "extremes": ('qnn.requantize(clip(maximum(%x, minimum(%x, 3i8)), a_min=0f, a_max=9f), 1f, 0, 2f, 0, out_dtype="int8")', 4),
    "function": ("qnn.sigmoid(%x, 0.1f, 3, 0.00390625f, -128)", 1),
    "table of a chain": (
        '%1 = qnn.dequantize(%x, 0.1f, 3); %2 = exp(negative(%1)); qnn.quantize(divide(%1, add(%2, 1f)), 0.1f, 0, out_dtype="int8")',
        6,
    ),
    "requantize in floats": (
        'qnn.requantize(%x, 0.5f, 0, 1f, 3, out_dtype="int8", compute_dtype="float32")',
        1,
    ),
    "halves away from zero": (
        'qnn.requantize(%x, 0.5f, 0, 1f, 3, out_dtype="int8", rounding="TONEAREST")',
        1,
    ),
    "clip at fractions": ("qnn.add(clip(%x, a_min=0.5f, a_max=3f), %x, 1f, 0, 1f, 0, 1f, 0)", 2),
    "slices": ("nn.max_pool2d(strided_slice(%x, begin=[0, 1], end=[1, 3], strides=[1]), pool_size=[2, 2])", 2),
    "parts": ("%1 = split(%x, indices_or_sections=[1], axis=1); qnn.add(%1.0, %1.1, 1f, 0, 1f, 0, 1f, 0)", 2),
    "mirrored border": ("nn.max_pool2d(nn.mirror_pad(%x, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[2, 2])", 2),
    "other axes": ("nn.max_pool2d(transpose(%x, axes=[0, 3, 1, 2]), pool_size=[2, 2])", 2),
    "other layout": ('nn.max_pool2d(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), pool_size=[2, 2], layout="NHWC")', 2),
    "nearest pixels": ("nn.max_pool2d(nn.upsampling(%x, scale_h=2f, scale_w=2f), pool_size=[2, 2])", 2),
    "let form": ("let %a = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]); let %b = nn.relu(%a); %b", 2),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    body, calls = TAKEN[name]
    done = partition(body)
    assert (done.offloaded, done.kept, done.notes) == (calls, 0, [])
    assert len(regions_of(done.module, "ethos-u")) == 1


S = "%1 = qnn.add(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3); "
NHWC = "%x: Tensor[(1, 8, 8, 3), int8]"
WIDE, MATRICES = "%x: Tensor[(1, 3, 8, 8), int32]", "%x: Tensor[(4, 9), int8], %y: Tensor[(5, 9), int8]"
WHOLE = 'fixed_point_multiply(cast({}, dtype="int32"), multiplier=2147483647, shift=0)'


def real(call: str, operand: str = "%x") -> str:
    """A call on real numbers, between quantised ones."""
    return f'qnn.quantize({call.format(f"qnn.dequantize({operand}, 1f, 0)")}, 1f, 0, out_dtype="int8")'


def whole(call: str) -> str:
    """A call on numbers in fixed point."""
    return f'cast(fixed_point_multiply({call.format(WHOLE.format("%x"), WHOLE.format("%y"))}, multiplier=1, shift=16), dtype="int8")'


#: A program for each name of TVM's pattern table.
NAMED = {
    "channel-pad": (S + "nn.pad(%1, 3f, pad_width=[[0, 0], [0, 0], [0, 0], [2, 1]])", NHWC),
    "qnn_conv2d": (conv(), ""),
    "depthwise_conv2d": (
        'qnn.conv2d(%x, zeros(shape=[3, 3, 3, 1], dtype="int8"), 0, 0, 0.1f, 0.1f, groups=3, channels=3, kernel_size=[3, 3], '
        'data_layout="NHWC", kernel_layout="HWOI", out_dtype="int32")',
        NHWC,
    ),
    "qnn_conv2d_transpose": (
        'qnn.conv2d_transpose(%x, zeros(shape=[3, 4, 3, 3], dtype="int8"), 0, 0, 0.1f, 0.1f, channels=4, kernel_size=[3, 3], '
        'kernel_layout="IOHW", out_dtype="int32")',
        "",
    ),
    "fully_connected": ('qnn.dense(%x, zeros(shape=[5, 9], dtype="int8"), 0, 0, 0.1f, 0.1f, units=5, out_dtype="int32")', MATRICES),
    "matmul": ('qnn.dense(%x, %y, 0, 0, 0.1f, 0.1f, units=5, out_dtype="int32")', MATRICES),
    "matmul_fixed_point": (whole("nn.dense({}, {}, units=5)"), MATRICES),
    "maxpool2d": ("nn.max_pool2d(%x, pool_size=[2, 2])", ""),
    "avgpool2d": ('cast(nn.avg_pool2d(cast(%x, dtype="int32"), pool_size=[2, 2]), dtype="int8")', ""),
    "pad2d": (S + "nn.pad(%1, 3f, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]])", NHWC),
    "add": (S + "%1", ""),
    "sub": ("qnn.subtract(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3)", ""),
    "mul": ("qnn.mul(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3)", ""),
    "min": ("minimum(%x, reverse(%x, axis=1))", ""),
    "max": ("maximum(%x, reverse(%x, axis=1))", ""),
    "shl": ("left_shift(%x, 3)", WIDE),
    "reshape": (S + "reshape(%1, newshape=[3, 64])", ""),
    "strided_slice": (S + "strided_slice(%1, begin=[0, 1], end=[1, 3])", ""),
    "abs": (real("abs({})"), ""),
    "tanh": (real("tanh({})"), ""),
    "tanh_fixed_point": (whole("tanh({})"), ""),
    "mean": ('cast(mean(cast(%x, dtype="int32"), axis=[2, 3]), dtype="int8")', ""),
    "sum": ('sum(cast(%x, dtype="int32"), axis=[2, 3])', ""),
    "softmax": ('qnn.quantize(nn.softmax(qnn.dequantize(%x, 0.1f, 0)), 0.00390625f, -128, out_dtype="int8")', ""),
    "leaky_relu": (real("nn.leaky_relu({}, alpha=0.1f)"), ""),
    "concat": (S + "qnn.concatenate((%1, %x), (1f, 1f), (0, 0), 1f, 0, axis=1)", ""),
    "sigmoid": (real("sigmoid({})"), ""),
    "split": (S + "split(%1, indices_or_sections=2, axis=2)", ""),
    "requantize": ('qnn.requantize(%x, 0.5f, 0, 1f, 3, out_dtype="int8")', ""),
    "resize2d": (real('image.resize2d({}, size=[16, 16], roi=[0f, 0f, 0f, 0f], layout="NHWC", method="linear")'), NHWC),
    "expand_dims": (S + "expand_dims(strided_slice(%1, begin=[0, 0], end=[1, 1]), axis=0)", "%x: Tensor[(3, 8, 8), int8]"),
    "squeeze": (S + "squeeze(%1, axis=[0])", ""),
    "hard_swish": (
        "%1 = qnn.dequantize(%x, 1f, 0); "
        'qnn.quantize(divide(multiply(%1, clip(add(%1, 3f), a_min=0f, a_max=6f)), 6f), 1f, 0, out_dtype="int8")',
        "",
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_tvms_name(name: str) -> None:
    body, params = NAMED[name]
    done = partition(body, params or "%x: Tensor[(1, 3, 8, 8), int8]")
    assert done.notes == []
    ((_, region),) = regions_of(done.module, "ethos-u")
    assert f"ethos-u.{name}" in [composite_name(node) for node in post_order(region.body)]


REQUANTIZE = f'qnn.requantize({conv()}, 0.5f, 0, 1f, 3, out_dtype="int8"'
HALVES = "%w: Tensor[(1, 3, 8, 8), int16]"
#: Sums of int64 as TensorFlow Lite rescales them.
SHIFTED = "right_shift(add(multiply({sums}, {{factor}}i64), {{half}}i64), 22i64)".format(
    sums=conv(out_dtype='"int64"').replace("%x", "%w")
)
#: Sums of two tensors, which stay.
PRODUCT = 'nn.dense(cast(%v, dtype="int32"), cast(%w, dtype="int32"), units=4, out_dtype="int32")'
SIDES = "%v: Tensor[(3, 9), int8], %w: Tensor[(4, 9), int8]"
REFUSED = {
    "zero point of no byte": (f'qnn.requantize({conv()}, 0.5f, 0, 1f, 300, out_dtype="int8")', "300 is no int8 number", ""),
    "zero point of sums": (f'qnn.requantize({PRODUCT}, 0.5f, 9, 1f, 3, out_dtype="int8")', "wants the zero point 0", SIDES),
    "integer softmax at the scale 0": ("qnn.softmax(%x, 0f, 0, 0.004f, 0)", "its input scale 0; scales from", ""),
    "no units": (
        'qnn.dense(%w, zeros(shape=[0, 9], dtype="int8"), 0, 0, 1f, 1f, units=0, out_dtype="int32")',
        "its result is empty",
        "%w: Tensor[(3, 9), int8]",
    ),
    "a number": ('qnn.quantize(exp(qnn.dequantize(%w, 1f, 0)), 1f, 0, out_dtype="int8")', "a number without axes", "%w: int8"),
    "too many numbers": ("maximum(%w, %w)", "at most 268435456 are taken", "%w: Tensor[(3, 1000000000), int8]"),
    "weight": (conv("%w"), "weight is not a constant; give it with the parameters", "%w: Tensor[(4, 3, 3, 3), int8]"),
    "zero point": (f"{conv(zero_points='%w, 0')}", "zero point is not a constant", "%w: int32"),
    "groups": (
        'qnn.conv2d_transpose(%w, zeros(shape=[6, 2, 3, 3], dtype="int8"), 0, 0, 0.1f, 0.1f, channels=4, kernel_size=[3, 3], '
        'groups=2, kernel_layout="IOHW", out_dtype="int32")',
        "a transposed convolution of 2 groups",
        "%w: Tensor[(1, 6, 8, 8), int8]",
    ),
    "float requantize": (REQUANTIZE + ', compute_dtype="float32")', "compute_dtype is float32", ""),
    "several operands": ("add(%x, %w)", "computes with several tensors", "%w: Tensor[(1, 3, 8, 8), int8]"),
    "dilated pool": ("nn.max_pool2d(%x, pool_size=[2, 2], dilation=[2, 2])", "a dilated pool", ""),
    "average with its padding": (
        "qnn.quantize(nn.avg_pool2d(qnn.dequantize(%x, 1f, 0), pool_size=[2, 2], padding=[1, 1], count_include_pad=True), 1f, 0, "
        'out_dtype="int8")',
        "an average of real numbers that counts the padding",
        "",
    ),
    "averages with padding in large steps": (
        "qnn.quantize(nn.avg_pool2d(qnn.dequantize(%x, 1f, 0), pool_size=[2, 2], strides=[4, 1], padding=[1, 1]), 1f, 0, "
        'out_dtype="int8")',
        "padding, and steps of 4",
        "",
    ),
    "averages of images with padding": (
        'qnn.quantize(nn.avg_pool2d(qnn.dequantize(%w, 1f, 0), pool_size=[2, 2], padding=[1, 1]), 1f, 0, out_dtype="int8")',
        "padding around several images",
        "%w: Tensor[(2, 3, 8, 8), int8]",
    ),
    "clip": (
        f'cast(clip(qnn.requantize({conv()}, 0.4f, 0, 1f, 0, out_dtype="int32"), a_min=0.5f, a_max=3f), dtype="int8")',
        "whole numbers",
        "",
    ),
    "float": ("exp(%w)", "it works on float32, the accelerator on int8 and int16", "%w: Tensor[(2, 2), float32]"),
    "other pixels": ('image.resize2d(%x, size=[16, 16], roi=[0f, 0f, 0f, 0f], method="cubic")', "method cubic", ""),
    "mixed pixels of another size": (
        'image.resize2d(%x, size=[12, 12], roi=[0f, 0f, 0f, 0f], method="linear")',
        "the factors 1, 2, 4 and 8 are taken",
        "",
    ),
    "rounded means": (
        'qnn.quantize(nn.upsampling(qnn.dequantize(%x, 0.1f, 3), scale_h=2f, scale_w=2f, method="bilinear"), 0.1f, 3, '
        'out_dtype="int8")',
        "float32 rounds its means",
        "",
    ),
    "shift by many bits": ("left_shift(%w, 32)", "less than 0 or more than 31 bits", "%w: Tensor[(2, 2), int32]"),
    "sums in fixed point": (
        f"cast(fixed_point_multiply(nn.dense({WHOLE.format('%w')}, {WHOLE.format('%w')}, units=600), multiplier=1, shift=16), "
        'dtype="int8")',
        "a cast to int8 of values that it may wrap around",
        "%w: Tensor[(600, 600), int8]",
    ),
    "other probabilities": (
        'qnn.quantize(nn.softmax(qnn.dequantize(%x, 0.1f, 0)), 2f, 0, out_dtype="int8")',
        "its output scale 2; scales from 2\\^-12 to 1 are taken",
        "",
    ),
    "large integer probabilities": (
        "qnn.softmax(%w, 0.05f, 0, 0.1f, 0)",
        "its sums may leave the range",
        "%w: Tensor[(9, 999), int8]",
    ),
    "split axes": ('layout_transform(%x, src_layout="NCHW", dst_layout="NCHW1c")', "which splits axes", ""),
    "places that start again": ('take(%x, %w, axis=1, mode="wrap")', "indices that start again at the end", "%w: Tensor[(2), int32]"),
    "long places": ("take(%x, %w, axis=1)", "its tensor of indices is int64", "%w: Tensor[(2), int64]"),
    "products of entries": (
        'scatter_nd(%x, zeros(shape=[1, 1], dtype="int32"), %x, mode="mul")',
        "mode mul; entries are replaced, or added to zeros",
        "",
    ),
    "several entries at one place": (
        'scatter_nd(zeros(shape=[3, 4], dtype="int8"), zeros(shape=[1, 2], dtype="int32"), %w, mode="add")',
        "it adds several entries at one place",
        "%w: Tensor[(2, 4), int8]",
    ),
    "places along several axes": (
        'scatter_nd(%x, %w, %v, mode="update")',
        "indices of several axes",
        "%w: Tensor[(2, 3), int32], %v: Tensor[(3, 8, 8), int8]",
    ),
    "choices between real numbers": ("where(%w, 1f, 2f)", "its result is float32", "%w: Tensor[(9, 9), bool]"),
    "weights of 16 bits": (
        'qnn.conv2d(%w, zeros(shape=[4, 3, 3, 3], dtype="int16"), 0, 0, 0.1f, 0.1f, channels=4, kernel_size=[3, 3], '
        'out_dtype="int32")',
        "its weight is int16, the accelerator takes int8 and uint8",
        HALVES,
    ),
    "zero point of 16 bits": (
        "qnn.add(%w, reverse(%w, axis=1), 0.1f, 3, 0.1f, 3, 0.1f, 3)",
        "zero point is 3; numbers of int16 want 0",
        HALVES,
    ),
    "sums of 64 bits": (
        conv(out_dtype='"int64"').replace("%x", "%w"),
        "sums of int64 are taken only in front of a requantize",
        HALVES,
    ),
    "sums times long numbers": (
        f'cast({SHIFTED.format(factor=40000, half=2097152)}, dtype="int16")',
        "negative, or has more than 15 bits",
        HALVES,
    ),
    "sums that round down": (f'cast({SHIFTED.format(factor=3, half=0)}, dtype="int16")', "does not round halves up", HALVES),
    "sums without a cast": (SHIFTED.format(factor=3, half=2097152), "taken only in front of a cast", HALVES),
    "sums that wrap": (
        'qnn.dense(%w, ones(shape=[2, 32768], dtype="int8"), 0, 0, 0.1f, 0.1f, units=2, out_dtype="int32")',
        "its sums may leave the range of 30 bits",
        "%w: Tensor[(1, 32768), int16]",
    ),
    "no row": ("cumsum(%x, axis=1)", "the accelerator's pattern table has no row for it", ""),
    "int8 average": ("nn.global_avg_pool2d(%x)", "it adds in int8, which may overflow", ""),
    "alone": ("nn.relu(%x)", "only moves or limits values", ""),
    "shape": ("nn.max_pool2d(%w, pool_size=[2, 2])", "known only at run time", "%w: Tensor[(1, 3, ?, 8), int8]"),
    "wrapping cast": (f'cast(qnn.requantize({conv()}, 0.4f, 0, 1f, 0, out_dtype="int32"), dtype="int8")', "clip them first", ""),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_place_and_a_reason(name: str) -> None:
    body, reason, param = REFUSED[name]
    params = "%x: Tensor[(1, 3, 8, 8), int8]" + (f", {param}" if param else "")
    done = partition(body, params)
    found = [note for note in done.notes if re.search(reason, note.title)]
    assert found, [note.title for note in done.notes]
    assert found[0].severity == "note" and found[0].code == "R0620"
    assert str(found[0].span).startswith("net.relay:2:")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('add(%x, zeros(shape=[3, 8, 8], dtype="int8"))', "a number for each element"),
        ('add(add(%x, zeros(shape=[3, 1, 1], dtype="int8")), zeros(shape=[8], dtype="int8"))', ""),
        ('add(%x, zeros(shape=[8], dtype="int8"))', ""),
    ],
)
def test_functions_of_channels(body: str, reason: str) -> None:
    """Constants have numbers along one axis."""
    notes = partition(body, last=1).notes
    assert [reason in note.title for note in notes] == [True] * bool(reason)


def test_refusal_leaves_the_hosts_own_operators() -> None:
    """Merged calls that the compiler refuses become plain calls again."""
    done = partition('exp(cast(nn.relu(clip(%x, a_min=0f, a_max=9f)), dtype="float32"))')
    assert regions_of(done.module, "ethos-u") == []
    assert [n.title.partition(" stays")[0] for n in done.notes] == ["clip + nn.relu", "cast", "exp"]


def test_a_shared_value_leaves_its_layer() -> None:
    body = "%1 = nn.relu(%x); %2 = clip(%1, a_min=1f, a_max=9f); qnn.add(%1, %2, 1f, 0, 1f, 0, 1f, 0)"
    done = partition(body)
    assert (done.offloaded, done.kept) == (3, 0)


def test_a_further_reason() -> None:
    mod = fromtext("def @main(%x: Tensor[(1, 3, 8, 8), int8]) { nn.max_pool2d(%x, pool_size=[2, 2]) }")
    check(mod)
    done = offload(mod, refuse=lambda call: "it is Sunday")
    assert [n.title for n in done.notes] == ["nn.max_pool2d stays on the host: it is Sunday"]
