"""The code of a region: kernels for known extents, for slices of a batch, or for sizes that they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.lower import gap
from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import Program, Site
from relaylang.backends.vm.regions import BROADCASTING, SIZED, SLICES, STATIC
from relaylang.backends.vm.sized import Empty, Sized, broadcasting, sized
from relaylang.backends.vm.slices import of_slices, slices_of
from relaylang.diagnostics import RelayError
from relaylang.diagnostics.source import Span
from relaylang.ir import Call, IRModule, post_order
from relaylang.ops.record import Op
from relaylang.passes.decompose import PRODUCTS
from relaylang.runtime.vm.program import Spec

__all__ = ["NoCode", "RegionCode", "Shapes", "lower_region"]

#: An element of an input, as `sized` writes it.
_ELEMENT = re.compile(r"\(int64_t\)\(\(const \w+\*\)x\[(\d+)\]\)\[(\d+)\]")
#: What says that the backend has no code for a call. Types may be refused when sizes stand for extents (R0301).
_REFUSALS = ("R0632", "R0633", "R0634", "R0635", "R0301")


@dataclass
class Shapes:
    """How extents that are found at run time follow from those of the inputs, as C.

    `d[0]`, `d[1]`, ... are the extents of all inputs, one after the other, and `x[0]`, ... their elements. `sizes` has a
    value for `size0`, `size1`, ..., which the kernels read. Without one of the `checks` the kernels are not for these
    extents. `extents` has those of the results, by `size0`, ...; `arena` is the kernels' memory in bytes. Where all of `empty`
    holds in place of the checks, the results have no elements, and the kernels need not run.
    """

    sizes: tuple[str, ...]
    checks: tuple[str, ...]
    extents: tuple[str, ...]
    arena: str
    empty: Empty | None = None

    def conditions(self, takes: Sequence[Spec]) -> tuple[str, ...]:
        """The checks in terms of the inputs `x0`, `x1`, ..., which have the types `takes`."""
        axes = [f"x{n}.shape[{axis}]" for n, (_, shape) in enumerate(takes) for axis in range(len(shape))]
        names = [re.sub(r"d\[(\d+)\]", lambda m: axes[int(m[1])], _ELEMENT.sub(r"x\1.element[\2]", text)) for text in self.sizes]
        return tuple(re.sub(r"size(\d+)", lambda m: names[int(m[1])], check) for check in self.checks)


@dataclass
class RegionCode:
    """The kernels of a region.

    With `slices`, they run once for each slice. `slices` has the bytes from one slice of each input, and of each result, to
    the next. It has 0 for an input that all slices share. `module` is the region, and `prepare` the code that prepares weights.
    """

    program: Program
    shapes: Shapes | None = None
    slices: tuple[int, ...] | None = None
    module: IRModule | None = None
    prepare: str = ""

    def prepares_like(self, other: RegionCode) -> bool:
        """Whether two kernels read weights of the same memory, prepared in the same way."""
        own, theirs = ([id(code.program.constants[name]) for name, _ in code.program.params] for code in (self, other))
        return (self.prepare, self.program.fixed_bytes, own) == (other.prepare, other.program.fixed_bytes, theirs)

    def sites(self, module: IRModule) -> list[Site]:
        """The ways in which the kernels fail, with the places of the calls in an equal region."""
        if module is self.module or self.module is None:
            return self.program.sites
        own, other = (calls_of(region["main"]) for region in (self.module, module))
        spans: dict[Span | None, Span | None] = {mine.span: theirs.span for mine, theirs in zip(own, other) if mine.span is not None}
        sites = [(operator, kind, spans.get(span, span)) for operator, kind, span in self.program.sites]
        return [((span and span.operator) or operator, kind, span) for operator, kind, span in sites]


@dataclass(frozen=True)
class NoCode:
    """Why a region has no kernels. The interpreter computes it."""

    why: str


def _static(module: IRModule, isa: Isa, calls: Calls) -> RegionCode:
    return RegionCode(lower_module(module, "main", [], isa, None, calls))


def _slices(module: IRModule, isa: Isa, calls: Calls) -> RegionCode | None:
    one = of_slices(module)
    if one is None:
        return None
    program = lower_module(one, "main", [], isa, None, calls)
    sliced = slices_of(module)
    return RegionCode(program, Shapes((sliced.count,), sliced.checks, sliced.extents, str(program.arena_bytes)), sliced.steps)


def _of_sizes(code: Sized | None) -> RegionCode | None:
    if code is None:
        return None
    return RegionCode(code.program, Shapes(code.sizes, code.checks, code.extents, str(code.program.arena_bytes), code.empty))


_LOWER: Mapping[str, Callable[[IRModule, Isa, Calls], RegionCode | None]] = {
    STATIC: _static,
    SLICES: _slices,
    SIZED: lambda module, isa, calls: _of_sizes(sized(module, isa, calls)),
    BROADCASTING: lambda module, isa, calls: _of_sizes(broadcasting(module, isa, calls)),
}


def _has_products(module: IRModule) -> bool:
    ops = (node.op for node in post_order(module["main"].body) if isinstance(node, Call))
    return any(isinstance(op, Op) and not PRODUCTS.isdisjoint(op.traits) for op in ops)


def _gap(module: IRModule) -> str:
    """Why no way is open to a region: the first operator or element type without code."""
    nodes = [node for node in post_order(module["main"].body) if isinstance(node, Call) and isinstance(node.op, Op)]
    for node in nodes:
        why = gap(node.op.name)  # type: ignore[attr-defined]
        if why is not None:
            return f"{node.op.name}: {why}"  # type: ignore[attr-defined]
    return "it has elements of a type that C has not"


def _prepare_text(program: Program, isa: Isa) -> str:
    emitter = Emitter(isa, threads=False)
    emitter.begin(program)
    end = emitter.sequence("prepare", program.prepare, once=True)
    return "\n".join([*(piece.text for piece in emitter.code.pieces.values()), end])


def lower_region(module: IRModule, ways: Collection[str], isa: Isa, calls: Calls) -> RegionCode | NoCode:
    """The kernels of a region, by the first of some ways that can.

    Products of slices have all of the backend's schedules. Other operators have short slices, and are better done at once.
    The regions of a program share `calls`, so that the code of other compilers is made once.
    """
    why = "" if ways else _gap(module)
    order = (STATIC, SLICES, SIZED) if SLICES in ways and _has_products(module) else (STATIC, SIZED, SLICES)
    for way in (*order, BROADCASTING):
        if way not in ways:
            continue
        try:
            region_code = _LOWER[way](module, isa, calls)
        except RelayError as refused:
            if refused.diagnostics[0].code not in _REFUSALS:
                raise
            why = refused.diagnostics[0].title
            continue
        if region_code is not None:
            region_code.module = module
            region_code.prepare = "" if way == STATIC else _prepare_text(region_code.program, isa)
            return region_code
        why = why or "its code is not the same for all extents"
    return NoCode(why)
