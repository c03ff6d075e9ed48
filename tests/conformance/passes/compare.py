"""Two programs beside each other: the same, the same but for how they are written down, or others.

The form of a program: which equal values of operators are one node, and which values have a second name. It also covers
lets in the values of lets.

Types that TVM never (or always) writes do not count. They are those of variables of lets and patterns, those of results,
and type arguments of calls. Types at parameters are those that the checker finds. Names of functions are compared by
their numbers. A function that only one side names is compared where it is called.
"""

from __future__ import annotations

from typing import Any

from relaylang.ir import (
    Call,
    Clause,
    Constant,
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
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    children,
    pattern_vars,
    post_order,
    rebuild,
)
from relaylang.ir.structural import structural_diff
from relaylang.typing import infer


class Plain:
    """Rebuilds functions without the types that do not count. `loose`: and without the parts of their form that do not
    count."""

    def __init__(self, names: dict[str, GlobalVar], loose: bool = False) -> None:
        self.names, self.loose = names, loose
        self.second: dict[int, Var] = {}
        self.vars: dict[int, Var] = {}
        self.known: dict[Any, Expr] = {}

    def var(self, var: Var, param: bool = False) -> Var:
        if id(var) not in self.vars:
            self.vars[id(var)] = Var(var.name_hint, (var.checked_type or var.type_annotation) if param else None)
        return self.vars[id(var)]

    def function(self, root: Expr) -> Expr:
        for node in post_order(root):
            if isinstance(node, Function):
                for param in node.params:
                    self.var(param, True)
            elif self.loose and isinstance(node, Let) and isinstance(node.value, Var):
                self.second[id(node.variable)] = node.value
        done: dict[int, Expr] = {}
        for node in post_order(root):
            done[id(node)] = self.node(node, done)
        return done[id(root)]

    def node(self, node: Expr, done: dict[int, Expr]) -> Expr:
        match node:
            case Var():
                while id(node) in self.second:
                    node = self.second[id(node)]
                return self.var(node)
            case GlobalVar():
                return self.names.setdefault(node.name_hint, GlobalVar(node.name_hint))
            case Let():
                return self.let(node, done[id(node.value)], done[id(node.body)])
            case Function():
                params = [self.var(p) for p in node.params]
                attrs = {k: v for k, v in node.attrs.items() if k != "hash"}
                return Function(params, done[id(node.body)], None, node.type_params, attrs)
            case Match():
                for clause in node.clauses:
                    for var in pattern_vars(clause.lhs):
                        self.var(var)
                clauses = [Clause(self.pattern(c.lhs), done[id(c.rhs)]) for c in node.clauses]
                return Match(done[id(node.data)], clauses, node.complete)
            case Call():
                op = done[id(node.op)]
                return self.one(node, Call(op, [done[id(a)] for a in node.args], node.attrs))
            case Tuple() | TupleGetItem():
                return self.one(node, rebuild(node, tuple(done[id(c)] for c in children(node))))
            case If() | RefCreate() | RefRead() | RefWrite():
                return rebuild(node, tuple(done[id(c)] for c in children(node)))
        return node

    def let(self, node: Let, value: Expr, body: Expr) -> Expr:
        if not self.loose:
            return Let(self.var(node.variable), value, body)
        if id(node.variable) in self.second:
            return body
        inner = []
        while isinstance(value, Let):
            inner.append((value.variable, value.value))
            value = value.body
        made: Expr = Let(self.var(node.variable), value, body)
        for variable, first in reversed(inner):
            made = Let(variable, first, made)
        return made

    def pattern(self, p: Pattern) -> Pattern:
        match p:
            case PatternVar(var):
                return PatternVar(self.vars[id(var)])
            case PatternConstructor(constructor, patterns):
                return PatternConstructor(constructor, [self.pattern(q) for q in patterns])
            case PatternTuple(patterns):
                return PatternTuple([self.pattern(q) for q in patterns])
        return p

    def one(self, old: Expr, new: Expr) -> Expr:
        """When loose, the first node that says the same."""
        if not self.loose:
            return new
        if isinstance(new, Call):
            if not hasattr(new.op, "schema"):
                return new
            key: Any = ("call", new.op.name, repr(new.attrs), *[leaf(a) for a in new.args])  # type: ignore[attr-defined]
        elif isinstance(new, Tuple):
            key = ("tuple", *[leaf(f) for f in new.fields])
        else:
            assert isinstance(new, TupleGetItem)
            key = ("field", leaf(new.tuple_value), new.index)
        return self.known.setdefault(key, new)


def leaf(node: Expr) -> Any:
    if isinstance(node, Constant):
        return (node.data.dtype.name, node.data.shape, node.data.tobytes())
    return id(node)


def plain(mod: IRModule, loose: bool = False) -> IRModule:
    names: dict[str, GlobalVar] = {}
    functions = {}
    keep = []  # what the rebuilder knows by its address must stay
    for gv, func in mod.functions.items():
        maker = Plain(names, loose)
        functions[names.setdefault(gv.name_hint, GlobalVar(gv.name_hint))] = maker.function(func)
        keep.append(maker)
    return IRModule(functions, mod.type_definitions)  # type: ignore[arg-type]


def numbered(mod: IRModule) -> IRModule:
    """The functions named by the order in which `@main` reaches them, and then the others, those that passes name last."""
    order: dict[str, str] = {}
    given = sorted((gv.name_hint for gv in mod.functions), key=lambda n: (n != "main", n.startswith(("lifted", "tvmgen")), n))
    for start in given:
        todo = [start]
        while todo:
            name = todo.pop(0)
            if name in order or name not in mod:
                continue
            order[name] = name if name == "main" else f"g{len(order)}"
            todo += [n.name_hint for n in post_order(mod[name]) if isinstance(n, GlobalVar)]
    names = {old: GlobalVar(new) for old, new in order.items()}
    functions = {}
    for gv, func in mod.functions.items():
        maker = Plain({old: names[old] for old in names})
        made = maker.function(func)
        assert isinstance(made, Function)
        attrs = {k: order.get(v, v) if k == "global_symbol" else v for k, v in made.attrs.items()}
        functions[names[gv.name_hint]] = Function(made.params, made.body, None, made.type_params, attrs)
    return IRModule(functions, mod.type_definitions)


def same(mine: IRModule, theirs: IRModule) -> tuple[str, str | None]:
    """`("same", None)`, `("names", where)`: but for the names of functions; `("written", where)`: but for how they are
    written down; or `("other", where they first differ)`."""
    left, right = plain(mine), plain(theirs)
    said = structural_diff(left, right)
    if said is None:
        return "same", None
    if {g.name_hint for g in left.functions} != {g.name_hint for g in right.functions}:
        renamed = structural_diff(numbered(left), numbered(right))
        if renamed is None:
            return "names", said
        said = renamed
    loose = structural_diff(numbered(plain(mine, True)), numbered(plain(theirs, True)))
    return ("written" if loose is None else "other"), said if loose is None else loose


def typed(mod: IRModule) -> list[str]:
    """What the checker has against a program."""
    return [d.title for d in infer(mod, fresh=True) if d.severity == "error"]
