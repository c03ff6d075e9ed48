"""Conversions that a caller brings for operators of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaylang as relay  # noqa: E402
from relaylang.diagnostics import RelayError  # noqa: E402
from tests.frontends.torch.cases import Call, pt2, real  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402


@torch.library.custom_op("relay_tests::scaled_sum", mutates_args=())  # type: ignore[untyped-decorator]
def scaled_sum(x: torch.Tensor, y: torch.Tensor, scale: float, axes: list[int]) -> torch.Tensor:
    return (x + y).sum(axes) * scale


@scaled_sum.register_fake  # type: ignore[untyped-decorator]
def _(x: Any, y: Any, scale: float, axes: list[int]) -> Any:
    return (x + y).sum(axes) * scale


@torch.library.custom_op("relay_tests::halves", mutates_args=())  # type: ignore[untyped-decorator]
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:1] * 1, x[1:] * 1


@halves.register_fake  # type: ignore[untyped-decorator]
def _(x: Any) -> Any:
    return x[:1] * 1, x[1:] * 1


X = real(2, 3)


def test_an_operator_of_a_library() -> None:
    seen = []

    def convert(inputs: list[Any], input_types: list[str]) -> Any:
        seen.append(input_types)
        x, y, scale, axes = inputs
        total = relay.sum(relay.add(x, y), axis=axes)
        return relay.multiply(total, relay.const(scale, "float32"))

    def split(inputs: list[Any], input_types: list[str]) -> Any:
        return relay.split(inputs[0], 2, axis=0)

    def network(x: Any) -> Any:
        first, second = halves(x * 2)
        return scaled_sum(first, second, 0.5, [1]) + 1

    data = pt2(Call(network), (X,))
    with pytest.raises(RelayError, match="relay_tests"):
        relay.frontend.from_pytorch(data)
    own = {"relay_tests::scaled_sum": convert, "relay_tests::halves.default": split}
    mod, params = relay.frontend.from_pytorch(data, [("x", (2, 3))], own)
    assert not params and seen[0] == ["float32", "float32", "float32", "ListType"]
    assert relay.infer(mod, fresh=True) == []
    same(values(mod, (X,)), network(X))


def test_an_operator_that_the_importer_has() -> None:
    def convert(inputs: list[Any], input_types: list[str]) -> Any:
        return relay.nn.leaky_relu(inputs[0], 0.5)

    def network(x: Any) -> Any:
        y = x.relu()
        return y.relu_() + y

    mod, _ = relay.frontend.from_pytorch(pt2(Call(network), (X,)), custom_convert_map={"aten::relu_": convert, "aten::relu": convert})
    first = np.where(X.numpy() < 0, X.numpy() * 0.25, X.numpy())
    same(values(mod, (X,)), torch.from_numpy(2 * first))


def test_a_conversion_that_gives_no_expression() -> None:
    data = pt2(Call(torch.relu), (X,))
    with pytest.raises(RelayError, match="does not give a Relay expression"):
        relay.frontend.from_pytorch(data, custom_convert_map={"aten::relu": lambda inputs, types: 3})


def test_an_operator_of_a_script_module() -> None:
    def convert(inputs: list[Any], input_types: list[str]) -> Any:
        assert input_types == ["float32", "float32"] and inputs[1] == 0.1
        return relay.nn.leaky_relu(inputs[0], 0.5)

    script = torch.jit.trace(torch.nn.LeakyReLU(0.1), (X,))
    mod, _ = relay.frontend.from_pytorch(script, [("x", (2, 3))], {"aten::leaky_relu": convert})
    same(values(mod, (X,)), torch.nn.functional.leaky_relu(X, 0.5))
    scaled = torch.jit.trace(Call(lambda x: scaled_sum(x, x, 0.5, [1])), (X,))

    def total(inputs: list[Any], input_types: list[str]) -> Any:
        return relay.multiply(relay.sum(relay.add(*inputs[:2]), axis=inputs[3]), relay.const(inputs[2], "float32"))

    mod, _ = relay.frontend.from_pytorch(scaled, [("x", (2, 3))], {"relay_tests::scaled_sum": total})
    same(values(mod, (X,)), X.sum(1))
