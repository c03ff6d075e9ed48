"""From one fused function to C: tensors as recipes for their elements, kernels as stages of loops.

Most operators only say how an element of their result is made (`Tensor.at`), and cost no memory. Operators with loops
of their own (convolutions, products, reductions, pools: `ANCHORS`) write a buffer. The last of them hands each finished
value to the operators behind it in the function (`Sink`). So a bias, a residual and a relu are applied as values are
stored.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.dtypes import CTYPES, SIZES
from relaylang.backends.cpu.index import Affine, variable
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.scalar import Buf, Index, Nest, Scalar
from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Expr,
    TensorType,
    TupleType,
    Type,
)
from relaylang.ops.record import Op


def unsupported(what: str, node: Expr | None, notes: Sequence[str] = ()) -> RelayError:
    """The error for operators that cannot be compiled."""
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


#: The most results of a row that are held on the stack at a time. A thread's stack may be small.
ROW = 4096

AnchorLowering = Callable[[Kernel, Any, list[Any], Sink], None]


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


def nbytes(buf: Buf) -> int:
    """The bytes of a buffer, rounded up so that the next one is aligned."""
    return -(-max(1, buf.size) * SIZES[buf.dtype] // 64) * 64
