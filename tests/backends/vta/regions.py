"""Generated regions of dense layers and convolutions, and how they are compiled, simulated and compared."""

from __future__ import annotations

from typing import Any

import numpy as np

import relaylang as relay
from relaylang.backends.hosted import interpreted
from relaylang.backends.vta.artifact import VTAArtifact
from relaylang.backends.vta.config import Config
from relaylang.backends.vta.driver import compile_module
from relaylang.ir import Expr, IRModule

#: Five configurations: TVM's, and others in batch, blocks and sizes of memories.
CONFIGS = {
    "tvm": Config(),
    "batch": Config(log_batch=1, log_acc_buff_size=16, log_inp_buff_size=14),
    "small blocks": Config(
        log_block_in=3, log_block_out=3, log_uop_buff_size=14, log_inp_buff_size=13, log_wgt_buff_size=15, log_acc_buff_size=15
    ),
    "large blocks": Config(log_block_in=5, log_block_out=5, log_inp_buff_size=15, log_wgt_buff_size=19, log_acc_buff_size=18),
    "two blocks": Config(log_block_in=4, log_block_out=5, log_wgt_buff_size=19, log_uop_buff_size=14),
}


def options(config: Config) -> dict[str, int]:
    """The options of a target string for a configuration."""
    sizes = {"batch": config.batch, "block-in": config.block_in, "block-out": config.block_out}
    return {**sizes, **{f"log-{n}-buff": getattr(config, f"log_{n}_buff_size") for n in ("uop", "inp", "wgt", "acc")}}


def compiled(mod: IRModule, config: Config | None = None) -> VTAArtifact:
    """The program, with the interpreter as the host."""
    return compile_module(mod, options(config or Config()), {}, "main", interpreted)


def differs(mod: IRModule, config: Config, inputs: list[np.ndarray]) -> bool:
    """Whether VTA computes other numbers than the interpreter. A hazard raises `RelayError`."""
    wanted, found = relay.evaluate(mod, *inputs), compiled(mod, config).run(*inputs)
    pairs = zip(wanted, found) if isinstance(found, tuple) else [(wanted, found)]
    return not all(np.array_equal(np.asarray(a), b) and np.asarray(a).dtype == b.dtype for a, b in pairs)


def int8(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


def _tail(rng: np.random.Generator, value: Expr, shape: tuple[int, ...]) -> Expr:
    """Steps after a product, to int8: a requantization by a shift, a short product, or the scales of `qnn`."""
    channels = shape[1]
    if rng.random() < 0.5:
        value = relay.nn.bias_add(value, relay.const(rng.integers(-5000, 5000, channels).astype(np.int32)))
    if rng.random() < 0.2:
        value = relay.nn.relu(value)
    kind = rng.integers(5)
    if kind == 0:
        scales = np.float32(10.0 ** -rng.uniform(1, 4, channels if rng.random() < 0.5 else ()))
        zero = int(rng.integers(-20, 20))
        value = relay.qnn.requantize(
            value,
            relay.const(scales),
            relay.const(np.int32(0)),
            relay.const(np.float32(1)),
            relay.const(np.int32(zero)),
            axis=1,
            out_dtype="int8",
        )
        return relay.nn.relu(value) if rng.random() < 0.2 else value
    if kind == 4:
        multiplier, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-11, 1))
        value = relay.fixed_point_multiply(value, multiplier, shift)
        value = relay.add(value, relay.const(np.int32(rng.integers(-20, 20))))
        return relay.cast(relay.clip(value, -128, 127), "int8")
    if kind == 1:
        value = relay.multiply(value, relay.const(np.int32(rng.integers(-9, 40000))))
    if kind == 2:
        value = relay.add(value, relay.const(rng.integers(-300, 300, shape[1:]).astype(np.int32)))
    value = relay.right_shift(value, relay.const(np.int32(rng.integers(0, 14))))
    if rng.random() < 0.7:
        value = relay.clip(value, float(rng.integers(-128, 0)), float(rng.integers(0, 128)))
    return relay.cast(value, "int8")


def random_pool(seed: int) -> tuple[IRModule, list[np.ndarray]]:
    """A pool of an image: windows of any size, steps, dilation and padding, which an average counts or leaves out."""
    rng = np.random.default_rng(seed)
    n, c, h, w = (int(size) for size in rng.integers(1, (3, 40, 16, 16)))
    size = tuple(int(rng.integers(1, extent + 1)) for extent in (min(h, 5), min(w, 5)))
    more = {"pool_size": size, "strides": tuple(rng.integers(1, 4, 2).tolist()), "ceil_mode": bool(rng.random() < 0.3)}
    more["padding"] = [int(rng.integers(0, extent)) for extent in size * 2]
    x = relay.var("x", shape=(n, c, h, w), dtype="int8")
    if rng.random() < 0.4:
        value = relay.nn.max_pool2d(x, **more)
    else:
        counted = bool(rng.random() < 0.5)
        value = relay.nn.avg_pool2d(relay.cast(x, "int32"), count_include_pad=counted, **more)
        value = relay.cast(value, "int8")
    return IRModule.from_expr(relay.Function([x], value)), [int8(rng, n, c, h, w)]


def random_region(seed: int) -> tuple[IRModule, list[np.ndarray]]:
    """A dense layer or a convolution, at times in groups, with a second input that is added, or with a second layer after it."""
    rng = np.random.default_rng(seed)
    pick: Any = lambda *values: values[int(rng.integers(len(values)))]  # noqa: E731
    n, ci, co = pick(1, 1, 1, 2, 3), int(rng.integers(1, 50)), int(rng.integers(1, 70))
    if rng.random() < 0.3:
        x = relay.var("x", shape=(n, ci), dtype="int8")
        product, shape = relay.nn.dense(x, relay.const(int8(rng, co, ci)), units=co, out_dtype="int32"), (n, co)
        inputs, params = [int8(rng, n, ci)], [x]
    else:
        h, w = int(rng.integers(1, 16)), int(rng.integers(1, 16))
        k = (int(rng.integers(1, min(h, 5) + 1)), int(rng.integers(1, min(w, 5) + 1)))
        dilation = tuple(int(rng.integers(1, 3)) if (a - 1) * 2 < size else 1 for a, size in zip(k, (h, w)))
        reach = [(a - 1) * d + 1 for a, d in zip(k, dilation)]
        pad = [int(rng.integers(0, r)) for r in reach * 2]
        strides = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        x = relay.var("x", shape=(n, ci, h, w), dtype="int8")
        groups = pick(*[g for g in range(1, ci + 1) if ci % g == 0]) if rng.random() < 0.3 else 1
        co = -(-co // groups) * groups
        weight = relay.const(int8(rng, co, ci // groups, *k))
        more = {
            "groups": groups,
            "strides": strides,
            "padding": pad,
            "dilation": dilation,
            "channels": co,
            "kernel_size": k,
            "out_dtype": "int32",
        }
        if rng.random() < 0.3:
            zero = relay.const(np.int32(rng.integers(-128, 128)))
            product = relay.qnn.conv2d(
                x, weight, zero, relay.const(np.int32(0)), relay.const(np.float32(1)), relay.const(np.float32(1)), **more
            )
        else:
            product = relay.nn.conv2d(x, weight, **more)
        out = [(size + pad[a] + pad[a + 2] - reach[a]) // strides[a] + 1 for a, size in enumerate((h, w))]
        inputs, params, shape = [int8(rng, n, ci, h, w)], [x], (n, co, *out)
    if rng.random() < 0.2:
        y = relay.var("y", shape=shape, dtype="int8")
        product = relay.add(product, relay.cast(y, "int32"))
        params.append(y)
        inputs.append(int8(rng, *shape))
    value = _tail(rng, product, shape)
    if rng.random() < 0.3:
        c2 = int(rng.integers(1, 40))
        weight = relay.const(int8(rng, c2, co, *[1] * (len(shape) - 2)))
        if len(shape) == 2:
            value = relay.nn.dense(value, weight, units=c2, out_dtype="int32")
        else:
            value = relay.nn.conv2d(value, weight, channels=c2, kernel_size=(1, 1), out_dtype="int32")
        value = _tail(rng, value, (n, c2, *shape[2:]))
    return IRModule.from_expr(relay.Function(params, value)), inputs
