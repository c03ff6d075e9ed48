"""Element-wise operators, reductions and running values of PyTorch: the program computes what torch computes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from tests.frontends.torch.cases import Case, check, real, whole  # noqa: E402

X, Y, U = real(2, 3, 4), real(3, 4), real(2, 3, 4).sigmoid()
ODD = torch.tensor([0.0, -0.0, 1.5, -2.5, float("inf"), -float("inf"), float("nan")])
NEAR = torch.tensor([0.0, 0.0, 1.5000001, -2.4, float("inf"), float("inf"), float("nan")])
ONE = "exp2 erfc frac sinc deg2rad rad2deg signbit tanh absolute positive angle isreal msort aminmax median".split()
TWO = "copysign hypot fmax fmin logaddexp logaddexp2 xlogy ldexp float_power isclose heaviside arctan2".split()
CASES: dict[str, Case] = {
    **{name: (getattr(torch, name), (X,)) for name in ONE},
    **{name: (getattr(torch, name), (X.abs(), Y.abs()) if name in ("xlogy", "float_power") else (X, Y)) for name in TWO},
    "log_sigmoid": (F.logsigmoid, (X * 20,)),
    "logit": (torch.logit, (U,)),
    "logit_eps": (lambda x: torch.logit(x, 0.4), (U,)),
    "hardshrink": (F.hardshrink, (X,)),
    "softshrink": (F.softshrink, (X,)),
    "tanhshrink": (F.tanhshrink, (X,)),
    "threshold": (lambda x: F.threshold(x, 0.1, 7.0), (X,)),
    "rrelu": (F.rrelu, (X,)),
    "addcdiv": (lambda x, y: torch.addcdiv(x, y, y + 5, value=0.5), (X, Y)),
    "nan_to_num": (torch.nan_to_num, (ODD,)),
    "nan_to_num_given": (lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), (ODD,)),
    "isposinf": (torch.isposinf, (ODD,)),
    "isneginf": (torch.isneginf, (ODD,)),
    "isclose_odd": (lambda x, y: torch.isclose(x, y, equal_nan=True), (ODD, NEAR)),
    "fmax_odd": (torch.fmax, (ODD, NEAR)),
    "copysign_zero": (torch.copysign, (NEAR[:4], ODD[:4])),
    "signbit_zero": (torch.signbit, (ODD,)),
    "xlogy_zero": (torch.xlogy, (torch.zeros(3), torch.tensor([0.0, 1.0, float("nan")]))),
    "logaddexp_odd": (torch.logaddexp, (ODD, NEAR)),
    "shift_left": (lambda x: x << 2, (whole(3, 4),)),
    "shift_right": (lambda x: x >> 1, (whole(3, 4) - 5,)),
    "round_even": (torch.round, (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 2.4]),)),
    "round_decimals": (lambda x: torch.round(x, decimals=2), (X,)),
    "round_tens": (lambda x: torch.round(x * 100, decimals=-1), (X,)),
    "floor_divide": (lambda x: x // 3, (whole(3, 4) - 4,)),
    "remainder_ints": (lambda x: x % 3, (whole(3, 4) - 4,)),
    "fmod_ints": (lambda x: torch.fmod(x, 3), (whole(3, 4) - 4,)),
    "pow_ints": (lambda x: x**3, (whole(3, 4),)),
    "pow_negative": (lambda x: x**-2, (X,)),
    "clip": (lambda x, y: torch.clip(x, y, y + 1), (X, Y)),
    "double": (lambda x: x.double() + 1, (X,)),
    "half": (lambda x: x.half(), (X,)),
    "cummax": (lambda x: torch.cummax(x, 1), (X,)),
    "cummin_ties": (lambda x: torch.cummin(x, 1), (whole(3, 9, most=3),)),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 2), (X,)),
    "argsort": (lambda x: torch.argsort(x, 1, descending=True), (X,)),
    "kthvalue": (lambda x: torch.kthvalue(x, 2, 1, True), (X,)),
    "unique": (lambda x: torch.unique((x * 2).round(), return_inverse=True, return_counts=True), (X,)),
    "unique_logical": (lambda x: (torch.unique(x > 0),), (X,)),
    "median_dim": (lambda x: torch.median(x, 2), (X,)),
    "quantile": (lambda x: torch.quantile(x, 0.3, 1), (X,)),
    "quantile_many": (lambda x: torch.quantile(x, torch.tensor([0.1, 0.6]), 2, True, interpolation="nearest"), (X,)),
    "diff": (lambda x: torch.diff(x, 2, 2, prepend=x), (X,)),
    "count_nonzero": (lambda x: torch.count_nonzero(x, 1), (whole(3, 4, most=2),)),
    "aminmax_dim": (lambda x: torch.aminmax(x, dim=1), (X,)),
    "nansum": (torch.nansum, (torch.tensor([1.0, float("nan"), 3.0]),)),
    "nanmean": (lambda x: torch.nanmean(x, 0), (torch.tensor([1.0, float("nan"), 3.0]),)),
    "trapezoid": (lambda x, y: torch.trapezoid(x, y), (X, real(4).sort()[0])),
    "trapezoid_dx": (lambda x: torch.trapezoid(x, dx=0.5, dim=1), (X,)),
    "logsumexp_inf": (lambda x: torch.logsumexp(x, 0), (torch.full((3, 2), -float("inf")),)),
    "linalg_norm": (torch.linalg.norm, (X,)),
    "linalg_norm_matrix": (lambda x: torch.linalg.norm(x, 1), (Y,)),
    "matrix_norm": (torch.linalg.matrix_norm, (X,)),
    "matrix_norm_inf": (lambda x: torch.linalg.matrix_norm(x, float("inf"), keepdim=True), (X,)),
    "vector_norm_0": (lambda x: torch.linalg.vector_norm(x.relu(), 0), (X,)),
    "vector_norm_low": (lambda x: torch.linalg.vector_norm(x, -float("inf"), 1), (X,)),
    "dist": (torch.dist, (X, Y)),
    "norm_p": (lambda x: x.norm(3, 1), (X,)),
    "std_mean": (lambda x: torch.std_mean(x, (1, 2), correction=0), (X,)),
    "sum_bools": (lambda x: (x > 0).sum(1), (X,)),
    "prod_all": (torch.prod, (Y,)),
    "any_dims": (lambda x: torch.any(x > 1, (0, 2)), (X,)),
    "all_dims": (lambda x: torch.all(x > -1, (0, 2), True), (X,)),
    "max_ints": (lambda x: torch.max(x, 1), (whole(3, 5),)),
    "sort_stable": (lambda x: torch.sort(x, stable=True, dim=0), (X,)),
    "topk_least": (lambda x: torch.topk(x, 2, 1, largest=False), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    check(*CASES[name])
