"""Every operator that VTA takes, alone or after a product, bit for bit on all configurations; and what stays on the CPU, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.vta.config import Config
from relaylang.backends.vta.layers.reader import READERS
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, IRModule, post_order
from relaylang.partition.checks import op_name
from tests.backends.vta.regions import CONFIGS, compiled, differs, int8
from tests.shared import check_each

IMAGE, MATRIX = (2, 20, 9, 7), (3, 20)
Network = Callable[..., Expr]


def _int32(*values: int) -> Expr:
    return relay.const(np.int32(values if len(values) > 1 else values[0]))


def _scale(scale: float, zero: int) -> tuple[Expr, Expr]:
    return relay.const(np.float32(scale)), _int32(zero)


def _wide(value: Expr) -> Expr:
    return relay.cast(value, "int32")


def _narrow(value: Expr) -> Expr:
    return relay.cast(value, "int8")


def _kernel(*shape: int) -> Expr:
    return relay.const(int8(np.random.default_rng(5), *shape))


def _conv(x: Expr, **more: Any) -> Expr:
    size = {"channels": 24, "kernel_size": (3, 2), "out_dtype": "int32", **more}
    return relay.nn.conv2d(x, _kernel(24, 20 // size.get("groups", 1), *size["kernel_size"]), **size)


def _qnn_conv(x: Expr, zero: int = 3, **more: Any) -> Expr:
    size = {"channels": 24, "kernel_size": (3, 2), "out_dtype": "int32", **more}
    numbers = (_int32(zero), _int32(0), relay.const(np.float32(0.5)), relay.const(np.float32(0.25)))
    return relay.qnn.conv2d(x, _kernel(24, 20, 3, 2), *numbers, **size)


def _qnn_dense(x: Expr) -> Expr:
    numbers = (_int32(-7), _int32(0), relay.const(np.float32(0.5)), relay.const(np.float32(0.25)))
    return relay.qnn.dense(x, _kernel(30, 20), *numbers, units=30, out_dtype="int32")


def _requantized(value: Expr, scale: Any = 0.003, zero: int = -5) -> Expr:
    return relay.qnn.requantize(
        value, relay.const(np.float32(scale)), _int32(0), relay.const(np.float32(1)), _int32(zero), axis=1, out_dtype="int8"
    )


def _shifted(value: Expr) -> Expr:
    return _narrow(relay.clip(relay.right_shift(value, _int32(8)), -127, 127))


def _qnn_add(x: Expr, y: Expr) -> Expr:
    return relay.qnn.add(x, y, *_scale(0.5, 3), *_scale(0.25, -8), *_scale(0.75, 1))


def _average(x: Expr, counted: bool, **more: Any) -> Expr:
    return relay.nn.avg_pool2d(x, **{"pool_size": (3, 2), "strides": (2, 1), "padding": (1, 0), "count_include_pad": counted, **more})


def _qnn_average(x: Expr, counted: bool, scale: float = 0.5, zero: int = 3, layout: str = "NCHW") -> Expr:
    numbers = (*_scale(0.5, 3), *_scale(scale, zero))
    more = {"padding": (1, 1, 0, 1), "count_include_pad": counted, "layout": layout}
    return relay.qnn.avg_pool2d(x, *numbers, pool_size=(3, 3), strides=(2, 2), dilation=(1, 1), **more)


def _averages() -> Iterator[tuple[str, Network]]:
    for counted in (False, True):
        yield f"average, padding counted: {counted}", lambda x, c=counted: _narrow(_average(_wide(x), c))
        yield f"average of int8, padding counted: {counted}", lambda x, c=counted: _average(x, c, padding=(2, 1, 0, 1))
        yield f"average to a scale, padding counted: {counted}", lambda x, c=counted: _requantized(_average(_wide(x), c), 0.7)
        yield f"average up to the end, padding counted: {counted}", lambda x, c=counted: _average(x, c, strides=(3, 3), ceil_mode=True)
        yield f"average with gaps, padding counted: {counted}", lambda x, c=counted: _average(x, c, dilation=(2, 3))
        yield f"qnn average, padding counted: {counted}", lambda x, c=counted: _qnn_average(x, c)
        yield f"qnn average with limits, padding counted: {counted}", lambda x, c=counted: relay.clip(_qnn_average(x, c), 3, 90)


#: A network of int8 images by what it shows.
IMAGES: dict[str, Network] = {
    "conv2d": lambda x: _shifted(_conv(x)),
    "conv2d in steps, with padding": lambda x: _shifted(_conv(x, strides=(3, 2), padding=(2, 0, 1, 1))),
    "conv2d with gaps": lambda x: _shifted(_conv(x, dilation=(2, 3))),
    "conv2d in groups": lambda x: _shifted(_conv(x, groups=4)),
    "qnn.conv2d with a zero point and padding": lambda x: _requantized(_qnn_conv(x, padding=(1, 1, 1, 0))),
    "scales of channels": lambda x: _requantized(_conv(x), np.linspace(0.001, 0.01, 24)),
    "fixed_point_multiply": lambda x: _narrow(relay.clip(relay.fixed_point_multiply(_conv(x), 1518500250, -9), -128, 127)),
    "bias_add": lambda x: _shifted(relay.nn.bias_add(_conv(x), _int32(*range(-1200, 1200, 100)))),
    "add": lambda x, y: _narrow(relay.right_shift(relay.add(_wide(x), _wide(y)), _int32(1))),
    "subtract": lambda x, y: _narrow(relay.right_shift(relay.subtract(_wide(x), _wide(y)), _int32(1))),
    "multiply": lambda x, y: _narrow(relay.right_shift(relay.multiply(_wide(x), _wide(y)), _int32(8))),
    "maximum": lambda x, y: _narrow(relay.maximum(_wide(x), _wide(y))),
    "minimum": lambda x, y: _narrow(relay.minimum(_wide(x), _wide(y))),
    "left_shift": lambda x: _narrow(relay.right_shift(relay.left_shift(_wide(x), _int32(3)), _int32(4))),
    "clip": lambda x: _narrow(relay.clip(_conv(x), -90, 100)),
    "relu": lambda x: _shifted(relay.nn.relu(_conv(x))),
    "a cut to 8 bits between": lambda x: _narrow(relay.add(_wide(_narrow(_conv(x))), _int32(1))),
    "qnn.add": _qnn_add,
    "qnn.add of equal scales": lambda x, y: relay.qnn.add(x, y, *_scale(0.5, 3), *_scale(0.5, 3), *_scale(0.5, 3)),
    "max_pool2d": lambda x: relay.nn.max_pool2d(x, pool_size=(3, 2), strides=(2, 1), padding=(1, 0, 2, 1), ceil_mode=True),
    "max_pool2d with gaps": lambda x: relay.nn.max_pool2d(x, pool_size=(2, 2), dilation=(3, 2)),
    "max_pool2d of int32": lambda x: _narrow(relay.nn.max_pool2d(_wide(x), pool_size=(3, 3), padding=(1, 1, 1, 1))),
    "global_max_pool2d": lambda x: relay.nn.global_max_pool2d(x),
    "global_avg_pool2d": lambda x: relay.nn.global_avg_pool2d(x),
    "global_avg_pool2d of int32": lambda x: _narrow(relay.nn.global_avg_pool2d(_wide(x))),
    "global_avg_pool2d to a scale": lambda x: _requantized(relay.nn.global_avg_pool2d(_wide(x)), 1.7, 20),
    **dict(_averages()),
}
#: The same of matrices.
MATRICES: dict[str, Network] = {
    "dense": lambda x: _shifted(relay.nn.dense(x, _kernel(30, 20), units=30, out_dtype="int32")),
    "qnn.dense": lambda x: _requantized(_qnn_dense(x)),
    "qnn.add of matrices": _qnn_add,
}


def _module(network: Network, shape: tuple[int, ...]) -> tuple[IRModule, list[np.ndarray]]:
    rng, names = (
        np.random.default_rng(3),
        [name for name in network.__code__.co_varnames[: network.__code__.co_argcount] if name in "xy"],
    )
    params = [relay.var(name, shape=shape, dtype="int8") for name in names]
    return IRModule.from_expr(relay.Function(params, network(*params))), [int8(rng, *shape) for _ in params]


CASES = [(name, network, shape) for table, shape in ((IMAGES, IMAGE), (MATRICES, MATRIX)) for name, network in table.items()]


@pytest.mark.parametrize("config", CONFIGS)
def test_each_operator(config: str) -> None:
    def same(case: tuple[str, Network, tuple[int, ...]]) -> None:
        mod, inputs = _module(*case[1:])
        assert not differs(mod, CONFIGS[config], inputs)
        assert not compiled(mod, CONFIGS[config]).host

    check_each(same, CASES, [name for name, _, _ in CASES])


def test_each_operator_has_a_case() -> None:
    bodies = [_module(*case[1:])[0]["main"].body for case in CASES]
    assert {op_name(node) for body in bodies for node in post_order(body) if isinstance(node, Call)} >= set(READERS)


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (lambda x: _qnn_average(x, False, scale=0.7), "its result has another scale or zero point than its input"),
        (lambda x: _qnn_average(x, False, zero=4), "its result has another scale or zero point than its input"),
        (lambda x: _qnn_average(x, False, layout="NHWC"), "layout is NHWC; VTA takes NCHW"),
        (lambda x: _narrow(_average(_conv(x), True)), "the input of the pool is computed in the same layer"),
        (lambda x: _shifted(_conv(x, padding=(16, 0))), "its padding is more than 15, or as large as its kernel"),
        (lambda x: _shifted(_conv(x, padding=(3, 0, 0, 0))), "its padding is more than 15, or as large as its kernel"),
        (_conv, "the accelerator's pattern table has no row for it"),
        (lambda x: relay.add(x, _kernel(*IMAGE)), "the accelerator's pattern table has no row for it"),
        (lambda x: _narrow(relay.right_shift(_wide(x), _int32(32))), "it shifts by 32"),
        (lambda x: _narrow(relay.divide(_wide(x), _int32(3))), "an operand is int32; VTA loads int8"),
    ],
)
def test_what_stays_on_the_cpu_and_why(network: Network, reason: str) -> None:
    with pytest.raises(RelayError, match=rf"R0614.*nothing in @main can go to VTA(.|\n)*stays on the host: {reason}"):
        compiled(_module(network, IMAGE)[0])


def test_a_layer_of_which_no_tile_fits() -> None:
    mod = _module(IMAGES["conv2d"], IMAGE)[0]
    with pytest.raises(RelayError, match="cast stays on the host: no tile of it fits the memories of 1x16x16_i8w8a32_15_15_9_17"):
        compiled(mod, Config(log_wgt_buff_size=9))
