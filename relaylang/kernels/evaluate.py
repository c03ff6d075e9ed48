"""The meaning of the loop language: its statements run on numpy arrays, an element or a vector at a time.

    c = numpy.zeros(4, "float32")
    run([ir.loop("i", 0, 4, [ir.Store("c", i, ir.load(a, i) * 2)])], {"a": a, "c": c})

Integers wrap, and floats are rounded to their type at each operation, as the C is compiled. Loops of all kinds run their
iterations in order. An access outside its memory is refused (`OutOfBounds`), where the C does anything.

Two things differ from machine to machine. `fma` of float32 rounds once where `fused` says that the machine has such an
instruction; `fma` of other types rounds its product, too. A sum over a float vector's lanes is taken from left to right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from relaylang.kernels import ir, visit
from relaylang.kernels.ops import OPERATIONS

_BITS = 64
_WORD = re.compile(r"size\d+|\d+|[()+*/%?:><-]")


class NotEvaluated(Exception):
    """A kernel that has no meaning in numpy."""


class OutOfBounds(Exception):
    """An access outside the memory of a buffer: its name, the offset and the number of elements there."""


@cache
def _dtype(name: str) -> np.dtype:
    return np.dtype(np.int64 if name == ir.INDEX else name)


class Pointer:
    """A place in memory: an array of one axis, and the offset of an element of `dtype` (or of a vector of them)."""

    __slots__ = ("memory", "offset", "lanes")

    def __init__(self, memory: np.ndarray, offset: int = 0, lanes: int = 1) -> None:
        self.memory, self.offset, self.lanes = memory, offset, lanes

    def seen_as(self, ty: str) -> Pointer:
        """The same place as a pointer to another element type."""
        dtype = _dtype(ir.element_of(ty))
        if dtype == self.memory.dtype:
            return self
        start = self.offset * self.memory.itemsize
        raw = self.memory.view(np.uint8)[start % dtype.itemsize :]
        raw = raw[: raw.size // dtype.itemsize * dtype.itemsize]
        return Pointer(raw.view(dtype), start // dtype.itemsize)

    def part(self, index: int, ty: str, name: str) -> tuple[np.ndarray, int, int]:
        """The memory of a value at an index: an array of the type's elements, and the first and last of the value's."""
        element, lanes = ir.vector_of(ty)
        first = self.offset + index * self.lanes
        dtype, memory = _dtype(element), self.memory
        if dtype != memory.dtype and lanes > 1:
            place = Pointer(memory, first).seen_as(element)
            memory, first = place.memory, place.offset
        if first < 0 or first + lanes > memory.size:
            raise OutOfBounds(f"{name}[{index}] of {lanes} {element} lies outside {memory.size} elements")
        return memory, first, first + lanes


def wrapped(value: int) -> int:
    """A number as a C long."""
    return (value + 2**63) % 2**64 - 2**63


def converted(value: Any, source: str, ty: str) -> Any:
    """A value as another type; see `relaylang.kernels.ops.cast_form`."""
    (one, _), (two, _) = ir.vector_of(source), ir.vector_of(ty)
    value = np.asarray(value, _dtype(one))
    if two == "bool":
        return (value < 0) | (value > 0)
    dtype = _dtype(two)
    if value.dtype.kind == "f" and dtype.kind in "iu":
        wide = np.int64 if two in ("int64", "uint32", "uint64", ir.INDEX) else np.int32
        limit = 2.0 ** (8 * np.dtype(wide).itemsize - 1)
        fits = (value >= -limit) & (value < limit)
        return np.where(fits, np.where(fits, value, 0).astype(wide), np.iinfo(wide).min).astype(dtype)
    return value.astype(dtype)


def fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float32, rounded once. The product is exact in float64, and the sum's last bit says that it is not."""
    product, z = np.asarray(x, np.float64) * y, np.asarray(z, np.float64)
    total = product + z
    part = total - product
    error = (product - (total - part)) + (z - part)
    bits = np.asarray(total).view(np.int64)
    odd = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    towards = np.where((error > 0) == (total > 0), bits + 1, bits - 1)
    return np.where(odd, towards, bits).view(np.float64).astype(np.float32)


def _saturated(value: Any, ty: str) -> Any:
    limits = np.iinfo(_dtype(ir.vector_of(ty)[0]))
    return np.clip(value, limits.min, limits.max)


def _operation(node: ir.Op) -> Callable[..., Any]:
    """The function of an operation's values."""
    name, ty = node.name, node.type
    if name == "saturate":
        # Two vectors become one of all their lanes.
        return lambda *values: _saturated(np.concatenate(values) if len(values) > 1 else values[0], ty)
    if name == "bitcast":
        return lambda value: np.asarray(value).view(_dtype(ir.vector_of(ty)[0]))
    if name == "quotient" and ty == ir.INDEX:
        return lambda x, y: int(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1)
    meaning = OPERATIONS[name].meaning
    dtypes = [_dtype(ir.vector_of(a.type)[0]) for a in node.args]
    return lambda *values: meaning(*[np.asarray(v, d) for v, d in zip(values, dtypes)])


def _dot(node: ir.Intrinsic) -> Callable[..., Any]:
    """Sums of products of neighbours; the order of the sums is that of the lanes."""
    name = node.name
    neighbours = ir.DOTS[name][2]

    def dot(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        wide = z.dtype
        if name == "dot_halves":
            return z + (x[:2].astype(wide)[:, None] * y.astype(wide).reshape(2, -1)).sum(0, dtype=wide)
        if name.startswith("square"):
            return z + (x.astype(wide).reshape(-1, 2, 8) @ y.astype(wide).reshape(-1, 2, 8).swapaxes(1, 2)).reshape(z.shape)
        products = x.astype(wide).reshape(-1, neighbours) * y.astype(wide).reshape(-1, neighbours)
        for n in range(neighbours):
            z = z + products[:, n]
        return z

    return dot


def _madd(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    products = x.view(np.int16).astype(np.int32) * y.view(np.int16).astype(np.int32)
    return z + products[0::2] + products[1::2]


class _Steps:
    """An expression as steps on a stack of values. A step takes some values off and puts one on, or jumps."""

    NAME, PUT, APPLY, UNLESS, JUMP = range(5)

    def __init__(self, value: ir.Expr, run: Run) -> None:
        self.steps: list[tuple[int, Any, int]] = []
        todo: list[Any] = [value]
        while todo:
            item = todo.pop()
            if isinstance(item, ir.Expr):
                self._begin(item, todo, run)
            elif item[0] in (self.UNLESS, self.JUMP):
                # A jump's aim is known once what it passes over is there.
                item[1].append(len(self.steps))
                self.steps.append((item[0], item[1], 0))
            elif item[0] == "aim":
                self.steps[item[1][0]] = (self.steps[item[1][0]][0], len(self.steps), 0)
            else:
                self.steps.append(item)

    def _begin(self, value: ir.Expr, todo: list[Any], run: Run) -> None:
        match value:
            case ir.Var(name):
                self.steps.append((self.NAME, name, 0))
            case ir.Const(data, ty):
                self.steps.append((self.PUT, np.asarray(data).astype(_dtype(ty))[()], 0))
            case ir.Extent(size):
                self.steps.append((self.PUT, run.extent(size), 0))
            case ir.Op("select", (test, yes, no), ty) if ir.vector_of(test.type)[1] == 1:
                past: list[int] = []
                over: list[int] = []
                end = [("aim", over)]
                todo += [*end, no, ("aim", past), (self.JUMP, over, 0), yes, (self.UNLESS, past, 0), test]
            case _:
                operands = visit.parts(value)
                todo.append((self.APPLY, run.function(value), len(operands)))
                todo += reversed(operands)

    def value(self, names: Mapping[str, Any]) -> Any:
        stack: list[Any] = []
        at, steps = 0, self.steps
        while at < len(steps):
            kind, data, count = steps[at]
            at += 1
            if kind == self.APPLY:
                operands = stack[len(stack) - count :]
                del stack[len(stack) - count :]
                stack.append(data(names, *operands))
            elif kind == self.NAME:
                stack.append(names[data])
            elif kind == self.PUT:
                stack.append(data)
            elif kind == self.JUMP or not stack.pop():
                at = data
        return stack[0]


class _Frame:
    """A list of statements that runs: the next one, how it goes on at the end, and names to restore then."""

    __slots__ = ("body", "at", "again", "hidden")

    def __init__(self, body: Sequence[ir.Stmt], again: Callable[[], bool] | None = None) -> None:
        self.body, self.at, self.again = body, 0, again
        self.hidden: dict[str, Any] = {}


_ABSENT = object()


class Run:
    """A run of statements: the names' values, the sizes and the functions that can be called."""

    def __init__(self, functions: Mapping[str, ir.Function], sizes: Mapping[str, int], fused: bool) -> None:
        self.functions, self.sizes, self.fused = functions, sizes, fused
        self._steps: dict[int, tuple[ir.Expr, _Steps]] = {}
        self._way = 0

    def extent(self, size: Any) -> int:
        """The number of a size."""
        return extent(size, self.sizes)

    def value(self, value: ir.Expr, names: Mapping[str, Any]) -> Any:
        known = self._steps.get(id(value))
        if known is None:
            known = self._steps[id(value)] = value, _Steps(value, self)
        return known[1].value(names)

    def number(self, value: ir.Expr, names: Mapping[str, Any]) -> int:
        return int(self.value(value, names))

    # -- expressions -----------------------------------------------------------------------------------------------------

    def function(self, node: ir.Expr) -> Callable[..., Any]:
        """The function of a node, of the names' values and its operands'."""
        match node:
            case ir.Linear(terms, const):
                factors, more = [f for _, f in terms], self.extent(const)
                return lambda names, *atoms: wrapped(sum(int(a) * f for a, f in zip(atoms, factors)) + more)
            case ir.Load(buffer, _, ty):
                return lambda names, index: _read(names[buffer], int(index), ty, buffer)
            case ir.Address(buffer, _, ty):
                return lambda names, index: _moved(names[buffer], int(index)).seen_as(ty)
            case ir.Cast(_, ty) if ty.endswith("*"):
                return lambda names, value: Pointer(np.zeros(0, _dtype(ir.element_of(ty))))
            case ir.Cast(inner, ty):
                source = inner.type
                return lambda names, value: _typed(converted(value, source, ty), ty)
            case ir.Op("alternate", _, ty):
                return self._alternate
            case ir.Op(_, _, ty):
                apply = _operation(node)
                return lambda names, *values: _typed(apply(*values), ty)
            case ir.Intrinsic():
                act, ty = self._intrinsic(node), node.type
                return lambda names, *values: _typed(act(*values), ty)
        raise NotEvaluated(f"a {type(node).__name__}")

    def _alternate(self, names: Mapping[str, Any]) -> Any:
        self._way ^= 1
        return np.int32(self._way)

    def _intrinsic(self, node: ir.Intrinsic) -> Callable[..., Any]:
        name, (dtype, lanes) = node.name, ir.vector_of(node.type)
        match name:
            case "splat" | "splat_single":
                return lambda value: np.full(lanes, value, _dtype(dtype))
            case "splat_pair" | "splat_quad":
                count = 2 if name == "splat_pair" else 4
                return lambda place: np.tile(_read(place, 0, ir.vector(dtype, count), name), lanes // count)
            case "two_rows":
                half = ir.vector(dtype, lanes // 2)
                return lambda one, two: np.concatenate([_read(one, 0, half, name), _read(two, 0, half, name)])
            case "fma" if dtype == "float32" and self.fused:
                return fused
            case "fma" | "fma_single":
                return lambda x, y, z: x * y + z
            case "sum":
                return lambda value: _summed(value)
            case "mix":
                return lambda one, two, *places: np.concatenate([one, two])[list(map(int, places))]
            case "lane":
                return lambda value, place: value[int(place)]
            case "low":
                return lambda value: value[:lanes]
            case "madd":
                return _madd
        return _dot(node)

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, body: Sequence[ir.Stmt], names: dict[str, Any]) -> None:
        """Run statements. A parallel loop runs over the units `lo..hi` of the names, over all where there are none."""
        frames = [_Frame(body)]
        while frames:
            frame = frames[-1]
            if frame.at < len(frame.body):
                stmt = frame.body[frame.at]
                frame.at += 1
                self._step(stmt, names, frames)
                continue
            for name, value in frame.hidden.items():
                if value is _ABSENT:
                    names.pop(name, None)
                else:
                    names[name] = value
            frame.hidden.clear()
            if frame.again is not None and frame.again():
                frame.at = 0
            else:
                frames.pop()

    def _step(self, stmt: ir.Stmt, names: dict[str, Any], frames: list[_Frame]) -> None:
        match stmt:
            case ir.Let(name, value):
                found = self.value(value, names)
                if value.type.endswith("*"):
                    found = found.seen_as(value.type)
                _define(frames[-1], names, name, found)
            case ir.Assign(name, value):
                found, old = self.value(value, names), names[name]
                names[name] = found.seen_as(old.memory.dtype.name) if isinstance(old, Pointer) else found
            case ir.Local(name, ty, _, _, zero):
                dtype, lanes = ir.vector_of(ty)
                memory = np.zeros(stmt.size * lanes, _dtype(dtype))
                if not zero:
                    memory.view(np.uint8)[:] = 0xAB  # C's have anything there
                _define(frames[-1], names, name, Pointer(memory, 0, lanes))
            case ir.Store(buffer, index, value):
                memory, first, end = names[buffer].part(self.number(index, names), value.type, buffer)
                memory[first:end] = self.value(value, names)
            case ir.Reduce(op, buffer, index, value):
                memory, first, end = names[buffer].part(self.number(index, names), value.type, buffer)
                old = _scalar(memory[first:end], value.type)
                node = ir.Op(op, (ir.Var("old", value.type), ir.Var("new", value.type)), value.type)
                memory[first:end] = _typed(_operation(node)(old, self.value(value, names)), value.type)
            case ir.Loop():
                self._loop(stmt, names, frames)
            case ir.If(condition, body, otherwise):
                frames.append(_Frame(body if self.value(condition, names) else otherwise))
            case ir.While(condition, body):
                if self.value(condition, names):
                    frames.append(_Frame(body, lambda: bool(self.value(condition, names))))
            case ir.Block(body):
                frames.append(_Frame(body))
            case ir.Call(name, args):
                self.call(name, [self.value(a, names) for a in args])
            case ir.Note():
                pass
            case _:
                raise NotEvaluated(f"a {type(stmt).__name__}")

    def _loop(self, stmt: ir.Loop, names: dict[str, Any], frames: list[_Frame]) -> None:
        low, high = self.number(stmt.low, names), self.number(stmt.high, names)
        if stmt.kind == ir.PARALLEL:
            low, high = names.get("lo", low), names.get("hi", high)
        if low >= high:
            return
        turns = iter(range(low, high, stmt.step))
        _define(frames[-1], names, stmt.var, next(turns))

        def again() -> bool:
            turn = next(turns, None)
            if turn is None:
                return False
            names[stmt.var] = turn
            return True

        frames.append(_Frame(stmt.body, again))

    def call(self, name: str, args: Sequence[Any]) -> None:
        """Call a function of the kernel or of the C."""
        function = self.functions.get(name)
        if function is None:
            if name not in OUTSIDE:
                raise NotEvaluated(f"the function {name}")
            OUTSIDE[name](*args)
            return
        names = {p.name: a.seen_as(p.type) if p.type.endswith("*") else a for p, a in zip(function.params, args, strict=True)}
        self.body(function.body, names)


def _define(frame: _Frame, names: dict[str, Any], name: str, value: Any) -> None:
    frame.hidden.setdefault(name, names.get(name, _ABSENT))
    names[name] = value


def _scalar(part: np.ndarray, ty: str) -> Any:
    return part.copy() if ir.vector_of(ty)[1] > 1 else part[0]


def _read(place: Pointer, index: int, ty: str, name: str) -> Any:
    memory, first, end = place.part(index, ty, name)
    value = _scalar(memory[first:end], ty)
    return value if memory.dtype == _dtype(ir.vector_of(ty)[0]) else _typed(value, ty)


def _moved(place: Pointer, index: int) -> Pointer:
    return Pointer(place.memory, place.offset + index * place.lanes)


def _typed(value: Any, ty: str) -> Any:
    """A result as a number or a vector of its type; integers wrap."""
    if ty == ir.INDEX:
        return wrapped(int(value))
    dtype, lanes = ir.vector_of(ty)
    value = np.asarray(value).astype(_dtype(dtype))
    return value if lanes > 1 else value.reshape(())[()]


def _summed(value: np.ndarray) -> Any:
    total = value[0]
    for part in value[1:]:
        total = total + part
    return total


def _span(place: Pointer, count: Any) -> np.ndarray:
    """So many elements from a place on."""
    first, end = place.offset, place.offset + int(count)
    if first < 0 or end > place.memory.size:
        raise OutOfBounds(f"elements {first}..{end} lie outside {place.memory.size}")
    return place.memory[first:end]


def _copy(to: Pointer, source: Pointer, count: Any) -> None:
    """Convert so many numbers from one place to another."""
    target = _span(to, count)
    target[:] = _span(source, count).astype(target.dtype)


def _copy_bytes(to: Pointer, source: Pointer, count: Any) -> None:
    _span(to.seen_as("uint8"), count)[:] = _span(source.seen_as("uint8"), count)


def _add_wide(to: Pointer, value: np.ndarray, first: Any, shift: Any) -> None:
    part = to.memory[to.offset : to.offset + value.size]
    part[:] = (0 if first else part) + (value.astype(np.int64) << np.int64(shift))


#: The C functions that statements call, of values and pointers.
OUTSIDE: dict[str, Callable[..., None]] = {
    "r_read_halves": _copy,
    "r_write_halves": _copy,
    "r_add_wide": _add_wide,
    "memcpy": _copy_bytes,
    "__builtin_prefetch": lambda *_: None,
}


def extent(size: int, sizes: Mapping[str, int]) -> int:
    """The number of an extent, given those of the sizes (`size0`, ...)."""
    terms = getattr(size, "terms", None)
    if terms is None:
        return int(size)
    total = 0
    for atoms, factor in terms.items():
        for atom in atoms:
            factor *= sizes[atom] if atom in sizes else _computed(atom, sizes)
        total += factor
    return total


def _computed(text: str, sizes: Mapping[str, int]) -> int:
    """The number of a quotient, a rest or a choice of sizes, as C text."""
    words = _WORD.findall(text)
    at = 0

    def next_is(word: str) -> bool:
        nonlocal at
        if at < len(words) and words[at] == word:
            at += 1
            return True
        return False

    def product() -> int:
        value = primary()
        while True:
            if next_is("*"):
                value *= primary()
            elif next_is("/"):
                value //= primary()
            elif next_is("%"):
                value %= primary()
            else:
                return value

    def primary() -> int:
        nonlocal at
        if next_is("("):
            value = choice()
            assert next_is(")")
            return value
        if next_is("-"):
            return -primary()
        at += 1
        word = words[at - 1]
        return int(word) if word.isdigit() else sizes[word]

    def total() -> int:
        value = product()
        while True:
            if next_is("+"):
                value += product()
            elif next_is("-"):
                value -= product()
            else:
                return value

    def choice() -> int:
        value = total()
        if next_is(">"):
            value = int(value > total())
        if next_is("?"):
            yes = total()
            assert next_is(":")
            no = total()
            return yes if value else no
        return value

    return choice()


def run(
    body: Sequence[ir.Stmt],
    buffers: Mapping[str, np.ndarray],
    values: Mapping[str, Any] = {},
    functions: Sequence[ir.Function] = (),
    units: tuple[int, int] | None = None,
    fused: bool = True,
) -> None:
    """Run a stage's statements. They read and write the buffers, C-contiguous arrays by name.

    `values` are those of other names: sizes, and whatever the body is given. `units` limits the parallel loop. `fused`
    says whether the machine has `fma` of float32. Raises `OutOfBounds`, and `NotEvaluated` for C functions that
    are not in `OUTSIDE`.
    """
    names: dict[str, Any] = {name: Pointer(array.reshape(-1)) for name, array in buffers.items()}
    names |= values
    if units is not None:
        names["lo"], names["hi"] = units
    with np.errstate(all="ignore"):
        sizes = {name: int(value) for name, value in values.items() if isinstance(value, (int, np.integer))}
        Run({f.name: f for f in functions}, sizes, fused).body(body, names)


def kernel(made: Any, arrays: Sequence[np.ndarray], values: Mapping[str, int] = {}, fused: bool = True) -> list[np.ndarray]:
    """The results of a whole kernel (`relaylang.backends.cpu.kernel.Kernel`) for its parameters' arrays.

    `values` has the sizes. Packs run first, then the stages in their order. Buffers with strides lie in memory of their
    own, with zeros between their elements.
    """
    buffers: dict[str, np.ndarray] = {}

    def memory(buf: Any) -> np.ndarray:
        shape = [extent(e, values) for e in buf.shape]
        last = sum((e - 1) * extent(s, values) for e, s in zip(shape, buf.strides))
        return np.zeros(max(1, last + 1 if all(shape) else 1), _dtype(buf.dtype))

    def view(buf: Any) -> np.ndarray:
        array = buffers[buf.name]
        shape = [extent(e, values) for e in buf.shape]
        steps = [extent(s, values) * array.itemsize for s in buf.strides]
        return np.lib.stride_tricks.as_strided(array, shape, steps)

    for buf, array in zip(made.params, arrays, strict=True):
        buffers[buf.name] = memory(buf)
        view(buf)[...] = np.asarray(array).view(_dtype(buf.dtype))
    for buf in [*made.outs, *made.work, *(pack.target for pack in made.packs)]:
        buffers[buf.name] = memory(buf)
    for buf, data in made.constants:
        buffers[buf.name] = memory(buf)
        buffers[buf.name][: data.size] = np.asarray(data).ravel().astype(_dtype(buf.dtype))
    for part in [*made.packs, *made.stages]:
        run(part.body, buffers, values, made.functions, fused=fused)
    return [view(buf).copy() for buf in made.outs]
