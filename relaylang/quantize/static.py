"""Static quantisation: a float network and data become a network of whole numbers in the qnn dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from relaylang.diagnostics import did_you_mean
from relaylang.ir import IRModule
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Sequential
from relaylang.passes.quantize.fake_quantization_to_integer import FakeQuantizationToInteger
from relaylang.passes.simplify.fold_constant import FoldConstant
from relaylang.quantize.dataset import checked
from relaylang.quantize.equalize import equalize
from relaylang.quantize.insert import Inserted, Parameters, Scale, Weight, insert
from relaylang.quantize.layers import Layer, Plan, make_plan
from relaylang.quantize.observe import Seen, observe
from relaylang.quantize.prepare import prepare, refuse
from relaylang.quantize.ranges import CALIBRATORS, EXTREMES, WEIGHTS, Grid
from relaylang.rules.quantization.forms import output_axis
from relaylang.rules.quantization.static import TARGETS, Wishes


def choice(what: str, given: str, known: Collection[str]) -> str:
    """A name that is known. Raises `RelayError` (R0530) for another."""
    if given in known:
        return given
    near = did_you_mean(given, sorted(known))
    raise refuse(f"there is no {what} {given}", f"did you mean {near}?" if near else f"there are {', '.join(known)}")


@dataclass(frozen=True)
class StaticConfig:
    """How a network is quantised.

    `target` is the accelerator that the result is for (`c`, `cmsis-nn`, `ethos-u`). `dtype` is that of activations: int8 or
    int16, with weights of int8. `symmetric` activations have the zero point 0; None leaves that to the target and the type.
    `power2` makes scales of activations powers of two. `calibrator` and `weights` choose ranges (`CALIBRATORS`, `WEIGHTS`), both with
    `share`, the part of the numbers that percentiles keep. `per_channel` weights have a scale for each output channel.
    `keep_float` names layers that stay in floats. `equalize` gives the channels between two products ranges that suit both
    weights, before data are seen.
    """

    target: str = "c"
    dtype: str = "int8"
    symmetric: bool | None = None
    power2: bool = False
    calibrator: str = "minmax"
    weights: str = "max"
    share: float = 0.9999
    per_channel: bool = True
    keep_float: tuple[str, ...] = ()
    equalize: bool = False

    def __post_init__(self) -> None:
        choice("target for quantised networks", self.target, TARGETS)
        choice("type of activations", self.dtype, ("int8", "int16"))
        choice("calibrator", self.calibrator, CALIBRATORS)
        choice("calibrator of weights", self.weights, WEIGHTS)
        if not 0.5 < self.share <= 1:
            raise refuse(f"the share of a percentile is above 0.5 and at most 1, not {self.share}")

    @property
    def wishes(self) -> Wishes:
        return TARGETS[self.target]

    @property
    def grid(self) -> Grid:
        symmetric = self.dtype == "int16" or (not self.wishes.asymmetric if self.symmetric is None else self.symmetric)
        return Grid(self.dtype, symmetric, self.power2)


class StaticQuantization:
    """A network on its way to whole numbers: plan, observations, scales, result.

    `prepared` is the float module whose layers are quantised, `plan` those layers. After `calibrate`, `seen` has the
    observations of the plan's values, `numbers` the scales and weights; they may be changed before `module` is asked for.
    """

    def __init__(self, mod: IRModule, params: Mapping[str, Any] | None = None, config: StaticConfig | None = None) -> None:
        self.config = config or StaticConfig()
        self.prepared = prepare(mod, params)
        if self.config.equalize:
            self.prepared, _ = equalize(self.prepared)
        self.plan: Plan = make_plan(self.prepared["main"], self.config.wishes, self.config.keep_float)
        if not self.plan.layers:
            raise refuse("the network has no layer that can be quantised", *[f"{name}: {why}" for name, why in self.plan.floats[:8]])
        self.seen: list[Seen] = []
        self.numbers = Parameters()

    def calibrate(self, dataset: Iterable[Any], step: Callable[[int], None] = lambda n: None) -> None:
        """Observe the values over batches, and choose all scales. `step` is called after each batch."""
        batches = checked(dataset, self.prepared["main"])
        histograms = self.config.calibrator not in EXTREMES
        self.seen = observe(self.prepared, [v.source for v in self.plan.values], batches, histograms, step)
        self.choose()

    def choose(self) -> None:
        """Choose all scales, weights and biases from the observations."""
        self.renew()
        config = self.config
        pick = CALIBRATORS[config.calibrator]
        for value, seen in zip(self.plan.values, self.seen, strict=True):
            grid = config.grid
            low, high = value.bounds if value.bounds is not None else pick(seen, grid, config.share)
            scale, zero = grid.scaled(low, high)
            self.numbers.scales[id(value)] = Scale(scale, zero, config.dtype)
        for layer in self.plan.layers:
            if layer.weight is None:
                continue
            x = self.numbers.of(self.plan.value_of[id(layer.operands[0])])
            bias = layer.bias.args[1].data if layer.bias is not None else None  # type: ignore[attr-defined]
            self.numbers.weights[id(layer)] = quantized_weight(layer, x, bias, config)
            if bias is not None:
                self.numbers.biases[id(layer)] = bias

    def renew(self) -> None:
        """Forget the results: the numbers have changed."""
        for name in ("inserted", "module"):
            self.__dict__.pop(name, None)

    @cached_property
    def inserted(self) -> Inserted:
        """The network with conversions around its layers."""
        return insert(self.plan, self.numbers)

    @property
    def simulated(self) -> IRModule:
        """The network in floats with conversions around its layers: the form that ONNX calls QDQ."""
        mod = self.prepared
        return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): self.inserted.func}))

    @cached_property
    def module(self) -> IRModule:
        """The network in whole numbers."""
        wishes = self.config.wishes
        convert = FakeQuantizationToInteger(use_qat=not wishes.everything, optional_qnn_ops=list(wishes.finer_sums) or None)
        return Sequential([convert, InferType(), FoldConstant(), InferType()])(self.simulated)


def quantized_weight(layer: Layer, x: Scale, bias: np.ndarray | None, config: StaticConfig) -> Weight:
    """A layer's weight as int8 with zero point 0. Scales are so large that a bias fits int32 at the scale of the sums."""
    assert layer.weight is not None
    data = layer.weight.data.astype("float64")
    axis = output_axis(layer.head) if config.per_channel else None
    rows = np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1) if axis is not None else data.reshape(1, -1)
    most = WEIGHTS[config.weights](rows, config.share)
    least = most.max(initial=0.0) * 2.0**-20 or 1.0  # for channels of zeros
    scales = np.maximum(most, least) / 127
    if bias is not None:
        needed = np.abs(bias.astype("float64")) / (x.scale * 2.0**30)
        scales = np.maximum(scales, needed if axis is not None else needed.max(initial=0.0))
    scales = np.maximum(scales, np.finfo("float32").tiny / min(x.scale, 1.0)).astype("float32")
    weight = Weight(np.zeros(data.shape, "int8"), scales if axis is not None else scales.reshape(()), axis or 0)
    weight.ints = np.clip(np.rint(data / weight.spread), -127, 127).astype("int8")
    return weight


def quantize_static(
    mod: IRModule, params: Mapping[str, Any] | None = None, dataset: Iterable[Any] | None = None, **options: Any
) -> IRModule:
    """A float network's @main in whole numbers of the qnn dialect, with scales from data.

    `params` has values of parameters by name. `dataset` gives batches: mappings from inputs' names to arrays, or arrays for
    a network of one input. `options` are the fields of `StaticConfig`. Weights are int8, with one scale for each channel; biases
    are int32. Raises `RelayError` (R0530) for networks, data and options that do not fit, before the network runs.
    """
    unknown = [name for name in options if name not in StaticConfig.__dataclass_fields__]
    for name in unknown:
        choice("option", name, list(StaticConfig.__dataclass_fields__))
    if "keep_float" in options:
        names = options["keep_float"]
        options["keep_float"] = (names,) if isinstance(names, str) else tuple(names)
    quantization = StaticQuantization(mod, params, StaticConfig(**options))
    quantization.calibrate(dataset if dataset is not None else ())
    return quantization.module


__all__ = ["StaticConfig", "StaticQuantization", "choice", "quantize_static", "quantized_weight"]
