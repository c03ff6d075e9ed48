"""From a checked module to a program for the Ethos-U: bind, fold, partition, write, compile, schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.backends.ethosu.artifact import EthosUArtifact, RegionCode
from relaylang.backends.ethosu.emit import emit_region
from relaylang.backends.ethosu.flatbuffer import serialize
from relaylang.backends.ethosu.layers.table import only_u85
from relaylang.backends.ethosu.offload import Partitioned, offload
from relaylang.backends.ethosu.report import estimate, text_report
from relaylang.backends.ethosu.simulator.jobs import early_reads
from relaylang.backends.ethosu.simulator.transfers import has_room_for_tables
from relaylang.backends.ethosu.stream import read_stream, with_params
from relaylang.backends.ethosu.tools import load
from relaylang.backends.ethosu.tosa import Operator
from relaylang.backends.ethosu.vela import Compiled, CompileError, Settings, compile_model, settings
from relaylang.backends.hosted import HostFunction, check, host_modules, host_steps, nothing_fits, prepared, region_tensors, spec_of
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Function,
    GlobalVar,
    IRModule,
)
from relaylang.partition.lift import Lifting, region_function, regions_of
from relaylang.partition.regions import Region, part_of
from relaylang.partition.schedule import make_schedule
from relaylang.partition.targets.ethos_u import RECIPE

_MAX_RESULT_DEPTH = 50
#: A feature of Vela: transfers of weights. It takes the second of two images for empty, and lets transfers overwrite it.
#: It makes parts of channels; those of a convolution in steps above 3 then leave accumulators to each other.
_UNSAFE_FOR_PARTS = "WeightBuffering"


def compile_module(
    mod: IRModule,
    options: Mapping[str, Any],
    params: Mapping[str, np.ndarray],
    entry: str,
    compile_host: Callable[[IRModule], tuple[HostFunction, bytes | None]] | None,
) -> EthosUArtifact:
    """Compile a module's entry function. `compile_host` makes code of what stays on the host; None forbids that.

    It gives a function that runs the module's `@main`, and the program as `save` writes it, if there is one.

    Raises `RelayError` where the module is wrong, a tool is missing, or nothing can go to the accelerator.
    """
    offloaded = compile_regions(mod, options, params, entry)
    partitioned, regions = offloaded.partitioned, offloaded.functions
    main = partitioned.module[entry]
    schedule = make_schedule(main, regions)
    if _depth(schedule.result) > _MAX_RESULT_DEPTH:
        raise RelayError(error("R0612", f"the result is a tuple nested deeper than {_MAX_RESULT_DEPTH}", main.span))
    modules = host_modules(partitioned.module, entry, regions, schedule)
    title = f"{partitioned.kept} operations of @{entry} stay on the host, and the target names none"
    notes = ['add one behind a comma: --target "ethos-u, c"']
    needed = RelayError([error("R0614", title, notes=notes), *partitioned.notes])
    return EthosUArtifact(
        schedule=schedule,
        inputs=tuple(spec_of(name, p.checked_type) for name, p in zip(schedule.params, main.params)),
        regions=offloaded.codes,
        host=host_steps(modules, compile_host, needed),
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
    partitioned, compiled, tosa = _partition_and_compile(mod, entry, how, prefix)
    functions = dict(regions_of(partitioned.module, RECIPE.name))
    if not functions:
        raise nothing_fits(mod, entry, "the Ethos-U", partitioned.notes)
    if partitioned.notes and options.get("npu-only"):
        raise RelayError([replace(note, severity="error") for note in partitioned.notes])
    codes = {gv.name_hint: _code(f, compiled[gv.name_hint], tosa[gv.name_hint]) for gv, f in functions.items()}
    report = text_report(how, compiled, partitioned.offloaded, partitioned.kept, partitioned.notes)
    return Offloaded(how, partitioned, functions, codes, report)


def _partition_and_compile(
    mod: IRModule, entry: str, how: Settings, prefix: str
) -> tuple[Partitioned, dict[str, Compiled], dict[str, bytes]]:
    """Partition, and compile every region.

    If the compiler fails on a composite, alone or with the calls before it, the composite stays on the host.
    """

    def missing(call: Call) -> str | None:
        does = None if how.is_u85 else only_u85(call)
        return does and f"only the Ethos-U85 {does}"

    partitioned = offload(mod, entry, missing, prefix)
    check(partitioned.module)
    try:
        return partitioned, *_compile_regions(partitioned, how)
    except CompileError as failure:
        first = failure
    tried: dict[int, str | None] = {}

    def refuse(call: Call) -> str | None:
        if id(call) not in tried:
            inputs = [arg for arg in call.args if not isinstance(arg, Constant)]
            tried[id(call)] = missing(call) or _refusal(Region([call], inputs, [call], RECIPE.name), how)
        return tried[id(call)]

    partitioned = offload(mod, entry, refuse, prefix, lambda region: _leaves(region, how))
    check(partitioned.module)
    try:
        return partitioned, *_compile_regions(partitioned, how)
    except CompileError as failure:
        raise RelayError(
            error(
                "R0612",
                f"the Ethos-U compiler refuses a region that it took before: {failure}",
                mod[entry].span,
                notes=[f"it refused the whole region with: {first}"],
            )
        ) from None


def _compile_regions(partitioned: Partitioned, how: Settings) -> tuple[dict[str, Compiled], dict[str, bytes]]:
    compiled: dict[str, Compiled] = {}
    tosa: dict[str, bytes] = {}
    for gv, func in regions_of(partitioned.module, RECIPE.name):
        tosa[gv.name_hint], compiled[gv.name_hint] = _compile_region(func, gv.name_hint, how)
    return compiled, tosa


def _compile_region(func: Function, name: str, how: Settings) -> tuple[bytes, Compiled]:
    """A region as TOSA, and compiled. Raises `CompileError`."""
    graph = emit_region(func, name, how.is_u85)
    tosa = serialize(graph)
    if any(tensor.shape[:1] == (2,) for tensor in graph.tensors.values()) or any(map(_has_large_steps, graph.operators)):
        how = replace(how, without=_UNSAFE_FOR_PARTS)
    compiled = compile_model(tosa, how)
    stream = read_stream(compiled.command_stream, "the command stream")
    if not has_room_for_tables(stream):
        raise CompileError("a table would lie behind the accelerator's memory for tables")
    # Behind a transposition, Vela takes the places of blocks for those before it.
    return tosa, replace(compiled, command_stream=with_params(compiled.command_stream, early_reads(stream)))


def _has_large_steps(operator: Operator) -> bool:
    """Whether an operator is a convolution with a stride above 3."""
    return operator.op == "CONV2D" and any(
        isinstance(value, tuple) and max(value) > 3 for slot, _, value in operator.attributes if slot == 1
    )


def _refusal(region: Region, how: Settings) -> str | None:
    """Why the compiler refuses a region, or None where it takes it."""
    func, _ = region_function(region, "trial", 0, Lifting(recipe=RECIPE))
    check(IRModule.from_expr(func))
    try:
        _compile_region(func, "trial", how)
    except CompileError as failure:
        return f"the Ethos-U compiler says: {failure}"
    return None


def _leaves(region: Region, how: Settings) -> tuple[Call, str] | None:
    """The call that must leave a region for the compiler to accept it, with the compiler's message. None if it accepts
    it.

    The compiler accepts the region up to this call, but not with it.
    """
    reason = _refusal(region, how)
    if reason is None:
        return None
    calls = [node for node in region.nodes if isinstance(node, Call)]
    taken, refused = 0, len(calls)
    while refused - taken > 1:
        middle = (taken + refused) // 2
        found = _refusal(part_of(region, calls[:middle]), how)
        if found is None:
            taken = middle
        else:
            refused, reason = middle, found
    return calls[refused - 1], f"together with the calls before it, {reason}"


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


def _depth(result: Any) -> int:
    depth, level = 0, [result]
    while level:
        level = [part for node in level if isinstance(node, list) for part in node]
        depth += 1
    return depth
