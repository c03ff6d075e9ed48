"""Small networks of the usual kinds, written with torch.nn."""

from __future__ import annotations

import torch
from torch import nn


class Residual(nn.Module):
    """A block of resnet18."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.short = nn.Sequential()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.short(x))


def resnet18(width: int = 8) -> nn.Module:
    """resnet18 with fewer channels."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = width
    for i in range(4):
        outside = width << i
        layers += [Residual(inside, outside, 1 if i == 0 else 2), Residual(outside, outside, 1)]
        inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10))


class Inverted(nn.Module):
    """A block of mobilenet v2."""

    def __init__(self, inside: int, outside: int, stride: int, grow: int) -> None:
        super().__init__()
        wide = inside * grow
        self.same = stride == 1 and inside == outside
        self.body = nn.Sequential(
            nn.Conv2d(inside, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.same else self.body(x)


def mobilenet() -> nn.Module:
    """mobilenet v2 with fewer blocks."""
    blocks = [Inverted(8, 8, 1, 1), Inverted(8, 12, 2, 6), Inverted(12, 12, 1, 6), Inverted(12, 16, 2, 6)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(16, 10)]
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), *blocks, *head)


class Vision(nn.Module):
    """A vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.place = nn.Parameter(torch.randn(1, 17, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.encoder(x)[:, 0])


class Bert(nn.Module):
    """A BERT encoder with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.norm = nn.LayerNorm(16)
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        count = ids.shape[1]
        x = self.norm(self.words(ids) + self.places(torch.arange(count)))
        q, k, v = (f(x).view(x.shape[0], count, 4, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / 2.0 + (1.0 - mask[:, None, None, :].float()) * -1e4
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape[0], count, 16)
        x = self.norm(x + self.out(y))
        return torch.tanh(self.norm(x + self.down(nn.functional.gelu(self.up(x))))[:, 0])


class Gpt(nn.Module):
    """A block of a GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.RMSNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU("tanh"), nn.Linear(64, 16))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        q, k, v = (t.unflatten(-1, (4, 4)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        x = x + self.mlp(self.norm2(x))
        return x @ self.table.weight.t()


class Unet(nn.Module):
    """A U-Net of two levels."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.2))
        self.up1 = nn.ConvTranspose2d(16, 8, 4, 2, 1)
        self.mix = nn.Conv2d(16, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.up1(self.down2(a))
        c = nn.functional.interpolate(nn.functional.avg_pool2d(b, 2), scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.mix(torch.cat([a, b + c], 1)))


class Tagger(nn.Module):
    """An LSTM in both directions over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.words(ids))[0]).log_softmax(-1)


def inputs(*shape: int) -> tuple[torch.Tensor, ...]:
    """A picture."""
    return (torch.randn(*shape),)


def words(count: int = 7) -> torch.Tensor:
    """Two rows of words."""
    return torch.randint(0, 50, (2, count))


#: Each network, its inputs, and the axis of each input that may have any extent.
NETWORKS = {
    "resnet18": (resnet18, lambda: inputs(2, 3, 32, 32), (0,)),
    "mobilenet": (mobilenet, lambda: inputs(2, 3, 32, 32), (0,)),
    "vision": (Vision, lambda: inputs(2, 3, 16, 16), (0,)),
    "bert": (Bert, lambda: (words(), torch.ones(2, 7, dtype=torch.int64)), (0, 0)),
    "gpt": (Gpt, lambda: (words(),), (0,)),
    "unet": (Unet, lambda: inputs(2, 3, 16, 16), (0,)),
    "tagger": (Tagger, lambda: (words(),), None),
}
