"""Analyses of programs: variables, operators, features, multiplications, and whether a program is well-formed.

Nothing here changes a program, and nothing recurses on its depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from enum import IntEnum
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Pattern,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeVar,
    Var,
    children,
    free_vars,
    pattern_vars,
    post_order,
    visit_order,
)
from relaylang.ir.extents import names_in
from relaylang.ir.types import RefType, TypeCall, type_children
from relaylang.ops.record import Op
from relaylang.passes.normal_forms.to_basic_block_normal_form import is_bbnf
from relaylang.passes.rewriting import is_primitive
from relaylang.rules.macs import RULES as MACS
from relaylang.typing.exhaustive import missing_patterns

Node = IRModule | Expr


def _roots(node: Node) -> list[Expr]:
    if isinstance(node, IRModule):
        return [f for f in node.functions.values() if f.body is not None]
    return [node]


# ---- well-formedness


def well_formed_problems(node: Node) -> list[Diagnostic]:
    """The errors in the variables of a module or expression: a variable bound twice, or used where nothing binds it.

    An expression's own free variables are wrong only in a module's function.
    """
    problems: list[Diagnostic] = []
    binders: dict[Var, Expr] = {}
    for root in _roots(node):
        _check_scopes(root, binders, problems, closed=isinstance(node, IRModule))
    return problems


_OUTSIDE = "is used outside the scope of its binding"


def _misbound(owner: Expr, variables: Sequence[Var], binders: dict[Var, Expr], free: Set[Var]) -> Iterator[Diagnostic]:
    """The errors of variables that a node binds. Notes it as their binder."""
    for var in variables:
        says = "is bound more than once" if var in binders else _OUTSIDE if var in free else ""
        if says:
            yield error("R0509", f"%{var.name_hint} {says}", var.span or owner.span)
        binders[var] = owner


def _check_scopes(root: Expr, binders: dict[Var, Expr], problems: list[Diagnostic], closed: bool) -> None:
    scope: set[Var] = set()
    free: set[Var] = set()
    seen: set[int] = set()
    # (what to do, with what): visit a node, bind or unbind variables.
    stack: list[tuple[str, Any]] = [("visit", root)]
    while stack:
        step, item = stack.pop()
        if step == "bind":
            owner, variables = item
            problems += _misbound(owner, variables, binders, free)
            scope.update(variables)
            continue
        if step == "unbind":
            scope.difference_update(item)
            continue
        if isinstance(item, Var):
            if item not in scope:
                says = _OUTSIDE if item in binders else "is not bound" if closed and item not in free else ""
                if says:
                    problems.append(error("R0509", f"%{item.name_hint} {says}", item.span))
                free.add(item)
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Function):
            if item.body is not None:
                stack += [("unbind", item.params), ("visit", item.body), ("bind", (item, item.params))]
        elif isinstance(item, Let):
            mine = (item.variable,)
            stack += [("unbind", mine), ("visit", item.body), ("visit", item.value), ("bind", (item, mine))]
        elif isinstance(item, Match):
            for clause in reversed(item.clauses):
                bound = tuple(pattern_vars(clause.lhs))
                stack += [("unbind", bound), ("visit", clause.rhs), ("bind", (item, bound))]
            stack.append(("visit", item.data))
        else:
            stack.extend([("visit", c) for c in reversed(children(item))])


def well_formed(node: Node) -> bool:
    """Whether every variable is bound once, where it is in scope."""
    return not well_formed_problems(node)


def check_basic_block_normal_form(expr: Expr) -> bool:
    """Whether every node is first needed in the innermost block around all its uses. Then ToBasicBlockNormalForm
    changes nothing.
    """
    return is_bbnf(expr)


# ---- types


def _types_of(node: Node) -> Iterator[Type]:
    """Every type that stands in a program: annotations, type arguments, found types. Binders come where TVM meets them."""
    for root in _roots(node):
        for item in visit_order(root):
            if isinstance(item, Var) and item.type_annotation is not None:
                yield item.type_annotation
            if item.checked_type is not None and not isinstance(item, Op):
                yield item.checked_type
            if isinstance(item, Function) and item.ret_type is not None:
                yield item.ret_type
            elif isinstance(item, Match):
                for var in [v for c in item.clauses for v in pattern_vars(c.lhs)]:
                    yield from [t for t in (var.type_annotation, var.checked_type) if t is not None]
            elif isinstance(item, Call):
                yield from item.type_args


def _type_vars_in(types: Iterator[Type]) -> tuple[dict[TypeVar, None], dict[TypeVar, None], dict[TypeVar, None]]:
    """All type variables, those that function types bind, and those that occur where none around them does."""
    occurring: dict[TypeVar, None] = {}
    bound: dict[TypeVar, None] = {}
    free: dict[TypeVar, None] = {}
    seen: set[tuple[int, frozenset[TypeVar]]] = set()
    keep: list[Type] = []
    for ty in types:
        stack: list[tuple[Type, frozenset[TypeVar]]] = [(ty, frozenset())]
        while stack:
            t, inside = stack.pop()
            if (id(t), inside) in seen:
                continue
            seen.add((id(t), inside))
            keep.append(t)
            variables = [t] if isinstance(t, TypeVar) else []
            if isinstance(t, TensorType):
                variables = [name for d in t.shape if isinstance(d, TypeVar) for name in names_in(d)]
            for variable in variables:
                occurring[variable] = None
                if variable not in inside:
                    free[variable] = None
            if isinstance(t, FuncType) and t.type_params:
                bound.update(dict.fromkeys(t.type_params))
                inside |= frozenset(t.type_params)
            if not variables:
                stack.extend([(c, inside) for c in reversed(type_children(t))])
    return occurring, bound, free


def bound_type_vars(node: Node | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables that functions (or function types) inside bind, each once."""
    if isinstance(node, Type):
        return list(_type_vars_in(iter([node]))[1])
    variables: dict[TypeVar, None] = {}
    for root in _roots(node):
        for item in post_order(root):
            if isinstance(item, Function):
                variables.update(dict.fromkeys(item.type_params))
    return list(variables)


def all_type_vars(node: Node | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """Every type variable that is bound or occurs, each once, those that are bound first."""
    if isinstance(node, Type):
        occurring, bound, _ = _type_vars_in(iter([node]))
    else:
        occurring, bound, _ = _type_vars_in(_types_of(node))
        bound = {**bound, **dict.fromkeys(bound_type_vars(node))}
    return list({**bound, **occurring})


def free_type_vars(node: Node | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables that occur and that no function around them binds, each once."""
    if isinstance(node, Type):
        return list(_type_vars_in(iter([node]))[2])
    bound = dict.fromkeys(bound_type_vars(node))
    return [t for t in _type_vars_in(_types_of(node))[2] if t not in bound]


def all_dtypes(node: Node) -> set[str]:
    """The element types of the tensors in a typed program."""
    return {t.dtype for ty in _types_of(node) for t in flat_types(ty) if isinstance(t, TensorType)}


def flat_types(ty: Type) -> Iterator[Type]:
    """A type and those inside it, each once."""
    stack = [ty]
    seen: set[int] = set()
    while stack:
        t = stack.pop()
        if id(t) in seen:
            continue
        seen.add(id(t))
        yield t
        if isinstance(t, (TupleType, FuncType, RefType, TypeCall)):
            stack.extend(reversed(type_children(t)))


def check_constant(expr: Expr) -> bool:
    """Whether an expression is a constant, or tuples of constants."""
    return all(isinstance(n, (Constant, Tuple)) for n in post_order(expr))


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns that take every value that a match does not cover. The list is empty where the match covers everything."""
    return list(missing_patterns(match.clauses, mod.type_definitions if mod is not None else {}))


# ---- operators and functions


def extract_operators(mod: Node) -> dict[str, int]:
    """How often each operator is called, by name, in fused functions and composites too."""
    counts: dict[str, int] = {}
    for root in _roots(mod):
        for node in post_order(root):
            if isinstance(node, Call) and isinstance(node.op, Op):
                counts[node.op.name] = counts.get(node.op.name, 0) + 1
    return counts


list_op_freqs = extract_operators


def call_graph(mod: IRModule) -> dict[GlobalVar, dict[GlobalVar, int]]:
    """For each function of a module the functions that it names, with how many nodes name each."""
    graph: dict[GlobalVar, dict[GlobalVar, int]] = {}
    for gv, func in mod.functions.items():
        calls: dict[GlobalVar, int] = {}
        if func.body is not None:
            for node in post_order(func.body):
                for child in children(node):
                    if isinstance(child, GlobalVar):
                        calls[child] = calls.get(child, 0) + 1
            if isinstance(func.body, GlobalVar):
                calls[func.body] = calls.get(func.body, 0) + 1
        graph[gv] = calls
    return graph


def reachable(mod: IRModule, entries: list[GlobalVar]) -> list[GlobalVar]:
    """The functions that some may call, directly or not, themselves among them, in the module's order."""
    graph = call_graph(mod)
    by_name = {gv.name_hint: gv for gv in graph}
    seen = set(entries)
    stack = list(entries)
    while stack:
        for callee in graph.get(stack.pop(), {}):
            known = callee if callee in graph else by_name.get(callee.name_hint, callee)
            if known not in seen:
                seen.add(known)
                stack.append(known)
    return [gv for gv in graph if gv in seen]


def recursive_functions(mod: IRModule) -> set[GlobalVar]:
    """The functions that may call themselves, directly or through others."""
    graph = call_graph(mod)
    number: dict[GlobalVar, int] = {}
    low: dict[GlobalVar, int] = {}
    path: list[GlobalVar] = []
    on_path: set[GlobalVar] = set()
    recursive: set[GlobalVar] = set()
    for start in graph:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        path.append(start)
        on_path.add(start)
        work: list[tuple[GlobalVar, Iterator[GlobalVar]]] = [(start, iter(graph[start]))]
        while work:
            gv, rest = work[-1]
            for callee in rest:
                if callee not in graph:
                    continue
                if callee == gv:
                    recursive.add(gv)
                if callee not in number:
                    number[callee] = low[callee] = len(number)
                    path.append(callee)
                    on_path.add(callee)
                    work.append((callee, iter(graph[callee])))
                    break
                if callee in on_path:
                    low[gv] = min(low[gv], number[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[gv])
                if low[gv] == number[gv]:
                    group = []
                    while True:
                        member = path.pop()
                        on_path.discard(member)
                        group.append(member)
                        if member is gv:
                            break
                    if len(group) > 1:
                        recursive.update(group)
    return recursive


def get_total_mac_number(expr: Node) -> int:
    """Multiply-accumulates of a typed program's convolutions and matrix products; open shapes count 0."""
    total = 0
    for root in _roots(expr):
        for node in post_order(root):
            if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in MACS:
                total += MACS[node.op.name](node)
    return total


class Feature(IntEnum):
    """What a program uses, numbered as TVM does. `fGraph`: some compound node is shared; `fLetRec`: a recursive let."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_KIND: dict[type, Feature] = {
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Op: Feature.fOp,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}
_ATOMS = (Var, GlobalVar, Op, Constructor, Constant)


def detect_feature(a: Node, b: IRModule | None = None) -> set[Feature]:
    """The features of an expression or a module (with `b`, an expression and its module). Primitive functions are not
    looked into."""
    features: set[Feature] = set()
    seen: set[int] = set()
    roots = _roots(a) + (_roots(b) if b is not None else [])
    stack: list[Expr] = list(reversed(roots))
    lets: list[Let] = []
    while stack:
        node = stack.pop()
        if id(node) in seen:
            if not isinstance(node, _ATOMS):
                features.add(Feature.fGraph)
            continue
        seen.add(id(node))
        kind = _KIND.get(type(node))
        if kind is not None:
            features.add(kind)
        if isinstance(node, Function):
            if is_primitive(node):
                continue
            if node.params:
                features.add(Feature.fVar)
        if isinstance(node, Let):
            features.add(Feature.fVar)
            if isinstance(node.value, Function):
                lets.append(node)
        stack.extend(reversed(children(node)))
    if any(let.variable in free_vars(let.value) for let in lets):
        features.add(Feature.fLetRec)
    return features


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """Call, tuple or projection number `expr_id` of @main as a module (TVM's spelling). Counted from 0 in TVM's order:
    operands first, and callees before them. A program of operators alone counts as it is printed: `%0`, `%1`. Raises
    `RelayError` where there is none of that number.
    """
    count = 0
    if "main" in mod:
        for node in visit_order(mod["main"]):
            if isinstance(node, (Call, Tuple, TupleGetItem)):
                if count == expr_id:
                    return IRModule.from_expr(node, None, mod.type_definitions)
                count += 1
    raise RelayError(error("R0510", f"@main has no expression {expr_id}; there are {count}, counted from 0"))


extract_intermediate_expr = extract_intermdeiate_expr
