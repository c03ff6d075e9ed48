"""Text and places in it: source files and spans.

A span names a stretch of one source by two positions. In a plain source file the positions are character offsets.
A tokenised source (see `relaylang.syntax`) counts tokens instead, and computes offsets on demand. So reading a correct
program never pays for places that only errors show.
"""

from __future__ import annotations

from bisect import bisect_right


class SourceFile:
    """A named text. Positions are character offsets, counted from 0."""

    #: The offset of this text inside the text that it is a piece of. Places count from the piece's own beginning.
    base = 0
    #: The text of a definition that this text is a piece of, if its pieces are sources of their own.
    within: SourceFile | None = None

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._line_starts: list[int] | None = None

    def start_of(self, position: int) -> int:
        """The offset at which the thing at `position` begins."""
        return position

    def end_of(self, position: int) -> int:
        """The offset just behind the thing at `position`."""
        return position

    def line_starts(self) -> list[int]:
        """The offset of each line's first character."""
        if self._line_starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._line_starts = starts
        return self._line_starts

    def locate(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, both counted from 1."""
        starts = self.line_starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its line end."""
        starts = self.line_starts()
        begin = starts[number - 1]
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[begin:end].rstrip("\r\n")

    def label_of(self, position: int) -> str:
        """The name of the thing at `position`, where the text is a listing of named things; else ""."""
        return ""

    def line_count(self) -> int:
        return len(self.line_starts())

    def __repr__(self) -> str:
        return f"SourceFile({self.name!r})"


class Span:
    """A stretch of a source, from the start of position `first` to the end of position `last`.

    In a plain `SourceFile` both are offsets and `last` is the offset just behind the stretch.
    """

    __slots__ = ("_place", "source")
    #: Whether a script states the place: it stands in texts then.
    stated = False
    #: The operator that the text names, where another one computes it.
    operator = ""

    def __init__(self, source: SourceFile, first: int, last: int) -> None:
        self.source = source
        self._place = (first << 32) + last - first  # one number: a long program has millions of spans

    @property
    def first(self) -> int:
        return (self._place + 0x8000_0000) >> 32

    @property
    def last(self) -> int:
        first = self.first
        return self._place - (first << 32) + first

    @property
    def start(self) -> int:
        return self.source.start_of(self.first)

    @property
    def end(self) -> int:
        return max(self.source.end_of(self.last), self.start)

    @property
    def line(self) -> int:
        return self.source.locate(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.locate(self.start)[1]

    @property
    def end_line(self) -> int:
        return self.source.locate(self.end)[0]

    @property
    def end_column(self) -> int:
        return self.source.locate(self.end)[1]

    @property
    def label(self) -> str:
        """The name of the layer in a network's listing; "" in texts."""
        return self.source.label_of(self.first)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span | None) -> Span:
        """The stretch from this span's beginning to the other's end."""
        return self if other is None else Span(self.source, self.first, other.last)

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Span({self})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Span):
            return NotImplemented
        return self.source is other.source and self._place == other._place

    def __hash__(self) -> int:
        return hash((id(self.source), self._place))


class OperatorSpan(Span):
    """A call's stretch, with the operator that stands there. The node is a call of another one."""

    __slots__ = ("operator",)

    def __init__(self, span: Span, operator: str) -> None:
        super().__init__(span.source, span.first, span.last)
        self.operator = operator
