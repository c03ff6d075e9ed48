"""Quantised programs of PyTorch, whose graphs have `quantized_decomposed` operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
F = torch.nn.functional

import relaylang as relay  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, Case, check, pt2, real  # noqa: E402

Q = torch.ops.quantized_decomposed
X, ROWS = real(2, 3, 4) * 3, real(6, 8)
S3, Z3 = real(3).abs() + 0.05, torch.tensor([0, 3, -2])
I8 = (-128, 127, torch.int8)


def by_range(x: Any) -> Any:
    scale, zero = Q.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8)
    q = Q.quantize_per_tensor.tensor(x, scale, zero, *I8)
    return q, Q.dequantize_per_tensor.tensor(q, scale, zero, *I8)


def by_row(x: Any) -> Any:
    scale, zero = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = Q.quantize_per_token(x, scale, zero, *I8)
    return q, Q.dequantize_per_token(q, scale, zero, *I8, torch.float32)


def by_group(x: Any, scales: Any, zeros: Any) -> Any:
    q = Q.quantize_per_channel_group(x, scales, zeros, -8, 7, torch.int8, 4)
    return q, Q.dequantize_per_channel_group(q, scales, zeros, -8, 7, torch.int8, 4, torch.float32)


CASES: dict[str, Case] = {
    "tensor": (lambda x: Q.quantize_per_tensor(x, 0.13, 3, *I8), (X,)),
    "tensor_uint8": (lambda x: Q.quantize_per_tensor(x, 0.13, 120, 0, 255, torch.uint8), (X,)),
    "tensor_narrow": (lambda x: Q.quantize_per_tensor(x, 0.013, 0, -127, 100, torch.int8), (X,)),
    "back": (lambda x: Q.dequantize_per_tensor(Q.quantize_per_tensor(x, 0.13, 3, *I8), 0.13, 3, *I8), (X,)),
    "channels": (lambda x: Q.quantize_per_channel(x, S3, Z3, 1, *I8), (X,)),
    "channels_back": (
        lambda x: Q.dequantize_per_channel(Q.quantize_per_channel(x, S3, Z3, 1, *I8), S3, Z3, 1, *I8),
        (X,),
    ),
    "choose": (lambda x: Q.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8), (X,)),
    "choose_symmetric": (lambda x: Q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-7, torch.int8), (X,)),
    "choose_rows": (lambda x: Q.choose_qparams_per_token(x, torch.int8), (X,)),
    "by_range": (by_range, (X,)),
    "by_row": (by_row, (X,)),
    "by_group": (by_group, (ROWS, real(6, 2).abs() + 0.1, torch.zeros(6, 2))),
    "fake": (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.13, 3, -128, 127), (X,)),
    "fake_narrow": (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.13, 0, -8, 7), (X,)),
    "fake_channels": (lambda x: torch.fake_quantize_per_channel_affine(x, S3, Z3.int(), 1, -127, 127), (X,)),
    "convert": (lambda x: Q.convert_element_type.no_fuse(x, torch.float16), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    check(*CASES[name])


class Network(torch.nn.Module):  # type: ignore[misc]
    """A quantised network as PT2E leaves it: int8 weights, `dequantize` before and `quantize` behind each layer."""

    def __init__(self, channels: bool, bias: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.channels = channels
        self.register_buffer("w", torch.randint(-127, 128, (8, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(8) * 0.01 + 0.002)
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))
        self.register_buffer("v", torch.randint(-127, 128, (5, 8), dtype=torch.int8))
        self.bias = torch.nn.Parameter(torch.randn(8), requires_grad=False) if bias else None

    def forward(self, x: Any) -> Any:
        x = Q.dequantize_per_tensor(Q.quantize_per_tensor(x, 0.03, 4, *I8), 0.03, 4, *I8)
        if self.channels:
            w = Q.dequantize_per_channel(self.w, self.scales, self.zeros, 0, -127, 127, torch.int8)
        else:
            w = Q.dequantize_per_tensor(self.w, 0.004, 0, -127, 127, torch.int8)
        y = F.relu(F.conv2d(x, w, self.bias, stride=2, padding=1))
        y = Q.dequantize_per_tensor(Q.quantize_per_tensor(y, 0.08, -128, *I8), 0.08, -128, *I8)
        y = F.adaptive_avg_pool2d(y, 1).flatten(1)
        y = Q.dequantize_per_tensor(Q.quantize_per_tensor(y, 0.05, -128, *I8), 0.05, -128, *I8)
        v = Q.dequantize_per_tensor(self.v, 0.006, 0, -127, 127, torch.int8)
        return Q.quantize_per_tensor(F.linear(y, v), 0.1, 2, *I8)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_quantised_network_becomes_integers(channels: bool, bias: bool) -> None:
    model = Network(channels, bias).eval()
    x = real(2, 3, 8, 8)
    mod = relay.transform.InferType()(import_pytorch(pt2(model, (x,))).module)
    assert "qnn.dequantize" in mod.astext()
    whole = relay.transform.InferType()(relay.transform.FakeQuantizationToInteger(hard_fail=True)(mod))
    text = whole.astext()
    assert "qnn.conv2d" in text and "qnn.dense" in text and "qnn.dequantize" not in text
    wanted = model(x).numpy().astype(int)
    for program in (mod, whole):
        found = relay.create_executor("debug", program).evaluate()(x.numpy())
        assert np.abs(np.asarray(found).astype(int) - wanted).max() <= 1


def test_computed_scales_need_no_file_of_constants() -> None:
    mod = import_pytorch(pt2(Call(by_range), (X,))).module
    assert relay.infer(mod, fresh=True) == []
