"""One call as a conversion sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.complexes import PARTS, Complex
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.torch.memory import Scope
from relaylang.frontends.torch.pt2 import DType, Ref
from relaylang.frontends.torch.pt2 import Graph as Plain
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.ir import Expr


class Node:
    """A call: its arguments by the names of PyTorch's schema, and the builder `b`."""

    def __init__(self, scope: Scope, call: Call) -> None:
        self.scope = scope
        self.call = call
        self.b: Builder = scope.importer.builder

    @property
    def overload(self) -> str:
        """The overload of the operator: "Tensor" of `aten.add.Tensor`."""
        return self.call.target.rsplit(".", 1)[-1]

    def get(self, name: str, default: Any = None) -> Any:
        """An argument: an expression, a number, a text, a list; the default where it is not stated."""
        if name not in self.call.args:
            return default
        return self.scope.resolve(self.call.args[name])

    def x(self, name: str = "self") -> Any:
        """A tensor; a number becomes a constant. Raises `Unsupported` where it is missing."""
        value = self.get(name)
        if value is None:
            raise Malformed(f"the argument {name} is missing")
        if isinstance(value, Complex):
            raise Unsupported("it computes with complex numbers")
        if not isinstance(value, (Expr, bool, int, float, complex, np.generic, np.ndarray)):
            raise Malformed(f"the argument {name} is no tensor")
        return value if isinstance(value, Expr) else self.b.const(value, self.result_dtype())

    def replaced(self, args: Mapping[str, Any]) -> Node:
        """The same call with other arguments."""
        node = copy(self)
        node.call = replace(self.call, args={**self.call.args, **args})
        return node

    def has(self, name: str) -> bool:
        """Whether the argument is stated and is not None."""
        return self.get(name) is not None

    def result_dtype(self, index: int = 0) -> str:
        """The element type that the file states for a result; of a complex one, that of its parts."""
        meta = self.meta(index)
        return PARTS.get(meta.dtype, meta.dtype) if meta is not None else "float32"

    def meta(self, index: int = 0) -> Any:
        """What the file says about a result."""
        names = [o.name for o in self.flat_outputs() if isinstance(o, Ref)]
        return self.scope.graph.tensors.get(names[index]) if index < len(names) else None

    def used(self, index: int) -> bool:
        """Whether a call or a result uses the value of a result."""
        outputs = self.flat_outputs()
        return index < len(outputs) and isinstance(outputs[index], Ref) and outputs[index].name in self.scope.used

    def flat_outputs(self) -> list[Any]:
        """The results in one list."""
        outputs: list[Any] = []
        for o in self.call.outputs:
            outputs += o if isinstance(o, list) else [o]
        return outputs

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of whole numbers that are known; one number is a list of itself."""
        value = self.get(name)
        if value is None:
            if default is None:
                raise Unsupported(f"the argument {name} is missing")
            return list(default)
        values = value if isinstance(value, (list, tuple)) else [value]
        known = [self._known(name, v) for v in values]
        if None in known:
            raise Unsupported(f"the argument {name} depends on an unknown extent")
        return [k for k in known if k is not None]

    def int(self, name: str, default: Any = None) -> Any:
        """A whole number that is known."""
        values = self.ints(name, None if default is None else [default])
        if len(values) != 1:
            raise Malformed(f"the argument {name} has {len(values)} numbers; it must be one")
        return values[0]

    def _known(self, name: str, value: Any) -> Any:
        if isinstance(value, Expr):
            array = self.b.value(value)
            if array is not None and array.size != 1:
                raise Malformed(f"the argument {name} is a tensor of {array.size} elements; it must be a whole number")
            return None if array is None else int(array.reshape(()))
        if not isinstance(value, (bool, int, float)) or value != value or abs(value) == float("inf"):
            raise Malformed(f"the argument {name} is {str(value)[:40]!r}; it must be a whole number")
        return int(value)

    def choice(self, name: str, default: Any, values: Mapping[Any, Any]) -> Any:
        """What an argument chooses of some. Raises `Malformed` for another."""
        value = self.get(name, default)
        if isinstance(value, (Expr, list, dict)) or value not in values:
            raise Malformed(f"the argument {name} is {str(value)[:40]!r}; it must be one of {', '.join(map(str, values))}")
        return values[value]

    def dtype(self, name: str = "dtype") -> str | None:
        """An element type; None where it is not stated."""
        value = self.get(name)
        return value.name if isinstance(value, DType) else None

    def vector(self, name: str) -> Any:
        """A list of extents: a list of numbers where all are known, otherwise a vector as an expression."""
        values = self.get(name)
        if not isinstance(values, (list, tuple)):
            raise Malformed(f"the argument {name} is {str(values)[:40]!r}; it must be a list of whole numbers")
        if all(not isinstance(v, Expr) for v in values):
            return [int(v) for v in values]
        return self.vector_of(values)

    def vector_of(self, values: Sequence[Any]) -> Expr:
        """Numbers, of which some are computed, as a vector."""
        b = self.b
        parts = [b.reshape(v, [1]) if isinstance(v, Expr) else b.const(np.array([v], np.int64)) for v in values]
        return b.concat(parts, 0)

    def write(self, name: str, value: Expr) -> None:
        """Give the tensor of an argument a new value, as an operator that writes into it."""
        target = self.call.args.get(name)
        if isinstance(target, Ref):
            self.scope.memory.write(target.name, self.b.cast(value, self.b.dtype(self.x(name))))

    def body(self, name: str, args: Sequence[Any]) -> list[Any]:
        """The results of a graph that is an argument, converted in place."""
        graph = self.call.args.get(name)
        if not isinstance(graph, Plain) or len(graph.inputs) != len(args):
            raise Unsupported("it has no graph, or one of other operands")
        return self.scope.importer.convert_graph(graph, list(args))

    def tensors(self, name: str, args: Sequence[Any]) -> list[Expr]:
        """The results of a graph as expressions; numbers become constants."""
        results = self.body(name, args)
        if any(m is None or isinstance(m, (str, list, Complex)) for m in results):
            raise Unsupported("a graph inside it gives something that is no tensor")
        return [m if isinstance(m, Expr) else self.b.const(m) for m in results]


def on_axes(convert: Callable[[Node], Any], default: int | None = None) -> Callable[[Node], Any]:
    """A conversion that works along an axis, for tensors without axes as well: for PyTorch, these have one of extent 1.

    `default` is the axis where the call states none; with None, such a call is about all axes.
    """

    def lifted(n: Node) -> Any:
        name = next((a for a in ("self", "input", "x1") if a in n.call.args), "")
        dims = n.get("dim", n.get("dims", default))
        if not name or dims is None or n.b.rank(n.x(name)):
            return convert(n)
        tensors = {a: n.get(a) for a in (name, "index", "source", "src", "x2")}
        ranked = {a: n.b.unsqueeze(t, [0]) for a, t in tensors.items() if isinstance(t, Expr) and not n.b.rank(t)}
        converted = convert(n.replaced(ranked))
        results = [n.b.squeeze(m, [-1]) if n.b.rank(m) and n.b.shape(m)[-1] == 1 else m for m in _listed(converted)]
        return results if isinstance(converted, (list, tuple)) else results[0]

    return lifted


def _listed(converted: Any) -> list[Any]:
    return list(converted) if isinstance(converted, (list, tuple)) else [converted]


__all__ = ["Node", "on_axes"]
