"""The known names beside those of the text in front of the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from relaylang.ir import GlobalTypeVar, Type, TypeData
from relaylang.syntax.symbols import Symbol


class Names(Protocol):
    """The completer's view of a session, or of an editor's text."""

    def variables(self) -> Mapping[str, Type | None]:
        """Variables that the text in front of the cursor does not bind, with their types."""

    def functions(self) -> Mapping[str, Type | None]:
        """Functions by name, with their types."""

    def definitions(self) -> Mapping[GlobalTypeVar, TypeData]:
        """The type definitions."""

    def types_of(self, text: str, symbols: Sequence[Symbol]) -> Mapping[str, Type | None]:
        """The types of variables that the text in front of the cursor binds, by their names with `%`."""
