"""A report of a partitioned program: where each call goes, and why a call stays on the host."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, post_order
from relaylang.ops.record import Op
from relaylang.partition.api import partition_ready, prepare
from relaylang.partition.composites import choose
from relaylang.partition.entries import Entry
from relaylang.partition.support import op_verdict
from relaylang.partition.tables import get_pattern_table
from relaylang.partition.targets import recipe_of
from relaylang.passes.rewriting import rewrite_typed
from relaylang.patterns import Explanation, Graph, OpNamePattern, explain_match, find_match
from relaylang.patterns.language import all_parts
from relaylang.patterns.mismatch import describe, progress
from relaylang.rules.macs import RULES as MACS


@dataclass(frozen=True)
class Row:
    """One call's fate: `region` is the function that it went to, or None.

    Without a region, `pattern` is the row that came nearest, and `reason` says why it failed. `place` is the call's
    place, or that of the next call behind it that has one.
    """

    call: Call
    name: str
    region: str | None
    composite: str
    pattern: str = ""
    reason: str = ""
    refused_at: Span | None = None
    place: Span | None = None


def explain(ready: IRModule, done: IRModule, target: str, entry: str = "main") -> list[Row]:
    """A row for each operator call of a prepared module's entry, in the order of the text."""
    table = get_pattern_table(target)
    recipe = recipe_of(target)
    main: Function = ready[entry]
    graph = Graph(main)
    calls = [n for n in graph.order if isinstance(n, Call) and isinstance(n.op, Op)]
    where, not_worth = _followed(ready, done, target, table, entry, calls)
    chosen = choose(main, table, graph.order)
    refused: dict[int, tuple[str, str]] = {}
    for refusal in chosen.refusals:
        match = find_match(refusal.entry.pattern, refusal.root, graph)
        for node in match.nodes if match is not None else (refusal.root,):
            refused.setdefault(id(node), (refusal.entry.name, refusal.reason))
    taken = {id(n): row.name for row, group in chosen.groups for n in group.body}
    places = _places(graph)
    rows = []
    for number, node in enumerate(calls):
        assert isinstance(node.op, Op)
        place = places.get(id(node))
        if number in where:
            rows.append(Row(node, node.op.name, *where[number], place=place))
        elif number in not_worth or (id(node) in taken and id(node) not in refused) or op_verdict(target, node) is True:
            reason = recipe.not_worth
            rows.append(Row(node, node.op.name, None, "", taken.get(id(node), ""), reason, place=place))
        else:
            rows.append(replace(_stays(node, graph, table, target, refused), place=place))
    return sorted(rows, key=lambda row: 1 << 30 if row.place is None else row.place.line)


def _places(graph: Graph) -> dict[int, Span]:
    """The place of each node; of one that a pass made without a place, that of what uses it."""
    places: dict[int, Span] = {}
    for node in reversed(graph.order):
        if node.span is not None:
            places[id(node)] = node.span
        else:
            near = next((places[id(u)] for u in graph.users.get(id(node), ()) if id(u) in places), None)
            if near is not None:
                places[id(node)] = near
    return places


def _composites(func: Function) -> dict[int, str]:
    """The composite of each node inside one."""
    inside: dict[int, str] = {}
    for node in post_order(func):
        if isinstance(node, Function) and "Composite" in node.attrs:
            inside.update({id(n): str(node.attrs["Composite"]) for n in post_order(node)})
    return inside


def _followed(
    ready: IRModule, done: IRModule, target: str, table: list[Entry], entry: str, calls: Sequence[Call]
) -> tuple[dict[int, tuple[str, str]], set[int]]:
    """The region's function and the composite of each call, by number; and the calls of regions that went back.

    Several calls may stand for one place of the text. So a copy of the program is partitioned in which each call has a
    place of its own. Regions are numbered alike.
    """
    tag = SourceFile("<call>", "")
    numbers = {id(node): number for number, node in enumerate(calls)}

    def tagged(old: Expr, new: Expr) -> Expr:
        number = numbers.get(id(old))
        if number is None:
            return new
        assert isinstance(new, Call)
        return Call(new.op, new.args, new.attrs, new.type_args, Span(tag, number, number))

    main = rewrite_typed(ready[entry], tagged)
    assert isinstance(main, Function)
    marked = ready.with_functions({**ready.functions, ready.get_global_var(entry): main})
    outcome = partition_ready(prepare(marked, target), target, table)
    unworthy = [call.span for trace in outcome.traces.values() for call in trace.unworthy]
    not_worth = {span.first for span in unworthy if span is not None and span.source is tag}

    def regions(mod: IRModule) -> list[tuple[str, Function]]:
        return [(gv.name_hint, f) for gv, f in mod.functions.items() if f.attrs.get("Compiler") == target]

    names = [name for name, _ in regions(done)]
    where: dict[int, tuple[str, str]] = {}
    for i, (name, func) in enumerate(regions(outcome.module)):
        name = names[i] if i < len(names) else name
        inside = _composites(func)
        for node in post_order(func):
            if isinstance(node, Call) and node.span is not None and node.span.source is tag and isinstance(node.op, Op):
                where[node.span.first] = (name, inside.get(id(node), ""))
    return where, not_worth


def _stays(node: Call, graph: Graph, table: list[Entry], target: str, refused: dict[int, tuple[str, str]]) -> Row:
    assert isinstance(node.op, Op)
    name = node.op.name
    if id(node) in refused:
        return Row(node, name, None, "", *refused[id(node)], node.span)
    said = op_verdict(target, node)
    if isinstance(said, str):
        return Row(node, name, None, "", name, said, node.span)
    rows = [e for e in table if any(isinstance(p, OpNamePattern) and p.name == name for p in all_parts(e.pattern))]
    if not rows:
        ty = node.args[0].checked_type if node.args else node.checked_type
        kind = f" (it works on {ty.dtype})" if isinstance(ty, TensorType) else ""
        return Row(node, name, None, "", "", f"no row of the table has {name}{kind}")
    best = _nearest_row(node, graph, rows)
    if best is None:
        return Row(node, name, None, "", rows[0].name, "it is used outside of the pattern, or another row has its operands")
    return Row(node, name, None, "", *best)


def _nearest_row(node: Call, graph: Graph, rows: list[Entry]) -> tuple[str, str, Span | None] | None:
    """The row that met most of the pattern around a call, why it does not match, and where; None where none touches the call."""
    best: tuple[int, str, str, Span | None] | None = None
    for root, row in product(_above(node, graph), rows):
        explanation = explain_match(row.pattern, root, graph)
        if explanation:
            continue  # it matches there, and was taken for something else
        inside = any(n is node for n in explanation.met)
        met = 2 * progress(explanation) + inside - (root is node and not inside)
        touches = inside or explanation.failed_at is node or root is node
        if touches and (best is None or met > best[0]):
            at = explanation.failed_at.span if explanation.failed_at is not None else None
            best = (met, row.name, _says(explanation, node, root, graph), at or node.span)
    return best[1:] if best is not None else None


def _says(explanation: Explanation, node: Call, root: Expr, graph: Graph) -> str:
    """Why a row's pattern does not match at a root."""
    said = str(explanation)
    if root is node and not explanation.met and " is wanted, and it is " in said:
        return f"{said.partition(' is wanted, ')[0]} is wanted behind it, and {_behind(node, graph)}"
    return said


def _behind(node: Expr, graph: Graph) -> str:
    """The users of a node, in a few words."""
    users = [u for u in graph.users.get(id(node), ()) if u is not graph.root]
    if not users:
        return "it is the result"
    return f"{describe(users[0])} follows" if len(users) == 1 else f"{len(users)} calls follow"


def _above(node: Expr, graph: Graph, levels: int = 5, most: int = 12) -> list[Expr]:
    """A node and what uses it, a few levels down the data flow."""
    above, level, seen = [node], [node], {id(node)}
    for _ in range(levels):
        level = [u for n in level for u in graph.users.get(id(n), ()) if id(u) not in seen and isinstance(u, Call)]
        seen.update([id(u) for u in level])
        above += level
        if len(above) >= most:
            break
    return above[:most]


def summary(rows: Sequence[Row], target: str) -> str:
    """How many calls, and how many of the multiply-accumulates, went to the target."""
    gone = [r for r in rows if r.region is not None]

    def macs(of: Sequence[Row]) -> int:
        return sum(MACS[r.name](r.call) for r in of if r.name in MACS)

    total = macs(rows)
    share = f", {100 * macs(gone) / total:.1f} % of {total} multiply-accumulates" if total else ""
    regions = len({r.region for r in gone})
    of = "region" if regions == 1 else "regions"
    return f"{len(gone)} of {len(rows)} calls go to {target}, in {regions} {of}{share}"


def table_text(rows: Sequence[Row], target: str) -> str:
    """The report as a table: where each call stands, what it is, where it goes, and why not."""
    cells = []
    for row in rows:
        place = _place(row) or "-"
        if row.region is not None:
            cells.append((place, row.name, row.region, row.composite))
        else:
            at = ""
            if row.refused_at is not None and row.place is not None and row.refused_at.line != row.place.line:
                at = f" ({row.refused_at.label or f'line {row.refused_at.line}'})"
            cells.append((place, row.name, "host", f"{row.pattern + ': ' if row.pattern else ''}{row.reason}{at}"))
    head = ("place", "call", "goes to", "composite, or what refused it")
    widths = [max(len(c[i]) for c in [head, *cells]) for i in range(3)]
    lines = ["  ".join([*[c[i].ljust(widths[i]) for i in range(3)], c[3]]).rstrip() for c in [head, *cells]]
    return "\n".join([*lines, "", summary(rows, target), *_reasons(rows), *hints(rows, target)])


def json_text(rows: Sequence[Row], target: str) -> str:
    """The report as JSON: the target, a row for each call (`region` is null on the host), and the summary."""
    entries = [
        {
            "place": _place(row),
            "call": row.name,
            "region": row.region,
            "composite": row.composite,
            "pattern": row.pattern,
            "reason": row.reason,
        }
        for row in rows
    ]
    return json.dumps({"target": target, "rows": entries, "summary": summary(rows, target)}, indent=1)


def _place(row: Row) -> str:
    return f"{row.place} {row.place.label}".rstrip() if row.place is not None else ""


def _reasons(rows: Sequence[Row], least: int = 20, most: int = 5) -> list[str]:
    """The commonest reasons, where many calls stay."""
    said = [f"{row.pattern + ': ' if row.pattern else ''}{row.reason}" for row in rows if row.region is None]
    if len(said) < least:
        return []
    common = [(n, reason) for reason, n in Counter(said).most_common(most) if n > 2]
    return ["of those that stay:", *[f"{n:6d}  {reason}" for n, reason in common]] if common else []


#: How a float network becomes one for an accelerator of integers.
QUANTISE_FIRST = (
    "quantise the network first: `onnxruntime.quantization.quantize_static` or TensorFlow Lite's converter with a representative"
    " dataset writes a file of int8, and `relay import FILE -o net.relay` reads it"
)


def hints(rows: Sequence[Row], target: str) -> list[str]:
    """Hints that would send more calls to the accelerator, as far as the reasons give them."""
    stay = [row for row in rows if row.region is None]
    lines = []
    if recipe_of(target).integers and not any(row.name.startswith("qnn.") for row in rows):
        lines.append(f"hint: {target} takes quantized programs, and this one has no qnn operators")
        lines.append(f"hint: {QUANTISE_FIRST}")
    wanted = {row.name for row in stay if "layout is 'NCHW'; it takes 'NHWC'" in row.reason and "conv2d" in row.name}
    if wanted:
        layouts = ", ".join(f'"{name}": ["NHWC", "default"]' for name in sorted(wanted))
        lines.append(f"hint: relay opt --passes 'ConvertLayout({{{layouts}}})' brings convolutions into NHWC")
    constant = sum(any(w in row.reason for w in ("not a constant", "a constant is wanted")) for row in stay)
    if constant:
        calls = "call wants" if constant == 1 else "calls want"
        lines.append(f"hint: {constant} {calls} constants; --params or --random-params gives parameters their values")
    return ["", *lines] if lines else []


__all__ = ["Row", "explain", "hints", "json_text", "summary", "table_text"]
