"""Quantised tables of embeddings: rows of bytes or of 4 bits, with a scale and a zero point each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from tests.frontends.torch.cases import Call  # noqa: E402
from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
quantised = torch.ao.nn.quantized


def table(kind: Any, bits: int, rows: int = 12, width: int = 5, **options: Any) -> Any:
    """A layer whose numbers, scales and zero points are all different."""
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(rows, width, generator=generator) * torch.arange(1, rows + 1)[:, None]
    low, high = weight.amin(1), weight.amax(1)
    scale = ((high - low) / (2**bits - 1)).float()
    dtype = torch.quint8 if bits == 8 else torch.quint4x2
    whole = torch.quantize_per_channel(weight, scale, (-low / scale).float(), 0, dtype)
    return kind(rows, width, _weight=whole, dtype=dtype, **options)


INDICES = torch.tensor([3, 0, 11, 7, 7, 1])
CASES = {
    "rows": (quantised.Embedding, {}, (INDICES.reshape(2, 3),)),
    "bags of one size": (quantised.EmbeddingBag, {"mode": "sum"}, (INDICES.reshape(2, 3),)),
    "bags": (quantised.EmbeddingBag, {"mode": "sum"}, (INDICES, torch.tensor([0, 2, 2, 5]))),
    "bags and an end": (quantised.EmbeddingBag, {"mode": "sum", "include_last_offset": True}, (INDICES, torch.tensor([0, 2, 6]))),
}


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", CASES)
def test_a_table_gives_its_numbers(name: str, bits: int) -> None:
    kind, options, inputs = CASES[name]
    layer = table(kind, bits, **options)
    (found,) = values(imported(traced(layer, inputs), inputs).module, inputs)
    np.testing.assert_allclose(found, layer(*inputs).numpy(), rtol=1e-6, atol=1e-5)


class Bytes(torch.nn.Module):  # type: ignore[misc]
    """Sums of rows of a table of bytes, which has no object of its own."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        weight = torch.randn(12, width, generator=torch.Generator().manual_seed(5)) * torch.arange(1, 13)[:, None]
        self.register_buffer("table", getattr(torch.ops.quantized, f"embedding_bag_{kind}_prepack")(weight))
        self.sums = getattr(torch.ops.quantized, f"embedding_bag_{kind}_rowwise_offsets")

    def forward(self, indices: Any, offsets: Any, weights: Any) -> Any:
        first = self.sums(self.table, indices, offsets, False, 0, False, None, None, True)
        return first, self.sums(self.table, indices, offsets, per_sample_weights=weights)


@pytest.mark.parametrize(("kind", "width"), [("byte", 5), ("4bit", 6), ("2bit", 8)])
def test_a_table_of_bytes_gives_its_numbers(kind: str, width: int) -> None:
    layer = Bytes(kind, width)
    inputs = INDICES, torch.tensor([0, 2, 6]), torch.arange(6.0)
    found = values(imported(traced(layer, inputs), inputs).module, inputs)
    for f, w in zip(found, layer(*inputs), strict=True):
        np.testing.assert_allclose(f, w.numpy(), rtol=1e-5, atol=1e-4)


def test_a_table_that_the_program_packs_is_refused() -> None:
    def packs(weight: Any) -> Any:
        return torch.ops.quantized.embedding_bag_byte_prepack(weight)

    weight = torch.randn(3, 4)
    with pytest.raises(RelayError) as refused:
        imported(traced(Call(packs), (weight,)), (weight,))
    assert "it packs or unpacks a table" in refused.value.diagnostics[0].notes[0]
