"""From one fused function to C: tensors as recipes for their elements, kernels as stages of loops.

Most operators only say how an element of their result is made (`Tensor.at`), and cost no memory. Operators with loops
of their own (convolutions, products, reductions, pools: `ANCHORS`) write a buffer. The last of them hands each finished
value to the operators behind it in the function (`Sink`). So a bias, a residual and a relu are applied as values are
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.schedule_space import Space
from relaylang.backends.cpu.transposes import turned
from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    TensorType,
    TupleType,
    Type,
    Var,
)
from relaylang.kernels import halves, ir, render, rewrites, schedules, visit
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import CTYPES, SIZES
from relaylang.kernels.index import affine, variable
from relaylang.kernels.nest import Bounds, Buf, End, Index, Nest, Scalar, split_nest
from relaylang.kernels.sizes import Size, largest
from relaylang.kernels.vectors import written_out
from relaylang.ops.record import Op

#: The words that say how a kernel has failed.
FAULT = 8
#: What runs a program that this backend does not compile.
ELSEWHERE = "`relay compile --runtime vm` compiles it for the VM; the interpreter runs it, too: relay run --executor interpreter"


def unsupported(what: str, node: Expr | None, notes: Sequence[str] = ()) -> RelayError:
    """The error for operators that cannot be compiled."""
    return RelayError(error("R0632", what, node.span if node is not None else None, notes=[*notes, ELSEWHERE]))


class Tensor:
    """A value inside a kernel: its shape and dtype, and how an element is computed."""

    shape: tuple[int, ...]
    dtype: str

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        """The element at an index, as an expression of the nest."""
        raise AssertionError("abstract")


class BufTensor(Tensor):
    """A tensor that lies in memory, perhaps with strides."""

    def __init__(self, buf: Buf) -> None:
        self.buf = buf
        self.shape = buf.shape
        self.dtype = buf.dtype

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        return nest.load(self.buf, nest.place(self.buf, index))


class Recipe(Tensor):
    """A tensor whose elements a function computes: `f(nest, index) -> Scalar`, once for each nest and index."""

    def __init__(self, shape: Sequence[int], dtype: str, f: Callable[[Nest, Sequence[Index]], Scalar]) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self._f = f

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        key = (self, *[id(nest.same(i)) for i in index])
        element = nest.elements.get(key)
        if element is None:
            element = nest.elements[key] = self._f(nest, index)
        return element


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
        self.wanted: tuple[Index, ...] | None = None

    def at(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        if self.impl is not None:
            return self.impl.at(nest, index)
        ok = self.wanted is not None and all(
            i.type == ir.INDEX and (ir.key(i) == ir.key(w) or e == 1) for i, w, e in zip(index, self.wanted, self.shape)
        )
        self.same_index = self.same_index and ok
        return nest.variable("probe", self.dtype, 0)


Value = Tensor | list[Any]
#: Strides of the tensors of a function, from left to right; None where they are contiguous.
Strides = Sequence[Sequence[int] | None]


class Source(NamedTuple):
    """What a kernel is lowered from, as `lowering.lower_function` takes it."""

    function: Function
    numbers: Mapping[Var, Constant]
    given: Strides
    wanted: Strides
    done: Collection[int]


class Site(NamedTuple):
    """A way in which a kernel fails when it runs: its call, and the kind of the fault (`diagnostics.faults`)."""

    call: Call
    kind: str


class Stage:
    """A function `(buffers, lo, hi)` over units of work: those of the parallel loop in `body`. Stages run one after the other."""

    def __init__(self, body: Sequence[ir.Stmt], grain: int = 1) -> None:
        self.body: list[ir.Stmt] = list(body)
        self.grain = grain
        #: The number of the parameter of which the stage makes the result a copy: nothing to do where both are one.
        self.copied: int | None = None

    @property
    def units(self) -> int:
        """The number of units, which may be a size."""
        loop = visit.parallel(self.body)
        if loop is None:
            return 1
        return loop.high.size if isinstance(loop.high, ir.Extent) else loop.trips or 0


class Pack:
    """Parameters that are brought into another layout before the kernel runs: once, if it is a weight."""

    def __init__(self, sources: Sequence[Buf], target: Buf, body: ir.Body) -> None:
        self.sources = list(sources)
        self.target = target
        loop = visit.parallel(body)
        self.body = body if loop is None else rewrites.serial(body, loop.var)
        self.text = "\n".join(render.lines(self.body))


class Kernel:
    """A kernel in the making."""

    def __init__(self, name: str, isa: Isa, space: Space | None = None, key: str = "", repeated: bool = False) -> None:
        self.name = name
        self.isa = isa
        #: The decisions that a schedule may change; and what finds the kernel in it.
        self.space = Space() if space is None else space
        self.key = key
        #: Whether the kernel runs again and again: its weights stay in the caches.
        self.repeated = repeated
        self.source: Source | None = None
        self._nests = 0
        self.params: list[Buf] = []
        #: The numbers of the parameters that the stages read; others are packed at most. `finish` finds them.
        self.reads: set[int] = set()
        self.outs: list[Buf] = []
        self.work: list[Buf] = []
        self.packs: list[Pack] = []
        self.stages: list[Stage] = []
        #: Functions that the stages call.
        self.functions: list[ir.Function] = []
        self.constants: list[tuple[Buf, np.ndarray]] = []
        #: The numbers of the parameters that the only result may overwrite: an element is read just before it is written, or
        #: it begins as a copy of the parameter.
        self.in_place: set[int] = set()
        #: Buffers whose axes may lie in any order in memory: they are read at no greater cost.
        self.any_order: set[str] = set()
        #: Operands whose vectors are read where they lie: from lines of the cache on, without splits of these.
        self.aligned: set[str] = set()
        #: Buffers that are copied before they are used, and the bytes.
        self.copies: list[tuple[str, int]] = []
        #: The bytes of the results that are copied as they are.
        self.moved = 0
        #: How it may fail. Then `fault` gets the number of one of these, counted from 1, and the numbers of its sentence.
        self.sites: list[Site] = []
        self.fault = Buf("fault", (FAULT,), "int64")

    def finish(self) -> None:
        """End the kernel: it keeps what its stages read, of parameters that are packed and of others."""
        self.space.finish()
        used = {name for stage in self.stages for name in visit.names(stage.body)}
        self.packs = [pack for pack in self.packs if pack.target.name in used]
        self.reads = {n for n, param in enumerate(self.params) if param.name in used}
        for number, stage in enumerate(self.stages):
            later = {name for other in self.stages[number + 1 :] for name in visit.names(other.body)}
            if stage.copied is not None and self.params[stage.copied].name not in later:
                self.in_place.add(stage.copied)

    def buffer(self, shape: Sequence[int], dtype: str) -> Buf:
        """Working memory of the kernel."""
        buf = Buf(f"tmp{len(self.work)}", shape, dtype)
        self.work.append(buf)
        return buf

    def stage(self, body: Sequence[ir.Stmt], grain: int = 1) -> None:
        """Add a stage."""
        self.stages.append(Stage(body, grain))

    def copy(self, source: Buf, target: Buf) -> None:
        """A stage that makes a result a copy of a tensor, some of whose elements change afterwards."""
        nest = Nest(target.shape)
        index = [variable(d) for d in range(len(target.shape))]
        nest.store(target, nest.offset(index, target.shape), BufTensor(source).at(nest, index))
        before = len(self.stages)
        self.loops(nest)
        if self.stages[before:] and source in self.params and [target] == self.outs:
            self.stages[-1].copied = self.params.index(source)

    def fails(self, b: Builder, call: Call, kind: str, condition: ir.Expr, *numbers: ir.Expr | int) -> None:
        """Where a condition holds, say that a call fails. The first fault counts."""
        self.sites.append(Site(call, kind))
        with b.when(condition & self.sound):
            for place, value in enumerate((len(self.sites), *numbers)):
                b.store(self.fault, ir.expr(value), place)

    @property
    def sound(self) -> ir.Expr:
        """Whether nothing has failed so far."""
        return ir.load(self.fault, 0).eq(0)

    def loops(self, nest: Nest) -> None:
        """A stage that is one loop nest."""
        prefix = f"loops{self._nests}."
        self._nests += 1

        def pick(name: str, *rest: Any) -> Any:
            return self.space.pick(prefix + name, *rest)

        turned_nest = turned(nest, self.isa, f"{self.name}_turn{len(self.functions)}")
        if turned_nest is not None and pick("turn", ("squares", "loops"), "squares") == "squares":
            self.functions.append(turned_nest[0])
            self.stage(body=turned_nest[1])
            return
        body = nest.build()
        if body:
            self.stage(body=self._vectors(schedules.nest(body, pick, not nest.reductions)))

    def statements(self, nest: Nest, fixed: int = 0, flat: tuple[int, int, End, End] | None = None) -> ir.Body:
        """The loops of a nest as a part of a stage; see `Nest.build`."""
        return self._vectors(nest.build(fixed, flat))

    def _vectors(self, body: ir.Body) -> ir.Body:
        """Statements with what the machine's vectors gain; as they are where it has none."""
        return body if self.isa.lanes == 1 else written_out(halves.blocked(body), self.isa.explicit_lanes)

    def constant(self, data: np.ndarray, dtype: str) -> Buf:
        """A small table in the C file."""
        buf = Buf(f"table{len(self.constants)}", data.shape, dtype)
        self.constants.append((buf, np.asarray(data, order="C")))
        return buf

    def in_memory(self, tensor: Tensor) -> Buf:
        """The tensor as a C-contiguous buffer: itself where it is one, else written out by a stage."""
        return self.strided(tensor, lambda buf: buf.contiguous)

    def strided(self, tensor: Tensor, fits: Callable[[Buf], bool] = lambda buf: True) -> Buf:
        """The tensor as a buffer with strides: itself where it is one that `fits`, else written out."""
        if isinstance(tensor, Anchored) and tensor.impl is not None:
            tensor = tensor.impl
        if isinstance(tensor, BufTensor) and fits(tensor.buf):
            return tensor.buf
        buf = self.buffer(tensor.shape, tensor.dtype)

        def fill(nest: Nest, index: list[Index]) -> None:
            nest.store(buf, nest.offset(index, tensor.shape), tensor.at(nest, index))

        nest = split_nest(tensor.shape, fill)
        self.copies += [(load.buffer, buf.size * SIZES[buf.dtype]) for load in nest.copied()]
        self.loops(nest)
        return buf

    def packed(
        self,
        source: Tensor,
        size: int,
        dtype: str,
        body: Callable[[Buf, Buf], ir.Body],
        extra: Sequence[Tensor] = (),
        as_is: bool = False,
    ) -> Buf:
        """A weight in another layout, of `size` elements; `body(from, to)` is the stage that packs it.

        Parameters are packed before the kernel runs (once, where they are bound); anything else in a stage of it.
        `extra` are further tensors that the loops read, by the names of their buffers. Loops that have the source's
        strides read it `as_is`, else it is contiguous.
        """
        bufs = [self.strided(source) if as_is else self.in_memory(source), *(self.in_memory(t) for t in extra)]
        params = {p.name for p in self.params}
        if all(b.name in params for b in bufs):
            target = Buf(f"packed{len(self.packs)}", (size,), dtype)
            for pack in self.packs:
                if pack.target.dtype == dtype and pack.text == Pack(bufs, pack.target, body(bufs[0], pack.target)).text:
                    return pack.target
            self.packs.append(Pack(bufs, target, body(bufs[0], target)))
            return target
        target = self.buffer((size,), dtype)
        self.stage(body=body(bufs[0], target))
        return target


class Sink:
    """Where an anchor's result goes: through the rest of the function into the kernel's output, or into a buffer."""

    def __init__(self, kernel: Kernel, anchor: Anchored, root: Tensor, out: Buf) -> None:
        self.kernel = kernel
        self.anchor = anchor
        self.root = root
        self.out = out
        #: The contiguous buffer that the anchor may write itself, where nothing follows it.
        self.direct: Buf | None = out if root is anchor and out.contiguous else None
        #: The same, contiguous or not.
        self.plain: Buf | None = out if root is anchor else None

    def store(self, nest: Nest, index: Sequence[Index], value: Tensor | Scalar) -> None:
        """Store the result at `index`, given the anchor's own value there."""
        if isinstance(value, Scalar):
            scalar = value
            value = Recipe(self.anchor.shape, scalar.type, lambda nest, index: scalar)
        self.anchor.impl = value
        nest.elements.clear()
        nest.store(self.out, nest.place(self.out, index), self.root.at(nest, index))
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

    def block(self, source: str, strides: Sequence[int], bounds: Bounds, flat: tuple[int, int, End, End] | None = None) -> ir.Body:
        """Loops that pass on a block of the anchor's results, given as `source[sum of index * strides]`.

        `bounds` limits each dimension; `flat` = (first, last, low, high) limits the dimensions `first..last` taken as one.
        """
        shape = self.anchor.shape
        nest = Nest(shape, bounds)
        index = [variable(d) for d in range(len(shape))]
        form = affine({d: s for d, s in enumerate(strides) if shape[d] != 1})
        self.store(nest, index, nest.load(Buf(source, shape, self.anchor.dtype), form))
        return self.kernel.statements(nest, flat=flat)


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
                error(
                    "R0634",
                    f"{what} has an extent that is not known before the program runs",
                    node.span,
                    notes=["the compiler needs static shapes", ELSEWHERE],
                )
            )
    if ty.dtype not in CTYPES:
        raise RelayError(
            error(
                "R0635",
                f"{what} has elements of the type {ty.dtype}, which cannot be compiled",
                node.span,
                notes=[f"dtypes: {', '.join(CTYPES)}", ELSEWHERE],
            )
        )
    # Numbers of other classes have an arithmetic of their own.
    return tuple([d if isinstance(d, Size) else int(d) for d in ty.shape])  # type: ignore[arg-type]


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
    return -(-largest(buf.size, 1) * SIZES[buf.dtype] // 64) * 64
