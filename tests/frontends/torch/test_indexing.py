"""Gathering, scattering and assignment of PyTorch: the exported program computes what torch computes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from relaylang.backends import compile_module  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, pt2, real, whole  # noqa: E402
from tests.shared import few  # noqa: E402

X = real(3, 4, 5)
M = X > 0
I3, I4, I5 = whole(2, 3, most=3), whole(2, 3, most=4), whole(3, most=5)
P = whole(2, 4, 3, most=3)


def assigned(x: Any, where: Any, value: Any) -> Any:
    y = x.clone()
    y[where] = value
    return y


GATHER: dict[str, Case] = {
    "gather_short": (lambda x, p: x.gather(0, p), (X, P)),
    "take": (torch.take, (X, whole(2, 3, most=60) - 30)),
    "take_along_dim": (lambda x, p: torch.take_along_dim(x, p, 1), (X, whole(3, 2, 1, most=4))),
    "index_apart": (lambda x, i, j: x[i, :, j], (X, I3[0], I5)),
    "index_broadcast": (lambda x, i, j: x[i[:, None], j], (X, I3[0], I4[0])),
    "index_mask": (lambda x: x[x > 0], (X,)),
    "index_mask_rows": (lambda x, m: x[m], (X, torch.tensor([True, False, True]))),
    "index_mask_middle": (lambda x, m: x[:, m], (X, M[0])),
    "masked_select": (lambda x, m: torch.masked_select(x, m), (X, M[0])),
    "nonzero": (torch.nonzero, (M,)),
    "nonzero_tuple": (lambda x: torch.nonzero(x, as_tuple=True), (M[0],)),
    "argwhere": (torch.argwhere, (whole(3, 4, most=2),)),
    "diagonal": (lambda x: x.diagonal(1, 0, 2), (X,)),
    "diagonal_low": (lambda x: x.diagonal(-1, 1, 2), (X,)),
    "diag_vector": (lambda x: torch.diag(x, 1), (X[0, 0],)),
    "diag_matrix": (lambda x: torch.diag(x, -1), (X[0],)),
    "diag_embed": (lambda x: torch.diag_embed(x, -1, 0, 2), (X[0],)),
    "diagflat": (torch.diagflat, (X[0, :2],)),
    "trace": (torch.trace, (X[0],)),
    "tril_indices": (lambda x: x[0].reshape(-1)[torch.tril_indices(3, 4, 1)[1]], (X,)),
    "searchsorted": (torch.searchsorted, (X.sort(-1)[0], real(3, 4, 2))),
    "searchsorted_right": (lambda r, v: torch.searchsorted(r, v, right=True), (whole(6).sort()[0], whole(2, 3))),
    "bucketize": (torch.bucketize, (X, real(6).sort()[0])),
    "one_hot": (lambda i: F.one_hot(i, 9), (whole(2, 3),)),
    "isin": (torch.isin, (whole(3, 4), whole(3))),
    "embedding_bag": (
        lambda i, w: F.embedding_bag(i, w, torch.tensor([0, 2, 2]), mode="mean"),
        (whole(5), real(9, 4)),
    ),
    "embedding_bag_rows": (lambda i, w: F.embedding_bag(i, w, mode="sum"), (whole(2, 5), real(9, 4))),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), (X,)),
    "repeat_interleave_flat": (lambda x: x.repeat_interleave(3), (X,)),
    "repeat_interleave_counts": (lambda x: x.repeat_interleave(torch.tensor([2, 0, 1]), 0, output_size=3), (X,)),
    "eye": (lambda x: x @ torch.eye(5, 3), (X,)),
    "unfold": (lambda x: x.unfold(1, 2, 1), (X,)),
    "as_strided": (lambda x: x.as_strided((2, 3), (1, 2), 4), (X,)),
}
UPDATE: dict[str, Case] = {
    "scatter_short": (lambda x, p: x.scatter(0, p, x), (X, P)),
    "scatter_number": (lambda x, p: x.scatter(0, p, 2.5), (X, P)),
    "scatter_reduce_add": (lambda x, p: x.scatter(0, p, x, reduce="add"), (X, P)),
    "scatter_reduce_multiply": (lambda x, p: x.scatter(0, p, 3.0, reduce="multiply"), (X, P[:1, :, :])),
    "scatter_add_short": (lambda x, p: x.scatter_add(0, p, x), (X, P)),
    **{
        f"scatter_reduce_{kind}_{own}": (
            lambda x, p, kind=kind, own=own: x.scatter_reduce(0, p, x * 2, kind, include_self=own),
            (X, P),
        )
        for kind in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "index_add": (lambda x, i: x.index_add(1, i, x[:, :3], alpha=2), (X, I4[0])),
    "index_copy": (lambda x: x.index_copy(2, torch.tensor([3, 0]), x[:, :, :2]), (X,)),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), (X, I4[0])),
    "index_reduce": (lambda x, i: x.index_reduce(0, i, x, "amax"), (X, I3[0])),
    "index_put_one": (lambda x, i, v: assigned(x, i, v), (X, torch.tensor([2, 0]), real(2, 4, 5))),
    "index_put_broadcast": (lambda x, i, v: assigned(x, i, v), (X, torch.tensor([2, 0]), real(5))),
    "index_put_two": (
        lambda x, i, j, v: assigned(x, (slice(None), i, j), v),
        (X, torch.tensor([2, 0]), torch.tensor([-1, 1]), real(3, 2)),
    ),
    "index_put_apart": (
        lambda x, i, j, v: assigned(x, (i, slice(None), j), v),
        (X, torch.tensor([2, 0]), torch.tensor([4, 1]), real(2, 4)),
    ),
    "index_put_add": (lambda x, i, v: x.index_put((i,), v, accumulate=True), (X, I3[0], real(3, 4, 5))),
    "index_put_mask": (lambda x: assigned(x, x > 0, 7.0), (X,)),
    "index_put_mask_rows": (lambda x, m: assigned(x, m, 7.0), (X, M[:, :, 0])),
    "index_put_mask_values": (lambda x, m, v: assigned(x, m, v), (X, torch.tensor([True, False, True]), real(2, 4, 5))),
    "put": (lambda x, i, v: x.put(i, v), (X, torch.tensor([3, 9, -1]), real(3))),
    "masked_scatter": (lambda x, m, v: x.masked_scatter(m, v), (X, M, real(60))),
    "masked_fill_tensor": (lambda x, v: x.masked_fill(x > 0, v), (X, torch.tensor(3.0))),
    "slice_scatter": (lambda x, v: x.slice_scatter(v, 1, 1, 3), (X, real(3, 2, 5))),
    "slice_scatter_step": (lambda x, v: x.slice_scatter(v, 2, 0, 5, 2), (X, real(3, 4, 3))),
    "slice_scatter_whole": (lambda x, v: x.slice_scatter(v, 2), (X, real(3, 4, 5))),
    "select_scatter": (lambda x, v: x.select_scatter(v, 1, -1), (X, real(3, 5))),
    "diagonal_scatter": (lambda x, v: x.diagonal_scatter(v, 1), (X[0], real(4))),
    "copy": (lambda x, v: x.clone().copy_(v), (X, whole(5))),
    "fill": (lambda x: x.clone().fill_(3), (X,)),
    "zero": (lambda x: x.clone().zero_(), (X,)),
    "fill_diagonal": (lambda x: x.clone().fill_diagonal_(3), (X[0],)),
}
CASES = {**GATHER, **UPDATE}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    check(*CASES[name])


@pytest.mark.parametrize("name", few(UPDATE, *list(UPDATE)[::4]))
def test_a_decomposed_update_computes_the_same(name: str) -> None:
    check(*UPDATE[name], decomposed=True)


@pytest.mark.parametrize("name", ["index_copy", "index_put"])
def test_rows_of_a_cache_are_written_in_place(name: str) -> None:
    """A row of an axis behind the first needs no copy of the cache."""

    def step(cache: Any, row: Any, at: Any) -> Any:
        if name == "index_copy":
            return cache.index_copy(2, at, row)
        written = cache.clone()
        written[:, :, at] = row
        return written

    inputs = (real(1, 2, 16, 4), real(1, 2, 1, 4), torch.tensor([5]))
    check(step, inputs)
    mod = import_pytorch(pt2(Call(step), inputs)).module
    assert compile_module(mod, "c -cflags=-O1").manifest["in_place"] == [[0, 0]]
