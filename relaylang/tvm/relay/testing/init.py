"""Random values for the weights of a network, and the networks' workloads: a module and its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.ir import Expr, Function, IRModule, TensorType, free_vars
from relaylang.passes.infer_type import InferType
from relaylang.tvm.arrays import Array

#: The values of parameters by the end of their names, but for weights.
_VALUES = {"bias": 0.0, "gamma": 1.0, "beta": 0.0, "mean": 0.0, "var": 1.0}


class Initializer:
    """Fills a parameter's array by its name: weights by `_init_weight`, the others with 0 or 1."""

    def __call__(self, desc: str, arr: np.ndarray) -> None:
        if desc.endswith("weight"):
            self._init_weight(desc, arr)
            return
        for end, value in _VALUES.items():
            if desc.endswith(end):
                arr[:] = value
                return
        raise ValueError(f"no value for the parameter {desc}: its name ends with none of weight, {', '.join(_VALUES)}")

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        raise ValueError(f"{type(self).__name__} has no values for weights")


class Xavier(Initializer):
    """Uniform weights whose scale keeps the deviation from layer to layer (Glorot and Bengio, 2010).

    `factor_type` is "in", "out" or "avg": which of a layer's sizes sets the scale.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        if rnd_type != "uniform" or factor_type not in ("in", "out", "avg"):
            raise ValueError(f"Xavier has uniform weights, and the factors in, out and avg; not {rnd_type}, {factor_type}")
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        if arr.ndim < 2:
            raise ValueError(f"the weight {name} is a vector; Xavier needs two axes")
        area = np.prod(arr.shape[2:]) if arr.ndim > 2 else 1.0
        ins, outs = arr.shape[1] * area, arr.shape[0] * area
        factor = area if "depthwise" in name else {"in": ins, "out": outs, "avg": (ins + outs) / 2.0}[self.factor_type]
        scale = np.sqrt(self.magnitude / factor)
        arr[:] = np.random.uniform(-scale, scale, size=arr.shape)


class Constant(Initializer):
    """Weights that are all the same, with the sum 1."""

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 1.0 / arr.size


def create_workload(
    net: Function, initializer: Callable[[str, np.ndarray], Any] | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, Any]]:
    """A network's module, with types, and values for all of its parameters but `data`."""
    mod = InferType()(IRModule.from_expr(net))
    np.random.seed(seed)
    fill = initializer if initializer is not None else Xavier()
    params: dict[str, Any] = {}
    for param in mod["main"].params:
        if param.name_hint == "data":
            continue
        ty = param.checked_type
        assert isinstance(ty, TensorType)
        values = np.zeros(ty.concrete_shape, ty.dtype)
        fill(param.name_hint, values)
        params[param.name_hint] = values.view(Array)
    return mod, params


def function(body: Expr) -> Function:
    """A function of an expression's free variables."""
    return Function(free_vars(body), body)


__all__ = ["Constant", "Initializer", "Xavier", "create_workload"]
