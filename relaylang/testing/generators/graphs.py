"""Well-typed graphs over int32: nodes shared across lets, branches and functions, and effects on one reference."""

from __future__ import annotations

import random

from relaylang.ir import (
    Call,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    const,
)
from relaylang.ops import get

INT = TensorType((), "int32")


class Graphs:
    """Random well-typed graphs over int32, with nodes shared across lets, branches and functions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, pool: list[Expr]) -> Expr:
        return self.random.choice(pool)

    def expression(self, pool: list[Expr], size: int) -> Expr:
        """An int32 expression over the nodes of `pool`, which may be used any number of times."""
        pool = list(pool)
        for _ in range(size):
            kind = self.random.randrange(9)
            a, b = self.pick(pool), self.pick(pool)
            if kind < 4:
                pool.append(Call(get(self.random.choice(["add", "subtract", "multiply"])), (a, b)))
            elif kind == 4:
                pool.append(const(self.random.randrange(-9, 9)))
            elif kind == 5:
                pair = Tuple((a, b))
                pool += [TupleGetItem(pair, 0), TupleGetItem(pair, 1)]
            elif kind == 6:
                inner = size // 2
                pool.append(If(Call(get("less"), (a, b)), self.expression(pool, inner), self.expression(pool, inner)))
            elif kind == 7:
                x = Var("v", INT)
                pool.append(Let(x, a, self.expression([*pool, x], size // 2)))
            else:
                p = Var("p", INT)
                function = Function((p,), self.expression([*pool, p], size // 2), INT)
                pool += [Call(function, (a,)), Call(function, (b,))]
        return Call(get("add"), (self.pick(pool), self.pick(pool)))

    def function(self) -> Function:
        params = (Var("a", INT), Var("b", INT))
        return Function(params, self.expression(list(params), 7), INT)


class Effects:
    """Random graphs over int32 and one reference.

    The uses of a node with effects stay in its own block, also inside lets in operands. Other nodes have uses everywhere.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cell = Var("r", RefType(INT))
        self.touch = Var("touch")

    def expression(self, pure: list[Expr], here: list[Expr], size: int) -> Expr:
        pure, here = list(pure), list(here)
        for _ in range(size):
            kind = self.random.randrange(10)
            either = [*pure, *here]
            a, b = self.random.choice(either), self.random.choice(either)
            if kind < 2:
                pure.append(Call(get("subtract"), (self.random.choice(pure), self.random.choice(pure))))
            elif kind < 4:
                here.append(Call(get(self.random.choice(["add", "subtract"])), (a, b)))
            elif kind == 4:
                here.append(RefRead(self.cell))
            elif kind == 5:
                here.append(Call(self.touch, (a,)))
            elif kind == 6:
                here.append(TupleGetItem(Tuple((a, b, RefWrite(self.cell, b))), 0))
            elif kind == 7:
                x = Var("v", INT)
                here.append(Let(x, a, self.expression([*pure, x], here, size // 2)))
            elif kind == 8:
                less = Call(get("less"), (a, b))
                here.append(If(less, self.expression(pure, [], size // 2), self.expression(pure, [], size // 2)))
            else:
                p = Var("p", INT)
                function = Function((p,), self.expression([*pure, p], [], size // 2), INT)
                here += [Call(function, (a,)), Call(function, (b,))]
        last = [*pure, *here]
        return Call(get("add"), (self.random.choice(last), self.random.choice(last)))

    def function(self) -> Function:
        a = Var("a", INT)
        p, read = Var("p", INT), RefRead(self.cell)
        touch = Function((p,), Let(Var("_"), RefWrite(self.cell, Call(get("add"), (read, p))), read), INT)
        body: Expr = Tuple((self.expression([a, const(3)], [], 9), RefRead(self.cell)))
        return Function((a,), Let(self.cell, RefCreate(a), Let(self.touch, touch, body)))


def effectful(seed: int, size: int = 14) -> str:
    """The body of a function of `%x` and `%y`, which may call `@twice`: lets over one reference.

    Reads, writes and pure calls alternate; some values stand in a let, some effects inside an operand.
    """
    rng = random.Random(seed)
    lines = ["let %r = ref(%x);"]
    known = ["%x", "%y"]
    for i in range(size):
        a, b = rng.choice(known[-6:]), rng.choice(known[-6:])
        value = rng.choice(
            [
                f"negative({a})",
                f"multiply({a}, {b})",
                f"abs({a})",
                f"nn.relu(add({a}, {b}))",
                "ref_read(%r)",
                f"multiply({a}, ref_read(%r))",
                f"({a}, {b}).{rng.randrange(2)}",
                f"if (less(sum({a}), 0f)) {{ negative({b}) }} else {{ multiply({a}, {b}) }}",
                f"@twice({a})",
            ]
        )
        if rng.random() < 0.25:
            lines.append(f"let %w{i} = ref_write(%r, clip({a}, a_min=-9f, a_max=9f));")
        if rng.random() < 0.7 or "ref" in value or "if" in value:
            lines.append(f"let %v{i} = {value};")
            known.append(f"%v{i}")
        else:
            lines.append(f"let %v{i} = tanh({value});")
            known.append(f"%v{i}")
    return " ".join(lines) + f" ({', '.join(known[-4:])}, ref_read(%r))"
