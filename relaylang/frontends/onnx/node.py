"""One layer as a conversion sees it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.onnx.tensors import TEXTS
from relaylang.ir import TensorType

#: The methods `int` and `float` hide these names inside the class.
_Int = int
_Float = float

if TYPE_CHECKING:
    from relaylang.frontends.onnx.importer import Graph, Importer


class Node:
    """A layer: its attributes by kind, the version of its operator set, and the builder `b`.

    `inputs` are all operands, None for those left out. `has_output(i)` says whether anybody names output `i`.
    """

    def __init__(self, importer: Importer, graph: Graph, proto: Any, version: int) -> None:
        self.importer = importer
        self.graph = graph
        self.proto = proto
        self.version = version
        self.b: Builder = importer.builder
        self.inputs: list[Any] = []

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The AttributeProtos by name; those of a function's body that refer to its caller are replaced."""
        attributes = {}
        for a in self.proto.attribute:
            if a.ref_attr_name:
                argument = self.graph.given.get(a.ref_attr_name)
                if argument is not None:
                    attributes[a.name] = argument
            else:
                attributes[a.name] = a
        return attributes

    def has(self, name: str) -> bool:
        """Whether the layer states the attribute."""
        return name in self.attributes

    def int(self, name: str, default: _Int | None = None) -> _Int:
        """A whole number. Raises `Unsupported` where it is missing and has no default."""
        return int(self._get(name, default, lambda a: a.i))

    def float(self, name: str, default: _Float | None = None) -> _Float:
        """A number."""
        return float(self._get(name, default, lambda a: a.f))

    def ints(self, name: str, default: Sequence[_Int] | None = None) -> list[_Int]:
        """A list of whole numbers."""
        return [int(v) for v in self._get(name, default, lambda a: a.ints)]

    def floats(self, name: str, default: Sequence[_Float] | None = None) -> list[_Float]:
        """A list of numbers."""
        return [float(v) for v in self._get(name, default, lambda a: a.floats)]

    def string(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._get(name, default, lambda a: a.s)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def choice(self, name: str, default: str, values: Collection[str]) -> str:
        """A text that is one of some. Raises `Malformed` for another."""
        text = self.string(name, default)
        if text not in values:
            raise Malformed(f"the attribute {name} is {text[:40]!r}; it must be one of {', '.join(v for v in values if v)}")
        return text

    def strings(self, name: str, default: Sequence[str] | None = None) -> list[str]:
        """A list of texts."""
        values = self._get(name, default, lambda a: a.strings)
        return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values]

    def tensor(self, name: str) -> np.ndarray:
        """A tensor."""
        return self.importer.array(self._get(name, None, lambda a: a.t))

    def holds_texts(self, name: str) -> bool:
        """Whether a tensor has texts as elements."""
        return bool(self._get(name, None, lambda a: a.t.data_type) == TEXTS)

    def texts(self, name: str) -> list[bytes]:
        """The elements of a tensor of texts."""
        return list(self._get(name, None, lambda a: a.t.string_data))

    def dtype(self, name: str, default: str | None = None) -> str:
        """An attribute that is a number of ONNX's element types, as an element type."""
        if not self.has(name) and default is not None:
            return default
        return self.importer.dtype(self.int(name), f"the attribute {name}")

    def _get(self, name: str, default: Any, take: Any) -> Any:
        attribute = self.attributes.get(name)
        if attribute is not None:
            return take(attribute)
        if default is None:
            raise Unsupported(f"the attribute {name} is missing")
        return default

    def has_output(self, index: _Int) -> bool:
        """Whether the layer's output is named."""
        return len(self.proto.output) > index and bool(self.proto.output[index])

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return list(self.proto.output)

    def stated_type(self, index: _Int = 0) -> TensorType | None:
        """The type that the model states for an output; None where it states none."""
        return self.graph.stated_type(self.proto.output[index])

    @property
    def name(self) -> str:
        """The operator, and the layer's name or that of its first output."""
        return f"{self.proto.op_type} {self.proto.name or next(iter(self.proto.output), '')}"

    def body(self, name: str) -> Body:
        """A graph attribute: the body of a loop or the branch of a conditional."""
        return Body(self, self._get(name, None, lambda a: a.g))


class Body:
    """A graph inside a layer. It uses values of the graphs around it."""

    def __init__(self, node: Node, proto: Any) -> None:
        self.node = node
        self.proto = proto
        self.inputs = [i.name for i in proto.input]

    def convert(self, inputs: Sequence[Any] = (), texts: bool = False) -> list[Any]:
        """The graph's results for these inputs. Each call converts it anew. `texts` says whether results may be texts."""
        return self.node.importer.convert_body(self.node, self.proto, list(inputs), texts or not inputs)

    def attempt(self) -> list[Any] | RelayError:
        """The graph's results, or the error where an operator does not take operands of these types."""
        return self.node.importer.attempt_body(self.node, self.proto)


__all__ = ["Body", "Node"]
