"""FoldExplicitPadding and FlattenAtrousConv."""

from __future__ import annotations

from tests.passes.texts import after, main, ops


def test_padding_is_folded() -> None:
    params = "%x: Tensor[(1, 2, 5, 5), float32], %w: Tensor[(3, 2, 3, 3), float32]"
    pad = "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])"
    mod = after("FoldExplicitPadding", main(f"nn.conv2d({pad}, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3])", params))
    assert ops(mod) == ["nn.conv2d"] and mod["main"].body.attrs.padding == (2, 1, 3, 2)
    one = pad.replace("0f", "1f", 1)
    assert "nn.pad" in ops(after("FoldExplicitPadding", main(f"nn.conv2d({one}, %w, kernel_size=[3, 3])", params)))
    channels = pad.replace("[[0, 0], [0, 0]", "[[0, 0], [1, 1]")
    wide = params.replace("(3, 2,", "(3, 4,")
    assert "nn.pad" in ops(after("FoldExplicitPadding", main(f"nn.conv2d({channels}, %w, kernel_size=[3, 3])", wide)))
    forms = {"count_include_pad=True": True, "count_include_pad=False": True, "padding=[1, 0]": False, "ceil_mode=True": False}
    for own, folded in {**forms, "padding=[1, 0], count_include_pad=True": True}.items():
        pool = f"nn.avg_pool2d({pad}, pool_size=[2, 2], {own})"
        assert ops(after("FoldExplicitPadding", main(pool, params))) == ["nn.pad"] * (not folded) + ["nn.avg_pool2d"]


def test_atrous_convolutions_are_flattened() -> None:
    text = main(
        "%0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 3], [2, 3]]);\n"
        '%1 = nn.conv2d(%0, %w, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");\n'
        "nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 1], [0, 1]])",
        "%x: Tensor[(1, 5, 5, 2), float32], %w: Tensor[(3, 3, 2, 3), float32]",
    )
    mod = after("FlattenAtrousConv", text)
    assert ops(mod) == ["nn.conv2d"] and mod["main"].body.attrs.dilation == (2, 2)
