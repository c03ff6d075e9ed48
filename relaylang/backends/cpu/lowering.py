"""A primitive function as a kernel: recipes and anchors of its calls, by the table of lowerings."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.dtypes import CTYPES
from relaylang.backends.cpu.index import Affine, strides_of, variable
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import (
    Anchored,
    AnchorLowering,
    BufTensor,
    Kernel,
    Number,
    Recipe,
    Sink,
    Tensor,
    Value,
    static_shape,
    tensor_types,
    unsupported,
)
from relaylang.backends.cpu.lower import ANCHORS, RECIPES, gap
from relaylang.backends.cpu.scalar import Buf, Nest
from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
)
from relaylang.ops.record import Op

#: More parts of one result than this are written by few functions.
_MANY = 64
#: A value whose elements read more elements than this is written to memory. They must also read more of each other
#: tensor than this, on average.
_ELEMENTS, _EACH = 32, 4

_Anchoring = tuple[AnchorLowering, Expr, list[Any], Anchored]


def lower_function(function: Function, name: str, isa: Isa, numbers: Mapping[Var, Constant]) -> Kernel:
    """The kernel of a primitive function. Raises `RelayError` for operators that have no lowering.

    `numbers` are parameters that stand for a constant scalar; the kernel does not have them.
    """
    kernel = Kernel(name, isa)
    values: dict[int, Value] = {}

    def as_params(ty: Type | None, node: Expr) -> Value:
        if isinstance(ty, TupleType):
            return [as_params(f, node) for f in ty.fields]
        shape = static_shape(ty, node)
        assert isinstance(ty, TensorType)
        buf = Buf(f"arg{len(kernel.params)}", shape, ty.dtype)
        kernel.params.append(buf)
        return BufTensor(buf)

    for param in function.params:
        if param in numbers:
            values[id(param)] = Number(numbers[param].data.item(), numbers[param].dtype)
            continue
        values[id(param)] = as_params(param.checked_type or param.type_annotation, param)
    anchors: list[_Anchoring] = []
    order = list(post_order(function.body))
    users = Counter(id(child) for node in order for child in children(node))
    trial = _Trial()

    def in_buffers(value: Value, node: Expr) -> Value:
        if isinstance(value, list):
            return [in_buffers(part, node) for part in value]
        if not isinstance(value, Recipe):
            return value
        anchor = Anchored(value.shape, value.dtype)
        anchors.append((_written, node, [value], anchor))
        return anchor

    for node in order:
        if isinstance(node, (Op, Var)):
            continue
        if isinstance(node, Constant):
            shape = static_shape(TensorType(node.data.shape, node.dtype), node)
            if not shape:
                values[id(node)] = Number(node.data.item(), node.dtype)
            else:
                values[id(node)] = BufTensor(kernel.constant(node.data, node.dtype))
        elif isinstance(node, Tuple):
            values[id(node)] = [values[id(f)] for f in node.fields]
        elif isinstance(node, TupleGetItem):
            whole = values[id(node.tuple_value)]
            assert isinstance(whole, list)
            values[id(node)] = whole[node.index]
        elif isinstance(node, Call) and isinstance(node.op, Op):
            args = [values[id(a)] for a in node.args]
            recipe = RECIPES.get(node.op.name)
            if recipe is not None:
                tensor_types(node.checked_type, node)
                values[id(node)] = recipe(kernel, node, args)
            elif node.op.name in ANCHORS:
                ty = node.checked_type
                if isinstance(ty, TupleType):
                    raise unsupported(f"{node.op.name} with several results cannot be compiled", node)
                anchor = Anchored(static_shape(ty, node), ty.dtype)  # type: ignore[union-attr]
                anchors.append((ANCHORS[node.op.name], node, args, anchor))
                values[id(node)] = anchor
            else:
                raise RelayError(
                    error("R0633", f"the CPU backend has no code for the operator {node.op.name}", node.span,
                          notes=[gap(node.op.name) or "no code yet", "the interpreter runs it: relay run --executor interpreter"])
                )  # fmt: skip
        else:
            raise unsupported(f"{type(node).__name__} inside a primitive function cannot be compiled", node)
        if users[id(node)] > 1 and trial.is_costly(values[id(node)]):
            values[id(node)] = in_buffers(values[id(node)], node)
    roots = flat(values[id(function.body)])
    for i, root in enumerate(roots):
        kernel.outs.append(Buf(f"out{i}", root.shape, root.dtype))
    _emit(kernel, anchors, roots)
    return kernel


class _Trial:
    """What it takes to compute one element of a value, worked out beforehand.

    A value that is used at several places of its operands, which do the same, takes exponentially many elements.
    """

    def __init__(self) -> None:
        self.nests: dict[tuple[int, ...], Nest] = {}

    def is_costly(self, value: Value) -> bool:
        """Whether a value that is used several times has to be written to memory before."""
        for tensor in flat(value):
            nest = self.nests.setdefault(tensor.shape, Nest(tensor.shape))
            tensor.at(nest, [variable(d) for d in range(len(tensor.shape))])
            if len(nest.elements) > _ELEMENTS and len(nest.elements) > _EACH * len({key[0] for key in nest.elements}):
                self.nests.clear()
                return True
        return False


def _written(kernel: Kernel, call: Expr, args: list[Any], sink: Sink) -> None:
    """A recipe as an anchor: it is worked out once, whatever it is used for."""
    value = args[0]
    nest = Nest(value.shape)
    index = [variable(d) for d in range(len(value.shape))]
    sink.store(nest, index, value)
    kernel.loops(nest)


def flat(value: Value) -> list[Tensor]:
    """The tensors inside a value, from left to right."""
    out: list[Tensor] = []
    stack: list[Value] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def _emit(kernel: Kernel, anchors: list[_Anchoring], roots: list[Tensor]) -> None:
    for number, (lower, call, args, anchor) in enumerate(anchors):
        if number == len(anchors) - 1 and len(roots) == 1 and roots[0].shape == anchor.shape:
            root = roots[0]
            probe = Nest(anchor.shape)
            index = [variable(d) for d in range(len(anchor.shape))]
            anchor.wanted, anchor.same_index = tuple(index), True
            root.at(probe, index)
            if anchor.same_index:
                lower(kernel, call, args, Sink(kernel, anchor, root, kernel.outs[0]))
                return
        if any(root is anchor for root in roots) and len(roots) == 1:
            out = kernel.outs[0]
        else:
            out = kernel.buffer(anchor.shape, anchor.dtype)
        lower(kernel, call, args, Sink(kernel, anchor, anchor, out))
        anchor.impl = BufTensor(out)
    for root, out in zip(roots, kernel.outs):
        nest = Nest(root.shape)
        index = [variable(d) for d in range(len(root.shape))]
        emit_regions(kernel, root, out, nest, index)


def emit_regions(kernel: Kernel, root: Tensor, out: Buf, nest: Nest, index: list[Affine]) -> None:
    """Write a result by loops; results that are made of parts (concatenation, padding) part by part."""
    parts = getattr(root, "parts", None)
    if parts is None:
        nest.store(out, nest.offset(index, root.shape), root.at(nest, index))
        kernel.loops(nest)
        return
    pieces = list(parts())
    if len(pieces) > _MANY:
        _copies(kernel, root, out, [p for p in pieces if isinstance(p[2], BufTensor)])
        pieces = [p for p in pieces if not isinstance(p[2], BufTensor)]
    for shape, shift, part in pieces:
        sub = Nest(shape)
        inner = [variable(d) for d in range(len(shape))]
        where = [i + s for i, s in zip(inner, shift)]
        sub.store(out, sub.offset(where, root.shape), part.at(sub, inner))
        kernel.loops(sub)


def _copies(kernel: Kernel, root: Tensor, out: Buf, pieces: Sequence[tuple[Sequence[int], Sequence[int], Any]]) -> None:
    """Very many parts that only have to be copied: many a stage, each by its longest contiguous runs."""
    for first in range(0, len(pieces), _MANY):
        stage = kernel.stage()
        for shape, shift, part in pieces[first : first + _MANY]:
            inner = len(shape)
            run = 1
            while inner and run == math.prod(root.shape[inner:]):
                inner -= 1
                run *= shape[inner]
            outer = math.prod(shape[:inner])
            if not outer * run:
                continue
            start = sum(s * n for s, n in zip(shift, strides_of(root.shape)))
            # Before the runs, the part's dimensions are those of the whole: its lines are equally far apart.
            step = math.prod(root.shape[inner:])
            stage.put(f"for (long o = 0; o < {outer}; o++) memcpy({out.name} + {start} + o * {step}L,"
                      f" {part.buf.name} + o * {run}L, sizeof({CTYPES[out.dtype]}) * {run});")  # fmt: skip
