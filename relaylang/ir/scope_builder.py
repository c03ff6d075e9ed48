"""Expressions with lets and branches, written one after the other under TVM's names.

Example:

    sb = ScopeBuilder()
    x = sb.let("x", add(a, b))
    with sb.if_scope(cond):
        sb.ret(x)
    with sb.else_scope():
        sb.ret(a)
    expr = sb.get()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from relaylang.ir.expr import Expr, If, Let, Var, var
from relaylang.ir.types import IncompleteType, Type


class _Scope:
    """The lets of a block and its value; for an open branch, also the condition and the first half."""

    __slots__ = ("lets", "open_if", "value")

    def __init__(self) -> None:
        self.lets: list[tuple[Var, Expr]] = []
        self.value: Expr | None = None
        self.open_if: tuple[Expr, Expr] | None = None

    def finished(self) -> Expr:
        if self.open_if is not None:
            raise RuntimeError("an if_scope has no else_scope behind it")
        if self.value is None:
            raise RuntimeError("a scope has no value: ret was not called in it")
        expr = self.value
        for variable, value in reversed(self.lets):
            expr = Let(variable, value, expr)
        return expr


class ScopeBuilder:
    """Collects lets, and a value at their end. Raises `RuntimeError` for calls in the wrong order."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Var | str | Sequence, value: Expr) -> Var:
        """Bind a variable, which is returned: a `Var`, a name, or a name and its type."""
        variable = _variable(var)
        self._scopes[-1].lets.append((variable, value))
        return variable

    @contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """The block of the branch where `cond` holds. An `else_scope` must follow; both give the value here."""
        outer = self._scopes[-1]
        if outer.value is not None or outer.open_if is not None:
            raise RuntimeError("the scope around this if_scope has its value already")
        self._scopes.append(_Scope())
        yield
        outer.open_if = (cond, self._scopes.pop().finished())

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The block of the branch where the condition does not hold."""
        outer = self._scopes[-1]
        if outer.open_if is None:
            raise RuntimeError("an else_scope follows an if_scope")
        self._scopes.append(_Scope())
        yield
        other = self._scopes.pop().finished()
        outer.value, outer.open_if = If(*outer.open_if, other), None

    def type_of(self, expr: Expr) -> Type | None:
        """A variable's annotation; for another expression a type that the checker will find.

        This binds the other expression in the current scope.
        """
        if not isinstance(expr, Var):
            return self.let(Var("unify", IncompleteType()), expr).type_annotation
        return expr.type_annotation

    def ret(self, value: Expr) -> None:
        """Give the block its value."""
        scope = self._scopes[-1]
        if scope.value is not None or scope.open_if is not None:
            raise RuntimeError("the scope has its value already")
        scope.value = value

    def get(self) -> Expr:
        """The expression. All scopes must be closed."""
        if len(self._scopes) != 1:
            raise RuntimeError("an if_scope or else_scope is still open")
        return self._scopes[0].finished()


def _variable(param: Var | str | Sequence) -> Var:
    if isinstance(param, Var):
        return param
    if isinstance(param, str):
        return var(param)
    if not 1 <= len(param) <= 2:
        raise ValueError("a variable is a name, or a name and its type")
    return var(*param)
