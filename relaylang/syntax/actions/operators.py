"""Calls with attributes: checked against the operator's record, and translated from earlier spellings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from relaylang.diagnostics import Fix, did_you_mean, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Expr, MetaRef, RawAttrs
from relaylang.ir.types import Type, TypeVar
from relaylang.ops import OPS
from relaylang.ops.record import AttrError, AttrField, Op, coerce
from relaylang.syntax.actions.attributes import WRONG, AttributeActions, Pair
from relaylang.syntax.actions.errors import Unread
from relaylang.syntax.actions.metavalues import MetaValues
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.attribute_strings import not_a_choice
from relaylang.syntax.literals import attribute_number
from relaylang.syntax.spellings import BY_NAME, OldOp, Spelling, Version, spelling_of, version_of
from relaylang.syntax.synonyms import OTHER_ATTRIBUTES

#: Attribute objects by operator and text. They never change, so calls of the same text share one.
ATTRS: dict[tuple[Op, str], AnyValue] = {}
_KEPT = 50_000
#: Calls in today's spelling: the operator, the number of arguments, the attributes' text, the text's version.
_AS_TODAY: set[tuple[Op | OldOp, int, str, Version | None]] = set()

#: Takes note of an earlier spelling: the row, today's call, the number of arguments, the attributes' tokens, the call's tokens.
OldCall = Callable[[Spelling, Call, int, list[int], int, int], None]


def _has_name(pair: Pair) -> bool:
    """Whether an attribute has an extent's name, which stands for another extent in each function."""
    values = pair.value if pair.value.__class__ is tuple else (pair.value,)
    return any([isinstance(d, TypeVar) for d in values])


class OperatorCalls:
    """Makes calls of operators.

    `respelled` holds the calls in an earlier spelling: by its row, their tokens. `on_old_call` is called for each of them.
    """

    def __init__(self, reports: Reports, meta: MetaValues, attributes: AttributeActions) -> None:
        self.reports = reports
        self.meta = meta
        self.attributes = attributes
        #: The version of TVM that wrote the text, where the text states it.
        self.version = version_of(reports.source.text, reports.source.end)
        self.respelled: dict[Spelling, list[int]] = {}
        self.on_old_call: OldCall | None = None
        self._of_nodes: dict[tuple[AnyValue, int], tuple[AnyValue, AnyValue]] = {}  # attributes made of a section's nodes

    def call(self, callee: Expr, args: list[Expr], items: list[AnyValue], at: int, last: int) -> Call:
        """A call with attributes or type arguments. `at` is the token of its callee."""
        attrs: AnyValue = None
        types: list[Type] = []
        pairs: list[Pair] | None = None
        if any(item.__class__ is Unread for item in items):
            return self.made(callee, args, WRONG, at, last, self.attributes.flatten(items)[1])
        if isinstance(callee, (Op, OldOp)) and callee.name in BY_NAME:
            plain = callee.__class__ is Op and len(items) == 1 and items[0].__class__ is tuple
            written = callee, len(args), items[0][0] if plain else "", self.version
            if not plain or written not in _AS_TODAY:
                pairs, types = self.attributes.flatten(items)
                respelled = self._respell(callee, args, pairs, types, at, last)
                if respelled is not None:
                    return respelled
                if plain and len(written[2]) < 1000:
                    if len(_AS_TODAY) > _KEPT:
                        _AS_TODAY.clear()
                    _AS_TODAY.add(written)
        if isinstance(callee, Op):
            if len(items) == 1 and items[0].__class__ is tuple and not getattr(callee.attrs, "in_metadata", False):
                key = (callee, items[0][0])
                attrs = ATTRS.get(key)
                if attrs is None:
                    before = self.reports.said.errors
                    pairs = self.attributes.flatten(items)[0] if pairs is None else pairs
                    attrs = self._attrs(callee, pairs, at)
                    if before == self.reports.said.errors and len(key[1]) < 1000 and not any(map(_has_name, pairs)):
                        if len(ATTRS) > _KEPT:
                            ATTRS.clear()
                        ATTRS[key] = attrs
            elif not items:
                attrs = self.no_attrs(callee, at)
            else:
                if pairs is None:
                    pairs, types = self.attributes.flatten(items)
                attrs = self._attrs(callee, pairs, at)
        else:
            pairs, types = self.attributes.flatten(items)
            values = {p.name: p.value for p in pairs}
            type_key = values.pop("attrs_type_key", "")
            if values or type_key:
                attrs = RawAttrs(str(type_key), values)
        return self.made(callee, args, attrs, at, last, types)

    def made(self, callee: Expr, args: list[Expr], attrs: AnyValue, at: int, last: int, types: Sequence[Type] = ()) -> Call:
        """A call; where its attributes are `WRONG`, one of an unknown value."""
        if attrs is WRONG:
            callee, attrs = self.reports.unknown_value(at, at), None
        return Call(callee, args, attrs, types, Span(self.reports.source, at, last))

    def _respell(self, callee: Op | OldOp, args: list[Expr], pairs: list[Pair], types: list[Type], at: int, last: int) -> Call | None:
        """Today's call for an earlier spelling; None where the call is in today's."""
        values = {p.name: p.value for p in pairs}
        row = spelling_of(callee.name, len(args), values, self.version)
        if row is None:
            if isinstance(callee, Op):
                return None
            row = BY_NAME[callee.name][0]
        op = OPS[row.now]
        wrong = any(p.value is WRONG for p in pairs)
        operands, new = args, values
        try:
            operands, new = row.read(args, values)
        except KeyError as e:
            if isinstance(callee, Op) and values.keys() <= callee.schema.keys():
                return None
            wrong = True
            title = f"`{row.name}` wants the attribute `{e.args[0]}`"
            self.reports.add(error("R0208", title, self.reports.place(at)))
        except ValueError as e:
            pair = next(p for p in pairs if p.name == e.args[0])
            if not wrong:
                what = "a list of whole numbers" if pair.name == "out_shape" else "a number"
                title = f"attribute `{pair.name}` of `{row.name}` must be {what}"
                self.reports.add(error("R0109", title, self.attributes.value_place(pair)))
            wrong = True
        if wrong:
            return self.made(op, operands, WRONG, at, last, types)
        schema = op.schema
        told = {k: v for k, v in new.items() if k not in schema or schema[k].required or v != schema[k].default}
        before = {k: v for k, v in values.items() if k not in schema or schema[k].required or v != schema[k].default}
        if row.now == row.name and len(operands) == len(args) and told == before:
            return None
        origin = {row.renamed.get(p.name, p.name): p for p in pairs}
        today = []
        for name, value in new.items():
            was = origin.get(name)
            if was is None:
                today.append(Pair(name, value, at, at))
            else:
                today.append(Pair(name, value, was.first, was.last, was.start, was.value_start, was.end))
        call = self.made(op, operands, self._attrs(op, today, at), at, last, types)
        self.respelled.setdefault(row, []).append(at)
        if self.on_old_call is not None:
            self.on_old_call(row, call, len(args), [p.first for p in pairs], at, last)
        return call

    def meta_call(self, callee: Expr, args: list[Expr], value: AnyValue, at: int, last: int) -> Call:
        """A call whose attributes stand as one object in the metadata section."""
        if isinstance(value, MetaRef):
            self.meta.forget(value)
            title = "the attributes of this call are in the metadata section, which is missing"
            self.reports.add(error("R0208", title, self.reports.place(last - 1)))
            return self.made(callee, args, WRONG, at, last)
        if isinstance(callee, (Op, OldOp)) and callee.name in BY_NAME:
            said = value.values(callee.schema if isinstance(callee, Op) else OPS[BY_NAME[callee.name][0].now].schema)
            pairs = [Pair(k, v, last - 1, last - 1) for k, v in said.items() if v is not None]
            respelled = self._respell(callee, args, pairs, [], at, last)
            if respelled is not None:
                return respelled
        known = self._of_nodes.get((callee, id(value)))
        if known is None:
            schema = callee.schema if isinstance(callee, Op) else {}
            values = value.values(schema)
            attrs: AnyValue = RawAttrs(value.type_key, values)
            if isinstance(callee, Op) and schema:
                # a missing object is an attribute that was not given, as `exclusive` of TVM's own `cumsum`
                stated = {k: v for k, v in values.items() if v is not None or k not in schema or schema[k].optional}
                attrs = self._attrs(callee, [Pair(k, v, last - 1, last - 1) for k, v in stated.items()], at)
            known = self._of_nodes[callee, id(value)] = attrs, value
        return self.made(callee, args, known[0], at, last)

    def no_attrs(self, op: Op, at: int) -> AnyValue:
        """The attributes of a call that names none."""
        attrs = ATTRS.get((op, ""))
        if attrs is None and op.attrs is not None:
            before = self.reports.said.errors
            attrs = self._attrs(op, [], at)
            if before == self.reports.said.errors:
                ATTRS[op, ""] = attrs
        return attrs

    def _attrs(self, op: Op, pairs: list[Pair], at: int) -> AnyValue:
        """The operator's attribute object from given values; reports wrong, unknown and missing ones."""
        schema = op.schema
        values: dict[str, AnyValue] = {}
        wrong = False
        for pair in pairs:
            field = schema.get(pair.name)
            if field is None:
                wrong = True
                self._unknown_attribute(op, pair)
                continue
            choice = not_a_choice(op.name, pair.name, pair.value)
            if choice is not None:
                wrong = True
                span = self.attributes.value_place(pair)
                fix = Fix(span, f'"{choice[1]}"', f'did you mean `"{choice[1]}"`?') if choice[1] and pair.end else None
                title = f'attribute `{pair.name}` of `{op.name}` {choice[0]}, not "{shown(str(pair.value))}"'
                self.reports.add(error("R0109", title, span, fix=fix))
                continue
            try:
                values[pair.name] = coerce(field, pair.value)
            except AttrError as e:
                wrong = True
                inside = pair.value if isinstance(pair.value, (tuple, list)) else (pair.value,)
                if any(x is WRONG for x in inside):
                    continue
                lost = next((x for x in inside if isinstance(x, MetaRef)), None)
                if lost is not None:
                    self._lost_attribute(op, pair, lost)
                else:
                    title = f"attribute `{pair.name}` of `{op.name}` {e}"
                    place = self.attributes.value_place(pair)
                    notes = _PADDING.get(str(pair.value).upper(), []) if pair.name == "padding" else []
                    self.reports.add(error("R0109", title, place, notes=notes, fix=_unquoted(field, pair.value, place)))
        if op.attrs is None:
            return WRONG if wrong else None
        if not wrong:
            lacking = [f.name for f in schema.values() if f.required and f.name not in values]
            if not lacking:
                return op.attrs(**values)
            names = ", ".join(f"`{n}`" for n in lacking)
            what = "attribute" if len(lacking) == 1 else "attributes"
            place = self.reports.within(at, 0, len(self.reports.tokens[at].rstrip("(")))
            title = f"`{op.name}` wants the {what} {names}"
            notes = [f"`{name}=None` takes the weight's" for name in lacking if name in _OF_WEIGHT and schema[name].optional]
            self.reports.add(error("R0208", title, place, notes=[f"attributes have names: {_by_name(op, lacking)}", *notes]))
        return WRONG

    def _unknown_attribute(self, op: Op, pair: Pair) -> None:
        schema = op.schema
        span = self.attributes.name_place(pair)
        others = OTHER_ATTRIBUTES.get(pair.name, ())
        near = next((name for name in others if name in schema), None) or did_you_mean(pair.name, schema)
        fix = Fix(span, near, f"did you mean `{near}`?") if near and pair.end else None
        title = f"`{op.name}` has no attribute `{shown(pair.name)}`"
        notes = [f"it has {', '.join(schema)}" if schema else "it has no attributes"]
        self.reports.add(error("R0203", title, span, "not known here", notes=notes, fix=fix))

    def _lost_attribute(self, op: Op, pair: Pair, ref: MetaRef) -> None:
        """Report an attribute whose value the metadata section lacks."""
        meta = self.meta
        meta.forget(ref)
        known = meta.values is not None and len(meta.values.get(ref.type_key, ()))
        notes = ["the text has no metadata section"] if meta.values is None else [f"the section has {known} of this kind"]
        title = f"attribute `{pair.name}` of `{op.name}`: the metadata section lacks the value `{shown(ref.name_hint)}`"
        self.reports.add(error("R0208", title, self.attributes.value_place(pair), notes=notes))


#: Attributes that repeat an extent of a weight.
_OF_WEIGHT = ("units", "channels")
#: Words of TensorFlow and ONNX for paddings.
_PADDING = {
    "SAME": ["`padding=[1, 1]` keeps height and width for a kernel of 3 and strides of 1, `padding=[2, 2]` for one of 5"],
    "VALID": ["this is `padding=[0, 0]`"],
}


def _by_name(op: Op, names: list[str]) -> str:
    """A call with attributes that it lacks: `clip(data, a_min=..., a_max=...)`."""
    return f"`{op.name}({', '.join([*op.args, *[f'{name}=...' for name in names]])})`"


def _unquoted(field: AttrField, value: AnyValue, place: Span) -> Fix | None:
    """`axis="1"` means `axis=1`."""
    if not isinstance(value, str) or not re.fullmatch(r"-?\d+(\.\d*)?", value):
        return None
    try:
        coerce(field, attribute_number(value))
    except ValueError:
        return None
    return Fix(place, value, f"write `{value}`")


__all__ = ["OldCall", "OperatorCalls"]
