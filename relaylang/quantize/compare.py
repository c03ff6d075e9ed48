"""How far a quantised network is from the float one: a row for each layer, and how often results agree.

Both are compiled as one program whose outputs are sums, so the memory does not depend on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from relaylang.backends.cpu import compile_for
from relaylang.backends.target import Target
from relaylang.ir import Expr, IRModule, TensorType
from relaylang.quantize.insert import alone
from relaylang.quantize.observe import Batch, compiled
from relaylang.quantize.static import StaticQuantization
from relaylang.rules.quantization.measures import error_sum, extremes, product_sum, share_outside


@dataclass(frozen=True)
class LayerError:
    """A layer's result beside that of the float network.

    `sqnr` is the ratio of signal and quantisation noise in decibels, with all layers before quantised, too; `own` is that ratio where
    this layer alone is quantised. `cosine` is of the angle between both results. `low` and `high` are the least and the greatest
    float, `clipped` the share of floats outside of the quantised range.
    """

    name: str
    operator: str
    sqnr: float
    own: float
    cosine: float
    low: float
    high: float
    clipped: float


@dataclass(frozen=True)
class Comparison:
    """The layers in the order of the program, and the outputs.

    `sqnr` is the outputs' ratio of signal and noise in decibels. `agreement` is the share of `rows` of the first output whose greatest
    element is the same; None where a row has one element, and for vectors.
    """

    layers: list[LayerError]
    sqnr: float
    agreement: float | None
    rows: int


def decibels(signal: float, noise: float) -> float:
    """The ratio in decibels; infinite without noise."""
    if noise <= 0:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal > 0 else float("-inf")


def layer_errors(
    quantization: StaticQuantization, batches: Iterable[Batch], step: Callable[[int], None] = lambda n: None
) -> list[LayerError]:
    """The errors of a calibrated network's layers over batches."""
    plan, numbers = quantization.plan, quantization.numbers
    pairs = [
        (layer, result)
        for layer, result in zip(plan.layers, quantization.inserted.results)
        if isinstance(layer.tail.checked_type, TensorType)
    ]
    outputs: list[Expr] = []
    for layer, result in pairs:
        value = plan.value_of.get(id(layer.tail))
        scale = numbers.of(value) if value is not None else None
        own = alone(layer, plan, numbers)
        x = layer.tail
        sums = [product_sum(x, x), error_sum(x, result), product_sum(result, result), product_sum(x, result), error_sum(x, own)]
        half = scale.scale / 2 if scale is not None else 0.0  # so much is rounded, not clipped
        low, high = scale.range if scale is not None else (-np.inf, np.inf)
        outputs += [*sums, *extremes(x), share_outside(x, low - half, high + half)]
    program = compiled(quantization.prepared, quantization.prepared["main"].params, outputs)
    totals = np.zeros((len(pairs), 5))
    ends = np.array([[np.inf, -np.inf]] * len(pairs)).reshape(-1, 2)
    clipped = np.zeros(len(pairs))
    count = 0
    for batch in batches:
        measured = np.array([float(v) for v in program.run(**batch)]).reshape(-1, 8)
        totals += measured[:, :5]
        ends = np.stack([np.minimum(ends[:, 0], measured[:, 5]), np.maximum(ends[:, 1], measured[:, 6])], 1)
        clipped += measured[:, 7]
        count += 1
        step(1)
    rows = []
    for (layer, _), (signal, noise, other, product, own_noise), (low, high), share in zip(pairs, totals, ends, clipped):
        cosine = product / np.sqrt(signal * other) if signal * other > 0 else float(signal == other)
        operator = layer.head.op.name  # type: ignore[attr-defined]
        sqnr, own_sqnr = decibels(signal, noise), decibels(signal, own_noise)
        rows.append(LayerError(layer.name, operator, sqnr, own_sqnr, float(min(cosine, 1.0)), low, high, share / max(count, 1)))
    return rows


class Outputs:
    """The float network's outputs over batches, to compare others' with: sums alone, but for the places of the greatest."""

    def __init__(self, mod: IRModule, batches: Iterable[Batch]) -> None:
        self._reference = compile_for(mod, Target("c"), [], {}, "main")
        self._batches = batches

    def compare(self, mod: IRModule) -> tuple[float, float | None, int]:
        """The decibels, the agreement of the first output, and its rows."""
        program = compile_for(mod, Target("c"), [], {}, "main")
        signal = noise = 0.0
        same = rows = 0
        for batch in self._batches:
            wanted, results = (_flat(p.run(**batch)) for p in (self._reference, program))
            for a, b in zip(wanted, results):
                a, b = a.astype("float64"), b.astype("float64")
                signal, noise = signal + float((a * a).sum()), noise + float(((a - b) ** 2).sum())
            a, b = wanted[0], results[0]
            if a.ndim >= 2 and a.shape[-1] > 1:
                hits = a.reshape(-1, a.shape[-1]).argmax(1) == b.reshape(-1, a.shape[-1]).argmax(1)
                same, rows = same + int(hits.sum()), rows + len(hits)
        return decibels(signal, noise), same / rows if rows else None, rows


def _flat(result: Any) -> list[np.ndarray]:
    arrays: list[np.ndarray] = []
    stack = [result]
    while stack:
        item = stack.pop()
        if isinstance(item, (tuple, list)):
            stack += item[::-1]
        elif np.asarray(item).dtype.kind == "f" or not arrays:
            arrays.append(np.asarray(item))
    return arrays


def compare(quantization: StaticQuantization, batches: Iterable[Batch], step: Callable[[int], None] = lambda n: None) -> Comparison:
    """A calibrated network beside the float one, over batches."""
    layers = layer_errors(quantization, batches, step)
    sqnr, agreement, rows = Outputs(quantization.prepared, batches).compare(quantization.module)
    return Comparison(layers, sqnr, agreement, rows)


def table(comparison: Comparison) -> str:
    """The comparison as lines of text."""
    width = max([5, *(len(row.name) for row in comparison.layers)])
    lines = [f"{'layer':<{width}}  {'SQNR dB':>8}  {'own dB':>8}  {'cosine':>8}  {'range':>24}  {'clipped':>8}"]
    for row in comparison.layers:
        ends = f"{row.low:.4g} .. {row.high:.4g}"
        lines.append(f"{row.name:<{width}}  {row.sqnr:>8.1f}  {row.own:>8.1f}  {row.cosine:>8.5f}  {ends:>24}  {row.clipped:>8.3%}")
    lines.append(outcome(comparison.sqnr, comparison.agreement, comparison.rows))
    return "\n".join(lines) + "\n"


def outcome(sqnr: float, agreement: float | None, rows: int) -> str:
    """A line about the outputs."""
    said = f"outputs: SQNR {sqnr:.1f} dB"
    return said if agreement is None else f"{said}, the same top 1 in {agreement:.2%} of {rows} rows"


def picture(comparison: Comparison) -> str:
    """The layers' ratios of signal and noise as an SVG picture: a bar for each, with its own part in a lighter colour."""
    rows = comparison.layers
    finite = [r.own for r in rows if np.isfinite(r.own)] + [r.sqnr for r in rows if np.isfinite(r.sqnr)]
    most = max([10.0, *finite])
    height, left, wide = 18, 170, 420
    parts = []
    for i, row in enumerate(rows):
        y = 28 + i * height
        title = f"{row.name} ({row.operator}): SQNR {row.sqnr:.1f} dB, alone {row.own:.1f} dB, clipped {row.clipped:.3%}"
        bars = "".join(
            f'<rect x="{left}" y="{y}" width="{wide * min(max(v, 0.0), most) / most:.1f}" height="{height - 5}" fill="{colour}"/>'
            for v, colour in ((row.own, "#b9d4ee"), (row.sqnr, "#2f6db3"))
        )
        text = f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{escape(row.name)}</text>'
        number = f'<text x="{left + wide + 6}" y="{y + 11}">{row.sqnr:.1f}</text>'
        parts.append(f"<g><title>{escape(title)}</title>{bars}{text}{number}</g>")
    total = 40 + len(rows) * height
    head = f'<text x="{left}" y="18">signal to quantisation noise in dB; light: the layer alone</text>'
    style = 'font-family="sans-serif" font-size="11"'
    size = f'viewBox="0 0 {left + wide + 60} {total}" width="{left + wide + 60}" height="{total}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{head}{"".join(parts)}</svg>\n'


__all__ = ["Comparison", "LayerError", "Outputs", "compare", "layer_errors", "outcome", "picture", "table"]
