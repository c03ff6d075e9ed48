"""Convolutions, pools, resizing, sampling and attention of PyTorch: the program computes what torch computes."""

from __future__ import annotations

import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from relaylang.frontends.options import Options  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from relaylang.ir import ANY  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, pt2, real, whole  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.shared import few  # noqa: E402

I1, I2, I3 = real(2, 3, 11), real(2, 3, 9, 7), real(1, 2, 5, 6, 7)
IMAGES = {1: I1, 2: I2, 3: I3}


def resized(mode: str, **how: Any) -> Any:
    return lambda x: F.interpolate(x, mode=mode, **how)


MAX = {d: getattr(F, f"max_pool{d}d") for d in (1, 2, 3)}
AVG = {d: getattr(F, f"avg_pool{d}d") for d in (1, 2, 3)}
POOLS: dict[str, Case] = {
    **{f"max{d}": (lambda x, d=d: MAX[d](x, 3, 2, 1, ceil_mode=True), (IMAGES[d],)) for d in (1, 2, 3)},
    **{f"max{d}_places": (lambda x, d=d: MAX[d](x, 3, 2, 1, ceil_mode=True, return_indices=True), (IMAGES[d],)) for d in (1, 2, 3)},
    "max_places_dilated": (lambda x: F.max_pool2d(x, 2, 1, 0, 2, return_indices=True), (I2,)),
    "max_places_single": (lambda x: F.max_pool2d(x[0], 2, return_indices=True), (I2,)),
    **{
        f"avg{d}_{p}_{c}": (lambda x, d=d, p=p, c=c: AVG[d](x, 3, 2, 1, ceil_mode=c, count_include_pad=p), (IMAGES[d],))
        for d in (1, 2, 3)
        for p in (True, False)
        for c in (True, False)
    },
    **{
        f"{kind}{d}_dropped_{k}{s}{p}": (lambda x, f=functions[d], w=(k, s, p): f(x, *w, ceil_mode=True), (IMAGES[d],))
        for kind, functions in (("max", MAX), ("avg", AVG))
        for d in (1, 2, 3)
        for k, s, p in ((3, 3, 1), (2, 2, 1), (3, 5, 1), (2, 5, 0))
    },
    **{f"avg_divisor_{c}": (lambda x, c=c: F.avg_pool2d(x, 3, 2, 1, ceil_mode=c, divisor_override=5), (I2,)) for c in (True, False)},
    "avg3_divisor": (lambda x: F.avg_pool3d(x, 2, 5, 1, True, False, -3), (I3,)),
    "avg_divisor_of_ints": (lambda x: F.avg_pool2d(x, 2, divisor_override=-2), (whole(1, 2, 4, 4),)),
    "max_dropped_places": (lambda x: F.max_pool2d(x, 2, 2, 1, ceil_mode=True, return_indices=True), (I2,)),
    "max_dropped_empty": (lambda x: F.max_pool2d(x[:0], 2, 2, 1, ceil_mode=True), (I2,)),
    "avg_dropped_single": (lambda x: F.avg_pool2d(x[0], 3, 3, 1, ceil_mode=True), (I2,)),
    "avg_divisor": (lambda x: F.avg_pool2d(x, (3, 2), divisor_override=5), (I2,)),
    **{f"adaptive_avg{d}": (getattr(torch.nn, f"AdaptiveAvgPool{d}d")(4), (IMAGES[d],)) for d in (1, 2, 3)},
    **{f"adaptive_max{d}": (getattr(torch.nn, f"AdaptiveMaxPool{d}d")(4, return_indices=True), (IMAGES[d],)) for d in (1, 2, 3)},
    "max_unpool": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(9, 7)), (I2,)),
    "lp_pool": (lambda x: F.lp_pool2d(x.abs(), 2, 3), (I2,)),
}
CONVS: dict[str, Case] = {
    "conv1d_single": (F.conv1d, (real(3, 9), real(4, 3, 3), real(4))),
    "conv3d_groups": (
        lambda x, w: F.conv3d(x, w, padding=(1, 0, 2), stride=2, groups=2),
        (real(1, 4, 5, 6, 7), real(6, 2, 2, 2, 2)),
    ),
    "conv_circular": (torch.nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (I2,)),
    "transposed3d": (lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=1), (I3, real(2, 3, 3, 3, 3))),
    "transposed1d_dilated": (lambda x, w: F.conv_transpose1d(x, w, dilation=2, stride=3), (I1, real(3, 4, 3))),
    "transposed2d_dilated_groups": (
        lambda x, w, h: F.conv_transpose2d(x, w, h, dilation=2, stride=3, groups=3, output_padding=(2, 1)),
        (I2, real(3, 4, 3, 2), real(12)),
    ),
    "transposed_single": (F.conv_transpose1d, (real(3, 9), real(3, 4, 3))),
}
RESIZED: dict[str, Case] = {
    **{
        f"nearest{d}_{mode}_{i}": (resized(mode, **how), (IMAGES[d],))
        for d in (1, 2, 3)
        for mode in ("nearest", "nearest-exact")
        for i, how in enumerate(({"scale_factor": 2}, {"scale_factor": 1.3}, {"size": (4, 13, 6)[:d]}))
    },
    **{
        f"{mode}_{corners}_{i}": (resized(mode, align_corners=corners, **how), (IMAGES[d],))
        for d, mode in ((1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear"))
        for corners in (True, False)
        for i, how in enumerate(({"scale_factor": 2}, {"scale_factor": 1.3}, {"size": (4, 13, 6)[:d]}))
    },
    **{  # an axis of 2 or 3 elements keeps its extent
        f"kept_{mode}_{antialias}_{i}": (resized(mode, scale_factor=scales, antialias=antialias), (real(1, 2, 2, 3),))
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
        for antialias in ((False,) if mode.startswith("nearest") else (False, True))
        for i, scales in enumerate(((1.25, 1.3), (1.25, 1.7), (1.7, 1.3), (0.6, 1.3)))
    },
    "bilinear_recomputed": (resized("bilinear", scale_factor=1.3, recompute_scale_factor=True), (I2,)),
    "bilinear_antialias": (resized("bilinear", size=(4, 3), antialias=True), (I2,)),
    "bilinear_antialias_corners": (resized("bilinear", size=(4, 3), antialias=True, align_corners=True), (I2,)),
    "bicubic_antialias": (resized("bicubic", size=(4, 13), antialias=True), (I2,)),
}
SAMPLED: dict[str, Case] = {
    **{
        f"grid_{mode}_{border}_{corners}": (
            lambda x, g, m=mode, p=border, c=corners: F.grid_sample(x, g, m, p, c),
            (I2, real(2, 4, 5, 2) * 0.8),
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for border in ("zeros", "border", "reflection")
        for corners in (True, False)
    },
    "grid3": (lambda x, g: F.grid_sample(x, g, align_corners=True), (I3, real(1, 2, 3, 4, 3) * 0.8)),
    "affine_grid": (lambda t: F.affine_grid(t, (2, 3, 4, 5), True), (real(2, 2, 3),)),
    "affine_grid3": (lambda t: F.affine_grid(t, (2, 3, 4, 5, 2), False), (real(2, 3, 4),)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (real(1, 3, 4, 6),)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), (real(1, 6, 4, 5),)),
    "unfold": (lambda x: F.unfold(x, (3, 2), 2, 1, 2), (I2,)),
    "fold": (lambda x: F.fold(x, (9, 7), (3, 2), 1, 1, 2), (real(2, 18, 20),)),
}
Q, K = real(2, 4, 5, 8), real(2, 4, 6, 8)
ATTENTION: dict[str, Case] = {
    "causal": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), (Q, K)),
    "grouped": (lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), (Q, K[:, :2])),
    "float_mask": (lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m), (Q, K, real(5, 6))),
    "flat": (F.scaled_dot_product_attention, (Q[0], K[0], K[0])),
}
SAMPLES = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(3))
FRACTIONAL: dict[str, Case] = {
    "fractional_2": (
        lambda x, s: F.fractional_max_pool2d(x, (3, 2), output_size=(4, 5), _random_samples=s, return_indices=True),
        (real(2, 3, 9, 8), SAMPLES[..., :2]),
    ),
    "fractional_3": (
        lambda x, s: F.fractional_max_pool3d(x, (2, 3, 2), output_size=(3, 4, 1), _random_samples=s),
        (real(2, 3, 6, 7, 5), SAMPLES),
    ),
}
CASES = {**FRACTIONAL, **POOLS, **CONVS, **RESIZED, **SAMPLED, **ATTENTION}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    check(*CASES[name])


#: Programs to decompose, which takes torch most of a test: `make test` has every fourth.
DECOMPOSED = [*list(POOLS)[:8], *list(CONVS), *ATTENTION, "unfold", "fold"]


@pytest.mark.parametrize("name", few(DECOMPOSED, *DECOMPOSED[::4]))
def test_a_decomposed_operator_computes_the_same(name: str) -> None:
    check(*CASES[name], decomposed=True)


class Heads(torch.nn.Module):  # type: ignore[misc]
    """Attention with several heads, and its weights."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.layer = torch.nn.MultiheadAttention(8, 2, batch_first=True, **how)

    def forward(self, x: Any, mask: Any) -> Any:
        return self.layer(x, x, x, key_padding_mask=mask)


@pytest.mark.parametrize("grad", [True, False])
def test_several_heads(grad: bool) -> None:
    torch.manual_seed(2)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    with torch.set_grad_enabled(grad):
        check(Heads().eval(), (real(2, 5, 8), mask))
        encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        check(encoder, (real(2, 5, 8),))
        decoder = torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True).eval()
        check(decoder, (real(2, 5, 8), real(2, 7, 8)))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_unknown_extents_are_resized(mode: str) -> None:
    axes = {2: torch.export.Dim("h", min=4, max=64), 3: torch.export.Dim("w", min=4, max=64)}
    for scale in (2.0, 1.5, 1.2):  # 4 elements times 1.2 are 4
        function = resized(mode, scale_factor=scale)
        mod = import_pytorch(pt2(Call(function), (I2,), dynamic_shapes=((axes,),))).module
        for x in (I2, real(2, 3, 6, 12), real(2, 3, 4, 6)):
            same(values(mod, (x,)), function(x))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_unknown_extents_are_pooled_without_windows_in_the_padding(kind: str) -> None:
    pool = (MAX if kind == "max" else AVG)[2]
    for how in ({"ceil_mode": True}, {"ceil_mode": True, "divisor_override": 3})[: 1 if kind == "max" else 2]:

        def function(x: Any, how: dict[str, Any] = how) -> Any:
            return pool(x, 3, 3, 1, **how)

        module = torch.jit.trace(Call(function), (I2,), check_trace=False)
        buffer = io.BytesIO()
        torch.jit.save(module, buffer)
        options = Options({"x": (2, 3, ANY, ANY)}, {"x": "float32"})
        mod = import_pytorch(buffer.getvalue(), options, "net.pt", ["x"]).module
        for x in (I2, real(2, 3, 7, 8), real(2, 3, 6, 12)):
            same(values(mod, (x,)), function(x))
