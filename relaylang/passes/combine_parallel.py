"""CombineParallelConv2D, -Dense, -BatchMatmul: products of one input with several weights become one wider product.

Branches that agree in everything but their number of outputs are joined where there are at least so many; what each
computed is a slice of the whole. Weights must be parameters or constants (or made from such), so that no branch waits
for another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ops import make_attrs
from relaylang.ops.record import Op
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import per_function, retype, static_shape, tensor_type

#: What branches must share: None where a call cannot be combined.
Key = Callable[[Call], "Hashable | None"]
#: The combined call's results for branches on a new input, in order.
Join = Callable[[list[Call], Expr], list[Expr]]


def _combine(mod: IRModule, name: str, key: Key, join: Join, least: int) -> IRModule:
    return per_function(mod, lambda f: _combine_in(f, name, key, join, least))


def _combine_in(func: Function, name: str, key: Key, join: Join, least: int) -> Expr:
    order = list(post_order(func))
    given = set(func.params)
    simple: set[int] = set()
    for node in order:
        if isinstance(node, (Constant, Op)) or (isinstance(node, Var) and node in given):
            simple.add(id(node))
        elif isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == name:
            continue  # may be a branch itself
        elif isinstance(node, (Call, Tuple, TupleGetItem)) and all(id(c) in simple for c in children(node)):
            simple.add(id(node))
    groups: dict[Hashable, list[Call]] = {}
    scopes = _scopes(func)
    for node in order:
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == name and id(node.args[1]) in simple:
            shared = key(node)
            if shared is not None:
                groups.setdefault((id(node.args[0]), scopes.get(id(node)), shared), []).append(node)
    member: dict[int, tuple[Hashable, int]] = {}
    chosen = {k: calls for k, calls in groups.items() if len(calls) >= max(least, 2)}
    for k, calls in chosen.items():
        for i, call in enumerate(calls):
            member[id(call)] = (k, i)
    if not member:
        return func
    done: dict[int, Expr] = {}
    joined: dict[Hashable, list[Expr]] = {}
    for node in order:
        if id(node) in member:
            k, i = member[id(node)]
            if k not in joined:
                assert isinstance(node, Call)
                joined[k] = join(chosen[k], done[id(node.args[0])])
            done[id(node)] = retype(joined[k][i], node)
        else:
            done[id(node)] = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
    return done[id(func)]


def _scopes(func: Function) -> dict[int, int]:
    """For each node the function, branch or arm that it was first met in: only branches of one scope are combined."""
    found: dict[int, int] = {}
    stack: list[tuple[Expr, int]] = [(func, 0)]
    while stack:
        node, scope = stack.pop()
        if id(node) in found:
            continue
        found[id(node)] = scope
        for i, child in enumerate(children(node)):
            opens = isinstance(node, Function) or (not isinstance(node, (Call, Tuple, TupleGetItem)) and i > 0)
            stack.append((child, id(child) if opens else scope))
    return found


def _total(items: Sequence[Expr], axis: int) -> int:
    """The sum of the extents along an axis; all shapes are known."""
    total = 0
    for item in items:
        shape = static_shape(item.checked_type)
        assert shape is not None
        total += shape[axis]
    return total


def _concatenated(items: list[Expr], axis: int) -> Expr:
    types = [tensor_type(i) for i in items]
    first = types[0]
    assert first is not None
    extent = _total(items, axis)
    together = Tuple(items)
    together.checked_type = TupleType([t for t in types if t is not None])
    shape = (*first.shape[:axis], extent, *first.shape[axis + 1 :])
    return op_call("concatenate", [together], TensorType(shape, first.dtype), axis=axis)


def _slices(whole: Expr, calls: list[Call], axis: int) -> list[Expr]:
    found: list[Expr] = []
    begin = 0
    for call in calls:
        ty = tensor_type(call)
        assert ty is not None
        extent = _total([call], axis)
        found.append(
            op_call("strided_slice", [whole], ty, begin=[begin], end=[begin + extent], strides=[1], axes=[axis])
        )
        begin += extent
    return found


def _with(call: Call, args: list[Expr], ty: TensorType, **changed: object) -> Call:
    cls = type(call.attrs)
    values = {name: getattr(call.attrs, name) for name in cls.schema}
    made = Call(call.op, args, make_attrs(cls, {**values, **changed}), (), call.span)
    made.checked_type = ty
    return made


def _wide(call: Call, axis: int, extent: int) -> TensorType:
    ty = tensor_type(call)
    assert ty is not None
    return TensorType((*ty.shape[:axis], extent, *ty.shape[axis + 1 :]), ty.dtype)


def combine_parallel_conv2d(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.conv2d of one input with kernels of one size."""

    def key(call: Call) -> Hashable | None:
        attrs = call.attrs
        shapes = [static_shape(e.checked_type) for e in (*call.args, call)]
        if attrs.groups != 1 or None in shapes or "O" not in attrs.kernel_layout or "C" not in attrs.data_layout:
            return None
        if any(c.islower() for c in attrs.kernel_layout + attrs.data_layout) or attrs.out_layout not in ("", attrs.data_layout):
            return None
        axis = attrs.kernel_layout.index("O")
        weight = shapes[1]
        assert weight is not None
        rest = tuple((n, repr(getattr(attrs, n))) for n in type(attrs).schema if n != "channels")
        dtype = getattr(call.args[1].checked_type, "dtype", "")
        return (rest, weight[:axis], weight[axis + 1 :], dtype)

    def join(calls: list[Call], data: Expr) -> list[Expr]:
        attrs = calls[0].attrs
        weight = _concatenated([c.args[1] for c in calls], attrs.kernel_layout.index("O"))
        axis = attrs.data_layout.index("C")
        total = _total(calls, axis)
        return _slices(_with(calls[0], [data, weight], _wide(calls[0], axis, total), channels=total), calls, axis)

    return _combine(mod, "nn.conv2d", key, join, min_num_branches)


def combine_parallel_dense(mod: IRModule, min_num_branches: int = 3, to_batch: bool = True) -> IRModule:
    """nn.dense of one input. `to_batch`: weights of one shape as a batch; else weights side by side."""

    def key(call: Call) -> Hashable | None:
        shapes = [static_shape(e.checked_type) for e in (*call.args, call)]
        if None in shapes or len(shapes[0] or ()) != 2:
            return None
        dtype = getattr(call.args[1].checked_type, "dtype", "")
        return (call.attrs.out_dtype, dtype, shapes[1] if to_batch else (shapes[1] or ())[1:])

    def as_batch(calls: list[Call], data: Expr) -> list[Expr]:
        ty, out = tensor_type(data) or tensor_type(calls[0].args[0]), tensor_type(calls[0])
        weight = tensor_type(calls[0].args[1])
        assert ty is not None and out is not None and weight is not None
        number = len(calls)

        def stacked(items: list[Expr], one: TensorType) -> Expr:
            together = Tuple(items)
            together.checked_type = TupleType([one] * number)
            return op_call("stack", [together], TensorType((number, *one.shape), one.dtype), axis=0)

        whole = op_call(
            "nn.batch_matmul",
            [stacked([data] * number, ty), stacked([c.args[1] for c in calls], weight)],
            TensorType((number, *out.shape), out.dtype),
            out_dtype=calls[0].attrs.out_dtype,
            transpose_b=True,
        )
        parts = op_call("split", [whole], TupleType([TensorType((1, *out.shape), out.dtype)] * number),
                        indices_or_sections=number, axis=0)  # fmt: skip
        found: list[Expr] = []
        for i in range(number):
            part = TupleGetItem(parts, i)
            part.checked_type = TensorType((1, *out.shape), out.dtype)
            found.append(op_call("squeeze", [part], out, axis=[0]))
        return found

    def side_by_side(calls: list[Call], data: Expr) -> list[Expr]:
        weight = _concatenated([c.args[1] for c in calls], 0)
        total = _total(calls, 1)
        return _slices(_with(calls[0], [data, weight], _wide(calls[0], 1, total), units=total), calls, 1)

    return _combine(mod, "nn.dense", key, as_batch if to_batch else side_by_side, min_num_branches)


def combine_parallel_batch_matmul(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.batch_matmul of one left side, with the right sides side by side."""

    def key(call: Call) -> Hashable | None:
        shapes = [static_shape(e.checked_type) for e in (*call.args, call)]
        attrs = call.attrs
        if None in shapes:
            return None
        right = shapes[1] or ()
        inner = right[2] if attrs.transpose_b else right[1]
        dtype = getattr(call.args[1].checked_type, "dtype", "")
        return (attrs.out_dtype, attrs.transpose_a, attrs.transpose_b, dtype, right[0], inner)

    def join(calls: list[Call], data: Expr) -> list[Expr]:
        axis = 1 if calls[0].attrs.transpose_b else 2
        right = _concatenated([c.args[1] for c in calls], axis)
        total = _total(calls, 2)
        return _slices(_with(calls[0], [data, right], _wide(calls[0], 2, total)), calls, 2)

    return _combine(mod, "nn.batch_matmul", key, join, min_num_branches)
