"""FoldScaleAxis: fold factors of channels into the weights of the convolution or matrix product beside them.

Backward: `multiply(conv(x, w), s)` is `conv(x, w * s)` with the factors along the weight's outputs. Forward:
`conv(multiply(x, s), w)` is `conv(x, w * s)` along its inputs. Between the two there may be additions of channels,
which are scaled, too. Where all factors are known to be positive, there may be relu and leaky_relu. Values that are
used elsewhere stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Expr, Function, IRModule, children, post_order, rebuild
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function
from relaylang.passes.simplify.fold_constant import evaluator, fold_constant
from relaylang.rules.scale_folding import (
    RULES,
    Axes,
    Factors,
    Product,
    Rule,
    Step,
    factors_of,
    scaled_operand,
    scaled_vector,
    weight_times,
)


def _rule(expr: Expr) -> Rule | None:
    """The row of the operator that an expression calls."""
    return RULES.get(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else None


def _is_product(rule: Rule | None) -> bool:
    return isinstance(rule, Product)


def _is_factors(rule: Rule | None) -> bool:
    return rule is Step.FACTORS


def _split(call: Call) -> tuple[Expr, Expr] | None:
    """A product's tensor and its factors, told by their shapes."""
    x, s = call.args
    xs, ss = static_shape(x.checked_type), static_shape(s.checked_type)
    if xs is None or ss is None:
        return None
    out = static_shape(call.checked_type)
    if xs == out and np.prod(ss) < np.prod(xs):
        return x, s
    return (s, x) if ss == out and np.prod(xs) < np.prod(ss) else None


def _axes(call: Call, which: str) -> Axes | None:
    """The axes of a product's data (I) or result (O), and those of its weight, along which factors may lie."""
    rule = _rule(call)
    return rule.axes(call, which) if isinstance(rule, Product) else None


def _users(order: list[Expr]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for node in order:
        for child in children(node):
            counts[id(child)] = counts.get(id(child), 0) + 1
    return counts


def _rebuilt(old: Call, args: list[Expr]) -> Call:
    made = Call(old.op, args, old.attrs, old.type_args, old.span)
    retype(made, old)
    return made


def _chain(top: Expr, users: dict[int, int], stop: Callable[[Rule | None], bool]) -> list[tuple[Call, int]] | None:
    """From a node up to a call whose rule `stop` takes, each used once.

    The result has each call with the operand that the way takes.
    """
    found: list[tuple[Call, int]] = []
    node = top
    while isinstance(node, Call) and users.get(id(node), 0) == 1:
        rule = _rule(node)
        if stop(rule):
            found.append((node, 0))
            return found
        if rule in (Step.POSITIVE, Step.VECTOR):
            found.append((node, 0))
            node = node.args[0]
        elif rule is Step.SUM:
            out = static_shape(node.checked_type)
            shapes = [static_shape(a.checked_type) for a in node.args]
            way = next((i for i in (0, 1) if shapes[i] == out and shapes[1 - i] not in (None, out)), None)
            if way is None:
                return None
            found.append((node, way))
            node = node.args[way]
        else:
            return None
    return None


def _move(chain: list[tuple[Call, int]], factors: Factors, rank: int, start: Expr, divide: bool) -> Expr | None:
    """The chain's calls again on another start, their summands scaled; innermost call last in the chain."""
    made = start
    for call, way in reversed(chain):
        rule = _rule(call)
        if rule is Step.POSITIVE:
            if not factors.positive:
                return None
            made = _rebuilt(call, [made])
            continue
        other = call.args[1 - way]
        if rule is Step.VECTOR:
            axis = call.attrs.axis % rank
            if (axis,) != factors.axes:
                return None
            scaled: Expr | None = scaled_vector(other, factors, divide)
        else:
            scaled = scaled_operand(other, factors, rank, divide)
        if scaled is None:
            return None
        made = _rebuilt(call, [made, scaled] if way == 0 else [scaled, made])
    return made


def _backward(call: Call, users: dict[int, int]) -> Expr | None:
    parts = _split(call)
    if parts is None:
        return None
    x, s = parts
    chain = _chain(x, users, _is_product)
    if chain is None:
        return None
    product = chain[-1][0]
    axes, shape = _axes(product, "O"), static_shape(call.checked_type)
    if axes is None or shape is None:
        return None
    factors = factors_of(s, shape, axes[0])
    if factors is None:
        return None
    weight = weight_times(product.args[1], factors, axes[1])
    start = _rebuilt(product, [product.args[0], weight])
    return _move(chain[:-1], factors, len(shape), start, divide=False)


def _forward(product: Call, users: dict[int, int]) -> Expr | None:
    chain = _chain(product.args[0], users, _is_factors)
    if chain is None:
        return None
    scale = chain[-1][0]
    parts = _split(scale)
    axes, shape = _axes(product, "I"), static_shape(product.args[0].checked_type)
    if parts is None or axes is None or shape is None:
        return None
    x, s = parts
    factors = factors_of(s, shape, axes[0])
    if factors is None or (len(chain) > 1 and any(_rule(c) is not Step.POSITIVE for c, _ in chain[:-1]) and not factors.positive):
        return None
    data = _move(chain[:-1], factors, len(shape), x, divide=True)
    if data is None:
        return None
    return _rebuilt(product, [data, weight_times(product.args[1], factors, axes[1])])


def _fold(func: Function, backward: bool) -> Expr:
    """Rebuild from the operands up. A chain is read in the new nodes, each of which is used as its old one was."""
    order = list(post_order(func))
    if not any(_is_product(_rule(n)) for n in order):
        return func
    old_users = _users(order)
    users: dict[int, int] = {}
    done: dict[int, Expr] = {}
    kept: list[Expr] = []
    wanted = _is_factors if backward else _is_product
    for node in order:
        new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
        if isinstance(new, Call) and wanted(_rule(new)) and tensor_type(new) is not None:
            made = _backward(new, users) if backward else _forward(new, users)
            if made is not None:
                new = retype(made, node)
                for inner in _new_nodes(new):
                    users.setdefault(id(inner), 1)
        kept.append(new)
        done[id(node)] = new
        users[id(new)] = max(users.get(id(new), 0), old_users.get(id(node), 0))
    return done[id(func)]


def _new_nodes(top: Expr) -> list[Expr]:
    """The calls that a rewrite made, along first operands. They show a later rewrite that these calls are used once."""
    found: list[Expr] = []
    node = top
    while isinstance(node, Call) and len(found) < 16:
        found.append(node)
        node = node.args[0] if node.args else node.op
    return found[:-1]


def backward_fold_scale_axis(mod: IRModule) -> IRModule:
    """Factors behind convolutions and matrix products move into their weights' outputs."""
    return per_function(mod, lambda f: _fold(f, True))


def forward_fold_scale_axis(mod: IRModule) -> IRModule:
    """Factors in front of convolutions and matrix products move into their weights' inputs."""
    return per_function(mod, lambda f: _fold(f, False))


def fold_scale_axis(mod: IRModule) -> IRModule:
    """Backward, then forward."""
    return forward_fold_scale_axis(backward_fold_scale_axis(mod))


@dataclass(frozen=True)
class FoldScaleAxis(Pass):
    """Fold factors of channels around convolutions and matrix products into constant weights."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        new = fold_scale_axis(mod)
        return fold_constant(new, evaluator()) if new is not mod else mod
