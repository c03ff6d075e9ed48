"""Attention as one kernel of target c, against the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.ir import IRModule

MASKS = {
    "none": ("", "{x}"),
    "keys": (", %m: Tensor[({B}, 1, 1, {K}), float32]", "add({x}, %m)"),
    "places": (", %m: Tensor[({T}, {K}), float32]", "add(%m, {x})"),
    "lengths": (", %m: Tensor[({B}), int64]", "where(less(%places, reshape(%m, newshape=[{B}, 1, 1, 1])), {x}, -inff)"),
    "causal": ("", "where(less_equal(%places, reshape(%rows, newshape=[{T}, 1])), {x}, -inff)"),
    "triangle": (", %m: Tensor[({T}, {K}), bool]", "where(%m, {x}, -1e9f)"),
    "filled": ("", "where(greater(%places, reshape(%rows, newshape=[{T}, 1])), -1e4f, {x})"),
    "added": ("", "add({x}, where(less_equal(%places, reshape(%rows, newshape=[{T}, 1])), 0f, -3.4028235e38f))"),
    "least": ("", "maximum(where(less_equal(%places, reshape(%rows, newshape=[{T}, 1])), {x}, -inff), -3.4028235e38f)"),
    "window": ("", "where(less(abs(subtract(%places, reshape(%rows, newshape=[{T}, 1]))), 9i64), {x}, -inff)"),
    "scores": ("", "where(less({x}, 0.1f), -1e9f, {x})"),
    "cap": ("", "multiply(tanh(divide({x}, 5f)), 5f)"),
}
GUARD = "where(equal(max(%m, axis=[-1], keepdims=True), -inff), 0f, {x})"


def attention(
    batch: int, heads: int, own: int, rows: int, keys: int, depth: int, mask: str = "none", how: str = "plain", more: str = ""
) -> IRModule:
    """Attention of so many heads, of which `own` have keys, spelled as importers do."""
    names = {"B": batch, "H": heads, "G": own, "T": rows, "K": keys, "D": depth, "N": heads // own}
    last = how == "heads last"
    split = "({B}, {%s}, {%s}, {D})"
    types = [split % (("T", "H") if last else ("H", "T")), *[split % (("K", "G") if last else ("G", "K"))] * 2]
    param, change = MASKS[mask]
    turned = "transpose({x}, axes=[0, 2, 1, 3])" if last else "{x}"

    def each(x: str) -> str:
        x = turned.format(x=x)
        if own == heads:
            return x
        if how == "broadcast":
            wide = f"broadcast_to(expand_dims({x}, axis=2), shape=[{{B}}, {{G}}, {{N}}, {{K}}, {{D}}])"
            return f"reshape({wide}, newshape=[{{B}}, {{H}}, {{K}}, {{D}}])"
        return f"repeat({x}, repeats={{N}}, axis=1)"

    scale = f"{depth**-0.5}f"
    q = f"reshape({turned.format(x='%q')}, newshape=[-1, {{T}}, {{D}}])"
    k = f"reshape({each('%k')}, newshape=[-1, {{K}}, {{D}}])"
    if how == "scaled before":
        q = f"multiply({q}, {scale})"
    if how == "keys turned":
        k = f"reshape(transpose({each('%k')}, axes=[0, 1, 3, 2]), newshape=[-1, {{D}}, {{K}}])"
    product = f"reshape(nn.batch_matmul({q}, {k}, transpose_b={how != 'keys turned'}), newshape=[{{B}}, {{H}}, {{T}}, {{K}}])"
    product = product if how == "scaled before" else f"multiply({product}, {scale})"
    text = f"""#[version = "0.0.5"]
def @main(%q: Tensor[{types[0]}, float32], %k: Tensor[{types[1]}, float32], %v: Tensor[{types[2]}, float32]{param}) {{
  let %places = cumsum(ones(shape=[{{K}}], dtype="int64"), axis=0, exclusive=True);
  let %rows = cumsum(ones(shape=[{{T}}], dtype="int64"), axis=0, exclusive=True);
  let %p = {product};
  let %s = nn.softmax({change.format(x="%p", **names)}, axis=-1);
  let %w = {(more or "{x}").format(x="%s")};
  let %v3 = reshape({each("%v")}, newshape=[-1, {{K}}, {{D}}]);
  let %y = nn.batch_matmul(reshape(%w, newshape=[-1, {{T}}, {{K}}]), %v3, transpose_b=False);
  {turned.format(x="reshape(%y, newshape=[{B}, {H}, {T}, {D}])")}
}}"""
    text = re.sub(r"{([BHGTKDN])}", lambda m: str(names[m[1]]), text.replace("{{", "{").replace("}}", "}"))
    return relay.transform.InferType()(relay.parse(text))


def inputs(mod: IRModule, infinite: bool = True) -> list[np.ndarray]:
    """Random operands. Some keys are masked, none of them the first."""
    rng = np.random.default_rng(3)
    found = []
    for param in mod["main"].params:
        shape = tuple(int(d) for d in param.checked_type.shape)
        if param.checked_type.dtype == "int64":
            found.append(rng.integers(1, 9, shape))
            continue
        if param.checked_type.dtype == "bool":
            found.append(np.tri(*shape, dtype=bool))
            continue
        x = rng.standard_normal(shape).astype("float32")
        if param.name_hint == "m" and infinite:
            x[x > 0.3] = -np.inf
            x[..., 0] = 0
        found.append(x)
    return found


def kernels(mod: IRModule) -> int:
    """The kernels of whole attention: these turn a block of queries."""
    return emit(mod, "loops").count("local queries:")


def agrees(mod: IRModule, args: list[np.ndarray], target: str = "c -march=x86-64-v3") -> np.ndarray:
    """The interpreter's result, which target c's equals within the errors of sums."""
    want = relay.evaluate(mod, *args)
    got = compile_module(mod, target).run(*args)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    return want


@pytest.mark.parametrize(
    "case",
    [
        (1, 2, 2, 32, 64, 16),
        (2, 3, 3, 5, 7, 8, "keys"),
        (2, 1, 1, 37, 600, 20, "lengths"),
        (1, 2, 2, 16, 33, 8, "places", "keys turned"),
        (1, 2, 2, 40, 40, 8, "causal", "scaled before"),
        (2, 2, 2, 9, 20, 12, "cap", "heads last"),
        (2, 4, 2, 6, 9, 8, "lengths", "heads last"),
        (2, 8, 2, 1, 300, 16, "lengths", "broadcast"),
        (1, 8, 1, 1, 40, 8, "keys", "keys turned"),
        (2, 8, 2, 1, 40, 8, "none", "heads last"),
        (1, 2, 2, 70, 300, 8, "places"),
        (2, 2, 2, 100, 100, 8, "triangle"),
        (1, 2, 2, 100, 130, 8, "window"),
        (1, 8, 2, 9, 100, 8, "scores"),
        (1, 8, 2, 1, 100, 8, "scores"),
    ],
    ids=str,
)
def test_attention_is_one_kernel(case: tuple) -> None:
    mod = attention(*case)
    assert kernels(mod) == 1
    assert np.isfinite(agrees(mod, inputs(mod))).all()


def test_rows_without_a_key_are_nan_as_in_the_interpreter() -> None:
    mod = attention(2, 2, 2, 8, 520, 8, "keys")
    args = inputs(mod)
    args[3][1] = -np.inf
    args[3][0, ..., :300] = -np.inf  # a whole part of a row
    want = agrees(mod, args)
    assert np.isnan(want[1]).all() and np.isfinite(want[0]).all()


def test_rows_that_a_guard_names_are_zero() -> None:
    mod = attention(2, 2, 2, 8, 24, 8, "keys", more=GUARD)
    assert kernels(mod) == 1
    args = inputs(mod)
    args[3][1] = -np.inf
    want = agrees(mod, args)
    assert (want[1] == 0).all() and (want[0] != 0).all()


@pytest.mark.parametrize("mask", ["causal", "triangle", "filled", "added", "least", "places", "lengths", "window"])
def test_keys_that_are_masked_for_a_block_of_rows_are_not_read(mask: str) -> None:
    mod = attention(1, 1, 1, 200, 200, 8, mask)
    args = inputs(mod)
    if mask == "places":
        args[3] = np.where(np.tri(200, dtype=bool), np.float32(0), np.float32(-np.inf))
    want = agrees(mod, args)
    args[2][..., -1, :] = np.nan
    got = compile_module(mod, "c -march=x86-64-v3").run(*args)
    np.testing.assert_allclose(got[..., :160, :], want[..., :160, :], rtol=2e-5, atol=2e-5)
    assert np.isnan(got[..., -1, :]).all() == (mask != "lengths")


def test_scores_without_masks_read_all_keys() -> None:
    for mask in ("none", "cap", "scores"):
        assert "held" not in emit(attention(1, 1, 1, 200, 200, 8, mask), "loops")


@pytest.mark.parametrize("rows", [1, 8, 100])
def test_a_row_whose_keys_all_have_the_same_mask_is_the_mean_of_values(rows: int) -> None:
    mod = attention(2, 4, 1, rows, 100, 8, "lengths")
    text = str(mod).replace("-inff", "-1e9f")
    mod = relay.transform.InferType()(relay.parse(text))
    args = inputs(mod)
    args[3][:] = 0, 3
    want = agrees(mod, args)
    np.testing.assert_allclose(want[0, :, -1], np.broadcast_to(args[2][0, 0].mean(0), (4, 8)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_spreads_over_its_row_alone(value: float) -> None:
    mod = attention(1, 1, 1, 8, 24, 8)
    args = inputs(mod)
    args[0][0, 0, 2, 3] = value
    want = agrees(mod, args)
    assert np.isnan(want[0, 0, 2]).all() and np.isfinite(np.delete(want, 2, axis=2)).all()


def test_the_least_finite_number_is_a_mask_too() -> None:
    mod = attention(1, 2, 2, 8, 24, 8, "keys")
    args = inputs(mod, infinite=False)
    args[3][...] = np.finfo("float32").min
    assert np.isfinite(agrees(mod, args)).all()


def test_scores_that_others_read_stay_in_memory() -> None:
    text = """#[version = "0.0.5"]
def @main(%q: Tensor[(2, 8, 4), float32], %k: Tensor[(2, 8, 4), float32], %v: Tensor[(2, 8, 8), float32]) {
  let %s = nn.batch_matmul(%q, %k, transpose_b=True);
  let %w = nn.softmax(subtract(%s, max(%s, axis=[-1], keepdims=True)), axis=-1);
  add(nn.batch_matmul(%w, %v, transpose_b=False), %w)
}"""
    mod = relay.transform.InferType()(relay.parse(text))
    assert kernels(mod) == 0
    agrees(mod, inputs(mod))


def test_few_rows_read_keys_in_kernels_of_their_own() -> None:
    mod = attention(1, 2, 2, 1, 64, 8, "lengths")
    assert kernels(mod) == 0
    agrees(mod, inputs(mod))
