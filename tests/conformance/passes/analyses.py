"""Analyses beside TVM's: the same answers on generated programs, on the golden networks, and on programs that are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import relaylang as relay
from relaylang import analysis
from relaylang.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    TensorType,
    Tuple,
    Var,
    const,
    post_order,
)
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.analysis import call_graph, recursive_functions
from relaylang.transform import InferType
from relaylang.typing import check
from tests.conformance.passes import specs
from tests.conformance.passes.graph import written

SEEDS = 12
#: How answers may differ from TVM's, and why.
REASONS: dict[tuple[str, str], str] = {
    ("bound_type_vars", "different"): "TVM counts the variables of a type's definition again at every constructor of it",
    ("all_type_vars", "different"): "TVM counts the variables of a type's definition at its constructors, and does not look at "
    "the types of the functions that are named",
    ("extract_intermdeiate_expr", "TVM refuses"): "TVM leaves the definitions of types out of the module that it makes",
    ("get_total_mac_number", "different"): "TVM counts no products of the qnn dialect",
    ("check_basic_block_normal_form", "different"): "TVM takes a function that calls itself by the name of its let for a block that "
    "uses what another one defines; its ToBasicBlockNormalForm leaves such functions as they are, as ours",
}


def names(mod: IRModule) -> list[Function]:
    return [mod[name] for name in sorted(gv.name_hint for gv in mod.functions)]


def label(n: Expr) -> str:
    if isinstance(n, (Var, GlobalVar, Constructor)):
        return n.name_hint
    if isinstance(n, Op):
        return n.name
    kinds = {"TupleGetItem": "field", "RefCreate": "ref", "RefRead": "read", "RefWrite": "write"}
    return kinds.get(type(n).__name__, type(n).__name__.lower())


def visited(func: Function) -> list[str]:
    order: list[str] = []
    analysis.post_order_visit(func, lambda n: order.append(label(n)))
    return order


def hints(variables: list[Any]) -> list[str]:
    return [v.name_hint for v in variables]


def shape(pattern: Pattern) -> str:
    """A pattern as text."""
    parts = f"({', '.join(map(shape, pattern.patterns))})" if isinstance(pattern, (PatternConstructor, PatternTuple)) else "_"
    if isinstance(pattern, PatternConstructor):
        return pattern.constructor.name_hint + (parts if pattern.patterns else "")
    return parts


def cases(mod: IRModule) -> list[list[str]]:
    matches = [n for f in names(mod) for n in post_order(f) if isinstance(n, Match)]
    return [[shape(p) for p in analysis.unmatched_cases(m, mod)] for m in matches]


def graph(mod: IRModule) -> dict[str, list[Any]]:
    """How many functions name each one, and whether it calls itself, perhaps through others."""
    named: Counter[str] = Counter()
    for calls in call_graph(mod).values():
        named.update({gv.name_hint for gv in calls})
    recursive = {gv.name_hint for gv in recursive_functions(mod)}
    return {gv.name_hint: [named[gv.name_hint], gv.name_hint in recursive] for gv in mod.functions}


def kernels(mod: IRModule) -> list[list[str]]:
    found = analysis.extract_fused_functions(mod).values()
    return sorted(sorted(n.op.name for n in post_order(f) if isinstance(n, Call) and isinstance(n.op, Op)) for f in found)


def part(number: int) -> Callable[[IRModule], list[str]]:
    return lambda mod: visited(analysis.extract_intermdeiate_expr(mod, number)["main"].body)


ANALYSES: dict[str, Callable[[IRModule], Any]] = {
    "free_vars": lambda mod: [hints(analysis.free_vars(f.body)) for f in names(mod)],
    "bound_vars": lambda mod: [hints(analysis.bound_vars(f)) for f in names(mod)],
    "all_vars": lambda mod: [hints(analysis.all_vars(f)) for f in names(mod)],
    "free_type_vars": lambda mod: [hints(analysis.free_type_vars(f.body, mod)) for f in names(mod)],
    "bound_type_vars": lambda mod: [hints(analysis.bound_type_vars(f, mod)) for f in names(mod)],
    "all_type_vars": lambda mod: [hints(analysis.all_type_vars(f, mod)) for f in names(mod)],
    "all_dtypes": lambda mod: [sorted(analysis.all_dtypes(f)) for f in names(mod)],
    "well_formed": lambda mod: [analysis.well_formed(f) for f in names(mod)],
    "unmatched_cases": cases,
    "get_total_mac_number": lambda mod: analysis.get_total_mac_number(mod["main"]),
    "detect_feature": lambda mod: sorted(int(f) for f in analysis.detect_feature(mod)),
    "list_op_freqs": lambda mod: dict(sorted(analysis.list_op_freqs(mod["main"]).items())),
    "post_order_visit": lambda mod: [visited(f) for f in names(mod)],
    "extract_fused_functions": kernels,
    "extract_intermdeiate_expr": part(3),
    "call_graph": graph,
    "check_constant": lambda mod: [analysis.check_constant(f.body) for f in names(mod)],
    "check_basic_block_normal_form": lambda mod: [analysis.check_basic_block_normal_form(f) for f in names(mod)],
}

# ---- programs


def ill_formed() -> list[IRModule]:
    """Variables bound twice, used where nothing binds them, or before they are bound."""
    ty = TensorType((2,))

    def main(make: Callable[[Var, Var], Expr]) -> IRModule:
        x, y = Var("x", ty), Var("y", ty)
        return IRModule.from_expr(Function([x], make(x, y)))

    def tanh(v: Expr) -> Expr:
        return op_call("tanh", [v])

    return [
        main(lambda x, y: Let(y, tanh(x), Let(y, tanh(x), y))),
        main(lambda x, y: Tuple([Let(y, tanh(x), y), Let(y, tanh(x), y)])),
        main(lambda x, y: Tuple([Let(y, tanh(x), y), y])),
        main(lambda x, y: If(const(True), Let(y, tanh(x), y), Let(y, tanh(x), y))),
        main(lambda x, y: Let(y, tanh(y), y)),
        main(lambda x, y: Call(Function([x], tanh(x)), [x])),
        main(lambda x, y: Let(y, tanh(x), tanh(y))),
    ]


MATCHES = [
    "Link(_, _) => 1, End => 2",
    "Link(_, End) => 1",
    "Link(_, Link(_, _)) => 1, End => 2",
    "Link(Boxed(_), End) => 1, Link(_, Link(_, End)) => 2",
    "_ => 1",
    "End => 1",
    "Link(_, Link(_, Link(_, _))) => 1",
]


def matches() -> list[IRModule]:
    text = """type Chain[A] {{ Link(A, Chain[A]), End }}
    type Box[A] {{ Boxed(A) }}
    def @main(%l: Chain[Box[int32]]) -> int32 {{ match? (%l) {{ {} }} }}"""
    made = [relay.parse(text.format(clauses)) for clauses in MATCHES]
    for mod in made:
        check(mod)
    return made


@dataclass
class Beside:
    """One analysis of one program: what TVM says and what we say."""

    analysis: str
    kind: str
    seed: int
    theirs: Any
    ours: Any
    verdict: str = ""


KINDS = ("control", "functions", "references", "all", "images", "parallel convolutions", "dense", "qnn", "rewrites", "marked")


def programs(seeds: int = SEEDS) -> list[tuple[str, int, IRModule]]:
    made = [(kind, seed, specs.program(kind, seed)) for kind in KINDS for seed in range(seeds)]
    made += [("matches", i, mod) for i, mod in enumerate(matches())]
    made += [("ill formed", i, mod) for i, mod in enumerate(ill_formed())]
    return made


def asked(kind: str) -> list[str]:
    if kind == "ill formed":
        return ["well_formed"]
    no = {"extract_fused_functions"} if kind in ("matches", "qnn", "functions", "references", "all") else set()
    return [a for a in ANALYSES if a not in no]


def ours(name: str, mod: IRModule) -> Any:
    try:
        return ANALYSES[name](mod)
    except relay.RelayError as problem:
        return {"refused": problem.diagnostics[0].title}


def verdict(name: str, theirs: Any, mine: Any) -> str:
    if isinstance(theirs, dict) and ("refused" in theirs or "crashed" in theirs):
        return "both refuse" if isinstance(mine, dict) and "refused" in mine else "TVM refuses"
    theirs = theirs["value"]
    if theirs == mine:
        return "same"
    if isinstance(mine, list) and all(isinstance(m, list) for m in mine) and [sorted(t) for t in theirs] == [sorted(m) for m in mine]:
        return "another order"
    return "different"


def compare(oracle: str, seeds: int = SEEDS) -> list[Beside]:
    from tests.conformance.passes.record import ask, networks

    todo = programs(seeds)
    todo += [("network", i, InferType()(relay.fromtext(p.read_text()))) for i, p in enumerate(networks().values())]
    pairs = [(kind, seed, mod, name) for kind, seed, mod in todo for name in asked(kind)]
    requests = [{"graph": written(mod), "pass": f"analysis {name}", "typed": kind != "ill formed"} for kind, _, mod, name in pairs]
    made = []
    for (kind, seed, mod, name), said in zip(pairs, ask(oracle, requests)):
        mine = ours(name, mod)
        made.append(Beside(name, kind, seed, said, mine, verdict(name, said, mine)))
    return made


def table(found: list[Beside]) -> str:
    verdicts = ["another order", "different", "both refuse", "TVM refuses"]
    out = ["## Analyses\n", f"| analysis | programs | same answer | {' | '.join(verdicts)} |"]
    out.append("|---" * (3 + len(verdicts)) + "|")
    for name in ANALYSES:
        count = Counter(b.verdict for b in found if b.analysis == name)
        cells = [sum(count.values()), *[count[v] for v in ["same", *verdicts]]]
        out.append(f"| {name} | " + " | ".join(str(c) if c else "" for c in cells) + " |")
    out.append("")
    out += [f"- **{name}**, {which}: {why}." for (name, which), why in REASONS.items()]
    out.append("- TVM and we refuse to extract an expression of a number that there is not.")
    return "\n".join(out) + "\n"


def recorded(found: list[Beside]) -> list[Any]:
    """TVM's answers on the programs of the first seeds."""
    first = [b for b in found if b.seed < 3 and b.kind != "network" and b.verdict == "same"]
    return [[b.analysis, b.kind, b.seed, b.theirs["value"]] for b in first]
