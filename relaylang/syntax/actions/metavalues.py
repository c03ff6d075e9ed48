"""References to the metadata section: the section's values, or `MetaRef`s where a text does not carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from relaylang.diagnostics import Diagnostic, Fix, did_you_mean, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Expr, MetaRef, Var
from relaylang.ir.types import POISON, Type
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.metadata_nodes import ATTRIBUTES, MetaNode, kind_of_meta

#: Reads the type that a comment states, or returns None.
ReadType = Callable[[str, Reports, TypeNames], "Type | None"]


def no_type(comment: str, reports: Reports, types: TypeNames) -> Type | None:
    """Read no type out of a comment."""
    return None


class LooseNode(Var):
    """Stands for a node of the section where an expression is wanted. A call that it ends takes `node` as its attributes;
    elsewhere a diagnostic names it.
    """

    __slots__ = ("node",)

    def __init__(self, node: MetaNode, span: Span) -> None:
        super().__init__("?", POISON, span)
        self.node = node


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
            section = self.values.get(key)
            if section is not None and len(number) < 10 and int(number) < len(section) and section[int(number)] is not None:
                return section[int(number)]
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

    def expression(self, token: str, at: int) -> Expr:
        """The value as an expression. Another value is reported at the end, unless a call takes it (`taken`)."""
        value = self.find(token, at)
        if isinstance(value, Expr):
            return value
        self.loose[at] = token, kind_of_meta(value)
        span = self.reports.span(at, at)
        return LooseNode(value, span) if isinstance(value, MetaNode) else Var("?", POISON, span)

    def taken(self, value: LooseNode) -> MetaNode | None:
        """The node, which a call takes as its attributes; None where it holds something else."""
        if kind_of_meta(value.node) != ATTRIBUTES:
            return None
        assert value.span is not None
        self.loose.pop(value.span.first, None)
        return value.node

    def misplaced(self, token: str, at: int, value: AnyValue, wanted: str) -> None:
        """Report a value that stands where another kind of value is wanted."""
        what = shown(token.partition("/*")[0].strip())
        title = f"`{what}` holds {kind_of_meta(value)} and is not {wanted}"
        self.reports.add(error("R0103", title, self.reports.place(at)))

    def forget(self, ref: MetaRef) -> None:
        """Leave a reference out of `missing`: a diagnostic names it."""
        self.missing = [m for m in self.missing if m is not ref]

    def misspelt(self, ref: MetaRef) -> Diagnostic | None:
        """The error about a reference whose kind is misspelt and whose type no comment states."""
        kinds = {"relay.Constant", *(self.values or ())}
        near = did_you_mean(ref.type_key, kinds) if ref.type_key not in kinds else None
        if near is None or ref.type_annotation is not None or ref.span is None:
            return None
        span, text = self.reports.place(ref.span.first), f"meta[{near}][{ref.index}]"
        title = f"metadata has no values of the kind `{shown(ref.type_key)}`"
        return error("R0151", title, span, fix=Fix(span, text, f"did you mean `{text}`?"))

    def finish(self) -> None:
        """Report the values that are no expressions and that no call took, and references of a misspelt kind."""
        for ref in self.missing:
            said = self.misspelt(ref)
            if said is not None:
                self.reports.add(said)
                ref.type_annotation = POISON
        for at, (token, kind) in self.loose.items():
            what = shown(token.partition("/*")[0].strip())
            notes = ["it may stand last in a call, as the call's attributes"] if kind == ATTRIBUTES else []
            title = f"`{what}` holds {kind} and is not an expression"
            self.reports.add(error("R0103", title, self.reports.place(at), notes=notes))


__all__ = ["LooseNode", "MetaValues", "ReadType"]
