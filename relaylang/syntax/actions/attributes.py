"""Actions for attributes and their values."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import Fix, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constant, MetaRef
from relaylang.ir.types import ANY, POISON, TensorType, Type, TypeVar, extent
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.metavalues import MetaValues
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.actions.types import COMPUTATIONS, INFIX, computed_extent, tensor_type
from relaylang.syntax.literals import LiteralError, attribute_number, is_dtype, string
from relaylang.syntax.metadata import DEEPEST_VALUE
from relaylang.syntax.metadata_nodes import MetaNode, device_node, target_node

_ONCE = ("leave one of them out",)
_WORDS = {"True": True, "False": False, "None": None}
#: The pieces of the grammar's terminal ATTRS, whose values are wider than any fine terminal: `1x` and `relu` are errors.
_PIECE = re.compile(r'([A-Za-z_][\w.]*)=|("[^"\\]*")|([\[\],])|((?:- *)?\w[\w.]*(?:(?<=[0-9.][eE])[-+][0-9]+\w*)?)|\s+|(\S)')

#: The number of an object in TVM's memory, in the values that it prints for people.
_ADDRESS = re.compile(r"\bid=\w+(?:,\s*|$)")
_TEXT, _NUMBER, _WORDS_LIST, _MAP = (str, "a string"), (int, "a whole number"), (tuple, "a list of strings"), (dict, "a map")
_DEVICE_FIELDS: dict[str, tuple[AnyValue, str]] = {
    "device_type": _NUMBER,
    "virtual_device_id": _NUMBER,
    "target": ("Target", "a Target"),
    "memory_scope": _TEXT,
}
#: The values that TVM prints for people, with their fields. TVM 0.8 called a virtual device SEScope.
_FIELDS = {
    "VirtualDevice": _DEVICE_FIELDS,
    "SEScope": _DEVICE_FIELDS,
    "Target": {
        "kind": _TEXT,
        "tag": _TEXT,
        "keys": _WORDS_LIST,
        "attrs": _MAP,
        "features": _MAP,
        "host": ("Target", "a Target"),
    },
}
_DEVICES = ("VirtualDevice", "SEScope")


def _is_a(value: AnyValue, wanted: tuple[AnyValue, str]) -> bool:
    """Whether a value of a field is of its kind; `None` always is."""
    kind = wanted[0]
    if kind.__class__ is str:
        return value is None or (isinstance(value, MetaNode) and value.type_key == kind)
    return value is None or (isinstance(value, kind) and not isinstance(value, bool))


def _compiles_for(target: MetaNode, device: int) -> MetaNode:
    """The target with the number of the device that its kind compiles for, which its text does not say."""
    parts = dict(target.parts or {})
    kind = parts.get("kind")
    if isinstance(kind, MetaNode):
        attrs = {**kind.attrs, "default_device_type": str(device)}
        parts["kind"] = MetaNode(kind.type_key, attrs, None, kind.parts)
    return MetaNode(target.type_key, target.attrs, None, parts)


#: Stands for a value that a diagnostic names already.
WRONG = object()


def _is_device(value: AnyValue) -> bool:
    """Whether a value may be a virtual device: a node of the section, a missing one, a name, a number."""
    if isinstance(value, MetaNode):
        return value.type_key == "VirtualDevice"
    return value is None or value is WRONG or isinstance(value, (str, int, MetaRef))


class Pair:
    """One attribute: its name, its value, its tokens, and offsets inside the first of them where `end` is not 0."""

    __slots__ = ("end", "first", "last", "name", "start", "value", "value_start")

    def __init__(self, name: str, value: AnyValue, first: int, last: int, start: int = 0, value_start: int = 0, end: int = 0) -> None:
        self.name = name
        self.value = value
        self.first = first
        self.last = last
        self.start = start
        self.value_start = value_start
        self.end = end


class AttributeActions:
    """Makes attributes and type arguments.

    A list of them holds `Pair`s, types, and coarse tokens `(text, token)` that `flatten` cuts.
    """

    def __init__(self, reports: Reports, types: TypeNames, meta: MetaValues) -> None:
        self.reports = reports
        self.types = types
        self.meta = meta
        #: The depth of nested lists and maps among the values, by id; each beside its value, which keeps the id.
        self.depths: dict[int, tuple[int, AnyValue]] = {}

    # -- places

    def name_place(self, pair: Pair) -> Span:
        if pair.end:
            return self.reports.within(pair.first, pair.start, pair.start + len(pair.name))
        return self.reports.place(pair.first, pair.last)

    def value_place(self, pair: Pair) -> Span:
        if pair.end:
            return self.reports.within(pair.first, pair.value_start, pair.end)
        return self.reports.place(min(pair.first + 1, pair.last), pair.last)

    # -- lists of attributes

    def flatten(self, items: list[AnyValue]) -> tuple[list[Pair], list[Type]]:
        """The attributes and type arguments of a list; reports an attribute that is given twice."""
        pairs: list[Pair] = []
        types: list[Type] = []
        for item in items:
            if item.__class__ is tuple:
                pairs += self._coarse_pairs(*item)
            elif item.__class__ is Pair:
                pairs.append(item)
            elif isinstance(item, Type):
                types.append(item)
        seen: dict[str, Pair] = {}
        for pair in pairs:
            before = seen.setdefault(pair.name, pair)
            if before is not pair:
                title = f"attribute `{shown(pair.name)}` is given twice"
                also = [(self.name_place(before), "first here")]
                self.reports.add(error("R0205", title, self.name_place(pair), "here again", also=also, notes=_ONCE))
        return pairs, types

    def values(self, items: list[AnyValue]) -> dict[str, AnyValue]:
        """The attributes of a list by name, in their order; reports a wrong `virtual_device`."""
        pairs = self.flatten(items)[0]
        for pair in pairs:
            if pair.name == "virtual_device" and not _is_device(pair.value):
                title = "the attribute `virtual_device` must be a device"
                notes = ['a device is a name, such as "cpu", or a VirtualDevice']
                self.reports.add(error("R0109", title, self.value_place(pair), notes=notes))
        return {p.name: p.value for p in pairs}

    def virtual_device(self, items: list[AnyValue], at: int) -> AnyValue:
        """The virtual device in the braces behind token `at`, a variable that is bound; reports any other attribute."""
        values = self.values([(item, at + 2) if item.__class__ is str else item for item in items])
        for name in values:
            if name != "virtual_device":
                self.reports.unknown("R0203", "attribute", name, self.reports.place(at + 2), ["virtual_device"])
        return values.get("virtual_device")

    def _coarse_pairs(self, text: str, at: int) -> list[Pair]:
        """The attributes of a coarse token `a=1, b=[2, 3], c="x"`."""
        pairs: list[Pair] = []
        stack: list[list[AnyValue]] = []
        name, start, begin, behind = "", 0, 0, -1
        for piece in _PIECE.finditer(text):
            key, quoted, sign, word, odd = piece.groups()
            value: AnyValue
            if odd is not None:
                place = self.reports.within(at, piece.start(), piece.end())
                self.reports.add(error("R0101", f"`{odd}` stands where an attribute's value is wanted", place))
                continue
            if sign == "," or not piece.group().strip():
                continue
            if stack and sign != "]" and behind >= 0:
                difference = self._difference(stack[-1][-1], piece, text, at, behind)
                if difference is not None:
                    stack[-1][-1], behind = difference, piece.end()
                    continue
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

    def _difference(self, left: AnyValue, piece: re.Match[str], text: str, at: int, end: int) -> AnyValue | None:
        """The extent `b - 1` of a list's last element, which ends at `end`, and a word; None where they are two elements."""
        word = piece[4] or ""
        if not word.startswith("-") or "," in text[end : piece.start()]:
            return None
        word = word[1:].strip()
        if not isinstance(left, TypeVar) and word not in self.types.variables:
            return None
        right = self._word(word, at, piece.start(), piece.end())
        return self._computed("tir.Sub", left, right, self.reports.within(at, piece.start(), piece.end()))

    def _separated(self, text: str, at: int, end: int, begin: int) -> None:
        """Report two elements of a list that do not have one comma between them."""
        commas = text.count(",", end, begin)
        if commas == 0:
            place = self.reports.within(at, end, end)
            fix = Fix(place, ",", "put `,` here")
            self.reports.add(error("R0112", "`,` is missing between two elements", place, fix=fix))
        elif commas > 1:
            second = text.index(",", text.index(",", end) + 1)
            place = self.reports.within(at, second, second + 1)
            self.reports.add(error("R0101", "`,` stands here twice", place, fix=Fix(place, "", "leave it out")))

    def _word(self, word: str, at: int, start: int, end: int) -> AnyValue:
        if word in _WORDS:
            return _WORDS[word]
        if word[0].isdigit() or word[0] == "-" or word.startswith(("inf", "nan")):
            try:
                return attribute_number(word)
            except LiteralError as e:
                self.reports.add(error("R0105", str(e), self.reports.within(at, start, end)))
                return WRONG
        if word in self.types.variables:
            return self.types.variables[word]
        place, meant = self.reports.within(at, start, end), word.capitalize()
        if meant in _WORDS:
            fix = Fix(place, meant, f"write `{meant}`")
        else:
            fix = Fix(place, f'"{word}"', f'a string stands in quotes: `"{shown(word)}"`')
        self.reports.add(error("R0109", f"`{shown(word)}` is not an attribute's value", place, fix=fix))
        return WRONG

    def on_attrs_coarse(self, v: str, first: int, last: int) -> list[AnyValue]:
        return [(v, first)]

    def on_attrs_one(self, v: AnyValue, first: int, last: int) -> list[AnyValue]:
        return [v]

    def on_attrs_more(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        item = v[2]
        v[0].append((item, last) if item.__class__ is str else item)
        return v[0]

    def on_type_arg(self, v: str, first: int, last: int) -> Type:
        return tensor_type(v, first, self.reports)

    def on_type_arg_fine(self, v: list[AnyValue], first: int, last: int) -> Type:
        return TensorType(v[3], v[6]) if v[6] else POISON

    # -- single attributes and their values

    def on_pair(self, v: list[AnyValue], first: int, last: int) -> Pair:
        return Pair(v[0][:-1].rstrip(), v[1], first, last)

    def on_pair_spaced(self, v: list[AnyValue], first: int, last: int) -> Pair:
        return Pair(v[0], v[2], first, last)

    def on_pair_quoted(self, v: list[AnyValue], first: int, last: int) -> Pair:
        return Pair(string(v[0]), v[2], first, last)

    def on_av_meta(self, v: str, first: int, last: int) -> AnyValue:
        return self.meta.find(v, first)

    def on_av_number(self, v: str, first: int, last: int) -> AnyValue:
        return self._word(v, first, 0, len(v))

    def on_av_negative(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        try:
            return attribute_number("-" + v[1])
        except LiteralError as e:
            self.reports.add(error("R0105", str(e), self.reports.place(first, last)))
            return WRONG

    def on_av_paren(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[1]

    def on_av_infix(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._computed(INFIX[v[1]], v[0], v[2], self.reports.place(first, last))

    def on_av_computed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key = COMPUTATIONS.get(v[0][:-1])
        if key is None:
            return self._unknown_value(f"{v[0][:-1]}(...)", first, last)
        return self._computed(key, v[1], v[3], self.reports.place(first, last))

    def _computed(self, key: str, left: AnyValue, right: AnyValue, place: Span) -> AnyValue:
        """The extent that an operator makes of two values; `WRONG` for others than whole numbers and names."""
        a, b = (extent(int(x), x.dtype.name) if isinstance(x, np.integer) else x for x in (left, right))
        if a is WRONG or b is WRONG:
            return WRONG
        if not all((isinstance(x, int) and not isinstance(x, bool)) or isinstance(x, TypeVar) for x in (a, b)):
            self.reports.add(error("R0109", "an extent is computed of whole numbers and names of extents alone", place))
            return WRONG
        for name in (a, b):
            if type(name) is TypeVar:
                name.kind = "ShapeVar"
        return computed_extent(key, a, b, place, self.reports)

    def on_av_string(self, v: str, first: int, last: int) -> str:
        return string(v)

    def on_av_name(self, v: str, first: int, last: int) -> AnyValue:
        return self._word(v, first, 0, len(v))

    def on_av_any(self, v: str, first: int, last: int) -> AnyValue:
        return ANY

    def on_av_empty(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return ()

    def on_av_list(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        items = tuple([item.data if item.__class__ is Constant and item.data.ndim == 0 else item for item in v[1]])
        return self._shallow(items, items, first, last)

    def on_av_empty_map(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return {}

    def on_av_map(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        entries = dict(v[1])
        return self._shallow(entries, entries.values(), first, last)

    def _shallow(self, value: AnyValue, items: Collection[AnyValue], first: int, last: int) -> AnyValue:
        """A list or map, or `WRONG` where it nests deeper than values may."""
        depth = 1
        for item in items:
            if item.__class__ is tuple or item.__class__ is dict:
                depth = max(depth, 1 + self.depths.get(id(item), (1,))[0])
        if depth > DEEPEST_VALUE:
            if self.reports.once("R0109", "too deep"):
                title = f"the value of an attribute nests more than {DEEPEST_VALUE} deep"
                self.reports.add(error("R0109", title, self.reports.place(first, last)))
            return WRONG
        if depth > 1:
            self.depths[id(value)] = depth, value
        return value

    def on_av_pairs(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        items = [(x, first + 1) if x.__class__ is str else x for x in v[1]]
        entries = self.values(items)
        return self._shallow(entries, entries.values(), first, last)

    # -- values as TVM prints them for people, where a text has no metadata section

    def on_av_quoted(self, v: str, first: int, last: int) -> str:
        return string(v)

    def on_av_set(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return tuple(map(string, v[1]))

    def on_av_null(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        if v[1] == "nullptr":
            return None
        return self._unknown_value(f"({v[1]})", first, last)

    def on_av_cast(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._number_of(v[1], attribute_number("-" * (len(v) - 4) + v[-1]), first, last)

    def on_av_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        """`T.int64(3)`, and a device of which nothing is known: `VirtualDevice(?)`."""
        name = v[0][:-1]
        if name in _DEVICES and v[1] is ANY:
            return device_node()
        if name.startswith("T.") and isinstance(v[1], (bool, int, float)):
            return self._number_of(name.removeprefix("T."), v[1], first, last)
        return self._unknown_value(f"{name}(...)", first, last)

    def on_av_node(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        items = [(_ADDRESS.sub(lambda address: " " * len(address[0]), x), first + 1) if x.__class__ is str else x for x in v[1]]
        pairs = [pair for pair in self.flatten(items)[0] if pair.name != "id"]
        name = v[0][:-1]
        fields = _FIELDS.get(name)
        if fields is None:
            return self._unknown_value(f"{name}(...)", first, last)
        for pair in pairs:
            wanted = fields.get(pair.name)
            if wanted is None:
                self.reports.unknown("R0203", "attribute", pair.name, self.name_place(pair), fields)
            elif pair.value is not WRONG and not _is_a(pair.value, wanted):
                title = f"`{pair.name}` of a {name} must be {wanted[1]}"
                self.reports.add(error("R0109", title, self.value_place(pair)))
            else:
                continue
            return WRONG
        values = {pair.name: pair.value for pair in pairs if pair.value is not None}
        if WRONG in values.values():
            return WRONG
        if name in _DEVICES:
            target = values.get("target")
            kind = values.get("device_type", -1)
            if target is not None and kind > 1:
                target = _compiles_for(target, kind)
            return device_node(kind, values.get("virtual_device_id", -1), target, values.get("memory_scope", ""))
        keys = list(values.get("keys", ()))
        options = {key: list(x) if isinstance(x, tuple) else x for key, x in values.get("attrs", {}).items()}
        return target_node(values.get("kind", ""), 1, keys, options, values.get("tag", ""), values.get("host"))

    def _number_of(self, dtype: str, value: AnyValue, first: int, last: int) -> AnyValue:
        """A number of an element type, as attributes hold it."""
        try:
            if dtype in ("bool", "int32"):
                return bool(value) if dtype == "bool" else int(value)
            return np.dtype(dtype).type(value) if is_dtype(dtype) else self._unknown_value(dtype, first, last)
        except (TypeError, ValueError, OverflowError):
            return self._unknown_value(dtype, first, last)

    def _unknown_value(self, text: str, first: int, last: int) -> AnyValue:
        notes = [f"values that are written so are {', '.join(f'{name}(...)' for name in _FIELDS)}"]
        title = f"`{shown(text)}` is not an attribute's value"
        self.reports.add(error("R0109", title, self.reports.place(first, last), notes=notes))
        return WRONG

    def on_amap_first(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return [(string(v[0]), v[2])]

    def on_amap_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append((string(v[2]), v[4]))
        return v[0]


__all__ = ["WRONG", "AttributeActions", "Pair"]
