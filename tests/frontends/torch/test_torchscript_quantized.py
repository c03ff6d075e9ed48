"""Quantised TorchScript programs: whole numbers, scales and zero points become operators of the qnn dialect."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter.evaluate import Evaluator

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

from tests.frontends.torch.cases import Call, real  # noqa: E402
from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Quantised(nn.Module):
    """Convolutions, sums, pools and a linear layer between stubs."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        depth = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8), nn.ReLU())
        self.features = nn.Sequential(first, depth, nn.Conv2d(8, 8, 1))
        self.sum, self.both = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional()
        self.pool = nn.MaxPool2d(2)
        self.classifier = nn.Linear(16, 4)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.features[0](self.quant(x))
        z = self.sum.add(self.features[2](self.features[1](y)), y)
        z = self.pool(self.both.cat([z, y], 1))
        return self.dequant(self.classifier(F.adaptive_avg_pool2d(z, (1, 1)).flatten(1)))


def choose(engine: str) -> None:
    """Make torch use an engine."""
    if engine not in torch.backends.quantized.supported_engines:
        pytest.skip(f"torch has no engine {engine} here")
    torch.backends.quantized.engine = engine


def quantised(engine: str) -> Any:
    """The network, quantised by an engine."""
    choose(engine)
    torch.manual_seed(4)
    tools = torch.ao.quantization
    model = Quantised().eval()
    tools.fuse_modules(model, [[f"features.{i}.{j}" for j in range(3)] for i in range(2)], inplace=True)
    model.qconfig = tools.get_default_qconfig(engine)
    tools.prepare(model, inplace=True)
    for _ in range(4):
        model(torch.randn(2, 3, 16, 16))
    return tools.convert(model)


def within_steps(found: np.ndarray, wanted: Any, scale: float, steps: int = 3) -> None:
    """Equal but for few steps of the scale."""
    assert np.abs(found - wanted.numpy()).max() <= steps * scale * 1.001


@pytest.mark.parametrize("way", ["traced", "scripted"])
@pytest.mark.parametrize("engine", ["fbgemm", "x86", "qnnpack"])
def test_a_quantised_network_computes_what_torch_computes(engine: str, way: str) -> None:
    model, x = quantised(engine), torch.randn(2, 3, 16, 16)
    module = traced(model, (x,)) if way == "traced" else torch.jit.script(model)
    made = imported(module, (x,))
    within_steps(values(made.module, (x,))[0], module(x), model.classifier.scale)
    text = made.module.astext()
    assert all(f"qnn.{op}(" in text for op in ("quantize", "conv2d", "requantize", "dense", "add", "dequantize"))


def test_quantised_weights_have_the_names_of_tvm() -> None:
    model, x = quantised("fbgemm"), torch.randn(2, 3, 16, 16)
    module = traced(model, (x,))
    mod, params = relay.frontend.from_pytorch(module, [("input", tuple(x.shape))])
    text = mod.astext()
    assert "qnn.quantize(%features.0.0_weight," in text and "qnn.quantize(%features.0.0_bias," in text
    assert params["features.0.0_weight"].dtype == np.float32
    run = {p.name_hint: params.get(p.name_hint, x.numpy()) for p in mod["main"].params}
    within_steps(np.asarray(Evaluator(mod).call("main", tuple(run.values()))), module(x), model.classifier.scale)
    _, whole = relay.frontend.from_pytorch(module, [("input", tuple(x.shape))], keep_quantized_weight=True)
    assert whole["features.0.0_weight"].dtype == np.int8


def test_dynamic_quantisation() -> None:
    torch.manual_seed(5)
    choose("fbgemm")
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    module = torch.jit.script(torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, torch.qint8))
    x = torch.randn(3, 8)
    found, wanted = values(imported(module, (x,)).module, (x,))[0], module(x)
    assert np.abs(found - wanted.detach().numpy()).max() < 0.01 * float(wanted.abs().max())


Q = torch.ops.quantized
tools = torch.ao.quantization
#: Functions of two quantised tensors, and the share of results that may be one step off: qnn operators round twice.
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lambda a, b: Q.add(a, b, 0.05, 120), 0.5),
    "add_relu": (lambda a, b: Q.add_relu(a, b, 0.05, 120), 0.5),
    "mul": (lambda a, b: Q.mul(a, b, 0.05, 120), 0.02),
    "cat": (lambda a, b: Q.cat([a, b], 1, 0.05, 120), 0.1),
    "aten_cat": (lambda a, b: torch.cat([a, b], 1), 0.1),
    "avg_pool": (lambda a, b: F.avg_pool2d(a, 2), 0),
    "adaptive_avg_pool": (lambda a, b: F.adaptive_avg_pool2d(a, (2, 3)), 0),
    "mean": (lambda a, b: a.mean([2, 3]), 0),
    "max_pool": (lambda a, b: F.max_pool2d(a, 3, 2, 1), 0),
    "relu": (lambda a, b: torch.relu(a), 0),
    "relu6": (lambda a, b: F.relu6(a), 0),
    "clamp": (lambda a, b: a.clamp(-0.5, 0.7), 0),
    "hardswish": (lambda a, b: Q.hardswish(a, 0.04, 100), 0.02),
    "leaky_relu": (lambda a, b: Q.leaky_relu(a, 0.1, False, 0.04, 100), 0.2),
    "elu": (lambda a, b: Q.elu(a, 0.03, 100, 1.0, 1.0, 1.0), 0.02),
    "sigmoid": (lambda a, b: torch.sigmoid(a), 0.02),
    "tanh": (lambda a, b: torch.tanh(a), 0.02),
    "softmax": (lambda a, b: Q.softmax(a, 1, 1 / 256, 0), 0.02),
    "nearest": (lambda a, b: F.interpolate(a, scale_factor=2.0, mode="nearest"), 0),
    "bilinear": (lambda a, b: F.interpolate(a, scale_factor=2.0, mode="bilinear"), 0.02),
    "pad_reflect": (lambda a, b: F.pad(a, [1, 2, 3, 0], "reflect"), 0),
    "pad": (lambda a, b: F.pad(a, [1, 2, 3, 0]), 0),
    "moved": (lambda a, b: a.flatten(1)[:, 3:].t(), 0),
    "chunk": (lambda a, b: torch.cat(list(a.chunk(2, 1))[::-1], 1), 0),
    "mul_scalar": (lambda a, b: Q.mul_scalar(a, 2.5), 0),
    "add_scalar": (lambda a, b: Q.add_scalar(a, 0.5), 0),
    "add_scalar_low": (lambda a, b: Q.add_scalar(a, 4.5), 0.02),
    "add_scalar_high": (lambda a, b: Q.add_scalar(a, -6.5), 0.02),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_quantised_tensors(name: str) -> None:
    choose("fbgemm")
    function, share = FUNCTIONS[name]

    def whole(x: Any, y: Any) -> Any:
        a = torch.quantize_per_tensor(x, 0.03, 100, torch.quint8)
        return function(a, torch.quantize_per_tensor(y, 0.021, 128, torch.quint8)).dequantize()

    inputs = real(4, 8, 6, 6), real(4, 8, 6, 6).flip(0)
    module = traced(Call(whole), inputs)
    steps(values(imported(module, inputs).module, inputs)[0], module(*inputs), 0.075, share)


def steps(found: np.ndarray, wanted: Any, scale: float, share: float) -> None:
    """Equal, but for one step of the scale in a share of the elements."""
    apart = np.abs(found - wanted.numpy())
    assert apart.max() <= 1.01 * scale and np.mean(apart > 1e-5) <= share


IMAGE, LINE = real(4, 8, 6, 6), real(4, 8, 9)
#: Layers, their inputs, and whether weights have a scale for each channel.
LAYERS: dict[str, tuple[Callable[[], Any], Any, bool]] = {
    "conv2d": (lambda: nn.Conv2d(8, 16, 3, (2, 1), (1, 2)), IMAGE, True),
    "conv2d_one_scale": (lambda: nn.Conv2d(8, 16, 3, 2, 1), IMAGE, False),
    "conv2d_groups": (lambda: nn.Conv2d(8, 16, 3, 1, 1, 2, groups=4), IMAGE, True),
    "conv2d_reflect": (lambda: nn.Conv2d(8, 4, 3, 1, 1, padding_mode="reflect"), IMAGE, True),
    "conv2d_no_bias": (lambda: nn.Conv2d(8, 4, 1, bias=False), IMAGE, True),
    "conv1d": (lambda: nn.Conv1d(8, 4, 3, 2, 1, 2), LINE, True),
    "conv3d": (lambda: nn.Conv3d(4, 4, 3, 1, 1), real(2, 4, 3, 4, 4), True),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(8, 4, 3, 2, 1, 1), IMAGE, False),
    "linear": (lambda: nn.Linear(6, 5), real(3, 6), True),
    "linear_of_4_axes": (lambda: nn.Linear(6, 5), IMAGE, False),
}


@pytest.mark.parametrize("way", ["traced", "scripted"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_quantised_layer(name: str, way: str) -> None:
    choose("fbgemm")
    torch.manual_seed(3)
    make, x, channels = LAYERS[name]
    tools = torch.ao.quantization
    model = nn.Sequential(tools.QuantStub(), make(), tools.DeQuantStub()).eval()
    weight = tools.default_per_channel_weight_observer if channels else tools.default_weight_observer
    model.qconfig = tools.QConfig(tools.HistogramObserver.with_args(reduce_range=True), weight)
    prepared = tools.prepare(model)
    prepared(x)
    made = tools.convert(prepared)
    module = traced(made, (x,)) if way == "traced" else torch.jit.script(made)
    steps(values(imported(module, (x,)).module, (x,))[0], module(x), float(made[1].scale), 0.05)


@pytest.mark.parametrize("way", ["traced", "scripted"])
def test_a_network_of_fx(way: str) -> None:
    choose("fbgemm")
    torch.manual_seed(4)
    from_fx = pytest.importorskip("torch.ao.quantization.quantize_fx")
    x = torch.randn(2, 3, 16, 16)
    model = Quantised().eval()
    model.quant, model.dequant = nn.Identity(), nn.Identity()
    model.sum, model.both = Sum(), Both()
    prepared = from_fx.prepare_fx(copy.deepcopy(model), torch.ao.quantization.get_default_qconfig_mapping("fbgemm"), (x,))
    prepared(x)
    made = from_fx.convert_fx(prepared)
    module = traced(made, (x,)) if way == "traced" else torch.jit.script(made)
    within_steps(values(imported(module, (x,)).module, (x,))[0], module(x), float(made.classifier.scale))


class Sum(nn.Module):  # type: ignore[misc]
    """A sum that the tools for graphs find."""

    def add(self, x: Any, y: Any) -> Any:
        return x + y


class Both(nn.Module):  # type: ignore[misc]
    """A concatenation that the tools for graphs find."""

    def cat(self, parts: Any, axis: int) -> Any:
        return torch.cat(parts, axis)


#: Layers and the shapes of their data. Their quantised forms compute exactly what torch computes.
MODULES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    **{
        f"batch_norm{d}": (lambda d=d: getattr(nn, f"BatchNorm{d}d")(4), (2, 4, *(5, 6, 3)[:d]))  # type: ignore[misc]
        for d in (2, 3)
    },
    **{
        f"instance_norm{d}": (
            lambda d=d: getattr(nn, f"InstanceNorm{d}d")(4, affine=True),  # type: ignore[misc]
            (2, 4, *(5, 6, 3)[:d]),
        )
        for d in (1, 2, 3)
    },
    "group_norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5, 6)),
    "channel_shuffle": (lambda: nn.ChannelShuffle(2), (2, 4, 5, 6)),
    "threshold": (lambda: nn.Threshold(0.1, 0.2), (2, 4, 5, 6)),
    "upsample3": (lambda: nn.Upsample(scale_factor=2, mode="nearest"), (1, 2, 3, 4, 5)),
}


class Stubs(nn.Module):  # type: ignore[misc]
    """A layer between the ends of quantisation."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.into, self.body, self.back = tools.QuantStub(), body, tools.DeQuantStub()

    def forward(self, x: Any) -> Any:
        return self.back(self.body(self.into(x)))


@pytest.mark.parametrize("name", MODULES)
def test_a_quantised_layer_computes_what_torch_computes(name: str) -> None:
    torch.manual_seed(4)
    choose("fbgemm")
    make, shape = MODULES[name]
    model, x = Stubs(make()).eval(), torch.randn(*shape)
    model.qconfig = tools.get_default_qconfig("fbgemm")
    model = tools.prepare(model)
    model(x)
    model = tools.convert(model)
    found, wanted = values(imported(traced(model, (x,)), (x,)).module, (x,))[0], model(x)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=1e-5 * float(wanted.abs().max()))


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "batch_norm_relu": lambda q: Q.batch_norm3d_relu(q[:, :, None], None, None, torch.zeros(3), torch.ones(3), 1e-5, 0.05, 3).squeeze(
        2
    ),
    "add": lambda q: Q.add(q, 0.5),
    "add_relu": lambda q: Q.add_scalar_relu(q, 0.5),
    "mul": lambda q: Q.mul(q, 0.5),
    "mul_negative": lambda q: Q.mul(q, -0.5),
    "mul_zero": lambda q: Q.mul(q, 0.0),
    "celu": lambda q: Q.celu(q, 0.05, 3, 0.7),
    "matmul": lambda q: Q.matmul(q, q.transpose(2, 3), 0.13, 3),
    "tanh": torch.tanh,
    "hardsigmoid": F.hardsigmoid,
    "max": lambda q: q.max(1)[0],
    "sort": lambda q: q.sort(1)[0],
}


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_function_of_one_quantised_tensor(name: str, dtype: Any) -> None:
    torch.manual_seed(4)
    choose("fbgemm")
    x = torch.randn(2, 3, 4, 5)

    class Ends(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            zero = 120 if dtype == torch.quint8 else 3
            return NUMBERS[name](torch.quantize_per_tensor(x, 0.05, zero, dtype)).dequantize()

    try:
        wanted = Ends()(x)
    except RuntimeError:
        pytest.skip("torch has it for the other element type only")
    found = values(imported(traced(Ends(), (x,)), (x,)).module, (x,))[0]
    np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=1e-5 * max(float(wanted.abs().max()), 1e-3))


class One(nn.Module):  # type: ignore[misc]
    """A cell without states that are given."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Any) -> Any:
        return self.cell(x)


DYNAMIC: dict[str, tuple[Callable[[], Any], Any, tuple[int, ...]]] = {
    "lstm": (lambda: nn.Sequential(nn.LSTM(5, 4, 2, bidirectional=True)), nn.LSTM, (3, 2, 5)),
    "lstm_batch_first": (lambda: nn.Sequential(nn.LSTM(5, 4, batch_first=True)), nn.LSTM, (3, 2, 5)),
    "gru": (lambda: nn.Sequential(nn.GRU(5, 4, 2, bidirectional=True)), nn.GRU, (3, 2, 5)),
    **{
        f"cell_{cell.__name__}": (lambda cell=cell: One(cell(5, 4)), cell, (3, 5))  # type: ignore[misc]
        for cell in (nn.LSTMCell, nn.GRUCell, nn.RNNCell)
    },
}


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("name", DYNAMIC)
def test_a_dynamic_recurrent_layer(name: str, dtype: Any) -> None:
    torch.manual_seed(4)
    choose("fbgemm")
    make, kind, shape = DYNAMIC[name]
    model, x = tools.quantize_dynamic(make().eval(), {kind}, dtype), torch.randn(*shape)
    wanted = []
    for made in model(x) if isinstance(model(x), tuple) else (model(x),):
        wanted += list(made) if isinstance(made, tuple) else [made]
    found = values(imported(traced(model, (x,)), (x,)).module, (x,))
    for value, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(value, w.detach().numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("turned", ["", "Transpose"])
def test_a_dynamic_convolution(axes: int, turned: str) -> None:
    torch.manual_seed(4)
    choose("fbgemm")
    layer = getattr(nn, f"Conv{turned}{axes}d")(4, 6, 3, padding=1).eval()
    layer.qconfig = tools.default_dynamic_qconfig
    model = One(getattr(torch.ao.nn.quantized.dynamic, f"Conv{turned}{axes}d").from_float(layer)).eval()
    x = torch.randn(2, 4, *(5, 6, 4)[:axes])
    found = values(imported(traced(model, (x,)), (x,)).module, (x,))[0]
    wanted = model(x).numpy()
    step = (float(x.max()) - float(x.min())) / 255  # a sum next to a half may be rounded the other way
    assert np.abs(found - wanted).max() < 1.001 * step and (np.abs(found - wanted) > 1e-5).mean() < 0.01


#: Functions of a quantised tensor (2, 3, 4, 6).
PLAIN: dict[str, Any] = {
    "index": lambda t: t[:, torch.tensor([1, 0]), 1:],
    "clamp": lambda t: torch.ops.quantized.clamp(t, -0.5, 0.7),
    "max_pool": lambda t: torch.ops.quantized.max_pool2d(t, [2, 2], [2, 2], [0, 0], [1, 1], False),
    "threshold": lambda t: torch.ops.quantized.threshold(t, 0.33, 0.1),
    "masked_fill": lambda t: t.masked_fill(torch.ones(2, 3, 4, 6, dtype=torch.bool), 0.5),
    "fill": lambda t: t.clone().fill_(0.3),
    "less": lambda t: t < t.flip(0),
    "diagonal": lambda t: torch.diagonal(t, 0, 2, 3),
    "hstack": lambda t: torch.hstack([t, t]),
    "unfold": lambda t: t.unfold(3, 2, 2),
}


@pytest.mark.parametrize("name", PLAIN)
def test_an_operator_on_quantised_numbers(name: str) -> None:
    class Net(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            made = PLAIN[name](torch.quantize_per_tensor(x, 0.05, 100, torch.quint8))
            return made.dequantize() if made.is_quantized else made

    torch.manual_seed(4)
    x = torch.randn(2, 3, 4, 6)
    found = values(imported(traced(Net(), (x,)), (x,)).module, (x,))[0]
    np.testing.assert_allclose(found, Net()(x).numpy(), rtol=0, atol=1e-6)


def _written(write: Any) -> Any:
    """A function that quantises its input, writes into it, and gives all of its numbers."""

    def function(x: Any) -> Any:
        whole, other = (torch.quantize_per_tensor(v, 0.1, 3, torch.quint8) for v in (x, 2 * x))
        return write(whole, other).dequantize()

    return function


def _into_view(whole: Any, other: Any) -> Any:
    whole.view(-1).copy_(other.view(-1))
    return whole


def _into_row(whole: Any, other: Any) -> Any:
    whole[1] = other[0]
    return whole


def _relu_of_view(whole: Any, other: Any) -> Any:
    torch.relu_(whole.reshape(2, 6))
    return whole


def _view_of_written(whole: Any, other: Any) -> Any:
    row = whole[0]
    whole.copy_(other)
    return row


@pytest.mark.parametrize("write", [_into_view, _into_row, _relu_of_view, _view_of_written])
def test_writes_through_views_of_quantised_tensors_are_refused(write: Any) -> None:
    x = (torch.randn(3, 4),)
    with pytest.raises(RelayError, match="may be a copy or a view"):
        imported(traced(Call(_written(write)), x), x)


def test_a_quantised_tensor_takes_another() -> None:
    x = (torch.randn(3, 4),)
    module = traced(Call(_written(lambda whole, other: whole.copy_(other))), x)
    np.testing.assert_array_equal(values(imported(module, x).module, x)[0], module(*x).numpy())
