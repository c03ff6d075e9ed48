"""Places in sources as scripts for TVM make them: a name, and lines and columns without a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics import source


class SourceName:
    """The name of a source."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = str(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceName) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"SourceName({self.name!r})"


def source_name(span: source.Span) -> SourceName | None:
    """The name of a place's source, or None."""
    return SourceName(span.source.name) if span.source.name else None


class _Spans(type):
    """Every place is a `Span`, however it was made."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, source.Span)


class Span(metaclass=_Spans):
    """A place by lines and columns: `Span(SourceName("net"), line, end_line, column, end_column)`."""

    def __new__(cls, source_name: SourceName | None, line: int, end_line: int, column: int, end_column: int) -> Any:
        return Placed(source_name, int(line), int(end_line), int(column), int(end_column))


class Placed(source.Span):
    """A place in a source whose text is not known."""

    __slots__ = ("place",)
    stated = True

    def __init__(self, source_name: SourceName | None, line: int, end_line: int, column: int, end_column: int) -> None:
        super().__init__(source.SourceFile(source_name.name if source_name else "", ""), 0, 0)
        self.place = line, end_line, column, end_column

    line = property(lambda self: self.place[0])  # type: ignore[assignment]
    end_line = property(lambda self: self.place[1])  # type: ignore[assignment]
    column = property(lambda self: self.place[2])  # type: ignore[assignment]
    end_column = property(lambda self: self.place[3])  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placed) and (self.source.name, self.place) == (other.source.name, other.place)

    def __hash__(self) -> int:
        return hash((self.source.name, self.place))


class SequentialSpan(source.Span):
    """The places that one expression stands for, such as the layers of a fused one. It begins where the first one does."""

    __slots__ = ("spans",)

    def __init__(self, spans: Sequence[source.Span]) -> None:
        first = spans[0] if spans else source.Span(source.SourceFile("", ""), 0, 0)
        super().__init__(first.source, first.first, first.last)
        self.spans = tuple(spans)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SequentialSpan) and self.spans == other.spans

    def __hash__(self) -> int:
        return hash(self.spans)


__all__ = ["SequentialSpan", "SourceName", "Span"]
