"""A primitive function as a kernel: recipes and anchors of its calls, by the table of lowerings."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from relaylang.backends.cpu.isa import GENERIC, Isa
from relaylang.backends.cpu.kernel import (
    ELSEWHERE,
    Anchored,
    AnchorLowering,
    BufTensor,
    Kernel,
    Number,
    Recipe,
    Sink,
    Source,
    Strides,
    Tensor,
    Value,
    static_shape,
    tensor_types,
    unsupported,
)
from relaylang.backends.cpu.lower import ANCHORS, ASSEMBLIES, RECIPES, SELECTIONS, gap
from relaylang.backends.cpu.lower.attention import Values, lower_attention
from relaylang.backends.cpu.lower.attention_form import Attention, attention_of
from relaylang.backends.cpu.lower.texts import anchor_of, recipe_of
from relaylang.backends.cpu.schedule_space import Schedule, WrongChoice
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
from relaylang.ir.structural import structural_hash
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.index import const_of, is_contiguous, strides_of, terms_of, variable
from relaylang.kernels.nest import Buf, Index, Nest, split_nest
from relaylang.kernels.sizes import bounds
from relaylang.ops.record import Op

#: More parts of one result than this are written by few functions.
_MANY = 64
#: A value whose elements read more elements than this is written to memory. They must also read more of each other
#: tensor than this, on average.
_ELEMENTS, _EACH = 32, 4

T = TypeVar("T")
_Anchoring = tuple[AnchorLowering, Expr, list[Any], Anchored]


def lower_function(
    function: Function,
    name: str,
    isa: Isa,
    numbers: Mapping[Var, Constant],
    given: Strides = (),
    wanted: Strides = (),
    done: Collection[int] = (),
    schedule: Schedule | None = None,
    repeated: bool = False,
) -> Kernel:
    """The kernel of a primitive function. Raises `RelayError` for operators that have no lowering.

    `numbers` are parameters that stand for a constant scalar; the kernel does not have them. `given` are the strides of
    the other parameters' tensors, `wanted` those of the results. Without them, all are contiguous. `done` are parts of
    the result (`parts_of`) that lie in their place before the kernel runs.

    A `schedule` may have other choices for the kernel than the cost models. A `repeated` kernel is one of a loop's turn.
    """
    key = _key(function, isa, [p in numbers for p in function.params], [*given, *wanted], done)
    schedule = schedule or Schedule()
    source = Source(function, numbers, given, wanted, done)
    try:
        return _lowered(source, Kernel(name, isa, schedule.space(key), key, repeated))
    except WrongChoice:
        if not schedule.outdated(key):
            raise
    return _lowered(source, Kernel(name, isa, schedule.space(key), key, repeated))


def _lowered(source: Source, kernel: Kernel) -> Kernel:
    function, numbers, strides, wanted, done = source
    kernel.source = source
    anchors, roots = _tensors(kernel, function, numbers, strides)
    for i, root in enumerate(roots):
        kernel.outs.append(Buf(f"out{i}", root.shape, root.dtype, wanted[i] if i < len(wanted) else None))
    _emit(kernel, anchors, roots, done)
    kernel.finish()
    return kernel


def _key(function: Function, isa: Isa, numbers: Sequence[bool], strides: Strides, done: Collection[int]) -> str:
    """A digest of a kernel, but for the values of its constants: the same in every run."""
    apart = [(n, tuple(s)) for n, s in enumerate(strides) if s is not None]
    parts = (structural_hash(function), isa.name, [n for n, known in enumerate(numbers) if known], apart, sorted(done))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


class Selected(NamedTuple):
    """A tensor that is a part of a parameter: the parameter's number, the first element, and the strides."""

    param: int
    start: int
    strides: tuple[int, ...]


class Part(NamedTuple):
    """A part of a result: its shape, where it begins, and the parameter's number where it is a whole parameter."""

    shape: tuple[int, ...]
    first: tuple[int, ...]
    param: int | None


def parts_of(function: Function, numbers: Mapping[Var, Constant]) -> list[Part] | None:
    """The parts of which a function puts its result together; None where it does something else."""
    body = function.body
    if not (isinstance(body, Call) and isinstance(body.op, Op) and body.op.name in ASSEMBLIES):
        return None
    kernel = Kernel("parts", GENERIC)
    anchors, roots = _tensors(kernel, function, numbers, ())
    parts = getattr(roots[0], "parts", None)
    if anchors or parts is None:
        return None
    out = []
    for shape, first, tensor in parts():
        selection = _selected(kernel, tensor)
        is_complete = selection is not None and selection.start == 0 and is_contiguous(shape, selection.strides)
        is_complete = is_complete and math.prod(shape) == kernel.params[selection.param].size  # type: ignore[union-attr]
        out.append(Part(tuple(shape), tuple(first), selection.param if selection is not None and is_complete else None))
    return out


def selected(function: Function, numbers: Mapping[Var, Constant], given: Strides = ()) -> list[Selected] | None:
    """The parts of parameters that a function's results are; None where it computes, or moves elements otherwise."""
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    if not all(isinstance(c.op, Op) and c.op.name in SELECTIONS for c in calls):
        return None
    kernel = Kernel("parts", GENERIC)
    _, roots = _tensors(kernel, function, numbers, given)
    selections = [_selected(kernel, root) for root in roots]
    return [f for f in selections if f is not None] if None not in selections else None


def _selected(kernel: Kernel, tensor: Tensor) -> Selected | None:
    if 0 in tensor.shape:
        return None
    nest = Nest(tensor.shape)
    value = tensor.at(nest, [variable(d) for d in range(len(tensor.shape))])
    names = [p.name for p in kernel.params]
    if not isinstance(value, ir.Load) or value.index.type != ir.INDEX or value.buffer not in names:
        return None
    factors = terms_of(value.index)
    strides = tuple(factors.get(d, 0 if e != 1 else 1) for d, e in enumerate(tensor.shape))
    if any(low is None or low < 0 for low, _ in map(bounds, strides)):
        return None
    return Selected(names.index(value.buffer), const_of(value.index), strides)


def _tensors(
    kernel: Kernel, function: Function, numbers: Mapping[Var, Constant], strides: Strides
) -> tuple[list[_Anchoring], list[Tensor]]:
    """The anchors of a function and its results."""
    values = _Values(kernel, strides)
    values.attention = attention_of(function, kernel.isa)
    for param in function.params:
        if param in numbers:
            values.of[id(param)] = Number(numbers[param].data.item(), numbers[param].dtype)
        else:
            values.of[id(param)] = values.parameter(param.checked_type or param.type_annotation, param)
    order = list(post_order(function.body))
    users = Counter(id(child) for node in order for child in children(node))
    trial = _Trial()
    for node in order:
        if isinstance(node, (Op, Var)):
            continue
        value = values.value(node)
        if users[id(node)] > 1 and trial.is_costly(value):
            value = values.in_buffers(value, node)
        values.of[id(node)] = value
    return values.anchors, flat(values.of[id(function.body)])


class _Values:
    """The values of a function's nodes, by their identities, and the anchors that make some of them."""

    def __init__(self, kernel: Kernel, strides: Strides) -> None:
        self.kernel = kernel
        self.strides = strides
        self.of: dict[int, Value] = {}
        self.anchors: list[_Anchoring] = []
        self.attention: Attention | None = None

    def parameter(self, ty: Type | None, node: Expr) -> Value:
        """The buffers of a parameter, in the order of the kernel's parameters."""
        if isinstance(ty, TupleType):
            return [self.parameter(f, node) for f in ty.fields]
        shape = static_shape(ty, node)
        assert isinstance(ty, TensorType)
        number = len(self.kernel.params)
        buf = Buf(f"arg{number}", shape, ty.dtype, self.strides[number] if number < len(self.strides) else None)
        self.kernel.params.append(buf)
        return BufTensor(buf)

    def value(self, node: Expr) -> Value:
        """The value of a node whose parts have theirs. Raises `RelayError` for one that has no kernel."""
        match node:
            case Constant():
                if static_shape(TensorType(node.data.shape, node.dtype), node):
                    return BufTensor(self.kernel.constant(node.data, node.dtype))
                return Number(node.data.item(), node.dtype)
            case Tuple():
                return [self.of[id(f)] for f in node.fields]
            case TupleGetItem():
                parts = self.of[id(node.tuple_value)]
                assert isinstance(parts, list)
                return parts[node.index]
            case Call(op=Op()):
                return self._call(node)
        raise unsupported(f"{type(node).__name__} inside a primitive function cannot be compiled", node)

    def _call(self, call: Call) -> Value:
        name = call.op.name  # type: ignore[attr-defined]
        args = [self.of[id(a)] for a in call.args]
        recipe = RECIPES.get(name) or recipe_of(call)
        if recipe is not None:
            tensor_types(call.checked_type, call)
            return recipe(self.kernel, call, args)
        lower = ANCHORS.get(name) or anchor_of(call)
        if lower is None:
            notes = [gap(name) or "no code yet", ELSEWHERE]
            raise RelayError(error("R0633", f"the CPU backend has no code for the operator {name}", call.span, notes=notes))
        ty = call.checked_type
        if isinstance(ty, TupleType):
            raise unsupported(f"{name} with several results cannot be compiled", call)
        anchor = Anchored(static_shape(ty, call), ty.dtype)  # type: ignore[union-attr]
        attention = self.attention
        if attention is not None and call is attention.last:
            lower, args = self._attention(attention)
        if attention is None or (call is not attention.first and call is not attention.softmax):
            self.anchors.append((lower, call, args, anchor))
        return anchor

    def _attention(self, form: Attention) -> tuple[AnchorLowering, list[Any]]:
        """The lowering of the last product of attention, which makes the products before it, and its operands."""
        values = Values(*[self.of[id(node)] for node in (form.first, form.scores, form.softmax, form.weights)])  # type: ignore[arg-type]
        operands = [self.of[id(node)] for node in (*form.first.args, form.last.args[1])]
        return lambda kernel, call, args, sink: lower_attention(kernel, form, args, values, sink), operands

    def in_buffers(self, value: Value, node: Expr) -> Value:
        """The value with its recipes written to memory."""
        if isinstance(value, list):
            return [self.in_buffers(part, node) for part in value]
        if not isinstance(value, Recipe):
            return value
        anchor = Anchored(value.shape, value.dtype)
        self.anchors.append((_written, node, [value], anchor))
        return anchor


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


def flat(value: T | list[Any]) -> list[T]:
    """What nested lists hold, from left to right: the tensors of a value, the views of a place."""
    out: list[T] = []
    stack: list[T | list[Any]] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def _emit(kernel: Kernel, anchors: list[_Anchoring], roots: list[Tensor], done: Collection[int]) -> None:
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
        nest = emit_regions(kernel, root, out, done)
        if nest is not None and not anchors and len(roots) == len(kernel.stages) == 1:
            fits = [b for b in kernel.params if b.contiguous and (SIZES[b.dtype], b.size) == (SIZES[out.dtype], out.size)]
            same = nest.only_read_where_written(fits) if out.contiguous else []
            kernel.in_place = {n for n, buf in enumerate(kernel.params) if buf in same}


def emit_regions(kernel: Kernel, root: Tensor, out: Buf, done: Collection[int] = ()) -> Nest | None:
    """Write a result by loops, which are returned. Results that are made of parts (concatenation, padding) have several;
    those `done` are left out."""

    def write(part: Tensor, shape: Sequence[int], first: Sequence[int]) -> Nest:
        def fill(nest: Nest, index: list[Index]) -> None:
            nest.store(out, nest.place(out, [i + n for i, n in zip(index, first)]), part.at(nest, index))

        nest = split_nest(shape, fill)
        kernel.moved += len(nest.copied()) * math.prod(shape) * SIZES[out.dtype]
        kernel.loops(nest)
        return nest

    parts = getattr(root, "parts", None)
    if parts is None:
        return write(root, root.shape, [0] * len(root.shape))
    pieces = [piece for n, piece in enumerate(parts()) if n not in done]
    if len(pieces) > _MANY:
        plain = [out.contiguous and isinstance(p[2], BufTensor) and p[2].buf.contiguous for p in pieces]
        _copies(kernel, root, out, [p for p, is_plain in zip(pieces, plain) if is_plain])
        pieces = [p for p, is_plain in zip(pieces, plain) if not is_plain]
    for shape, shift, part in pieces:
        write(part, shape, shift)
    return None


def _copies(kernel: Kernel, root: Tensor, out: Buf, pieces: Sequence[tuple[Sequence[int], Sequence[int], Any]]) -> None:
    """Very many parts that only have to be copied: many a stage, each by its longest contiguous runs."""
    for first in range(0, len(pieces), _MANY):
        b = Builder()
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
            kernel.moved += outer * run * SIZES[out.dtype]
            with b.loop("o", outer) as o, b.loop("r", run) as r:
                b.store(out, ir.load(part.buf, o * run + r), o * step + (r + start))
        kernel.stage(body=b.body)
