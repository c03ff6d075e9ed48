"""From a checked module to a program for the Ethos-U: bind, fold, partition, write, compile, schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.backends.ethosu.artifact import EthosUArtifact, RegionCode
from relaylang.backends.ethosu.offload import Partitioned
from relaylang.backends.ethosu.regions import partition_and_compile
from relaylang.backends.ethosu.report import estimate, text_report
from relaylang.backends.ethosu.tools import load
from relaylang.backends.ethosu.vela import Compiled, Settings, settings
from relaylang.backends.hosted import CompileHost, host_parts, nothing_fits, prepared, region_tensors
from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.ir import Function, GlobalVar, IRModule
from relaylang.partition.lift import regions_of
from relaylang.partition.targets.ethos_u import RECIPE


def compile_module(
    mod: IRModule,
    options: Mapping[str, Any],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_host: CompileHost | None,
) -> EthosUArtifact:
    """Compile a module's entry function. `compile_host` makes code of what stays on the host; None forbids that.

    Raises `RelayError` where the module is wrong, a tool is missing, or nothing can go to the accelerator.
    """
    offloaded = compile_regions(mod, options, params, entry)
    partitioned = offloaded.partitioned
    schedule, inputs, host = host_parts(
        partitioned.module, entry, offloaded.functions, compile_host, "ethos-u", partitioned.kept, partitioned.notes
    )
    return EthosUArtifact(
        schedule=schedule,
        inputs=inputs,
        regions=offloaded.codes,
        host=host,
        text=offloaded.report,
        details=_details(offloaded.settings, partitioned),
    )


@dataclass(frozen=True)
class Offloaded:
    """A program whose regions are compiled: what the accelerator computes is in `codes`, by the names of its functions."""

    settings: Settings
    partitioned: Partitioned
    functions: dict[GlobalVar, Function]
    codes: dict[str, RegionCode]
    report: str


def compile_regions(
    mod: IRModule, options: Mapping[str, Any], params: Mapping[str, np.ndarray], entry: str, prefix: str = ""
) -> Offloaded:
    """Bind, fold and partition a module, and compile its regions. `prefix` begins their names.

    Raises `RelayError` as `compile_module` does.
    """
    how = settings(options)
    load("flatbuffers", "writing TOSA")
    mod = prepared(mod, params, entry)
    partitioned, compiled, tosa = partition_and_compile(mod, entry, how, prefix)
    functions = dict(regions_of(partitioned.module, RECIPE.name))
    if not functions:
        raise nothing_fits(mod, entry, "the Ethos-U", partitioned.notes)
    if partitioned.notes and options.get("npu-only"):
        raise RelayError([replace(note, severity="error") for note in partitioned.notes])
    codes = {gv.name_hint: _code(f, compiled[gv.name_hint], tosa[gv.name_hint]) for gv, f in functions.items()}
    report = text_report(how, compiled, partitioned.offloaded, partitioned.kept, partitioned.notes)
    return Offloaded(how, partitioned, functions, codes, report)


def _code(func: Function, compiled: Compiled, tosa: bytes) -> RegionCode:
    details = {
        "driver": {
            "weights_region": compiled.weights_region,
            "scratch": {"region": compiled.scratch_region, "bytes": compiled.scratch_size},
            "scratch_fast": {"region": compiled.scratch_fast_region, "bytes": compiled.scratch_fast_size},
            "inputs": [_place(t) for t in compiled.inputs],
            "outputs": [_place(t) for t in compiled.outputs],
        },
        "estimate": estimate(compiled),
        "places": [[place.at, place.layer, place.cycles] for place in compiled.places],
    }
    return RegionCode(tosa, compiled.command_stream, compiled.weights, *region_tensors(func), details)


def _place(tensor: Any) -> dict[str, int]:
    return {"region": tensor.region, "address": tensor.address, "bytes": tensor.size}


def _details(how: Settings, partitioned: Partitioned) -> dict[str, Any]:
    return {
        "target": {
            "accelerator": how.accelerator,
            "system_config": how.system_config,
            "memory_mode": how.memory_mode,
            "optimise": how.optimise,
        },
        "operations": {"accelerator": partitioned.offloaded, "host": partitioned.kept},
        "stays_on_host": [_note(n) for n in partitioned.notes],
    }


def _note(note: Diagnostic) -> dict[str, str]:
    where = {"at": str(note.span)} if note.span is not None and note.span.source.text else {}
    return {**where, "why": note.title}
