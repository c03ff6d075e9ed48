"""Networks of PyTorch that scripts/coreml_results.py converts for Core ML. The tests read what it recorded, without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as f


class Of(nn.Module):
    """A module of parts that a function joins."""

    def __init__(self, forward: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._forward = forward

    def forward(self, *xs: Tensor) -> Any:
        return self._forward(self, *xs)


def normed(c: int) -> nn.Module:
    """A batch normalisation whose numbers are not those of a new one."""
    made = nn.BatchNorm2d(c)
    nn.init.normal_(made.weight, 1, 0.2)
    nn.init.normal_(made.bias, 0, 0.2)
    assert made.running_mean is not None and made.running_var is not None
    nn.init.normal_(made.running_mean, 0, 0.2)
    nn.init.uniform_(made.running_var, 0.5, 1.5)
    return made


def lenet(s: Any, x: Tensor) -> Tensor:
    y = f.max_pool2d(torch.relu(s.one(x)), 2)
    y = f.max_pool2d(torch.relu(s.two(y)), 3, 2, 1)
    return f.softmax(s.out(torch.tanh(s.wide(y.flatten(1)))), -1)


def resnet(s: Any, x: Tensor) -> Tensor:
    y = torch.relu(s.norm(s.first(x)))
    z = s.norm2(s.two(torch.relu(s.norm1(s.one(y)))))
    y = torch.relu(z + s.short(y))
    return s.out(f.adaptive_avg_pool2d(y, 1).flatten(1))


def mobilenet(s: Any, x: Tensor) -> Tensor:
    y = f.hardswish(s.first(x))
    y = f.relu6(s.norm(s.deep(y)))
    y = s.flat(y)
    gate = f.hardsigmoid(s.gate(y.mean((2, 3), keepdim=True)))
    return (y * gate).mean((2, 3))


def inception(s: Any, x: Tensor) -> Tensor:
    parts = [s.one(x), s.three(x), s.wide(x), f.avg_pool2d(x, 3, 1, 1), f.max_pool2d(x, 3, 1, 1)]
    y = torch.cat(parts, 1)
    y = f.avg_pool2d(y, 3, 2, 1, ceil_mode=True, count_include_pad=False)
    return f.max_pool2d(y, 2, 2, ceil_mode=True)


def unet(s: Any, x: Tensor) -> Tensor:
    y = f.leaky_relu(s.down(f.pad(x, (1, 1, 1, 1), "reflect")), 0.1)
    up = s.up(y)
    near = f.interpolate(y, scale_factor=2, mode="nearest")
    smooth = f.interpolate(s.flat(y), scale_factor=2, mode="bilinear", align_corners=False)
    wide = f.interpolate(s.flat(y), size=(8, 8), mode="bilinear", align_corners=True)
    return torch.cat([up, near, smooth, wide, f.pixel_shuffle(s.many(y), 2), x], 1)


def transformer(s: Any, x: Tensor) -> Tensor:
    b, t, c = x.shape
    y = s.before(x)
    q, k, v = s.qkv(y).reshape(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
    scores = (q @ k.transpose(-2, -1)) * (c // 2) ** -0.5
    mask = torch.triu(torch.full((t, t), -1e4), 1)
    y = ((scores + mask).softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
    x = x + s.join(y)
    return x + s.narrow(f.gelu(s.wide(s.behind(x))))


def recurrent(s: Any, x: Tensor) -> Any:
    y, (h, c) = s.lstm(x)
    z, last = s.rnn(y)
    return z, h, c, last


def gated(s: Any, x: Tensor) -> Any:
    y, h = s.gru(x)
    return y, h


def activations(s: Any, x: Tensor) -> Tensor:
    p = x.abs() + 0.3
    parts = [
        f.elu(x),
        f.selu(x),
        f.softplus(x),
        f.softsign(x),
        f.silu(x),
        f.gelu(x, approximate="tanh"),
        s.prelu(x),
        torch.sigmoid(x),
        f.mish(x),
        f.hardtanh(x),
        torch.clamp(x, -0.5, 0.7),
        torch.exp(x),
        torch.log(p),
        torch.sqrt(p),
        torch.rsqrt(p),
        torch.pow(p, 1.7),
        torch.square(x),
        torch.sin(x),
        torch.cos(x),
        torch.tan(x / 4),
        torch.asin(x / 5),
        torch.acos(x / 5),
        torch.atan(x),
        torch.sinh(x),
        torch.cosh(x),
        torch.atanh(x / 5),
        torch.erf(x),
        torch.exp2(x),
        torch.floor(x),
        torch.ceil(x),
        torch.round(x * 3),
        torch.sign(x),
        torch.maximum(x, p),
        torch.minimum(x, p),
        torch.where(x > 0.2, x, p),
        (x > 0).float() + (x <= p).float(),
        torch.remainder(x, 0.4),
        torch.floor_divide(p, 0.4),
    ]
    return torch.stack(parts)


def shapes(s: Any, x: Tensor) -> Any:
    """Slices, joins, orders, sums: x is (2, 3, 4, 5)."""
    first, second = torch.split(x, [1, 2], 1)
    parts = torch.chunk(x, 2, 2)
    values, places = torch.topk(x, 2, 3)
    rows = torch.tensor([2, 0])
    return (
        x[:, 1:, ::2, -3:],
        torch.cat([second, first], 1).transpose(1, 3),
        (parts[0] * parts[1]).squeeze(0).unsqueeze(1),
        values,
        places,
        torch.gather(x, 1, torch.argsort(x, 1)),
        x.index_select(1, rows),
        x.repeat(1, 2, 1, 1).cumsum(1),
        torch.flip(x, [1, 3]).reshape(2, -1, 2),
        x.sum((1, 2)) + x.amax((1, 2)) - x.amin((1, 2)) + x.norm(dim=(1, 2)),
        torch.logsumexp(x, 2) + x.mean(2),
        x.argmax(2) + x.argmin(2),
        f.one_hot(x.argmax(2), 4).float(),
        torch.einsum("bchw,bdhw->bcd", x, x),
        torch.tril(x) + torch.triu(x, 1) * 2,
    )


def norms(s: Any, x: Tensor) -> Tensor:
    y = s.group(s.instance(x))
    y = y + f.normalize(x, dim=1) + f.local_response_norm(x, 3, 0.1, 0.75, 1.0)
    return s.layer(y) + x / (x.square().mean(1, keepdim=True) + 1e-3).sqrt()


def spaces(s: Any, x: Tensor) -> Tensor:
    """Convolutions over one and three axes."""
    y = torch.relu(s.line(x.flatten(2)))
    y = f.avg_pool1d(y, 2) + f.max_pool1d(y, 2)
    z = s.room(x.unsqueeze(2).repeat(1, 1, 3, 1, 1))
    return y.sum(2) + z.mean((2, 3, 4))


class Loops(nn.Module):
    """A loop whose turns depend on the operand, and a branch."""

    def forward(self, x: Tensor) -> Tensor:
        y = x
        i = 0
        while y.sum() < 40.0 and i < 9:
            y = y * 1.5 + 0.1
            i += 1
        if bool(y.mean() > 3.0):
            y = y - 1.0
        else:
            y = y + 2.0
        return y


def _conv(i: int, o: int, k: int = 3, **how: Any) -> nn.Module:
    return nn.Conv2d(i, o, k, **how)


#: The networks: a module, and the shapes of its operands.
NETWORKS: dict[str, Callable[[], tuple[nn.Module, Sequence[tuple[int, ...]]]]] = {
    "lenet": lambda: (
        Of(lenet, one=_conv(1, 4), two=_conv(4, 6), wide=nn.Linear(24, 10), out=nn.Linear(10, 5)),
        [(2, 1, 12, 12)],
    ),
    "resnet": lambda: (
        Of(
            resnet,
            first=_conv(3, 6, bias=False, padding=1),
            norm=normed(6),
            one=_conv(6, 8, stride=2, padding=1),
            norm1=normed(8),
            two=_conv(8, 8, padding=1),
            norm2=normed(8),
            short=_conv(6, 8, 1, stride=2),
            out=nn.Linear(8, 5),
        ),
        [(2, 3, 9, 9)],
    ),
    "mobilenet": lambda: (
        Of(
            mobilenet,
            first=_conv(3, 6, stride=2),
            deep=_conv(6, 6, groups=6, padding=1),
            norm=normed(6),
            flat=_conv(6, 8, 1),
            gate=_conv(8, 8, 1),
        ),
        [(1, 3, 11, 13)],
    ),
    "inception": lambda: (
        Of(inception, one=_conv(3, 2, 1), three=_conv(3, 4, padding=1), wide=_conv(3, 2, 3, padding=2, dilation=2)),
        [(1, 3, 10, 12)],
    ),
    "unet": lambda: (
        Of(unet, down=_conv(2, 4, 4, stride=2), up=nn.ConvTranspose2d(4, 3, 4, 2, 1), flat=_conv(4, 2, 1), many=_conv(4, 8, 1)),
        [(1, 2, 8, 8)],
    ),
    "transformer": lambda: (
        Of(
            transformer,
            before=nn.LayerNorm(8),
            qkv=nn.Linear(8, 24),
            join=nn.Linear(8, 8),
            behind=nn.LayerNorm(8),
            wide=nn.Linear(8, 16),
            narrow=nn.Linear(16, 8),
        ),
        [(2, 5, 8)],
    ),
    "recurrent": lambda: (
        Of(recurrent, lstm=nn.LSTM(4, 3, 2, bidirectional=True), rnn=nn.RNN(6, 4)),
        [(5, 2, 4)],
    ),
    "gated": lambda: (Of(gated, gru=nn.GRU(4, 3, batch_first=True)), [(2, 5, 4)]),
    "activations": lambda: (Of(activations, prelu=nn.PReLU(3)), [(2, 3, 4, 5)]),
    "shapes": lambda: (Of(shapes), [(2, 3, 4, 4)]),
    "norms": lambda: (
        Of(norms, group=nn.GroupNorm(2, 4), instance=nn.InstanceNorm2d(4, affine=True), layer=nn.LayerNorm([4, 5, 6])),
        [(2, 4, 5, 6)],
    ),
    "spaces": lambda: (Of(spaces, line=nn.Conv1d(2, 4, 3, padding=1), room=nn.Conv3d(2, 4, 3, padding=(0, 1, 1))), [(1, 2, 4, 5)]),
    "loops": lambda: (Loops(), [(2, 3)]),
}


def operands(name: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(shape, generator=generator) for shape in NETWORKS[name]()[1]]


def network(name: str) -> nn.Module:
    torch.manual_seed(3)
    return NETWORKS[name]()[0].eval()
