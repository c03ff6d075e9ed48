"""Kernels that the library does not have: those of unknown extents, and operators without compiled code.

The interpreter computes them. Where it has taken long for the same shapes, the kernel is compiled for these, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import Function, IRModule, TensorType, Var, substitute
from relaylang.ir.typed import typed
from relaylang.runtime.artifact import Artifact
from relaylang.services import service
from relaylang.typing import check

#: Seconds that the interpreter may take for some shapes, before they get compiled code of their own.
PATIENCE = 0.1
#: The most shapes of a kernel with compiled code.
_MOST_SHAPES = 64

_Key = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Fallback:
    """A kernel that the interpreter has computed: its name, its place and line in the program, how often, and why."""

    kernel: str
    place: str
    line: str
    calls: int
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.kernel} fell back {self.calls} time{'s' * (self.calls != 1)}: {self.why}\n    {self.line}"


class Host:
    """Computes one kernel, a module whose `@main` gives a tuple of tensors. Its last arguments are `constants`."""

    def __init__(self, module: IRModule, constants: Sequence[np.ndarray], target: str) -> None:
        self.module = module
        self.constants = tuple(constants)
        self.target = target
        self.compiled: dict[_Key, Artifact | None] = {}
        self._evaluator = Evaluator(module)
        self._taken: dict[_Key, float] = {}
        #: how often it was called, by the reason
        self.reasons = Counter[str]()

    def call(self, inputs: Sequence[np.ndarray], why: str = "", allowed: bool = True) -> tuple[Any, ...]:
        """The results for some inputs, and `why` there is no code for them.

        Raises `RelayError` as the interpreter does, and R0646 where it is not `allowed` to compute.
        """
        if not allowed:
            raise RelayError(error("R0646", f"there is no compiled code for this: {why}"))
        self.reasons[why] += 1
        inputs = (*inputs, *self.constants)
        key = tuple([x.shape for x in inputs])
        artifact = self.compiled.get(key)
        if artifact is not None:
            return tuple(artifact.run(*inputs))
        begin = perf_counter()
        results: tuple[Any, ...] = self._evaluator.call("main", inputs)
        if key not in self.compiled:
            taken = self._taken[key] = self._taken.get(key, 0.0) + perf_counter() - begin
            if taken > PATIENCE and len(self.compiled) < _MOST_SHAPES:
                self.compiled[key] = self.specialised(key)
        return results

    def specialised(self, shapes: Sequence[tuple[int, ...]]) -> Artifact | None:
        """The kernel compiled for inputs of some shapes; None where it cannot be."""
        function = self.module["main"]
        params = []
        for param, shape in zip(function.params, shapes):
            ty = param.checked_type or param.type_annotation
            assert isinstance(ty, TensorType)
            fixed = TensorType(shape, ty.dtype)
            params.append(typed(Var(param.name_hint, fixed, param.span), fixed))
        body = substitute(function.body, dict(zip(function.params, params)))
        kernel = IRModule.from_expr(Function(params, body))
        try:
            check(kernel, fresh=True)
            artifact: Artifact = service("compile")(kernel, self.target)
        except RelayError:  # no compiler, an operator without code, a result whose shape its data give
            return None
        return artifact
