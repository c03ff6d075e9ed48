"""Statements of the loop language, written in the order in which they run.

    b = Builder()
    with b.loop("i", rows) as i:
        total = b.var("total", ir.Const(0.0, "float32"))
        with b.loop("j", columns) as j:
            b.assign(total, total + ir.load(x, i, j))
        b.store(out, total, i)
    kernel.stage(body=b.body)

Names are those of the C, and have to differ from those around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from relaylang.kernels import ir


class Builder:
    """The statements so far; a `with` block adds those of a loop or a condition."""

    def __init__(self) -> None:
        self.body: ir.Body = []

    def add(self, *stmts: ir.Stmt) -> None:
        """Add statements that are made elsewhere."""
        self.body += stmts

    def let(self, name: str, value: ir.Expr | float) -> ir.Var:
        """A name for a value; numbers are indices."""
        return self._named(name, value, False)

    def var(self, name: str, value: ir.Expr | float) -> ir.Var:
        """A name for a value that `assign` changes; numbers are indices."""
        return self._named(name, value, True)

    def _named(self, name: str, value: ir.Expr | float, mutable: bool) -> ir.Var:
        let = ir.Let(name, value if isinstance(value, ir.Expr) else ir.expr(value), mutable)  # type: ignore[arg-type]
        self.body.append(let)
        return let.var

    def assign(self, name: ir.Var, value: ir.Expr | float) -> None:
        """Give a name of `var` another value."""
        self.body.append(ir.Assign(name.name, ir.lifted(value, name)))

    def local(self, name: str, dtype: str, shape: Sequence[int], space: str = ir.STACK, zero: bool = False) -> ir.Local:
        """A local array."""
        local = ir.Local(name, dtype, tuple(shape), space, zero)
        self.body.append(local)
        return local

    def store(self, array: Any, value: ir.Expr | float, *index: ir.Expr | int) -> None:
        """Write an element of a buffer, a local array or a pointer, by its index or its offset. Values are converted."""
        dtype = ir.dtype_of(array)
        if isinstance(value, ir.Expr):
            value = ir.cast(value, ir.vector(dtype, ir.vector_of(value.type)[1]))
        else:
            value = ir.Const(value, dtype)
        self.body.append(ir.store(array, value, *index))

    def fill(self, array: Any, value: ir.Expr | float, low: ir.Expr | int, high: ir.Expr | int | None = None) -> None:
        """Write a value into the elements from `low` up to `high`, without it; see `loop`."""
        with self.loop("at", low, high) as at:
            self.store(array, value, at)

    def call(self, name: str, *args: ir.Expr) -> None:
        """Call a function of the kernel, or one of `csrc/`."""
        self.body.append(ir.Call(name, args))

    @contextmanager
    def _inside(self, stmt: ir.Stmt, body: ir.Body) -> Iterator[None]:
        outer, self.body = self.body, body
        yield
        self.body = outer
        outer.append(stmt)

    @contextmanager
    def loop(
        self, var: str, low: ir.Expr | int, high: ir.Expr | int | None = None, kind: str = ir.SERIAL, step: int = 1
    ) -> Iterator[ir.Var]:
        """A loop from `low` up to `high`, without it; from 0 up to `low` where there is no `high`."""
        first, end = (0, low) if high is None else (low, high)
        loop = ir.Loop(var, ir.expr(first), ir.expr(end), [], kind, step)
        with self._inside(loop, loop.body):
            yield ir.Var(var)

    @contextmanager
    def loops(self, name: str, extents: Sequence[ir.Expr | int]) -> Iterator[list[ir.Var]]:
        """A loop for each dimension, outermost first: `i0`, `i1` ... of the name `i`."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.loop(f"{name}{d}", extent)) for d, extent in enumerate(extents)]

    @contextmanager
    def repeat(self, condition: ir.Expr) -> Iterator[None]:
        """Statements that run as long as a condition holds."""
        loop = ir.While(condition, [])
        with self._inside(loop, loop.body):
            yield

    @contextmanager
    def when(self, condition: ir.Expr) -> Iterator[None]:
        """Statements that run where a condition holds."""
        stmt = ir.If(condition, [])
        with self._inside(stmt, stmt.body):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Statements that run where the condition of the `when` before does not hold."""
        stmt = self.body.pop()
        assert isinstance(stmt, ir.If)
        with self._inside(stmt, stmt.otherwise):
            yield
