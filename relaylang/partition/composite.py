"""Merging composites: subgraphs that a pattern table names become calls of functions with a `Composite` attribute."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from relaylang.diagnostics import Diagnostic, Label, RelayError, error
from relaylang.ir import Call, Constant, Expr, Function, TupleGetItem, Var, children, post_order, rebuild
from relaylang.ir import Tuple as TupleExpr
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.partition.scope import scope_nodes, user_map
from relaylang.passes.manager import raised_in
from relaylang.patterns import DFPattern, Match, find_match

#: Says whether the accelerator takes a matched subgraph: True or None for yes; False or a reason for no.
Check = Callable[[Match], "bool | str | None"]


@dataclass(frozen=True)
class Entry:
    """A row of a pattern table: the composite's name, its pattern, and what else must hold."""

    name: str
    pattern: DFPattern
    check: Check | None = None

    def __iter__(self) -> Iterator[Any]:
        """The row as TVM has it: `for name, pattern, *check in table`."""
        return iter((self.name, self.pattern) if self.check is None else (self.name, self.pattern, self.check))

    def __getitem__(self, index: int) -> Any:
        return tuple(self)[index]


@dataclass
class Refusals:
    """Why an expression was not taken, by the identity of the node at which the pattern matched."""

    reasons: dict[int, str] = field(default_factory=dict)
    nodes: dict[int, Expr] = field(default_factory=dict)

    def add(self, node: Expr, reason: str) -> None:
        self.nodes.setdefault(id(node), node)
        self.reasons.setdefault(id(node), reason)

    def of(self, node: Expr) -> str | None:
        return self.reasons.get(id(node))


def as_entries(table: Iterable[Entry | tuple]) -> list[Entry]:
    """Rows as TVM writes them, `(name, pattern)` or `(name, pattern, check)`, or entries.

    Raises `RelayError` (R0519) for what is no such row.
    """
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes)):
        raise RelayError(error("R0519", f"a pattern table is a list of rows, not {_what(table)}"))
    entries = []
    wrong = []
    for number, row in enumerate(table, 1):
        if isinstance(row, Entry):
            entries.append(row)
            continue
        said = _row_problem(row)
        if said is not None:
            notes = ['a row is ("accelerator.composite", pattern) or ("accelerator.composite", pattern, check)']
            wrong.append(error("R0519", f"row {number} of the pattern table {said}", notes=notes))
            continue
        name, pattern, *rest = row
        entries.append(Entry(name, pattern, _checks_root(rest[0]) if rest and rest[0] is not None else None))
    if wrong:
        raise RelayError(wrong)
    return entries


def _what(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


def _row_problem(row: object) -> str | None:
    if not isinstance(row, (tuple, list)):
        return f"is {_what(row)}"
    if len(row) not in (2, 3):
        return f"has {len(row)} parts"
    name, pattern, *rest = row
    if not isinstance(name, str):
        return f"has {_what(name)} for its name"
    if not isinstance(pattern, DFPattern):
        return f"({name}) has {_what(pattern)} for its pattern"
    if rest and rest[0] is not None and not callable(rest[0]):
        return f"({name}) has {_what(rest[0])} for its check"
    return None


def _checks_root(check: Callable[[Expr], bool | str | None]) -> Check:
    """A check of the matched root, as TVM's tables have it; it may also say why not."""
    name = getattr(check, "__name__", "<lambda>")

    def asks(match: Match) -> bool | str | None:
        verdict = check(match.root)
        if verdict is None:
            return f"{'its check' if name == '<lambda>' else name} returned nothing (None), which is no yes"
        return verdict

    asks.__name__ = name
    return asks


def asked_about(said: Diagnostic, node: Expr) -> Diagnostic:
    """A diagnostic of a check with the place of what it was asked about."""
    if node.span is None:
        return said
    return replace(said, labels=(*said.labels, Label(node.span, "it was asked about this", not said.labels)))


def refusal(entry: Entry, found: Match) -> str | None:
    """Why a row does not take what its pattern matched; None where it does. Raises `RelayError` where its check fails."""
    if entry.check is None:
        return None
    try:
        verdict = entry.check(found)
        taken = verdict is None or (not isinstance(verdict, str) and bool(verdict))
    except RelayError:
        raise
    except (KeyboardInterrupt, MemoryError, SystemExit):
        raise
    except Exception as problem:
        raise RelayError(asked_about(raised_in(entry.name, problem, "the check of"), found.root)) from problem
    if taken:
        return None
    name = getattr(entry.check, "__name__", "<lambda>")
    return verdict if isinstance(verdict, str) else f"{entry.name if name == '<lambda>' else name} does not take it"


def merge_composites(
    func: Function, table: Iterable[Entry | tuple], refusals: Refusals | None = None
) -> Function:
    """Replace what the table's patterns match in the function's outermost scope by calls of composite functions.

    Consumers come first, and at each node the table's order decides, so that the largest pattern wins. A subgraph is
    taken only where nothing outside uses its inner values. Constants go into the composite. Reasons for what a check
    refused are added to `refusals`. Types must be there; those of new nodes are left for the checker.
    """
    entries = as_entries(table)
    order = scope_nodes(func.body)
    here = {id(node) for node in order}
    users = user_map(func.body)
    claimed: set[int] = set()
    roots: dict[int, tuple[Entry, Match]] = {}
    for node in reversed(order):
        if id(node) in claimed or not isinstance(node, (Call, TupleGetItem)):
            continue
        for entry in entries:
            found = find_match(entry.pattern, node)
            if found is None or not _separable(found, here, claimed, users):
                continue
            reason = refusal(entry, found)
            if reason is not None:
                if refusals is not None:
                    refusals.add(node, reason)
                continue
            roots[id(node)] = (entry, found)
            claimed.update(id(inner) for inner in found.nodes)
            break
    if not roots:
        return func
    done: dict[int, Expr] = {}
    for node in post_order(func.body):
        if id(node) in roots:
            done[id(node)] = retype(_composite_call(*roots[id(node)], done), node)
        else:
            done[id(node)] = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            if refusals is not None and id(node) in refusals.reasons:
                refusals.add(done[id(node)], refusals.reasons[id(node)])
    return Function(func.params, done[id(func.body)], func.ret_type, func.type_params, func.attrs, func.span)


def _separable(found: Match, here: set[int], claimed: set[int], users: dict[int, list[Expr]]) -> bool:
    inside = {id(node) for node in found.nodes}
    for node in found.nodes:
        if id(node) not in here or id(node) in claimed:
            return False
        if node is not found.root and any(id(user) not in inside for user in users.get(id(node), ())):
            return False
    return True


def _composite_call(entry: Entry, found: Match, done: dict[int, Expr]) -> Call:
    inputs = [node for node in found.inputs if not isinstance(node, (Constant, Op))]
    new: dict[int, Expr] = {}
    params = []
    for i, node in enumerate(inputs):
        param = retype(Var(f"in{i}", node.checked_type, node.span), node)
        params.append(param)
        new[id(node)] = param
    for node in found.nodes:
        new[id(node)] = retype(rebuild(node, tuple([new.get(id(c), c) for c in children(node)])), node)
    names = [n.op.name for n in found.nodes if isinstance(n, Call) and isinstance(n.op, Op)]
    attrs = {"PartitionedFromPattern": "".join(f"{name}_" for name in names), "Composite": entry.name}
    func = Function(params, new[id(found.root)], found.root.checked_type, (), attrs, found.root.span)
    return Call(func, [done[id(node)] for node in inputs], None, (), found.root.span)


def composite_name(node: Expr) -> str | None:
    """The name of the composite that a call calls, or None."""
    if isinstance(node, Call) and isinstance(node.op, Function):
        return node.op.attrs.get("Composite")
    return None


def composite_nodes(func: Function) -> list[Expr]:
    """A composite's calls, tuples and projections, producers first."""
    return [node for node in post_order(func.body) if isinstance(node, (Call, TupleExpr, TupleGetItem))]
