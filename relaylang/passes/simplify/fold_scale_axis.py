"""FoldScaleAxis: fold factors of channels into the weights of the convolutions or matrix products beside them.

Backward: `multiply(conv(x, w), s)` is `conv(x, w * s)` with the factors along the weight's outputs. Forward:
`conv(multiply(x, s), w)` is `conv(x, w * s)` along its inputs. Between the two there may be additions of channels,
which are scaled, too, and additions of two such tensors. Where all factors are known to be positive, there may be relu
and leaky_relu. Forward, all users of a value take the factors; backward, a value with several users stays as it is.

Both ways, calls first say along which axes they can take factors on. Then the factors move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relaylang.ir import Call, Expr, Function, IRModule, children, post_order, rebuilt
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function
from relaylang.passes.simplify.fold_constant import evaluator, fold_constant
from relaylang.rules.scale_folding import (
    RULES,
    Factors,
    Product,
    Rule,
    Step,
    factors_of,
    is_along,
    scaled_operand,
    scaled_vector,
    weight_times,
)


@dataclass(frozen=True)
class _Way:
    """Factors along these axes can go on. On the way their signs may matter, and others may be divided by them.

    Where they are not `computed`, constants alone go on.
    """

    axes: tuple[int, ...]
    computed: bool
    positive: bool = False
    divided: bool = False

    def takes(self, factors: Factors) -> bool:
        fits = (factors.positive or not self.positive) and (factors.invertible or not self.divided)
        return fits and (factors.known or self.computed)


def _rule(expr: Expr) -> Rule | None:
    """The row of the operator that an expression calls."""
    return RULES.get(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else None


def _factored(call: Call, way: Callable[[Expr], _Way | None]) -> tuple[Expr, Factors] | None:
    """A product as a tensor, which leads on, and factors that can go that way."""
    shape = static_shape(call.checked_type)
    for x, s in (call.args, call.args[::-1]):
        direction = way(x)
        if direction is not None and shape is not None and static_shape(x.checked_type) == shape:
            factors = factors_of(s, shape, direction.axes)
            if factors is not None and direction.takes(factors):
                return x, factors
    return None


def _summand(call: Call, axes: tuple[int, ...]) -> int | None:
    """Which operand of a sum is the tensor, where the other one differs along the axes alone."""
    shape = static_shape(call.checked_type)
    for at in (0, 1):
        if shape is not None and static_shape(call.args[at].checked_type) == shape and is_along(call.args[1 - at], shape, axes):
            return at
    return None


def _vector_axes(call: Call) -> tuple[int, ...]:
    shape = static_shape(call.checked_type)
    return (call.attrs.axis % len(shape),) if shape else ()


def _again(call: Call, done: dict[int, Expr], factors: tuple[Factors, ...], tensor: int | None, divide: bool, which: str) -> Expr:
    """A call with its operands as they are now, which takes factors on. `tensor`: the operand of a sum that is scaled already;
    None where both are."""
    rebuilt_call = retype(rebuilt(call, done), call)
    assert isinstance(rebuilt_call, Call)
    args, rule, shape = list(rebuilt_call.args), _rule(call), static_shape(call.checked_type)
    for one in factors:
        if isinstance(rule, Product):
            axes = rule.axes(call, which)
            assert axes is not None
            args[1] = weight_times(args[1], one, axes[1])
        elif rule is Step.VECTOR:
            args[1] = scaled_vector(args[1], one, divide)
        elif rule is Step.SUM and tensor is not None:
            assert shape is not None
            args[1 - tensor] = scaled_operand(args[1 - tensor], one, shape, divide)
    return (
        retype(Call(rebuilt_call.op, args, rebuilt_call.attrs, rebuilt_call.type_args, rebuilt_call.span), call)
        if factors
        else rebuilt_call
    )


def _ways_up(order: Sequence[Expr], computed: bool) -> dict[int, _Way]:
    """How factors of a value that is used once go on to the operands of its call, by the value's identity."""
    users = Counter(id(child) for node in order for child in children(node))
    ways: dict[int, _Way] = {}
    for node in order:
        if isinstance(node, Call) and users[id(node)] == 1:
            way = _onward(node, computed, lambda operand: ways.get(id(operand)))
            if way is not None:
                ways[id(node)] = way
    return ways


def _onward(call: Call, computed: bool, way: Callable[[Expr], _Way | None]) -> _Way | None:
    """How factors of a call's result go on to its operands."""
    rule, first = _rule(call), way(call.args[0]) if call.args else None
    if isinstance(rule, Product):
        axes = rule.axes(call, "O")
        return None if axes is None else _Way(axes[0], computed)
    if rule is Step.POSITIVE and first is not None:
        return replace(first, positive=True)
    if rule is Step.VECTOR and first is not None and first.axes == _vector_axes(call):
        return first
    if rule is Step.SUM:
        both = [w for w in map(way, call.args) if w is not None]
        if len(both) == 2 and both[0].axes == both[1].axes:
            return replace(both[0], positive=both[0].positive or both[1].positive)
        return next((w for w in both if len(both) == 1 and _summand(call, w.axes) == (way(call.args[1]) is w)), None)
    if rule is Step.FACTORS:
        product = _factored(call, way)
        return None if product is None else way(product[0])
    return None


def _fold_backward(func: Function, computed: bool) -> Expr:
    order = list(post_order(func))
    ways = _ways_up(order, computed)
    pending: dict[int, tuple[Factors, ...]] = {}
    gone: dict[int, Expr] = {}
    for node in reversed(order):
        mine = pending.get(id(node), ())
        rule = _rule(node)
        if rule is Step.FACTORS and isinstance(node, Call):
            split = _factored(node, lambda operand: ways.get(id(operand)))
            if split is not None:
                gone[id(node)] = split[0]
                pending[id(split[0])] = (*mine, split[1])
        elif mine and isinstance(node, Call) and not isinstance(rule, Product):
            pending.update((id(a), mine) for a in (node.args if rule is Step.SUM else node.args[:1]) if id(a) in ways)
    if not gone:
        return func
    done: dict[int, Expr] = {}
    for node in order:
        if id(node) in gone:
            done[id(node)] = done[id(gone[id(node)])]
        elif isinstance(node, Call):
            scaled = [n for n, a in enumerate(node.args[:2]) if id(a) in ways]
            tensor = scaled[0] if len(scaled) == 1 else None
            done[id(node)] = _again(node, done, pending.get(id(node), ()), tensor, False, "O")
        else:
            done[id(node)] = retype(rebuilt(node, done), node)
    return done[id(func)]


def _factors_down(order: Sequence[Expr], computed: bool) -> dict[int, tuple[Expr, Factors]]:
    """The products whose factors go on to all users of their results, by identity: the tensor and the factors."""
    users = Counter(id(child) for node in order for child in children(node))
    offers: dict[int, list[_Way]] = {}
    taken: dict[int, tuple[Expr, Factors]] = {}
    for node in reversed(order):
        if not isinstance(node, Call) or _rule(node) is None:
            continue
        offered = offers.get(id(node), [])
        here: _Way | None = None
        if offered and len(offered) == users[id(node)] and all(w.axes == offered[0].axes for w in offered):
            here = _Way(offered[0].axes, computed, any(w.positive for w in offered), any(w.divided for w in offered))
        if here is not None and _rule(node) is Step.FACTORS:
            split = _factored(node, lambda x, here=here: here)  # type: ignore[misc]
            if split is not None:
                taken[id(node)] = split
        operand, way = _inward(node, computed, here)
        if operand is not None and way is not None:
            offers.setdefault(id(operand), []).append(way)
    return taken


def _inward(call: Call, computed: bool, here: _Way | None) -> tuple[Expr | None, _Way | None]:
    """The operand whose factors a call takes on, and how. `here` says how those of its result go on."""
    rule = _rule(call)
    if isinstance(rule, Product):
        axes = rule.axes(call, "I")
        return call.args[0], None if axes is None else _Way(axes[0], computed)
    if here is None:
        return None, None
    if rule is Step.POSITIVE:
        return call.args[0], replace(here, positive=True)
    if rule is Step.VECTOR and here.axes == _vector_axes(call):
        return call.args[0], replace(here, divided=True)
    if rule is Step.SUM:
        at = _summand(call, here.axes)
        return None if at is None else call.args[at], replace(here, divided=True)
    return None, None


def _fold_forward(func: Function, computed: bool) -> Expr:
    order = list(post_order(func))
    taken = _factors_down(order, computed)
    if not taken:
        return func
    done: dict[int, Expr] = {}
    carried: dict[int, Factors] = {}
    for node in order:
        if id(node) in taken:
            x, factors = taken[id(node)]
            done[id(node)], carried[id(node)] = done[id(x)], factors
            continue
        if not isinstance(node, Call):
            done[id(node)] = retype(rebuilt(node, done), node)
            continue
        rule = _rule(node)
        from_which = node.args[:2] if rule is Step.SUM else node.args[:1]
        tensor = next((n for n, a in enumerate(from_which) if id(a) in carried), None) if rule is not None else None
        mine = carried[id(node.args[tensor])] if tensor is not None else None
        done[id(node)] = _again(node, done, () if mine is None else (mine,), tensor, True, "I")
        if mine is not None and not isinstance(rule, Product):
            carried[id(node)] = mine
    return done[id(func)]


def backward_fold_scale_axis(mod: IRModule, computed: bool = True) -> IRModule:
    """Factors behind convolutions and matrix products move into their weights' outputs."""
    return per_function(mod, lambda func: _fold_backward(func, computed))


def forward_fold_scale_axis(mod: IRModule, computed: bool = True) -> IRModule:
    """Factors in front of convolutions and matrix products move into their weights' inputs."""
    return per_function(mod, lambda func: _fold_forward(func, computed))


@dataclass(frozen=True)
class FoldScaleAxis(Pass):
    """Fold factors of channels around convolutions and matrix products into weights.

    `computed`: also factors that are no constants, such as gates. The weights are computed at run time then, too.
    """

    computed: bool = True

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        new = forward_fold_scale_axis(backward_fold_scale_axis(mod, self.computed), self.computed)
        return fold_constant(new, evaluator()) if new is not mod else mod
