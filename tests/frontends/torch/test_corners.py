"""Corners of PyTorch's operators: tensors without axes or elements, truth values, whole numbers, counts that are computed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import relaylang as relay  # noqa: E402
from relaylang.frontends.options import Options  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from relaylang.ir.structural import structural_equal  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, flat, pt2, real, whole  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, saved, traced  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

ONE, X, I = torch.tensor(1.5), real(3, 4), whole(3, 4)
TRUE = whole(3, 4, most=2).bool()
PLACE = torch.tensor([0])
SCALARS: dict[str, Case] = {
    "cumsum": (lambda x: x.cumsum(0), (ONE,)),
    "cumprod": (lambda x: x.cumprod(-1), (ONE,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), (ONE,)),
    "max": (lambda x: tuple(x.max(0)), (ONE,)),
    "min_kept": (lambda x: tuple(x.min(-1, keepdim=True)), (ONE,)),
    "softmax": (lambda x: x.softmax(0), (ONE,)),
    "log_softmax": (lambda x: x.log_softmax(-1), (ONE,)),
    "topk": (lambda x: tuple(x.topk(1)), (ONE,)),
    "kthvalue": (lambda x: tuple(x.kthvalue(1)), (ONE,)),
    "median": (lambda x: tuple(x.median(0)), (ONE,)),
    "aminmax": (lambda x: tuple(torch.aminmax(x, dim=0)), (ONE,)),
    "norm": (lambda x: torch.linalg.vector_norm(x, 3, 0), (ONE,)),
    "logsumexp": (lambda x: x.logsumexp(0, True), (ONE,)),
    "index_add": (lambda x, i: x.index_add(0, i, x), (ONE, PLACE)),
    "index_copy": (lambda x, i: x.index_copy(0, i, x * 2), (ONE, PLACE)),
    "index_fill": (lambda x, i: x.index_fill(0, i, 7), (ONE, PLACE)),
    "expand": (lambda x: x.expand(()), (ONE,)),
    "squeeze": (lambda x: x.squeeze(0), (ONE,)),
    "roll": (lambda x: x.roll(1), (ONE,)),
    "unfold": (lambda x: x.unfold(0, 1, 1), (ONE,)),
}
EMPTY: dict[str, Case] = {
    "mean": (lambda x: x[:0].mean(0), (X,)),
    "var_mean": (lambda x: torch.var_mean(x[:0], 0), (X,)),
    "roll": (lambda x: x[:0].roll(1, 0), (X,)),
    "arange": (lambda x: x.sum() + torch.arange(1, 1), (X,)),
    "gather": (lambda x: x.gather(0, torch.zeros(0, 4, dtype=torch.int64)), (X,)),
    "cat": (lambda x: torch.cat([x[0, :0], x[1, :0]]), (X,)),
    "bucketize": (lambda x: torch.bucketize(x[:, :0], torch.arange(3.0)), (X,)),
    "unflatten": (lambda x: x[:, :0].unflatten(0, (3, 1)), (X,)),
}
KINDS: dict[str, Case] = {
    "add_truth": (lambda x: x + x[0], (TRUE,)),
    "addr_truth": (lambda x: torch.addr(x, x[:, 0], x[0]), (TRUE,)),
    "put_truth": (lambda x: x.index_put((torch.tensor([0, 0]),), x[1:], accumulate=True), (TRUE,)),
    "scatter_truth": (lambda x: x.scatter_add(0, torch.zeros(2, 4, dtype=torch.int64), x[1:]), (TRUE,)),
    "cummax_truth": (lambda x: tuple(x.cummax(0)), (TRUE,)),
    "square_truth": (torch.square, (TRUE,)),
    "isposinf_truth": (torch.isposinf, (TRUE,)),
    "atan2_ints": (torch.atan2, (I, I + 1)),
    "pow_ints": (lambda x: torch.pow(8, x * 5), (I,)),
    "pow_ints_negative": (lambda x: torch.pow(x, x - 6), (I,)),
    "trace_ints": (torch.trace, (I,)),
    "trapezoid_ints": (torch.trapezoid, (I,)),
    "margin_ints": (lambda x: F.margin_ranking_loss(x, x.flip(0), torch.ones_like(x), margin=0.5), (I,)),
    "triplet_ints": (lambda x: F.triplet_margin_loss(x, x + 1, x.flip(0)), (I,)),
    "linspace_ints": (lambda x: x.sum() + torch.linspace(4.3, -3, 50, dtype=torch.int64), (I,)),
    "arange_reals": (lambda x: x.sum() + torch.arange(0.1, -7.9, -4.0), (X,)),
    "addr_beta": (lambda x: torch.addr(x * float("nan"), x[:, 0], x[0], beta=0), (X,)),
    "masked_scatter_wide": (lambda x: x[0].masked_scatter(x > 0, x), (X,)),
    "diff_none": (lambda x: torch.diff(x, 0, 0, x[:1]), (X,)),
    "cosine_wide": (lambda x: F.cosine_similarity(x[:, None], x[None], 1), (X,)),
    "replicate_cut": (lambda x: F.pad(x[None], (-3, 2), "replicate"), (X,)),
}
PLACES: dict[str, Case] = {
    "where": (lambda x: torch.where(x > 0), (X,)),
    "where_first": (lambda x: torch.where(x[0] > 0)[0], (X,)),
    "where_taken": (lambda x: x[0][torch.where(x[0] > 0)], (X,)),
    "nonzero_tuple": (lambda x: x.relu().nonzero(as_tuple=True), (X,)),
    "argwhere": (lambda x: torch.argwhere(x > 0), (X,)),
}
CASES = {
    f"{group}_{name}": case
    for group, cases in (("scalar", SCALARS), ("empty", EMPTY), ("kind", KINDS), ("places", PLACES))
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_a_trace_computes_what_torch_computes(name: str) -> None:
    function, inputs = CASES[name]
    module = traced(Call(function), inputs)
    found = values(imported(module, inputs).module, inputs)
    for value, wanted in zip(found, flat(function(*inputs)), strict=True):
        if wanted.is_floating_point():
            assert (value.shape, value.dtype.name) == (tuple(wanted.shape), str(wanted.dtype).removeprefix("torch."))
            torch.testing.assert_close(torch.from_numpy(value.copy()), wanted, equal_nan=True)
        else:
            same([value], wanted)


@pytest.mark.parametrize("name", PLACES)
def test_positions_in_exported_programs(name: str) -> None:
    check(*PLACES[name])


class Top(torch.nn.Module):  # type: ignore[misc]
    """The largest elements; their number depends on an extent."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.topk(x, min(2, x.shape[0]), 0)[0]


class Rows(torch.nn.Module):  # type: ignore[misc]
    """Numbers up to an extent."""

    def forward(self, x: Any) -> Any:
        return x + torch.arange(x.shape[0])[:, None]


def test_a_computed_range_is_no_attribute() -> None:
    axes = ({0: torch.export.Dim("n", min=2, max=9)},)
    mod = import_pytorch(pt2(Rows(), (X,), dynamic_shapes=axes)).module
    text = mod.astext()
    assert "free_var" not in text and "stop=None" in text
    assert structural_equal(relay.parse(text), mod)
    for x in (X, real(5, 4)):
        same(values(mod, (x,)), Rows()(x))


def test_a_computed_number_of_largest_elements() -> None:
    module = torch.jit.script(Top())
    mod = imported(module, (X,)).module
    same(values(mod, (X,)), Top()(X))
    shapes = {"in0": (relay.ir.ANY, 4)}
    mod = import_pytorch(saved(module), Options(shapes, {"in0": "float32"}), "net.pt", ["in0"]).module
    for x in (X, X[:1]):
        same(values(mod, (x,)), Top()(x))


NAN = float("nan")
#: A NaN before and after the extremes, infinities, and rows of NaNs alone.
UNORDERED = torch.tensor(
    [
        [1.0, NAN, -3, NAN],
        [NAN, 2, 1, 0],
        [4, 3, 9, -1],
        [NAN, NAN, NAN, NAN],
        [float("inf"), NAN, 1, -float("inf")],
    ]
)


@pytest.mark.parametrize("door", ["exported", "traced"])
def test_extremes_of_nans(door: str) -> None:
    """A NaN is the greatest, the smallest and the median element. Running extremes name the last NaN, others the first."""

    def extremes(x: Any) -> Any:
        results = [f(x) for f in (torch.argmin, torch.argmax, torch.min, torch.max, torch.median)]
        for axis, f in itertools.product((0, 1), (torch.min, torch.max, torch.median, torch.cummin, torch.cummax)):
            results += f(x, axis)
        results += [f(x, 1, True) for f in (torch.argmin, torch.argmax)]
        return tuple(results)

    inputs = (UNORDERED,)
    program = import_pytorch(pt2(Call(extremes), inputs)) if door == "exported" else imported(traced(Call(extremes), inputs), inputs)
    for found, wanted in zip(values(program.module, inputs), extremes(UNORDERED), strict=True):
        np.testing.assert_array_equal(found, wanted.numpy())


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (3, 4), (2, 3, 4)])
def test_norms_of_each_order(shape: tuple[int, ...]) -> None:
    """Of vectors and matrices, also without elements; default axes and orders are those of PyTorch."""
    orders = [1, -1] if 0 in shape else [1, -1, math.inf, -math.inf]
    if shape == (0, 0):
        orders = [1, math.inf]
    x = real(*shape)
    norms = [lambda x, o=o: torch.linalg.matrix_norm(x, o) for o in (*orders, "fro") if shape != (3, 0) or o == "fro"]
    norms += [lambda x, o=o: torch.linalg.vector_norm(x, o, 0) for o in (orders if shape[0] else [1, 2])]
    check(lambda x: tuple(norm(x) for norm in (*norms, torch.linalg.norm, torch.linalg.vector_norm)), (x,))
