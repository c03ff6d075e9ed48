"""Products of bfloat16 by pairs: one rounding of the result, of sums in float32."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.backends.cpu.arith import has_bfloats
from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.isa import AVX2, AVX512
from relaylang.interpreter import evaluate
from tests.backends.cpu.machines import needed, run
from tests.shared import few

Shape = tuple[int, ...]
_NHWC = 'data_layout="NHWC", kernel_layout="HWIO"'
#: Calls of %x and %w, and their shapes: sums of even and odd lengths, rows that lie apart, channels anywhere.
FORMS: dict[str, tuple[str, Shape, Shape]] = {
    "dense": ("nn.dense(%x, %w, units=40)", (20, 34), (40, 34)),
    "an odd sum": ("nn.dense(%x, %w, units=19)", (5, 33), (19, 33)),
    "a sum of one": ("nn.dense(%x, %w, units=19)", (5, 1), (19, 1)),
    "one row": ("nn.dense(%x, %w, units=40)", (1, 64), (40, 64)),
    "a long sum": ("nn.dense(%x, %w, units=17)", (9, 1500), (17, 1500)),
    "three axes": ("nn.dense(%x, %w, units=33)", (2, 7, 48), (33, 48)),
    "matmul": ("nn.matmul(%x, %w, units=20)", (6, 31), (31, 20)),
    "matmul, both turned": ("nn.matmul(%x, %w, units=20, transpose_a=True, transpose_b=True)", (31, 6), (20, 31)),
    "batches": ("nn.batch_matmul(%x, %w, transpose_b=True)", (3, 12, 32), (3, 40, 32)),
    "one batch for all": ("nn.batch_matmul(%x, %w, transpose_b=False)", (3, 5, 32), (1, 32, 17)),
    "batches, turned": ("nn.batch_matmul(%x, %w, transpose_a=True, transpose_b=False)", (2, 33, 9), (2, 33, 17)),
    "conv1d": ("nn.conv1d(%x, %w, channels=20, kernel_size=[3], padding=[1, 1])", (2, 6, 15), (20, 6, 3)),
    "odd channels": ("nn.conv2d(%x, %w, channels=24, kernel_size=[3, 3], padding=[1, 1, 1, 1])", (2, 3, 9, 9), (24, 3, 3, 3)),
    "one channel": ("nn.conv2d(%x, %w, channels=16, kernel_size=[3, 3], padding=[1, 1, 1, 1])", (1, 1, 8, 8), (16, 1, 3, 3)),
    "one channel, dilated": ("nn.conv2d(%x, %w, channels=9, kernel_size=[4, 3], dilation=[1, 2])", (2, 1, 9, 9), (9, 1, 4, 3)),
    "channels last": (
        f"nn.conv2d(%x, %w, channels=40, kernel_size=[3, 3], padding=[1, 1, 1, 1], {_NHWC})",
        (1, 9, 11, 34),
        (3, 3, 34, 40),
    ),
    "a tap": (f"nn.conv2d(%x, %w, channels=33, kernel_size=[1, 1], {_NHWC})", (1, 8, 5, 64), (1, 1, 64, 33)),
    "strides": (
        f"nn.conv2d(%x, %w, channels=16, kernel_size=[5, 3], strides=[2, 3], dilation=[1, 2], {_NHWC})",
        (1, 17, 20, 9),
        (5, 3, 9, 16),
    ),
    "groups": ("nn.conv2d(%x, %w, channels=12, groups=3, kernel_size=[3, 3], padding=[1, 1, 1, 1])", (1, 12, 8, 8), (12, 4, 3, 3)),
    "odd groups": ("nn.conv2d(%x, %w, channels=6, groups=3, kernel_size=[3, 3])", (1, 9, 8, 8), (6, 3, 3, 3)),
    "depthwise": ("nn.conv2d(%x, %w, channels=8, groups=8, kernel_size=[3, 3])", (1, 8, 8, 8), (8, 1, 3, 3)),
    "conv3d": ("nn.conv3d(%x, %w, channels=5, kernel_size=[2, 3, 3], padding=[0, 1, 1, 1, 1, 1])", (1, 5, 4, 6, 6), (5, 5, 2, 3, 3)),
}
#: Forms whose channels have no pairs.
WIDENED = {"odd groups", "depthwise", "one channel", "one channel, dilated"}


def module(form: str, dtype: str = "bfloat16") -> relay.IRModule:
    body, *shapes = FORMS[form]
    x, w = (f"Tensor[({', '.join(map(str, s))}), {dtype}]" for s in shapes)
    return relay.parse(f"def @main(%x: {x}, %w: {w}) {{ {body} }}")


def factors(form: str, seed: int = 3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-3, 3, shape).astype("bfloat16") for shape in FORMS[form][1:])


def near(form: str, ours: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
    """A result is exact but for half a unit of bfloat16, and a unit of float32 for each product."""
    assert ours.dtype.name == "bfloat16"
    wide = module(form, "float64")
    exact, most = (evaluate(wide, *(f(v.astype("f8")) for v in (x, w))) for f in (np.asarray, np.abs))
    depth = evaluate(wide, np.ones(x.shape), np.ones(w.shape)).max()
    slack = np.abs(exact) * float(ml_dtypes.finfo("bfloat16").eps) / 2 + depth * most * 2.0**-23
    assert (np.abs(ours.astype("f8") - exact) <= slack).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", few(FORMS, "an odd sum", "odd channels", "one channel", "channels last"))
@pytest.mark.parametrize("bound", [False, True])
def test_products(form: str, bound: bool) -> None:
    mod, (x, w) = module(form), factors(form)
    made = compile_module(mod, "c -num-threads=2", params={"w": w} if bound else {})
    near(form, made.run(x) if bound else made.run(x, w), x, w)
    assert ("dot_bfloat" in emit(mod, "loops", ["w"])) == (has_bfloats(Compiler({}).isa) and form not in WIDENED)


@pytest.mark.parametrize("form", few(["dense", "an odd sum", "odd channels", "channels last", "strides"], "an odd sum"))
def test_a_nan_stays_where_it_belongs(form: str) -> None:
    """Zeros that fill up pairs meet no number of another row."""
    mod, (x, w) = module(form), factors(form)
    flat = x.reshape(-1)
    flat[5], flat[flat.size // 3], flat[-1] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        theirs = evaluate(mod, x, w).astype("f4")
    ours = compile_module(mod, "c -num-threads=1 -winograd=0").run(x, w).astype("f4")  # Its sums have infinities of both signs.
    for kind in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(kind(ours), kind(theirs))
    here = np.isfinite(theirs)
    assert here.any()
    np.testing.assert_allclose(ours[here], theirs[here], rtol=2**-7, atol=1e-4)


def test_the_least_numbers_count_as_zero_at_most() -> None:
    mod = relay.parse("def @main(%x: Tensor[(4, 2), bfloat16], %w: Tensor[(16, 2), bfloat16]) { nn.dense(%x, %w, units=16) }")
    x, w = np.full((4, 2), 2.0**-130, "bfloat16"), np.full((16, 2), 2.0**100, "bfloat16")
    ours = compile_module(mod, "c -num-threads=1").run(x, w)
    assert set(ours.ravel().tolist()) <= {0.0, 2.0**-29}


def test_results_pass_through_what_follows() -> None:
    mod = relay.parse("""def @main(%x: Tensor[(1, 12, 12, 32), bfloat16], %w: Tensor[(3, 3, 32, 48), bfloat16],
                                   %b: Tensor[(48), bfloat16], %v: Tensor[(1, 1, 48, 24), bfloat16]) {
  %0 = nn.conv2d(%x, %w, channels=48, kernel_size=[3, 3], padding=[1, 1, 1, 1], data_layout="NHWC", kernel_layout="HWIO");
  %1 = nn.relu(nn.bias_add(%0, %b, axis=3));
  nn.conv2d(%1, %v, channels=24, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO", out_dtype="float32")
}""")
    rng = np.random.default_rng(4)
    x, w, b, v = (rng.uniform(-1, 1, tuple(p.type_annotation.shape)).astype("bfloat16") for p in mod["main"].params)
    ours = compile_module(mod, "c -num-threads=1", params={"w": w, "b": b, "v": v}).run(x)
    theirs = evaluate(mod, x, w, b, v)
    assert ours.dtype == theirs.dtype == np.float32
    # A sum that rounds to another bfloat16 is one of 48 terms.
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2**-7 * np.abs(theirs).max())


def test_the_machine_decides() -> None:
    mod = module("dense")
    assert "dot_bfloat" not in emit(mod, "loops", ["w"], isa="avx512")
    assert "cast" in emit(mod, "fused", ["w"], isa="avx2")
    compiler = Compiler({"march": "cooperlake"})
    if has_bfloats(compiler.isa):
        assert "vdpbf16ps" in emit(mod, "asm", ["w"], options={"march": "cooperlake"})
        assert "vdpbf16ps" not in emit(mod, "asm", ["w"], options={"march": "cascadelake"})
    assert not has_bfloats(AVX2) and not has_bfloats(AVX512)
    made = compile_module(mod, "c -num-threads=1")
    assert has_bfloats(Compiler({}).isa) == ("avx512bf16" in made.manifest["features"])


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("form", few(FORMS, "odd channels"))
def test_arm(form: str, tmp_path: Path) -> None:
    machine, mod, (x, w) = needed("aarch64-i8mm"), module(form), factors(form)
    made = compile_module(mod, f"{machine.target} -num-threads=2", params={"w": w})
    near(form, run(machine, made, tmp_path, x=x), x, w)
    if form not in WIDENED:
        assert "bfdot" in emit(mod, "asm", ["w"], options=machine.options)
