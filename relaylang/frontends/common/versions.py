"""Versions of formats: which numbers an importer knows, and what it says of a file that states another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylang.diagnostics import Diagnostic, RelayError, error


@dataclass(frozen=True)
class Versions:
    """The versions of a format, or of a part of one, that the importer knows: those from `oldest` to `newest`.

    `what` names the number that a file states, and `shown` writes it.
    """

    what: str
    oldest: int
    newest: int
    shown: Callable[[int], str] = str

    def refuse(self, version: int, file: str) -> None:
        """Raise `RelayError` (R0807) for another version, where the format's own readers refuse it."""
        if not self.oldest <= version <= self.newest:
            raise RelayError(error("R0807", self._said(version, file)))

    def warnings(self, version: int, file: str) -> list[Diagnostic]:
        """A warning (R0807) for another version, where the format's own readers take it."""
        if self.oldest <= version <= self.newest:
            return []
        notes = [f"it is read as if it were of version {self.shown(self.newest)}: compare its results with those of its framework"]
        return [error("R0807", self._said(version, file), notes=notes, severity="warning")]

    def _said(self, version: int, file: str) -> str:
        span = f"{self.shown(self.oldest)} to {self.shown(self.newest)}" if self.oldest < self.newest else self.shown(self.newest)
        return f"{file}: {self.what} is {self.shown(version)}; relaylang knows {span}"


__all__ = ["Versions"]
