"""Programs that write into tensors: views and what lies below them change together."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, pt2, real  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402

X = real(2, 3, 4)


def base_of_a_view(x: Any) -> Any:
    y = x * 2
    y[0].add_(1)
    v = y.view(-1)
    v.relu_()
    y[:, 1] = 5
    return y, v, v.view(4, 6) + 1


def views_of_views(x: Any) -> Any:
    y = x * 1
    t = y.transpose(0, 2)
    s = t[1:3]
    s.mul_(10)
    p = y.permute(1, 0, 2)
    p[0].sub_(3)
    return y, t, s, p


def parts(x: Any) -> Any:
    y = x + 1
    first, second = y.chunk(2, 2)
    first.zero_()
    a, b, c = second.unbind(1)
    b.copy_(a)
    y.diagonal(0, 1, 2).fill_(9)
    y[:, ::2].neg_()
    return y, first, second, c


def copies(x: Any) -> Any:
    y = x * 2
    copy = y.transpose(0, 1).reshape(-1)
    same_memory = y.reshape(-1)
    real_copy = y.clone()
    y.add_(1)
    copy.mul_(2)
    same_memory[0] = 100
    return y, copy, same_memory, real_copy, y.to(torch.int32), y.flatten(1)


def reads_before(x: Any) -> Any:
    y = x * 2
    before = y + 1
    y.sigmoid_()
    return before, y


CASES: dict[str, Case] = {f.__name__: (f, (X,)) for f in (base_of_a_view, views_of_views, parts, copies, reads_before)}


@pytest.mark.parametrize("name", CASES)
def test_writes_are_seen_through_views(name: str) -> None:
    check(*CASES[name])
    check(*CASES[name], decomposed=True)


def test_written_inputs_and_buffers_are_further_results() -> None:
    class Counter(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.tensor(3))
            self.register_buffer("kept", torch.ones(4))
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x: Any, cache: Any) -> Any:
            self.count += 1
            self.mean.mul_(0.5).add_(x[0, 0])
            cache[:, 1] = x[:, 0]
            return x * self.kept + self.mean

    x, cache = X, real(2, 5, 4)
    for decomposed in (False, True):
        model = Counter()
        mod = import_pytorch(pt2(model, (x, cache), decomposed)).module
        found = values(mod, (x, cache))
        after = cache.clone()
        wanted = model(x, after)
        same(found, [wanted, model.count, model.mean, after])


def test_a_batch_norm_in_training_gives_its_new_statistics() -> None:
    for layer, x in ((torch.nn.BatchNorm2d(3), real(2, 3, 4, 5)), (torch.nn.BatchNorm1d(3, momentum=0.3), real(6, 3))):
        for decomposed in (False, True):
            layer.train()
            layer.reset_parameters()
            mod = import_pytorch(pt2(layer, (x,), decomposed)).module
            found = values(mod, (x,))
            wanted = layer(x)
            same(found, [wanted, layer.running_mean, layer.running_var, layer.num_batches_tracked])


def test_what_cannot_be_followed_is_refused() -> None:
    def shape_in_place(x: Any) -> Any:
        y = x * 1
        y.unsqueeze_(0)
        return y

    with pytest.raises(RelayError, match="shape of a tensor in place"):
        import_pytorch(pt2(Call(shape_in_place), (X,)))
