"""Each kind of layer alone: all of it goes to the accelerator, and gives the interpreter's integers there."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends import ethosu
from relaylang.backends.hosted import bind_params, check
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule, TensorType
from relaylang.syntax import fromtext
from tests.backends.ethosu.networks import fields
from tests.shared import each_once

ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
X, U = "%x: Tensor[(1, 8, 5, 6), int8]", "%x: Tensor[(2, 8, 5, 6), uint8]"
XY = f"{X}, %y: Tensor[(1, 8, 5, 6), int8]"
#: A region of movement alone would not be worth it.
MOVED = "%0 = qnn.add(%x, %x, 0.05f, 3, 0.02f, 1, 0.05f, 12); "
#: A sum that is cut to bytes.
SATURATED = "%0 = qnn.add(%x, %x, 0.27f, 0, 0.27f, 0, 0.16f, 0); "
SHIFTED = "%x: Tensor[(3, 4, 32), int32], %n: Tensor[(1, 32), int32]"

#: Sums of 32 bits, shifted by others.
SHIFTS_OF_SUMS = (
    'right_shift(qnn.requantize(%x, 0.1f, 3, 0.001f, 0, out_dtype="int32"), '
    'qnn.requantize(clip(%y, a_min=0f, a_max=20f), 1f, 0, 1f, 0, out_dtype="int32"))'
)


def softmax(x: str, attrs: str = "axis=-1", dtype: str = "int8", scale: float = 1 / 256, zero_point: int | None = None) -> str:
    zero_point = np.iinfo(dtype).min if zero_point is None else zero_point
    real = f"multiply(qnn.dequantize({x}, 0.05f, 7), 0.7f)"
    return f'qnn.quantize(nn.softmax({real}, {attrs}), {scale}f, {zero_point}, out_dtype="{dtype}")'


def resized(x: str, size: list[int], mode: str, layout: str, quantised: str = "") -> str:
    """A resize that mixes pixels, and a quantize behind it."""
    made = (
        f'image.resize2d({x}, size={size}, roi=[0f, 0f, 0f, 0f], layout="{layout}", method="linear", '
        f'coordinate_transformation_mode="{mode}")'
    )
    return f"qnn.quantize({made}, {quantised})" if quantised else made


def whole(name: str) -> str:
    """A variable in fixed point, as it is."""
    return f'fixed_point_multiply(cast(%{name}, dtype="int32"), multiplier=2147483647, shift=0)'


def averaged(quantised: str, attrs: str, dtype: str = "int8") -> str:
    """An average of real numbers, between quantised ones."""
    return f'qnn.quantize(nn.avg_pool2d(qnn.dequantize(%x, {quantised}), {attrs}), {quantised}, out_dtype="{dtype}")'


def finer(total: str, scale: float, zero_point: int) -> str:
    """A sum of int32 numbers at a 256th of the result's scale."""
    fine = f"{scale / 256}f, 0"
    lines = [
        f'%{i} = qnn.requantize(%{x}, {s}, {fine}, out_dtype="int32"); '
        for i, (x, s) in enumerate({"x": "0.05f, 3", "y": "0.02f, -7"}.items())
    ]
    return "".join(lines) + f'qnn.requantize({total}, {fine}, {scale}f, {zero_point}, out_dtype="int8")'


PROGRAMS = {
    "difference": ("qnn.subtract(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, -12)", XY),
    "finer sum": (finer("add(%0, %1)", 0.06, 5), XY),
    "finer difference": (f"clip({finer('subtract(%0, %1)', 0.06, -5)}, a_min=-90f, a_max=99f)", XY),
    "finer sum with a constant": (finer("add(-1234, %0)", 0.06, 5), XY),
    "sum of a large operand": ("qnn.add(%x, %y, 0.09f, 3, 0.02f, 1, 0.05f, -12)", XY),
    "sum with an operand at its scale": ("qnn.add(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, 12)", f"{U}, %y: Tensor[(8, 1, 1), uint8]"),
    "product": ("clip(qnn.mul(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, 12), a_min=9f, a_max=100f)", f"{U}, %y: Tensor[(8, 1, 1), uint8]"),
    "one number and five axes": (
        "qnn.subtract(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, 12)",
        "%x: Tensor[(1, 1, 1, 1, 1), int8], %y: Tensor[(4, 1, 5, 2, 1), int8]",
    ),
    "axes broadcast in turn": (
        "qnn.mul(%x, %y, 0.05f, 3, 0.02f, 1, 0.5f, 12)",
        "%x: Tensor[(2, 1, 3, 1, 5), int8], %y: Tensor[(4, 3, 2, 1), int8]",
    ),
    "both broadcast": (
        "qnn.add(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, 12)",
        "%x: Tensor[(1, 4, 1, 6), uint8], %y: Tensor[(4, 5, 1), uint8]",
    ),
    "smaller one": ("minimum(%x, %y)", XY),
    "larger one": ('qnn.requantize(clip(maximum(%x, %y), a_min=3f, a_max=100f), 0.1f, 3, 0.2f, 1, out_dtype="uint8")', XY),
    "sigmoid": ("qnn.sigmoid(%x, 0.05f, 3, 0.00390625f, -128)", X),
    "tanh": ("qnn.tanh(%x, 0.02f, 3, 0.0078125f, 128)", U),
    "chain": ('qnn.quantize(exp(negative(qnn.dequantize(%x, 0.05f, 3))), 0.1f, 0, out_dtype="uint8")', X),
    "shared value of a chain": (
        "%0 = qnn.dequantize(%x, 0.05f, 3); %1 = clip(add(%0, 3f), a_min=0f, a_max=6f); "
        'qnn.quantize(multiply(%0, divide(%1, 6f)), 0.1f, 0, out_dtype="int8")',
        X,
    ),
    "slice": (MOVED + "strided_slice(%0, begin=[0, 1, 1, 1], end=[1, 5, 4, 6], strides=[1])", X),
    "slice with strides": (MOVED + "strided_slice(%0, begin=[0, 1, 0, 1], end=[1, 8, 5, 6], strides=[1, 3, 2, 2])", U),
    "slice from behind": (MOVED + "strided_slice(%0, begin=[-1], end=[-7], strides=[-2], axes=[1])", U),
    "parts": (
        MOVED + "%1 = split(%0, indices_or_sections=[2, 5], axis=1); (qnn.add(%1.0, %1.0, 0.05f, 3, 0.05f, 3, 0.07f, 3), %1.1, %1.2)",
        U,
    ),
    "equal parts": (MOVED + "split(%0, indices_or_sections=4, axis=1)", X),
    "slice of a slice": (
        "%0 = strided_slice(%x, begin=[0, 1], end=[1, 7], strides=[1]); "
        '%1 = strided_slice(qnn.requantize(%0, 1f, 0, 2f, 1, out_dtype="int8"), begin=[0, 1, 1], end=[1, 5, 5], strides=[1]); '
        "qnn.add(%1, %1, 0.05f, 3, 0.02f, 1, 0.05f, 12)",
        X,
    ),
    "other axes": (MOVED + "transpose(%0, axes=[0, 2, 3, 1])", X),
    "other layout": ('nn.max_pool2d(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), pool_size=[2, 2], layout="NHWC")', U),
    "mirrored border": (MOVED + 'nn.mirror_pad(%0, mode="REFLECT", pad_width=[[0, 0], [0, 0], [2, 1], [1, 2]])', X),
    "border": (MOVED + 'nn.pad(%0, 0, pad_mode="edge", pad_width=[[0, 0], [0, 0], [2, 1], [1, 2]])', U),
    "reverse": (MOVED + "reverse(%0, axis=2)", X),
    "tile": (MOVED + "tile(%0, reps=[2, 2])", X),
    "repeat": (MOVED + "repeat(%0, repeats=3, axis=1)", X),
    "one entry": (MOVED + "take(%0, 3, axis=1)", X),
    "nearest pixels": (MOVED + "nn.upsampling(%0, scale_h=2f, scale_w=2f)", X),
    "uneven resize": (
        MOVED + 'image.resize2d(%0, size=[7, 9], roi=[0f, 0f, 0f, 0f], layout="NHWC", method="nearest_neighbor", '
        'coordinate_transformation_mode="half_pixel", rounding_method="round")',
        U,
    ),
    "mixed pixels": (resized("qnn.dequantize(%x, 1f, 0)", [20, 12], "half_pixel", "NCHW", '1f, 0, out_dtype="int8"'), X),
    "mixed pixels of a range": (
        resized("qnn.dequantize(%x, 0.25f, 7)", [29, 41], "align_corners", "NHWC", '0.25f, 9, out_dtype="uint8"'),
        "%x: Tensor[(2, 8, 6, 5), uint8]",
    ),
    "mixed rows": (resized("qnn.dequantize(%x, 2f, -9)", [40, 6], "asymmetric", "NCHW", '2f, -9, out_dtype="int8"'), X),
    "cut means of pixels": (resized("%x", [10, 12], "half_pixel", "NCHW"), X),
    "cut means of unsigned pixels": ('nn.upsampling(%x, scale_h=4f, scale_w=2f, method="bilinear")', U),
    "rounded average of windows": (averaged("1f, 0", "pool_size=[3, 3], padding=[1, 1, 1, 1]"), X),
    "rounded average of uneven windows": (
        averaged("0.25f, 7", 'pool_size=[2, 3], strides=[2, 3], padding=[0, 1, 1, 1], ceil_mode=True, layout="NHWC"', "uint8"),
        "%x: Tensor[(1, 21, 22, 7), uint8]",
    ),
    "rounded average of several images": (averaged("1f, 3", "pool_size=[2, 2], strides=[1, 2]"), "%x: Tensor[(3, 8, 5, 6), int8]"),
    "upward shifts": ("clip(left_shift(%x, %n), a_min=-9f, a_max=2000000000f)", SHIFTED),
    "downward shifts": ("right_shift(%x, %n)", SHIFTED),
    "downward shift of all": ("right_shift(%x, 7)", "%x: Tensor[(5, 6), int32]"),
    "downward shifts of five axes": (SHIFTS_OF_SUMS, "%x: Tensor[(4, 1, 1, 1, 2), int8], %y: Tensor[(1, 3, 1, 1, 2), int8]"),
    "downward shifts of another shape": (SHIFTS_OF_SUMS, "%x: Tensor[(5, 3, 2), int8], %y: Tensor[(3, 2), int8]"),
    "product in fixed point": (
        f"cast(clip(fixed_point_multiply(nn.dense({whole('x')}, {whole('y')}, units=7), multiplier=3, shift=15), "
        'a_min=-99f, a_max=99f), dtype="int8")',
        "%x: Tensor[(5, 900), int8], %y: Tensor[(7, 900), int8]",
    ),
    "tanh in fixed point": (f'cast(fixed_point_multiply(tanh({whole("x")}), multiplier=1, shift=16), dtype="int8")', X),
    "entries at constant places": (
        'scatter_nd(%x, %places, %y, mode="update")',
        "%x: Tensor[(9, 5, 6), int8], %places: Tensor[(1, 4), int64], %y: Tensor[(4, 5, 6), int8]",
    ),
    "probabilities": (softmax("%x", "axis=1"), X),
    "probabilities of a row": (softmax('qnn.requantize(%x, 1f, 0, 2f, 3, out_dtype="int8")'), "%x: Tensor[(3, 100), int8]"),
    "probabilities of unsigned numbers": (softmax("%x", dtype="uint8"), "%x: Tensor[(2, 1000), uint8]"),
    "one probability": (softmax("%x"), "%x: Tensor[(3, 1), int8]"),
    "probabilities at another scale": (softmax("%x", scale=0.003, zero_point=5), "%x: Tensor[(3, 1000), int8]"),
    "many probabilities of 7 bits": (softmax("%x", "axis=1", "uint8", 1 / 128), "%x: Tensor[(2, 70, 3), uint8]"),
    "integer probabilities": ("qnn.softmax(%x, 0.02f, 3, 0.004f, -128, axis=1)", X),
    "integer probabilities of large numbers": ("qnn.softmax(%x, 0.3f, 3, 0.004f, 9)", "%x: Tensor[(9, 100), int8]"),
    "slopes of channels": (
        '%0 = nn.prelu(qnn.dequantize(%x, 0.05f, 3), %slopes, axis=1); qnn.quantize(%0, 0.04f, -5, out_dtype="int8")',
        f"{X}, %slopes: Tensor[(8), float32]",
    ),
    "functions of channels": ("add(%x, %offsets)", "%x: Tensor[(2, 5, 6, 8), uint8], %offsets: Tensor[(8), uint8]"),
    "product of matrices": (
        '%0 = qnn.batch_matmul(%x, %y, 3, 4, 0.1f, 0.1f, out_dtype="int32", transpose_b=True); '
        'qnn.requantize(%0, 0.01f, 0, 0.3f, 3, out_dtype="int8")',
        "%x: Tensor[(2, 5, 16), int8], %y: Tensor[(2, 7, 16), int8]",
    ),
    "product of one matrix by itself": (
        'qnn.requantize(qnn.dense(%x, %x, 3, 3, 0.1f, 0.1f, units=5, out_dtype="int32"), 0.01f, 0, 0.3f, 3, out_dtype="uint8")',
        "%x: Tensor[(5, 16), uint8]",
    ),
    "sum": ('qnn.requantize(sum(cast(%x, dtype="int32"), axis=[2, 3]), 0.01f, 50, 0.3f, 3, out_dtype="uint8")', U),
    "rounded average": (
        'qnn.requantize(sum(cast(%x, dtype="int32"), axis=[2, 3]), 0.01f, -200, 0.4f, 3, out_dtype="int8")',
        "%x: Tensor[(1, 8, 5, 6), int8]",
    ),
    "rounded average of unsigned numbers": (
        '%0 = qnn.requantize(sum(cast(%x, dtype="int32"), axis=[2, 3]), 0.01f, 5120, 0.4f, 3, out_dtype="uint8"); '
        "clip(%0, a_min=9f, a_max=99f)",
        U,
    ),
    "sums of channels": ('sum(cast(%x, dtype="int32"), axis=[1])', X),
    "mean": ('cast(mean(cast(%x, dtype="int32"), axis=[1, 2]), dtype="int8")', X),
    "mean of axes apart": (
        'qnn.requantize(mean(cast(%x, dtype="int32"), axis=[1, 3], keepdims=True), 0.1f, 5, 0.3f, 3, out_dtype="int8")',
        X,
    ),
    "largest": ("max(%x, axis=[2, 3])", U),
    "smallest": ("min(%x, axis=[1], keepdims=True)", X),
    "place of the largest": ("argmax(%x, axis=[1])", X),
    "first of several places": ("argmax(clip(%x, a_min=-1f, a_max=1f), axis=[3])", X),
    "place of the largest of many": ("argmax(%x, axis=[1])", "%x: Tensor[(2, 1001), uint8]"),
    "product of widened matrices": (
        '%0 = nn.batch_matmul(cast(%x, dtype="int32"), cast(%y, dtype="int32"), out_dtype="int32", transpose_b=True); '
        'qnn.requantize(%0, 0.01f, 0, 0.3f, 3, out_dtype="int8")',
        "%x: Tensor[(2, 5, 16), int8], %y: Tensor[(2, 7, 16), uint8]",
    ),
    "conversion of joined sums": (
        SATURATED + '%1 = concatenate((%x, %0), axis=1); qnn.requantize(%1, 1.1f, 0, 1f, -69, out_dtype="int8")',
        X,
    ),
    "conversion of a sum of another shape": (
        SATURATED + '%1 = reshape(%0, newshape=[5, 48]); qnn.requantize(%1, 1.1f, 0, 1f, -69, out_dtype="int8")',
        X,
    ),
    "place of the smallest of limited numbers": ("argmin(clip(%x, a_min=3f, a_max=20f), axis=[2])", X),
    "place of the smallest": ("argmin(%x, axis=[2], keepdims=True)", U),
}


#: Parameters that are constants, by their names.
CONSTANTS = {
    "slopes": np.float32([0.25, 0.1, 0.1, 0.7, -0.3, 0.0, 1.5, 0.01]),
    "offsets": np.uint8([0, 1, 1, 200, 255, 7, 7, 9]),
    "places": np.int64([[3, 0, 8, 3]]),
    **{
        name: np.random.default_rng(1).integers(-127, 128, shape).astype("int8")
        for name, shape in {"w": (4, 8, 3, 3), "matrix": (5, 9), "k": (8, 1, 3, 3)}.items()
    },
}
#: Inputs of chosen numbers: all numbers of bits, places that differ, and divisors.
CHOSEN = {
    "n": np.arange(32, dtype=np.int32).reshape(1, 32),
    "i": np.int32([3, 0, 7]),
    "m": np.arange(-58, 62, 4, dtype=np.int32).reshape(5, 6),
}


def program(body: str, params: str) -> tuple[IRModule, dict[str, np.ndarray]]:
    mod = fromtext(f"def @main({params}) {{ {body} }}", "net.relay")
    rng, values = np.random.default_rng(0), {}
    for param in mod["main"].params:
        ty = param.type_annotation
        assert isinstance(ty, TensorType)
        if param.name_hint in CONSTANTS:
            continue
        if param.name_hint in CHOSEN:
            values[param.name_hint] = CHOSEN[param.name_hint]
            continue
        low, high = (0, 1) if ty.dtype == "bool" else (np.iinfo(ty.dtype).min, np.iinfo(ty.dtype).max)
        numbers = rng.integers(low, high + 1, ty.shape)  # type: ignore[arg-type]
        if ty.dtype == "int32":
            numbers[0], numbers[-1] = low, high
        values[param.name_hint] = numbers.astype(ty.dtype)
    constants = {param.name_hint: CONSTANTS[param.name_hint] for param in mod["main"].params if param.name_hint in CONSTANTS}
    return bind_params(check(mod), constants, "main"), values


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "accelerator"), each_once(PROGRAMS, ACCELERATORS))
def test_layer(name: str, accelerator: str) -> None:
    assert_exact(*PROGRAMS[name], accelerator)


def assert_exact(body: str, params: str, accelerator: str) -> None:
    """A program goes to the accelerator as a whole, and gives the interpreter's integers there."""
    mod, values = program(body, params)
    wanted = fields(evaluate(mod, *values.values()))
    artifact = ethosu.compile(mod, {"accelerator": accelerator})
    assert artifact.details["operations"]["host"] == 0, artifact.report()
    for executor in ("tosa", "ethosu-sim"):
        artifact.executor = executor
        found = fields(artifact.run(**values))
        assert [f.dtype for f in found] == [v.dtype for v in wanted]
        for field, value in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(field, value)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_a_difference_reads_bytes_once(accelerator: str) -> None:
    """Operands are not written as int32: a table for the one with another scale, and the difference."""
    mod, _ = program(*PROGRAMS["difference"])
    (region,) = ethosu.compile(mod, {"accelerator": accelerator}).regions.values()
    assert [layer["operator"] for layer in region.details["estimate"]["layers"]] == ["LUT", "Sub"]
