"""Layers of networks for tests of passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, IRModule, TensorType, const, post_order
from relaylang.ops.build import op_call
from relaylang.transform import InferType, PassContext, Sequential, parse_passes
from tests.passes.meaning import keeps_meaning

X = TensorType((1, 4, 5, 5))


def after(names: str, mod: IRModule) -> IRModule:
    with PassContext(opt_level=4):
        return keeps_meaning(Sequential(parse_passes(names)), InferType()(mod))


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def numbers(*shape: int, low: float = -1.0, seed: int = 0) -> Any:
    return const(np.random.default_rng(seed).uniform(low, 1.0, shape).astype("float32"))


def conv(x: Expr, out: int, inputs: int, seed: int = 0) -> Expr:
    return op_call("nn.conv2d", [x, numbers(out, inputs, 3, 3, seed=seed)], kernel_size=[3, 3], channels=out, padding=[1])
