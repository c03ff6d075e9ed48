"""The CPU backend. It writes a module as C and compiles that to a shared library, which numpy arrays call.

    artifact = compile_for(mod, Target("c"), [], {"weight": w}, "main")
    artifact.run(data=x)
    print(emit_c(mod, {"weight": w}))

The module becomes one data-flow graph (`flatten`), simplified for inference and fused into kernels (`passes.fuse_ops`).
Each kernel is lowered to loops (`kernel`, `lower/`). The calls get an order and a plan of their memory (`schedule`).
One C file is written (`emit`) and compiled (`cc`). Values that depend on bound parameters alone are computed once, when
the artifact is loaded.
"""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.flatten import flatten
from relaylang.backends.cpu.isa import BY_NAME, Isa
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.lower.blocks import without_blocks
from relaylang.backends.cpu.lower.fusion import pattern_of
from relaylang.backends.cpu.lower.legalise import legalise
from relaylang.backends.cpu.lowering import lower_function
from relaylang.backends.cpu.schedule import Program, make_program
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, Function, IRModule, post_order
from relaylang.ops.record import Op
from relaylang.passes.fusion.fuse_ops import fuse_expr
from relaylang.passes.lower_extensions import lower_extensions
from relaylang.passes.manager import stage
from relaylang.passes.simplify.simplify_inference import simplify_expr
from relaylang.runtime.artifact import Artifact
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.manifest import Manifest
from relaylang.typing import check

#: Kernels of more nodes than this would make long C expressions for no gain.
MAX_DEPTH = 96
def describe(function: Function) -> str:
    """A kernel in a line: its operators in order."""
    names = [n.op.name for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Op)]
    shown = " > ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    return f"{shown}: {function.body.checked_type!r}"


def lower_module(mod: IRModule, entry: str, bound: Mapping[str, Any] | Sequence[str], isa: Isa) -> Program:
    """The program of an entry function, with the parameters named in `bound` known when it is loaded."""
    check(mod)
    graph = without_blocks(lower_extensions(flatten(mod, entry)), mod)
    graph = stage("Legalize", legalise, stage("SimplifyInference", simplify_expr, graph))
    fused = stage("FuseOps", lambda e: fuse_expr(e, max_depth=MAX_DEPTH, pattern_of=pattern_of), graph)
    assert isinstance(fused, Function)
    return make_program(fused, set(bound), lambda f, numbers: lower_function(f, "KERNEL", isa, numbers), describe)


def threads_of(options: Mapping[str, Any]) -> int | None:
    """The most threads that the options allow; None where that is left to who runs the program."""
    given = options.get("num-threads", options.get("num_threads"))
    if given is not None and int(given) < 1:
        raise RelayError(error("R0602", f"option -num-threads wants a number from 1 on, not {given}"))
    return int(given) if given is not None else None


def _manifest(program: Program, entry: str, isa: Isa, threads: int | None) -> Manifest:
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
        isa=isa.name,
        threads=threads,
    )


def _emitter(program: Program, entry: str, isa: Isa, threads: int | None) -> Emitter:
    return Emitter(isa, threads != 1, _manifest(program, entry, isa, threads).text())


def emit_c(mod: IRModule | Expr, params: Mapping[str, np.ndarray] | Sequence[str] = (), entry: str = "main",
           options: Mapping[str, Any] | None = None, isa: str | None = None) -> str:  # fmt: skip
    """The C text of a module: a function for each stage of a kernel, and the functions that call them.

    `params` are the bound parameters (values or names). `isa` is "avx512", "avx2", "neon" or "generic". The default is
    the C compiler's own target. Raises `RelayError`.
    """
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    machine = BY_NAME[isa] if isa else Compiler(options or {}).isa
    program = lower_module(mod, entry, params, machine)
    emitter = _emitter(program, entry, machine, threads_of(options or {}))
    return emitter.file(program, _title(entry))


def _title(entry: str) -> str:
    # A name may hold anything, a line's end or a backslash before it among them.
    return f"@{entry if entry.isidentifier() else json.dumps(entry)}, made by relaylang"


def compile_for(mod: IRModule, target: Target, fallback: Sequence[Target], params: Mapping[str, np.ndarray],
                entry: str) -> Artifact:  # fmt: skip
    """Compile a module's entry function for the CPU; see `relaylang.backends`. Raises `RelayError`."""
    compiler = Compiler(target.options)
    program = lower_module(mod, entry, params, compiler.isa)
    threads = threads_of(target.options)
    emitter = _emitter(program, entry, compiler.isa, threads)
    text = emitter.file(program, _title(entry))
    library = compiler.compile(emitter.units(program), text, target.get("keep-c"))
    values: dict[str, np.ndarray] = {}
    for name, _ in program.params:
        values[name] = program.constants[name] if name in program.constants else params[name]
    return CpuArtifact(library, _manifest(program, entry, compiler.isa, threads), values, text)


def count_kernels(program: Program) -> int:
    """How many different kernels a program runs."""
    return len({id(item.kernel) for item in [*program.prepare, *program.run] if hasattr(item, "kernel")})


__all__ = ["Kernel", "compile_for", "emit_c", "lower_module"]
