"""Kernels that the library does not have: those of unknown extents, and operators without compiled code.

The interpreter computes them. Where it has taken long for the same shapes, the kernel is compiled for these, once. So is a
kernel of the library, whose code for any extents goes on meanwhile.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import Function, IRModule, TensorType, Var, substitute
from relaylang.ir.typed import typed, typed_constant
from relaylang.runtime.artifact import Artifact
from relaylang.runtime.cpu import CpuArtifact
from relaylang.services import service
from relaylang.typing import check

#: Seconds that the interpreter may take for some shapes, before they get compiled code of their own.
PATIENCE = 0.1
#: The most shapes of a kernel with compiled code.
_MOST_SHAPES = 64
#: A kernel of the library looks at its inputs' shapes when it has run so long (nanoseconds). Shapes that it met so often
#: get code of their own, some of them.
STRETCH, OFTEN, MOST_SPECIAL = 250_000_000, 8, 4
#: One kernel at a time is compiled beside a run.
_compiling = threading.Lock()

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


class Special(ctypes.Structure):
    """Code for some extents of a kernel's inputs, as the machine reads it."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("extents", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        *[(name, ctypes.c_void_p) for name in ("run", "params", "fixed")],
        ("arena", ctypes.c_int64),
    ]


class Heat(ctypes.Structure):
    """The nanoseconds until a kernel asks for code of the extents that it meets, and the first `Special`."""

    _fields_ = [("left", ctypes.c_int64), ("first", ctypes.c_void_p)]


class Host:
    """Computes one kernel, a module whose `@main` gives a tuple of tensors. Its last arguments are `constants`."""

    def __init__(self, module: IRModule, constants: Sequence[np.ndarray], target: str) -> None:
        self.module = module
        self.constants = tuple(constants)
        self.target = target
        self.compiled: dict[_Key, Artifact | None] = {}
        self._evaluator = Evaluator(module)
        self._taken: dict[_Key, float] = {}
        self._met = Counter[_Key]()
        #: code that the machine runs, and what holds it
        self.special: dict[_Key, tuple[Special, np.ndarray, CpuArtifact]] = {}
        #: what compiles the last of it
        self.compiling: threading.Thread | None = None
        #: how often it was called, by the reason
        self.reasons = Counter[str]()

    def call(self, inputs: Sequence[np.ndarray], why: str = "", allowed: bool = True) -> tuple[Any, ...]:
        """The results for some inputs, and `why` there is no code for them.

        Raises `RelayError` as the interpreter does, and R0646 where it is not `allowed` to compute.
        """
        if not allowed:
            raise RelayError(error("R0646", f"there is no compiled code for this: {why}"))
        self.reasons[why] += 1
        key = tuple([x.shape for x in inputs])
        artifact = self.compiled.get(key)
        if artifact is not None:
            return tuple(artifact.run(*inputs))
        begin = perf_counter()
        results: tuple[Any, ...] = self._evaluator.call("main", (*inputs, *self.constants))
        if key not in self.compiled:
            taken = self._taken[key] = self._taken.get(key, 0.0) + perf_counter() - begin
            if taken > PATIENCE and len(self.compiled) < _MOST_SHAPES:
                self.compiled[key] = self.specialised(key)
        return results

    def stretch(self, heat: Heat, shapes: _Key) -> None:
        """The kernel of the library has run for a stretch, now for these shapes. Those that it meets often get code."""
        heat.left = STRETCH
        if len(self._met) > 1000:
            self._met.clear()
        self._met[shapes] += 1
        if self._met[shapes] == OFTEN:
            self.compiling = threading.Thread(target=self._add_special, args=(heat, shapes), daemon=True)
            self.compiling.start()

    def _add_special(self, heat: Heat, shapes: _Key) -> None:
        with _compiling:
            artifact = self.specialised(shapes) if len(self.special) < MOST_SPECIAL else None
            if not isinstance(artifact, CpuArtifact) or (code := artifact.code()) is None:
                return
            extents = np.array([d for shape in shapes for d in shape], np.int64)
            special = Special(heat.first, extents.ctypes.data, extents.size, *code)
            self.special[shapes] = special, extents, artifact
            heat.first = ctypes.addressof(special)

    def specialised(self, shapes: Sequence[tuple[int, ...]]) -> Artifact | None:
        """The kernel compiled for inputs of some shapes; None where it cannot be."""
        function = self.module["main"]
        params: list[Var] = []
        for param, shape in zip(function.params, shapes):
            ty = param.checked_type or param.type_annotation
            assert isinstance(ty, TensorType)
            fixed = TensorType(shape, ty.dtype)
            params.append(typed(Var(param.name_hint, fixed, param.span), fixed))
        weights = [typed_constant(value) for value in self.constants]
        body = substitute(function.body, dict(zip(function.params, [*params, *weights])))
        kernel = IRModule.from_expr(Function(params, body))
        try:
            check(kernel, fresh=True)
            artifact: Artifact = service("compile")(kernel, self.target)
        except RelayError:  # no compiler, an operator without code, a result whose shape its data give
            return None
        return artifact
