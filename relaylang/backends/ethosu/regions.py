"""The regions of a module as programs for the Ethos-U, and the calls that Vela refuses, which stay on the host."""

from __future__ import annotations

from dataclasses import replace

from relaylang.backends.ethosu.emit import emit_region
from relaylang.backends.ethosu.flatbuffer import serialize
from relaylang.backends.ethosu.layers.table import only_u85
from relaylang.backends.ethosu.offload import Partitioned, offload
from relaylang.backends.ethosu.simulator.jobs import early_reads
from relaylang.backends.ethosu.simulator.transfers import has_room_for_tables
from relaylang.backends.ethosu.stream import read_stream, with_params
from relaylang.backends.ethosu.tosa import Operator
from relaylang.backends.ethosu.vela import Compiled, CompileError, Settings, compile_model
from relaylang.backends.hosted import check
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Function, IRModule
from relaylang.partition.lift import Lifting, region_function, regions_of
from relaylang.partition.regions import Region, part_of
from relaylang.partition.targets.ethos_u import RECIPE

#: A feature of Vela: transfers of weights. It takes the second of two images for empty, and lets transfers overwrite it.
#: It makes parts of channels; those of a convolution in steps above 3 then leave accumulators to each other.
_UNSAFE_FOR_PARTS = "WeightBuffering"


def partition_and_compile(
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
        refusal = _refusal(part_of(region, calls[:middle]), how)
        if refusal is None:
            taken = middle
        else:
            refused, reason = middle, refusal
    return calls[refused - 1], f"together with the calls before it, {reason}"
