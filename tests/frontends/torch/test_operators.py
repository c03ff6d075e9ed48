"""PyTorch's operators: the exported program computes what torch computes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.test_networks import exported, same, values  # noqa: E402


def real(*shape: int) -> Any:
    """Real numbers, the same in each run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def whole(*shape: int, most: int = 9) -> Any:
    """Whole numbers, the same in each run."""
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(5))


X = real(2, 3, 4)
ONE: dict[str, Any] = {
    name: getattr(torch, name)
    for name in (
        "abs ceil floor trunc neg exp expm1 erf sin cos tan sinh cosh tanh asinh atan sigmoid relu sign round square"
        " isnan isinf isfinite logical_not zeros_like ones_like reciprocal t_copy"
    ).split()
    if name != "t_copy"
}
POSITIVE = {name: getattr(torch, name) for name in "log log2 log10 log1p sqrt rsqrt acosh".split()}
TWO = {
    name: getattr(torch, name)
    for name in "add sub mul div maximum minimum eq ne lt le gt ge atan2 remainder fmod logical_and logical_or logical_xor".split()
}
MORE: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "acos": (torch.acos, (X.clamp(-0.9, 0.9),)),
    "asin": (torch.asin, (X.clamp(-0.9, 0.9),)),
    "atanh": (torch.atanh, (X.clamp(-0.9, 0.9),)),
    "add_alpha": (lambda x: torch.add(x, x, alpha=2.5), (X,)),
    "add_number_to_ints": (lambda x: x + 1.5, (whole(3, 4),)),
    "ints_and_reals": (lambda x, y: x * y, (whole(3, 4), real(4))),
    "rsub": (lambda x: 1 - x, (X,)),
    "rsub_scaled": (lambda x: torch.rsub(x, 3, alpha=2.5) + torch.rsub(x, x * x, alpha=0.5), (X,)),
    "div_floor": (lambda x: torch.div(x, 0.7, rounding_mode="floor"), (X,)),
    "div_trunc": (lambda x: torch.div(x, 3, rounding_mode="trunc"), (whole(3, 4) - 4,)),
    "div_ints": (lambda x: x / 3, (whole(3, 4),)),
    "pow2": (lambda x: x**2, (X,)),
    "pow_real": (lambda x: x.abs() ** 1.7, (X,)),
    "pow_base": (lambda x: torch.pow(2.0, x), (X,)),
    "clamp": (lambda x: x.clamp(-0.5, 0.7), (X,)),
    "clamp_min": (lambda x: x.clamp(min=0.1), (X,)),
    "where": (lambda x: torch.where(x > 0, x, 0.5), (X,)),
    "to": (lambda x: x.to(torch.int32), (X,)),
    "gelu": (F.gelu, (X,)),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), (X,)),
    "elu": (F.elu, (X,)),
    "celu": (F.celu, (X,)),
    "selu": (F.selu, (X,)),
    "silu": (F.silu, (X,)),
    "mish": (F.mish, (X,)),
    "softplus": (F.softplus, (X,)),
    "hardswish": (F.hardswish, (X,)),
    "hardsigmoid": (F.hardsigmoid, (X,)),
    "hardtanh": (F.hardtanh, (X,)),
    "leaky_relu": (F.leaky_relu, (X,)),
    "relu6": (F.relu6, (X,)),
    "prelu": (F.prelu, (X, real(3))),
    "glu": (lambda x: F.glu(x, 2), (X,)),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), (X, real(4))),
    "addcmul": (lambda x, y: torch.addcmul(x, y, y, value=0.5), (X, real(4))),
    "bitwise_and": (lambda x: x & 3, (whole(3, 4),)),
    "bitwise_not": (torch.bitwise_not, (whole(3, 4),)),
    "sum": (lambda x: x.sum((0, 2)), (X,)),
    "sum_ints": (torch.sum, (whole(3, 4),)),
    "mean": (lambda x: x.mean(1, keepdim=True), (X,)),
    "prod": (lambda x: x.prod(1), (X,)),
    "amax": (lambda x: x.amax((0, 1)), (X,)),
    "max_dim": (lambda x: tuple(x.max(1)), (X,)),
    "min_all": (torch.min, (X,)),
    "max_other": (lambda x, y: torch.max(x, y), (X, real(4))),
    "argmax": (lambda x: x.argmax(2), (X,)),
    "argmin_all": (torch.argmin, (X,)),
    "all": (lambda x: (x > -1).all(1), (X,)),
    "any": (lambda x: (x > 1).any(), (X,)),
    "var": (lambda x: x.var(1), (X,)),
    "std": (lambda x: x.std((0, 1), correction=0), (X,)),
    "var_mean": (lambda x: torch.var_mean(x, 2), (X,)),
    "cumsum": (lambda x: x.cumsum(1), (X,)),
    "cumprod": (lambda x: x.cumprod(1), (X,)),
    "norm": (lambda x: torch.linalg.vector_norm(x, 3, 1), (X,)),
    "logsumexp": (lambda x: x.logsumexp(2), (X,)),
    "topk": (lambda x: tuple(x.topk(2)), (X,)),
    "sort": (lambda x: tuple(x.sort(2, descending=True)), (X,)),
    "view": (lambda x: x.view(6, -1), (X,)),
    "flatten": (lambda x: x.flatten(0, 1), (X,)),
    "permute": (lambda x: x.permute(2, 0, 1), (X,)),
    "transpose": (lambda x: x.transpose(0, -1), (X,)),
    "squeeze": (lambda x: x[:1].squeeze(0), (X,)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), (X,)),
    "expand": (lambda x: x[:, :1].expand(5, 2, -1, 4), (X,)),
    "cat": (lambda x: torch.cat([x, x], -1), (X,)),
    "stack": (lambda x: torch.stack([x, x], 1), (X,)),
    "slice": (lambda x: x[:, 1:, ::2], (X,)),
    "select": (lambda x: x[:, -1], (X,)),
    "split": (lambda x: x.split([1, 3], 2), (X,)),
    "chunk": (lambda x: x.chunk(3, 2), (X,)),
    "unbind": (lambda x: x.unbind(1), (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 3), (X,)),
    "flip": (lambda x: x.flip(0, 2), (X,)),
    "roll": (lambda x: x.roll((1, -1), (1, 2)), (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), (X,)),
    "pad_cut": (lambda x: F.pad(x, (-1, 2)), (X,)),
    "pad_reflect": (lambda x: F.pad(x, (1, 2), mode="reflect"), (X,)),
    "pad_replicate": (lambda x: F.pad(x, (1, 2), mode="replicate"), (X,)),
    "index_select": (lambda x, i: x.index_select(2, i), (X, whole(3, most=4))),
    "gather": (lambda x, i: x.gather(1, i), (X, whole(2, 2, 4, most=3))),
    "index": (lambda x, i: x[i], (X, whole(3, most=2))),
    "index_back": (lambda x, i: x[:, i], (X, -1 - whole(3, most=2))),
    "index_two": (lambda x, i, j: x[:, i, j], (X, whole(3, most=3), whole(3, most=4))),
    "scatter": (lambda x, i: x.scatter(1, i, 9.0), (X, whole(2, 1, 4, most=3))),
    "scatter_add": (lambda x, i: x.scatter_add(1, i, x), (X, whole(2, 3, 4, most=3))),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 7.0), (X,)),
    "tril": (lambda x: x.tril(1), (X,)),
    "triu": (lambda x: x.triu(), (X,)),
    "full": (lambda x: x + torch.full((4,), 2.5), (X,)),
    "full_like": (lambda x: torch.full_like(x, 3), (X,)),
    "arange": (lambda x: x + torch.arange(1, 5), (X,)),
    "matmul": (lambda x, y: x @ y, (X, real(4, 5))),
    "bmm": (torch.bmm, (X, real(2, 4, 5))),
    "mv": (lambda x, y: x @ y, (real(3, 4), real(4))),
    "addmm": (lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2), (real(5), real(3, 4), real(4, 5))),
    "baddbmm": (torch.baddbmm, (real(2, 3, 5), X, real(2, 4, 5))),
    "einsum": (lambda x, y: torch.einsum("bij,jk->bik", x, y), (X, real(4, 5))),
    "linear": (F.linear, (X, real(5, 4), real(5))),
    "softmax": (lambda x: x.softmax(1), (X,)),
    "log_softmax": (lambda x: x.log_softmax(-1), (X,)),
    "conv1d": (lambda x, w: F.conv1d(x, w, stride=2, padding=1), (real(2, 3, 9), real(4, 3, 3))),
    "conv2d_same": (
        lambda x, w: F.conv2d(x, w, padding="same", dilation=2),
        (real(2, 4, 7, 6), real(6, 4, 3, 3)),
    ),
    "conv2d_groups": (lambda x, w: F.conv2d(x, w, groups=2), (real(2, 4, 7, 6), real(6, 2, 3, 3))),
    "conv3d": (F.conv3d, (real(1, 2, 4, 5, 6), real(3, 2, 2, 2, 2))),
    "conv_transpose1d": (
        lambda x, w: F.conv_transpose1d(x, w, stride=2, output_padding=1),
        (real(2, 3, 5), real(3, 4, 3)),
    ),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, groups=2),
        (real(1, 4, 5, 6), real(4, 3, 3, 3)),
    ),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (real(1, 2, 8, 7),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (real(1, 2, 8, 7),)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3), (real(1, 2, 9),)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (real(1, 2, 8, 7),)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (4, 2)), (real(1, 2, 8, 8),)),
    "layer_norm": (lambda x, g, h: F.layer_norm(x, (3, 4), g, h), (X, real(3, 4), real(3, 4))),
    "group_norm": (lambda x, g: F.group_norm(x, 2, g), (real(2, 4, 5, 5), real(4))),
    "rms_norm": (lambda x, g: F.rms_norm(x, (4,), g), (X, real(4))),
    "attention": (F.scaled_dot_product_attention, (real(2, 2, 5, 4), real(2, 2, 6, 4), real(2, 2, 6, 4))),
    "attention_mask": (
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m, scale=0.3),
        (real(2, 2, 5, 4), real(2, 2, 6, 4), real(5, 6) > 0),
    ),
    "embedding": (lambda i, w: F.embedding(i, w), (whole(2, 3), real(9, 4))),
    "upsample_nearest": (lambda x: F.interpolate(x, scale_factor=2), (real(1, 2, 3, 4),)),
    "upsample_bilinear": (lambda x: F.interpolate(x, size=(7, 5), mode="bilinear"), (real(1, 2, 3, 4),)),
    "upsample_corners": (
        lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True),
        (real(1, 2, 3, 4),),
    ),
    "upsample_bicubic": (lambda x: F.interpolate(x, size=(7, 5), mode="bicubic"), (real(1, 2, 3, 4),)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (real(1, 8, 3, 4),)),
    "gru": (torch.nn.GRU(4, 5, 2, bidirectional=True), (real(6, 2, 4),)),
    "rnn": (torch.nn.RNN(4, 5), (real(6, 2, 4),)),
}
CASES = {
    **{name: (function, (X,)) for name, function in ONE.items()},
    **{name: (function, (X.abs() + 1.1,)) for name, function in POSITIVE.items()},
    **{name: (function, (X, real(3, 1) + 0.1)) for name, function in TWO.items()},
    **MORE,
}


class Call(torch.nn.Module):  # type: ignore[misc]
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    function, inputs = CASES[name]
    model = Call(function).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = exported(model, inputs)
    wanted = model(*inputs)
    flat: list[Any] = []
    for w in wanted if isinstance(wanted, (tuple, list)) else (wanted,):
        flat += w if isinstance(w, (tuple, list)) else [w]
    same(values(import_pytorch(data).module, inputs), flat)
