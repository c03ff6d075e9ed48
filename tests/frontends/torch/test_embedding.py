"""Quantised tables of embeddings: rows of bytes or of 4 bits, with a scale and a zero point each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

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
