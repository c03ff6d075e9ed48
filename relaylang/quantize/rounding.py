"""Rounding of weights that keeps the results of a layer, where the nearest numbers do not.

The error of a layer's results over the data is a quadratic form of its weights' errors. Weights are rounded one after
another, and those that are left take over what the ones before have lost.
Sources: M. Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", ICML 2020, has the objective; E. Frantar
et al., "GPTQ", ICLR 2023, the order and the update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from relaylang.ir import Expr
from relaylang.quantize.insert import Weight
from relaylang.quantize.layers import Layer
from relaylang.quantize.observe import Batch, compiled
from relaylang.quantize.static import StaticQuantization
from relaylang.rules.quantization.forms import output_axis
from relaylang.rules.quantization.measures import gram, weight_of_rows, weight_rows

#: The bytes of the quadratic forms that one pass over the data sums.
_ROOM = 1 << 28
#: The share of the mean that is added to the diagonal of a quadratic form, so that it has an inverse.
_DAMPED = 0.01
#: The columns that are rounded before the others get their errors.
_BLOCK = 64


def adapt_rounding(quantization: StaticQuantization, batches: Iterable[Batch], step: Callable[[int], None] = lambda n: None) -> int:
    """Round the weights of dense layers and convolutions anew. Returns how many layers changed.

    `quantization` is calibrated. A layer keeps those of its rows for which the nearest numbers are better. The data are read once
    for each 256 MB of quadratic forms.
    """
    plan, numbers = quantization.plan, quantization.numbers
    forms: list[tuple[Layer, Expr]] = []
    for layer in plan.layers:
        if layer.weight is None or output_axis(layer.head) is None:
            continue
        x = numbers.of(plan.value_of[id(layer.operands[0])])
        form = gram(layer.head, x.real(x.quantized(layer.operands[0])))
        if form is not None:
            forms.append((layer, form))
    changed = 0
    for part in _parts(forms):
        program = compiled(quantization.prepared, quantization.prepared["main"].params, [form for _, form in part])
        sums: list[np.ndarray] = []
        for batch in batches:
            grams = program.run(**batch)
            sums = [a + b for a, b in zip(sums, grams)] if sums else [np.array(v, "float64") for v in grams]
            step(1)
        for (layer, _), total in zip(part, sums):
            changed += _round(layer, numbers.weights[id(layer)], total)
    quantization.renew()
    return changed


def _parts(forms: list[tuple[Layer, Expr]]) -> Iterator[list[tuple[Layer, Expr]]]:
    part: list[tuple[Layer, Expr]] = []
    size = 0
    for layer, form in forms:
        assert layer.weight is not None
        groups, _, terms = weight_rows(layer.head, layer.weight.data).shape
        more = 8 * groups * terms**2
        if part and size + more > _ROOM:
            yield part
            part, size = [], 0
        part.append((layer, form))
        size += more
    if part:
        yield part


def _round(layer: Layer, weight: Weight, forms: np.ndarray) -> bool:
    """Round a layer's weight by the quadratic forms of its groups. Returns whether a number changed."""
    assert layer.weight is not None
    exact = weight_rows(layer.head, layer.weight.data / weight.spread)
    nearest = weight_rows(layer.head, weight.ints)
    rounded_weight = nearest.copy()
    for group, form in enumerate(forms):
        rounded = _rounded(exact[group].astype("float64"), form)
        errors = (ints - exact[group] for ints in (nearest[group].astype("float64"), rounded))
        old, new = [((error @ form) * error).sum(1) for error in errors]
        better = new < old
        rounded_weight[group][better] = rounded[better].astype("int8")
    weight.ints = weight_of_rows(layer.head, rounded_weight, weight.ints.shape)
    return bool((rounded_weight != nearest).any())


def _rounded(exact: np.ndarray, form: np.ndarray) -> np.ndarray:
    """Whole numbers from -127 to 127 for each row of real ones."""
    diagonal = np.diagonal(form)
    order = np.argsort(-diagonal, kind="stable")
    damped = form[np.ix_(order, order)] + np.eye(len(form)) * (_DAMPED * diagonal.mean() or 1.0)
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T  # upper
    left = exact[:, order]
    quants = np.empty_like(left)
    for first in range(0, len(form), _BLOCK):
        block = slice(first, first + _BLOCK)
        part, triangle = left[:, block], factor[block, block]
        errors = np.empty_like(part)
        for k in range(part.shape[1]):
            ints = np.clip(np.rint(part[:, k]), -127, 127)
            quants[:, first + k] = ints
            errors[:, k] = (part[:, k] - ints) / triangle[k, k]
            part[:, k + 1 :] -= errors[:, k : k + 1] * triangle[k, k + 1 :]
        left[:, first + _BLOCK :] -= errors @ factor[block, first + _BLOCK :]
    back = np.empty_like(quants)
    back[:, order] = quants
    return back


__all__ = ["adapt_rounding"]
