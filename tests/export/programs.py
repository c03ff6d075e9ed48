"""The kernels' cases as programs to export, and the comparison of two tools' results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import relaylang as relay
from relaylang.ir import IRModule
from relaylang.typing import infer
from tests.consistency.calls import OWN
from tests.consistency.outcome import Refused, function
from tests.interpreter.every_case import EVERY


@dataclass(frozen=True)
class Case:
    """A call of an operator as a program, with inputs."""

    name: str
    attrs: dict[str, Any]
    module: IRModule
    inputs: list[np.ndarray]

    @property
    def says(self) -> str:
        return f"{self.name} {self.attrs} {[f'{x.dtype.name}{list(x.shape)}' for x in self.inputs]}"


def cases(rules: Mapping[str, Any]) -> Iterator[Case]:
    """The cases of the operators that an exporter has."""
    for name, attrs, args in [*OWN, *[(n, a, list(x)) for n, a, x, _ in EVERY]]:
        if name in rules:
            try:
                made, inputs = function((name, attrs, args))
            except Refused:
                continue
            module = IRModule.from_expr(made)
            infer(module)
            yield Case(name, attrs, module, inputs)


def flat(value: Any) -> list[np.ndarray]:
    """The tensors of a result."""
    found: list[np.ndarray] = []
    stack = [value]
    while stack:
        top = stack.pop()
        fields = top if isinstance(top, (list, tuple)) else getattr(top, "fields", None)
        if fields is None:
            found.append(np.asarray(top.numpy() if hasattr(top, "numpy") else top))
        else:
            stack.extend(reversed(list(fields)))
    return found


def interpreted(module: IRModule, inputs: list[np.ndarray]) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flat(relay.create_executor("debug", module).evaluate()(*inputs))


def difference(case: Case, found: list[np.ndarray]) -> str:
    """How a tool's results differ from the interpreter's; "" where they agree.

    Quantised results may be 1 apart, since ONNX rounds halves to even; other integers are equal. Real numbers may differ by
    2e-5 of the larger of 1 and the value, in float16 by 2e-3.
    """
    wanted = interpreted(case.module, case.inputs)
    if [(f.shape, f.dtype) for f in found] != [(w.shape, w.dtype) for w in wanted]:
        return f"{[(f.shape, f.dtype.name) for f in found]}, not {[(w.shape, w.dtype.name) for w in wanted]}"
    for f, w in zip(found, wanted):
        a, b = np.atleast_1d(f.astype(np.float64)), np.atleast_1d(w.astype(np.float64))
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return "other places are not numbers"
        same = (a == b) | np.isnan(a)
        with np.errstate(all="ignore"):
            apart = np.where(same, 0, np.abs(a - b) / np.where(np.isfinite(b), np.maximum(np.abs(b), 1), 1))
        most = 2e-3 if w.dtype == np.float16 else 2e-5 if w.dtype.kind == "f" else 1 if case.name.startswith("qnn.") else 0
        if not np.max(apart, initial=0) <= most:
            return f"off by {np.max(apart):.3g}"
    return ""
