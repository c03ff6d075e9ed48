"""The code of a region: kernels for known extents, for slices of a batch, or for sizes that they read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import Program
from relaylang.backends.vm.regions import SIZED, SLICES, STATIC
from relaylang.backends.vm.sized import sized
from relaylang.backends.vm.slices import of_slices, slices_of
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, IRModule, post_order
from relaylang.ops.record import Op
from relaylang.passes.decompose import PRODUCTS

__all__ = ["RegionCode", "Shapes", "lower_region"]

#: What says that the backend has no code for a call. Types may be refused when sizes stand for extents (R0301).
_REFUSALS = ("R0632", "R0633", "R0634", "R0635", "R0301")


@dataclass
class Shapes:
    """How extents that are found at run time follow from those of the inputs, as C.

    `d[0]`, `d[1]`, ... are the extents of all inputs, one after the other. `sizes` has a value for `size0`, `size1`, ...,
    which the kernels read. Without one of the `checks` the kernels are not for these extents. `extents` has those of the
    results, by `size0`, ...; `arena` is the kernels' memory in bytes.
    """

    sizes: tuple[str, ...]
    checks: tuple[str, ...]
    extents: tuple[str, ...]
    arena: str


@dataclass
class RegionCode:
    """The kernels of a region.

    With `slices`, they run once for each slice. `slices` has the bytes from one slice of each input, and of each result, to
    the next. It has 0 for an input that all slices share.
    """

    program: Program
    shapes: Shapes | None = None
    slices: tuple[int, ...] | None = None


def _static(module: IRModule, isa: Isa, calls: Calls) -> RegionCode:
    return RegionCode(lower_module(module, "main", [], isa, None, calls))


def _slices(module: IRModule, isa: Isa, calls: Calls) -> RegionCode | None:
    one = of_slices(module)
    if one is None:
        return None
    program = lower_module(one, "main", [], isa, None, calls)
    found = slices_of(module)
    return RegionCode(program, Shapes((found.count,), found.checks, found.extents, str(program.arena_bytes)), found.steps)


def _sized(module: IRModule, isa: Isa, calls: Calls) -> RegionCode | None:
    found = sized(module, isa, calls)
    if found is None:
        return None
    shapes = Shapes(tuple(f"d[{n}]" for n in found.sizes), found.checks, found.extents, str(found.program.arena_bytes))
    return RegionCode(found.program, shapes)


_LOWER: Mapping[str, Callable[[IRModule, Isa, Calls], RegionCode | None]] = {STATIC: _static, SLICES: _slices, SIZED: _sized}


def _has_products(module: IRModule) -> bool:
    ops = (node.op for node in post_order(module["main"].body) if isinstance(node, Call))
    return any(isinstance(op, Op) and not PRODUCTS.isdisjoint(op.traits) for op in ops)


def lower_region(module: IRModule, ways: Collection[str], isa: Isa, calls: Calls) -> RegionCode | None:
    """The kernels of a region, by the first of some ways that can; None where none can.

    Products of slices have all of the backend's schedules. Other operators have short slices, and are better done at once.
    The regions of a program share `calls`, so that the code of other compilers is made once.
    """
    order = (STATIC, SLICES, SIZED) if SLICES in ways and _has_products(module) else (STATIC, SIZED, SLICES)
    for way in order:
        if way not in ways:
            continue
        try:
            found = _LOWER[way](module, isa, calls)
        except RelayError as refused:
            if refused.diagnostics[0].code not in _REFUSALS:
                raise
            continue
        if found is not None:
            return found
    return None
