"""The small networks of the quantiser's benchmark, each trained in seconds, and the real ones.

Images are the digits of scikit-learn. Keywords are synthetic spectrograms: each word is two tones that rise or fall.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits, load_sample_images
from torch import nn

#: Samples for training and for calibration; the others measure.
TRAINED, CALIBRATED = 1000, 200
#: The synthetic words: the first and the second tone's start, and how they move, in channels.
_WORDS = [(2, 9, 6, -3), (10, 3, -6, 3), (5, 5, 4, -4), (12, 8, -4, 2), (3, 12, 0, 0), (8, 1, -5, 8), (1, 6, 2, 6), (13, 11, -8, -8)]
_STEPS, _CHANNELS = 32, 16

Data = tuple[np.ndarray, np.ndarray]


def digits() -> Data:
    """The images, float32 of shape (1797, 1, 8, 8) from 0 to 1, and their classes, in a fixed order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images[order, None] / 16).astype("float32"), data.target[order]


def keywords() -> Data:
    """Logarithmic spectrograms, float32 of shape (7200, 1, 32, 16), and the words' numbers."""
    parts = [_spoken(1800, 1), _spoken(5400, 2)]
    return np.concatenate([values for values, _ in parts]), np.concatenate([words for _, words in parts])


def _spoken(count: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, len(_WORDS), count)
    first, second, rise, other = np.array(_WORDS, "float64")[words].T[:, :, None, None]
    time = np.arange(_STEPS)[None, :, None] - rng.integers(-6, 7, (count, 1, 1))
    channel = np.arange(_CHANNELS)[None, None, :] + rng.normal(0, 0.7, (count, 1, 1))
    half = _STEPS // 2
    place = np.where(time < half, first + rise * time / half, second + other * (time - half) / half)
    power = np.exp(-((channel - place) ** 2) / 2) * rng.uniform(0.3, 2, (count, 1, 1)) + rng.exponential(
        0.3, (count, _STEPS, _CHANNELS)
    )
    return np.log(power + 0.02).astype("float32")[:, None], words


class Residual(nn.Module):
    """Two convolutions, with normalisation, beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers = [nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        self.body = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


class Attention(nn.Module):
    """A block of a transformer: attention of two heads, then a perceptron, each behind a normalisation."""

    def __init__(self, width: int, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = self.width // self.heads
        parts = self.three(self.before(x)).reshape(-1, x.shape[1], 3, self.heads, size).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        shares = torch.softmax(q @ k.transpose(-1, -2) / size**0.5, -1)
        x = x + self.out((shares @ v).permute(0, 2, 1, 3).reshape(-1, x.shape[1], self.width))
        return x + self.mlp(self.behind(x))


class Transformer(nn.Module):
    """A vision transformer on 16 patches of 2 x 2."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.patches, self.places = nn.Conv2d(1, width, 2, 2), nn.Parameter(torch.randn(1, 16, width) * 0.1)
        self.blocks = nn.Sequential(Attention(width), Attention(width))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.blocks(tokens).mean(1))


class Recurrent(nn.Module):
    """A GRU over the spectrogram's steps."""

    def __init__(self, units: int = 32) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(_CHANNELS, units, batch_first=True), nn.Linear(units, len(_WORDS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(x[:, 0])[0][:, -1])


def small_cnn() -> nn.Module:
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, 10))


def residual() -> nn.Module:
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)]
    return nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), Residual(24), nn.MaxPool2d(2), Residual(24), *head)


def depthwise() -> nn.Module:
    def block(a: int, b: int) -> list[nn.Module]:
        narrow = [nn.Conv2d(a, a, 3, padding=1, groups=a, bias=False), nn.BatchNorm2d(a), nn.ReLU6()]
        return [*narrow, nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU6()]

    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, len(_WORDS))]
    return nn.Sequential(nn.Conv2d(1, 16, 3, 2, padding=1), nn.ReLU6(), *block(16, 32), nn.MaxPool2d(2), *block(32, 48), *head)


@dataclass(frozen=True)
class Task:
    """A network and what it learns."""

    make: Callable[[], nn.Module]
    data: Callable[[], Data]
    epochs: int = 25


TASKS = {
    "CNN": Task(small_cnn, digits),
    "residual": Task(residual, digits),
    "transformer": Task(Transformer, digits, 40),
    "keywords, depthwise": Task(depthwise, keywords, 15),
    "keywords, GRU": Task(Recurrent, keywords, 15),
}


def trained(task: Task, data: Data) -> bytes:
    """The network, trained on the first samples, as an ONNX model for one sample."""
    torch.manual_seed(0)
    net = task.make()
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    x, y = (torch.from_numpy(a[:TRAINED]) for a in data)
    for _ in range(task.epochs):
        for part in torch.randperm(TRAINED).split(50):
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    file = io.BytesIO()
    torch.onnx.export(net.eval(), (x[:1],), file, input_names=["x"], output_names=["y"], dynamo=False)
    return file.getvalue()


def crops(shape: tuple[int, ...], count: int, seed: int) -> list[np.ndarray]:
    """Parts of scikit-learn's two photographs at the size of an input (1, 3, H, W) or (1, H, W, 3), float32 from -1 to 1."""
    rng = np.random.default_rng(seed)
    last = shape[-1] == 3
    high, wide = shape[1:3] if last else shape[2:]
    made = []
    for photograph in (load_sample_images().images * count)[:count]:
        rows, columns = photograph.shape[:2]
        side = int(rng.integers(rows // 2, rows))
        top, left = rng.integers(0, rows - side + 1), rng.integers(0, columns - side + 1)
        ys, xs = (top + np.arange(high) * side // high), (left + np.arange(wide) * side // wide)
        image = photograph[ys][:, xs].astype("float32") / 127.5 - 1
        made.append(np.ascontiguousarray(image[None] if last else image.transpose(2, 0, 1)[None]))
    return made
