"""From one fused function to C: tensors as recipes for their elements, kernels as stages of loops.

Most operators only say how an element of their result is made (`Tensor.at`), and cost no memory. Operators with loops of
their own (convolutions, products, reductions, pools: `ANCHORS`) write a buffer; the last of them hands each finished
value to what follows it in the function (`Sink`), so that a bias, a residual and a relu are applied on the way out.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.dtypes import CTYPES, SIZES
from relaylang.backends.cpu.index import Affine, strides_of, variable
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.scalar import Buf, Index, Nest, Scalar
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


def unsupported(what: str, node: Expr | None, notes: Sequence[str] = ()) -> RelayError:
    """The error for what cannot be compiled."""
    hint = "the interpreter runs it: relay run --executor interpreter"
    return RelayError(error("R0632", what, node.span if node is not None else None, notes=[*notes, hint]))


class Tensor:
    """A value inside a kernel: its shape and dtype, and how an element is computed."""

    shape: tuple[int, ...]
    dtype: str

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        """The element at an index, as an expression of the nest."""
        raise AssertionError("abstract")


class BufTensor(Tensor):
    """A tensor that lies in memory."""

    def __init__(self, buf: Buf, shape: Sequence[int] | None = None) -> None:
        self.buf = buf
        self.shape = tuple(buf.shape if shape is None else shape)
        self.dtype = buf.dtype

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        return nest.load(self.buf, nest.offset(index, self.shape))


class Recipe(Tensor):
    """A tensor whose elements a function computes: `f(nest, index) -> Scalar`, once for each nest and index."""

    def __init__(self, shape: Sequence[int], dtype: str, f: Callable[[Nest, Sequence[Index]], Scalar]) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self._f = f

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        key = (self, *[i.key() if isinstance(i, Affine) else i for i in index])
        found = nest.elements.get(key)
        if found is None:
            found = nest.elements[key] = self._f(nest, index)
        return found


class Number(Tensor):
    """A constant that is the same everywhere."""

    def __init__(self, value: Any, dtype: str, shape: Sequence[int] = ()) -> None:
        self.value = value
        self.dtype = dtype
        self.shape = tuple(shape)

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        return nest.const(self.value, self.dtype)


class Anchored(Tensor):
    """An anchor's result; `impl` says where its elements are at the moment."""

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.impl: Tensor | None = None
        self.same_index = True
        self.wanted: tuple[Affine, ...] | None = None

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        if self.impl is not None:
            return self.impl.at(nest, index)
        ok = self.wanted is not None and all(
            isinstance(i, Affine) and (i.key() == w.key() or e == 1)
            for i, w, e in zip(index, self.wanted, self.shape)
        )
        self.same_index = self.same_index and ok
        return nest.variable("probe", self.dtype, 0)


Value = Tensor | list[Any]


class Stage:
    """A function `(buffers, lo, hi)` over `units` units of work; stages run one after the other."""

    def __init__(self, units: int = 1, grain: int = 1) -> None:
        self.units = units
        self.grain = grain
        self.lines: list[str] = []

    def put(self, text: str, indent: int = 1) -> None:
        """Add C text, indented."""
        pad = "  " * indent
        self.lines += [pad + line if line and not line.startswith("#") else line for line in text.split("\n")]


class Pack:
    """Parameters that are brought into another layout before the kernel runs: once, if it is a weight."""

    def __init__(self, sources: Sequence[Buf], target: Buf, text: str) -> None:
        self.sources = list(sources)
        self.target = target
        self.text = text


class Kernel:
    """A kernel in the making."""

    def __init__(self, name: str, isa: Isa) -> None:
        self.name = name
        self.isa = isa
        self.params: list[Buf] = []
        self.outs: list[Buf] = []
        self.work: list[Buf] = []
        self.packs: list[Pack] = []
        self.stages: list[Stage] = []
        self.functions: list[str] = []
        self.constants: list[tuple[Buf, np.ndarray]] = []

    def buffer(self, shape: Sequence[int], dtype: str) -> Buf:
        """Working memory of the kernel."""
        buf = Buf(f"tmp{len(self.work)}", shape, dtype)
        self.work.append(buf)
        return buf

    def stage(self, units: int = 1, grain: int = 1) -> Stage:
        stage = Stage(units, grain)
        self.stages.append(stage)
        return stage

    def loops(self, nest: Nest) -> None:
        """A stage that is one loop nest."""
        lines, units = nest.emit()
        if lines:
            stage = self.stage(units)
            stage.lines = lines

    def constant(self, data: np.ndarray, dtype: str) -> Buf:
        """A small table in the C file."""
        buf = Buf(f"table{len(self.constants)}", data.shape, dtype)
        self.constants.append((buf, np.asarray(data, order="C")))
        return buf

    def in_memory(self, tensor: Tensor) -> Buf:
        """The tensor as a C-contiguous buffer: itself where it is one, else written out by a stage."""
        if isinstance(tensor, Anchored) and tensor.impl is not None:
            tensor = tensor.impl
        if isinstance(tensor, BufTensor):
            if tensor.shape == tensor.buf.shape:
                return tensor.buf
            return Buf(tensor.buf.name, tensor.shape, tensor.dtype)
        buf = self.buffer(tensor.shape, tensor.dtype)
        nest = Nest(tensor.shape)
        index = [variable(d) for d in range(len(tensor.shape))]
        nest.store(buf, nest.offset(index, tensor.shape), tensor.at(nest, index))
        self.loops(nest)
        return buf

    def packed(self, source: Tensor, size: int, dtype: str, text: Callable[[str, str], str],
               extra: Sequence[Tensor] = ()) -> Buf:  # fmt: skip
        """A weight in another layout, of `size` elements; `text(from, to)` is the C that packs it.

        Parameters are packed before the kernel runs (once, where they are bound); anything else in a stage of it.
        `extra` are further tensors that the text reads, by the names of their buffers.
        """
        bufs = [self.in_memory(t) for t in (source, *extra)]
        params = {p.name for p in self.params}
        if all(b.name in params for b in bufs):
            for pack in self.packs:
                if pack.text == text(bufs[0].name, pack.target.name):
                    return pack.target
            target = Buf(f"packed{len(self.packs)}", (size,), dtype)
            self.packs.append(Pack(bufs, target, text(bufs[0].name, target.name)))
            return target
        target = self.buffer((size,), dtype)
        self.stage().put(text(bufs[0].name, target.name))
        return target


class Sink:
    """Where an anchor's result goes: through the rest of the function into the kernel's output, or into a buffer."""

    def __init__(self, kernel: Kernel, anchor: Anchored, root: Tensor, out: Buf) -> None:
        self.kernel = kernel
        self.anchor = anchor
        self.root = root
        self.out = out
        #: The buffer that the anchor may write itself, where nothing follows it.
        self.direct: Buf | None = out if root is anchor else None

    def store(self, nest: Nest, index: Sequence[Affine], value: Tensor | Scalar) -> None:
        """Store the result at `index`, given the anchor's own value there."""
        if isinstance(value, Scalar):
            scalar = value
            value = Recipe(self.anchor.shape, scalar.dtype, lambda nest, index: scalar)
        self.anchor.impl = value
        nest.elements.clear()
        nest.store(self.out, nest.offset(index, self.out.shape), self.root.at(nest, index))
        nest.elements.clear()
        self.anchor.impl = None

    def mergeable(self, first: int, last: int) -> bool:
        """Whether the result's dimensions `first..last` are run through as one by all that is read and written."""
        shape = self.anchor.shape
        nest = Nest(shape)
        index = [variable(d) for d in range(len(shape))]
        probe = Buf("probe", shape, self.anchor.dtype)
        self.store(nest, index, nest.load(probe, nest.offset(index, shape)))
        return nest.runs_as_one(first, last)

    def store_block(self, source: str, strides: Sequence[int], bounds: dict[int, tuple[str, str]],
                    flat: tuple[int, int, str, str] | None = None, indent: str = "    ") -> list[str]:  # fmt: skip
        """C that passes on a block of the anchor's results, given as `source[sum of index * strides]`.

        `bounds` limits each dimension; `flat` = (first, last, low, high) limits the dimensions `first..last` taken as one.
        """
        shape = self.anchor.shape
        nest = Nest(shape, bounds)
        index = [variable(d) for d in range(len(shape))]
        form = Affine({d: s for d, s in enumerate(strides) if shape[d] != 1}, 0)
        self.store(nest, index, nest.load(Buf(source, shape, self.anchor.dtype), form))
        return nest.emit(split=False, indent=indent, flat=flat)[0]


#: More parts of one result than this are written by few functions.
_MANY = 64
#: So many results of a row, at most, are held on the stack at a time. A thread's stack may be small.
ROW = 4096
#: Where an element takes more elements of others than this, and so many of each, a value is written to memory.
_ELEMENTS, _EACH = 32, 4

AnchorLowering = Callable[[Kernel, Any, list[Any], Sink], None]
_Anchoring = tuple[AnchorLowering, Expr, list[Any], Anchored]


def static_shape(ty: Type | None, node: Expr) -> tuple[int, ...]:
    """A tensor type's shape, all of whose extents must be known."""
    if not isinstance(ty, TensorType):
        raise unsupported("a value whose type is not known cannot be compiled", node)
    what = f"the result of {node.op.name}, {ty!r}," if isinstance(node, Call) and isinstance(node.op, Op) else f"the type {ty!r}"
    for extent in ty.shape:
        if not isinstance(extent, int):
            raise RelayError(
                error("R0634", f"{what} has an extent that is not known before the program runs", node.span,
                      notes=["the compiler needs static shapes; the interpreter runs it: relay run --executor interpreter"])
            )  # fmt: skip
    if ty.dtype not in CTYPES:
        raise RelayError(
            error("R0635", f"{what} has elements of the type {ty.dtype}, which cannot be compiled", node.span,
                  notes=[f"dtypes: {', '.join(CTYPES)}", "the interpreter runs it: relay run --executor interpreter"])
        )  # fmt: skip
    return tuple(ty.shape)  # type: ignore[arg-type]


def tensor_types(ty: Type | None, node: Expr) -> list[TensorType]:
    """The tensors inside a type, from left to right."""
    out: list[TensorType] = []
    stack: list[Type | None] = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            stack.extend(reversed(item.fields))
        else:
            static_shape(item, node)
            assert isinstance(item, TensorType)
            out.append(item)
    return out


def lower_function(function: Function, name: str, isa: Isa, numbers: Mapping[Var, Constant]) -> Kernel:
    """The kernel of a primitive function. Raises `RelayError` for operators that have no lowering.

    `numbers` are parameters that stand for a constant scalar; the kernel does not have them.
    """
    from relaylang.backends.cpu.lower import ANCHORS, RECIPES, gap

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


def c_type(dtype: str) -> str:
    return CTYPES[dtype]


def nbytes(buf: Buf) -> int:
    """The bytes of a buffer, rounded up so that the next one is aligned."""
    return -(-max(1, buf.size) * SIZES[buf.dtype] // 64) * 64
