"""Gradients of layers, which are operators of core ATen IR of their own."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.cases import Case, check, real, whole  # noqa: E402

A = torch.ops.aten
ALL = [True, True, True]


def gradients(*inputs: Any, transposed: bool = False, **how: Any) -> Case:
    """`convolution_backward` for a convolution."""
    x, weight = inputs
    count = weight.dim() - 2
    stride, padding, dilation = ([how.get(k, d)] * count for k, d in (("stride", 1), ("padding", 0), ("dilation", 1)))
    outputs, groups = [how.get("output_padding", 0)] * count, how.get("groups", 1)
    y = A.convolution(x, weight, None, stride, padding, dilation, transposed, outputs, groups)

    def function(grad: Any, x: Any, weight: Any) -> Any:
        args = (grad, x, weight, [grad.shape[1]], stride, padding, dilation, transposed, outputs, groups, ALL)
        return A.convolution_backward(*args)

    return function, (real(*y.shape), x, weight)


X = real(2, 4, 9, 7)
MEAN, FACTOR = X.mean((2, 3), keepdim=True), X.var((2, 3), correction=0, keepdim=True).add(1e-5).rsqrt()
GROUPS = X.reshape(2, 2, -1)
CASES: dict[str, Case] = {
    "conv1d": gradients(real(2, 3, 9), real(4, 3, 3), stride=2),
    "conv2d": gradients(X, real(6, 4, 3, 3), stride=2, padding=1),
    "conv2d_groups": gradients(X, real(6, 2, 3, 2), dilation=2, groups=2),
    "conv3d": gradients(real(1, 2, 5, 4, 4), real(3, 2, 2, 2, 2)),
    "transposed": gradients(X, real(4, 3, 3, 3), transposed=True, stride=2, padding=1, output_padding=1, groups=2),
    "conv_without_input": (
        lambda g, x, w: A.convolution_backward(g, x, w, None, [1], [0], [1], False, [0], 1, [False, True, False])[1],
        (real(2, 4, 7), real(2, 3, 9), real(4, 3, 3)),
    ),
    "layer_norm": (
        lambda g, x, w: A.native_layer_norm_backward(g, x, [9, 7], MEAN, FACTOR, w, w, ALL),
        (X.flip(0), X, real(9, 7)),
    ),
    "group_norm": (
        lambda g, x, w: A.native_group_norm_backward(
            g, x, GROUPS.mean(2), GROUPS.var(2, correction=0).add(1e-5).rsqrt(), w, 2, 4, 63, 2, ALL
        ),
        (X.flip(0), X, real(4)),
    ),
    **{
        f"avg_pool_{pad}": (
            lambda g, x, pad=pad: A.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], True, pad, None),
            (real(2, 4, 5, 4), X),
        )
        for pad in (True, False)
    },
    "avg_pool_divisor": (
        lambda g, x: A.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], False, True, 5),
        (real(2, 4, 5, 4), X),
    ),
    "adaptive": (lambda g, x: A._adaptive_avg_pool2d_backward(g, x), (real(2, 4, 4, 3), X)),
    "max_pool": (
        lambda g, x: A.max_pool2d_with_indices_backward(
            g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, A.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])[1]
        ),
        (real(2, 4, 5, 4), X),
    ),
    "embedding": (lambda g, i: A.embedding_dense_backward(g, i, 9, 2, False), (real(3, 5, 4), whole(3, 5))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_torch(name: str) -> None:
    check(*CASES[name])
