"""The CPU backend. It writes a module as C and compiles that to a shared library, which numpy arrays call.

    artifact = compile_for(mod, Target("c"), [], {"weight": w}, "main")
    artifact.run(data=x)
    print(emit_c(mod, {"weight": w}))

The module becomes one data-flow graph (`flatten`), simplified for inference and fused into kernels (`pipeline`).
Each kernel is lowered to loops (`kernel`, `lower/`, `loops/`). The calls get an order and a plan of their memory (`schedule`).
One C file is written (`emit`) and compiled (`cc`). Values that depend on bound parameters alone are computed once, when
the artifact is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.costs import profiled, step_of
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.flatten import Calls, Recursion
from relaylang.backends.cpu.graph import graph_json
from relaylang.backends.cpu.isa import BY_NAME, SCALAR, Isa
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.linking import objects, outsiders, parts, records, unlinked
from relaylang.backends.cpu.listing import for_device, listing, spaces
from relaylang.backends.cpu.memory import most_in_use, spread
from relaylang.backends.cpu.pipeline import GRAPH, Setting, graph_after, lower_module, timed
from relaylang.backends.cpu.program import Program, Run, every
from relaylang.backends.cpu.schedule_space import Schedule
from relaylang.backends.cpu.tuning_log import report, schedule_of
from relaylang.backends.target import CompileRest, Target, threads_of
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, IRModule
from relaylang.ir.bulk import gc_paused
from relaylang.kernels.cuda import CUDA
from relaylang.kernels.device import Language
from relaylang.kernels.opencl import OPENCL
from relaylang.runtime.artifact import Artifact
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.external import callables
from relaylang.runtime.failures import place_of
from relaylang.runtime.features import why_not
from relaylang.runtime.manifest import Manifest
from relaylang.runtime.packed import ForeignArtifact, Packed


def _manifest(program: Program, entry: str, isa: Isa, options: Mapping[str, Any], machine: str = "") -> Manifest:
    threads, profile = threads_of(options), bool(options.get("profile"))

    def spec(ty: Any) -> tuple[tuple[int, ...], str]:
        return tuple(int(d) for d in ty.shape), ty.dtype

    return Manifest(
        entry=entry,
        inputs=tuple((name, spec(ty), tuple(path)) for name, ty, path in program.inputs),
        params=tuple((name, spec(ty)) for name, ty in program.params),
        outputs=tuple(spec(s) for s in program.outputs),
        structure=program.structure,
        arena=program.arena_bytes,
        fixed=program.fixed_bytes,
        live=program.live_bytes,
        isa=isa.name,
        threads=threads,
        machine=machine,
        features=isa.features,
        aligned=_aligned(program),
        steps=tuple(step_of(item) for item in profiled(program)) if profile else (),
        externals=records(outsiders([program])),
        fails=program.fails,
        in_place=tuple(program.in_place),
        sites=tuple(place_of(*site) for site in program.sites),
    )


def _aligned(program: Program) -> tuple[int, ...]:
    """The parameters that should begin at a line of the cache, by their numbers."""
    aligned: set[int] = set()
    for item in every(program.run):
        if isinstance(item, Run):
            views = (v for p, v in zip(item.kernel.params, item.inputs) if p.name in item.kernel.aligned)
            aligned.update(v.slot.number for v in views if v.slot.kind == "param")
    return tuple(sorted(aligned))


def _emitter(program: Program, manifest: Manifest, isa: Isa) -> Emitter:
    numbers = {id(item): n for n, item in enumerate(profiled(program))} if manifest.steps else {}
    return Emitter(isa, manifest.threads != 1, manifest.text(), numbers)


def emit_c(
    mod: IRModule | Expr,
    params: Mapping[str, np.ndarray] | Sequence[str] = (),
    entry: str = "main",
    options: Mapping[str, Any] | None = None,
    isa: str | None = None,
) -> str:
    """The C text of a module: a function for each stage of a kernel, and the functions that call them.

    `params` are the bound parameters (values or names). `isa` is "avx512", "avx2", "neon" or "generic". The default is
    the C compiler's own target. Raises `RelayError`.
    """
    return emit(mod, "c", params, entry, options, isa)


#: What `emit` writes: each step from the program to the machine.
STEPS: Mapping[str, str] = {
    **{one.name: one.doc for one in GRAPH},
    "loops": "the kernels in the loop language",
    "space": "the knobs of their schedules and the values, for -schedule (JSON)",
    "opencl": "the kernels as OpenCL C, to read: nothing runs them yet",
    "cuda": "the kernels as CUDA C++, likewise",
    "c": "the C text",
    "asm": "the C compiler's assembly",
}


#: The steps of kernels for devices.
DEVICES: Mapping[str, Language] = {"opencl": OPENCL, "cuda": CUDA}


def emit(
    mod: IRModule | Expr,
    step: str,
    params: Mapping[str, np.ndarray] | Sequence[str] = (),
    entry: str = "main",
    options: Mapping[str, Any] | None = None,
    isa: str | None = None,
) -> str:
    """The text of a module at one of the `STEPS`; the arguments are those of `emit_c`. Raises `RelayError`."""
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    if step in DEVICES:
        return for_device(lower_module(mod, entry, params, SCALAR), DEVICES[step], _title(entry))
    compiler = Compiler(options or {}) if isa is None or step == "asm" else None
    machine = BY_NAME[isa] if isa else compiler.isa  # type: ignore[union-attr]
    if any(one.name == step for one in GRAPH):
        graph = graph_after(step, Setting(mod, entry, machine, frozenset(params)))
        return graph.astext(show_meta_data=False).rstrip("\n") + "\n"
    schedule = schedule_of(options or {})
    program = _program(mod, entry, params, machine, schedule, options or {})
    report(schedule, kernels_of(program))
    if step == "space":
        return spaces(program)
    manifest = _manifest(program, entry, machine, options or {}, "" if isa else compiler.machine)  # type: ignore[union-attr]
    emitter = _emitter(program, manifest, machine)
    if step == "loops":
        emitter.code.many = len(kernels_of(program))  # each kernel shows its own extents
    text = emitter.file(program, _title(entry))
    if step == "loops":
        return listing(program, emitter, _title(entry))
    return text if compiler is None or step == "c" else compiler.assembly(text)


def kernels_of(program: Program) -> list[Kernel]:
    """The kernels that a run of a program has, each once."""
    return list({id(item.kernel): item.kernel for item in every(program.run) if isinstance(item, Run)}.values())


def _title(entry: str) -> str:
    # A name may hold anything, a line's end or a backslash before it among them.
    return f"@{entry if entry.isidentifier() else json.dumps(entry)}, made by relaylang"


def _program(
    mod: IRModule,
    entry: str,
    params: Mapping[str, np.ndarray] | Sequence[str],
    isa: Isa,
    schedule: Schedule,
    options: Mapping[str, Any],
) -> Program:
    """The program of an entry function. Its loops stay loops where they can, and where every value has no place of its own.

    Raises `RelayError` (R0636 for a recursion that is no loop, and that constants do not end).
    """
    values = params if isinstance(params, Mapping) else {}
    if len(values) < len(params) or any(options.get(key) for key in ("profile", "keep-values")):
        return lower_module(mod, entry, params, isa, schedule)
    try:
        return lower_module(mod, entry, params, isa, schedule, Calls(unroll=False))
    except RelayError as refused:
        if refused.diagnostics[0].code != "R0632":
            raise
    from relaylang.backends.aot.linked import LOOPLESS, looped  # few programs have loops

    try:
        return looped(mod, entry, values, isa, schedule)
    except RelayError as refused:
        if refused.diagnostics[0].code not in LOOPLESS:
            raise
        try:
            return lower_module(mod, entry, params, isa, schedule)
        except Recursion:
            raise refused from None


def compile_for(
    mod: IRModule,
    target: Target,
    fallback: Sequence[Target],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_rest: CompileRest | None = None,
) -> Artifact:
    """Compile a module's entry function for the CPU; see `relaylang.backends`. Raises `RelayError`."""
    compiler = Compiler(target.options)
    schedule = schedule_of(target.options)
    with gc_paused():
        program = _program(mod, entry, params, compiler.isa, schedule, target.options)
    report(schedule, kernels_of(program))
    return build(program, compiler, target.options, params, entry)


def build(program: Program, compiler: Compiler, options: Mapping[str, Any], params: Mapping[str, np.ndarray], entry: str) -> Artifact:
    """The artifact of a program whose memory is planned, with values for its parameters. Raises `RelayError`."""
    keeps = bool(options.get("keep-values"))
    with gc_paused():
        if keeps:
            spread(program)
        manifest = _manifest(program, entry, compiler.isa, options, compiler.machine)
        emitter = _emitter(program, manifest, compiler.isa)
        with timed("c"):
            text = emitter.file(program, _title(entry))
            units = emitter.units(program)
    external = outsiders([program])
    with timed("library"):
        library = compiler.compile(units, text, options.get("keep-c"), objects(external, compiler))
    graph = graph_json(program, places=keeps)
    values: dict[str, np.ndarray] = {}
    for name, _ in program.params:
        values[name] = program.constants[name] if name in program.constants else params[name]
    if why_not(manifest.machine, manifest.features) is not None:
        return ForeignArtifact(Packed(library, manifest, values, text, graph, parts(external)))
    calls = callables(manifest.externals, parts(external), "the program", [op.code.call for op, _ in external])
    try:
        return CpuArtifact(library, manifest, values, text, graph=graph, externals=parts(external), calls=calls)
    except RelayError as e:
        first = e.diagnostics[0]
        if first.code == "R0408":
            span, notes = most_in_use([program])
            raise RelayError(error("R0408", first.title, span, notes=notes)) from None
        raise unlinked(e, external) from None


__all__ = ["STEPS", "Kernel", "build", "compile_for", "emit", "emit_c", "kernels_of", "lower_module"]
