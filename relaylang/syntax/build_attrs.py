"""Reduce actions for attributes: of calls, checked against the operator's record, and of functions."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any as AnyValue

from relaylang.diagnostics import Fix, did_you_mean, error
from relaylang.ir.expr import Call, Constant, Expr, MetaRef, RawAttrs
from relaylang.ir.types import ANY, TensorType, Type
from relaylang.ops import OPS
from relaylang.ops.record import AttrError, Op, coerce
from relaylang.syntax.build_types import TypeActions
from relaylang.syntax.choices import not_a_choice
from relaylang.syntax.metadata import DEEPEST_VALUE
from relaylang.syntax.scope import shown
from relaylang.syntax.spellings import BY_NAME, OldOp, Spelling, Version, spelling_of
from relaylang.syntax.values import LiteralError, attribute_number, string

#: Attribute objects by operator and text. They are never changed, so all calls that say the same share one.
ATTRS: dict[tuple[Op, str], AnyValue] = {}
_KEPT = 50_000
#: Calls that are written as today: the operator, the number of arguments, the attributes' text, the text's version.
_AS_TODAY: set[tuple[Op | OldOp, int, str, Version | None]] = set()
_WORDS = {"True": True, "False": False, "None": None}
_PIECE = re.compile(r'([A-Za-z_][\w.]*)=|("[^"\\]*")|([\[\],])|((?:- *)?\w[\w.]*(?:(?<=[0-9.][eE])[-+][0-9]+\w*)?)|\s+|(\S)')


#: Stands for a value that has been complained about.
_WRONG = object()


class Pair:
    """One attribute: its name, its value, the tokens it stands on, and where inside the first of them (if it matters)."""

    __slots__ = ("end", "first", "last", "name", "start", "value", "value_start")

    def __init__(
        self, name: str, value: AnyValue, first: int, last: int, start: int = 0, value_start: int = 0, end: int = 0
    ) -> None:
        self.name = name
        self.value = value
        self.first = first
        self.last = last
        self.start = start
        self.value_start = value_start
        self.end = end


class AttrActions(TypeActions):
    """What is made where a rule of an attribute is reduced."""

    # -- places

    def name_place(self, pair: Pair) -> AnyValue:
        if pair.end:
            return self.within(pair.first, pair.start, pair.start + len(pair.name))
        return self.place(pair.first, pair.last)

    def value_place(self, pair: Pair) -> AnyValue:
        if pair.end:
            return self.within(pair.first, pair.value_start, pair.end)
        return self.place(min(pair.first + 1, pair.last), pair.last)

    # -- lists of attributes

    def coarse_pairs(self, text: str, at: int) -> list[Pair]:
        """The attributes of a coarse token `a=1, b=[2, 3], c="x"`."""
        pairs: list[Pair] = []
        stack: list[list[AnyValue]] = []
        name, start, begin, behind = "", 0, 0, -1
        for piece in _PIECE.finditer(text):
            key, quoted, sign, word, odd = piece.groups()
            value: AnyValue
            if odd is not None:
                place = self.within(at, piece.start(), piece.end())
                self.report(error("R0101", f"`{odd}` stands where an attribute's value is wanted", place))
                continue
            if sign == "," or not piece.group().strip():
                continue
            if stack and sign != "]" and behind >= 0:
                self._separated(text, at, behind, piece.start())
            behind = -1 if sign == "[" or key is not None else piece.end()
            if key is not None:
                name, start, begin = key, piece.start(), piece.end()
                continue
            if quoted is not None:
                value = string(quoted)
            elif word is not None:
                value = self._word(word.replace(" ", ""), at, piece.start(), piece.end())
            elif sign == "[":
                stack.append([])
                continue
            elif sign == "]" and stack:
                value = tuple(stack.pop())
            else:
                continue
            if stack:
                stack[-1].append(value)
            else:
                pairs.append(Pair(name, value, at, at, start, begin, piece.end()))
        return pairs

    def _separated(self, text: str, at: int, end: int, begin: int) -> None:
        """Say it where two elements of a list do not have one comma between them."""
        commas = text.count(",", end, begin)
        if commas == 0:
            place = self.within(at, end, end)
            self.report(error("R0112", "`,` is missing between two elements", place, fix=Fix(place, ",", "put `,` here")))
        elif commas > 1:
            second = text.index(",", text.index(",", end) + 1)
            place = self.within(at, second, second + 1)
            self.report(error("R0101", "`,` stands here twice", place, fix=Fix(place, "", "leave it out")))

    def _word(self, word: str, at: int, start: int, end: int) -> AnyValue:
        if word in _WORDS:
            return _WORDS[word]
        if word[0].isdigit() or word[0] == "-" or word.startswith(("inf", "nan")):
            try:
                return attribute_number(word)
            except LiteralError as e:
                self.report(error("R0105", str(e), self.within(at, start, end)))
                return _WRONG
        if word in self.type_vars:
            return self.type_vars[word]
        place, meant = self.within(at, start, end), word.capitalize()
        if meant in _WORDS:
            fix = Fix(place, meant, f"write `{meant}`")
        else:
            fix = Fix(place, f'"{word}"', f'a string stands in quotes: `"{shown(word)}"`')
        self.report(error("R0109", f"`{shown(word)}` is not an attribute's value", place, fix=fix))
        return _WRONG

    def on_attrs_coarse(self, v: str, first: int, last: int) -> list[AnyValue]:
        return [(v, first)]

    def on_attrs_one(self, v: AnyValue, first: int, last: int) -> list[AnyValue]:
        return [v]

    def on_attrs_more(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        item = v[2]
        v[0].append((item, last) if item.__class__ is str else item)
        return v[0]

    def on_type_arg(self, v: str, first: int, last: int) -> Type:
        return self.tensor_type(v, first)

    def on_type_arg_fine(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TensorType(v[3], v[6])

    def flatten(self, items: list[AnyValue]) -> tuple[list[Pair], list[Type]]:
        """Attributes and type arguments of a list; says where an attribute is given twice."""
        pairs: list[Pair] = []
        types: list[Type] = []
        for item in items:
            if item.__class__ is tuple:
                pairs += self.coarse_pairs(*item)
            elif item.__class__ is Pair:
                pairs.append(item)
            elif isinstance(item, Type):
                types.append(item)
        seen: dict[str, Pair] = {}
        for pair in pairs:
            before = seen.setdefault(pair.name, pair)
            if before is not pair:
                self.report(
                    error(
                        "R0205",
                        f"attribute `{shown(pair.name)}` is given twice",
                        self.name_place(pair),
                        "here again",
                        also=[(self.name_place(before), "first here")],
                    )
                )
        return pairs, types

    def make_call(self, callee: Expr, args: list[Expr], items: list[AnyValue], at: int, last: int) -> Call:
        """A call with attributes or type arguments. `at` is the token of its callee."""
        attrs: AnyValue = None
        types: list[Type] = []
        pairs: list[Pair] | None = None
        if isinstance(callee, (Op, OldOp)) and callee.name in BY_NAME:
            plain = callee.__class__ is Op and len(items) == 1 and items[0].__class__ is tuple
            written = callee, len(args), items[0][0] if plain else "", self.version
            if not plain or written not in _AS_TODAY:
                pairs, types = self.flatten(items)
                respelled = self.respell(callee, args, pairs, types, at, last)
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
                    before = self.said.errors
                    attrs = self.op_attrs(callee, self.flatten(items)[0] if pairs is None else pairs, at)
                    if before == self.said.errors and len(key[1]) < 1000:
                        if len(ATTRS) > _KEPT:
                            ATTRS.clear()
                        ATTRS[key] = attrs
            elif not items:
                attrs = self.no_attrs(callee, at)
            else:
                if pairs is None:
                    pairs, types = self.flatten(items)
                attrs = self.op_attrs(callee, pairs, at)
        else:
            pairs, types = self.flatten(items)
            values = {p.name: p.value for p in pairs}
            type_key = values.pop("attrs_type_key", "")
            if values or type_key:
                attrs = RawAttrs(str(type_key), values)
        return Call(callee, args, attrs, types, self.span(at, last))

    def respell(
        self, callee: Op | OldOp, args: list[Expr], pairs: list[Pair], types: list[Type], at: int, last: int
    ) -> Call | None:
        """Today's call for one that TVM once wrote otherwise; None where it is written as today."""
        values = {p.name: p.value for p in pairs}
        row = spelling_of(callee.name, len(args), values, self.version)
        if row is None:
            if isinstance(callee, Op):
                return None
            row = BY_NAME[callee.name][0]
        op = OPS[row.now]
        wrong = any(p.value is _WRONG for p in pairs)
        made, new = args, values
        try:
            made, new = row.read(args, values)
        except KeyError as e:
            if isinstance(callee, Op) and values.keys() <= callee.schema.keys():
                return None
            wrong = True
            self.report(error("R0208", f"`{row.name}` wants the attribute `{e.args[0]}`", self.place(at)))
        except ValueError as e:
            pair = next(p for p in pairs if p.name == e.args[0])
            if not wrong:
                what = "a list of whole numbers" if pair.name == "out_shape" else "a number"
                title = f"attribute `{pair.name}` of `{row.name}` must be {what}"
                self.report(error("R0109", title, self.value_place(pair)))
            wrong = True
        if wrong:
            return Call(op, made, None, types, self.span(at, last))
        schema = op.schema
        told = {k: v for k, v in new.items() if k not in schema or schema[k].required or v != schema[k].default}
        before = {k: v for k, v in values.items() if k not in schema or schema[k].required or v != schema[k].default}
        if row.now == row.name and len(made) == len(args) and told == before:
            return None
        origin = {row.renamed.get(p.name, p.name): p for p in pairs}
        today = []
        for name, value in new.items():
            was = origin.get(name)
            if was is None:
                today.append(Pair(name, value, at, at))
            else:
                today.append(Pair(name, value, was.first, was.last, was.start, was.value_start, was.end))
        call = Call(op, made, self.op_attrs(op, today, at), types, self.span(at, last))
        self.respelled.setdefault(row, []).append(at)
        self.old_call(row, call, len(args), [p.first for p in pairs], at, last)
        return call

    def old_call(self, row: Spelling, call: Call, args: int, attrs: list[int], at: int, last: int) -> None:
        """Where an old spelling has been read: `args` arguments, attributes that begin at these tokens."""

    def meta_call(self, callee: Expr, args: list[Expr], value: AnyValue, at: int, last: int) -> Call:
        """A call whose attributes stand as one object in the metadata section."""
        if isinstance(value, MetaRef):
            self.missing = [m for m in self.missing if m is not value]
            what = "the attributes of this call are in the metadata section, which is missing"
            self.report(error("R0208", what, self.place(last - 1)))
            return Call(callee, args, None, (), self.span(at, last))
        if isinstance(callee, (Op, OldOp)) and callee.name in BY_NAME:
            said = value.values(callee.schema if isinstance(callee, Op) else OPS[BY_NAME[callee.name][0].now].schema)
            pairs = [Pair(k, v, last - 1, last - 1) for k, v in said.items() if v is not None]
            respelled = self.respell(callee, args, pairs, [], at, last)
            if respelled is not None:
                return respelled
        known = self.meta_attrs.get((callee, id(value)))
        if known is None:
            schema = callee.schema if isinstance(callee, Op) else {}
            values = value.values(schema)
            attrs: AnyValue = RawAttrs(value.type_key, values)
            if isinstance(callee, Op) and schema:
                # an object that is none is an attribute that was not given, as `exclusive` of TVM's own `cumsum`
                given = {k: v for k, v in values.items() if v is not None or k not in schema or schema[k].optional}
                attrs = self.op_attrs(callee, [Pair(k, v, last - 1, last - 1) for k, v in given.items()], at)
            known = self.meta_attrs[callee, id(value)] = attrs, value
        return Call(callee, args, known[0], (), self.span(at, last))

    def lost_attribute(self, op: Op, pair: Pair, ref: MetaRef) -> None:
        """Say that an attribute's value is not in the text."""
        self.missing = [m for m in self.missing if m is not ref]
        known = self.meta is not None and len(self.meta.get(ref.type_key, ()))
        notes = ["the text has no metadata section"] if self.meta is None else [f"the section has {known} of this kind"]
        what = f"attribute `{pair.name}` of `{op.name}`: the metadata section lacks the value `{shown(ref.name_hint)}`"
        self.report(error("R0208", what, self.value_place(pair), notes=notes))

    def no_attrs(self, op: Op, at: int) -> AnyValue:
        """The attributes of a call that names none."""
        attrs = ATTRS.get((op, ""))
        if attrs is None and op.attrs is not None:
            before = self.said.errors
            attrs = self.op_attrs(op, [], at)
            if before == self.said.errors:
                ATTRS[op, ""] = attrs
        return attrs

    def op_attrs(self, op: Op, pairs: list[Pair], at: int) -> AnyValue:
        """The operator's attribute object from given values; says what does not fit, or is unknown, or missing."""
        schema = op.schema
        values: dict[str, AnyValue] = {}
        wrong = False
        for pair in pairs:
            field = schema.get(pair.name)
            if field is None:
                wrong = True
                span = self.name_place(pair)
                near = did_you_mean(pair.name, schema)
                self.report(
                    error(
                        "R0203",
                        f"`{op.name}` has no attribute `{shown(pair.name)}`",
                        span,
                        "not known here",
                        notes=[f"it has {', '.join(schema)}" if schema else "it has no attributes"],
                        fix=Fix(span, near, f"did you mean `{near}`?") if near and pair.end else None,
                    )
                )
                continue
            choice = not_a_choice(op.name, pair.name, pair.value)
            if choice is not None:
                wrong = True
                span = self.value_place(pair)
                fix = Fix(span, f'"{choice[1]}"', f'did you mean `"{choice[1]}"`?') if choice[1] and pair.end else None
                what = f'attribute `{pair.name}` of `{op.name}` {choice[0]}, not "{shown(str(pair.value))}"'
                self.report(error("R0109", what, span, fix=fix))
                continue
            try:
                values[pair.name] = coerce(field, pair.value)
            except AttrError as e:
                wrong = True
                inside = pair.value if isinstance(pair.value, (tuple, list)) else (pair.value,)
                if any(x is _WRONG for x in inside):
                    continue
                lost = next((x for x in inside if isinstance(x, MetaRef)), None)
                if lost is not None:
                    self.lost_attribute(op, pair, lost)
                else:
                    self.report(error("R0109", f"attribute `{pair.name}` of `{op.name}` {e}", self.value_place(pair)))
        if op.attrs is None:
            return None
        if not wrong:
            lacking = [f.name for f in schema.values() if f.required and f.name not in values]
            if not lacking:
                return op.attrs(**values)
            names = ", ".join(f"`{n}`" for n in lacking)
            what = "attribute" if len(lacking) == 1 else "attributes"
            place = self.within(at, 0, len(self.tokens[at].rstrip("(")))
            self.report(error("R0208", f"`{op.name}` wants the {what} {names}", place, notes=[op.signature()]))
        return None

    def attr_values(self, items: list[AnyValue]) -> dict[str, AnyValue]:
        """A function's attributes, in the order in which they are given."""
        return {p.name: p.value for p in self.flatten(items)[0]}

    # -- single attributes and their values

    def on_pair(self, v: list[AnyValue], first: int, last: int) -> Pair:
        return Pair(v[0][:-1].rstrip(), v[1], first, last)

    def on_pair_spaced(self, v: list[AnyValue], first: int, last: int) -> Pair:
        return Pair(v[0], v[2], first, last)

    def on_pair_quoted(self, v: list[AnyValue], first: int, last: int) -> Pair:
        return Pair(string(v[0]), v[2], first, last)

    def on_av_number(self, v: str, first: int, last: int) -> AnyValue:
        return self._word(v, first, 0, len(v))

    def on_av_negative(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        try:
            return attribute_number("-" + v[1])
        except LiteralError as e:
            self.report(error("R0105", str(e), self.place(first, last)))
            return _WRONG

    def on_av_string(self, v: str, first: int, last: int) -> str:
        return string(v)

    def on_av_name(self, v: str, first: int, last: int) -> AnyValue:
        return self._word(v, first, 0, len(v))

    def on_av_any(self, v: str, first: int, last: int) -> AnyValue:
        return ANY

    def on_av_empty(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return ()

    def on_av_list(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        made = tuple([item.data if item.__class__ is Constant and item.data.ndim == 0 else item for item in v[1]])
        return self.shallow(made, made, first, last)

    def on_av_empty_map(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return {}

    def on_av_map(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        made = dict(v[1])
        return self.shallow(made, made.values(), first, last)

    def shallow(self, made: AnyValue, items: Collection[AnyValue], first: int, last: int) -> AnyValue:
        """A list or map that nests no deeper than values do; its depth is kept for the one around it."""
        depth = 1
        for item in items:
            if item.__class__ is tuple or item.__class__ is dict:
                depth = max(depth, 1 + self.depths.get(id(item), (1,))[0])
        if depth > DEEPEST_VALUE:
            if self.once("R0109", "too deep"):
                title = f"the value of an attribute nests more than {DEEPEST_VALUE} deep"
                self.report(error("R0109", title, self.place(first, last)))
            return _WRONG
        if depth > 1:
            self.depths[id(made)] = depth, made
        return made

    def on_av_pairs(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        items = [(x, first + 1) if x.__class__ is str else x for x in v[1]]
        made = self.attr_values(items)
        return self.shallow(made, made.values(), first, last)

    def on_amap_first(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return [(string(v[0]), v[2])]

    def on_amap_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append((string(v[2]), v[4]))
        return v[0]
