"""Relay to StableHLO as MLIR text (https://openxla.org/stablehlo/spec). Shapes are static.

Every value has a type, so rules build operators with the methods here: they broadcast, write constants and keep types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.walk import Loop, Value, Walk, grouped, leaves, tensor_types
from relaylang.frontends.stablehlo.names import DTYPES
from relaylang.ir import IRModule, TensorType


def element(dtype: str) -> str:
    """MLIR's name of an element type."""
    if dtype not in DTYPES:
        raise Unsupported(f"StableHLO has no element type {dtype}")
    return DTYPES[dtype]


def written(ty: TensorType) -> str:
    """A tensor type in MLIR: `tensor<2x3xf32>`."""
    if not all(isinstance(n, int) for n in ty.shape):
        raise Unsupported("an extent of its shape is open")
    return f"tensor<{''.join(f'{n}x' for n in ty.shape)}{element(ty.dtype)}>"


def is_real(dtype: str) -> bool:
    return "float" in dtype


def limits(dtype: str) -> tuple[Any, Any]:
    """The least and the greatest value of an element type; infinities for real numbers."""
    if is_real(dtype):
        return -np.inf, np.inf
    if dtype == "bool":
        return False, True
    info = np.iinfo(np.dtype(dtype))
    return info.min, info.max


class Emitter(Walk):
    """The text as it grows: `lines` of the function, with the depth of the regions around them."""

    format = "StableHLO"

    def __init__(self, mod: IRModule, file: str, rules: Any) -> None:
        self.rules = rules
        super().__init__(mod, file)
        self.lines: list[str] = []
        self.indent = 2
        self.numbers: list[dict[Any, Value]] = [{}]

    # ---- writing

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def new(self, shape: Sequence[Any], dtype: str) -> Value:
        """A result of this type, not yet written."""
        ty = TensorType(tuple(shape), dtype)
        written(ty)
        return Value(self.unique(self.wish), ty)

    def op(self, text: str, operands: Sequence[Value], shape: Sequence[int], dtype: str) -> Value:
        """`%r = TEXT : (operands' types) -> type`."""
        value = self.new(shape, dtype)
        types = ", ".join(written(v.type) for v in operands)
        self.line(f"%{value.name} = {text} : ({types}) -> {written(value.type)}")
        return value

    def same(self, name: str, *operands: Value) -> Value:
        """An operator whose operands and result have one type."""
        value = self.new(operands[0].static(), operands[0].dtype)
        names = ", ".join(f"%{v.name}" for v in operands)
        form = "{0} -> {0}" if name.startswith("chlo.") else "{0}"
        if name.startswith("chlo.") and len(operands) > 1:
            form = "({}) -> {{0}}".format(", ".join("{0}" for _ in operands))
        self.line(f"%{value.name} = {name if '.' in name else f'stablehlo.{name}'} {names} : {form.format(written(value.type))}")
        return value

    @contextmanager
    def region(self) -> Iterator[None]:
        """The lines of a region; constants inside it are not seen outside."""
        self.indent += 1
        self.numbers.append({})
        try:
            yield
        finally:
            self.numbers.pop()
            self.indent -= 1

    # ---- constants, shapes

    def array(self, data: np.ndarray, dtype: str = "", name: str = "constant") -> Value:
        """A constant; equal small ones are one inside a region."""
        ty = TensorType(data.shape, dtype or data.dtype.name)
        key = (data.shape, ty.dtype, data.tobytes()) if data.size <= 64 else (id(data), data.shape)
        for known in self.numbers:
            if key in known:
                return known[key]
        constant = Value(self.unique(name), ty, data)
        self.line(f"%{constant.name} = stablehlo.constant {_dense(data)} : {written(ty)}")
        self.numbers[-1][key] = constant
        return constant

    def scalar(self, value: Any, dtype: str) -> Value:
        return self.array(np.asarray(value).astype(np.dtype(dtype)), dtype, "number")

    def splat(self, value: Any, like: Value) -> Value:
        """A constant of one value, in the shape of another tensor."""
        return self.broadcast(self.scalar(value, like.dtype), like.static())

    def broadcast(self, x: Value, shape: Sequence[int], axes: Sequence[int] | None = None) -> Value:
        """A tensor in a larger shape; its axes are the last ones, or those that `axes` names."""
        shape = tuple(shape)
        if x.static() == shape:
            return x
        if axes is None:
            axes = range(len(shape) - x.rank, len(shape))
        dims = ", ".join(map(str, axes))
        return self.op(f"stablehlo.broadcast_in_dim %{x.name}, dims = [{dims}]", [x], shape, x.dtype)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.static() == tuple(shape) else self.op(f"stablehlo.reshape %{x.name}", [x], shape, x.dtype)

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        axes = list(axes)
        if axes == sorted(axes):
            return x
        shape = [x.static()[a] for a in axes]
        return self.op(f"stablehlo.transpose %{x.name}, dims = [{', '.join(map(str, axes))}]", [x], shape, x.dtype)

    def cast(self, x: Value, dtype: str) -> Value:
        if x.dtype == dtype:
            return x
        if dtype == "bool":
            return self.compare("NE", x, self.splat(0, x))
        return self.op(f"stablehlo.convert %{x.name}", [x], x.static(), dtype)

    def slice(self, x: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Value:
        """Known places: 0 <= begin <= end <= extent, strides above 0."""
        parts = ", ".join(f"{b}:{e}" if s == 1 else f"{b}:{e}:{s}" for b, e, s in zip(begin, end, strides))
        shape = [max(-(-(e - b) // s), 0) for b, e, s in zip(begin, end, strides)]
        return self.op(f"stablehlo.slice %{x.name} [{parts}]", [x], shape, x.dtype)

    def concatenate(self, parts: Sequence[Value], axis: int) -> Value:
        shape = list(parts[0].static())
        shape[axis] = sum(p.static()[axis] for p in parts)
        return self.op(f"stablehlo.concatenate {', '.join(f'%{p.name}' for p in parts)}, dim = {axis}", parts, shape, parts[0].dtype)

    def pad(self, x: Value, value: Value, low: Sequence[int], high: Sequence[int], inner: Sequence[int] = ()) -> Value:
        inner = list(inner) or [0] * x.rank
        shape = [n + a + b + max(n - 1, 0) * i for n, a, b, i in zip(x.static(), low, high, inner)]
        text = f"stablehlo.pad %{x.name}, %{value.name}, low = {list(low)}, high = {list(high)}, interior = {inner}"
        return self.op(text, [x, value], shape, x.dtype)

    def iota(self, shape: Sequence[int], axis: int, dtype: str) -> Value:
        value = self.new(shape, dtype)
        self.line(f"%{value.name} = stablehlo.iota dim = {axis} : {written(value.type)}")
        return value

    # ---- arithmetic

    def together(self, *operands: Value) -> list[Value]:
        """Operands in the shape that they broadcast to."""
        shape = np.broadcast_shapes(*[v.static() for v in operands])
        return [self.broadcast(v, shape) for v in operands]

    def two(self, name: str, a: Value, b: Value) -> Value:
        """A function of two tensors, which broadcast."""
        return self.same(name, *self.together(a, b))

    def compare(self, way: str, a: Value, b: Value) -> Value:
        a, b = self.together(a, b)
        kind = "FLOAT" if is_real(a.dtype) else "UNSIGNED" if a.dtype.startswith(("u", "bool")) else "SIGNED"
        return self.op(f"stablehlo.compare {way}, %{a.name}, %{b.name}, {kind}", [a, b], a.static(), "bool")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        condition, a, b = self.together(condition, a, b)
        value = self.new(a.static(), a.dtype)
        names = f"%{condition.name}, %{a.name}, %{b.name}"
        self.line(f"%{value.name} = stablehlo.select {names} : {written(condition.type)}, {written(a.type)}")
        return value

    def reduce(self, x: Value, axes: Sequence[int], how: str, initial: Any) -> Value:
        """A reduction over axes by `add`, `maximum`, ...; the axes are dropped."""
        if not axes:
            return x
        start = self.scalar(initial, x.dtype)
        shape = [n for i, n in enumerate(x.static()) if i not in axes]
        text = f"stablehlo.reduce(%{x.name} init: %{start.name}) applies stablehlo.{how} across dimensions = {sorted(axes)}"
        return self.op(text, [x, start], shape, x.dtype)

    def keep(self, x: Value, axes: Sequence[int], rank: int) -> Value:
        """A reduced tensor with the dropped axes as ones."""
        rest = iter(x.static())
        return self.reshape(x, [1 if i in axes else next(rest) for i in range(rank)])

    def dot(self, a: Value, b: Value, batch: Sequence[tuple[int, int]], over: Sequence[tuple[int, int]], dtype: str = "") -> Value:
        """Sums of products: `batch` are pairs of axes that go along, `over` pairs that are summed."""
        left = [n for i, n in enumerate(a.static()) if i not in [p for p, _ in (*batch, *over)]]
        right = [n for i, n in enumerate(b.static()) if i not in [q for _, q in (*batch, *over)]]
        shape = [*[a.static()[p] for p, _ in batch], *left, *right]
        parts = [f"stablehlo.dot_general %{a.name}, %{b.name}"]
        if batch:
            parts.append(f"batching_dims = {[p for p, _ in batch]} x {[q for _, q in batch]}")
        parts.append(f"contracting_dims = {[p for p, _ in over]} x {[q for _, q in over]}")
        return self.op(", ".join(parts), [a, b], shape, dtype or a.dtype)

    def window(
        self,
        x: Value,
        initial: Any,
        how: str,
        sizes: Sequence[int],
        strides: Sequence[int],
        dilation: Sequence[int],
        pads: Sequence[tuple[int, int]],
    ) -> Value:
        """stablehlo.reduce_window over all axes."""
        start = self.scalar(initial, x.dtype)
        shape = []
        for n, k, s, d, (lo, hi) in zip(x.static(), sizes, strides, dilation, pads):
            shape.append(max((n + lo + hi - ((k - 1) * d + 1)) // s + 1, 0))
        value = self.new(shape, x.dtype)
        one = written(TensorType((), x.dtype))
        left, right, inner = (self.unique(n) for n in ("l", "r", "w"))
        pairs = ", ".join(f"[{a}, {b}]" for a, b in pads)
        self.line(
            f'%{value.name} = "stablehlo.reduce_window"(%{x.name}, %{start.name}) <{{window_dimensions = {_ints(sizes)}, '
            f"window_strides = {_ints(strides)}, window_dilations = {_ints(dilation)}, "
            f"padding = dense<[{pairs}]> : tensor<{x.rank}x2xi64>}}> ({{"
        )
        self.line(f"^bb0(%{left}: {one}, %{right}: {one}):")
        self.line(f"  %{inner} = stablehlo.{how} %{left}, %{right} : {one}")
        self.line(f"  stablehlo.return %{inner} : {one}")
        self.line(f"}}) : ({written(x.type)}, {one}) -> {written(value.type)}")
        return value

    # ---- what the walk asks for

    def legal(self, name: str) -> str:
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        return name if not name[:1].isdigit() else f"v{name}"

    def constant(self, data: np.ndarray, ty: TensorType, name: str) -> Value:
        return self.array(data, ty.dtype, name)

    def not_(self, condition: Value) -> Value:
        return self.same("not", condition)

    def _region(self, values: Sequence[Value], last: str) -> None:
        types = ", ".join(written(v.type) for v in values)
        self.line(f"stablehlo.return {', '.join(f'%{v.name}' for v in values)} : {types}{last}")

    def if_(self, condition: Value, branches: Sequence[Callable[[], list[Value]]], types: list[TensorType]) -> list[Value]:
        results = [self.new(t.shape, t.dtype) for t in types]
        self.line(f'{_results(results)} = "stablehlo.if"(%{condition.name}) ({{')
        for number, branch in enumerate(branches):
            with self.region():
                self._region(branch(), "")
            self.line("}, {" if number == 0 else f"}}) : (tensor<i1>) -> ({', '.join(map(written, types))})")
        return _fields(results)

    def loop(self, loop: Loop) -> Any:
        types = [t for ty in loop.types for t in tensor_types(ty)]
        begin = [v for x in loop.initial for v in leaves(x)]

        results = [self.new(t.shape, t.dtype) for t in types]
        arrows = ", ".join(map(written, types))
        self.line(f'{_results(results)} = "stablehlo.while"({", ".join(f"%{v.name}" for v in begin)}) ({{')
        for number in (0, 1):
            with self.region():
                state = [Value(self.unique(v.name), t) for v, t in zip(begin, types)]
                self.line(f"^bb0({', '.join(f'%{v.name}: {written(v.type)}' for v in state)}):")
                now = grouped(state, loop.types)
                self._region([loop.test(now)] if number == 0 else [v for x in loop.body(now) for v in leaves(x)], "")
            self.line("}, {" if number == 0 else f"}}) : ({arrows}) -> ({arrows})")
        return loop.rest(grouped(_fields(results), loop.types))


def _results(results: Sequence[Value]) -> str:
    return f"%{results[0].name}" if len(results) == 1 else f"%{results[0].name}:{len(results)}"


def _fields(results: Sequence[Value]) -> list[Value]:
    if len(results) > 1:
        first = results[0].name
        for number, value in enumerate(results):
            value.name = f"{first}#{number}"
    return list(results)


def _ints(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def _dense(data: np.ndarray) -> str:
    """`dense<...>` with the elements as hexadecimal bytes, or one number for all."""
    data = np.ascontiguousarray(data)
    if data.size == 0:
        return "dense<>"
    first = data.reshape(-1)[0]
    if data.size == 1 or (data.dtype.kind in "iub" and np.all(data == first)):
        if data.dtype.kind == "b":
            return f"dense<{'true' if first else 'false'}>"
        if data.dtype.kind in "iu":
            return f"dense<{int(first)}>"
        return f"dense<0x{data.reshape(-1)[:1].tobytes()[::-1].hex().upper()}>"
    if data.dtype.kind == "b":
        values = ["true" if v else "false" for v in data.reshape(-1)]
        return f"dense<{_nest(values, data.shape)}>"
    return f'dense<"0x{data.tobytes().hex().upper()}">'


def _nest(values: list[str], shape: Sequence[int]) -> str:
    rows = values
    for n in reversed(shape):
        rows = [f"[{', '.join(rows[i : i + n])}]" for i in range(0, len(rows), n)]
    return rows[0] if shape else values[0]


__all__ = ["Emitter", "element", "is_real", "limits", "written"]
