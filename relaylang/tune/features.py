"""Features of a kernel for a cost model, counted on its loops.

Each counts what a run does: operations, loads, stores, loops, bytes. They are logarithms, so that a model sees ratios.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from relaylang.backends.cpu.kernel import Kernel
from relaylang.kernels import ir, visit
from relaylang.kernels.dtypes import SIZES, vector_of
from relaylang.kernels.sizes import Size

#: The features by name, in the order of `features_of`.
NAMES = (
    "stages",
    "units",
    "unit_work",
    "packed_bytes",
    "work_bytes",
    "functions",
    "loops",
    "depth",
    "statements",
    "branches",
    "calls",
    "scalar_operations",
    "vector_operations",
    "products",
    "costly",
    "casts",
    "scalar_loads",
    "vector_loads",
    "loaded_bytes",
    "scalar_stores",
    "vector_stores",
    "stored_bytes",
    "unit_stride",
    "far_stride",
    "registers",
    "stack_bytes",
    "inner_trips",
    "inner_statements",
    "touched_bytes",
    "intensity",
)
#: Operations that take many times as long as a sum.
_COSTLY = frozenset({"div", "exp", "log", "sqrt", "tanh", "erf", "pow", "sigmoid", "quotient", "remainder", "mod"})


class _Count:
    """Sums over the loops of a kernel."""

    def __init__(self, functions: Mapping[str, ir.Function]) -> None:
        self.functions = functions
        self.sums: dict[str, float] = dict.fromkeys(NAMES, 0.0)
        self.inner: list[tuple[float, float]] = []

    def add(self, name: str, value: float) -> None:
        self.sums[name] += value

    def body(self, body: Sequence[ir.Stmt], times: float) -> None:
        """Count statements that run so many times, with the functions that they call."""
        stack: list[tuple[ir.Stmt, float, int, str]] = [(stmt, times, 0, "") for stmt in body]
        while stack:
            stmt, runs, depth, var = stack.pop()
            self.add("statements", runs)
            for value in visit.exprs(stmt):
                self.value(value, runs, var)
            if isinstance(stmt, ir.Loop):
                trips = float(stmt.trips or 8)
                self.add("loops", runs)
                self.sums["depth"] = max(self.sums["depth"], depth + 1)
                if not any(isinstance(s, ir.Loop) for s in visit.statements(stmt.body)):
                    self.inner.append((runs * trips, trips))
                    self.add("inner_statements", runs * trips * len(stmt.body))
                stack += [(s, runs * trips, depth + 1, stmt.var) for s in stmt.body]
                continue
            if isinstance(stmt, (ir.Store, ir.Reduce)):
                dtype, lanes = vector_of(stmt.value.type)
                self.add("vector_stores" if lanes > 1 else "scalar_stores", runs)
                self.add("stored_bytes", runs * lanes * SIZES.get(dtype, 4))
                self.stride(stmt.index, var, runs)
            elif isinstance(stmt, ir.Local):
                kind, lanes = vector_of(stmt.type)
                size = stmt.size * lanes * SIZES.get(kind, 4)
                self.sums["registers" if stmt.space == ir.REGISTERS else "stack_bytes"] += float(size)
            elif isinstance(stmt, (ir.If, ir.While)):
                self.add("branches", runs)
            elif isinstance(stmt, ir.Call):
                self.add("calls", runs)
                called = self.functions.get(stmt.name)
                if called is not None:
                    stack += [(s, runs, depth + 1, "") for s in called.body]
            for inner in visit.bodies(stmt):
                stack += [(s, runs, depth, var) for s in inner]

    def value(self, value: ir.Expr, runs: float, var: str) -> None:
        for part in visit.expressions(value):
            if part.type == ir.INDEX:
                continue
            dtype, lanes = vector_of(part.type)
            if isinstance(part, ir.Load):
                self.add("vector_loads" if lanes > 1 else "scalar_loads", runs)
                self.add("loaded_bytes", runs * lanes * SIZES.get(dtype, 4))
                self.stride(part.index, var, runs)
            elif isinstance(part, (ir.Op, ir.Intrinsic)):
                self.add("vector_operations" if lanes > 1 else "scalar_operations", runs)
                if part.name in ("fma", "mul", "dot"):
                    self.add("products", runs * lanes)
                elif part.name in _COSTLY:
                    self.add("costly", runs * lanes)
            elif isinstance(part, ir.Cast):
                self.add("casts", runs * lanes)

    def stride(self, index: ir.Expr, var: str, runs: float) -> None:
        """How far apart an access's elements are from one trip of the innermost loop to the next."""
        if isinstance(index, ir.Linear):
            step = next((factor for atom, factor in index.terms if isinstance(atom, ir.Var) and atom.name == var), 0)
        else:
            step = 1 if isinstance(index, ir.Var) and index.name == var else 0
        if isinstance(step, Size) or abs(step) > 1:
            self.add("far_stride", runs)
        elif step:
            self.add("unit_stride", runs)


def features_of(kernel: Kernel) -> tuple[float, ...]:
    """The features of a kernel, as many as `NAMES`: the logarithm of one more than each count."""
    count = _Count({f.name: f for f in kernel.functions})
    for stage in kernel.stages:
        count.body(stage.body, 1.0)
    sums = count.sums
    units = sum(float(int(stage.units)) for stage in kernel.stages)
    sums["stages"], sums["units"] = len(kernel.stages), units
    sums["unit_work"] = sums["statements"] / max(units, 1)
    sums["packed_bytes"] = float(sum(p.target.size * SIZES[p.target.dtype] for p in kernel.packs))
    sums["work_bytes"] = float(sum(b.size * SIZES[b.dtype] for b in kernel.work))
    sums["functions"] = len(kernel.functions)
    runs = sum(weight for weight, _ in count.inner)
    sums["inner_trips"] = sum(weight * trips for weight, trips in count.inner) / runs if runs else 0.0
    sums["touched_bytes"] = float(sum(b.size * SIZES[b.dtype] for b in (*kernel.params, *kernel.outs)))
    sums["intensity"] = sums["products"] / max(sums["loaded_bytes"] + sums["stored_bytes"], 1.0)
    return tuple(round(math.log1p(max(float(sums[name]), 0.0)), 4) for name in NAMES)


__all__ = ["NAMES", "features_of"]
