"""The Arm Ethos-U: which subgraphs it takes, as a pattern table, and a program partitioned for it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, children, post_order, rebuild, substitute
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.partition.composite import Entry, Refusals, composite_name, composite_nodes, merge_composites
from relaylang.partition.fixed_point import Unsupported
from relaylang.partition.lets import effects_of, place_lets
from relaylang.partition.partition import partition_graph
from relaylang.partition.regions import Region, form_regions
from relaylang.partition.scope import scope_nodes
from relaylang.partition.targets import ethosu_layers as layers
from relaylang.partition.targets import ethosu_pool as pools
from relaylang.patterns import DFPattern, Match, is_constant, is_op, is_tuple, wildcard

COMPILER = "ethos-u"

#: What a composite's calls say, by the composite's name.
READERS: dict[str, Callable[[Sequence[Call]], Any]] = {
    "ethos-u.qnn_conv2d": layers.read_conv,
    "ethos-u.qnn_dense": layers.read_dense,
    "ethos-u.qnn_add": layers.read_add,
    "ethos-u.qnn_concatenate": layers.read_qnn_concat,
    "ethos-u.concatenate": layers.read_concat,
    "ethos-u.max_pool2d": pools.read_max_pool,
    "ethos-u.avg_pool2d": pools.read_avg_pool,
    "ethos-u.qnn_requantize": layers.read_requantize,
    "ethos-u.clamp": layers.read_clamp,
    "ethos-u.pad": layers.read_pad,
    "ethos-u.reshape": layers.read_reshape,
}
#: Composites that only move or limit what others computed: no reason for a region of their own.
_HELPERS = frozenset({"ethos-u.reshape", "ethos-u.pad", "ethos-u.concatenate", "ethos-u.clamp"})


def _any(count: int) -> list[DFPattern]:
    return [wildcard() for _ in range(count)]


def _clips(pattern: DFPattern, cast: bool = True) -> DFPattern:
    """Behind the pattern: clip or relu, then a cast, then clip or relu, each of which may be missing."""

    pattern = pattern.optional(limits)
    return pattern.optional(lambda p: is_op("cast")(p)).optional(limits) if cast else pattern


def limits(pattern: DFPattern) -> DFPattern:
    """clip or relu of the pattern."""
    return is_op("clip")(pattern) | is_op("nn.relu")(pattern)


def _requantized(pattern: DFPattern) -> DFPattern:
    """The pattern with a bias, then requantized, then limited."""
    summed = pattern.optional(lambda p: is_op("nn.bias_add")(p, wildcard()) | is_op("add")(p, is_constant()))
    limited = summed.optional(lambda p: is_op("nn.relu")(p))
    return _clips(is_op("qnn.requantize")(limited, *_any(4)))


def _summed(pattern: DFPattern) -> DFPattern:
    return pattern.optional(lambda p: is_op("nn.bias_add")(p, wildcard()) | is_op("add")(p, is_constant()))


def _check(name: str) -> Callable[[Match], str | None]:
    reader = READERS[name]

    def check(match: Match) -> str | None:
        try:
            reader([node for node in match.nodes if isinstance(node, Call)])
        except Unsupported as refusal:
            return refusal.reason
        return None

    return check


def pattern_table() -> list[Entry]:
    """The rows for the Ethos-U, those that take most first."""

    def conv(data: DFPattern) -> DFPattern:
        return is_op("qnn.conv2d")(data, *_any(5))

    def padded() -> DFPattern:
        return conv(is_op("nn.pad")(wildcard(), wildcard()))

    def dense() -> DFPattern:
        return is_op("qnn.dense")(*_any(6))

    reshapes = (
        is_op("reshape")(wildcard())
        | is_op("nn.batch_flatten")(wildcard())
        | is_op("squeeze")(wildcard())
        | is_op("expand_dims")(wildcard())
    )
    limit = is_op("clip")(wildcard()) | is_op("nn.relu")(wildcard())
    widened = is_op("cast")(wildcard())
    averaged = is_op("nn.avg_pool2d")(widened) | is_op("nn.global_avg_pool2d")(widened)
    rows = [
        ("ethos-u.qnn_conv2d", _requantized(padded())),
        ("ethos-u.qnn_conv2d", _requantized(conv(wildcard()))),
        ("ethos-u.qnn_dense", _requantized(dense())),
        ("ethos-u.qnn_conv2d", _summed(padded())),
        ("ethos-u.qnn_conv2d", _summed(conv(wildcard()))),
        ("ethos-u.qnn_dense", _summed(dense())),
        ("ethos-u.qnn_add", _clips(is_op("qnn.add")(*_any(8)), cast=False)),
        ("ethos-u.qnn_concatenate", is_op("qnn.concatenate")(is_tuple(None), is_tuple(None), is_tuple(None), *_any(2))),
        ("ethos-u.concatenate", is_op("concatenate")(is_tuple(None))),
        ("ethos-u.max_pool2d", is_op("nn.max_pool2d")(wildcard())),
        ("ethos-u.avg_pool2d", _clips(is_op("qnn.requantize")(averaged, *_any(4)))),
        ("ethos-u.avg_pool2d", is_op("cast")(averaged.optional(limits))),
        ("ethos-u.avg_pool2d", _clips(is_op("qnn.avg_pool2d")(*_any(5)), cast=False)),
        ("ethos-u.avg_pool2d", is_op("nn.avg_pool2d")(wildcard()) | is_op("nn.global_avg_pool2d")(wildcard())),
        ("ethos-u.qnn_requantize", _clips(is_op("qnn.requantize")(*_any(5)))),
        ("ethos-u.clamp", limits(limit)),
        ("ethos-u.clamp", limit),
        ("ethos-u.pad", is_op("nn.pad")(wildcard(), wildcard())),
        ("ethos-u.reshape", reshapes),
    ]
    return [Entry(name, pattern, _check(name)) for name, pattern in rows]


@dataclass(frozen=True)
class Partitioned:
    """A module whose entry calls regions, and a note for every call of the entry that stays on the host."""

    module: IRModule
    notes: list[Diagnostic]
    offloaded: int
    kept: int


def partition_for_ethosu(
    mod: IRModule,
    entry: str = "main",
    refuse: Callable[[Call], str | None] | None = None,
    prefix: str = "",
    judge: Callable[[Region], tuple[Call, str] | None] | None = None,
) -> Partitioned:
    """Partition a checked module, whose parameters are bound and whose constants are folded.

    `refuse` may turn a composite call away for a further reason (the compiler behind tried it and failed). `judge` looks
    at whole regions, and names a call that has to leave one, and why. `prefix` stands before the names of the regions'
    functions. The new module's types are to be found by the checker again.
    """
    func: Function = place_lets(mod[entry], effects_of(mod))
    refusals = Refusals()
    merged = merge_composites(func, pattern_table(), refusals)
    reasons: dict[int, str] = {}

    def supported(node: Expr) -> bool:
        name = composite_name(node)
        if name is None or not name.startswith("ethos-u.") or id(node) in reasons:
            return False
        assert isinstance(node, Call)
        reason = refuse(node) if refuse is not None else None
        if reason is not None:
            reasons[id(node)] = reason
        return reason is None

    regions: list[Region] = []
    fine: set[tuple[int, ...]] = set()
    while True:
        formed, regions = form_regions(merged, supported), []
        for region in formed:
            if any(composite_name(node) not in (None, *_HELPERS) for node in region.nodes):
                regions.append(region)
            else:
                for node in region.nodes:
                    reasons[id(node)] = "a region that only moves or limits values is not worth its transfers"
        leaves = False
        for region in regions:
            key = tuple(id(node) for node in region.nodes)
            found = judge(region) if judge is not None and key not in fine else None
            if found is None:
                fine.add(key)
            else:
                reasons[id(found[0])], leaves = found[1], True
        if not leaves:
            break
    inside = {id(node) for region in regions for node in region.nodes}
    notes, offloaded, kept = _why_not(merged, inside, reasons, refusals)
    host = _unmerge(merged, regions)
    changed = dict(mod.functions)
    gv = mod.get_global_var(entry)
    changed[gv] = host[0]
    done = partition_graph(mod.with_functions(changed), entry, host[1], COMPILER, prefix)
    return Partitioned(done, notes, offloaded, kept)


def _unmerge(func: Function, regions: list[Region]) -> tuple[Function, list[Region]]:
    """Put the composites that stay on the host back as plain calls, so that the host's compiler sees its own ops."""
    inside = {id(node) for region in regions for node in region.nodes}
    done: dict[int, Expr] = {}
    for node in post_order(func.body):
        new = rebuild(node, tuple([done[id(c)] for c in children(node)]))
        if composite_name(node) is not None and id(node) not in inside:
            assert isinstance(new, Call) and isinstance(new.op, Function)
            done[id(node)] = substitute(new.op.body, dict(zip(new.op.params, new.args)))
        else:
            done[id(node)] = new
        retype(done[id(node)], node)
    new_func = Function(func.params, done[id(func.body)], func.ret_type, func.type_params, func.attrs, func.span)
    moved = [
        Region([done[id(n)] for n in r.nodes], [done[id(n)] for n in r.inputs], [done[id(n)] for n in r.outputs])
        for r in regions
    ]
    return new_func, moved


def _why_not(
    func: Function, inside: set[int], reasons: dict[int, str], refusals: Refusals
) -> tuple[list[Diagnostic], int, int]:
    notes: list[Diagnostic] = []
    offloaded = kept = 0
    for node in scope_nodes(func.body):
        if not isinstance(node, Call):
            continue
        if id(node) in inside:
            assert isinstance(node.op, Function)
            offloaded += _count(node.op)
            continue
        kept += _count(node.op) if isinstance(node.op, Function) and composite_name(node) else 1
        what, reason = _reason(node, reasons, refusals)
        notes.append(
            error("R0620", f"{what} stays on the host: {reason}", node.span, severity="note")
        )
    return notes, offloaded, kept


def _count(func: Function) -> int:
    return sum(1 for node in composite_nodes(func) if isinstance(node, Call))


def _reason(node: Call, reasons: dict[int, str], refusals: Refusals) -> tuple[str, str]:
    what = "a call of a function"
    if isinstance(node.op, Op):
        what = node.op.name
    elif isinstance(node.op, Function) and composite_name(node):
        what = " + ".join(layers.op_name(n) for n in composite_nodes(node.op) if isinstance(n, Call))
    found = reasons.get(id(node)) or refusals.of(node)
    if found is not None:
        return what, found
    if not isinstance(node.op, Op):
        return what, "only calls of operators are taken"
    floats = [
        ty.dtype
        for ty in (node.checked_type, *(a.checked_type for a in node.args[:1]))
        if isinstance(ty, TensorType) and ty.dtype.startswith(("float", "bfloat"))
    ]
    if floats:
        return what, f"it works on {floats[0]}, the accelerator on int8"
    return what, "the accelerator's pattern table has no row for it"
