"""How nodes and modules show themselves, by services of higher floors: as text, at Python's prompt, in notebooks."""

from __future__ import annotations

from relaylang.services import service


class Shown:
    """The methods that expressions and modules have in common."""

    __slots__ = ()

    def astext(self, show_meta_data: bool = True) -> str:
        """Relay text that reads back to the same program: `relaylang.astext` with its defaults."""
        text: str = service("text")(self, show_meta_data=show_meta_data)
        return text

    def __repr__(self) -> str:
        text: str = service("brief")(self)
        return text

    def _repr_html_(self) -> str:
        text: str = service("html")(self)
        return text

    def show(self, style: str | None = None) -> None:
        """Show the text, highlighted in notebooks and terminals."""
        service("show")(self, style)
