"""CombineParallelConv2D, -Dense, -BatchMatmul: products of one input with several weights become one wider product.

Products that agree in everything but their number of outputs are the starts of branches. Where there are enough of
them, one product with all their weights takes their place, and the element-wise and broadcasting operators that every
branch goes on with in the same way (a bias, an activation) are joined as well. What each branch computed is a slice of
the whole.

A product's level is the greatest number of products on a path that leads to it. Only products of one level become one,
with operands of lower levels: no branch waits for another, and no two wholes wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
from relaylang.passes.rewriting import per_function, retype

#: Operators of one operand that treat every element by itself.
_UNARY = frozenset(
    ("abs acos acosh asin asinh atan atanh bitwise_not cast ceil clip copy cos cosh erf exp fast_erf fast_exp fast_tanh "
     "fixed_point_multiply floor isfinite isinf isnan log log10 log2 logical_not negative nn.leaky_relu nn.relu ones_like round "
     "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zeros_like").split()
)  # fmt: skip
#: Operators that align their operands' shapes at the right and stretch extents of 1.
_BROADCAST = frozenset(
    ("add bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal left_shift less "
     "less_equal logical_and logical_or logical_xor maximum minimum mod multiply not_equal power right_shift subtract "
     "trunc_divide trunc_mod where").split()
)  # fmt: skip
#: Operators whose second operand is a vector along `axis`.
_ALONG = frozenset(("nn.bias_add", "nn.prelu"))

_Scope = tuple[int, int]
_SPREAD: _Scope = (-1, -1)


class _Step(NamedTuple):
    """Calls of one operator, one a branch, that become one call."""

    calls: list[Call]
    position: int  # of the operand that comes from the step before
    axis: int  # of the result: along it the branches lie side by side


class _Family(Protocol):
    """How products of one operator are joined."""

    name: str

    def key(self, call: Call) -> Hashable | None:
        """What branches must share; None where the call cannot be joined."""

    def axis(self, call: Call) -> int:
        """The axis of the product's result along which branches lie."""

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        """The axis behind the next step, or None where it cannot be joined; `axis` is the one before it."""

    def product(self, step: _Step, data: Expr, weights: list[Expr]) -> Expr:
        """The products as one."""

    def follow(self, step: _Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        """The next step on the whole; `others[i]` are the operand `i` of every branch."""

    def parts(self, step: _Step, whole: Expr) -> list[Expr]:
        """Each branch's own."""


class _Group:
    """Branches that become one."""

    def __init__(self, steps: list[_Step]) -> None:
        self.steps = steps
        self.parts: list[Expr] | None = None

    def needs(self) -> list[Expr]:
        """What the whole is made of."""
        first, *rest = self.steps
        found = [first.calls[0].args[0], *[c.args[1] for c in first.calls]]
        for step in rest:
            found += [a for c in step.calls for i, a in enumerate(c.args) if i != step.position]
        return found

    def build(self, family: _Family, done: dict[int, Expr]) -> list[Expr]:
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


def _combine(mod: IRModule, family: _Family, least: int) -> IRModule:
    return per_function(mod, lambda f: _combine_in(f, family, max(least, 2)))


def _is_call(node: Expr, name: str) -> bool:
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == name


def _combine_in(func: Function, family: _Family, least: int) -> Expr:
    order = list(post_order(func))
    if sum(_is_call(node, family.name) for node in order) < least:
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

    def __init__(self, order: list[Expr], family: _Family) -> None:
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
            levels[id(node)] = max([levels[id(c)] for c in inner], default=0) + _is_call(node, self.family.name)
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
            if not isinstance(node, Call) or not _is_call(node, self.family.name) or id(node.args[1]) not in self.simple:
                continue
            scope, key = self.scopes[id(node)], self.family.key(node)
            if key is not None and scope != _SPREAD:
                place = (id(node.args[0]), self.levels[id(node)], scope)
                found.setdefault((place, key), []).append(node)
        return [self.group(calls) for calls in found.values() if len(calls) >= least]

    def group(self, calls: list[Call]) -> _Group:
        steps = [_Step(calls, 0, self.family.axis(calls[0]))]
        while True:
            step = self.next(steps[-1], self.levels[id(calls[0])])
            if step is None:
                return _Group(steps)
            steps.append(step)

    def next(self, last: _Step, level: int) -> _Step | None:
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
            same = call.op is first.op and len(call.args) == len(first.args) and _values(call) == _values(first)
            if at != position or not same or self.scopes[id(call)] != self.scopes[id(before)]:
                return None
            others = [id(a) for i, a in enumerate(call.args) if i != at]
            if not all([o in self.simple and self.levels[o] < level for o in others]):
                return None
            calls.append(call)
        axis = self.family.fits(calls, position, last.axis)
        return None if axis is None else _Step(calls, position, axis)


def _name(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.name


def _values(call: Call, *without: str) -> Hashable:
    """A call's attributes, to be compared."""
    if call.attrs is None:
        return None
    return tuple([(n, repr(getattr(call.attrs, n))) for n in type(call.attrs).schema if n not in without])


def _type(expr: Expr) -> TensorType:
    ty = tensor_type(expr)
    assert ty is not None
    return ty


def _shape(expr: Expr) -> tuple[Any, ...]:
    return _type(expr).shape


def _known(*shapes: tuple[Any, ...]) -> bool:
    return all([isinstance(d, int) for s in shapes for d in s])


def _alike(exprs: Sequence[Expr], but: int | None = None) -> bool:
    """Tensors of one dtype, rank and known shape, whose extents along the axis `but` may differ."""
    types = [tensor_type(e) for e in exprs]
    first = types[0]
    if first is None or (but is not None and not 0 <= but < max(len(first.shape), 1)):
        return False
    for ty in types:
        if ty is None or ty.dtype != first.dtype or len(ty.shape) != len(first.shape) or not _known(ty.shape):
            return False
        if any([a != b for i, (a, b) in enumerate(zip(ty.shape, first.shape)) if i != but]):
            return False
    return True


def _together(items: list[Expr]) -> Tuple:
    made = Tuple(items)
    made.checked_type = TupleType([_type(i) for i in items])
    return made


def _widened(ty: TensorType, axis: int, extent: int) -> TensorType:
    return TensorType((*ty.shape[:axis], extent, *ty.shape[axis + 1 :]), ty.dtype)


def _total(items: Sequence[Expr], axis: int) -> int:
    return sum([_shape(item)[axis] for item in items])


def _concatenated(items: list[Expr], axis: int, written: int | None = None) -> Expr:
    """The items one behind the other; `written` is how the axis stands in the attribute."""
    ty = _widened(_type(items[0]), axis, _total(items, axis))
    return op_call("concatenate", [_together(items)], ty, axis=axis if written is None else written)


def _stacked(items: list[Expr]) -> Expr:
    ty = _type(items[0])
    return op_call("stack", [_together(items)], TensorType((len(items), *ty.shape), ty.dtype), axis=0)


def _expanded(item: Expr, axis: int, number: int) -> Expr:
    """An item with extents of 1 in front (`axis` 0), or a scalar with one."""
    ty = TensorType(((1,) * number + _shape(item)), _type(item).dtype)
    return op_call("expand_dims", [item], ty, axis=axis, num_newaxis=number)


def _with(call: Call, args: list[Expr], ty: TensorType, **changed: object) -> Call:
    attrs = call.attrs
    if changed:
        cls = type(attrs)
        attrs = make_attrs(cls, {**{name: getattr(attrs, name) for name in cls.schema}, **changed})
    made = Call(call.op, args, attrs, (), call.span)
    made.checked_type = ty
    return made


def _grown(call: Call, rank: int) -> tuple[int, int]:
    """Where an expand_dims of a tensor of this rank puts how many axes."""
    axis = call.attrs.axis
    return (axis if axis >= 0 else rank + 1 + axis), call.attrs.num_newaxis


class _SideBySide:
    """Products whose results lie side by side along one axis.

    `outputs` is the attribute that says how many there are, if any. With `stretch`, operands of later steps that are
    the same for all outputs are repeated for each; else such a step is not joined. A slice's attributes are written for
    every axis where `full`, else for those up to the one that is sliced.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[Call], Hashable | None],
        axis: Callable[[Call], int],
        weight_axis: Callable[[Call], int],
        outputs: str | None,
        stretch: bool,
        full: bool = False,
        written: int | None = None,
    ) -> None:
        self.name = name
        self.key = key
        self.axis = axis
        self.weight_axis = weight_axis
        self.outputs = outputs
        self.stretch = stretch
        self.full = full
        self.written = written

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        first = calls[0]
        before = tensor_type(first.args[position])
        if before is None or any([tensor_type(c) is None for c in calls]):
            return None
        name, rank = _name(first), len(_shape(first))
        if name in _UNARY:
            return axis
        if name == "expand_dims":
            at, number = _grown(first, len(before.shape))
            return axis + number if at <= axis else axis
        if name in _ALONG:
            if position != 0 or first.attrs.axis not in (axis, axis - rank):
                return None
            widths = [_shape(c)[axis] for c in calls]
            return axis if [tensor_type(c.args[1]) and _shape(c.args[1]) for c in calls] == [(w,) for w in widths] else None
        if name not in _BROADCAST:
            return None
        new = axis + rank - len(before.shape)
        if any([_shape(c)[new] != _shape(c.args[position])[axis] for c in calls]):
            return None
        for i in range(len(first.args)):
            if i == position:
                continue
            operands = [c.args[i] for c in calls]
            if tensor_type(operands[0]) is None:
                return None
            own = len(_shape(operands[0]))
            at = new - rank + (own or int(self.stretch))
            if not _alike(operands, at):
                return None
            for call, operand in zip(calls, operands):
                extent = _shape(operand)[at] if own else 1
                if extent != _shape(call)[new] and not (self.stretch and extent == 1):
                    return None
        return new

    def product(self, step: _Step, data: Expr, weights: list[Expr]) -> Expr:
        first, total = step.calls[0], _total(step.calls, step.axis)
        weight = _concatenated(weights, self.weight_axis(first))
        changed: dict[str, object] = {self.outputs: total} if self.outputs else {}
        return _with(first, [data, weight], _widened(_type(first), step.axis, total), **changed)

    def follow(self, step: _Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        first, axis = step.calls[0], step.axis
        rank = len(_shape(first))
        args: list[Expr] = []
        for i, operands in enumerate(others):
            if i == step.position:
                args.append(whole)
            elif _name(first) in _ALONG:
                args.append(_concatenated(operands, 0, self.written))
            else:
                at = axis - rank + (len(_shape(operands[0])) or 1)
                wide = [self.stretched(o, at, _shape(c)[axis]) for o, c in zip(operands, step.calls)]
                args.append(_concatenated(wide, at, self.written))
        return _with(first, args, _widened(_type(first), axis, _total(step.calls, axis)))

    def stretched(self, operand: Expr, axis: int, extent: int) -> Expr:
        """An operand with as many outputs as its branch."""
        scalar = not _shape(operand)
        if scalar:
            operand = _expanded(operand, -1, 1)
        if not scalar and _shape(operand)[axis] == extent:
            return operand
        ty = _widened(_type(operand), axis, extent)
        return op_call("repeat", [operand], ty, repeats=extent, axis=axis)

    def parts(self, step: _Step, whole: Expr) -> list[Expr]:
        axis = step.axis
        found: list[Expr] = []
        begin = 0
        for call in step.calls:
            ty = _type(call)
            extent, behind = ty.shape[axis], (len(ty.shape) - axis - 1 if self.full else 0)
            assert isinstance(extent, int)
            found.append(
                op_call(
                    "strided_slice",
                    [whole],
                    ty,
                    begin=[0] * axis + [begin] + [0] * behind,
                    end=[-1] * axis + [extent] + [-1] * behind,
                    strides=[1] * (axis + 1 + behind),
                    slice_mode="size",
                )
            )
            begin += extent
        return found


class _Batch:
    """Dense products of one shape as a batch of matrix products."""

    name = "nn.dense"

    def key(self, call: Call) -> Hashable | None:
        types = [tensor_type(a) for a in call.args]
        if any([t is None or len(t.shape) != 2 for t in types]) or not _known(_shape(call.args[1])):
            return None
        weight = _type(call.args[1])
        return (call.attrs.out_dtype, weight.dtype, weight.shape)

    def axis(self, call: Call) -> int:
        return 0

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        first = calls[0]
        before = tensor_type(first.args[position])
        if before is None or tensor_type(first) is None:
            return None
        name, rank = _name(first), len(_shape(first))
        if name in _UNARY or name == "expand_dims":
            return 0
        if name == "nn.bias_add" and first.attrs.axis not in (-1, rank - 1):
            return None
        if name not in _BROADCAST and name != "nn.bias_add":
            return None
        others = [[c.args[i] for c in calls] for i in range(len(first.args)) if i != position]
        return 0 if rank == len(before.shape) and all([_alike(o) for o in others]) else None

    def product(self, step: _Step, data: Expr, weights: list[Expr]) -> Expr:
        first, number = step.calls[0], len(step.calls)
        ty = _type(first)
        args = [_stacked([data] * number), _stacked(weights)]
        whole = TensorType((number, *ty.shape), ty.dtype)
        return op_call("nn.batch_matmul", args, whole, out_dtype=first.attrs.out_dtype, transpose_b=True)

    def follow(self, step: _Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        first = step.calls[0]
        ty = _type(first)
        made = TensorType((len(step.calls), *ty.shape), ty.dtype)
        args: list[Expr] = []
        for i, operands in enumerate(others):
            if i == step.position:
                args.append(whole)
                continue
            missing = len(ty.shape) - len(_shape(operands[0]))
            args.append(_stacked([_expanded(o, 0, missing) if missing else o for o in operands]))
        if _name(first) == "nn.bias_add":
            return op_call("add", args, made)
        if _name(first) == "expand_dims" and first.attrs.axis >= 0:
            return _with(first, args, made, axis=first.attrs.axis + 1)
        return _with(first, args, made)

    def parts(self, step: _Step, whole: Expr) -> list[Expr]:
        ty, number = _type(step.calls[0]), len(step.calls)
        part_type = TensorType((1, *ty.shape), ty.dtype)
        parts = op_call("split", [whole], TupleType([part_type] * number), indices_or_sections=number, axis=0)
        found: list[Expr] = []
        for i in range(number):
            part = TupleGetItem(parts, i)
            part.checked_type = part_type
            found.append(op_call("squeeze", [part], ty, axis=[0]))
        return found


def _conv2d_key(call: Call) -> Hashable | None:
    attrs, weight, ty = call.attrs, tensor_type(call.args[1]), tensor_type(call)
    data, kernel = attrs.data_layout, attrs.kernel_layout
    if weight is None or ty is None or not _known(weight.shape) or attrs.groups != 1:
        return None
    if "O" not in kernel or "C" not in data or any(c.islower() for c in kernel + data):
        return None
    if attrs.out_layout not in ("", data):
        return None
    axis = kernel.index("O")
    return (_values(call, "channels", "kernel_size"), weight.shape[:axis], weight.shape[axis + 1 :], weight.dtype)


def _dense_key(call: Call) -> Hashable | None:
    weight, ty = tensor_type(call.args[1]), tensor_type(call)
    if weight is None or ty is None or len(weight.shape) != 2 or not _known(weight.shape):
        return None
    return (call.attrs.out_dtype, weight.dtype, weight.shape[1])


def _batch_matmul_key(call: Call) -> Hashable | None:
    right, ty, attrs = tensor_type(call.args[1]), tensor_type(call), call.attrs
    if right is None or ty is None or len(right.shape) != 3 or not _known(right.shape):
        return None
    return (attrs.out_dtype, attrs.transpose_a, attrs.transpose_b, right.dtype, right.shape[0])


_CONV2D = _SideBySide(
    "nn.conv2d",
    _conv2d_key,
    axis=lambda call: str(call.attrs.data_layout).index("C"),
    weight_axis=lambda call: str(call.attrs.kernel_layout).index("O"),
    outputs="channels",
    stretch=False,
)
_DENSE = _SideBySide(
    "nn.dense",
    _dense_key,
    axis=lambda call: len(_shape(call)) - 1,
    weight_axis=lambda _: 0,
    outputs="units",
    stretch=True,
    full=True,
)
_BATCH_MATMUL = _SideBySide(
    "nn.batch_matmul",
    _batch_matmul_key,
    axis=lambda _: 2,
    weight_axis=lambda call: 1 if call.attrs.transpose_b else 2,
    outputs=None,
    stretch=True,
    written=-1,
)
_BATCH = _Batch()


def combine_parallel_conv2d(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.conv2d of one input with kernels of one size and one group, in layouts without blocks.

    The operands of joined steps have one value an output channel; a step with one value for all of them is not joined.
    """
    return _combine(mod, _CONV2D, min_num_branches)


def combine_parallel_dense(mod: IRModule, min_num_branches: int = 3, to_batch: bool = True) -> IRModule:
    """nn.dense of one input. `to_batch`: weights of one shape as a batch; else weights side by side, of any widths."""
    return _combine(mod, _BATCH if to_batch else _DENSE, min_num_branches)


def combine_parallel_batch_matmul(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.batch_matmul of one left side, with the right sides side by side."""
    return _combine(mod, _BATCH_MATMUL, min_num_branches)
