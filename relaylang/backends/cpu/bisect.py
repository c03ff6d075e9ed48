"""Where a compiled program's results leave the interpreter's: the same inputs after each stage.

The graph of each stage of `pipeline.GRAPH` is a Relay function that the interpreter runs. Its kernels run as C that the
compiler does not optimise (`loops`), and as it does (`library`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.backends.cpu import compile_for
from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.pipeline import Setting, graphs
from relaylang.backends.target import Target
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule

#: The most that a stage may change results of floats by rounding, relative to the greatest of a tensor. Integers of
#: quantised programs may be off by one.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Difference:
    """How far results after a stage are from the interpreter's. Floats are relative to the greatest, integers in ones."""

    stage: str
    floats: float
    integers: float

    @property
    def is_fault(self) -> bool:
        return self.floats > TOLERANCE or self.integers > 1


def bisect(
    mod: IRModule, target: Target, params: Mapping[str, np.ndarray], entry: str, inputs: Mapping[str, np.ndarray]
) -> Iterator[Difference]:
    """The differences after each stage, in order. `params` are bound, `inputs` the values of the other parameters.

    Raises `RelayError` where the program is not compiled, or not run.
    """
    values = {**params, **inputs}
    wanted = _leaves(evaluate(mod, entry=entry, values=values))

    def against(stage: str, result: Any) -> Difference:
        pairs = list(zip(_leaves(result), wanted))
        floats = [_distance(a, b) / max(_greatest(b), 1e-30) for a, b in pairs if b.dtype.kind not in "iub"]
        integers = [_distance(a, b) for a, b in pairs if b.dtype.kind in "iub"]
        return Difference(stage, max(floats, default=0.0), max(integers, default=0.0))

    for name, graph in graphs(Setting(mod, entry, Compiler(target.options).isa, frozenset(params))):
        yield against(name, evaluate(graph, values=values))
    for name, flags in (("loops", "-O0"), ("library", "")):
        options = {**target.options, "cflags": f"{target.options.get('cflags', '')} {flags}".strip()}
        artifact = compile_for(mod, Target(target.name, options), [], params, entry)
        yield against(name, artifact.run(**inputs))


def _leaves(value: Any) -> list[np.ndarray]:
    """The tensors of a result, from left to right."""
    out: list[np.ndarray] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (tuple, list)):
            stack.extend(reversed(item))
        else:
            out.append(np.asarray(item))
    return out


def _distance(one: np.ndarray, two: np.ndarray) -> float:
    if one.shape != two.shape:
        return float("inf")
    a, b = one.astype(np.float64), two.astype(np.float64)
    apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def _greatest(value: np.ndarray) -> float:
    finite = value.astype(np.float64)
    return float(np.abs(finite[np.isfinite(finite)]).max(initial=0.0))
