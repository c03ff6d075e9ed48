"""Inverses, solutions and factors of matrices are as LAPACK's, signs and pivots too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaylang as relay  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, flat, pt2, real  # noqa: E402


def square(*shape: int) -> Any:
    """Matrices that are far from singular, with rows that pivots exchange."""
    return real(*shape).flip(-2) + 2 * torch.eye(shape[-1])


def positive(*shape: int) -> Any:
    """Symmetric positive definite matrices."""
    return square(*shape) @ square(*shape).mT + torch.eye(shape[-1])


la = torch.linalg
LU = torch.linalg.lu_factor(square(2, 5, 5))
CASES: dict[str, Case] = {
    "inv": (la.inv, (square(3, 3),)),
    "inv_batch": (torch.inverse, (square(2, 3, 4, 4),)),
    "inv_loop": (la.inv, (square(2, 7, 7),)),
    "inv_one": (la.inv, (real(3, 1, 1),)),
    "inv_double": (la.inv, (square(6, 6).double(),)),
    "inv_ex": (lambda x: la.inv_ex(x), (square(2, 3, 3),)),
    "inv_ex_singular": (lambda x: la.inv_ex(x)[1], (torch.tensor([[[1.0, 2], [2, 4]], [[1, 2], [3, 4]]]),)),
    "solve": (la.solve, (square(4, 4), real(4, 2))),
    "solve_vector": (la.solve, (square(4, 4), real(4))),
    "solve_vectors": (la.solve, (square(2, 5, 5), real(2, 5))),
    "solve_broadcast": (la.solve, (square(3, 1, 5, 5), real(2, 5, 3))),
    "solve_right": (lambda a, y: la.solve(a, y, left=False), (square(4, 4), real(2, 4))),
    "solve_ex": (lambda a, y: la.solve_ex(a, y), (square(2, 4, 4), real(2, 4, 1))),
    "triangular": (lambda a, y: la.solve_triangular(a, y, upper=True), (square(2, 4, 4), real(2, 4, 3))),
    "triangular_lower": (lambda a, y: la.solve_triangular(a, y, upper=False), (square(6, 6), real(6, 3))),
    "triangular_unit": (lambda a, y: la.solve_triangular(a, y, upper=False, unitriangular=True), (square(4, 4), real(4, 3))),
    "triangular_right": (lambda a, y: la.solve_triangular(a, y, upper=True, left=False), (square(5, 5), real(2, 5))),
    "triangular_solve": (lambda y, a: torch.triangular_solve(y, a), (real(4, 2), square(4, 4))),
    "triangular_solve_turned": (lambda y, a: torch.triangular_solve(y, a, transpose=True)[0], (real(4, 2), square(4, 4))),
    "det": (la.det, (square(2, 4, 4),)),
    "det_loop": (torch.det, (square(6, 6),)),
    "det_singular": (torch.det, (torch.zeros(3, 3),)),
    "slogdet": (lambda x: tuple(la.slogdet(x)), (square(3, 5, 5),)),
    "logdet": (torch.logdet, (square(4, 3, 3),)),
    "lu": (lambda x: tuple(la.lu(x)), (real(2, 5, 5),)),
    "lu_wide": (lambda x: tuple(la.lu(x)), (real(3, 6),)),
    "lu_tall": (lambda x: tuple(la.lu(x)), (real(6, 3),)),
    "lu_factor": (lambda x: tuple(la.lu_factor(x)), (real(2, 6, 6),)),
    "lu_factor_ex": (lambda x: tuple(la.lu_factor_ex(x)), (real(4, 4),)),
    "lu_unpack": (lambda x: tuple(torch.lu_unpack(*la.lu_factor(x))), (real(2, 5, 5),)),
    "lu_solve": (la.lu_solve, (*LU, real(2, 5, 2))),
    "lu_solve_right": (lambda f, p, y: la.lu_solve(f, p, y, left=False), (*LU, real(2, 3, 5))),
    "lu_solve_adjoint": (lambda f, p, y: la.lu_solve(f, p, y, adjoint=True), (*LU, real(2, 5, 3))),
    "lu_solve_both": (lambda f, p, y: la.lu_solve(f, p, y, adjoint=True, left=False), (*LU, real(2, 3, 5))),
    "torch_lu_solve": (torch.lu_solve, (real(2, 5, 2), *LU)),
    "cholesky": (la.cholesky, (positive(2, 4, 4),)),
    "cholesky_loop": (torch.cholesky, (positive(7, 7),)),
    "cholesky_upper": (lambda x: la.cholesky(x, upper=True), (positive(3, 3),)),
    "cholesky_ex": (lambda x: la.cholesky_ex(x)[1], (torch.stack([positive(3, 3), -torch.eye(3)]),)),
    "cholesky_solve": (torch.cholesky_solve, (real(4, 2), la.cholesky(positive(4, 4)))),
    "cholesky_solve_upper": (lambda y, f: torch.cholesky_solve(y, f, upper=True), (real(4, 2), la.cholesky(positive(4, 4)).mT)),
    "cholesky_inverse": (torch.cholesky_inverse, (la.cholesky(positive(2, 4, 4)),)),
    "qr": (lambda x: tuple(la.qr(x)), (real(2, 4, 3),)),
    "qr_wide": (lambda x: tuple(la.qr(x)), (real(3, 6),)),
    "qr_complete": (lambda x: tuple(la.qr(x, mode="complete")), (real(6, 3),)),
    "qr_r": (lambda x: la.qr(x, mode="r")[1], (real(7, 6),)),
    "qr_old": (lambda x: tuple(torch.qr(x, some=False)), (real(4, 2),)),
    "qr_zeros": (lambda x: tuple(la.qr(x)), (torch.tensor([[2.0, 1], [0, 3]]),)),
    "matrix_power": (lambda x: torch.matrix_power(x, -3), (square(3, 3),)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_torch(name: str) -> None:
    check(*CASES[name])


@pytest.mark.parametrize("name", ["inv", "solve", "solve_ex", "det", "slogdet", "lu_factor", "cholesky", "qr"])
def test_decomposed(name: str) -> None:
    check(*CASES[name], decomposed=True)


TRACED: dict[str, Case] = {
    "inverse": (lambda x, y: (torch.inverse(x) + la.det(x), la.solve(x, y), la.qr(x)[1]), (square(3, 3), real(3, 2))),
    "lstsq": (lambda a, y: tuple(la.lstsq(a, y))[:3], (real(7, 3), real(7, 2))),
    "lstsq_gels": (lambda a, y: tuple(la.lstsq(a, y, driver="gels"))[:2], (real(2, 7, 3), real(2, 7, 2))),
    "lstsq_wide": (lambda a, y: la.lstsq(a, y)[0], (real(2, 3, 5), real(2, 3, 2))),
    "lstsq_vectors": (lambda a, y: la.lstsq(a, y)[0], (real(2, 5, 3), real(2, 5))),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced(name: str) -> None:
    function, inputs = TRACED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(Call(function), inputs, check_trace=False)
    mod, params = relay.frontend.from_pytorch(traced, [(f"x{i}", tuple(v.shape)) for i, v in enumerate(inputs)])
    results = relay.create_executor("debug", mod=mod).evaluate()(*[v.numpy() for v in inputs], **params)
    for result, wanted in zip(flat_arrays(results), flat(traced(*inputs)), strict=True):
        torch.testing.assert_close(torch.from_numpy(result), wanted, rtol=1e-4, atol=1e-4)


def flat_arrays(results: Any) -> list[Any]:
    """The arrays of one result or of several."""
    return [np.asarray(r.numpy()) for r in results] if isinstance(results, (list, tuple)) else [results.numpy()]


@pytest.mark.parametrize(
    "function, inputs, said",
    [
        (la.svd, (real(3, 3),), "signs and order are those of a library"),
        (la.eigvalsh, (real(3, 3),), "signs and order are those of a library"),
        (la.pinv, (real(3, 3),), "it needs singular values"),
        (la.inv, (torch.complex(real(3, 3), real(3, 3)),), "complex"),
    ],
)
def test_what_has_no_form(function: Any, inputs: tuple[Any, ...], said: str) -> None:
    with pytest.raises(relay.RelayError, match=said):
        import_pytorch(pt2(Call(function), inputs), file="net.pt2")
