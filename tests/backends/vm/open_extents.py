"""Random programs over named open extents: operators that move, join and reduce axes, branches, loops and calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np

#: The most elements of a tensor where each name is 4, and the most axes.
_MOST, _RANK = 400, 4
_BOUND = {"b": 4, "t": 4}


@dataclass(frozen=True)
class Extent:
    """A sum of products of names: the products in order, each with its factor."""

    terms: tuple[tuple[tuple[str, ...], int], ...]

    def __add__(self, other: Extent) -> Extent:
        return _sum([*self.terms, *other.terms])

    def __mul__(self, other: Extent) -> Extent:
        return _sum([(tuple(sorted((*a, *b))), n * m) for a, n in self.terms for b, m in other.terms])

    def value(self, names: Mapping[str, int]) -> int:
        return sum(factor * math.prod(names[name] for name in term) for term, factor in self.terms)

    @property
    def number(self) -> int | None:
        """The number that the extent always is."""
        return self.value({}) if all(not term for term, _ in self.terms) else None

    def __str__(self) -> str:
        return " + ".join(" * ".join([*([str(n)] if n != 1 or not term else []), *term]) for term, n in self.terms)


def _sum(terms: Iterable[tuple[tuple[str, ...], int]]) -> Extent:
    total: dict[tuple[str, ...], int] = {}
    for term, factor in terms:
        total[term] = total.get(term, 0) + factor
    return Extent(tuple(sorted(total.items(), key=lambda item: (-len(item[0]), item[0]))))


def known(value: int) -> Extent:
    return Extent((((), value),))


ONE = known(1)
NAMES = {name: Extent((((name,), 1),)) for name in ("b", "t")}
Shape = tuple[Extent, ...]


def product(shape: Sequence[Extent]) -> Extent:
    return reduce(mul, shape, ONE)


@dataclass(frozen=True)
class Value:
    """A tensor of a program: its name, its shape, and whether it has whole numbers."""

    name: str
    shape: Shape
    whole: bool = False


def fits(shape: Shape) -> bool:
    return len(shape) <= _RANK and product(shape).value(_BOUND) <= _MOST


class Program:
    """A program of a seed. `names` are numbers in place of `b` and `t`; a text without them has the names.

    `limits` are the ends of loops: constants, or `%n`. `prefix` begins the names of its functions.
    """

    def __init__(self, seed: int, prefix: str, limits: Sequence[str], names: Mapping[str, int] | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.prefix = prefix
        self.limits = list(limits)
        self.names = names
        self.count = 0
        self.functions: list[str] = []
        b, t = NAMES["b"], NAMES["t"]
        shapes: list[Shape] = [(b, t), (b, known(3)), (t, known(3)), (b, t, known(2)), (t,), (known(2), known(3))]
        self.params = [Value(f"%x{n}", shape) for n, shape in enumerate(shapes)]
        self.params += [Value("%j0", (b, t), True), Value("%j1", (t, known(3)), True)]

    # --- texts ---

    def new(self, kind: str) -> str:
        self.count += 1
        return f"%{kind}{self.count}"

    def dim(self, extent: Extent) -> str:
        return str(extent if self.names is None else extent.value(self.names))

    def type(self, value: Value) -> str:
        dims = [self.dim(e) for e in value.shape]
        return f"Tensor[({', '.join(dims)}), {'int32' if value.whole else 'float32'}]"

    def pick(self, values: Sequence[Value], fits: Callable[[Value], bool] = lambda v: True) -> Value | None:
        chosen = [v for v in values if fits(v)]
        return chosen[int(self.rng.integers(len(chosen)))] if chosen else None

    # --- operators ---

    def step(self, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        """A call of some values: its text, its shape, and whether it has whole numbers."""
        rng = self.rng
        x = values[int(rng.integers(len(values)))]
        ways = [
            self.unary,
            self.binary,
            self.joined,
            self.reshaped,
            self.moved,
            self.reduced,
            self.repeated,
            self.product,
            self.like,
            self.cut,
            self.chosen,
        ]
        made = ways[int(rng.integers(len(ways)))](x, values)
        return made if made is not None and fits(made[1]) else None

    def unary(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool]:
        if x.whole:
            way = str(self.rng.choice(["negative(X)", "abs(X)", 'cast(X, dtype="float32")', "clip(X, a_min=-3, a_max=4)"]))
            return way.replace("X", x.name), x.shape, "float" not in way
        way = str(self.rng.choice(["tanh(X)", "sigmoid(X)", "negative(X)", "nn.relu(X)", "abs(X)", "multiply(X, 0.5f)"]))
        if x.shape and self.rng.random() < 0.2:
            return f"nn.softmax({x.name})", x.shape, False
        return way.replace("X", x.name), x.shape, False

    def binary(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        def broadcasts(y: Value) -> bool:
            pairs = zip(x.shape[::-1], y.shape[::-1])
            return y.whole == x.whole and all(a == b or ONE in (a, b) for a, b in pairs)

        y = self.pick(values, broadcasts)
        if y is None:
            return None
        longer, shorter = (x.shape, y.shape) if len(x.shape) >= len(y.shape) else (y.shape, x.shape)
        ahead = len(longer) - len(shorter)
        shape = longer[:ahead] + tuple([b if a == ONE else a for a, b in zip(longer[ahead:], shorter)])
        name = str(self.rng.choice(["add", "subtract", "maximum", "minimum"]))
        return f"{name}({x.name}, {y.name})", shape, x.whole

    def joined(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        if not x.shape:
            return None
        axis = int(self.rng.integers(len(x.shape)))
        y = self.pick(
            values,
            lambda y: (
                y.whole == x.whole
                and len(y.shape) == len(x.shape)
                and all(a == b for n, (a, b) in enumerate(zip(x.shape, y.shape)) if n != axis)
            ),
        )
        assert y is not None
        if y.shape == x.shape and self.rng.random() < 0.3:
            return f"stack(({x.name}, {y.name}), axis={axis})", (*x.shape[:axis], known(2), *x.shape[axis:]), x.whole
        return f"concatenate(({x.name}, {y.name}), axis={axis})", self.at(x.shape, axis, x.shape[axis] + y.shape[axis]), x.whole

    @staticmethod
    def at(shape: Shape, axis: int, extent: Extent) -> Shape:
        return (*shape[:axis], extent, *shape[axis + 1 :])

    def reshaped(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        shape, way = x.shape, int(self.rng.integers(6))
        if way == 0:
            return f"reshape({x.name}, newshape=[-1])", (product(shape),), x.whole
        if way == 1 and len(shape) > 1 and shape[-1].number:
            last = shape[-1]
            return f"reshape({x.name}, newshape=[-1, {last}])", (product(shape[:-1]), last), x.whole
        if way == 2 and len(shape) > 1:
            return f"reshape({x.name}, newshape=[0, -1])", (shape[0], product(shape[1:])), x.whole
        if way == 3 and shape:
            return f"reverse({x.name}, axis={len(shape) - 1})", shape, x.whole
        if way == 4:
            axis = int(self.rng.integers(len(shape) + 1))
            return f"expand_dims({x.name}, axis={axis})", (*shape[:axis], ONE, *shape[axis:]), x.whole
        axes = [n for n, extent in enumerate(shape) if extent == ONE]
        if way == 5 and axes and len(shape) > 1:
            return f"squeeze({x.name}, axis=[{axes[0]}])", (*shape[: axes[0]], *shape[axes[0] + 1 :]), x.whole
        return None

    def moved(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        if len(x.shape) < 2:
            return None
        axes = [int(n) for n in self.rng.permutation(len(x.shape))]
        return f"transpose({x.name}, axes={axes})", tuple([x.shape[n] for n in axes]), x.whole

    def reduced(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        if not x.shape:
            return None
        axis = int(self.rng.integers(len(x.shape)))
        keep = bool(self.rng.integers(2))
        name = str(self.rng.choice(["sum", "max", "min", *([] if x.whole else ["mean"])]))
        rest = self.at(x.shape, axis, ONE) if keep else (*x.shape[:axis], *x.shape[axis + 1 :])
        text = f"{name}({x.name}, axis=[{axis}]{', keepdims=True' if keep else ''})"
        if x.whole and self.rng.random() < 0.3:
            return f"cumsum({x.name}, axis={axis})", x.shape, True
        return (text if x.whole else f"tanh({text})"), rest, x.whole

    def repeated(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        if not x.shape:
            return None
        axis = int(self.rng.integers(len(x.shape)))
        shape = self.at(x.shape, axis, known(2) * x.shape[axis])
        if self.rng.random() < 0.5:
            return f"repeat({x.name}, repeats=2, axis={axis})", shape, x.whole
        reps = [2 if n == axis else 1 for n in range(len(x.shape))]
        return f"tile({x.name}, reps={reps})", shape, x.whole

    def product(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        if x.whole or len(x.shape) not in (2, 3):
            return None
        batch = x.shape[:-2]
        y = self.pick(
            values, lambda y: not y.whole and y.shape[:-2] == batch and len(y.shape) == len(x.shape) and y.shape[-1] == x.shape[-1]
        )
        assert y is not None
        shape = (*batch, x.shape[-2], y.shape[-2])
        if batch:
            return f"tanh(nn.batch_matmul({x.name}, {y.name}, transpose_b=True))", shape, False
        return f"tanh(nn.dense({x.name}, {y.name}, units=None))", shape, False

    def like(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        way = int(self.rng.integers(5))
        y = self.pick(values, lambda y: len(y.shape) > 0)
        if way == 0:
            name = str(self.rng.choice(["zeros_like", "ones_like"]))
            return f"{name}({x.name})", x.shape, x.whole
        if y is None:
            return None
        if way == 1 and len(x.shape) <= len(y.shape):
            if x.whole == y.whole and all(a in (b, ONE) for a, b in zip(x.shape[::-1], y.shape[::-1])):
                return f"broadcast_to_like({x.name}, {y.name})", y.shape, x.whole
        if way == 2:
            y = self.pick(values, lambda y: product(y.shape) == product(x.shape))
            assert y is not None
            return f"reshape_like({x.name}, {y.name})", y.shape, x.whole
        if way == 3:
            y = self.pick(values, lambda y: product(y.shape) == product(x.shape) and len(y.shape) > 0)
            return (
                (f'dyn.reshape({x.name}, shape_of({y.name}, dtype="int32"), newshape=[])', y.shape, x.whole) if y is not None else None
            )
        if way == 4 and len(x.shape) <= len(y.shape):
            if all(a in (b, ONE) for a, b in zip(x.shape[::-1], y.shape[::-1])):
                return f'dyn.broadcast_to({x.name}, shape_of({y.name}, dtype="int32"), shape=[])', y.shape, x.whole
        return None

    def cut(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        axes = [n for n, extent in enumerate(x.shape) if extent.number is not None and extent.number > 1]
        if not axes:
            return None
        axis = axes[int(self.rng.integers(len(axes)))]
        extent = x.shape[axis].number
        assert extent is not None
        begin = int(self.rng.integers(extent))
        end = int(self.rng.integers(begin + 1, extent + 1))
        if self.rng.random() < 0.4:
            one, two = self.rng.integers(0, extent, 2)
            return f"take({x.name}, stack(({one}, {two}), axis=0), axis={axis})", self.at(x.shape, axis, known(2)), x.whole
        text = f"strided_slice({x.name}, begin=[{begin}], end=[{end}], strides=[1], axes=[{axis}])"
        return text, self.at(x.shape, axis, known(end - begin)), x.whole

    def chosen(self, x: Value, values: Sequence[Value]) -> tuple[str, Shape, bool] | None:
        y = self.pick(values, lambda y: y.whole == x.whole and y.shape == x.shape)
        assert y is not None
        whole = self.pick(values, lambda v: v.whole and v.shape == x.shape)
        if whole is not None and self.rng.random() < 0.5:
            return f"where(greater({whole.name}, 1), {x.name}, {y.name})", x.shape, x.whole
        test = self.pick(values, lambda v: v.whole)
        assert test is not None
        turn = self.rng.choice(["%n", "1"])
        return f"if (less(max({test.name}), add({turn}, 2))) {{ {x.name} }} else {{ negative({y.name}) }}", x.shape, x.whole

    # --- programs ---

    def lines(self, values: list[Value], count: int, depth: int) -> list[str]:
        """Lets behind each other, whose values are added to those that are there."""
        out: list[str] = []
        while count:
            if depth < 2 and self.rng.random() < 0.12:
                out += self.loop(values, depth)
                count -= 1
                continue
            if depth == 0 and self.rng.random() < 0.08:
                out += self.called(values)
                count -= 1
                continue
            made = self.step(values)
            if made is None:
                continue
            text, shape, whole = made
            name = self.new("v")
            out.append(f"let {name} = {text};")
            values.append(Value(name, shape, whole))
            count -= 1
        return out

    def plain(self, values: Sequence[Value], whole: bool | None = None) -> Value:
        """A value whose type can stand in the text."""
        chosen = self.pick(values, lambda v: (whole is None or v.whole == whole) and all(len(str(e)) < 16 for e in v.shape))
        assert chosen is not None
        return chosen

    def loop(self, values: list[Value], depth: int) -> list[str]:
        """The lines that bind a loop and its call; it may keep rows."""
        rng, i = self.rng, self.new("i")
        loop, rows = self.new("loop"), self.new("rows")
        first, limit = int(rng.integers(-1, 2)), str(rng.choice(self.limits))
        begins = [self.plain(values) for _ in range(rng.integers(1, 3))]
        states = [Value(self.new("s"), v.shape, v.whole) for v in begins]
        inside = [*(v for v in values if rng.random() < 0.6), *states]
        if not any(v.whole for v in inside):
            inside.append(self.params[-1])
        body = self.lines(inside, int(rng.integers(1, 4)), depth + 1)
        again = [self.pick(inside, lambda v, s=state: v.whole == s.whole and v.shape == s.shape) for state in states]  # type: ignore[misc]
        keeps = depth == 0 and "%n" not in self.limits and rng.random() < 0.3 and len(states[0].shape) < _RANK
        kept = Value(rows, (ONE, *states[0].shape), states[0].whole)
        of_rows = self.type(kept).replace("Tensor[(1", "Tensor[(?")
        turn = f"add({i}, 1)"
        extra = [f"concatenate(({rows}, expand_dims({again[0].name}, axis=0)))"] if keeps else []  # type: ignore[union-attr]
        params = [f"{i}: int32", *(f"{s.name}: {self.type(s)}" for s in states), *([f"{rows}: {of_rows}"] if keeps else [])]
        names = [*(s.name for s in states), *([rows] if keeps else [])]
        types = [*(self.type(s) for s in states), *([of_rows] if keeps else [])]
        result = self.new("r")
        head = f"expand_dims({begins[0].name}, axis=0)"
        begin = [str(first), *(v.name for v in begins), *([head] if keeps else [])]
        end, ty = (f"({', '.join(names)},)", f"({', '.join(types)},)")
        call = f"{loop}({', '.join([turn, *(a.name for a in again), *extra])})"  # type: ignore[union-attr]
        out = [
            f"let {loop} = fn ({', '.join(params)}) -> {ty} {{",
            f"if (less({i}, {limit})) {{ {' '.join(body)} {call} }} else {{ {end} }} }};",
            f"let {result} = {loop}({', '.join(begin)});",
        ]
        for n, state in enumerate(states):
            name = self.new("v")
            out.append(f"let {name} = {result}.{n};")
            values.append(Value(name, state.shape, state.whole))
        if keeps:
            name = self.new("v")
            what = f"{'' if kept.whole else 'tanh'}(sum({result}.{len(states)}, axis=[0]))"
            out.append(f"let {name} = {what};")
            values.append(Value(name, states[0].shape, kept.whole))
        return out

    def called(self, values: list[Value]) -> list[str]:
        """A function of the module that names extents of its own, and its call."""
        args = [self.plain(values) for _ in range(2)] + [self.params[6]]
        params = [Value(f"%p{n}", v.shape, v.whole) for n, v in enumerate(args)]
        inside = list(params)
        body = self.lines(inside, int(self.rng.integers(1, 4)), 2)
        name = f"@{self.prefix}f{len(self.functions)}"
        head = ", ".join(f"{p.name}: {self.type(p)}" for p in params)
        extents = "[b, t]" if self.names is None else ""
        self.functions.append(f"def {name}{extents}({head}, %n: int32) {{ {' '.join(body)} {inside[-1].name} }}")
        result = self.new("v")
        values.append(Value(result, inside[-1].shape, inside[-1].whole))
        return [f"let {result} = {name}({', '.join(a.name for a in args)}, %n);"]

    def text(self) -> str:
        """The functions of the program; `@` with the prefix and `main` is the first."""
        values = list(self.params)
        lines = self.lines(values, int(self.rng.integers(4, 12)), 0)
        results = values[len(self.params) :][-4:]
        head = ", ".join(f"{p.name}: {self.type(p)}" for p in self.params)
        extents = "[b, t]" if self.names is None else ""
        names = ", ".join(v.name for v in results)
        main = f"def @{self.prefix}main{extents}({head}, %n: int32) {{ {' '.join(lines)} ({names},) }}"
        return "\n".join([*self.functions, main])


def arguments(params: Sequence[Value], names: Mapping[str, int], seed: int) -> list[np.ndarray]:
    """Values of the parameters for some extents."""
    rng = np.random.default_rng(seed)
    out: list[np.ndarray] = []
    for param in params:
        shape = [e.value(names) for e in param.shape]
        out.append(rng.integers(-4, 5, shape).astype("int32") if param.whole else rng.integers(-8, 9, shape).astype("float32") / 4)
    return out
