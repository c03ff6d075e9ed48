"""Layers that Vela makes of parts or joins with others, sometimes wrongly: the simulator gives the right integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends import ethosu
from relaylang.interpreter import evaluate
from relaylang.ir import TensorType
from relaylang.syntax import fromtext
from tests.backends.ethosu.networks import fields


def conv(shape: str, weight: str, name: str = "qnn.conv2d", zero: int = 5, **attrs: object) -> tuple[str, str]:
    """A convolution of `%x` by a constant, and the parameters."""
    said = "".join(f", {key}={value}" for key, value in attrs.items())
    dtype = "uint8" if zero == 128 else "int8"
    return (
        f'qnn.requantize({name}(%x, %w, {zero}, 0, 0.1f, 0.1f{said}, out_dtype="int32"), 0.005f, 0, 1f, 3, out_dtype="{dtype}")',
        f"%x: Tensor[{shape}, {dtype}], %w: Tensor[{weight}, int8]",
    )


NHWC = {"data_layout": '"NHWC"', "kernel_layout": '"HWIO"'}
SCALES = "%s: Tensor[(5), float32]"
BY_CHANNEL = 'qnn.requantize(%0, %s, 7, 1f, 3, axis=1, out_dtype="int8")'
PROGRAMS = {
    "dilation that meets strides and padding": conv(
        "(1, 9, 20, 4)", "(2, 2, 4, 6)", strides=[3, 2], dilation=[1, 3], padding=[0, 1, 0, 1], channels=6, kernel_size=[2, 2], **NHWC
    ),
    "dilation of a depthwise kernel with strides": conv(
        "(1, 5, 13, 8)",
        "(5, 1, 3, 3)",
        strides=[3, 2],
        dilation=[4, 1],
        padding=[1, 0, 1, 0],
        groups=5,
        channels=5,
        kernel_size=[3, 3],
    ),
    "dilation of groups": conv(
        "(1, 4, 11, 10)", "(2, 2, 3, 1)", zero=0, dilation=[3, 2], padding=[1, 0, 0, 0], groups=2, channels=2, kernel_size=[3, 1]
    ),
    "large strides with padding": conv(
        "(1, 12, 30, 4)", "(3, 3, 4, 6)", strides=[2, 7], padding=[1, 1, 0, 0], channels=6, kernel_size=[3, 3], **NHWC
    ),
    "dilation over one column": conv(
        "(1, 5, 12, 9)", "(5, 1, 3, 3)", zero=0, strides=[1, 8], dilation=[1, 3], groups=5, channels=5, kernel_size=[3, 3]
    ),
    "pixels of two images that are spread out": conv(
        "(2, 3, 4, 6)",
        "(3, 2, 3, 4)",
        "qnn.conv2d_transpose",
        zero=128,
        strides=[3, 3],
        channels=4,
        kernel_size=[3, 2],
        kernel_layout='"HWIO"',
    ),
    "zeros around numbers of another zero point": (
        "%0 = nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 1], [1, 0]]); "
        'qnn.conv2d(%0, %w, 7, 0, 0.1f, 0.1f, channels=3, kernel_size=[3, 2], out_dtype="int32")',
        "%x: Tensor[(1, 4, 5, 5), int8], %w: Tensor[(3, 4, 3, 2), int8]",
    ),
    "a reshape of rescaled numbers with two readers": (
        '%0 = qnn.requantize(%x, 0.1f, 3, 0.13f, 52, out_dtype="int8"); %1 = reshape(%0, newshape=[1, 3, 40, 8]); '
        "%2 = qnn.mul(%1, %1, 0.13f, 52, 0.056f, 31, 0.25f, -15); qnn.mul(%2, %1, 0.25f, -15, 0.13f, 52, 0.2f, 0)",
        "%x: Tensor[(1, 40, 3, 8), int8]",
    ),
    "a mean that is squared": (
        '%0 = mean(cast(%x, dtype="int32"), axis=[3], keepdims=True); '
        '%1 = qnn.requantize(%0, 0.1f, 52, 1f, 52, out_dtype="int8"); maximum(%1, %1)',
        "%x: Tensor[(1, 1, 3, 5), int8]",
    ),
    "groups of equal weights": (
        '%0 = qnn.conv2d(%x, %ones, 5, 0, 0.1f, 0.1f, groups=2, channels=6, kernel_size=[1, 1], out_dtype="int32"); '
        "nn.bias_add(%0, %bias)",
        "%x: Tensor[(1, 4, 5, 5), int8], %ones: Tensor[(6, 2, 1, 1), int8], %bias: Tensor[(6), int32]",
    ),
    "a pool of large strides in front of a sum": (
        "%0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[7, 5]); qnn.add(%0, %0, 0.07f, 3, 0.2f, 1, 0.3f, 5)",
        "%x: Tensor[(1, 3, 20, 20), int8]",
    ),
    "an upsampled tensor in front of a sum": (
        "%0 = nn.upsampling(%x, scale_h=3f, scale_w=3f); qnn.add(%0, %0, 0.07f, 3, 0.2f, 1, 0.3f, 5)",
        "%x: Tensor[(1, 18, 1, 41), int8]",
    ),
    "whole scales of a sum": ("qnn.add(%x, %x, 1f, -86, 0.5f, -102, 0.5f, -50)", "%x: Tensor[(2, 20, 1, 4), int8]"),
    "scales of channels behind a concatenation": (
        f"%0 = concatenate((%x, %x), axis=1); {BY_CHANNEL}",
        f"%x: Tensor[(3, 20, 1, 1), int8], {SCALES.replace('5', '40')}",
    ),
    "scales of channels behind an upsampling": (
        f"%0 = nn.upsampling(%x, scale_h=2f, scale_w=3f); {BY_CHANNEL.replace('axis=1', 'axis=3')}",
        f"%x: Tensor[(1, 5, 2, 4), int8], {SCALES.replace('5', '12')}",
    ),
    "scales of channels behind a minimum": (
        f"%0 = nn.relu(minimum(%x, %y)); {BY_CHANNEL}",
        f"%x: Tensor[(2, 5, 8, 5), int8], %y: Tensor[(2, 5, 8, 5), int8], {SCALES}",
    ),
    "border of a product of matrices": (
        '%0 = qnn.batch_matmul(%x, %x, 3, 4, 0.1f, 0.1f, out_dtype="int32", transpose_b=True); '
        '%1 = reshape(qnn.requantize(%0, 0.001f, 0, 1f, 3, out_dtype="int8"), newshape=[1, 1, 4, 4]); '
        "nn.pad(%1, 3f, pad_width=[[0, 0], [0, 1], [1, 0], [1, 1]])",
        "%x: Tensor[(1, 4, 30), int8]",
    ),
    "limits and a table with a transposition between": (
        "argmin(clip(transpose(qnn.add(%x, %x, 0.09f, 3, 0.05f, 1, 0.1f, 5), axes=[0, 3, 1, 2]), a_min=-20f, a_max=90f), axis=[2])",
        "%x: Tensor[(1, 5, 3, 16), int8]",
    ),
    "two tables with a transposition between": (
        '%0 = qnn.tanh(nn.max_pool2d(%x, pool_size=[1, 1], layout="NHWC"), 0.05f, 3, 0.01f, 5); '
        "argmin(transpose(%0, axes=[0, 3, 1, 2]), axis=[2])",
        "%x: Tensor[(1, 3, 4, 55), int8]",
    ),
}


def numbers(rng: np.random.Generator, shape: Any, dtype: str) -> np.ndarray:
    """Any bytes."""
    return rng.integers(-128, 128, shape).astype("int8").view(dtype)


#: Constants by the names of their parameters.
DRAWN = {
    "w": numbers,
    "s": lambda rng, shape, dtype: rng.uniform(0.3, 1.2, shape).astype(dtype),
    "ones": lambda rng, shape, dtype: np.ones(shape, dtype),
    "bias": lambda rng, shape, dtype: rng.integers(-999, 999, shape).astype(dtype),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, accelerator: str) -> None:
    body, params = PROGRAMS[name]
    mod, rng = fromtext(f"def @main({params}) {{ {body} }}", "net.relay"), np.random.default_rng(0)
    values: dict[str, np.ndarray] = {}
    for param in mod["main"].params:
        ty = param.type_annotation
        assert isinstance(ty, TensorType)
        values[param.name_hint] = DRAWN.get(param.name_hint, numbers)(rng, ty.shape, ty.dtype)
    wanted = fields(evaluate(mod, *values.values()))
    constants = {key: value for key, value in values.items() if key in DRAWN}
    artifact = ethosu.compile(mod, {"accelerator": accelerator}, constants)
    assert artifact.details["operations"]["host"] == 0, artifact.report()
    artifact.executor = "ethosu-sim"
    found = fields(artifact.run(**{key: value for key, value in values.items() if key not in constants}))
    for field, value in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(field, value)
