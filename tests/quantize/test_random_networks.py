"""Random networks of convolutions, dense layers and joins: the error in whole numbers is near that of rounded floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import Expr, Tuple
from relaylang.ir.tensors import static_shape
from relaylang.quantize import qconfig, quantize
from tests.quantize.test_joins import HALF, SMALL, X, const, module, op
from tests.shared import few

KINDS = ["conv", "conv", "conv", "relu", "bias", "sigmoid", "concatenate", "add", "multiply", "scalar", "mean", "clip"]


def layer(kind: str, last: Expr, partner: Expr, extents: list[int], size: float, rng: np.random.Generator) -> Expr:
    """A layer of a kind on a value of those extents. One of two operands gets a partner of the same shape."""
    channels = extents[1]
    builders: dict[str, Callable[[], Expr]] = {
        "conv": lambda: op("nn.conv2d", last, const(rng.normal(size=(4, channels, 1, 1)) * size), channels=4, kernel_size=[1, 1]),
        "relu": lambda: op("nn.relu", last),
        "bias": lambda: op("add", last, const(rng.normal(size=(channels, 1, 1)) * float(rng.choice([0, 1e-30, 1e-3, 50])))),
        "sigmoid": lambda: op("sigmoid", last),
        "concatenate": lambda: op("concatenate", Tuple([last, partner]), axis=1),
        "add": lambda: op("add", partner, last),
        "multiply": lambda: op("multiply", last, partner),
        "scalar": lambda: op("multiply", last, const(float(rng.choice([0, 0.01, -3])))),
        "mean": lambda: op("nn.avg_pool2d", last, **HALF) if extents[2] > 2 else last,
        "clip": lambda: op("clip", last, a_min=0.0, a_max=6.0),
    }
    return builders[kind]()


def network(seed: int) -> Expr:
    rng = np.random.default_rng(seed)
    values: list[Expr] = [SMALL]

    def shape(value: Expr) -> list[int]:
        found = static_shape(module(SMALL, value)["main"].checked_type.ret_type)
        assert found is not None
        return list(found)

    for kind in rng.choice(KINDS, int(rng.integers(4, 9))):
        last, other = values[-1], values[int(rng.integers(len(values)))]
        extents = shape(last)
        partner = other if shape(other) == extents else op("sigmoid", last)
        size = float(rng.choice([0.1, 0.4]))
        values.append(layer(kind, last, partner, extents, size, rng))
    flat = op("nn.batch_flatten", values[-1])
    count = shape(flat)[1]
    return op("nn.dense", flat, const(rng.normal(size=(5, count)) * 0.1), units=5)


@pytest.mark.sample(3)
@pytest.mark.parametrize("mode, weights", [("percentile", "max"), ("percentile", "power2"), ("global_scale", "max")])
@pytest.mark.parametrize("seed", few(list(range(60)), 0, 1, 2))
def test_whole_numbers_are_near_rounded_floats(seed: int, mode: str, weights: str) -> None:
    mod = module(SMALL, network(seed))
    plain = np.asarray(relay.evaluate(mod, X))

    def error(**more: bool) -> float:
        with qconfig(calibrate_mode=mode, weight_scale=weights, skip_conv_layers=[], skip_dense_layer=False, **more):
            made = quantize(mod, {}, [{"data": X}])
        return float(np.abs(np.asarray(relay.evaluate(made, X)) - plain).max() / max(np.abs(plain).max(), 1e-6))

    assert error() <= 1.3 * error(do_simulation=True) + 0.03
