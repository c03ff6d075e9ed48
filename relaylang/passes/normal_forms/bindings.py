"""The binder of A-normal form and basic block normal form. It finds the scope of each node, and binds it there.

A node that several places share is bound in the innermost scope that holds all its uses. Branches, function bodies and
match arms open scopes. Variables, globals, operators and constructors are atoms and stay in place. Primitive functions
are values and are not looked into.

Two walks do it. The first goes from users to operands and intersects the scopes of each node's uses. The second
evaluates symbolically in program order and appends each node's binding to its scope's list. Both are linear (the
intersection of two scopes takes the logarithm of their depth) and neither recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from relaylang.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Tuple,
    TupleGetItem,
    Var,
    children,
    pattern_vars,
    rebuild,
)
from relaylang.ir.scopes import Scope, common
from relaylang.ir.typed import retype, typed
from relaylang.ir.types import written
from relaylang.ops.record import Op
from relaylang.passes.devices.calls import OnDevice, fixed, on_device_of
from relaylang.passes.devices.virtual_device import VirtualDevice
from relaylang.passes.rewriting import is_primitive

ATOMS = frozenset({Var, GlobalVar, Op, Constructor})


def inner_scopes(node: Expr) -> tuple[Expr, ...]:
    """The children that stand in scopes of their own, one each (a let's value and body share one)."""
    if isinstance(node, Function):
        return () if node.body is None else (node.body,)
    if isinstance(node, If):
        return (node.true_branch, node.false_branch)
    if isinstance(node, Match):
        return tuple([c.rhs for c in node.clauses])
    return ()


#: Nodes that open no scope where lets open none.
_PLAIN = frozenset({Call, Tuple, TupleGetItem, Let})


class Place(Scope):
    """A scope with its bindings."""

    __slots__ = ("bindings",)

    def __init__(self, parent: Place | None = None) -> None:
        super().__init__(parent)
        #: (variable, value) pairs, or the lists of let scopes that are spliced in here.
        self.bindings: list[Any] = []


def _spliced(bindings: list[Any]) -> Iterator[tuple[Var, Expr]]:
    stack = [iter(bindings)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


def placed_by(node: Expr) -> OnDevice | None:
    """What an `on_device` says that holds for what it takes and for what it gives."""
    said = on_device_of(node)
    return said if said is not None and said.constrains_body and said.constrains_result else None


def _devices_around(order: list[Expr]) -> dict[Expr, VirtualDevice]:
    """The device that the lines around each node say it is on. `order` has users before what they use; the first counts."""
    around: dict[Expr, VirtualDevice] = {}
    for node in order:
        here = around.get(node)
        said = placed_by(node)
        if said is not None:
            here = said.device
        elif isinstance(node, Function) and node.attrs.get("virtual_device") is not None:
            here = VirtualDevice.of(node.attrs["virtual_device"])
        if here is not None:
            for child in children(node):
                around.setdefault(child, here)
    return around


class Binder:
    """Brings one expression into a normal form.

    `flat` lets open no scopes. Their bindings go, in order, to the list around them, and every compound node is bound.
    Otherwise a let keeps its place. Beside the lets' own values only the nodes in `chosen` (by id) are bound.
    `let_results` gives the result of each let of the input a name of its own. `enter_primitive` looks into primitive
    functions. `devices` marks each binding with the device that a function or an `on_device` around it names. The calls
    of `on_device` themselves are then not bound.
    """

    def __init__(
        self, root: Expr, *, flat: bool = True, let_results: bool = True, enter_primitive: bool = False, devices: bool = False
    ) -> None:
        self.root = root
        self.flat = flat
        self.let_results = let_results
        self.enter_primitive = enter_primitive
        self.devices = devices
        #: the devices that the lines around nodes say they are on
        self.around: dict[Expr, VirtualDevice] = {}
        self.chosen: set[int] | None = None
        #: nodes that are used in more than one scope
        self.spread: set[int] = set()
        self.names: set[str] = set()
        self.counter = 0
        self.scopes: dict[Expr, Place] = {}
        self.inner: dict[Expr, list[Place]] = {}
        #: the replacement of a visited node: the variable that it is bound to, or its copy
        self.done: dict[Expr, Expr] = {}
        self.work: list[tuple[Callable[..., None], Expr, Expr | None]] = []

    # First walk: where each node belongs.

    def opaque(self, node: Expr) -> bool:
        return not self.enter_primitive and node is not self.root and is_primitive(node)

    def users_first(self, first_users: dict[Expr, Expr]) -> list[Expr]:
        """Every node once, each before its operands; and which user each is first evaluated for."""
        order: list[Expr] = []
        stack: list[tuple[Expr, Expr | None]] = [(self.root, self.root)]
        while stack:
            node, user = stack.pop()
            if user is None:
                order.append(node)
            elif node not in first_users:
                first_users[node] = user
                stack.append((node, None))
                if not self.opaque(node):
                    stack.extend([(c, node) for c in reversed(children(node)) if type(c) not in ATOMS])
        order.reverse()
        return order

    def find_scopes(self) -> set[int]:
        """Give each node its scope and open those inside it. Returns the nodes that are needed first further inside;
        where the binder is `flat`, only some of them."""
        scopes, inner = self.scopes, self.inner
        first_users: dict[Expr, Expr] = {}
        first_scopes: dict[Expr, Place] = {}
        scopes[self.root] = Place()
        order = self.users_first(first_users)
        if self.devices:
            self.around = _devices_around(order)
        for node in order:
            here = scopes[node]
            if self.flat and type(node) in _PLAIN:
                # Most nodes of most programs: in a hurry, and without what only the other mode asks for.
                if type(node) is Let:
                    self.names.add(node.variable.name_hint)
                    inner[node] = [here]
                for child in children(node):
                    if type(child) not in ATOMS:
                        known = scopes.get(child)
                        if known is None:
                            scopes[child] = here
                        elif known is not here:
                            scopes[child] = common(known, here)
                            self.spread.add(id(child))
                continue
            places: list[tuple[Expr, Place]]
            if isinstance(node, Let):
                self.names.add(node.variable.name_hint)
                scope = here if self.flat else Place(here)
                inner[node] = [scope]
                places = [(node.value, scope), (node.body, scope)]
            elif isinstance(node, (Function, If, Match)):
                if self.opaque(node):
                    continue
                places = []
                if isinstance(node, Function):
                    self.names.update([p.name_hint for p in node.params])
                elif isinstance(node, If):
                    places = [(node.cond, here)]
                else:
                    places = [(node.data, here)]
                    self.names.update([v.name_hint for c in node.clauses for v in pattern_vars(c.lhs)])
                opened = inner[node] = [Place(here) for _ in inner_scopes(node)]
                places += zip(inner_scopes(node), opened)
            else:
                places = [(c, here) for c in children(node)]
            for child, where in places:
                if type(child) not in ATOMS:
                    known = scopes.get(child)
                    if known is None or known is where:
                        scopes[child] = where
                    else:
                        scopes[child] = common(known, where)
                        self.spread.add(id(child))
                    if first_users[child] is node:
                        first_scopes.setdefault(child, where)
        return {id(node) for node, where in first_scopes.items() if scopes[node] is not where}

    # Second walk: bindings in program order. `work` holds (step, node, variable to bind the node to).

    def fresh(self, like: Expr) -> Var:
        while True:
            name = f"x_{self.counter}"
            self.counter += 1
            if name not in self.names:
                break
        ty = like.checked_type
        return typed(Var(name, written(ty), like.span), ty)

    def give(self, node: Expr, value: Expr, variable: Var | None) -> None:
        """Store a node's copy. If it is bound in the node's scope, the variable stands for it from here on."""
        if variable is None and self.chosen is not None and id(node) not in self.chosen:
            self.done[node] = value
            return
        if variable is None:
            variable = self.fresh(node)
        if node in self.around:
            value = fixed(value, self.around[node])
        self.scopes[node].bindings.append((variable, value))
        self.done[node] = variable

    def close(self, scope: Place, body: Expr) -> Expr:
        """The scope's bindings around the copy of its body."""
        last = result = self.copy(body)
        for variable, value in reversed(list(_spliced(scope.bindings))):
            result = typed(Let(variable, value, result, value.span), last.checked_type or body.checked_type)
        return result

    def copy(self, node: Expr) -> Expr:
        return node if type(node) in ATOMS else self.done[node]

    def visit(self, node: Expr, variable: Var | None) -> None:
        if type(node) in ATOMS:
            return
        known = self.done.get(node)
        if known is not None:
            if variable is not None:
                self.scopes[node].bindings.append((variable, known))
            return
        work = self.work
        if self.devices and (said := placed_by(node)) is not None:
            if type(said.body) in ATOMS:
                self.done[node] = said.body
                if variable is not None:
                    self.scopes[node].bindings.append((variable, said.body))
                return
            work.append((Binder.leave_placed, node, said.body))
            work.append((Binder.visit, said.body, variable))
        elif isinstance(node, Let):
            work.append((Binder.leave_let, node, variable))
            work.append((Binder.visit, node.body, None))
            if type(node.value) in ATOMS:
                work.append((Binder.bind_atom, node, None))
            else:
                work.append((Binder.visit, node.value, node.variable))
        elif isinstance(node, (Function, If, Match)):
            if self.opaque(node) or (isinstance(node, Function) and node.body is None):
                self.give(node, node, variable)
                return
            work.append((Binder.leave_scoped, node, variable))
            work.extend([(Binder.visit, body, None) for body in reversed(inner_scopes(node))])
            if not isinstance(node, Function):
                work.append((Binder.visit, node.cond if isinstance(node, If) else node.data, None))
        else:
            work.append((Binder.leave_plain, node, variable))
            work.extend([(Binder.visit, c, None) for c in reversed(children(node)) if type(c) not in ATOMS])

    def bind_atom(self, node: Expr, _: Var | None) -> None:
        assert isinstance(node, Let)
        self.inner[node][0].bindings.append((node.variable, node.value))

    def leave_placed(self, node: Expr, body: Expr) -> None:
        self.done[node] = self.copy(body)

    def leave_let(self, node: Expr, variable: Var | None) -> None:
        assert isinstance(node, Let)
        scope = self.inner[node][0]
        if self.flat:
            result = self.copy(node.body)
        elif variable is None and self.chosen is not None and id(node) not in self.chosen:
            result = self.close(scope, node.body)
        else:
            # A let whose value gets a name: its bindings stand before that name's.
            self.scopes[node].bindings.append(scope.bindings)
            result = self.copy(node.body)
        chosen = self.chosen is not None and id(node) in self.chosen and type(result) not in ATOMS
        if variable is None and not self.let_results and not chosen:
            self.done[node] = result
        else:
            self.give(node, result, variable)

    def leave_plain(self, node: Expr, variable: Var | None) -> None:
        done = self.done
        if type(node) is Call:
            args = tuple([a if type(a) in ATOMS else done[a] for a in node.args])
            op = node.op if type(node.op) in ATOMS else done[node.op]
            new: Expr = Call(op, args, node.attrs, node.type_args, node.span)
        else:
            new = rebuild(node, tuple([c if type(c) in ATOMS else done[c] for c in children(node)]))
        self.give(node, retype(new, node), variable)

    def leave_scoped(self, node: Expr, variable: Var | None) -> None:
        bodies = [self.close(s, b) for s, b in zip(self.inner[node], inner_scopes(node))]
        if isinstance(node, Function):
            new: Expr = Function(node.params, bodies[0], node.ret_type, node.type_params, node.attrs, node.span)
        elif isinstance(node, If):
            new = If(self.copy(node.cond), bodies[0], bodies[1], node.span)
        else:
            assert isinstance(node, Match)
            clauses = [Clause(c.lhs, rhs, c.span) for c, rhs in zip(node.clauses, bodies)]
            new = Match(self.copy(node.data), clauses, node.complete, node.span)
        retype(new, node)
        if node is self.root and isinstance(node, Function):
            self.done[node] = new
        else:
            self.give(node, new, variable)

    def run(self) -> Expr:
        """The normal form, once the scopes are found."""
        root = self.root
        self.work.append((Binder.visit, root, None))
        while self.work:
            step, node, variable = self.work.pop()
            step(self, node, variable)
        if isinstance(root, Function):
            return self.done[root]
        return self.close(self.scopes[root], root)
