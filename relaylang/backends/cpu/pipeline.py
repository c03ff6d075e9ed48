"""From a module to the instructions of its entry function, step by step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.flatten import Calls, flatten
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.lower.apart import assembled_apart, held_apart, narrow_apart
from relaylang.backends.cpu.lower.blocks import without_blocks
from relaylang.backends.cpu.lower.channels import REST, channels_last
from relaylang.backends.cpu.lower.fusion import pattern_of
from relaylang.backends.cpu.lower.halos import with_halos
from relaylang.backends.cpu.lower.joins import joined
from relaylang.backends.cpu.lower.legalise import legalise
from relaylang.backends.cpu.lower.storage import through_float32
from relaylang.backends.cpu.lowering import Strides, lower_function
from relaylang.backends.cpu.memory import plan
from relaylang.backends.cpu.origin import describe
from relaylang.backends.cpu.schedule import Program, make_program
from relaylang.backends.cpu.schedule_space import PROGRAM, Schedule
from relaylang.ir import Constant, Expr, Function, IRModule, Var
from relaylang.ir.structural import structural_hash
from relaylang.passes.fusion.fuse_ops import fuse_expr
from relaylang.passes.lower_extensions import lower_extensions
from relaylang.passes.manager import stage
from relaylang.passes.simplify.simplify_inference import simplify_expr
from relaylang.typing import check

#: Kernels of more nodes than this would make long C expressions for no gain.
MAX_DEPTH = 96
#: The choices of a schedule for it.
DEPTHS = (1, 4, 16, 96)


def graph_of(mod: IRModule, entry: str, isa: Isa, calls: Calls | None = None) -> Expr:
    """An entry function as one data-flow graph, of operators that have lowerings for an instruction set."""
    check(mod)
    graph = without_blocks(lower_extensions(through_float32(flatten(mod, entry, calls), isa)), mod)
    graph = stage("SimplifyInference", simplify_expr, graph)
    graph = stage("ChannelsLast", lambda e: legalise(channels_last(e, mod), rewrites=REST), stage("Legalize", legalise, graph))
    return joined(graph)


def fused_of(mod: IRModule, entry: str, isa: Isa, bound: Collection[str] = (), depth: int = MAX_DEPTH,
             calls: Calls | None = None) -> Function:  # fmt: skip
    """The same, with its operators grouped into kernels of up to `depth` nodes in a chain.

    `bound` names the parameters with known values.
    """

    def fused(graph: Expr) -> Expr:
        assert isinstance(graph, Function)
        made = fuse_expr(narrow_apart(held_apart(with_halos(graph), bound)), max_depth=depth, pattern_of=pattern_of)
        assert isinstance(made, Function)
        return assembled_apart(made)

    function = stage("FuseOps", fused, graph_of(mod, entry, isa, calls))
    assert isinstance(function, Function)
    return function


def lower_module(mod: IRModule, entry: str, bound: Mapping[str, Any] | Sequence[str], isa: Isa,
                 schedule: Schedule | None = None, calls: Calls | None = None) -> Program:  # fmt: skip
    """The program of an entry function, with the parameters named in `bound` known when it is loaded.

    A `schedule` has choices that differ from the cost models'. `calls` says what becomes of calls.
    """
    schedule = schedule or Schedule()
    whole = schedule.space(PROGRAM)
    fused = fused_of(mod, entry, isa, set(bound), whole.pick("fuse-depth", DEPTHS, MAX_DEPTH), calls)
    whole.finish()

    kernels: dict[tuple[Any, ...], Kernel] = {}

    def lower(function: Function, numbers: Mapping[Var, Constant], given: Strides = (), wanted: Strides = (),
              done: Collection[int] = ()) -> Kernel:  # fmt: skip
        """Equal functions are lowered once: loops that are written out have many."""
        held = [(n, numbers[p].dtype, numbers[p].data.tobytes()) for n, p in enumerate(function.params) if p in numbers]
        places = [tuple(None if s is None else tuple(s) for s in strides) for strides in (given, wanted)]
        key = (structural_hash(function), *held, *places, frozenset(done))
        if key not in kernels:
            kernels[key] = lower_function(function, "KERNEL", isa, numbers, given, wanted, done, schedule)
        return kernels[key]

    program = make_program(fused, set(bound), lower, describe)
    program.space = whole
    plan(program)
    return program
