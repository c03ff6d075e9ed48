"""What a target, a format or an importer cannot do: collected over a whole program, and reported at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from relaylang.diagnostics.source import Span
from relaylang.diagnostics.suggest import did_you_mean
from relaylang.diagnostics.value import Diagnostic, RelayError, error


class Unsupported(Exception):
    """A target, a format or Relay cannot express this, or nobody converts it. `reason` is one sentence without a full stop."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass
class Entry:
    """An operator that was not converted: how often, the first layer that has it, and the reason there."""

    operator: str
    layer: str
    reason: str
    span: Span
    count: int = 1


@dataclass
class Report:
    """The operators of a model that were not converted. `known` are the names of those that the importer has.

    An exporter gives its own `code`, the reason of operators that its table lacks, and its `advice`.
    """

    file: str
    known: Iterable[str] = ()
    code: str = "R0801"
    absent: str = "the importer does not have it"
    advice: str = "--partial puts external functions there, so that the rest can be read and partitioned"
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)

    def warn(self, said: str, span: Span | None, *notes: str) -> None:
        """Note an assumption of the import that the reader should know."""
        self.warnings.append(error("R0805", said, span, notes=list(notes), severity="warning"))

    def unsupported(self, operator: str, layer: str, span: Span, reason: str = "") -> None:
        """Note a layer that was not converted."""
        entry = self.entries.get((operator, reason))
        if entry is None:
            self.entries[operator, reason] = Entry(operator, layer, reason, span)
        else:
            entry.count += 1

    def rows(self) -> list[str]:
        """A line per operator: count, name, first layer, reason or the nearest name."""
        entries = sorted(self.entries.values(), key=lambda e: (-e.count, e.operator))
        wide = max((len(e.operator) for e in entries), default=0)
        digits = max((len(str(e.count)) for e in entries), default=0)
        known = list(self.known)
        rows = []
        for e in entries:
            reason = e.reason
            if not reason:
                near = did_you_mean(e.operator, known)
                reason = f"{self.absent}; did you mean {near}?" if near else self.absent
            rows.append(f"{e.count:>{digits}} x {e.operator:<{wide}}  first in {e.layer}: {reason}")
        return rows

    def diagnostic(self, severity: str = "error") -> Diagnostic | None:
        """One diagnostic with the whole table; None where every layer was converted."""
        if not self.entries:
            return None
        kinds = len({e.operator for e in self.entries.values()})
        count = sum(e.count for e in self.entries.values())
        title = f"{count} layer{'s' * (count != 1)} of {kinds} operator{'s' * (kinds != 1)} cannot be converted"
        first = next(iter(self.entries.values()))
        notes = self.rows()
        if severity == "error" and self.advice:
            notes = [*notes, self.advice]
        return error(self.code, title, first.span, notes=notes, severity=severity)

    def raise_if_any(self) -> None:
        """Raise `RelayError` with the table, where a layer was not converted."""
        wrong = self.diagnostic()
        if wrong is not None:
            raise RelayError(wrong)


__all__ = ["Entry", "Report", "Unsupported"]
