"""Trains the decoder of `decoder.relay` on the pages of docs/, and writes `weights.npz`: `pip install torch`.

    python examples/decoder/train.py --steps 2500

Tokens are the bytes of ASCII. Seeds are fixed, so the same PyTorch on the same machine gives the same weights.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent
LAYERS, WIDTH, HEADS, SHARED, SIZE, INNER, TOKENS = 2, 96, 6, 2, 16, 256, 128
#: Positions of a sequence in training, sequences of a step, and the part of the text that is kept for tests: one of so many.
LENGTH, BATCH, HELD = 128, 16, 20


def frequencies() -> np.ndarray:
    """The angle per position of each pair of a head's elements."""
    return (10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2))).astype(np.float32)


def normed(x: Tensor, gain: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gain


class Decoder(nn.Module):
    """The network without a cache, for all positions of several sequences at once."""

    def __init__(self) -> None:
        super().__init__()

        def matrix(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns) * columns**-0.5)

        self.values = nn.ParameterDict({"embedding": matrix(TOKENS, WIDTH), "gain": nn.Parameter(torch.ones(WIDTH))})
        for n in range(LAYERS):
            self.values[f"gain_a{n}"] = nn.Parameter(torch.ones(WIDTH))
            self.values[f"project{n}"] = matrix((HEADS + 2 * SHARED) * SIZE, WIDTH)
            self.values[f"join{n}"] = matrix(WIDTH, HEADS * SIZE)
            self.values[f"gain_f{n}"] = nn.Parameter(torch.ones(WIDTH))
            self.values[f"up{n}"] = matrix(INNER, WIDTH)
            self.values[f"down{n}"] = matrix(WIDTH, INNER)
        self.register_buffer("frequencies", torch.from_numpy(frequencies()))

    def forward(self, tokens: Tensor) -> Tensor:
        values, (batch, length) = self.values, tokens.shape
        angle = torch.arange(length)[:, None] * self.frequencies
        cos, sin = angle.cos(), angle.sin()
        x = values["embedding"][tokens]
        for n in range(LAYERS):
            parts = functional.linear(normed(x, values[f"gain_a{n}"]), values[f"project{n}"])
            heads = parts.reshape(batch, length, HEADS + 2 * SHARED, SIZE).transpose(1, 2)
            low, high = heads[:, : HEADS + SHARED].chunk(2, -1)
            turned = torch.cat((low * cos - high * sin, high * cos + low * sin), -1)
            query, key, value = turned[:, :HEADS], turned[:, HEADS:], heads[:, HEADS + SHARED :]
            key, value = (t.repeat_interleave(HEADS // SHARED, 1) for t in (key, value))
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + functional.linear(seen.transpose(1, 2).reshape(batch, length, WIDTH), values[f"join{n}"])
            inner = functional.linear(normed(x, values[f"gain_f{n}"]), values[f"up{n}"])
            x = x + functional.linear(functional.relu(inner), values[f"down{n}"])
        return functional.linear(normed(x, values["gain"]), values["embedding"])


def text() -> bytes:
    """All pages one after the other. Other characters than ASCII become spaces."""
    pages = sorted((HERE.parent.parent / "docs").glob("*.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages).encode("ascii", "replace").replace(b"?", b" ")


def main() -> None:
    """Train, print the loss of both parts of the text now and then, and write the weights as float16."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2500, help="steps of training")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(given.threads)
    data = torch.from_numpy(np.frombuffer(text(), np.uint8).astype(np.int64))
    train, held = data[: -len(data) // HELD], data[-len(data) // HELD :]
    network = Decoder()
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, given.steps, pct_start=0.1)

    def loss(part: Tensor) -> Tensor:
        starts = torch.randint(len(part) - LENGTH, (BATCH,))
        windows = torch.stack([part[s : s + LENGTH + 1] for s in starts.tolist()])
        return functional.cross_entropy(network(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())

    for step in range(given.steps):
        found = loss(train)
        optimiser.zero_grad()
        found.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 99:
            with torch.no_grad():
                other = sum(loss(held).item() for _ in range(8)) / 8
            print(f"step {step + 1}: loss {found.item():.3f}, of pages that it does not learn from {other:.3f}", flush=True)
    weights = {name: value.detach().numpy().astype(np.float16) for name, value in network.values.items()}
    np.savez_compressed(HERE / "weights.npz", frequencies=frequencies(), **weights)


if __name__ == "__main__":
    main()
