"""CanonicalizeOps and CanonicalizeCast."""

from __future__ import annotations

from tests.passes.texts import after, main, ops


def test_bias_add_is_add() -> None:
    text = main("nn.bias_add(%x, %b)", "%x: Tensor[(1, 3, 2, 2), float32], %b: Tensor[(3), float32]")
    assert ops(after("CanonicalizeOps", text)) == ["expand_dims", "add"]


def test_casts_are_made_for_each_use() -> None:
    mod = after("CanonicalizeCast", main('%0 = cast(%x, dtype="float64"); add(exp(%0), log(%0))'))
    assert ops(mod).count("cast") == 2
