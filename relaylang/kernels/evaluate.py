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
from typing import Any

import numpy as np

from relaylang.kernels import ir, visit
from relaylang.kernels.values import (
    OUTSIDE,
    NotEvaluated,
    Pointer,
    converted,
    dot_products,
    dtype_of,
    fused,
    madd,
    moved,
    operation,
    read,
    scalar,
    summed,
    typed,
    wrapped,
)

_BITS = 64
_WORD = re.compile(r"size\d+|\d+|[()+*/%?:><|-]")


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
                self.steps.append((self.PUT, np.asarray(data).astype(dtype_of(ty))[()], 0))
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
                return lambda names, index: read(names[buffer], int(index), ty, buffer)
            case ir.Address(buffer, _, ty):
                return lambda names, index: moved(names[buffer], int(index)).seen_as(ty)
            case ir.Cast(_, ty) if ty.endswith("*"):
                return lambda names, value: Pointer(np.zeros(0, dtype_of(ir.element_of(ty))))
            case ir.Cast(inner, ty):
                source = inner.type
                return lambda names, value: typed(converted(value, source, ty), ty)
            case ir.Op("alternate", _, ty):
                return self._alternate
            case ir.Op(_, _, ty):
                apply = operation(node)
                return lambda names, *values: typed(apply(*values), ty)
            case ir.Intrinsic():
                act, ty = self._intrinsic(node), node.type
                return lambda names, *values: typed(act(*values), ty)
        raise NotEvaluated(f"a {type(node).__name__}")

    def _alternate(self, names: Mapping[str, Any]) -> Any:
        self._way ^= 1
        return np.int32(self._way)

    def _intrinsic(self, node: ir.Intrinsic) -> Callable[..., Any]:
        name, (dtype, lanes) = node.name, ir.vector_of(node.type)
        match name:
            case "splat" | "splat_single":
                return lambda value: np.full(lanes, value, dtype_of(dtype))
            case "splat_pair" | "splat_quad":
                count = 2 if name == "splat_pair" else 4
                return lambda place: np.tile(read(place, 0, ir.vector(dtype, count), name), lanes // count)
            case "two_rows":
                half = ir.vector(dtype, lanes // 2)
                return lambda one, two: np.concatenate([read(one, 0, half, name), read(two, 0, half, name)])
            case "fma" if dtype == "float32" and self.fused:
                return fused
            case "fma" | "fma_single":
                return lambda x, y, z: x * y + z
            case "sum":
                return lambda value: summed(value)
            case "mix":
                return lambda one, two, *places: np.concatenate([one, two])[list(map(int, places))]
            case "lane":
                return lambda value, place: value[int(place)]
            case "low":
                return lambda value: value[:lanes]
            case "madd":
                return madd
        return dot_products(node)

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
                result = self.value(value, names)
                if value.type.endswith("*"):
                    result = result.seen_as(value.type)
                _define(frames[-1], names, name, result)
            case ir.Assign(name, value):
                result, old = self.value(value, names), names[name]
                names[name] = result.seen_as(old.memory.dtype.name) if isinstance(old, Pointer) else result
            case ir.Local(name, ty, _, _, zero):
                dtype, lanes = ir.vector_of(ty)
                memory = np.zeros(stmt.size * lanes, dtype_of(dtype))
                if not zero:
                    memory.view(np.uint8)[:] = 0xAB  # C's have anything there
                _define(frames[-1], names, name, Pointer(memory, 0, lanes))
            case ir.Store(buffer, index, value):
                memory, first, end = names[buffer].part(self.number(index, names), value.type, buffer)
                memory[first:end] = self.value(value, names)
            case ir.Reduce(op, buffer, index, value):
                memory, first, end = names[buffer].part(self.number(index, names), value.type, buffer)
                old = scalar(memory[first:end], value.type)
                node = ir.Op(op, (ir.Var("old", value.type), ir.Var("new", value.type)), value.type)
                memory[first:end] = typed(operation(node)(old, self.value(value, names)), value.type)
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
    """The number of a quotient, a rest, a choice or the bits of sizes, as C text."""
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
        while next_is("|"):
            value |= total()
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
        return np.zeros(max(1, last + 1 if all(shape) else 1), dtype_of(buf.dtype))

    def view(buf: Any) -> np.ndarray:
        array = buffers[buf.name]
        shape = [extent(e, values) for e in buf.shape]
        steps = [extent(s, values) * array.itemsize for s in buf.strides]
        return np.lib.stride_tricks.as_strided(array, shape, steps)

    for buf, array in zip(made.params, arrays, strict=True):
        buffers[buf.name] = memory(buf)
        view(buf)[...] = np.asarray(array).view(dtype_of(buf.dtype))
    for buf in [*made.outs, *made.work, made.fault, *(pack.target for pack in made.packs)]:
        buffers[buf.name] = memory(buf)
    for buf, data in made.constants:
        buffers[buf.name] = memory(buf)
        buffers[buf.name][: data.size] = np.asarray(data).ravel().astype(dtype_of(buf.dtype))
    for part in [*made.packs, *made.stages]:
        run(part.body, buffers, values, made.functions, fused=fused)
    return [view(buf).copy() for buf in made.outs]
