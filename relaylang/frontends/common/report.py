"""What an importer cannot convert, collected over the whole model and reported at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error
from relaylang.diagnostics.internal import internal
from relaylang.diagnostics.source import Span
from relaylang.frontends.common.listing import Layer
from relaylang.ir import Expr, type_text
from relaylang.runtime.budget import Exhausted


class Unsupported(Exception):
    """Relay cannot express this layer, or the importer does not convert it. `reason` is one sentence without a full stop."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


class Malformed(Exception):
    """The layer is wrong: `reason` names the operand or attribute and what would fit, without a full stop."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def failure(wrong: Exception, layer: Layer, span: Span | None, operands: Iterable[Any] = (), why: str = "") -> list[Diagnostic]:
    """What an exception of a conversion says about its layer. `why` is what the format's own rules say against the layer.

    A conversion raises `RelayError` and `Malformed` on purpose. Any other exception is a fault of ours (R0900), unless `why`
    names the mistake. Raises `Exhausted` again, with the layer's place, since then the import must end.
    """
    name = f"{layer.operator} {layer.label}"
    if isinstance(wrong, RelayError):
        placed = [d if d.span is not None else error(d.code, d.title, span, notes=d.notes) for d in wrong.diagnostics]
        if isinstance(wrong, Exhausted):
            raise Exhausted(placed)
        return placed
    if isinstance(wrong, MemoryError):
        return [error("R0901", f"{name}: there is not enough memory for its result", span, notes=operand_notes(operands))]
    if isinstance(wrong, Malformed) or why:
        said = wrong.reason if isinstance(wrong, Malformed) else why
        return [error("R0805", f"{name}: {said}", span, notes=operand_notes(operands))]
    if os.environ.get("RELAY_TRACEBACK"):
        raise wrong
    return [internal(wrong, name, span, *operand_notes(operands))]


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


def operand_notes(values: Iterable[Any]) -> list[str]:
    """A note with the types of a layer's operands, as far as they are known."""
    types = [v.checked_type for v in values if isinstance(v, Expr) and v.checked_type is not None]
    return [f"its operands: {', '.join(type_text(t) for t in types)}"] if types else []


__all__ = ["Entry", "Malformed", "Report", "Unsupported", "failure", "operand_notes"]
