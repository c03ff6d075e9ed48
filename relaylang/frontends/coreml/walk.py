"""What the walks over programs and networks share: names with their values, and the reports of operations that fail."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from relaylang.diagnostics import Diagnostic
from relaylang.frontends.common import Builder, Layer, Malformed, Unsupported, external
from relaylang.frontends.common.report import failure
from relaylang.frontends.coreml.reader import Files
from relaylang.ir import Expr, TensorType

#: The value of a result whose operation was not converted.
MISSING = object()
#: Values by name. Blocks and branches have maps of their own in front of those around them.
Names = MutableMapping[str, Any]


class Skipped(Exception):
    """The operation uses a result whose own operation was not converted."""


class Walk:
    """Converts operations one after the other. `errors` and the builder's report take their mistakes."""

    def __init__(self, b: Builder, files: Files, errors: list[Diagnostic]) -> None:
        self.b = b
        self.files = files
        self.errors = errors

    def place(
        self,
        layer: Layer,
        convert: Callable[[list[Any]], Sequence[Any]],
        names: Names,
        stated: Callable[[], Sequence[TensorType | None]],
    ) -> list[Any]:
        """The results of an operation, one for each of its names. `convert` puts its operands into a list for messages.

        With the option `partial`, an external function of the types `stated` is in the place of one that cannot be converted.
        """
        b = self.b
        b.span = span = b.listing.add(layer)
        operands: list[Any] = []
        results: list[Any] = []
        try:
            results = list(convert(operands))
            if len(results) < len(layer.outputs):
                raise Malformed(f"it has {len(layer.outputs)} results, and an operation of its kind gives {len(results)}")
        except Skipped:
            results = []
        except Unsupported as why:
            results = []
            b.report.unsupported(layer.operator, layer.label, span, why.reason)
            values = [names.get(name, MISSING) for name in layer.inputs]
            if b.options.partial and layer.outputs and MISSING not in values:
                results = external(b, layer.operator.replace(" ", "_"), [x for x in values if isinstance(x, Expr)], stated())
        except Exception as wrong:
            results = []
            self.errors += failure(wrong, layer, span, operands)
        b.span = span
        return [*results, *[MISSING] * len(layer.outputs)][: len(layer.outputs)]


def value_of(names: Names, name: str) -> Any:
    """The value of a name. Raises `Malformed` where there is none, and `Skipped` where its operation was not converted."""
    if name not in names:
        raise Malformed(f"its operand {name[:60]!r} is no result of an operation before it")
    if names[name] is MISSING:
        raise Skipped
    return names[name]


def inner(names: Names) -> Names:
    """A map for the names of a block."""
    return ChainMap({}, names)


__all__ = ["MISSING", "Names", "Skipped", "Walk", "inner", "value_of"]
