"""Types from an earlier inference: taken over where they still hold."""

from __future__ import annotations

from relaylang.ir.expr import Expr, Function, GlobalVar, Var
from relaylang.ir.types import TensorType, Type
from relaylang.typing.program import Found
from relaylang.typing.solver import Solver


class Stale(Exception):
    """A type found earlier does not hold any more: the whole program has to be checked anew."""


class Earlier:
    """Takes over the `checked_type` of nodes; none of them where the inference is `fresh`. `used` says that it did."""

    def __init__(self, solver: Solver, found: Found, fresh: bool) -> None:
        self._solver = solver
        self._found = found
        self.fresh = fresh
        self.used = False

    def take(self, expr: Expr) -> bool:
        """Take over a node's type. False where it has none that is known as a whole."""
        known = expr.checked_type
        if known is None or self.fresh:
            return False
        solver = self._solver
        known = solver.intern(known) if type(known) is TensorType else solver.resolve(known)
        if not solver.is_known(known):
            return False
        self._found.types[expr] = known
        self.used = True
        return True

    def take_function(self, name: GlobalVar, function: Function) -> bool:
        """Take over the type of a module's function, for its name, too. Raises `Stale` where the name has another."""
        known = function.checked_type
        if self.fresh or known is None or not self._solver.is_known(self._solver.resolve(known)):
            return False
        if name.checked_type is not None and name.checked_type != known:
            raise Stale
        self._found.types[function] = known
        self._found.put(name, known)
        self.used = True
        return True

    def has(self, var: Var) -> bool:
        """Whether a variable has a type from an earlier inference."""
        return var.checked_type is not None and not self.fresh

    def agreed(self, var: Var, ty: Type) -> Type:
        """A variable's type. Raises `Stale` where it had another one."""
        before = var.checked_type
        solver = self._solver
        if before is None or self.fresh or not solver.is_known(solver.resolve(before)):
            return ty
        ty = solver.resolve(ty)
        if ty != before if solver.is_known(ty) else not solver.unify(ty, before):
            raise Stale
        return ty

    def check_names(self) -> None:
        """Raise `Stale` where a function of the module got another type than its name has elsewhere."""
        for node in self._found.order:
            if type(node) is GlobalVar and node.checked_type is not None:
                if node.checked_type != self._solver.resolve(self._found.types[node]):
                    raise Stale


__all__ = ["Earlier", "Stale"]
