"""From a checked module to a program for VTA: bind, fold, partition, write instructions, schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relaylang.backends.hosted import (
    HostFunction,
    compiled,
    host_modules,
    host_steps,
    nothing_fits,
    prepared,
    region_tensors,
    spec_of,
)
from relaylang.backends.target import CompileRest, Target
from relaylang.backends.vta.artifact import Region, VTAArtifact
from relaylang.backends.vta.config import Config, config_of
from relaylang.backends.vta.emit import emit_region
from relaylang.backends.vta.isa import BYTES
from relaylang.backends.vta.layers.table import pattern_table
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import IRModule
from relaylang.partition.engine import run
from relaylang.partition.lift import regions_of
from relaylang.partition.schedule import make_schedule
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
    compile_host: Callable[[IRModule], tuple[HostFunction, bytes | None]] | None,
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
    main = outcome.module[entry]
    schedule = make_schedule(main, functions)
    title = f"{kept} operations of @{entry} stay on the host, and the target names none"
    needed = RelayError([error("R0614", title, notes=['add one after a comma: --target "vta, c"']), *notes])
    steps = host_steps(host_modules(outcome.module, entry, functions, schedule), compile_host, needed)
    regions = {gv.name_hint: Region(emit_region(func, config), *region_tensors(func)) for gv, func in functions.items()}
    inputs = tuple([spec_of(name, p.checked_type) for name, p in zip(schedule.params, main.params)])
    return VTAArtifact(schedule, inputs, regions, steps, _report(config, regions, notes))


def _report(config: Config, regions: Mapping[str, Region], notes: list[Diagnostic]) -> str:
    lines = [f"VTA {config}: {len(regions)} region{'s' * (len(regions) != 1)}"]
    for name, region in regions.items():
        program = region.program
        lines.append(f"  {name}: {len(program.stream) // BYTES} instructions, {program.memory:,} bytes of DRAM")
        lines += [f"    {call}" for _, call in program.places]
    lines += [f"  {note.title}" for note in notes]
    return "\n".join(lines) + "\n"


__all__ = ["compile_for", "compile_module"]
