"""Relay to Relax as TVMScript text, for TVM from release 0.20 on. Shapes are static.

A binding is one line, `name = R.op(...)`. Scalars stand in the text; other constants are parameters behind the inputs, as
TVM's importers make them: `num_input` counts the inputs.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.walk import Value, Walk
from relaylang.ir import IRModule, TensorType


def written(ty: TensorType) -> str:
    """A tensor type in TVMScript: `R.Tensor((2, 3), dtype="float32")`."""
    if not all(isinstance(n, int) for n in ty.shape):
        raise Unsupported("an extent of its shape is open")
    return f'R.Tensor({shape(ty.shape)}, dtype="{ty.dtype}")'


def shape(extents: Sequence[Any]) -> str:
    """A tuple of numbers."""
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"


class Emitter(Walk):
    """The text as it grows, and the constants that become parameters."""

    format = "Relax"

    def __init__(self, mod: IRModule, file: str, rules: Any) -> None:
        self.rules = rules
        super().__init__(mod, file)
        self.taken |= {"R", "I", "T", "main", "float", "_", *keyword.kwlist}
        self.lines: list[str] = []
        self.indent = 3
        self.branches = False
        self.weights: dict[str, Value] = {}
        self.known: dict[Any, Value] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def op(self, text: str, extents: Sequence[Any], dtype: str) -> Value:
        """`name = TEXT`, of this type."""
        value = Value(self.unique(self.wish), TensorType(tuple(extents), dtype))
        self.line(f"{value.name} = {text}")
        return value

    def same(self, name: str, *operands: Value) -> Value:
        """A function of operands that broadcast, with a result of their element type."""
        extents = np.broadcast_shapes(*[v.static() for v in operands])
        return self.op(f"R.{name}({', '.join(v.name for v in operands)})", extents, operands[0].dtype)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        return self.op(f"R.{name}({a.name}, {b.name})", np.broadcast_shapes(a.static(), b.static()), "bool")

    def cast(self, x: Value, dtype: str) -> Value:
        return x if x.dtype == dtype else self.op(f'R.astype({x.name}, dtype="{dtype}")', x.static(), dtype)

    def reshape(self, x: Value, extents: Sequence[int]) -> Value:
        if x.static() == tuple(extents):
            return x
        return self.op(f"R.reshape({x.name}, R.shape({list(extents)}))", extents, x.dtype)

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        axes = list(axes)
        if axes == sorted(axes):
            return x
        return self.op(f"R.permute_dims({x.name}, axes={axes})", [x.static()[a] for a in axes], x.dtype)

    def fields(self, name: str, text: str, types: Sequence[TensorType]) -> list[Value]:
        """The tensors of a result that is a tuple."""
        tuple_name = self.unique(name)
        self.line(f"{tuple_name} = {text}")
        return [self.op(f"{tuple_name}[{i}]", t.shape, t.dtype) for i, t in enumerate(types)]

    def scalar(self, value: Any, dtype: str) -> Value:
        """A number in the text."""
        number = np.asarray(value).astype(np.dtype(dtype))
        if dtype == "bool":
            text = str(bool(number))
        elif "int" in dtype:
            text = str(int(number))
        else:
            real = float(number)
            text = repr(real) if np.isfinite(real) else f'float("{real}")'
        return Value(f'R.const({text}, "{dtype}")', TensorType((), dtype), number)

    def splat(self, value: Any, like: Value) -> Value:
        """A number that broadcasts to the shape of another tensor."""
        return self.scalar(value, like.dtype)

    def array(self, data: np.ndarray, dtype: str = "", name: str = "constant") -> Value:
        """A constant: a number, or a parameter."""
        if data.ndim == 0:
            return self.scalar(data, dtype or data.dtype.name)
        key = (data.shape, dtype, data.tobytes()) if data.size <= 64 else (id(data), data.shape)
        constant = self.known.get(key)
        if constant is None:
            ty = TensorType(data.shape, dtype or data.dtype.name)
            written(ty)
            constant = self.known[key] = Value(self.unique(name), ty, data)
            self.weights[constant.name] = constant
        return constant

    # ---- what the walk asks for

    def legal(self, name: str) -> str:
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        return f"v{name}" if name[:1].isdigit() else name

    def constant(self, data: np.ndarray, ty: TensorType, name: str) -> Value:
        return self.array(data, ty.dtype, name)

    def not_(self, condition: Value) -> Value:
        return self.same("logical_not", condition)

    def if_(self, condition: Value, branches: Sequence[Callable[[], list[Value]]], types: list[TensorType]) -> list[Value]:
        self.branches = True
        chosen = self.unique("chosen")
        for number, branch in enumerate(branches):
            self.line(f"if {condition.name}:" if number == 0 else "else:")
            self.indent += 1
            known = dict(self.known)
            values = branch()
            names = ", ".join(v.name for v in values)
            self.line(f"{chosen} = {names}" if len(types) == 1 else f"{chosen} = ({names},)")
            self.known = {k: v for k, v in self.known.items() if k in known or v.name in self.weights}
            self.indent -= 1
        if len(types) == 1:
            return [Value(chosen, types[0])]
        return [self.op(f"{chosen}[{i}]", t.shape, t.dtype) for i, t in enumerate(types)]


__all__ = ["Emitter", "shape", "written"]
