"""Calibration: scales for the rounded values of an annotated network, from data or from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter import Evaluator
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    Var,
    free_vars,
    post_order,
    rewrite,
)
from relaylang.ir.binding import bind
from relaylang.ir.typed import typed_constant
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call
from relaylang.quantize.divergence import threshold
from relaylang.rules.quantization.common import SIMULATED, QAnnotateKind, QConfig, current_qconfig
from relaylang.typing import check

#: The least scale: float32 has its reciprocal.
_LEAST = float(np.finfo(np.float32).tiny)
#: A batch of inputs by name.
Dataset = Iterable[Mapping[str, Any]]


def _rounded(func: Function) -> list[Call]:
    return [node for node in post_order(func) if is_call(node, SIMULATED)]


def collect_stats(mod: IRModule, dataset: Dataset, chunk_by: int = -1) -> Iterator[list[np.ndarray]]:
    """All values that flow into each rounding of an annotated @main, weights apart, over a data set.

    Nothing is rounded on the way. Values of `chunk_by` roundings are held at once; -1 for all. Inputs of other names
    than the parameters' have no effect. Raises `RelayError` as evaluating the program does.
    """
    func = mod["main"]
    plain: dict[int, Expr] = {}

    def drop(old: Expr, new: Expr) -> Expr:
        plain[id(old)] = new.args[0] if is_call(old, SIMULATED) else new  # type: ignore[attr-defined]
        return plain[id(old)]

    rewrite(func, drop)
    wanted = [plain[id(c)] for c in _rounded(func) if c.attrs.kind != QAnnotateKind.WEIGHT]
    batches = list(dataset)
    if not batches:
        notes = ["a data set gives mappings from inputs' names to arrays"]
        raise RelayError(error("R0530", "the data set has no batches", notes=notes))
    step = chunk_by if chunk_by > 0 else max(len(wanted), 1)
    for first in range(0, len(wanted), step):
        yield _values(mod, wanted[first : first + step], batches)


def _values(mod: IRModule, wanted: Sequence[Expr], batches: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
    """The values of expressions over @main's parameters, those of all batches behind each other."""
    body = Tuple(wanted)
    params = free_vars(body)
    probe = mod.with_functions({**mod.functions, mod.get_global_var("main"): Function(params, body)})
    check(probe)
    evaluator = Evaluator(probe)
    collected: list[list[np.ndarray]] = [[] for _ in wanted]
    for batch in batches:
        inputs = {p.name_hint: _as_input(p, batch[p.name_hint]) for p in params if p.name_hint in batch}
        for values, value in zip(collected, evaluator.call("main", (), inputs), strict=True):
            values.append(np.asarray(value).reshape(-1))
    return [np.concatenate(values) for values in collected]


def _as_input(param: Var, value: Any) -> np.ndarray:
    ty = param.checked_type
    return np.asarray(value, np.dtype(ty.dtype) if isinstance(ty, TensorType) else None)


def _quantile(values: np.ndarray, part: float = 0.99999) -> float:
    magnitudes = np.abs(values)
    if not magnitudes.size:
        return 0.0
    at = int(magnitudes.size * part)
    return float(np.partition(magnitudes, at)[at])


#: `calibrate_mode` -> the scale of the values that flow into one rounding.
FROM_DATA: Mapping[str, Callable[[np.ndarray], float]] = {"kl_divergence": threshold, "percentile": _quantile}


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0))


#: `weight_scale` -> the scale of a weight of a largest magnitude.
OF_WEIGHTS: Mapping[str, Callable[[float], float]] = {
    "power2": lambda most: 2.0 ** ceil(log2(most)) if most > 0 else 1.0,
    "max": float,
}


def _value_scales(mod: IRModule, config: QConfig, dataset: Dataset | None, rounded: Iterable[Call]) -> Iterator[float]:
    """The scales of the rounded values, weights apart; without end, where all are one.

    Sums have bits for their largest magnitude, so no mode clips them.
    """
    mode = config.calibrate_mode
    if mode == "global_scale":
        while True:
            yield config.global_scale
    if mode not in FROM_DATA:
        notes = [f"there are global_scale, {', '.join(FROM_DATA)}"]
        raise RelayError(error("R0530", f"there is no way to calibrate {mode}", notes=notes))
    if dataset is None:
        raise RelayError(error("R0530", f"the mode {mode} needs a data set", notes=["quantize(mod, params, dataset)"]))
    calls = iter(rounded)
    for chunk in collect_stats(mod, dataset, config.calibrate_chunk_by):
        for values in chunk:
            call = next(calls)
            _finite(values, "a value of the network is not finite for the data set", call)
            yield (_largest if call.attrs.kind == QAnnotateKind.ACTIVATION else FROM_DATA[mode])(values)


def _finite(values: np.ndarray, title: str, call: Call) -> None:
    if not np.isfinite(values).all():
        notes = ["NaN and infinities have no form in whole numbers"]
        raise RelayError(error("R0530", title, call.span or call.args[0].span, notes=notes))


def _weight_scale(call: Call, config: QConfig) -> float:
    weight = call.args[0]
    if not isinstance(weight, Constant):
        said = "the weight of a quantised operator is not known"
        raise RelayError(error("R0530", said, call.span or weight.span, notes=["give its values: quantize(mod, params)"]))
    if config.weight_scale not in OF_WEIGHTS:
        notes = [f"there are {', '.join(OF_WEIGHTS)}"]
        raise RelayError(error("R0530", f"there is no weight scale {config.weight_scale}", notes=notes))
    _finite(weight.data, "the weight of a quantised operator is not finite", call)
    return OF_WEIGHTS[config.weight_scale](_largest(weight.data))


def calibrated(mod: IRModule, dataset: Dataset | None, config: QConfig) -> IRModule:
    """An annotated module with constants for the scales and bounds of its rounded values.

    Zeros have the scale 1. Raises `RelayError` (R0530) for weights that are not constant, for values that are not finite,
    and for modes that there are not.
    """
    rounded = _rounded(mod["main"])
    scales = _value_scales(mod, config, dataset, [c for c in rounded if c.attrs.kind != QAnnotateKind.WEIGHT])
    values: dict[Var, Constant] = {}
    for call in rounded:
        kind = call.attrs.kind
        scale = (_weight_scale(call, config) if kind == QAnnotateKind.WEIGHT else next(scales)) or 1.0
        most = 2.0 ** (config.get_nbit_by_kind(kind) - call.attrs.sign)
        for var, value in zip(call.args[1:], (max(scale / most, _LEAST), -(most - 1), most - 1), strict=True):
            if isinstance(var, Var):
                values[var] = typed_constant(np.asarray(value, "float32"))
    bound = mod.with_functions({**mod.functions, mod.get_global_var("main"): bind(mod["main"], values)})  # type: ignore[dict-item]
    check(bound)
    return bound


@dataclass(frozen=True)
class QuantizeCalibrate(Pass):
    """Give the rounded values of an annotated network their scales, as `qconfig` says, from a data set where it needs one."""

    dataset: Any = None

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return calibrated(mod, self.dataset, current_qconfig())


def calibrate(dataset: Dataset | None = None) -> Callable[[IRModule, Any], IRModule]:
    """A function of a module and a context, for `module_pass`, that calibrates as `QuantizeCalibrate` does."""
    return lambda mod, _: calibrated(mod, dataset, current_qconfig())
