"""One layer of a neural network as a conversion sees it.

Core ML has two rules for the axes of arrays. By the newer one they stay. By the older one every array has five: sequence,
batch, channels, rows and columns. Sequence and batch are one axis here, and (n, channels) stands for (n, channels, 1, 1).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.coreml.node import Node
from relaylang.frontends.coreml.values import weight
from relaylang.ir import Expr


class LayerNode(Node):
    """A layer: its parameters `p`, and whether its arrays follow the older rule (`old`)."""

    def __init__(self, b: Builder, layer: Any, old: bool) -> None:
        super().__init__(b, layer.name or (layer.output[0] if layer.output else "layer"), len(layer.output))
        self.p = getattr(layer, layer.WhichOneof("layer"))
        self.old = old

    def float(self, name: str, default: builtins.float | None = None) -> builtins.float:
        """A number of the parameters; the default, where there is one, for 0. Raises `Malformed` for no number."""
        value = float(getattr(self.p, name))
        if math.isnan(value):
            raise Malformed(f"its {name} is no number")
        return default if default is not None and value == 0 else value

    def array(self, made: Any, shape: Sequence[int], what: str, axis: int = 0) -> np.ndarray:
        """A weight as float32. Scales of quantised ones are along `axis`. Raises `Malformed`."""
        return weight(self.b.arrays, made, [int(d) for d in shape], what, axis)

    def param(self, made: Any, shape: Sequence[int], what: str, axis: int = 0) -> Expr:
        """A weight as a constant or a parameter, named after the layer."""
        return self.weight(self.array(made, shape, what, axis), what)

    def real(self, x: Expr) -> Expr:
        """An operand as real numbers, which all arrays of networks are."""
        return x if self.b.dtype(x).startswith("float") else self.b.cast(x, "float32")

    def channel(self, x: Expr) -> int:
        """The axis of the channels: the third from the end."""
        rank = self.b.rank(x)
        if rank < 3 and not (self.old and rank == 2):
            raise Malformed(f"its operand has {int(rank)} axes, and the layer needs channels, rows and columns")
        return max(rank - 3, 0) if rank != 2 else 1

    def four(self, x: Expr) -> tuple[Expr, Callable[[Expr], Expr]]:
        """The operand as (n, channels, rows, columns), and what gives a result the operand's first axes again."""
        b, rank = self.b, self.b.rank(x)
        if rank == 4:
            return x, lambda x: x
        if rank == 2 and self.old:
            return b.unsqueeze(x, [2, 3]), lambda x: x
        if rank == 3:
            return b.unsqueeze(x, [0]), lambda x: b.squeeze(x, [0])
        if rank < 3:
            raise Malformed(f"its operand has {int(rank)} axes, and the layer needs channels, rows and columns")
        shape = b.static_shape(x)
        front = list(shape[:-3])
        return b.reshape_exactly(x, [math.prod(front), *shape[-3:]]), lambda x: b.reshape_exactly(x, [*front, *b.static_shape(x)[1:]])

    def axis(self, x: Expr, axis: int) -> int:
        """An axis from the front. Raises `Unsupported` where the layer counts the five axes of the older rule."""
        if self.old:
            raise Unsupported("it counts the axes of arrays, which are five by the network's rule")
        return int(axis % self.b.rank(x))


def alike(n: LayerNode, xs: Sequence[Expr]) -> list[Expr]:
    """Real operands that broadcast, all of four axes where one of them is a picture of the older rule."""
    reals = [n.real(x) for x in xs]
    if n.old and len({int(n.b.rank(x)) for x in reals}) > 1:
        return [n.four(x)[0] for x in reals]
    return reals


def each(convert: Callable[..., Any], **fields: str) -> Callable[..., Any]:
    """A layer of real operands that is an operator of programs. `fields` are its inputs by the names of its parameters."""

    def layer(n: LayerNode, *operands: Expr) -> Any:
        return convert(n, *alike(n, operands), **{name: n.float(field) for name, field in fields.items()})

    return layer


def same(convert: Callable[..., Any], axis: str = "", real: bool = False, **fields: str) -> Callable[..., Any]:
    """A layer that is an operator of programs, and that counts axes. `axis` is the parameter with one, `fields` are others."""

    def layer(n: LayerNode, *operands: Expr) -> Any:
        if not operands:
            raise Malformed("it has no operand")
        n.axis(operands[0], -1) if n.b.rank(operands[0]) else None
        attributes = {name: _plain(getattr(n.p, field)) for name, field in fields.items()}
        xs = [n.real(x) for x in operands] if real else operands
        return convert(n, *xs, **attributes, **({axis: int(n.p.axis)} if axis else {}))

    return layer


def _plain(value: Any) -> Any:
    """A parameter as Python's numbers and lists."""
    return list(value) if hasattr(value, "append") else value


def whole(b: Builder, x: Expr) -> Expr:
    """Indices as int32."""
    return x if b.dtype(x).startswith(("int", "uint")) else b.cast(x, "int32")


__all__ = ["LayerNode", "Rule", "alike", "each", "same", "whole"]
