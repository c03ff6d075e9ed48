"""What operators make of their arguments' types. The expected types are TVM 0.16's."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import Diagnostic
from relaylang.ir import Function, IRModule
from relaylang.syntax import parse
from relaylang.typing import infer


def typed(call: str, *params: str) -> tuple[str, list[Diagnostic]]:
    """The function type of a call of parameters `%a`, `%b`, ... of given types ("" for none)."""
    names = "abcdefgh"
    declared = ", ".join(f"%{n}: {t}" if t else f"%{n}" for n, t in zip(names, params))
    module = parse(f'#[version = "0.0.5"]\ndef @main({declared}) {{ {call} }}').module
    assert isinstance(module, IRModule)
    said = infer(module)
    main = module["main"]
    assert isinstance(main, Function)
    return repr(main.checked_type.ret_type) if main.checked_type is not None else "", said  # type: ignore[attr-defined]


def t(*shape: object, dtype: str = "float32") -> str:
    return f"Tensor[({', '.join(map(str, shape))}), {dtype}]" if shape else dtype


GOOD = [
    ("add(%a, %b)", (t(4, 1, 3), t(2, 1)), t(4, 2, 3)),
    ("add(%a, %b)", (t("?", 3), t(5, 3)), t(5, 3)),
    ("add(%a, %b)", (t("?", 3), t(1, 3)), t("?", 3)),
    ("less(%a, %b)", (t(2, 3), t()), t(2, 3, dtype="bool")),
    # The weight of a depthwise convolution counts its channels by input and multiplier.
    ("nn.conv2d(%a, %b, channels=8, groups=4, kernel_size=[3, 3])", (t(1, "4i64", 8, 8), t(4, 2, 3, 3)), t(1, 8, 6, 6)),
    ("isnan(%a)", (t(2),), t(2, dtype="bool")),
    ('cast(%a, dtype="int8")', (t(2, "?"),), t(2, "?", dtype="int8")),
    ("sum(%a, axis=[1], keepdims=True)", (t(2, 3, 4),), t(2, 1, 4)),
    ("sum(%a, axis=[-1], exclude=True)", (t(2, 3, 4),), t(4)),
    ("mean(%a)", (t(2, 3),), t()),
    ("argmax(%a, axis=[0])", (t(2, 3),), t(3, dtype="int32")),
    ("reshape(%a, newshape=[0, -1])", (t(2, 3, 4),), t(2, 12)),
    ("reshape(%a, newshape=[-3, -2])", (t(2, 3, 4, 5),), t(6, 4, 5)),
    ("reshape(%a, newshape=[-4, -1, 2, -2])", (t(6, 5),), t(3, 2, 5)),
    ("reshape(%a, newshape=[-1, 4])", (t("?", 8),), t("?", 4)),
    ("contrib_reverse_reshape(%a, newshape=[-1, 0])", (t(10, 5, 4),), t(50, 4)),
    ("reshape_like(%a, %b, lhs_begin=1, rhs_begin=1)", (t(3, 8), t(1, 2, 2, 2)), t(3, 2, 2, 2)),
    ("transpose(%a, axes=None)", (t(2, 3, 4),), t(4, 3, 2)),
    ("transpose(%a, axes=[0, -1, 1])", (t(2, 3, 4),), t(2, 4, 3)),
    ("expand_dims(%a, axis=-1, num_newaxis=2)", (t(2),), t(2, 1, 1)),
    ("squeeze(%a)", (t(1, 2, 1),), t(2)),
    ("squeeze(%a, axis=[0])", (t(1, 2, "?"),), t(2, "?")),
    ("concatenate((%a, %b), axis=1)", (t(2, 3), t(2, 5)), t(2, 8)),
    ("concatenate((%a, %b), axis=1)", (t(2, 3), t(2, "?")), t(2, "?")),
    ("stack((%a, %b), axis=-1)", (t(2, 3), t(2, 3)), t(2, 3, 2)),
    ("split(%a, indices_or_sections=2, axis=1)", (t(2, 6),), f"({t(2, 3)}, {t(2, 3)})"),
    ("split(%a, indices_or_sections=[1, 3], axis=1)", (t(2, 6),), f"({t(2, 1)}, {t(2, 2)}, {t(2, 3)})"),
    ("take(%a, %b)", (t(5, 6), t(2, 3, dtype="int64")), t(2, 3)),
    ("take(%a, %b, axis=1)", (t(5, 6), t(2, 3, dtype="int32")), t(5, 2, 3)),
    ("take(%a, %b, axis=1, batch_dims=1)", (t(2, 6, 4), t(2, 3, dtype="int32")), t(2, 3, 4)),
    ("gather_nd(%a, %b)", (t(5, 6, 7), t(2, 3, dtype="int32")), t(3, 7)),
    ("repeat(%a, repeats=3, axis=0)", (t(2, 2),), t(6, 2)),
    (
        "tile(%a, reps=[2, 3])",
        (
            t(
                4,
            ),
        ),
        t(2, 12),
    ),
    ("where(%a, %b, %c)", (t(3, 1, dtype="bool"), t(2), t()), t(3, 2)),
    ("strided_slice(%a, begin=[1], end=[-1], strides=[2], axes=None)", (t(10, 3),), t(4, 3)),
    ("strided_slice(%a, begin=[-1], end=[-11], strides=[-1], axes=None)", (t(10),), t(10)),
    ('strided_slice(%a, begin=[2, 0], end=[3, -1], strides=[1], slice_mode="size", axes=None)', (t(9, 4),), t(3, 4)),
    ("strided_slice(%a, begin=[1], end=[3], strides=[1], axes=[1])", (t(9, 4),), t(9, 2)),
    ('zeros(shape=[2, 3], dtype="int8")', (), t(2, 3, dtype="int8")),
    ("full(%a, shape=[2])", (t(dtype="int32"),), t(2, dtype="int32")),
    ('one_hot(%a, 1f, 0f, depth=5, axis=0, dtype="float32")', (t(2, 3, dtype="int32"),), t(5, 2, 3)),
    ('layout_transform(%a, src_layout="NCHW", dst_layout="NCHW8c")', (t(1, 32, 5, 6),), t(1, 4, 5, 6, 8)),
    ('topk(%a, k=2, dtype="int32")', (t(3, 9),), f"({t(3, 2)}, {t(3, 2, dtype='int32')})"),
    ("matrix_set_diag(%a, %b, k1=1, k2=1)", (t(2, 3, 4), t(2, 3)), t(2, 3, 4)),
    ("nn.conv2d(%a, %b, padding=[1, 1], channels=8, kernel_size=[3, 3])", (t(1, 4, 9, 9), ""), t(1, 8, 9, 9)),
    ("nn.conv2d(%a, %b, strides=[2, 2])", (t(1, 4, 9, "?"), t(8, 4, 3, 3)), t(1, 8, 4, "?")),
    (
        'nn.conv2d(%a, %b, channels=8, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO")',
        (t(1, 5, 5, 4), t(1, 1, 4, 8)),
        t(1, 5, 5, 8),
    ),
    ("nn.conv2d(%a, %b, groups=4, channels=8, kernel_size=[3, 3])", (t(1, 4, 5, 5), t(4, 2, 3, 3)), t(1, 8, 3, 3)),
    ("nn.conv2d(%a, %b, groups=2, channels=8, kernel_size=[3, 3])", (t(1, 4, 5, 5), t(8, 2, 3, 3)), t(1, 8, 3, 3)),
    ("nn.conv1d(%a, %b, padding=[1, 0], dilation=[2])", (t(1, 4, 9), t(8, 4, 3)), t(1, 8, 6)),
    ("nn.conv3d(%a, %b, kernel_size=[1, 2, 3], channels=2)", (t(1, 1, 4, 5, 6), ""), t(1, 2, 4, 4, 4)),
    (
        "nn.conv2d_transpose(%a, %b, channels=2, kernel_size=[3, 3], strides=[2, 2], output_padding=[1, 1], padding=[1, 1])",
        (t(1, 4, 5, 5), ""),
        t(1, 2, 10, 10),
    ),
    ("nn.max_pool2d(%a, pool_size=[2, 2], strides=[2, 2])", (t(1, 3, 7, 7),), t(1, 3, 3, 3)),
    ("nn.max_pool2d(%a, pool_size=[2, 2], strides=[2, 2], ceil_mode=True)", (t(1, 3, 7, 7),), t(1, 3, 4, 4)),
    ('nn.avg_pool2d(%a, pool_size=[3, 3], padding=[1, 0, 1, 0], layout="NHWC")', (t(1, 8, 8, 3),), t(1, 8, 6, 3)),
    ("nn.global_avg_pool2d(%a)", (t(1, 3, 7, "?"),), t(1, 3, 1, 1)),
    ("nn.adaptive_avg_pool3d(%a, output_size=[1, 2, 3])", (t(1, 3, 8, 8, 8),), t(1, 3, 1, 2, 3)),
    ("nn.dense(%a, %b, units=7)", (t(2, 5), ""), t(2, 7)),
    ("nn.dense(%a, %b, units=None)", (t(3, 2, 5), t(7, 5)), t(3, 2, 7)),
    ("nn.matmul(%a, %b, units=None, transpose_a=True)", (t(5, 2), t(5, 7)), t(2, 7)),
    ("nn.batch_matmul(%a, %b, transpose_b=True)", (t(1, 4, 5), t(3, 6, 5)), t(3, 4, 6)),
    ("nn.batch_norm(%a, %b, %c, %d, %e)", (t(2, 3, 4), "", "", "", ""), f"({t(2, 3, 4)}, {t(3)}, {t(3)})"),
    ("nn.batch_flatten(%a)", (t(2, 3, 4),), t(2, 12)),
    ("nn.pad(%a, 0f, pad_width=[[0, 0], [1, 2]])", (t(2, 3),), t(2, 6)),
    ("nn.upsampling(%a, scale_h=0.5, scale_w=1.5)", (t(1, 1, 5, 7),), t(1, 1, 2, 10)),
    ("nn.dropout(%a)", (t(2),), f"({t(2)}, {t(2)})"),
    (
        'image.resize2d(%a, size=[8, 9], roi=[0f, 0f, 0f, 0f], layout="NHWC", out_dtype="int8")',
        (t(1, 4, 4, 3),),
        t(1, 8, 9, 3, dtype="int8"),
    ),
    ("image.affine_grid(%a, target_shape=[5, 6])", (t(2, 2, 3),), t(2, 2, 5, 6)),
    ("image.grid_sample(%a, %b)", (t(1, 3, 8, 8), t(1, 2, 5, 6)), t(1, 3, 5, 6)),
    ("image.dilation2d(%a, %b, strides=[2, 1], padding=[1, 0])", (t(1, 3, 8, 8), t(3, 3, 2)), t(1, 3, 4, 7)),
    ("dyn.reshape(%a, %b, newshape=None)", (t(2, 3), t(3, dtype="int64")), t("?", "?", "?")),
    ('dyn.zeros(%a, shape=None, dtype="int8")', (t(2, dtype="int64"),), t("?", "?", dtype="int8")),
    ('dyn.topk(%a, 3, k=None, axis=0, ret_type="values", dtype="int32")', (t(9, 4),), t("?", 4)),
    ("dyn.tile(%a, %b, reps=None)", (t(9, 4), t(2)), t("?", "?")),
    (
        "sparse_fill_empty_rows(%a, %b, %c, 0i64)",
        (t(4, 3, dtype="int64"), t(4, dtype="int64"), t(3, dtype="int64")),
        f"({t('?', 3, dtype='int64')}, {t('?', dtype='int64')}, {t('?', dtype='int64')})",
    ),
    (
        "stft(%a, %b, n_fft=8, hop_length=3, win_length=8, normalized=False, onesided=True)",
        (t(2, 30), t(8, dtype="int32")),
        t(2, 5, 8, 2),
    ),
    # Without return_indices nothing looks at the indices.
    ("vision.non_max_suppression(%a, %b, %a, 3, 0.5f, return_indices=False)", (t(1, 9, 6), t(1, dtype="int32")), t(1, 9, 6)),
    (
        "dyn.strided_slice(%a, %b, %b, %b, begin=None, end=None, strides=None, axes=None)",
        (t(3, 4, 5), t(2, dtype="int32")),
        t("?", "?", 5),
    ),
    (
        'random.uniform(%a, 0f, 1f, out_shape=[2], out_dtype="float32")',
        ("",),
        f"({t(10, dtype='uint64')}, {t(2)})",
    ),
    ("cumsum(%a, axis=0, exclusive=True)", (t(3, 4),), t(3, 4)),
    ('cumprod(%a, dtype="float64")', (t(3, 4),), t(12, dtype="float64")),
    ("nn.dilate(%a, strides=[2, 2])", (t(3, 4),), t(5, 7)),
    ("scatter_nd(%a, %b, %c)", (t(5, 6), t(1, 3, dtype="int32"), t(3, 6)), t(5, 6)),
    ("scatter_nd(%a, %b, %c)", (t(3, 4), t(1, 2, dtype="int64"), t(2, "?")), t(3, 4)),
    (
        "adv_index((%a, %b, %c))",
        (t(5, 6, 7, dtype="int32"), t(2, 1, dtype="int32"), t(3, dtype="int32")),
        t(2, 3, 7, dtype="int32"),
    ),
    ('einsum((%a, %b), equation="ij,jk->ik")', (t(2, 3), t(3, 4)), t(2, 4)),
    ('einsum((%a, %b), equation="...ij,jk->...ik")', (t(6, 5, 2, 3), t(3, 4)), t(6, 5, 2, 4)),
    ('einsum((%a, %b), equation="ba,ac")', (t(2, 3), t(3, 4)), t(2, 4)),
    ("sparse_to_dense(%a, %b, 0f, output_shape=[9])", (t(4, dtype="int32"), t(4)), t(9)),
    ('qnn.quantize(%a, %b, 0, out_dtype="int8", axis=1)', (t(2, 3), t(3)), t(2, 3, dtype="int8")),
    ('qnn.dequantize(%a, 1f, 0, out_dtype="float32")', (t(2, dtype="uint8"),), t(2)),
    ('qnn.requantize(%a, 1f, 0, 2f, 0, out_dtype="int8")', (t(2, dtype="int32"),), t(2, dtype="int8")),
    (
        'qnn.conv2d(%a, %b, 0, 0, 1f, %c, channels=8, kernel_size=[3, 3], out_dtype="int32")',
        (t(1, 4, 5, 5, dtype="uint8"), t(8, 4, 3, 3, dtype="int8"), t(8)),
        t(1, 8, 3, 3, dtype="int32"),
    ),
    (
        'qnn.dense(%a, %b, 0, 0, 1f, 1f, units=7, out_dtype="int32")',
        (t(2, 5, dtype="int8"), t(7, 5, dtype="int8")),
        t(2, 7, dtype="int32"),
    ),
    (
        "qnn.add(%a, %b, 1f, 0, 1f, 0, 1f, 0)",
        (t(2, 3, dtype="int8"), t(3, dtype="int8")),
        t(2, 3, dtype="int8"),
    ),
    (
        "qnn.concatenate((%a, %b), (1f, 1f), (0, 0), 1f, 0, axis=1)",
        (t(2, 3, dtype="int8"), t(2, 1, dtype="int8")),
        t(2, 4, dtype="int8"),
    ),
]


@pytest.mark.parametrize(("call", "params", "expected"), GOOD)
def test_result(call: str, params: tuple[str, ...], expected: str) -> None:
    found, said = typed(call, *params)
    assert not said, [str(d) for d in said]
    assert found == expected


WRONG = [
    ("add(%a, %b)", (t(2, 3), t(4)), "does not broadcast with (2, 3): axis -1 is 4, not 3"),
    ("add(%a, %b)", (t(2), t(2, dtype="int8")), "is of int8, but the first argument is of float32"),
    ("reshape(%a, newshape=[5])", (t(2, 3),), "6 elements are not 5"),
    ("reshape(%a, newshape=[-1, -1])", (t(2, 3),), "only one extent"),
    ("transpose(%a, axes=[0, 0])", (t(2, 3),), "names a dimension twice"),
    ("squeeze(%a, axis=[1])", (t(2, 3),), "only 1 can be squeezed away"),
    ("sum(%a, axis=[2])", (t(2, 3),), "axis=2 is out of range for a tensor of 2 dimensions"),
    ("concatenate((%a, %b), axis=0)", (t(2, 3), t(2, 4)), "they differ along axis 1"),
    ("split(%a, indices_or_sections=4)", (t(6),), "do not go into 4 equal parts"),
    ("take(%a, %b)", (t(6), t(2)), "must be a tensor of whole numbers"),
    (
        "nn.conv2d(%a, %b, channels=8, kernel_size=[3, 3])",
        (t(1, 4, 9, 9), t(8, 5, 3, 3)),
        "argument 2 (weight) must be `Tensor[(8, 4, 3, 3), float32]`, not `Tensor[(8, 5, 3, 3), float32]`: dimension 1 is 5, not 4",
    ),
    ("nn.conv2d(%a, %b)", (t(1, 4, 9, 9), t(8, 5, 3, 3)), "takes 5 input channels, but the data has 4"),
    ("nn.conv2d(%a, %b)", (t(4, 9, 9), t(8, 5, 3, 3)), "has 3 dimensions, but the layout `NCHW` has 4"),
    ("nn.dense(%a, %b, units=None)", (t(2, 5), t(7, 4)), "sums over 4 numbers"),
    ("nn.bias_add(%a, %b)", (t(2, 5), t(4)), "argument 2 (bias) must be `Tensor[(5), float32]`"),
    ("nn.softmax(%a, axis=2)", (t(2, 5),), "axis=2 is out of range"),
    ("qnn.dense(%a, %a, 0, 0, 1f, 1f, units=None)", (t(2, 2, dtype="int8"),), "out_dtype must be int32 or int64, but is not given"),
    ('qnn.quantize(%a, 1, 0, out_dtype="int8")', (t(2),), "argument 2 (output_scale) must be of float32, not int32"),
    ('einsum((%a, %b), equation="ij,jk->ik")', (t(2, 3), t(4, 5)), "the letter `j` stands for 3 and for 4 entries"),
    ("scatter_nd(%a, %b, %c)", (t(5, 6), t(1, 3, dtype="int32"), t(2, 6)), "has the extent 2 along axis 0"),
    ("qnn.tanh(%a, 1f, 0, 1f, 0)", (t(2),), "argument 1 (data) must be of int8 or uint8, not float32"),
    ("nn.relu((%a, %a))", (t(2),), "argument 1 (data) must be a tensor, not `(Tensor"),
    ("nn.relu(%a)", ("fn (float32) -> float32",), "argument 1 (data) must be a tensor, not `fn "),
    *[
        (f"{op}(%a, %a)", (t(2),), "must be a tensor of whole numbers or bool, not of float32")
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
    ],
    ("bitwise_not(%a)", (t(2, dtype="float16"),), "must be a tensor of whole numbers or bool, not of float16"),
    ('cast(%a, dtype="float7")', (t(2),), "`float7` is not an element type"),
    ('zeros(shape=[2], dtype="int7")', (), "`int7` is not an element type"),
]


@pytest.mark.parametrize(("call", "params", "message"), WRONG)
def test_error(call: str, params: tuple[str, ...], message: str) -> None:
    _, said = typed(call, *params)
    assert [d.code for d in said] == ["R0301"], [str(d) for d in said]
    assert message in said[0].title
    assert said[0].span is not None


#: Calls, and the value that the note names.
REPAIRS = [
    ("add(%a, %b)", (t(2, 3), t(2, 4)), "(2, 3) and (2, 1) broadcast with (2, 3)"),
    ("add(%a, %b)", (t(2, 4, 3), t(2)), "(2, 1, 1) in place of (2) broadcasts"),
    ("add(%a, %b)", (t(2), t(2, 4, 3)), "(2, 1, 1) in place of (2) broadcasts"),
    ("transpose(%a, axes=[0, 0, 0])", (t(2, 3, 4),), "missing: 1, 2"),
    ("sum(%a, axis=[1, -1])", (t(2, 3),), "`axis=[1]` has each axis once"),
    ("reshape(%a, newshape=[-1, -1, 4])", (t(2, 3, 4),), "`newshape=[2, -1, 4]` fits"),
    ("reshape(%a, newshape=[-1, 5, -1])", (t(2, 3, 4),), "write a number for all `-1` but one"),
    ("reshape(%a, newshape=[-1, -1])", (t("?", 3),), "write a number for all `-1` but one"),
    ("concatenate((%a, %b), axis=1)", (t(2, 3), t(4, 3)), "`axis=0` joins them"),
    ("concatenate((%a, %b), axis=0)", (t(2, 3), t(4, 5)), "fields of the shape (?, 3) can be joined along axis 0"),
]


@pytest.mark.parametrize(("call", "params", "repair"), REPAIRS)
def test_repair(call: str, params: tuple[str, ...], repair: str) -> None:
    _, said = typed(call, *params)
    assert len(said) == 1 and repair in said[0].notes[0]


def test_a_list_is_no_tensor() -> None:
    text = '#[version = "0.0.5"]\ntype Row { End, Next(float32, Row) }\ndef @main(%a: Row) { nn.relu(%a) }'
    module = parse(text).module
    assert isinstance(module, IRModule)
    said = infer(module)
    assert [d.code for d in said] == ["R0301"] and "must be a tensor, not `Row" in said[0].title and said[0].span


def test_a_type_of_strange_elements_is_none() -> None:
    _, said = typed("nn.relu(%a)", t(2, dtype="float7"))
    assert [d.code for d in said] == ["R0311"] and "`float7` is not an element type" in said[0].title and said[0].span


def test_weight_is_inferred() -> None:
    module = parse(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4, 9, 9), float32], %w, %b) '
        "{ nn.bias_add(nn.conv2d(%x, %w, channels=8, kernel_size=[3, 3]), %b) }"
    ).module
    assert isinstance(module, IRModule)
    assert not infer(module)
    main = module["main"]
    assert [repr(p.checked_type) for p in main.params[1:]] == [t(8, 4, 3, 3), t(8)]


def test_gradients_of_pools_take_calls_without_a_dilation() -> None:
    """TVM's own builder gives none."""
    for name in ("max", "avg"):
        types = "%g: Tensor[(1, 2, 3, 4), float32], %x: Tensor[(1, 2, 6, 8), float32]"
        call = f"nn.{name}_pool2d_grad(%g, %x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], dilation=[])"
        mod = parse(f'#[version = "0.0.5"]\ndef @main({types}) {{ {call} }}').module
        assert mod is not None and infer(mod) == []
        call = f"nn.{name}_pool2d(%x, pool_size=[2, 2], dilation=[])"
        forward = parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 2, 6, 8), float32]) {{ {call} }}')
        assert forward.module is not None and [d.code for d in infer(forward.module)] == ["R0301"]


def test_a_product_that_an_older_tvm_transposed_says_so() -> None:
    types = "%a: Tensor[(2, 2, 3), int32], %b: Tensor[(2, 2, 3), int32]"
    for attrs, hinted in (("", True), (", transpose_a=True", False)):
        mod = parse(f"def @main({types}) {{ nn.batch_matmul(%a, %b{attrs}) }}").module
        assert mod is not None
        said = infer(mod)
        assert ([d.code for d in said], ["transpose_b=True" in n for d in said for n in d.notes]) == (
            (["R0301"], [True]) if hinted else ([], [])
        )
