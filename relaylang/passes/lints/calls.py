"""Lints on calls: those that do nothing, cancel each other, or are made twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from relaylang.diagnostics import Diagnostic
from relaylang.ir import Call, Constant, Expr, Function, If, Match, TensorType, children
from relaylang.ops.record import Op
from relaylang.passes.lints.view import View, finding
from relaylang.passes.simplify.eliminate_common_subexpr import Keys

#: Operators whose result is the same when they are applied again.
_IDEMPOTENT = frozenset({"nn.relu", "abs", "ceil", "floor", "trunc", "round", "sign", "copy", "clip"})
#: Operators that undo themselves.
_INVOLUTIONS = frozenset({"negative", "logical_not", "bitwise_not", "reverse"})
#: Operators that give their operand another shape, and keep the order of its elements.
_SHAPES = frozenset({"reshape", "squeeze", "expand_dims", "nn.batch_flatten"})


#: Integers that a multiplication and a division by one scale leave as they are, in float32.
_SMALL = frozenset({"int8", "uint8", "int16", "uint16"})


#: Between these, a scale times an integer of 16 bits is a normal float32 number.
_LEAST_SCALE, _GREATEST_SCALE = 1e-30, 1e30


def name_of(expr: Expr) -> str:
    """The name of a called operator, or ""."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _tensor(expr: Expr) -> TensorType | None:
    ty = expr.checked_type
    return ty if isinstance(ty, TensorType) else None


def _axes(call: Call) -> list[int]:
    """The axes of a transpose."""
    ty = _tensor(call)
    rank = len(ty.shape) if ty is not None else 0
    axes = call.attrs.axes
    return [int(axis) % rank for axis in axes] if axes is not None else list(range(rank))[::-1]


def _static(ty: TensorType | None) -> bool:
    return ty is not None and all(isinstance(extent, int) for extent in ty.shape)


def _same(left: Expr, right: Expr) -> bool:
    """Whether two arguments are one value: one node, or equal constants."""
    if left is right:
        return True
    both = isinstance(left, Constant) and isinstance(right, Constant)
    return both and left.dtype == right.dtype and np.array_equal(left.data, right.data)  # type: ignore[attr-defined]


def _cast_to_own(call: Call) -> bool:
    source, target = _tensor(call.args[0]), _tensor(call)
    return source is not None and target is not None and source.dtype == target.dtype


def _own_shape(call: Call) -> bool:
    ty = _tensor(call.args[0])
    return _static(ty) and ty == _tensor(call)


def _whole(call: Call) -> bool:
    strides = call.attrs.strides
    return _own_shape(call) and (strides is None or all(int(step) == 1 for step in strides))


def _requantized_to_own(call: Call) -> bool:
    _, scale, zero, out_scale, out_zero = call.args
    return _cast_to_own(call) and _same(scale, out_scale) and _same(zero, out_zero)


#: Why a call does nothing, by the operator: whether it holds, and the words of the label.
_NOTHING: dict[str, tuple[Callable[[Call], bool], str]] = {
    "cast": (_cast_to_own, "the operand has this element type"),
    "transpose": (lambda call: _axes(call) == sorted(_axes(call)), "the axes stay in order"),
    **{name: (_own_shape, "the operand has this shape") for name in _SHAPES},
    "strided_slice": (_whole, "the slice is the whole operand"),
    "nn.pad": (lambda call: not np.any([list(pair) for pair in call.attrs.pad_width]), "the widths are 0"),
    "layout_transform": (lambda call: call.attrs.src_layout == call.attrs.dst_layout, "the layouts are the same"),
    "broadcast_to": (_own_shape, "the operand has this shape"),
    "qnn.requantize": (_requantized_to_own, "the scales and zero points are the same"),
}


def idle_calls(view: View) -> Iterator[Diagnostic]:
    """R1007: calls that give what they get."""
    for node in view.nodes:
        if not isinstance(node, Call) or not node.args:
            continue
        name = name_of(node)
        holds, label = _NOTHING.get(name, (None, ""))
        idle = holds is not None and holds(node)
        if not idle and name in _IDEMPOTENT:
            inner = view.value(node.args[0])
            idle = isinstance(inner, Call) and name_of(inner) == name and _same_attributes(node, inner)
            label = "the operand is such a result"
        if idle:
            fix = view.without(node.span) if _known_scales(node) else None
            yield finding("R1007", f"{name} changes nothing here", node.span, label, fix=fix)


def _same_attributes(left: Call, right: Call) -> bool:
    return left.attrs is right.attrs or repr(left.attrs) == repr(right.attrs)


def _known_scales(*calls: Call) -> bool:
    """Whether the scales of quantised operators are constants that divide every number which they multiplied."""
    for call in calls:
        if name_of(call) in ("qnn.requantize", "qnn.quantize", "qnn.dequantize"):
            scale = call.args[1]
            if not isinstance(scale, Constant) or not np.all((scale.data > _LEAST_SCALE) & (scale.data < _GREATEST_SCALE)):
                return False
    return True


def _widened(wide: Call) -> bool:
    """Whether a cast keeps every number. numpy holds float64 safe for 64-bit integers, and it is not."""
    source, target = _tensor(wide.args[0]), _tensor(wide)
    if source is None or target is None or (source.dtype in ("int64", "uint64") and target.dtype == "float64"):
        return False
    try:
        return bool(np.can_cast(source.dtype, target.dtype, "safe"))
    except TypeError:  # the small floats are not numpy's own
        return False


def _undone(outer: Call, inner: Call) -> bool:
    """Whether two calls, one on the other's result, give the inner one's operand."""
    name, below = name_of(outer), name_of(inner)
    if _tensor(outer) is None or _tensor(outer) != _tensor(inner.args[0]):
        return False
    if name in _SHAPES and below in _SHAPES:
        return _static(_tensor(outer))
    if name != below:
        return (name, below) == ("qnn.quantize", "qnn.dequantize") and _one_scale(outer, inner)
    if name == "transpose":
        first, second = _axes(inner), _axes(outer)
        return [first[axis] for axis in second] == sorted(second)
    if name == "layout_transform":
        return (outer.attrs.src_layout, outer.attrs.dst_layout) == (inner.attrs.dst_layout, inner.attrs.src_layout)
    return (name in _INVOLUTIONS and _same_attributes(outer, inner)) or (name == "cast" and _widened(inner))


def _one_scale(quantize: Call, dequantize: Call) -> bool:
    """Whether two calls have equal scales, and integers that survive both in float32."""
    ty = _tensor(quantize)
    if ty is None or ty.dtype not in _SMALL:
        return False
    scale = quantize.args[1]
    if isinstance(scale, Constant) and not _known_scales(quantize):
        return False
    same = all(map(_same, quantize.args[1:], dequantize.args[1:]))
    return same and quantize.attrs.axis == dequantize.attrs.axis


def _inside(inner: Expr, outer: Expr) -> bool:
    """Whether a call is written inside another one, not bound to a name."""
    a, b = inner.span, outer.span
    return a is not None and b is not None and b.start <= a.start and a.end <= b.end


def cancelling_calls(view: View) -> Iterator[Diagnostic]:
    """R1008: two calls, one on the other's result, that give back what the first one got."""
    for node in view.nodes:
        if not isinstance(node, Call) or not node.args or not isinstance(node.op, Op):
            continue
        inner = view.value(node.args[0])
        if isinstance(inner, Call) and isinstance(inner.op, Op) and inner.args and _undone(node, inner):
            title = f"{name_of(node)} undoes {name_of(inner)}"
            inside = _inside(inner, node) and _known_scales(node, inner)
            fix = view.without(node.span, inner.span) if inside else None
            yield finding("R1008", title, node.span, "gives back the operand", at=inner.span, also="of this call", fix=fix)


def repeated_calls(view: View) -> Iterator[Diagnostic]:
    """R1009: calls that are written twice with the same operands, where one of them would do.

    Branches and functions are looked at apart. Of repeated calls on repeated operands, only the last ones count. Calls on
    constants alone do not count: they are folded.
    """
    keys = Keys()
    seen: set[int] = set()
    roots: list[Expr] = list(view.functions.values())
    while roots:
        root = roots.pop()
        order = _region(root, roots, seen)
        first: dict[object, Expr] = {}
        again: dict[int, Expr] = {}
        for node in order:
            key = keys.of(node, again)
            earlier = first.setdefault(key, node) if key is not None else node
            if earlier is not node:
                again[id(node)] = earlier
        uses: Counter[int] = Counter()
        inside: Counter[int] = Counter()
        for node in order:
            for child in children(node):
                uses[id(child)] += 1
                inside[id(child)] += id(node) in again
        for node in order:
            known = again.get(id(node))
            if known is None or not isinstance(node, Call) or not view.has(node) or not view.has(known):
                continue
            if all(isinstance(arg, Constant) for arg in node.args):
                continue
            if uses[id(node)] != inside[id(node)]:
                yield finding(
                    "R1009",
                    f"{name_of(node)} is computed twice",
                    node.span,
                    "the same operands and attributes",
                    at=known.span,
                    also="first computed here",
                    note="bind the first result to a name, or let EliminateCommonSubexpr share it",
                )


def _region(root: Expr, roots: list[Expr], seen: set[int]) -> list[Expr]:
    """The nodes that run with a root, operands first. Branches and functions inside become roots of their own."""
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(root.body if isinstance(root, Function) else root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Function):
            roots.append(node)
            continue
        apart: tuple[Expr, ...] = ()
        if isinstance(node, If):
            apart = (node.true_branch, node.false_branch)
        elif isinstance(node, Match):
            apart = tuple([clause.rhs for clause in node.clauses])
        roots.extend(apart)
        stack.append((node, True))
        stack += [(child, False) for child in reversed(children(node)) if not any(child is part for part in apart)]
    return order
