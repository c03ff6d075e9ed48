"""Moved, joined and made elements, products, distances and losses of PyTorch: the program computes what torch computes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from tests.frontends.torch.cases import Case, check, real, whole  # noqa: E402
from tests.shared import few  # noqa: E402

X, M, V = real(2, 3, 4), real(3, 4), real(4)
LIST = [X, X + 1]
ARRANGED: dict[str, Case] = {
    "movedim": (lambda x: x.movedim((0, 1), (2, 0)), (X,)),
    "moveaxis": (lambda x: torch.moveaxis(x, -1, 0), (X,)),
    "swapaxes": (lambda x: x.swapaxes(0, 2), (X,)),
    "swapdims": (lambda x: x.swapdims(0, 1), (X,)),
    "T": (lambda x: x.T, (M,)),
    "mT": (lambda x: x.mT, (X,)),
    "adjoint": (lambda x: x.adjoint(), (X,)),
    "narrow": (lambda x: x.narrow(2, 1, 2), (X,)),
    "tile": (lambda x: x.tile(2, 1, 1, 3), (X,)),
    "tile_short": (lambda x: x.tile(2), (X,)),
    "tile_short_none": (lambda x: x.tile(0, 2), (X,)),
    "repeat_more": (lambda x: x.repeat(2, 1, 1, 3), (X,)),
    "broadcast_to": (lambda x: x.broadcast_to(2, 3, 4), (V,)),
    "broadcast_tensors": (lambda x, y: torch.broadcast_tensors(x, y), (X, V)),
    "expand_as": (lambda x, y: y.expand_as(x), (X, V)),
    "view_as": (lambda x, y: x.view_as(y), (X, real(6, 4))),
    "reshape_as": (lambda x, y: x.reshape_as(y), (X, real(6, 4))),
    "atleast": (lambda x: (torch.atleast_1d(x[0]), torch.atleast_2d(x), torch.atleast_3d(x)), (V,)),
    "atleast_list": (lambda x, y: torch.atleast_3d(x, y), (M, V)),
    "hstack": (lambda x: torch.hstack([x, x]), (X,)),
    "hstack_vectors": (lambda x: torch.hstack([x, x]), (V,)),
    "vstack": (lambda x: torch.vstack([x, x]), (V,)),
    "dstack": (lambda x: torch.dstack([x, x]), (M,)),
    "column_stack": (lambda x: torch.column_stack([x[:3], x[1:]]), (V,)),
    "concat": (lambda x: torch.concat([x, x], 1), (X,)),
    "tensor_split": (lambda x: x.tensor_split(3, 2), (X,)),
    "tensor_split_at": (lambda x: x.tensor_split([1, -1], 2), (X,)),
    "hsplit": (lambda x: torch.hsplit(x, 3), (X,)),
    "dsplit": (lambda x: torch.dsplit(x, [1, 3]), (X,)),
    "split_last": (lambda x: x.split(3, 2), (X,)),
    "fliplr": (torch.fliplr, (M,)),
    "flipud": (torch.flipud, (M,)),
    **{f"rot90_{k}": (lambda x, k=k: torch.rot90(x, k, (1, 2)), (X,)) for k in range(4)},
    "roll_flat": (lambda x: x.roll(5), (X,)),
    "meshgrid_ij": (lambda x, y: torch.meshgrid(x, y, V, indexing="ij"), (M[0], M[1, :2])),
    "meshgrid_xy": (lambda x, y: torch.meshgrid(x, y, indexing="xy"), (M[0], M[1, :2])),
    "cartesian_prod": (lambda x, y: torch.cartesian_prod(x, y), (M[0], M[1, :2])),
    "block_diag": (lambda x, y: torch.block_diag(x, y, x), (M, V)),
    "linspace": (lambda x: x + torch.linspace(-1, 2, 4), (X,)),
    "logspace": (lambda x: x + torch.logspace(-1, 2, 4, base=2), (X,)),
    "linspace_tensor": (lambda x: torch.linspace(x[0], x[1], 5), (V,)),
    "arange_step": (lambda x: x + torch.arange(8, 0, -2), (X,)),
    "empty_like": (lambda x: torch.empty_like(x).fill_(2), (X,)),
    "new_empty": (lambda x: x.new_empty(3, 4).fill_(2) + x, (X,)),
    "new_full": (lambda x: x.new_full((4,), 2.5) + x, (X,)),
    "numel": (lambda x: x + x.numel(), (X,)),
    "ravel": (torch.ravel, (X,)),
    "unflatten": (lambda x: x.unflatten(2, (2, -1)), (X,)),
    "squeeze_dims": (lambda x: x[:, :1, None].squeeze((1, 2)), (X,)),
    "unsafe_chunk": (lambda x: x.unsafe_chunk(2, 2), (X,)),
    "type_as": (lambda x, y: x.type_as(y), (X, whole(2))),
    "scalar_tensor": (lambda x: x + torch.tensor(2.5), (X,)),
    "pad_circular": (lambda x: F.pad(x, (1, 2), mode="circular"), (X,)),
    "pad_reflect2": (lambda x: F.pad(x, (1, 2, 1, 0), mode="reflect"), (real(1, 2, 4, 5),)),
    "pad_replicate3": (lambda x: F.pad(x, (1, 2, 1, 0, 2, 1), mode="replicate"), (real(1, 2, 3, 4, 5),)),
    "stack_last": (lambda x: torch.stack([x, x], -1), (X,)),
}
PRODUCTS: dict[str, Case] = {
    "dot": (torch.dot, (V, V + 1)),
    "vdot": (torch.vdot, (V, V + 1)),
    "inner": (torch.inner, (X, M)),
    "outer": (torch.outer, (V, M[0, :3])),
    "tensordot": (lambda x, y: torch.tensordot(x, y, ([1, 2], [0, 1])), (X, real(3, 4, 5))),
    "kron": (torch.kron, (M, real(2, 1, 2))),
    "addmv": (lambda x, m, v: torch.addmv(x, m, v, beta=2, alpha=0.5), (M[:, 0], M, V)),
    "addr": (lambda x, v, w: torch.addr(x, v, w, beta=2), (M, M[:, 0], V)),
    "addbmm": (torch.addbmm, (real(3, 5), X, real(2, 4, 5))),
    "chain_matmul": (lambda x, y, z: torch.linalg.multi_dot([x, y, z]), (M, real(4, 5), real(5, 2))),
    "histc": (lambda x: torch.histc(x, 6), (real(5, 7),)),
    "histc_between": (lambda x: torch.histc(x, 4, -1, 1), (real(5, 7),)),
    "mode": (lambda x: tuple(torch.mode(x, 1)), (whole(4, 12, 3, most=4),)),
    "mode_kept": (lambda x: tuple(torch.mode(x, 0, keepdim=True)), (whole(9, 3, most=3).float(),)),
    "unique_consecutive": (lambda x: torch.unique_consecutive(x, True, True), (whole(3, 9, most=2),)),
    "unique_consecutive_rows": (lambda x: torch.unique_consecutive(x, True, True, 1), (whole(2, 9, most=2),)),
    "matrix_power": (lambda x: torch.matrix_power(x, 5), (real(2, 3, 3),)),
    "matrix_power_0": (lambda x: torch.matrix_power(x, 0), (real(2, 3, 3),)),
    "bilinear": (F.bilinear, (real(2, 5, 3), real(2, 5, 4), real(6, 3, 4), real(6))),
    "cross": (lambda x, y: torch.linalg.cross(x, y, dim=1), (X, X + 1)),
    "cdist": (torch.cdist, (X, real(2, 5, 4))),
    "cdist_1": (lambda x, y: torch.cdist(x, y, 1.0), (M, real(5, 4))),
    "pdist": (F.pdist, (M,)),
    "pairwise_distance": (F.pairwise_distance, (M, M + 1)),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y, 2), (X, M)),
    "normalize": (lambda x: F.normalize(x, dim=1), (X,)),
    "matmul_vector": (torch.matmul, (V, real(2, 4, 5))),
    "matmul_broadcast": (torch.matmul, (real(3, 1, 2, 4), real(5, 4, 3))),
    "einsum_dots": (lambda x, y: torch.einsum("...i,ji->...j", x, y), (X, M)),
    "einsum_trace": (lambda x: torch.einsum("ii->i", x), (real(3, 3),)),
    **{
        name: (getattr(torch.nn, kind)(4, 5), (real(2, 4), *states))
        for name, kind, states in (
            ("gru_cell", "GRUCell", (real(2, 5),)),
            ("rnn_cell", "RNNCell", (real(2, 5),)),
            ("lstm_cell", "LSTMCell", ()),
        )
    },
    "lstm": (torch.nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), (real(2, 6, 4),)),
}
LOGITS, CLASSES = real(5, 4), torch.tensor([1, 0, 3, -100, 2])
T = real(2, 3, 4).sigmoid()
LOSSES: dict[str, Case] = {
    **{
        f"{name}_{how}": (lambda x, y, name=name, how=how: getattr(F, name)(x, y, reduction=how), (X.sigmoid(), T * 0.5))
        for name in (
            "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div"
            " soft_margin_loss poisson_nll_loss"
        ).split()
        for how in ("none", "mean", "sum")
    },
    **{
        f"cross_entropy_{how}_{smooth}": (
            lambda x, w, how=how, s=smooth: F.cross_entropy(x, CLASSES, w, reduction=how, label_smoothing=s),
            (LOGITS, V.abs()),
        )
        for how in ("none", "mean", "sum")
        for smooth in (0.0, 0.1)
    },
    "cross_entropy_images": (lambda x, c: F.cross_entropy(x, c), (real(2, 4, 3, 3), whole(2, 3, 3, most=4))),
    "cross_entropy_soft": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (LOGITS, LOGITS.softmax(1))),
    "nll_loss": (lambda x, w: F.nll_loss(x, CLASSES, w), (LOGITS, V.abs())),
    "pos_weight": (
        lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, pos_weight=w),
        (X, T, V.abs()),
    ),
    "kl_log_target": (lambda x, t: F.kl_div(x, t, log_target=True, reduction="batchmean"), (X, T)),
    "hinge_embedding": (lambda x: F.hinge_embedding_loss(x, torch.ones(4)), (X,)),
    "margin_ranking": (lambda x, y: F.margin_ranking_loss(x, y, torch.ones(3, 4), 0.5), (M, M + 1)),
}
CASES = {**ARRANGED, **PRODUCTS, **LOSSES}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    check(*CASES[name])


#: Programs to decompose, which takes torch most of a test: `make test` has every twelfth operator.
DECOMPOSED = [n for n in CASES if not n.startswith(("kl_div", "soft_margin"))][::3]


@pytest.mark.parametrize("name", few(DECOMPOSED, *DECOMPOSED[::4]))
def test_a_decomposed_operator_computes_the_same(name: str) -> None:
    check(*CASES[name], decomposed=True)
