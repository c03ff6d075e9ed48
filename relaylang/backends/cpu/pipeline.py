"""From a module to the instructions of its entry function, stage by stage.

`GRAPH` is the list of the stages of the graph. Then kernels are lowered to loops, and their memory is planned. Writing C
and compiling it follow (`relaylang.backends.cpu`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from relaylang.backends.cpu import memory, origin
from relaylang.backends.cpu.flatten import Calls, flatten
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Kernel, Strides
from relaylang.backends.cpu.lower import attention_form, channels, fusion, fusion_barriers, halos, joins, nibbles, storage, texts
from relaylang.backends.cpu.lowering import lower_function
from relaylang.backends.cpu.program import Program, Turns, take_in, walk
from relaylang.backends.cpu.schedule import make_program
from relaylang.backends.cpu.schedule_space import PROGRAM, Schedule
from relaylang.ir import Constant, Expr, Function, IRModule, Var, structural_hash
from relaylang.passes.decompose import decompose
from relaylang.passes.fusion.fuse_ops import fuse_expr
from relaylang.passes.lower_extensions import lower_extensions
from relaylang.passes.manager import stage
from relaylang.passes.simplify.simplify_inference import simplify_expr
from relaylang.rules.decompositions.layouts import LAST
from relaylang.typing import check

#: Kernels of more nodes than this would make long C expressions for no gain.
MAX_DEPTH = 96
#: The choices of a schedule for it.
DEPTHS = (1, 4, 16, 96)


@dataclass(frozen=True)
class Setting:
    """What the stages of the graph know beside the graph: the module, its entry function, and the machine.

    `bound` names the parameters with known values. `calls` says what becomes of calls. Kernels have up to `depth` nodes in
    a chain.
    """

    mod: IRModule
    entry: str
    isa: Isa
    bound: frozenset[str] = frozenset()
    depth: int = MAX_DEPTH
    calls: Calls | None = None


@dataclass(frozen=True)
class GraphStage:
    """A step of the graph: its name, what the graph is after it, and the function. Instruments know it as `shown`."""

    name: str
    doc: str
    run: Callable[..., Expr]
    shown: str = ""


#: From the entry function to kernels, in order. The first makes the graph.
GRAPH: tuple[GraphStage, ...] = (
    GraphStage(
        "flat",
        "one data-flow graph: functions, branches and loops are written out",
        lambda graph, s: flatten(s.mod, s.entry, s.calls, s.bound),
    ),
    GraphStage("float32", "short floats are stored, and computed in float32", lambda graph, s: storage.through_float32(graph, s.isa)),
    GraphStage(
        "extensions",
        "operators of packages are what they stand for",
        lambda graph, s: lower_extensions(graph, keep=texts.with_texts()),
    ),
    GraphStage("plain", "blocked layouts are plain ones", lambda graph, s: channels.without_blocks(graph, s.mod)),
    GraphStage("simple", "what only training needs is gone", lambda graph, s: simplify_expr(graph), "SimplifyInference"),
    GraphStage("legal", "operators without loops of their own are made of others", lambda graph, s: decompose(graph), "Legalize"),
    GraphStage(
        "channels",
        "channels are last where kernels gain",
        lambda graph, s: decompose(channels.channels_last(graph, s.mod), rules=LAST),
        "ChannelsLast",
    ),
    GraphStage("relay", "the program as one data-flow graph, ready for fusion", lambda graph, s: joins.joined(graph)),
    GraphStage(
        "apart",
        "copies, borders and short integers are calls of their own",
        lambda graph, s: fusion_barriers.narrow_apart(fusion_barriers.held_apart(halos.with_halos(graph), s.bound)),
    ),
    GraphStage(
        "fused",
        "operators grouped into kernels",
        lambda graph, s: attention_form.with_attention(
            nibbles.with_nibbles(fusion_barriers.assembled_apart(_fused(graph, s)), s.isa), s.isa
        ),
        "FuseOps",
    ),
)


def _fused(graph: Expr, setting: Setting) -> Function:
    fused = fuse_expr(graph, max_depth=setting.depth, pattern_of=fusion.pattern_of)
    assert isinstance(fused, Function)
    return fused


#: The names and seconds of stages, where somebody wants them.
_TIMES: ContextVar[dict[str, float] | None] = ContextVar("times", default=None)


@contextmanager
def times() -> Iterator[dict[str, float]]:
    """The seconds that each stage takes inside the block, by name."""
    seconds: dict[str, float] = {}
    token = _TIMES.set(seconds)
    try:
        yield seconds
    finally:
        _TIMES.reset(token)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """A stage, whose time counts where somebody asks (`times`)."""
    begin = perf_counter()
    yield
    seconds = _TIMES.get()
    if seconds is not None:
        seconds[name] = seconds.get(name, 0.0) + perf_counter() - begin


def graphs(setting: Setting) -> Iterator[tuple[str, Expr]]:
    """The graph after each stage of `GRAPH`, with the stage's name."""
    check(setting.mod)
    graph: Expr = setting.mod[setting.entry]
    for one in GRAPH:
        with timed(one.name):
            graph = stage(one.shown, partial(one.run, s=setting), graph) if one.shown else one.run(graph, setting)
        yield one.name, graph


def graph_after(name: str, setting: Setting) -> Function:
    """The graph after a stage. Stages after it do not run."""
    graph = next(graph for stage_name, graph in graphs(setting) if stage_name == name)
    assert isinstance(graph, Function)
    return graph


def lower_module(
    mod: IRModule,
    entry: str,
    bound: Mapping[str, Any] | Sequence[str],
    isa: Isa,
    schedule: Schedule | None = None,
    calls: Calls | None = None,
    repeated: bool = False,
) -> Program:
    """The program of an entry function, with the parameters named in `bound` known when it is loaded.

    A `schedule` has choices that differ from the cost models'. `calls` says what becomes of calls. A `repeated` program is the
    turn of a loop.
    """
    schedule = schedule or Schedule()
    space = schedule.space(PROGRAM)
    depth = space.pick("fuse-depth", DEPTHS, MAX_DEPTH)
    fused = graph_after("fused", Setting(mod, entry, isa, frozenset(bound), depth, calls))
    space.finish()

    kernels: dict[tuple[Any, ...], Kernel] = {}

    def lower(
        function: Function, numbers: Mapping[Var, Constant], strides: Strides = (), wanted: Strides = (), done: Collection[int] = ()
    ) -> Kernel:
        """Equal functions are lowered once: loops that are written out have many."""
        held = [(n, numbers[p].dtype, numbers[p].data.tobytes()) for n, p in enumerate(function.params) if p in numbers]
        places = [tuple(None if s is None else tuple(s) for s in strides) for strides in (strides, wanted)]
        key = (structural_hash(function), *held, *places, frozenset(done))
        if key not in kernels:
            kernels[key] = lower_function(function, "KERNEL", isa, numbers, strides, wanted, done, schedule, repeated)
        return kernels[key]

    def nested(turn: Function) -> Program:
        return lower_module(IRModule.from_expr(turn), "main", bound, isa, schedule, calls, repeated=True)

    with timed("loops"):
        program = make_program(fused, set(bound), lower, origin.describe, nested)
    program.space = space
    with timed("memory"):
        memory.plan(program)
    for item in walk(program.run):
        if isinstance(item, Turns):
            take_in(program, item.region, [program.parameter(*param, item.region.constants) for param in item.region.params])
    return program
