"""Operators of PyTorch that stand for several others, computed extents, and what the importer has of core ATen IR."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from relaylang.frontends.torch.table import table  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, pt2, real  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.shared import few  # noqa: E402

A = torch.ops.aten
X, M = real(2, 3, 4), real(3, 4)
EMPTY = torch.tensor([[-float("inf")] * 3, [1.0, 2.0, -float("inf")]])
CASES: dict[str, Case] = {
    "weight_norm": (torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 5)), (X,)),
    "weight_norm_old": (lambda v, g: torch._weight_norm(v, g, 1), (M, real(1, 4))),
    "bilinear": (F.bilinear, (real(2, 5, 3), real(2, 5, 4), real(6, 3, 4), real(6))),
    "prelu": (F.prelu, (X, real(3))),
    "rrelu": (F.rrelu, (X,)),
    "safe_softmax": (lambda x: A._safe_softmax(x, -1), (EMPTY,)),
    "int_mm": (torch._int_mm, (torch.arange(-16, 16).to(torch.int8).reshape(4, 8), torch.arange(64).to(torch.int8).reshape(8, 8))),
    "vecdot": (torch.linalg.vecdot, (X, M)),
    "entr": (torch.special.entr, (M,)),
    "ndtr": (torch.special.ndtr, (M,)),
    "triplet": (lambda x, y: F.triplet_margin_loss(x, y, y.flip(0), swap=True), (M, M + 1)),
    "cosine_embedding": (lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1])), (M, real(3, 4).flip(0))),
    "vander": (lambda x: torch.vander(x, 3), (real(4),)),
    "trapz": (lambda x: torch.trapz(x, dx=2.0), (M,)),
    **{
        kind: (lambda x, f=f: x + f(4), (X,))
        for kind, f in (
            ("hann", torch.hann_window),
            ("hamming", torch.hamming_window),
            ("blackman", torch.blackman_window),
            ("bartlett", torch.bartlett_window),
            ("kaiser", torch.kaiser_window),
        )
    },
    "native_layer_norm": (lambda x, g, h: torch.native_layer_norm(x, (4,), g, h, 1e-5), (X, real(4), real(4))),
    "native_group_norm": (lambda x: torch.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5), (real(2, 4, 5),)),
    "native_batch_norm": (lambda x: A._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5), (X,)),
    "instance_norm": (torch.nn.InstanceNorm1d(3, affine=True), (X,)),
    "dropout": (torch.nn.Dropout(), (X,)),
}


def eval_(function: Any) -> Any:
    return function.eval() if isinstance(function, torch.nn.Module) else function


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    function, inputs = CASES[name]
    check(eval_(function), inputs)


@pytest.mark.parametrize("name", few(CASES, *list(CASES)[::4]))
def test_a_decomposed_operator_computes_the_same(name: str) -> None:
    function, inputs = CASES[name]
    check(eval_(function), inputs, decomposed=True)


#: Functions of a tensor whose first extent is not known, for two of its extents.
DYNAMIC: dict[str, Any] = {
    "view": lambda x: x.view(x.shape[0] * 3, 4),
    "arithmetic": lambda x: x.reshape(x.shape[0] // 2, -1) * (x.shape[0] + 1) + x.numel(),
    "real": lambda x: x * (x.shape[0] ** 0.5) / (x.shape[0] / 3),
    "arange": lambda x: x + torch.arange(x.shape[0])[:, None, None],
    "full": lambda x: torch.cat([x, torch.zeros(x.shape[0], 1, 4)], 1),
    "slice": lambda x: x[: x.shape[0] // 2] + x[x.shape[0] // 2 :],
    "narrow": lambda x: x.narrow(0, x.shape[0] - 2, 2),
    "repeat": lambda x: x[:1].repeat(x.shape[0], 2, 1),
    "expand": lambda x: x[0].expand(x.shape[0], 3, 4),
    "max": lambda x: x.flatten() * max(x.shape[0], 3),
    "mask": lambda x: x.masked_fill(torch.ones(x.shape[0], x.shape[0]).tril()[:, :1, None] == 0, 1.0),
    "attention": lambda x: F.scaled_dot_product_attention(x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), is_causal=True),
    "var": lambda x: x.var(0),
    "flip": lambda x: x.flip(0).roll(1, 1),
    "softmax": lambda x: x.softmax(0).cumsum(0),
    "topk": lambda x: x.topk(2, 0)[0],
    "einsum": lambda x: torch.einsum("bij,cij->bc", x, x),
    "pad": lambda x: F.pad(x, (1, 1, 0, 0, 2, 1)),
    "stack": lambda x: torch.stack([x, x], 1).sum(1),
    "index": lambda x: x[torch.tensor([0, -1])],
    "put": lambda x: x.index_put((torch.tensor([0, 1]),), torch.tensor(3.0)),
    "in_place": lambda x: x.clone().index_fill_(0, torch.tensor([0]), 2.0).add_(1),
    "written_row": lambda x: x.clone().select_scatter(x[0] * 2, 0, 1),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_unknown_extents_are_computed(name: str) -> None:
    function = DYNAMIC[name]
    half = torch.export.Dim("half", min=2, max=32)
    mod = import_pytorch(pt2(Call(function), (real(6, 3, 4),), dynamic_shapes=(({0: 2 * half},),))).module
    for count in (6, 10):
        same(values(mod, (real(count, 3, 4),)), function(real(count, 3, 4)))


def test_core_aten_is_converted() -> None:
    names = set(table().names())
    missing = set()
    for full in torch._C._dispatch_get_all_op_names():
        space, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        found = getattr(getattr(torch.ops.aten, name, None), overload or "default", None) if space == "aten" else None
        if found is not None and torch.Tag.core in found.tags and f"aten.{name}" not in names:
            missing.add(name)
    # Random numbers, spectra, and a change of a tensor's own memory.
    assert missing <= {"_fft_c2r", "_fft_r2c", "rand", "randn", "randperm", "resize_"}


def test_dropout_in_training_is_refused() -> None:
    with pytest.raises(RelayError, match="R0801"):
        import_pytorch(pt2(Call(lambda x: F.dropout(x, training=True)), (X.sigmoid(),)))
