"""The code of a region: kernels for known extents, or for each slice of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.schedule import Program
from relaylang.backends.vm.regions import SLICES, STATIC
from relaylang.backends.vm.slices import of_slices, slices_of
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule

__all__ = ["RegionCode", "Shapes", "lower_region"]

#: What says that the backend has no code for a call.
_REFUSALS = ("R0632", "R0633", "R0634", "R0635")


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


#: The ways to compile a region, in the order in which they are tried.
_LOWER: Mapping[str, Callable[[IRModule, Isa, Calls], RegionCode | None]] = {STATIC: _static, SLICES: _slices}


def lower_region(module: IRModule, ways: Collection[str], isa: Isa, calls: Calls) -> RegionCode | None:
    """The kernels of a region, by the first of some ways that can; None where none can.

    The regions of a program share `calls`, so that the code of other compilers is made once.
    """
    for way, lower in _LOWER.items():
        if way not in ways:
            continue
        try:
            found = lower(module, isa, calls)
        except RelayError as refused:
            if refused.diagnostics[0].code not in _REFUSALS:
                raise
            continue
        if found is not None:
            return found
    return None
