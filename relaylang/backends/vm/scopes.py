"""What a function in A-normal form binds and uses: the users of each variable, and what inner functions capture."""

from __future__ import annotations

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Expr,
    Function,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    children,
    pattern_vars,
)
from relaylang.ops.record import Op


class Owner:
    """A function, and the function around it. A let binds it to `own`. It captures variables in order."""

    __slots__ = ("captured", "function", "outer", "own")

    def __init__(self, function: Function, outer: Owner | None, own: Var | None) -> None:
        self.function = function
        self.outer = outer
        self.own = own
        self.captured: dict[Var, None] = {}


class Uses:
    """The uses of one function of a module and the functions inside it.

    `users[v]` are the variables whose values use `v`; None stands for any other use, and for uses in inner functions.
    `owners` has the functions by the id of their nodes.
    """

    def __init__(self, function: Function) -> None:
        self.users: dict[Var, list[Var | None]] = {}
        self.values: dict[Var, Expr] = {}
        self.owners: dict[int, Owner] = {}
        self._home: dict[Var, Owner] = {}
        root = self._enter(function, None, None)
        work: list[tuple[Expr, Owner]] = [(function.body, root)]
        while work:
            self._chain(*work.pop(), work)

    def _enter(self, function: Function, outer: Owner | None, own: Var | None) -> Owner:
        owner = self.owners[id(function)] = Owner(function, outer, own)
        for param in function.params:
            self._home[param] = owner
        return owner

    def _chain(self, expr: Expr, owner: Owner, work: list[tuple[Expr, Owner]]) -> None:
        while isinstance(expr, Let):
            variable, value = expr.variable, expr.value
            self._home[variable] = owner
            self.values[variable] = value
            match value:
                case Var():
                    self._use(value, variable, owner)
                case Function():
                    work.append((value.body, self._enter(value, owner, variable)))
                case Call(op=Op()) | Tuple() | TupleGetItem():
                    for operand in children(value):
                        self._use(operand, variable, owner)
                case If():
                    self._use(value.cond, None, owner)
                    work += [(value.true_branch, owner), (value.false_branch, owner)]
                case Match():
                    self._use(value.data, None, owner)
                    for clause in value.clauses:
                        for bound in pattern_vars(clause.lhs):
                            self._home[bound] = owner
                        work.append((clause.rhs, owner))
                case Call() | RefCreate() | RefRead() | RefWrite():
                    for operand in children(value):
                        self._use(operand, None, owner)
            expr = expr.body
        self._use(expr, None, owner)

    def _use(self, operand: Expr, user: Var | None, owner: Owner) -> None:
        if not isinstance(operand, Var):
            return
        home = self._home.get(operand)
        if home is None:
            what = f"the free variable %{operand.name_hint} has no value"
            raise RelayError(error("R0403", what, operand.span, notes=["make it a parameter of the function"]))
        inside: Owner | None = owner
        while inside is not home and inside is not None:
            user = None
            if operand is inside.own or operand in inside.captured:
                break
            inside.captured[operand] = None
            inside = inside.outer
        self.users.setdefault(operand, []).append(user)
