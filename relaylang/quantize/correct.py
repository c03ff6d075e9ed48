"""Corrections after calibration: biases without the mean error of quantised weights, and layers that stay in floats.

Source of bias correction: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV
2019; the means here are those of data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from relaylang.ir import Expr, TensorType
from relaylang.quantize.compare import LayerError, Outputs, layer_errors
from relaylang.quantize.insert import alone
from relaylang.quantize.layers import Layer
from relaylang.quantize.observe import Batch, compiled
from relaylang.quantize.prepare import refuse
from relaylang.quantize.static import StaticQuantization
from relaylang.rules.quantization.forms import channel_axis
from relaylang.rules.quantization.measures import mean_error


def correct_biases(quantization: StaticQuantization, batches: Iterable[Batch]) -> int:
    """Take the mean error of each output channel over the data from the biases of products. Returns how many layers changed."""
    layers = [layer for layer in quantization.plan.layers if layer.weight is not None]
    means: list[Expr] = []
    for layer in layers:
        # The sums alone: limits and the rounding of results stay out.
        bare = replace(layer, limits=[], open=True)
        sums = layer.bias if layer.bias is not None else layer.head
        network = alone(bare, quantization.plan, quantization.numbers.renamed(layer, bare))
        axis = _axis(layer)
        means.append(mean_error(network, sums, axis))
    program = compiled(quantization.prepared, quantization.prepared["main"].params, means)
    totals = [np.zeros(1) for _ in layers]
    count = 0
    for batch in batches:
        totals = [total + subtotal for total, subtotal in zip(totals, program.run(**batch))]
        count += 1
    for layer, total in zip(layers, totals):
        old = quantization.numbers.biases.get(id(layer), np.zeros(1, "float32"))
        quantization.numbers.biases[id(layer)] = (old - total / count).astype("float32")
    quantization.renew()
    return len(layers)


def _axis(layer: Layer) -> int:
    ty = layer.head.checked_type
    assert isinstance(ty, TensorType)
    return channel_axis(layer.head) % len(ty.shape)


def keep_worst(
    mod_of: Callable[[Sequence[str]], StaticQuantization], batches: Iterable[Batch], max_drop: float, say: Callable[[str], None]
) -> StaticQuantization:
    """The network with so many layers in floats that the top 1 differs from the float network's in `max_drop` percent at most.

    `mod_of` makes the calibrated network that keeps the layers of some names in floats. The layer with the least ratio of signal and
    noise of its own goes first. Raises `RelayError` (R0530) for networks whose outputs have no greatest element, and where no
    choice is enough.
    """
    quantized = mod_of(())
    outputs = Outputs(quantized.prepared, batches)
    kept: list[str] = []
    left: list[LayerError] = sorted(layer_errors(quantized, batches), key=lambda row: row.own)
    left = [row for row in left if np.isfinite(row.own)]
    while True:
        _, agreement, rows = outputs.compare(quantized.module)
        if agreement is None:
            raise refuse(
                "the outputs of the network are no classes, so no drop of the top 1 can be measured",
                "name the layers: --keep-float LAYER",
            )
        drop = 100 * (1 - agreement)
        say(f"{len(kept)} layers in floats: the top 1 differs in {drop:.2f} % of {rows} rows")
        if drop <= max_drop:
            return quantized
        if not left:
            raise refuse(f"the top 1 differs in {drop:.2f} % of the rows with all layers in floats but those without an error")
        row = left.pop(0)
        kept.append(row.name)
        say(f"keep {row.name} in floats: alone it has {row.own:.1f} dB, the least of those left")
        quantized = mod_of(kept)


__all__ = ["correct_biases", "keep_worst"]
