"""Layers of int16: all of each goes to the accelerator, and gives the interpreter's integers there."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu import vela
from relaylang.frontends.tflite import import_tflite
from relaylang.interpreter import evaluate
from tests.backends.ethosu.spotter import SHAPE, spotter
from tests.backends.ethosu.test_layers import ACCELERATORS, assert_exact, program
from tests.frontends.tflite.runtime import outputs
from tests.shared import few

pytest.importorskip("tflite", reason="needs relaylang[tflite]")

X = "%x: Tensor[(1, 8, 5, 6), int16]"
TWO = "%x: Tensor[(2, 8, 5, 6), int16]"
XY = f"{X}, %y: Tensor[(1, 8, 5, 6), int16]"
#: A region of movement alone would not be worth it.
MOVED = "%0 = nn.max_pool2d(%x, pool_size=[2, 1]); "


def wide(call: str) -> str:
    return f'qnn.requantize({call}, 0.01f, 0, 0.3f, 0, out_dtype="int16")'


PROGRAMS = {
    "sum": ("qnn.add(%x, %y, 0.05f, 0, 0.02f, 0, 0.05f, 0)", XY),
    "sum of one scale": ("qnn.add(%x, %y, 0.05f, 0, 0.05f, 0, 0.05f, 0)", XY),
    "difference": ("nn.relu(qnn.subtract(%x, %y, 0.05f, 0, 0.02f, 0, 0.15f, 0))", XY),
    "product": ("clip(qnn.mul(%x, %y, 0.00005f, 0, 0.02f, 0, 0.05f, 0), a_min=-9999f, a_max=10000f)", XY),
    "smaller one": ("minimum(%x, %y)", XY),
    "larger one": ('qnn.requantize(clip(maximum(%x, %y), a_min=-300f, a_max=9000f), 0.1f, 0, 12f, 1, out_dtype="int8")', XY),
    "to int8": ('qnn.requantize(%x, 0.1f, 0, 22f, 5, out_dtype="int8")', TWO),
    "to uint8": ('qnn.requantize(%x, 0.1f, 0, 22f, 5, out_dtype="uint8")', TWO),
    "to int32": ('qnn.requantize(%x, 0.1f, 0, 0.001f, 0, out_dtype="int32")', X),
    "from int8": ('qnn.requantize(%x, 0.1f, 7, 0.001f, 0, out_dtype="int16")', "%x: Tensor[(2, 8, 5, 6), int8]"),
    "from uint8": ('qnn.requantize(%x, 0.1f, 7, 0.001f, 0, out_dtype="int16")', "%x: Tensor[(2, 8, 5, 6), uint8]"),
    "from int32": ('qnn.requantize(%x, 0.000001f, 0, 0.1f, 0, out_dtype="int16")', "%x: Tensor[(2, 8, 5, 6), int32]"),
    "pool": ("nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])", TWO),
    "average": ('cast(nn.avg_pool2d(cast(%x, dtype="int32"), pool_size=[2, 3], strides=[1, 1]), dtype="int16")', X),
    "average of an image": ('cast(nn.global_avg_pool2d(cast(%x, dtype="int32")), dtype="int16")', TWO),
    "sums of channels": (wide('sum(cast(%x, dtype="int32"), axis=[1])'), X),
    "sums": ('sum(cast(%x, dtype="int32"), axis=[2, 3])', X),
    "mean": ('cast(mean(cast(%x, dtype="int32"), axis=[1, 2]), dtype="int16")', X),
    "largest": ("max(%x, axis=[2, 3])", X),
    "smallest": ("min(%x, axis=[2, 3])", X),
    "place of the largest": ("argmax(%x, axis=[1])", TWO),
    "place of the smallest": ("argmin(clip(%x, a_min=-300f, a_max=9000f), axis=[3], keepdims=True)", TWO),
    "joined": (MOVED + "qnn.concatenate((%0, %y), (0.1f, 0.2f), (0, 0), 0.3f, 0, axis=2)", XY),
    "slice": (MOVED + "strided_slice(%0, begin=[0, 1, 0, 1], end=[1, 8, 3, 6], strides=[1, 3, 2, 2])", X),
    "parts": (MOVED + "%1 = split(%0, indices_or_sections=[2, 5], axis=1); (qnn.add(%1.0, %1.0, 1f, 0, 1f, 0, 2f, 0), %1.1, %1.2)", X),
    "border": (MOVED + "nn.pad(%0, -7777, pad_width=[[0, 0], [0, 1], [1, 2], [0, 3]])", X),
    "mirrored border": (MOVED + 'nn.mirror_pad(%0, mode="REFLECT", pad_width=[[0, 0], [0, 0], [2, 1], [1, 2]])', X),
    "other axes": (MOVED + "reshape(transpose(%0, axes=[0, 3, 1, 2]), newshape=[1, 12, 16])", X),
    "nearest pixels": (MOVED + "nn.upsampling(%0, scale_h=2f, scale_w=2f)", X),
}


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_layer(name: str, accelerator: str) -> None:
    assert_exact(*PROGRAMS[name], accelerator)


def real(call: str, out: str) -> str:
    return f'qnn.quantize({call}, {out}, out_dtype="int16")'


FUNCTIONS = {
    "sigmoid": (real("sigmoid(qnn.dequantize(%x, 0.0005f, 0))", "0.000030517578125f, 0"), X),
    "chain behind a sum": (
        "%0 = qnn.add(%x, %x, 0.05f, 0, 0.05f, 0, 0.12f, 0); %1 = qnn.dequantize(%0, 0.0005f, 0); "
        + real("multiply(%1, sigmoid(%1))", "0.0004f, 0"),
        TWO,
    ),
    "chain behind a product": (
        'nn.relu(qnn.quantize(exp(qnn.dequantize(qnn.requantize(%x, 0.001f, 0, 0.01f, 0, out_dtype="int16"), 0.0001f, 0)), '
        '0.1f, -9, out_dtype="int8"))',
        "%x: Tensor[(2, 8, 5, 6), int32]",
    ),
    "chain behind a sum that is cut": (
        "%0 = qnn.add(%x, %x, 0.13f, 0, 0.5f, 0, 0.5f, 0); "
        + real("sigmoid(qnn.dequantize(%0, 0.0005f, 0))", "0.000030517578125f, 0"),
        X,
    ),
    "to unsigned numbers": ('qnn.quantize(tanh(qnn.dequantize(%x, 0.0001f, 0)), 0.0078125f, 128, out_dtype="uint8")', X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_on_the_u85(name: str) -> None:
    assert_exact(*FUNCTIONS[name], "ethos-u85-256")


def test_functions_elsewhere() -> None:
    mod, values = program(*FUNCTIONS["chain behind a sum"])
    artifact = ethosu.compile(mod, {"accelerator": "ethos-u65-512"})
    (found,) = {note["why"].partition(": ")[2] for note in artifact.details["stays_on_host"]}
    assert found.startswith("only the Ethos-U85 computes functions of int16 numbers")
    np.testing.assert_array_equal(artifact.run(**values), evaluate(mod, *values.values()))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_functions_to_int16(dtype: str, accelerator: str) -> None:
    """Tables of the upper and of the lower 8 bits."""
    call = real("sigmoid(qnn.dequantize(%x, 0.05f, 3))", "0.000030517578125f, 0")
    assert_exact(call, f"%x: Tensor[(2, 8, 5, 6), {dtype}]", accelerator)


SHIFTED = "right_shift(add(multiply({}, 20001i64), 536870912i64), 30i64)"
MATRICES = "%x: Tensor[(2, 5, 30), int16], %y: Tensor[(2, 7, 30), int16]"
#: Products of two tensors of int16 numbers.
PRODUCTS = {
    "batches": ("transpose_b=True", "nn.batch_matmul", MATRICES),
    "turned batches": (
        "transpose_a=True, transpose_b=False",
        "nn.batch_matmul",
        "%x: Tensor[(2, 9, 5), int16], %y: Tensor[(2, 9, 7), int16]",
    ),
    "matrices": ("units=12", "nn.matmul", "%x: Tensor[(9, 300), int16], %y: Tensor[(300, 12), int16]"),
    "long rows": ("units=4", "nn.dense", "%x: Tensor[(3, 511), int16], %y: Tensor[(4, 511), int16]"),
}


def product(name: str) -> tuple[str, str]:
    attrs, op, params = PRODUCTS[name]
    sums = f'{op}(cast(%x, dtype="int64"), cast(%y, dtype="int64"), {attrs}, out_dtype="int64")'
    return f'cast(clip({SHIFTED.format(sums)}, a_min=-32768f, a_max=32767f), dtype="int16")', params


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_on_the_u85(name: str) -> None:
    assert_exact(*product(name), "ethos-u85-256")


@pytest.mark.parametrize("accelerator", ACCELERATORS[:2])
def test_products_elsewhere(accelerator: str) -> None:
    with pytest.raises(RelayError, match="only the Ethos-U85 multiplies tensors of int16") as wrong:
        ethosu.compile(program(*product("batches"))[0], {"accelerator": accelerator})
    assert wrong.value.diagnostics[0].code == "R0614"


def test_products_that_may_not_fit() -> None:
    body, params = product("long rows")
    with pytest.raises(RelayError, match="its sums may leave the range of 40 bits"):
        ethosu.compile(program(body, params.replace("511", "512"))[0], {"accelerator": "ethos-u85-256"})


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize(("given", "made"), [("int16", "int16"), ("int16", "uint8"), ("int8", "int16")])
def test_probabilities(given: str, made: str, accelerator: str) -> None:
    """Few of them lie so close to a half that the interpreter's real numbers round the other way."""
    before, behind = "0.0003f, 0" if given == "int16" else "0.04f, 3", f"{1 / 32768}f, 0" if made == "int16" else "0.007f, 7"
    body = f'qnn.quantize(nn.softmax(qnn.dequantize(%x, {before}), axis=1), {behind}, out_dtype="{made}")'
    mod, values = program(body, f"%x: Tensor[(3, 30, 4), {given}]")
    wanted = evaluate(mod, *values.values())
    artifact = ethosu.compile(mod, {"accelerator": accelerator})
    assert artifact.details["operations"]["host"] == 0, artifact.report()
    (x,) = values.values()
    model = artifact.run(x)
    assert model.dtype == wanted.dtype and np.count_nonzero(model != wanted) <= 1
    assert np.abs(model.astype(int) - wanted).max() <= 1
    artifact.executor = "ethosu-sim"
    np.testing.assert_array_equal(artifact.run(x), model)


@pytest.mark.parametrize("accelerator", few(vela.ACCELERATORS, *ACCELERATORS))
def test_a_network_of_tensorflow_lite(accelerator: str) -> None:
    """Imported, compiled as one region, and executed: the interpreter's integers, next to those of LiteRT."""
    data = spotter()
    x = np.random.default_rng(2).integers(-32768, 32768, SHAPE).astype("int16")
    mod = import_tflite(data, file="spotter.tflite").module
    wanted = evaluate(mod, x)
    assert np.abs(wanted.astype(int) - outputs(data, [[x]])[0][0]).max() <= 1
    artifact = ethosu.compile(mod, {"accelerator": accelerator})
    assert artifact.details["operations"]["host"] == 0 and len(artifact.regions) == 1, artifact.report()
    for executor in ("tosa", "ethosu-sim"):
        artifact.executor = executor
        np.testing.assert_array_equal(artifact.run(x), wanted)
