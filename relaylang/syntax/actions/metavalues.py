"""References to the metadata section: the section's values, or `MetaRef`s where a text does not carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from relaylang.diagnostics import error
from relaylang.ir.expr import MetaRef
from relaylang.ir.types import Type
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.reports import Reports, shown

#: Reads the type that a comment states, or returns None.
ReadType = Callable[[str, Reports, TypeNames], "Type | None"]


def no_type(comment: str, reports: Reports, types: TypeNames) -> Type | None:
    """Read no type out of a comment."""
    return None


class MetaValues:
    """Looks up `meta[key][number]`.

    `values` are the section's, by key; None where the text has no section. `read_type` reads the type in the comment
    behind a reference.
    """

    __slots__ = ("loose", "missing", "read_type", "references", "reports", "types", "values")

    def __init__(
        self,
        reports: Reports,
        types: TypeNames,
        values: Mapping[str, list[AnyValue]] | None = None,
        read_type: ReadType = no_type,
    ) -> None:
        self.reports = reports
        self.types = types
        self.values = values
        self.read_type = read_type
        self.references: dict[str, MetaRef] = {}
        self.missing: list[MetaRef] = []
        #: Values that are no expressions and stand where one is wanted, by token; a call takes one as its attributes.
        self.loose: dict[int, tuple[str, str]] = {}

    def find(self, token: str, at: int) -> AnyValue:
        """The value of `meta[key][number]`, or a `MetaRef` where the section has none."""
        head, _, comment = token.partition("/*")
        key, _, number = head[5:].rstrip().rstrip("]").partition("][")
        if self.values is not None:
            found = self.values.get(key)
            if found is not None and len(number) < 10 and int(number) < len(found) and found[int(number)] is not None:
                return found[int(number)]
        name = f"{key}][{number}"
        known = self.references.get(name)
        if known is None:
            if len(number) > 9:
                self.reports.add(error("R0105", "the number of a metadata value is too large", self.reports.place(at)))
                number = "0"
            ty = self.read_type(comment, self.reports, self.types) if comment else None
            known = self.references[name] = MetaRef(key, int(number), ty, self.reports.span(at, at))
            self.missing.append(known)
        elif comment and known.type_annotation is None:
            known.type_annotation = self.read_type(comment, self.reports, self.types)
        return known

    def forget(self, ref: MetaRef) -> None:
        """Leave a reference out of `missing`: a diagnostic names it."""
        self.missing = [m for m in self.missing if m is not ref]

    def finish(self) -> None:
        """Report the values that are no expressions and that no call took."""
        for at, (token, kind) in self.loose.items():
            what = shown(token.partition("/*")[0].strip())
            notes = ["it may stand last in a call, as the call's attributes"] if kind == "attributes" else []
            title = f"`{what}` holds {kind} and is not an expression"
            self.reports.add(error("R0103", title, self.reports.place(at), notes=notes))


__all__ = ["MetaValues", "ReadType"]
