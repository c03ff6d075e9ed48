"""Writes examples/digits.onnx, a network that reads a handwritten-looking digit, and examples/seven.npy, a picture for it.

    scripts/digits.py

PyTorch trains it on pictures that are drawn here: ten glyphs, shifted, slanted, thickened and with noise. `relay` then
writes the exported program as an ONNX model. It needs `pip install '.[onnx,torch]'` and half a minute.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch

from relaylang.export import export
from relaylang.frontends.torch import import_pytorch

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SIDE = 16
GLYPHS = """
 ###    #    ###   ###      #  #####   ###  #####  ###   ###
#   #  ##   #   # #   #    ##  #      #         # #   # #   #
#   #   #       #     #   # #  ####   #         # #   # #   #
#   #   #      #    ##   #  #      #  ####     #   ###   ####
#   #   #     #       #  #####     #  #   #   #   #   #     #
#   #   #    #    #   #     #  #   #  #   #   #   #   #     #
 ###   ###  #####  ###      #   ###    ###    #    ###   ###
"""
#: Where each glyph's columns begin in the lines above, and how many they are.
COLUMNS = ((0, 5), (6, 5), (12, 5), (18, 5), (23, 6), (31, 5), (38, 5), (44, 5), (50, 5), (56, 5))


def glyphs() -> np.ndarray:
    """The ten digits as (10, 7, 6) ones and zeros."""
    lines = [line.ljust(64) for line in GLYPHS.strip("\n").split("\n")]
    made = np.zeros((10, 7, 6), np.float32)
    for digit, (begin, width) in enumerate(COLUMNS):
        for row, line in enumerate(lines):
            made[digit, row, :width] = [c == "#" for c in line[begin : begin + width]]
    return made


def pictures(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (count, 1, 16, 16) from 0 to 1, and their digits."""
    shapes, labels = glyphs(), rng.integers(0, 10, count)
    made = np.zeros((count, 1, SIDE, SIDE), np.float32)
    for picture, label in zip(made[:, 0], labels):
        large = np.kron(shapes[label], np.ones((2, 2), np.float32))[:, :12]
        slant = rng.integers(-2, 3)
        for row, line in enumerate(large):
            moved = int(round(slant * (row - 7) / 14))
            large[row] = np.roll(line, moved)
        top, left = rng.integers(0, SIDE - 13), rng.integers(0, SIDE - 11)
        picture[top : top + 14, left : left + 12] = large
        if rng.random() < 0.3:
            picture[:] = np.maximum(picture, np.roll(picture, 1, axis=rng.integers(0, 2)))
    made = made * rng.uniform(0.6, 1, (count, 1, 1, 1)) + rng.normal(0, 0.12, made.shape)
    return np.clip(made, 0, 1).astype(np.float32), labels


class Digits(torch.nn.Module):
    """Two convolutions and a dense layer; the result has a probability for each digit."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(8, 16, 3, padding=1)
        self.dense = torch.nn.Linear(16 * 4 * 4, 10)

    def logits(self, x: Any) -> Any:
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.dense(x.flatten(1))

    def forward(self, image: Any) -> Any:
        return torch.softmax(self.logits(image), -1)


def main() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net = Digits()
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(600):
        images, labels = pictures(128, rng)
        loss = torch.nn.functional.cross_entropy(net.logits(torch.from_numpy(images)), torch.from_numpy(labels))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    net.eval()
    images, labels = pictures(2000, np.random.default_rng(1))
    with torch.no_grad():
        right = float((net(torch.from_numpy(images)).argmax(1).numpy() == labels).mean())
    print(f"{right:.1%} of 2000 new pictures are read right")
    file = io.BytesIO()
    torch.export.save(torch.export.export(net, (torch.from_numpy(images[:1]),)), file)
    made = import_pytorch(file.getvalue())
    data = export(made.module, "onnx").data
    (EXAMPLES / "digits.onnx").write_bytes(data)
    np.save(EXAMPLES / "seven.npy", images[labels == 7][:1])
    print(f"examples/digits.onnx: {len(data)} bytes")


if __name__ == "__main__":
    main()
