"""Packed sequences around recurrent layers, and embedding bags: sequences of several lengths in one tensor."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
F, nn = torch.nn.functional, torch.nn
packing = pytest.importorskip("torch.nn.utils.rnn")

from tests.frontends.torch import cases  # noqa: E402
from tests.frontends.torch.cases import Call, flat, real  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402
from tests.shared import check_each  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
X = real(6, 3, 3)


class Padded(nn.Module):  # type: ignore[misc]
    """A layer between packing and unpacking."""

    def __init__(self, layer: Any, total: int | None = None, in_order: bool = False) -> None:
        super().__init__()
        self.layer, self.total, self.in_order = layer, total, in_order

    def forward(self, x: Any, lengths: Any) -> Any:
        first = self.layer.batch_first
        packed = packing.pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.in_order)
        made, state = self.layer(packed)
        padded, counts = packing.pad_packed_sequence(made, batch_first=first, total_length=self.total)
        return padded, counts, *(state if isinstance(state, tuple) else (state,))


class Constant(nn.Module):  # type: ignore[misc]
    """Known lengths, a state of its own, and a function of the packed data."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(3, 4)

    def forward(self, x: Any) -> Any:
        packed = packing.pack_padded_sequence(x, [5, 4, 1])
        packed = packing.PackedSequence(torch.tanh(packed.data), packed.batch_sizes)
        made, state = self.layer(packed, torch.ones(1, 3, 4))
        padded, counts = packing.pad_packed_sequence(made, padding_value=-1.0)
        return padded, counts, state, made.data


def layers(make: Any) -> Any:
    torch.manual_seed(1)
    return make()


def scripted(case: tuple[Any, tuple[Any, ...]]) -> None:
    """The traced program computes what torch computes, also for other lengths than it was traced with."""
    model, inputs, *more = case
    module = traced(model.eval(), inputs)
    made = imported(module, inputs).module
    for given in (inputs, *more):
        with torch.no_grad():
            wanted = flat(module(*given))
        same(values(made, given), wanted)


LENGTHS = (X, torch.tensor([4, 6, 2])), (X, torch.tensor([5, 1, 2]))
PACKED: dict[str, Any] = {
    "lstm": (Padded(layers(lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True))), *LENGTHS),
    "total_length": (Padded(layers(lambda: nn.LSTM(3, 4)), total=8), *LENGTHS),
    "batch_first": (Padded(layers(lambda: nn.GRU(3, 4, batch_first=True)), total=6), (X.transpose(0, 1), LENGTHS[0][1])),
    "in_order": (Padded(layers(lambda: nn.RNN(3, 4, bidirectional=True)), in_order=True), (X, torch.tensor([6, 3, 2]))),
    "constant": (Constant(), (X,)),
    "projected": (Padded(layers(lambda: nn.LSTM(3, 4, proj_size=2, bidirectional=True))), LENGTHS[0]),
}


def test_packed_sequences() -> None:
    check_each(scripted, PACKED.values(), PACKED)


W, I, O = real(9, 4), torch.tensor([1, 2, 4, 5, 4, 3, 8, 0]), torch.tensor([0, 2, 2, 5])
LAST = torch.tensor([0, 2, 2, 5, 8])


def bags(mode: str) -> dict[str, Any]:
    """Cases of one mode: offsets that are inputs, a row that is left out, the end, rows of a matrix."""
    return {
        f"{mode}_inputs": (lambda i, o, w: F.embedding_bag(i, w, o, mode=mode), (I, O, W)),
        f"{mode}_padding": (lambda i, o, w: F.embedding_bag(i, w, o, mode=mode, padding_idx=4), (I, O, W)),
        f"{mode}_end": (lambda i, o, w: F.embedding_bag(i, w, o, mode=mode, include_last_offset=True, padding_idx=-5), (I, LAST, W)),
        f"{mode}_matrix": (lambda i, w: F.embedding_bag(i, w, mode=mode, padding_idx=4), (I.reshape(2, 4), W)),
        f"{mode}_constant": (lambda i, w: F.embedding_bag(i, w, torch.tensor([0, 3, 3]), mode=mode), (I, W)),
    }


BAGS: dict[str, Any] = {
    **bags("sum"),
    **bags("mean"),
    **bags("max"),
    "weighted": (lambda i, o, w, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p), (I, O, W, real(8))),
    "computed": (lambda i, o, w: F.embedding_bag(i, w, o.cumsum(0) - o, mode="mean"), (I, torch.tensor([3, 2, 3]), W)),
    "int32": (lambda i, o, w: F.embedding_bag(i, w, o, mode="mean"), (I.int(), O.int(), W)),
}


def test_bags_in_traced_programs() -> None:
    check_each(lambda case: scripted((Call(case[0]), case[1])), BAGS.values(), BAGS)


def test_bags_in_exported_programs() -> None:
    names = ["max_padding", "mean_end", "weighted"]
    check_each(lambda name: cases.check(*BAGS[name]), names)


@pytest.mark.sweep
@pytest.mark.parametrize("decomposed", [False, True], ids=["exported", "decomposed"])
def test_all_bags_in_exported_programs(decomposed: bool) -> None:
    check_each(lambda case: cases.check(*case, decomposed), BAGS.values(), BAGS)
