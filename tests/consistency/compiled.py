"""What compiled code makes of calls, beside the interpreter; many calls in one library, so that C is seldom compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.lower import gap
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.interpreter.kernels.tolerance import tolerance
from relaylang.ir import Function, IRModule, Tuple, Var
from relaylang.kernels.dtypes import CTYPES
from tests.consistency.calls import Made, key
from tests.consistency.outcome import Refused, function

#: Operators that mix elements by weights of which some are 0. A product of 0 and an infinity is a nan, and the interpreter and
#: compiled code leave out different products. An infinite scale of quantised data means nothing.
FINITE = (
    "image.resize",
    "image.crop",
    "image.affine_grid",
    "nn.upsampling",
    "qnn.",
    "dft",
    "stft",
    "vision.proposal",
    "nn.conv2d_backward_weight",
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
)
#: Floats of two bytes are rounded behind each operation here, and at the end there.
_HALF = {"float16": (5e-3, 2e-3), "bfloat16": (1.5e-2, 8e-3)}
#: Where it moves coordinates, by a thousandth of a pixel for each of some pixels.
_MOVED = {"nn.deformable_conv2d": (2e-2, 1e-2), "vision.roi_align": (2e-2, 5e-3)}
#: Diagnostics that say what the backend does not take: no code, an unknown extent, an element type.
_REFUSALS = ("R0632", "R0633", "R0634", "R0635")


#: How fast code is made.
QUICK = "c -num-threads=1 -cflags=-O1"
#: What says the difference of a call's compiled value and its interpreted one: operator, values, inputs.
Compare = Callable[[str, Any, Any, Sequence[np.ndarray]], "str | None"]


def differences(calls: Iterable[Made], target: str = QUICK, compare: Compare | None = None) -> dict[str, str]:
    """By call, the error of compiling it, or the fault of its compiled value."""
    compare = compare or difference
    wrong: dict[str, str] = {}
    good: list[tuple[Made, Function, list[np.ndarray], Any]] = []
    for made in calls:
        if gap(made[0]) is not None:
            continue
        try:
            call, inputs = function(made)
            value = evaluate(call, *inputs)
        except (Refused, RelayError):
            continue
        if any(x.dtype.name not in CTYPES for x in inputs):
            continue
        if made[0].startswith(FINITE) and not all(np.isfinite(x).all() for x in inputs):
            continue
        try:
            lower_module(IRModule.from_expr(call), "main", (), GENERIC)
        except RelayError as problem:
            first = problem.diagnostics[0]
            if first.code not in _REFUSALS or first.span is None:
                wrong[key(made)] = f"{first.code}: {first.title}"
            continue
        except Exception as problem:
            wrong[key(made)] = f"raises {type(problem).__name__}: {problem}"
            continue
        good.append((made, call, inputs, value))
    if good:
        for (made, _, inputs, value), ours in zip(good, _run(good, target)):
            said = compare(made[0], ours, value, inputs)
            if said is not None:
                wrong[key(made)] = said
    return wrong


def _run(good: Sequence[tuple[Made, Function, list[np.ndarray], Any]], target: str) -> Sequence[Any]:
    """The calls as one program, compiled and run."""
    params: list[Var] = [p for _, call, _, _ in good for p in call.params]
    whole = Function(params, Tuple([call.body for _, call, _, _ in good]))
    inputs = [x for _, _, given, _ in good for x in given]
    return compile_module(whole, target).run(*inputs)


def _largest_term(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, var: np.ndarray) -> float:
    """The largest number that a batch normalisation may add and take away again: the data by their scale."""
    data, scale, variance = (np.abs(v.astype(np.float64)) for v in (x, gamma, var))
    with np.errstate(all="ignore"):
        scales = np.maximum(scale, 1) / np.sqrt(variance + 1e-5)
    return float(data[np.isfinite(data)].max(initial=0) * scales[np.isfinite(scales)].max(initial=0))


def difference(name: str, ours: Any, theirs: Any, inputs: Sequence[np.ndarray]) -> str | None:
    """The difference of a compiled value and an interpreted one, or None.

    The precision is that of the least exact of the inputs and the value.
    """
    if isinstance(theirs, (tuple, list)):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            return f"{type(ours).__name__} in place of {len(theirs)} fields"
        return next((said for a, b in zip(ours, theirs) if (said := difference(name, a, b, inputs))), None)
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)} in place of {theirs.dtype}{list(theirs.shape)}"
    if ours.dtype == np.bool_ and (np.ascontiguousarray(ours).view(np.uint8) > 1).any():
        return "a truth value that is neither 0 nor 1"
    narrow: np.dtype = min([theirs.dtype, *[x.dtype for x in inputs if x.dtype.kind in "fV"]], key=lambda d: d.itemsize)
    relative, absolute = tolerance(name, narrow if theirs.dtype.kind in "fV" else theirs.dtype)
    if relative and narrow.name in _HALF:
        least = _MOVED.get(name, _HALF[narrow.name]) if narrow == np.float16 else _HALF[narrow.name]
        relative, absolute = max(relative, least[0]), max(absolute, least[1])
        if name == "nn.batch_norm":
            absolute = max(absolute, least[0] * _largest_term(*inputs))
    with np.errstate(all="ignore"):
        near = np.isclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True) if relative else ours == theirs
    near |= (ours != ours) & (theirs != theirs)
    if near.all():
        return None
    at = np.unravel_index(int(np.argmin(near)), near.shape)
    return f"{ours[at]} in place of {theirs[at]} at {list(map(int, at))}, {int((~near).sum())} of {near.size}"


__all__ = ["FINITE", "QUICK", "Compare", "difference", "differences"]
