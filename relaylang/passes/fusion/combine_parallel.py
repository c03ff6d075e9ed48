"""What the CombineParallel passes share: products of one input with several weights become one wider product.

Products that agree in everything but their number of outputs are the starts of branches. Where there are enough of
them, one product with all their weights takes their place, and the element-wise and broadcasting operators that every
branch goes on with in the same way (a bias, an activation) are joined as well. What each branch computed is a slice of
the whole.

A product's level is the greatest number of products on a path that leads to it. Only products of one level become one,
with operands of lower levels: no branch waits for another, and no two wholes wait for each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Match,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    children,
    post_order,
    rebuilt,
)
from relaylang.ir.tensors import tensor_type
from relaylang.ops import make_attrs
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.rewriting import is_call, per_function, retype

#: Operators of one operand that treat every element by itself.
UNARY = frozenset(
    ("abs acos acosh asin asinh atan atanh bitwise_not cast ceil clip copy cos cosh erf exp fast_erf fast_exp fast_tanh "
     "fixed_point_multiply floor isfinite isinf isnan log log10 log2 logical_not negative nn.leaky_relu nn.relu ones_like round "
     "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zeros_like").split()
)  # fmt: skip
#: Operators that align their operands' shapes at the right and stretch extents of 1.
BROADCAST = frozenset(
    ("add bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal left_shift less "
     "less_equal logical_and logical_or logical_xor maximum minimum mod multiply not_equal power right_shift subtract "
     "trunc_divide trunc_mod where").split()
)  # fmt: skip

_Scope = tuple[int, int]
_SPREAD: _Scope = (-1, -1)


class Step(NamedTuple):
    """Calls of one operator, one a branch, that become one call."""

    calls: list[Call]
    position: int  # of the operand that comes from the step before
    axis: int  # of the result: along it the branches lie side by side


class Family(Protocol):
    """How products of one operator are joined."""

    name: str

    def key(self, call: Call) -> Hashable | None:
        """What branches must share; None where the call cannot be joined."""

    def axis(self, call: Call) -> int:
        """The axis of the product's result along which branches lie."""

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        """The axis behind the next step, or None where it cannot be joined; `axis` is the one before it."""

    def product(self, step: Step, data: Expr, weights: list[Expr]) -> Expr:
        """The products as one."""

    def follow(self, step: Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        """The next step on the whole; `others[i]` are the operand `i` of every branch."""

    def parts(self, step: Step, whole: Expr) -> list[Expr]:
        """Each branch's own."""


class _Group:
    """Branches that become one."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.parts: list[Expr] | None = None

    def needs(self) -> list[Expr]:
        """What the whole is made of."""
        first, *rest = self.steps
        found = [first.calls[0].args[0], *[c.args[1] for c in first.calls]]
        for step in rest:
            found += [a for c in step.calls for i, a in enumerate(c.args) if i != step.position]
        return found

    def build(self, family: Family, done: dict[int, Expr]) -> list[Expr]:
        """The branches' results, made of what stands for the needs."""
        if self.parts is None:
            first, *rest = self.steps
            whole = family.product(first, done[id(first.calls[0].args[0])], [done[id(c.args[1])] for c in first.calls])
            for step in rest:
                number = len(step.calls[0].args)
                others = [
                    [done[id(c.args[i])] for c in step.calls] if i != step.position else [] for i in range(number)
                ]
                whole = family.follow(step, whole, others)
            self.parts = family.parts(self.steps[-1], whole)
        return self.parts


def combine(mod: IRModule, family: Family, least: int) -> IRModule:
    return per_function(mod, lambda f: _combine_in(f, family, max(least, 2)))


def _combine_in(func: Function, family: Family, least: int) -> Expr:
    order = list(post_order(func))
    if sum(is_call(node, family.name) for node in order) < least:
        return func
    groups = _Finder(order, family).groups(least)
    if not groups:
        return func
    tails = {id(call): (group, i) for group in groups for i, call in enumerate(group.steps[-1].calls)}
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(func, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        tail = tails.get(id(node))
        if not ready:
            needs: Sequence[Expr] = tail[0].needs() if tail is not None and tail[0].parts is None else ()
            stack.append((node, True))
            stack.extend([(c, False) for c in reversed(needs if tail is not None else children(node))])
        elif tail is not None:
            done[id(node)] = retype(tail[0].build(family, done)[tail[1]], node)
        else:
            done[id(node)] = retype(rebuilt(node, done), node)
    return done[id(func)]


class _Finder:
    """The groups of branches in a function; `order` has its nodes, children first."""

    def __init__(self, order: list[Expr], family: Family) -> None:
        self.order = order
        self.family = family
        #: The only node that uses a node, None where there are several uses.
        self.user: dict[int, Expr | None] = {}
        self.scopes: dict[int, _Scope] = {id(order[-1]): (0, 0)}
        self.levels: dict[int, int] = {}
        #: Made of constants, parameters and operators alone: to be had everywhere in the scope that it is used in.
        self.simple: set[int] = set()
        self.find_levels()
        self.find_scopes()

    def find_levels(self) -> None:
        bound = {node.variable for node in self.order if isinstance(node, Let)}
        levels, simple = self.levels, self.simple
        for node in self.order:
            inner = children(node)
            levels[id(node)] = max([levels[id(c)] for c in inner], default=0) + is_call(node, self.family.name)
            if isinstance(node, (Constant, Op)) or (isinstance(node, Var) and node not in bound):
                simple.add(id(node))
            elif isinstance(node, (Call, Tuple, TupleGetItem)) and all([id(c) in simple for c in inner]):
                simple.add(id(node))

    def find_scopes(self) -> None:
        """The function, branch or arm that each node stands in: `_SPREAD` where it stands in several."""
        scopes, user = self.scopes, self.user
        for node in reversed(self.order):
            here = scopes[id(node)]
            for i, child in enumerate(children(node)):
                key = id(child)
                user[key] = node if key not in user else None
                opens = isinstance(node, Function) or (isinstance(node, (If, Match)) and i > 0)
                where = (id(node), i) if opens else here
                if scopes.setdefault(key, where) != where:
                    scopes[key] = _SPREAD

    def groups(self, least: int) -> list[_Group]:
        found: dict[Hashable, list[Call]] = {}
        for node in self.order:
            if not isinstance(node, Call) or not is_call(node, self.family.name) or id(node.args[1]) not in self.simple:
                continue
            scope, key = self.scopes[id(node)], self.family.key(node)
            if key is not None and scope != _SPREAD:
                place = (id(node.args[0]), self.levels[id(node)], scope)
                found.setdefault((place, key), []).append(node)
        return [self.group(calls) for calls in found.values() if len(calls) >= least]

    def group(self, calls: list[Call]) -> _Group:
        steps = [Step(calls, 0, self.family.axis(calls[0]))]
        while True:
            step = self.next(steps[-1], self.levels[id(calls[0])])
            if step is None:
                return _Group(steps)
            steps.append(step)

    def next(self, last: Step, level: int) -> Step | None:
        """What all branches go on with, if that is the same and can be joined."""
        calls: list[Call] = []
        position = -1
        for before in last.calls:
            call = self.user.get(id(before))
            if not isinstance(call, Call) or not isinstance(call.op, Op):
                return None
            at = [a is before for a in call.args].index(True)
            first = calls[0] if calls else call
            if not calls:
                position = at
            same = call.op is first.op and len(call.args) == len(first.args) and attr_values(call) == attr_values(first)
            if at != position or not same or self.scopes[id(call)] != self.scopes[id(before)]:
                return None
            others = [id(a) for i, a in enumerate(call.args) if i != at]
            if not all([o in self.simple and self.levels[o] < level for o in others]):
                return None
            calls.append(call)
        axis = self.family.fits(calls, position, last.axis)
        return None if axis is None else Step(calls, position, axis)


def op_name(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.name


def attr_values(call: Call, *without: str) -> Hashable:
    """A call's attributes, to be compared."""
    if call.attrs is None:
        return None
    return tuple([(n, repr(getattr(call.attrs, n))) for n in type(call.attrs).schema if n not in without])


def type_of(expr: Expr) -> TensorType:
    ty = tensor_type(expr)
    assert ty is not None
    return ty


def shape_of(expr: Expr) -> tuple[Any, ...]:
    return type_of(expr).shape


def is_known(*shapes: tuple[Any, ...]) -> bool:
    return all([isinstance(d, int) for s in shapes for d in s])


def are_alike(exprs: Sequence[Expr], but: int | None = None) -> bool:
    """Tensors of one dtype, rank and known shape, whose extents along the axis `but` may differ."""
    types = [tensor_type(e) for e in exprs]
    first = types[0]
    if first is None or (but is not None and not 0 <= but < max(len(first.shape), 1)):
        return False
    for ty in types:
        if ty is None or ty.dtype != first.dtype or len(ty.shape) != len(first.shape) or not is_known(ty.shape):
            return False
        if any([a != b for i, (a, b) in enumerate(zip(ty.shape, first.shape)) if i != but]):
            return False
    return True


def _together(items: list[Expr]) -> Tuple:
    made = Tuple(items)
    made.checked_type = TupleType([type_of(i) for i in items])
    return made


def widened(ty: TensorType, axis: int, extent: int) -> TensorType:
    return TensorType((*ty.shape[:axis], extent, *ty.shape[axis + 1 :]), ty.dtype)


def total_extent(items: Sequence[Expr], axis: int) -> int:
    return sum([shape_of(item)[axis] for item in items])


def concatenated(items: list[Expr], axis: int, written: int | None = None) -> Expr:
    """The items one behind the other; `written` is how the axis stands in the attribute."""
    ty = widened(type_of(items[0]), axis, total_extent(items, axis))
    return op_call("concatenate", [_together(items)], ty, axis=axis if written is None else written)


def stacked(items: list[Expr]) -> Expr:
    ty = type_of(items[0])
    return op_call("stack", [_together(items)], TensorType((len(items), *ty.shape), ty.dtype), axis=0)


def expanded(item: Expr, axis: int, number: int) -> Expr:
    """An item with extents of 1 in front (`axis` 0), or a scalar with one."""
    ty = TensorType(((1,) * number + shape_of(item)), type_of(item).dtype)
    return op_call("expand_dims", [item], ty, axis=axis, num_newaxis=number)


def call_with(call: Call, args: list[Expr], ty: TensorType, **changed: object) -> Call:
    attrs = call.attrs
    if changed:
        cls = type(attrs)
        attrs = make_attrs(cls, {**{name: getattr(attrs, name) for name in cls.schema}, **changed})
    made = Call(call.op, args, attrs, (), call.span)
    made.checked_type = ty
    return made


def new_axes(call: Call, rank: int) -> tuple[int, int]:
    """Where an expand_dims of a tensor of this rank puts how many axes."""
    axis = call.attrs.axis
    return (axis if axis >= 0 else rank + 1 + axis), call.attrs.num_newaxis


