"""From a checked module to a program for VTA: bind, fold, partition, write instructions, schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relaylang.backends.hosted import CompileHost, compiled, host_parts, nothing_fits, prepared
from relaylang.backends.target import CompileRest, Target
from relaylang.backends.vta.artifact import VTAArtifact
from relaylang.backends.vta.config import Config, config_of
from relaylang.backends.vta.emit import emit_region
from relaylang.backends.vta.isa import BYTES
from relaylang.backends.vta.layers.table import pattern_table
from relaylang.backends.vta.program import Program
from relaylang.diagnostics import Diagnostic
from relaylang.ir import IRModule
from relaylang.partition.engine import run
from relaylang.partition.lift import regions_of
from relaylang.partition.staying import host_notes
from relaylang.partition.targets.vta import RECIPE


def compile_for(
    mod: IRModule,
    target: Target,
    fallback: Sequence[Target],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_rest: CompileRest | None,
) -> VTAArtifact:
    """The backend's door; see `relaylang.backends`. What stays on the host is compiled for the first of `fallback`."""
    return compile_module(mod, target.options, params, entry, None if compile_rest is None else partial(compiled, compile_rest))


def compile_module(
    mod: IRModule,
    options: Mapping[str, Any],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_host: CompileHost | None,
) -> VTAArtifact:
    """Compile a module's entry function. `compile_host` makes code of what stays on the host; None forbids that.

    Raises `RelayError` where the module is wrong, the configuration cannot be built, or nothing can go to VTA.
    """
    config = config_of(options)
    mod = prepared(mod, params, entry)
    recipe = RECIPE if config.block_in == config.block_out else replace(RECIPE, merge="none")
    outcome = run(mod, pattern_table(config), recipe, entry=entry, prefix="")
    functions = dict(regions_of(outcome.module, RECIPE.name))
    notes, _, kept = host_notes(outcome.traces[mod.get_global_var(entry)], mod, RECIPE.name, "int8")
    if not functions:
        raise nothing_fits(mod, entry, "VTA", notes)
    schedule, inputs, host = host_parts(outcome.module, entry, functions, compile_host, "vta", kept, notes)
    programs = {gv.name_hint: emit_region(func, config) for gv, func in functions.items()}
    return VTAArtifact(schedule, inputs, programs, host, _report(config, programs, notes))


def _report(config: Config, programs: Mapping[str, Program], notes: list[Diagnostic]) -> str:
    lines = [f"VTA {config}: {len(programs)} region{'s' * (len(programs) != 1)}"]
    for name, program in programs.items():
        lines.append(f"  {name}: {len(program.stream) // BYTES} instructions, {program.memory:,} bytes of DRAM")
        lines += [f"    {call}" for _, call in program.places]
    lines += [f"  {note.title}" for note in notes]
    return "\n".join(lines) + "\n"


__all__ = ["compile_for", "compile_module"]
