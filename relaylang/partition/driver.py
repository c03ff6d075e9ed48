"""Programs partitioned for accelerators by name, and a report that says why a call was not offloaded.

    mod = partition_for_cmsisnn(mod, params)
    print(report(mod, partition(mod, "cmsis-nn"), "cmsis-nn"))

Pattern tables are registered by name; installed packages add theirs (see `relaylang.plugins.files`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, post_order, substitute
from relaylang.ops.extensions import find
from relaylang.ops.extensions import names as operator_names
from relaylang.ops.record import Op
from relaylang.partition.composite import Entry, as_entries
from relaylang.partition.inline import calls_one_of, inline_regions
from relaylang.partition.lets import effects_of, place_lets
from relaylang.partition.merge import OP_SUPPORT, choose, op_verdict
from relaylang.partition.passes.annotate_target import AnnotateTarget
from relaylang.partition.passes.merge_compiler_regions import MergeCompilerRegions
from relaylang.partition.passes.merge_composite import MergeComposite
from relaylang.partition.passes.partition_graph import PartitionGraph
from relaylang.partition.tables import PATTERN_TABLES, get_pattern_table, register_pattern_table
from relaylang.partition.targets import arm_compute_lib, dnnl
from relaylang.partition.targets.ethosu import partition_for_ethosu as _partition_ethosu
from relaylang.passes.context import PassContext
from relaylang.passes.infer_type import InferType
from relaylang.passes.layout.registry import (
    register_alter_op_layout,
    register_convert_op_layout,
    register_infer_correct_layout,
)
from relaylang.passes.manager import Pass, Sequential
from relaylang.passes.quantise.fake_quantization_own import (
    register_fake_quantization_to_integer,
    register_optional_fake_quantization_to_integer,
)
from relaylang.passes.quantise.legalizations import register_legalize
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.passes.simplify.canonicalize_ops import CanonicalizeOps
from relaylang.passes.simplify.dynamic_to_static import DynamicToStatic
from relaylang.passes.simplify.fold_constant import FoldConstant
from relaylang.passes.simplify.fold_scale_axis import FoldScaleAxis
from relaylang.passes.simplify.simplify_expr import SimplifyExpr
from relaylang.passes.simplify.simplify_inference import SimplifyInference
from relaylang.patterns import Graph, OpNamePattern, explain_match, find_match
from relaylang.patterns.explain import describe, progress
from relaylang.patterns.language import all_parts
from relaylang.rules.macs import RULES as MACS
from relaylang.typing import check


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Say something of an operator, under TVM's name for it; without `value` a decorator of a function.

    `target.<name>`: whether an accelerator takes a call as it is: a function of the call that gives True, or a sentence
    that says why not. `FTVMLegalize` and maps of your own that end so; `FTVMAlterOpLayout`, `FTVMConvertOpLayout`,
    `FInferCorrectLayout`, `FTVMFakeQuantizationToInteger`: as the functions `relaylang.transform.register_...`.
    Of several, the last registered counts.
    Raises `RelayError` for an operator or a key that is not known.
    """
    if find(op_name) is None:
        near = did_you_mean(op_name, operator_names())
        notes = [f"did you mean {near}?"] if near else []
        raise RelayError(error("R0219", f"there is no operator {op_name} to say something of", notes=notes))

    def add(function: Any) -> Any:
        if attr_key.startswith("target."):
            if not callable(function):
                raise RelayError(error("R0219", f"{attr_key} of {op_name} is a function of a call, not {function!r:.60}"))
            OP_SUPPORT.setdefault(attr_key.removeprefix("target."), {})[op_name] = function
        elif attr_key in _REGISTERS:
            _REGISTERS[attr_key](op_name, function)
        else:
            register_legalize(op_name, function, attr_key)
        return function

    known = attr_key.startswith("target.") or attr_key in _REGISTERS or attr_key.endswith("Legalize")
    if not known:
        notes = [f"there are target.<name>, FTVMLegalize, {', '.join(_REGISTERS)}"]
        raise RelayError(error("R0219", f"nothing here looks at {attr_key} of an operator", notes=notes))
    return add(value) if value is not None else add


_REGISTERS: dict[str, Callable[..., Any]] = {
    "FTVMAlterOpLayout": register_alter_op_layout,
    "FTVMConvertOpLayout": register_convert_op_layout,
    "FInferCorrectLayout": register_infer_correct_layout,
    "FTVMFakeQuantizationToInteger": register_fake_quantization_to_integer,
    "FTVMOptionalFakeQuantizationToInteger": register_optional_fake_quantization_to_integer,
}


def bind_params(mod: IRModule, params: Mapping[str, Any] | None, entry: str = "main") -> IRModule:
    """The module with values for parameters of its entry. Raises `RelayError` for one that does not fit."""
    if not params:
        return mod
    func: Function = mod[entry]
    values: dict[Any, Expr] = {}
    wrong = []
    for param in func.params:
        if param.name_hint not in params:
            continue
        array = np.asarray(params[param.name_hint])
        ty = param.checked_type or param.type_annotation
        if isinstance(ty, TensorType) and (ty.dtype != array.dtype.name or len(ty.shape) != array.ndim):
            wrong.append(error("R0514", f"%{param.name_hint} is `{ty!r}`, its value {array.dtype} {array.shape}", param.span))
        values[param] = Constant(array, param.span)
    if wrong:
        raise RelayError(wrong)
    rest = [p for p in func.params if p not in values]
    new = Function(rest, substitute(func.body, values), func.ret_type, func.type_params, func.attrs, func.span)  # type: ignore
    return mod.with_functions({**mod.functions, mod.get_global_var(entry): new})


@dataclass(frozen=True)
class Recipe:
    """How a program is made ready and partitioned for an accelerator, as TVM's `partition_for_...` does it.

    `prepare` are the passes before. `tuples` go into regions, too; regions that touch are merged with `merge`; with
    `worth` a region without a call of one of these operators is taken back.
    """

    prepare: Callable[[], Sequence[Pass]] = lambda: [FoldConstant(fold_qnn=True)]
    tuples: bool = True
    merge: bool = True
    worth: frozenset[str] = frozenset()


RECIPES: dict[str, Recipe] = {
    "bnns": Recipe(
        lambda: [SimplifyInference(), FoldConstant(), FoldScaleAxis(), DynamicToStatic(), FoldConstant()], merge=False
    ),
    # CanonicalizeOps: its rows have the bias as add.
    "dnnl": Recipe(
        lambda: [CanonicalizeOps(), SimplifyInference(), FoldConstant(), FoldScaleAxis(), SimplifyExpr(), FoldConstant()],
        worth=dnnl.COMPUTE,
    ),
    "cmsis-nn": Recipe(lambda: [FoldConstant()], merge=False),
    "arm_compute_lib": Recipe(tuples=False, merge=False),
}


def prepare(mod: IRModule, target: str, params: Mapping[str, Any] | None = None) -> IRModule:
    """The module as partitioning for a target takes it: parameters bound, constants folded, lets without effects put in
    place."""
    with PassContext(opt_level=4):
        passes = RECIPES.get(target, Recipe()).prepare()
        ready = Sequential([InferType(), *passes, InferType()])(bind_params(mod, params))
    effects = effects_of(ready)
    return per_function(ready, lambda func: place_lets(func, effects))


def partition(
    mod: IRModule,
    target: str,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    table: Sequence[Entry | tuple] | None = None,
    prune: bool = True,
) -> IRModule:
    """A module with what an accelerator takes in functions of their own, which are marked for it.

    `table` stands for the target's own. With `prune` regions that are not worth their way are taken back, where the
    target tells them. Raises `RelayError` for an unknown target and an ill-typed module.
    """
    rows = get_pattern_table(target) if table is None else as_entries(table)
    ready = prepare(mod, target, params)
    if target == "ethos-u" and table is None:
        done = _partition_ethosu(ready, prefix=f"tvmgen_{mod_name}_").module
        check(done)
        return done
    recipe = RECIPES.get(target, Recipe())
    steps = [MergeComposite(rows), AnnotateTarget(target, include_non_call_ops=recipe.tuples)]
    if recipe.merge:
        steps.append(MergeCompilerRegions())
    with PassContext(opt_level=4):
        done = Sequential([*steps, PartitionGraph(mod_name)])(ready)
    if prune and recipe.worth and sum(f.attrs.get("Compiler") == target for f in done.functions.values()) > 1:
        done = inline_regions(done, target, lambda func: not calls_one_of(func, recipe.worth))
        check(done)
    return done


Params = Mapping[str, Any] | None  # values by the names of parameters of @main


def partition_for_ethosn(mod: IRModule, params: Params = None, **opts: Any) -> IRModule:
    """The module partitioned for an Arm Ethos-N; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "ethos-n", params)


def partition_for_ethosu(mod: IRModule, params: Params = None, mod_name: str = "default", **opts: Any) -> IRModule:
    """The module partitioned for an Arm Ethos-U; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "ethos-u", params, mod_name)


def partition_for_bnns(mod: IRModule, params: Params = None) -> IRModule:
    """The module partitioned for Apple's BNNS; see `partition`. Regions are single calls and composites, as in TVM."""
    return partition(mod, "bnns", params)


def partition_for_dnnl(
    mod: IRModule, params: Params = None, alter_layout: bool = False, prune_subgraphs: bool = True
) -> IRModule:
    """The module partitioned for oneDNN; see `partition`. Without `prune_subgraphs` regions stay that have no product in
    them. Layouts stay as they are: `alter_layout`, which TVM asks the library for, is not there."""
    if alter_layout:
        raise RelayError(error("R0501", "partition_for_dnnl has no alter_layout: layouts stay as they are"))
    return partition(mod, "dnnl", params, prune=prune_subgraphs)


def partition_for_cmsisnn(mod: IRModule, params: Params = None, mod_name: str = "default", **opts: Any) -> IRModule:
    """The module partitioned for CMSIS-NN; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "cmsis-nn", params, mod_name)


def partition_for_arm_compute_lib(
    mod: IRModule, params: Params = None, disabled_ops: Sequence[str] = ("concatenate",), **opts: Any
) -> IRModule:
    """The module partitioned for the Arm Compute Library; see `partition`. Rows of `disabled_ops` take nothing."""
    return partition(mod, "arm_compute_lib", params, table=arm_compute_lib.pattern_table(disabled_ops))


# ---- the report


@dataclass(frozen=True)
class Row:
    """What became of one call: `region` is the function that it went to, or None; then `pattern` is the row that came
    nearest, and `reason` says what refused it. `place` is the call's, or that of the next one behind it that has one."""

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
    main: Function = ready[entry]
    graph = Graph(main)
    calls = [n for n in graph.order if isinstance(n, Call) and isinstance(n.op, Op)]
    where, not_worth = _followed(ready, done, target, entry, calls)
    chosen = choose(main, table, graph.order)
    refused: dict[int, tuple[str, str]] = {}
    for refusal in chosen.refusals:
        found = find_match(refusal.entry.pattern, refusal.root, graph)
        for node in found.nodes if found is not None else (refusal.root,):
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
            reason = not_worth.get(number, "it could go, but its region has no product in it and is not worth the way")
            rows.append(Row(node, node.op.name, None, "", taken.get(id(node), ""), reason, place=place))
        else:
            rows.append(replace(_stays(node, graph, table, target, refused), place=place))
    order = sorted(range(len(rows)), key=lambda i: _position(rows[i].place, i))
    return [rows[i] for i in order]


def _position(place: Span | None, number: int) -> tuple[int, int]:
    return (place.line, number) if place is not None else (1 << 30, number)


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


def _followed(
    ready: IRModule, done: IRModule, target: str, entry: str, calls: Sequence[Call]
) -> tuple[dict[int, tuple[str, str]], dict[int, str]]:
    """Where each call went, by its number: the region's function and the composite; and what was not worth the way.

    Several calls may stand for one place of the text. So a copy of the program is partitioned in which each call has a
    place of its own; regions are numbered alike.
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
    not_worth: dict[int, str] = {}
    if target == "ethos-u":
        parts = _partition_ethosu(prepare(marked, target))
        again = parts.module
        for note in parts.notes:
            reason = note.title.partition(" stays on the host: ")[2]
            if note.span is not None and note.span.source is tag and "not worth" in reason:
                not_worth[note.span.first] = reason
    else:
        again = partition(marked, target)

    def regions(mod: IRModule) -> list[tuple[str, Function]]:
        return [(gv.name_hint, f) for gv, f in mod.functions.items() if f.attrs.get("Compiler") == target]

    names = [name for name, _ in regions(done)]
    where: dict[int, tuple[str, str]] = {}
    for i, (name, func) in enumerate(regions(again)):
        name = names[i] if i < len(names) else name
        inside: dict[int, str] = {}
        for node in post_order(func):
            if isinstance(node, Function) and "Composite" in node.attrs:
                inside.update({id(n): str(node.attrs["Composite"]) for n in post_order(node)})
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
    best: tuple[int, str, str, Span | None] | None = None
    for root in _above(node, graph):
        for row in rows:
            found = explain_match(row.pattern, root, graph)
            if found:
                continue  # it matches there, and was taken for something else
            inside = any(n is node for n in found.met)
            met = 2 * progress(found) + inside - (root is node and not inside)
            touches = inside or found.failed_at is node or root is node
            if touches and (best is None or met > best[0]):
                at = found.failed_at.span if found.failed_at is not None else None
                said = str(found)
                if root is node and not found.met and " is wanted, and it is " in said:
                    said = f"{said.partition(' is wanted, ')[0]} is wanted behind it, and {_behind(node, graph)}"
                best = (met, row.name, said, at or node.span)
    if best is None:
        return Row(node, name, None, "", rows[0].name, "it is used outside of the pattern, or another row has its operands")
    return Row(node, name, None, "", *best[1:])


def _behind(node: Expr, graph: Graph) -> str:
    """What uses a node, in a few words."""
    users = [u for u in graph.users.get(id(node), ()) if u is not graph.root]
    if not users:
        return "it is the result"
    return f"{describe(users[0])} follows" if len(users) == 1 else f"{len(users)} calls follow"


def _above(node: Expr, graph: Graph, levels: int = 5, most: int = 12) -> list[Expr]:
    """A node and what uses it, a few levels down the data flow."""
    found, level, seen = [node], [node], {id(node)}
    for _ in range(levels):
        level = [u for n in level for u in graph.users.get(id(n), ()) if id(u) not in seen and isinstance(u, Call)]
        seen.update([id(u) for u in level])
        found += level
        if len(found) >= most:
            break
    return found[:most]


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
        place = str(row.place) if row.place is not None else "-"
        if row.region is not None:
            cells.append((place, row.name, row.region, row.composite))
        else:
            at = ""
            if row.refused_at is not None and row.place is not None and row.refused_at.line != row.place.line:
                at = f" (line {row.refused_at.line})"
            cells.append((place, row.name, "host", f"{row.pattern + ': ' if row.pattern else ''}{row.reason}{at}"))
    head = ("place", "call", "goes to", "composite, or what refused it")
    widths = [max(len(c[i]) for c in [head, *cells]) for i in range(3)]
    lines = ["  ".join([*[c[i].ljust(widths[i]) for i in range(3)], c[3]]).rstrip() for c in [head, *cells]]
    return "\n".join([*lines, "", summary(rows, target), *_reasons(rows), *hints(rows, target)])


def _reasons(rows: Sequence[Row], least: int = 20, most: int = 5) -> list[str]:
    """The commonest reasons, where many calls stay."""
    said = [f"{row.pattern + ': ' if row.pattern else ''}{row.reason}" for row in rows if row.region is None]
    if len(said) < least:
        return []
    common = [(n, reason) for reason, n in Counter(said).most_common(most) if n > 2]
    return ["of those that stay:", *[f"{n:6d}  {reason}" for n, reason in common]] if common else []


_INTEGERS = ("ethos-u", "ethos-n", "cmsis-nn")


def hints(rows: Sequence[Row], target: str) -> list[str]:
    """What would make more calls go, as far as the reasons say it."""
    stay = [row for row in rows if row.region is None]
    found = []
    if target in _INTEGERS and not any(row.name.startswith("qnn.") for row in rows):
        found.append(f"hint: {target} takes quantized programs, and this one has no qnn operators")
    wanted = {row.name for row in stay if "layout is 'NCHW'; it takes 'NHWC'" in row.reason and "conv2d" in row.name}
    if wanted:
        layouts = ", ".join(f'"{name}": ["NHWC", "default"]' for name in sorted(wanted))
        found.append(f"hint: relay opt --passes 'ConvertLayout({{{layouts}}})' brings convolutions into NHWC")
    constant = sum(any(w in row.reason for w in ("not a constant", "a constant is wanted")) for row in stay)
    if constant:
        calls = "call wants" if constant == 1 else "calls want"
        found.append(f"hint: {constant} {calls} constants; --params or --random-params gives parameters their values")
    return ["", *found] if found else []


__all__ = [
    "PATTERN_TABLES", "RECIPES", "Recipe", "Row", "bind_params", "explain", "get_pattern_table", "hints", "partition",
    "partition_for_arm_compute_lib", "partition_for_bnns", "partition_for_cmsisnn", "partition_for_dnnl",
    "partition_for_ethosn", "partition_for_ethosu", "prepare", "register_op_attr", "register_pattern_table", "summary",
    "table_text",
]  # fmt: skip
