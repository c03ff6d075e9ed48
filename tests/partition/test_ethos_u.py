"""What the Ethos-U's pattern table takes, and what it says of the rest."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaylang.ir import Call, Constant, Expr, Function, rewrite
from relaylang.ops.record import Op
from relaylang.partition.lift import regions_of
from relaylang.partition.targets.ethos_u.offload import Partitioned, offload
from relaylang.syntax import fromtext
from relaylang.typing import check

WEIGHT = "zeros(shape=[4, 3, 3, 3], dtype=\"int8\")"


def partition(body: str, params: str = "%x: Tensor[(1, 3, 8, 8), int8]") -> Partitioned:
    """Partition a program whose constant tensors are written as `zeros`."""
    mod = fromtext(f"def @main({params}) {{\n{body}\n}}", "net.relay")
    check(mod)

    def place(old: Expr, new: Expr) -> Expr:
        if isinstance(old, Call) and isinstance(old.op, Op) and old.op.name == "zeros":
            return Constant(np.zeros(old.attrs.shape, old.attrs.dtype))
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
    "with a bias": (f"nn.bias_add({conv()}, zeros(shape=[4], dtype=\"int32\"))", 2),
    "with all": (
        f"%1 = nn.bias_add({conv()}, zeros(shape=[4], dtype=\"int32\")); "
        "%2 = qnn.requantize(%1, 0.01f, 0, 1f, 3, axis=1, out_dtype=\"int8\"); clip(%2, a_min=0f, a_max=99f)",
        4,
    ),
    "relu on int32": (f"qnn.requantize(nn.relu({conv()}), 0.01f, 0, 1f, 3, axis=1, out_dtype=\"uint8\")", 3),
    "through int32": (
        f"%1 = qnn.requantize({conv()}, 0.01f, 0, 1f, 3, axis=1, out_dtype=\"int32\"); "
        "cast(clip(%1, a_min=0f, a_max=255f), dtype=\"uint8\")",
        4,
    ),
    "pool and flatten": ("nn.batch_flatten(nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]))", 2),
    "sum": ("qnn.add(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3)", 1),
    "average": ("cast(nn.global_avg_pool2d(cast(%x, dtype=\"int32\")), dtype=\"int8\")", 3),
    "difference": ("qnn.subtract(%x, %x, 0.1f, 0, 0.1f, 0, 0.2f, 3)", 1),
    "product with a constant": ("nn.relu(qnn.mul(%x, zeros(shape=[3, 1, 1], dtype=\"int8\"), 0.1f, 0, 0.1f, 0, 0.2f, 3))", 2),
    "extremes": ("qnn.requantize(clip(maximum(%x, minimum(%x, 3i8)), a_min=0f, a_max=9f), 1f, 0, 2f, 0, out_dtype=\"int8\")", 4),
    "function": ("qnn.sigmoid(%x, 0.1f, 3, 0.00390625f, -128)", 1),
    "table of a chain": (
        "%1 = qnn.dequantize(%x, 0.1f, 3); %2 = exp(negative(%1)); "
        "qnn.quantize(divide(%1, add(%2, 1f)), 0.1f, 0, out_dtype=\"int8\")",
        6,
    ),
    "requantize in floats": (
        "qnn.requantize(%x, 0.5f, 0, 1f, 3, out_dtype=\"int8\", compute_dtype=\"float32\")",
        1,
    ),
    "halves away from zero": (
        "qnn.requantize(%x, 0.5f, 0, 1f, 3, out_dtype=\"int8\", rounding=\"TONEAREST\")",
        1,
    ),
    "clip at fractions": ("qnn.add(clip(%x, a_min=0.5f, a_max=3f), %x, 1f, 0, 1f, 0, 1f, 0)", 2),
    "slices": ("nn.max_pool2d(strided_slice(%x, begin=[0, 1], end=[1, 3], strides=[1]), pool_size=[2, 2])", 2),
    "parts": ("%1 = split(%x, indices_or_sections=[1], axis=1); qnn.add(%1.0, %1.1, 1f, 0, 1f, 0, 1f, 0)", 2),
    "mirrored border": (
        "nn.max_pool2d(nn.mirror_pad(%x, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[2, 2])", 2
    ),
    "other axes": ("nn.max_pool2d(transpose(%x, axes=[0, 3, 1, 2]), pool_size=[2, 2])", 2),
    "other layout": (
        'nn.max_pool2d(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), pool_size=[2, 2], layout="NHWC")', 2
    ),
    "nearest pixels": ("nn.max_pool2d(nn.upsampling(%x, scale_h=2f, scale_w=2f), pool_size=[2, 2])", 2),
    "let form": ("let %a = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]); let %b = nn.relu(%a); %b", 2),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    body, calls = TAKEN[name]
    done = partition(body)
    assert (done.offloaded, done.kept, done.notes) == (calls, 0, [])
    assert len(regions_of(done.module, "ethos-u")) == 1


REQUANTIZE = f"qnn.requantize({conv()}, 0.5f, 0, 1f, 3, out_dtype=\"int8\""
REFUSED = {
    "weight": (conv("%w"), "weight is not a constant; give it with the parameters", "%w: Tensor[(4, 3, 3, 3), int8]"),
    "zero point": (f"{conv(zero_points='%w, 0')}", "zero point is not a constant", "%w: int32"),
    "groups": (
        'qnn.conv2d_transpose(%w, zeros(shape=[6, 2, 3, 3], dtype="int8"), 0, 0, 0.1f, 0.1f, channels=4, kernel_size=[3, 3], '
        'groups=2, kernel_layout="IOHW", out_dtype="int32")',
        "a transposed convolution of 2 groups",
        "%w: Tensor[(1, 6, 8, 8), int8]",
    ),
    "float requantize": (REQUANTIZE + ", compute_dtype=\"float32\")", "compute_dtype is float32", ""),
    "several operands": ("add(%x, %w)", "computes with several tensors", "%w: Tensor[(1, 3, 8, 8), int8]"),
    "dilated pool": ("nn.max_pool2d(%x, pool_size=[2, 2], dilation=[2, 2])", "a dilated pool", ""),
    "clip": (
        f"cast(clip(qnn.requantize({conv()}, 0.4f, 0, 1f, 0, out_dtype=\"int32\"), a_min=0.5f, a_max=3f), dtype=\"int8\")",
        "whole numbers",
        "",
    ),
    "float": ("exp(%w)", "it works on float32, the accelerator on int8", "%w: Tensor[(2, 2), float32]"),
    "real pixels": (
        'image.resize2d(%x, size=[4, 4], roi=[0f, 0f, 0f, 0f], method="linear")', "method linear, which computes with real numbers", ""
    ),
    "other probabilities": (
        'qnn.quantize(nn.softmax(qnn.dequantize(%x, 0.1f, 0)), 0.5f, 0, out_dtype="int8")',
        "its probabilities are not 256ths above the lowest number",
        "",
    ),
    "split axes": ('layout_transform(%x, src_layout="NCHW", dst_layout="NCHW1c")', "which splits axes", ""),
    "unknown places": ("take(%x, %w, axis=1)", "its indices is not a constant", "%w: int32"),
    "no row": ("cumsum(%x, axis=1)", "the accelerator's pattern table has no row for it", ""),
    "int8 average": ("nn.global_avg_pool2d(%x)", "it adds in int8, which may overflow", ""),
    "alone": ("nn.relu(%x)", "only moves or limits values", ""),
    "shape": ("nn.max_pool2d(%w, pool_size=[2, 2])", "known only at run time", "%w: Tensor[(1, 3, ?, 8), int8]"),
    "wrapping cast": (
        f"cast(qnn.requantize({conv()}, 0.4f, 0, 1f, 0, out_dtype=\"int32\"), dtype=\"int8\")", "clip them first", ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_place_and_a_reason(name: str) -> None:
    body, reason, param = REFUSED[name]
    params = "%x: Tensor[(1, 3, 8, 8), int8]" + (f", {param}" if param else "")
    done = partition(body, params)
    found = [note for note in done.notes if re.search(reason, note.title)]
    assert found, [note.title for note in done.notes]
    assert found[0].severity == "note" and found[0].code == "R0620"
    assert str(found[0].span).startswith("net.relay:2:")


def test_refusal_leaves_the_hosts_own_operators() -> None:
    """Merged calls that the compiler refuses become plain calls again."""
    done = partition("exp(cast(nn.relu(clip(%x, a_min=0f, a_max=9f)), dtype=\"float32\"))")
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
