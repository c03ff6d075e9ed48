"""Layers of several operands. Operands with fewer axes get axes of extent 1 behind the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.keras.families.core import unit
from relaylang.frontends.keras.node import Node, Tensor
from relaylang.ir import Expr


def _operands(n: Node, xs: Any, least: int = 1) -> list[Expr]:
    if isinstance(xs, dict):
        xs = [xs[k] for k in sorted(xs)]
    xs = xs if isinstance(xs, list) else [xs]
    if len(xs) < least or not all(isinstance(x, Expr) for x in xs):
        raise Malformed(f"it takes a list of {least} or more tensors")
    return xs


def _mask(n: Node) -> Expr | None:
    """The mask of a sum. Keras 3 takes steps that any operand has, where all have masks; Keras 2 those that all have."""
    masks = [m for m in n.masks if m is not None]
    if not masks or (n.spec.major >= 3 and len(masks) < len(n.masks)):
        return None
    joint = masks[0]
    for mask in masks[1:]:
        joint = n.b.op("logical_or" if n.spec.major >= 3 else "logical_and", joint, mask)
    return joint


def _aligned(n: Node, xs: Sequence[Expr]) -> list[Expr]:
    rank = max(n.b.rank(x) for x in xs)
    return [n.b.unsqueeze(x, list(range(1, 1 + rank - n.b.rank(x)))) for x in xs]


def merge(operator: str) -> Callable[[Node, Any], Any]:
    def convert(n: Node, xs: Any) -> Any:
        operands = _aligned(n, _operands(n, xs))
        joined = operands[0]
        for x in operands[1:]:
            joined = n.b.op(operator, joined, x)
        return Tensor(joined, _mask(n))

    return convert


def average(n: Node, xs: Any) -> Any:
    total = merge("add")(n, xs)
    return Tensor(n.b.op("divide", total.x, float(len(_operands(n, xs)))), total.mask)


def subtract(n: Node, xs: Any) -> Any:
    operands = _operands(n, xs, 2)
    if len(operands) != 2:
        raise Malformed(f"it takes two operands, and it gets {len(operands)}")
    return merge("subtract")(n, operands)


def concatenate(n: Node, xs: Any) -> Any:
    """Along one axis; masks of sequences stand behind each other where it is the axis of steps."""
    b, operands = n.b, _operands(n, xs)
    rank = b.rank(operands[0])
    axis = n.axis("axis", rank, -1)
    if any(b.rank(x) != rank for x in operands):
        raise Malformed(f"its operands have {', '.join(str(int(b.rank(x))) for x in operands)} axes")
    mask = None
    if any(m is not None for m in n.masks) and len(n.masks) == len(operands):
        full = []
        for x, m in zip(operands, n.masks):
            if m is None:
                full.append(b.op("ones_like", b.op("equal", x, x)))
            else:
                wide = b.unsqueeze(m, list(range(b.rank(m), rank)))
                full.append(b.op("logical_and", b.op("ones_like", b.op("equal", x, x)), wide))
        mask = b.op("any" if n.spec.major >= 3 else "all", b.concat(full, axis), axis=[-1])
    return Tensor(b.concat(operands, axis), mask)


def dot(n: Node, xs: Any) -> Any:
    """The products along one axis of each operand, batch by batch."""
    b, operands = n.b, _operands(n, xs, 2)
    if len(operands) != 2:
        raise Malformed(f"it takes two operands, and it gets {len(operands)}")
    axes = n.ints("axes", 2)
    ends = [a % b.rank(x) for a, x in zip(axes, operands)]
    if n.bool("normalize", False):
        operands = [unit(n, x, [a], 1e-7 if n.spec.major >= 3 else 1e-6) for x, a in zip(operands, ends)]
    (x, y), (ax, ay) = operands, ends
    xr, yr = ([i for i in range(1, b.rank(v)) if i != axis] for v, axis in zip(operands, ends))
    if ax == 0 or ay == 0:
        raise Malformed("its axes include the batch")
    if len(xr) > 1 or len(yr) > 1:
        left = ["a", *[chr(ord("c") + i) for i in range(len(xr))]]
        right = ["a", *[chr(ord("m") + i) for i in range(len(yr))]]
        result = "".join([*left, *right[1:]])
        left.insert(ax, "b")
        right.insert(ay, "b")
        return einsum(b, f"{''.join(left)},{''.join(right)}->{result}", [x, y])
    x = b.transpose(x, [0, *xr, ax])
    y = b.transpose(y, [0, ay, *yr])
    product = matmul(b, x if xr else b.unsqueeze(x, [1]), y if yr else b.unsqueeze(y, [2]))
    gone = ([1] if not xr else []) + ([2] if not yr else [])
    if len(gone) == 2:
        return b.squeeze(product, [2])
    return b.squeeze(product, gone)


RULES = (
    Rule("Add", merge("add")),
    Rule("Average", average),
    Rule("Concatenate", concatenate),
    Rule("Dot", dot),
    Rule("Maximum", merge("maximum")),
    Rule("Minimum", merge("minimum")),
    Rule("Multiply", merge("multiply")),
    Rule("Subtract", subtract),
)
