"""Conditionals, loops and scans of PyTorch: the exported program computes what torch computes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops.associative_scan import associative_scan, associative_scan_op  # noqa: E402
from torch._higher_order_ops.map import map as map_rows  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

import relaylang as relay  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, check, pt2, real  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402

X = real(2, 3)


def branches(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x + 1, x.sum()), lambda x: (x.sin(), x.max()), (x,))


def one_result(x: Any, y: Any) -> Any:
    return torch.cond(y, lambda x: x * 2, lambda x: torch.cond(x.sum() > 0, lambda x: x + 3, lambda x: x - 3, (x,)), (x,))


def until_large(x: Any) -> Any:
    return while_loop(lambda i, v: v.abs().sum() < 100, lambda i, v: (i + 1, v * 1.5 + x), (torch.tensor(0), x * 1))


def running(c: Any, x: Any) -> Any:
    return scan(lambda c, x: (c + x, (c * x).sum()), c, x)


def whole_graph(x: Any) -> Any:
    with torch.no_grad():
        y = x * 2
    with torch.autocast("cpu", enabled=False):
        return (y + 1).relu()


def test_conditionals() -> None:
    for x in (X, X.abs(), -X.abs()):
        for y in (True, False):
            check(one_result, (x, torch.tensor(y)))
        check(branches, (x,))
    check(branches, (X,), decomposed=True)
    check(branches, (-X.abs(),), decomposed=True)


def test_a_conditional_on_an_extent_is_kept() -> None:
    def by_size(x: Any) -> Any:
        return torch.cond(x.shape[0] > 3, lambda x: x + 1, lambda x: x - 1, (x,))

    data = pt2(Call(by_size), (X,), dynamic_shapes=(({0: torch.export.Dim("n", min=2, max=9)},),))
    mod = import_pytorch(data).module
    assert "if (" in mod.astext()
    for x in (X, real(5, 3)):
        same(values(mod, (x,)), by_size(x))


def test_loops() -> None:
    for decomposed in (False, True):
        check(until_large, (X,), decomposed)


@pytest.mark.parametrize("length", [1, 3, 40])
def test_scans(length: int) -> None:
    x = real(length, 3)
    check(running, (real(3), x))
    check(lambda x, y: map_rows(lambda r, y: r.sin() + y, x, y), (x, real(3) + 1))
    check(lambda x: associative_scan(lambda p, q: p * 0.5 + q, x, 0, combine_mode="generic"), (x,), decomposed=True)


@pytest.mark.parametrize("length", [1, 3, 40])
def test_a_scan_of_pairs(length: int) -> None:
    x = real(length, 3)
    mod = import_pytorch(pt2(Call(lambda x: associative_scan_op(lambda p, q: (p + q,), [x], ())), (x,))).module
    same(values(mod, (x,)), [x.cumsum(0)])


def test_a_loop_is_correct_relay() -> None:
    mod = import_pytorch(pt2(Call(running), (real(3), real(40, 3)))).module
    assert relay.infer(mod, fresh=True) == []
    assert "let %scan" in mod.astext()


def test_graphs_that_stand_for_themselves() -> None:
    check(whole_graph, (X,))
