"""The code of other compilers that programs call: what a file says of it, keeps of it, and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.costs import place_of
from relaylang.backends.cpu.external import ExternalOp, record_of
from relaylang.backends.cpu.program import Program
from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import Span
from relaylang.runtime.external import Parts, kept, part_name
from relaylang.runtime.manifest import External

#: External code, each with its place in the Relay text.
Outsiders = Sequence[tuple[ExternalOp, Span | None]]


def outsiders(programs: Iterable[Program]) -> Outsiders:
    """The external code of programs, each once, in the order of the library's table of calls."""
    externals = {id(op): (op, program.places[id(op)]) for program in programs for op in program.externals}
    return list(externals.values())


def records(found: Outsiders) -> tuple[External, ...]:
    """What a manifest says of it."""
    return tuple(record_of(op, *place_of(span)) for op, span in found)


def parts(found: Outsiders) -> Parts:
    """What a file keeps of it."""
    return {part_name(n, op.code.kind): partial(kept, op.region, op.code) for n, (op, _) in enumerate(found)}


def objects(found: Outsiders, compiler: Compiler) -> dict[str, bytes]:
    """Its object code by file name. Raises `RelayError` (R0605) where its C does not compile."""
    out = {}
    for number, (op, span) in enumerate(found):
        if op.code.kind == "c":
            try:
                out[f"external{number}.o"] = compiler.object(op.code.source)
            except RelayError as e:
                title = f"the C compiler refuses the code of {op.region.compiler} for {op.region.symbol}"
                raise RelayError(error("R0605", title, span, notes=e.diagnostics[0].notes)) from None
        elif op.code.kind == "object":
            out[f"external{number}.o"] = op.code.object
    return out


def unlinked(problem: RelayError, found: Outsiders) -> RelayError:
    """The error of a library that does not load, where external code may be the reason (R0605)."""
    if not found:
        return problem
    names = ", ".join(f"{op.region.symbol} ({op.region.compiler})" for op, _ in found[:4])
    notes = [f"the code generators' symbols: {names}", "a region's code defines its symbol, and no other region's"]
    return RelayError(error("R0605", problem.diagnostics[0].title, notes=notes))
