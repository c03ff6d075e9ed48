"""Random numbers: not torch's, but of its kind, its moments and its shapes; and counts of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, pt2  # noqa: E402
from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
MANY = (100, 200)


def drawn(function: Any, *inputs: Any) -> np.ndarray:
    """The numbers of an exported program, which are the same again, of the shape and the type of torch's."""
    mod = import_pytorch(pt2(Call(function), inputs)).module
    first, again = (values(mod, inputs)[0] for _ in range(2))
    wanted = function(*inputs).numpy()
    assert np.array_equal(first, again) and (first.shape, first.dtype) == (wanted.shape, wanted.dtype)
    return np.asarray(first, np.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_uniform_and_normal_numbers(dtype: Any) -> None:
    zeros = torch.zeros(MANY, dtype=dtype)
    for function in (lambda x: torch.rand(MANY, dtype=dtype) + x, lambda x: torch.rand_like(x) + x):
        x = drawn(function, zeros)
        assert x.min() >= 0 and x.max() <= 1 and abs(x.mean() - 0.5) < 0.02 and abs(x.std() - 12**-0.5) < 0.02
    for function in (lambda x: torch.randn(MANY, dtype=dtype) + x, lambda x: torch.randn_like(x) + x):
        x = drawn(function, zeros)
        assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03
    both = drawn(lambda x: torch.rand(MANY) - torch.rand(MANY) + x, torch.zeros(MANY))
    assert np.abs(both).mean() > 0.2  # two layers draw different numbers


def test_whole_numbers_and_choices() -> None:
    x = drawn(lambda x: torch.randint(-3, 4, MANY) + x, torch.zeros(MANY, dtype=torch.int64))
    assert sorted(set(x.ravel())) == list(range(-3, 4)) and abs(x.mean()) < 0.1
    x = drawn(torch.bernoulli, torch.full(MANY, 0.25))
    assert set(x.ravel()) == {0, 1} and abs(x.mean() - 0.25) < 0.02
    weights = torch.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 5.0]])
    x = drawn(lambda w: torch.multinomial(w, 4000, replacement=True), weights)
    np.testing.assert_allclose([(x[0] == i).mean() for i in range(4)], [0.125, 0, 0.375, 0.5], atol=0.03)
    assert set(x[1]) == {1, 3}
    x = drawn(lambda w: torch.multinomial(w, 3), weights + torch.tensor([[0.0], [1.0]]))
    assert set(x[0]) == {0, 2, 3} and len(set(x[1])) == 3
    often = drawn(lambda w: torch.multinomial(w, 2), torch.tensor([[1.0, 2.0, 7.0]]).expand(3000, 3).contiguous())
    assert abs((often[:, 0] == 2).mean() - 0.7) < 0.04


@pytest.mark.parametrize("least", [0, 5, 20])
def test_counts_of_whole_numbers(least: int) -> None:
    x = torch.tensor([1, 2, 2, 7, 0, 7, 7])
    weights = torch.arange(7) / 4
    for function, inputs in (
        (lambda x: torch.bincount(x, minlength=least), (x,)),
        (lambda x, w: torch.bincount(x, w, minlength=least), (x, weights)),
        (lambda x, w: torch.bincount(x, w, minlength=least), (x, weights.double())),
        (lambda x, w: torch.bincount(x, w, minlength=least), (x, torch.arange(7))),
        (lambda x: torch.bincount(x, minlength=least), (x[:0],)),
    ):
        mod = imported(traced(function, inputs), inputs).module
        found, wanted = values(mod, inputs)[0], function(*inputs).numpy()
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
