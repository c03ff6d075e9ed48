"""ToANormalForm: every compound expression is bound by a `let`, in dataflow order, and operands are atoms.

A node that several places share is bound in the innermost scope that holds all its uses. Branches, function bodies,
match arms and lets open scopes. Variables, globals, operators and constructors are atoms and stay in place; constants
are bound. Primitive functions are values and are not looked into.

Two walks do it. The first goes from users to operands and intersects the scopes of each node's uses; the second
evaluates symbolically in program order and appends each node's binding to its scope's list. Both are linear (the
intersection of two scopes takes the logarithm of their depth) and neither recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from relaylang.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Var,
    children,
    pattern_vars,
    rebuild,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ops.record import Op

_P = TypeVar("_P", IRModule, Expr)
_ATOMS = frozenset({Var, GlobalVar, Op, Constructor})


def is_primitive(expr: Expr) -> bool:
    """Whether a function is one kernel, whose body is nobody else's business."""
    return isinstance(expr, Function) and bool(expr.attrs.get("Primitive"))


def _inner_scopes(node: Expr) -> tuple[Expr, ...]:
    """The children that stand in scopes of their own, one each (a let's value and body share one)."""
    if isinstance(node, Function):
        return () if node.body is None else (node.body,)
    if isinstance(node, If):
        return (node.true_branch, node.false_branch)
    if isinstance(node, Match):
        return tuple([c.rhs for c in node.clauses])
    return ()


def is_anf(expr: Expr, enter_primitive: bool = False) -> bool:
    """Whether an expression (or a function's body) is in A-normal form, with no node shared."""
    seen: set[int] = set()
    work = [expr.body if isinstance(expr, Function) and expr.body is not None else expr]
    while work:
        scope = work.pop()
        while isinstance(scope, Let):
            value = scope.value
            if type(value) not in _ATOMS:
                if id(value) in seen or id(scope) in seen or isinstance(value, Let):
                    return False
                seen.add(id(value))
                seen.add(id(scope))
                if isinstance(value, Function):
                    operands: tuple[Expr, ...] = ()
                    if not enter_primitive and is_primitive(value):
                        scope = scope.body
                        continue
                elif isinstance(value, If):
                    operands = (value.cond,)
                elif isinstance(value, Match):
                    operands = (value.data,)
                else:
                    operands = children(value)
                if not all([type(o) in _ATOMS for o in operands]):
                    return False
                work.extend(_inner_scopes(value))
            scope = scope.body
        if type(scope) not in _ATOMS:
            return False
    return True


class _Scope:
    """A place for bindings. `jump` is some ancestor far up, which makes finding common ancestors logarithmic."""

    __slots__ = ("bindings", "depth", "jump", "parent")
    depth: int

    def __init__(self, parent: _Scope | None) -> None:
        #: (variable, value) pairs, or the lists of let scopes that are spliced in here.
        self.bindings: list[Any] = []
        self.parent: _Scope = parent or self
        self.depth = parent.depth + 1 if parent else 0
        self.jump: _Scope = self
        if parent:
            far = parent.jump
            self.jump = far.jump if parent.depth - far.depth == far.depth - far.jump.depth else parent


def _common(a: _Scope, b: _Scope) -> _Scope:
    """The innermost scope that encloses both."""
    if a.depth < b.depth:
        a, b = b, a
    while a.depth > b.depth:
        a = a.jump if a.jump.depth >= b.depth else a.parent
    while a is not b:
        if a.jump is b.jump:
            a, b = a.parent, b.parent
        else:
            a, b = a.jump, b.jump
    return a


def _flat(bindings: list[Any]) -> Iterator[tuple[Var, Expr]]:
    stack = [iter(bindings)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


def _typed(new: Any, old: Expr) -> Any:
    """The new node with the old one's type; a rebuilt node says the same as the one that it stands for."""
    if new is not old and new.checked_type is None:
        new.checked_type = old.checked_type
    return new


class _Converter:
    def __init__(self, root: Expr, let_results: bool, enter_primitive: bool) -> None:
        self.root = root
        self.let_results = let_results
        self.enter_primitive = enter_primitive
        self.names: set[str] = set()
        self.counter = 0
        self.scopes: dict[int, _Scope] = {}
        self.inner: dict[int, list[_Scope]] = {}
        self.atoms: dict[int, Expr] = {}
        self.work: list[tuple[Callable[..., None], Expr, Var | None]] = []

    # First walk: where each node belongs.

    def opaque(self, node: Expr) -> bool:
        return not self.enter_primitive and node is not self.root and is_primitive(node)

    def users_first(self) -> list[Expr]:
        """Every node once, each before its operands."""
        order: list[Expr] = []
        done: set[int] = set()
        stack: list[tuple[Expr, bool]] = [(self.root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif id(node) not in done:
                done.add(id(node))
                stack.append((node, True))
                if not self.opaque(node):
                    stack.extend([(c, False) for c in children(node) if type(c) not in _ATOMS])
        order.reverse()
        return order

    def find_scopes(self) -> None:
        scopes, inner = self.scopes, self.inner
        scopes[id(self.root)] = _Scope(None)

        def used(child: Expr, where: _Scope) -> None:
            key = id(child)
            known = scopes.get(key)
            scopes[key] = where if known is None or known is where else _common(known, where)

        for node in self.users_first():
            here = scopes[id(node)]
            if isinstance(node, Let):
                self.names.add(node.variable.name_hint)
                scope = _Scope(here)
                inner[id(node)] = [scope]
                used(node.value, scope)
                used(node.body, scope)
            elif isinstance(node, (Function, If, Match)):
                if self.opaque(node):
                    continue
                if isinstance(node, Function):
                    self.names.update([p.name_hint for p in node.params])
                elif isinstance(node, If):
                    used(node.cond, here)
                else:
                    used(node.data, here)
                    self.names.update([v.name_hint for c in node.clauses for v in pattern_vars(c.lhs)])
                inner[id(node)] = opened = []
                for body in _inner_scopes(node):
                    scope = _Scope(here)
                    opened.append(scope)
                    used(body, scope)
            else:
                for child in children(node):
                    if type(child) not in _ATOMS:
                        used(child, here)

    # Second walk: bindings in program order. `work` holds (step, node, variable that the node is to be bound to).

    def fresh(self, like: Expr) -> Var:
        while True:
            name = f"x_{self.counter}"
            self.counter += 1
            if name not in self.names:
                break
        new = Var(name, like.checked_type, like.span)
        new.checked_type = like.checked_type
        return new

    def bind(self, node: Expr, value: Expr, variable: Var | None) -> None:
        """Bind a node's value in the node's scope; from here on the variable stands for the node."""
        if variable is None:
            variable = self.fresh(node)
        self.scopes[id(node)].bindings.append((variable, value))
        self.atoms[id(node)] = variable

    def close(self, scope: _Scope, body: Expr) -> Expr:
        """The scope's bindings around the atom that stands for its body."""
        result = atom = self.atom(body)
        for variable, value in reversed(list(_flat(scope.bindings))):
            result = Let(variable, value, result, value.span)
            result.checked_type = atom.checked_type or body.checked_type
        return result

    def atom(self, node: Expr) -> Expr:
        return node if type(node) in _ATOMS else self.atoms[id(node)]

    def visit(self, node: Expr, variable: Var | None) -> None:
        if type(node) in _ATOMS:
            return
        known = self.atoms.get(id(node))
        if known is not None:
            if variable is not None:
                self.scopes[id(node)].bindings.append((variable, known))
            return
        work = self.work
        if isinstance(node, Let):
            work.append((self.leave_let, node, variable))
            work.append((self.visit, node.body, None))
            if type(node.value) in _ATOMS:
                work.append((self.bind_atom, node, None))
            else:
                work.append((self.visit, node.value, node.variable))
        elif isinstance(node, (Function, If, Match)):
            if self.opaque(node) or (isinstance(node, Function) and node.body is None):
                self.bind(node, node, variable)
                return
            work.append((self.leave_scoped, node, variable))
            work.extend([(self.visit, body, None) for body in reversed(_inner_scopes(node))])
            if not isinstance(node, Function):
                work.append((self.visit, node.cond if isinstance(node, If) else node.data, None))
        else:
            work.append((self.leave_plain, node, variable))
            work.extend([(self.visit, c, None) for c in reversed(children(node)) if type(c) not in _ATOMS])

    def bind_atom(self, node: Expr, _: Var | None) -> None:
        assert isinstance(node, Let)
        self.inner[id(node)][0].bindings.append((node.variable, node.value))

    def leave_let(self, node: Expr, variable: Var | None) -> None:
        assert isinstance(node, Let)
        result = self.atom(node.body)
        self.scopes[id(node)].bindings.append(self.inner[id(node)][0].bindings)
        if variable is None and not self.let_results:
            self.atoms[id(node)] = result
        else:
            self.bind(node, result, variable)

    def leave_plain(self, node: Expr, variable: Var | None) -> None:
        atoms = self.atoms
        if type(node) is Call:
            args = tuple([a if type(a) in _ATOMS else atoms[id(a)] for a in node.args])
            op = node.op if type(node.op) in _ATOMS else atoms[id(node.op)]
            new: Expr = Call(op, args, node.attrs, node.type_args, node.span)
        else:
            new = rebuild(node, tuple([c if type(c) in _ATOMS else atoms[id(c)] for c in children(node)]))
        self.bind(node, _typed(new, node), variable)

    def leave_scoped(self, node: Expr, variable: Var | None) -> None:
        bodies = [self.close(s, b) for s, b in zip(self.inner[id(node)], _inner_scopes(node))]
        if isinstance(node, Function):
            new: Expr = Function(node.params, bodies[0], node.ret_type, node.type_params, node.attrs, node.span)
        elif isinstance(node, If):
            new = If(self.atom(node.cond), bodies[0], bodies[1], node.span)
        else:
            assert isinstance(node, Match)
            clauses = [Clause(c.lhs, rhs, c.span) for c, rhs in zip(node.clauses, bodies)]
            new = Match(self.atom(node.data), clauses, node.complete, node.span)
        _typed(new, node)
        if node is self.root and isinstance(node, Function):
            self.atoms[id(node)] = new
        else:
            self.bind(node, new, variable)

    def run(self) -> Expr:
        root = self.root
        self.find_scopes()
        self.work.append((self.visit, root, None))
        while self.work:
            step, node, variable = self.work.pop()
            step(node, variable)
        if isinstance(root, Function):
            return self.atoms[id(root)]
        return self.close(self.scopes[id(root)], root)


def convert(expr: Expr, *, let_results: bool = True, enter_primitive: bool = False) -> Expr:
    """One expression in A-normal form; a function stays one, with its body converted.

    `let_results` gives the result of each let of the input a name of its own, as TVM does (`let %x_1 = %x;` behind the
    let's own bindings). `enter_primitive` also converts the bodies of primitive functions.
    What is in A-normal form already is returned as it is.
    """
    if type(expr) in _ATOMS or is_anf(expr, enter_primitive):
        return expr
    if isinstance(expr, Function) and (expr.body is None or (is_primitive(expr) and not enter_primitive)):
        return expr
    with gc_paused():
        return _Converter(expr, let_results, enter_primitive).run()


def to_anf(program: _P, *, let_results: bool = True) -> _P:
    """A-normal form of an expression, or of every function of a module; functions of other compilers stay as they are.

    The same program comes back where nothing changes. Types that the checker has filled are kept.
    """
    if not isinstance(program, IRModule):
        return convert(program, let_results=let_results)
    functions = {
        name: f if "Compiler" in f.attrs else convert(f, let_results=let_results)
        for name, f in program.functions.items()
    }
    if all(functions[name] is f for name, f in program.functions.items()):
        return program
    return program.with_functions(functions)  # type: ignore[arg-type, return-value]


def ToANormalForm() -> Callable[[_P], _P]:
    """The pass, as `tvm.relay.transform` names it."""
    return to_anf


def let_bindings(expr: Expr) -> Iterable[tuple[Var, Expr]]:
    """The bindings of a chain of lets, in order."""
    while isinstance(expr, Let):
        yield expr.variable, expr.value
        expr = expr.body


__all__ = ["ToANormalForm", "convert", "is_anf", "is_primitive", "let_bindings", "to_anf"]
