"""The listing of a model: one line of text per layer, so that every node of the program has a place in it.

A model has no text. Diagnostics, profiles and pictures show places in texts. The listing is the text that they show:
line 12 of `net.onnx` is the twelfth input, constant or layer, with its operator, name, inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.diagnostics.source import SourceFile, Span

#: Names beyond this length are cut in the listing.
_LONGEST = 60


@dataclass(frozen=True)
class Layer:
    """A layer as the listing shows it: the operator, the layer's own name, the names of its inputs and outputs."""

    operator: str
    name: str = ""
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()

    @property
    def label(self) -> str:
        """The layer's name, or that of its first output."""
        return self.name or next((o for o in self.outputs if o), "") or self.operator

    def line(self) -> str:
        """The layer's line: `y, mask = Dropout(x, ratio)  # block1/drop`."""
        outputs = ", ".join(map(_cut, self.outputs)) or "_"
        text = f"{outputs} = {self.operator}({', '.join(map(_cut, self.inputs))})"
        text += f"  # {self.name}" if self.name else ""
        return " ".join(text.splitlines())


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."


class _Text(SourceFile):
    """A listing as a source. A position is the index of a layer; the text is made when somebody looks at it."""

    def __init__(self, name: str, layers: list[Layer]) -> None:
        self._layers = layers
        self._made = ""
        self._count = -1
        self.name = name
        self._line_starts = None

    @property
    def text(self) -> str:  # type: ignore[override]
        """A line per layer. The listing grows while a model is imported, and errors show it meanwhile."""
        if self._count != len(self._layers):
            self._made = "\n".join(layer.line() for layer in self._layers) + "\n"
            self._count = len(self._layers)
            self._line_starts = None
        return self._made

    def line_starts(self) -> list[int]:
        _ = self.text
        return super().line_starts()

    def start_of(self, position: int) -> int:
        return self.line_starts()[position]

    def label_of(self, position: int) -> str:
        return " ".join(_cut(self._layers[position].label).split())

    def end_of(self, position: int) -> int:
        return self.start_of(position) + len(self.line(position + 1))


class Listing:
    """The layers of one model in the order of their conversion. `name` is the name of the file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: list[Layer] = []
        self._source = _Text(name, self.layers)

    def add(self, layer: Layer) -> Span:
        """Append a layer; returns its place."""
        self.layers.append(layer)
        at = len(self.layers) - 1
        return Span(self._source, at, at)

    def layer_at(self, span: Span) -> Layer:
        """The layer of a place."""
        return self.layers[span.first]


__all__ = ["Layer", "Listing"]
