"""Einstein sums as products of batches of matrices, which compiled code computes fast."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common import nn
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(b: Builder, equation: str, xs: Sequence[Expr]) -> Expr:
    """The sum of products that an equation such as "bij,bjk->bik" states. `...` stands for axes that broadcast.

    Operands are joined pair by pair. An operand that names a letter twice (a diagonal) keeps the operator `einsum`.
    """
    terms, output = _explicit(b, equation, xs)
    if any(len(set(t)) < len(t) for t in terms):
        return b.op("einsum", b.tuple(list(xs)), equation=f"{','.join(terms)}->{output}")
    parts = [_without_ones(b, x, term, i, terms, xs) for i, (x, term) in enumerate(zip(xs, terms))]
    (x, term), rest = parts[0], parts[1:]
    for i, (y, other) in enumerate(rest):
        later = set(output).union(*(t for _, t in rest[i + 1 :]))
        x, term = _pair(b, x, term, y, other, later)
    return _ordered(b, *_summed(b, x, term, set(output)), output)


def _explicit(b: Builder, equation: str, xs: Sequence[Expr]) -> tuple[list[str], str]:
    """The terms and the output with letters in the place of `...`."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(xs):
        raise Unsupported(f"the equation {equation} has {len(terms)} terms for {len(xs)} operands")
    free = [c for c in _LETTERS if c not in equation]
    widest = 0
    for i, (term, x) in enumerate(zip(terms, xs)):
        spare = b.rank(x) - len(term.replace("...", ""))
        if spare < 0 or (spare and "..." not in term) or spare > len(free):
            raise Unsupported(f"the term {term} does not fit an operand with {b.rank(x)} axes")
        widest = max(widest, spare)
        terms[i] = term.replace("...", "".join(free[:spare][::-1]))
    dots = "".join(free[:widest][::-1])
    if arrow:
        return terms, output.replace("...", dots)
    letters = inputs.replace("...", "")
    return terms, dots + "".join(sorted(c for c in set(letters) - {","} if letters.count(c) == 1))


def _without_ones(b: Builder, x: Expr, term: str, index: int, terms: Sequence[str], xs: Sequence[Expr]) -> tuple[Expr, str]:
    """The operand without axes of extent 1 that another operand has longer."""
    gone = []
    for axis, letter in enumerate(term):
        others = [b.shape(y)[t.index(letter)] for i, (y, t) in enumerate(zip(xs, terms)) if i != index and letter in t]
        if b.shape(x)[axis] == 1 and any(d != 1 for d in others):
            gone.append(axis)
    return b.squeeze(x, gone), "".join(c for i, c in enumerate(term) if i not in gone)


def _summed(b: Builder, x: Expr, term: str, kept: set[str]) -> tuple[Expr, str]:
    """The sum over letters that nobody uses later."""
    axes = [i for i, c in enumerate(term) if c not in kept]
    return (b.op("sum", x, axis=axes) if axes else x), "".join(c for c in term if c in kept)


def _ordered(b: Builder, x: Expr, term: str, output: str) -> Expr:
    return b.transpose(x, [term.index(c) for c in output])


def _pair(b: Builder, x: Expr, term: str, y: Expr, other: str, later: set[str]) -> tuple[Expr, str]:
    """The product of two operands, summed over letters that nobody uses later."""
    x, term = _summed(b, x, term, later | set(other))
    y, other = _summed(b, y, other, later | set(term))
    shared = [c for c in term if c in other]
    batch, inner = [c for c in shared if c in later], [c for c in shared if c not in later]
    rows, columns = [c for c in term if c not in shared], [c for c in other if c not in shared]
    joint = "".join([*batch, *rows, *columns])
    if not inner:
        x = b.unsqueeze(_ordered(b, x, term, "".join([*batch, *rows])), range(len(batch) + len(rows), len(joint)))
        y = b.unsqueeze(_ordered(b, y, other, "".join([*batch, *columns])), range(len(batch), len(batch) + len(rows)))
        return b.op("multiply", x, y), joint
    groups = (batch, rows, columns, inner)
    known = all(isinstance(d, int) for d in (*b.shape(x), *b.shape(y)))
    if not known and any(len(g) > 1 for g in groups):
        return b.op("einsum", b.tuple([x, y]), equation=f"{term},{other}->{joint}"), joint
    x = _ordered(b, x, term, "".join([*batch, *rows, *inner]))
    y = _ordered(b, y, other, "".join([*batch, *inner, *columns]))
    if all(len(g) == 1 for g in groups) or (not batch and all(len(g) == 1 for g in groups[1:])):
        return nn.matmul(b, x, y), joint
    if not known:
        x = x if rows else b.unsqueeze(x, [len(batch)])
        y = y if columns else b.unsqueeze(y, [len(batch) + 1])
        product = nn.matmul(b, x, y)
        gone = ([len(batch)] if not rows else []) + ([len(batch) + 1] if not columns else [])
        return b.squeeze(product, gone), joint
    named = [*zip([*batch, *rows, *inner], b.static_shape(x)), *zip([*batch, *inner, *columns], b.static_shape(y))]
    sizes = {c: int(d) for c, d in named}
    front, height, depth, width = (math.prod(sizes[c] for c in group) for group in (batch, rows, inner, columns))
    x = b.reshape_exactly(x, [*[front] * bool(batch), height, depth])
    y = b.reshape_exactly(y, [*[front] * bool(batch), depth, width])
    return b.reshape_exactly(nn.matmul(b, x, y), [sizes[c] for c in joint]), joint


__all__ = ["einsum"]
