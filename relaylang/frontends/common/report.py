"""What an importer says of a layer whose conversion fails."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.diagnostics.internal import internal
from relaylang.diagnostics.source import Span
from relaylang.frontends.common.listing import Layer
from relaylang.ir import Expr, type_text
from relaylang.runtime.budget import Exhausted


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


def operand_notes(values: Iterable[Any]) -> list[str]:
    """A note with the types of a layer's operands, as far as they are known."""
    types = [v.checked_type for v in values if isinstance(v, Expr) and v.checked_type is not None]
    return [f"its operands: {', '.join(type_text(t) for t in types)}"] if types else []


__all__ = ["Malformed", "failure", "operand_notes"]
