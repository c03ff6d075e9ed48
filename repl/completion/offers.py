"""The offers at a cursor, by the kind of its place. Equally good ones keep their order."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Constructor,
    Expr,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    IRModule,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    type_text,
)
from relaylang.ir.types import READABLE
from relaylang.ops import OPS, domains, extensions
from relaylang.ops.common import COMMON
from relaylang.ops.record import AttrField, Op
from relaylang.repl.calls import Bracket
from relaylang.repl.completion.expressions import Expressions, variable_name
from relaylang.repl.completion.fitting import Fitting, values_that_fit
from relaylang.repl.completion.names import Names
from relaylang.repl.completion.place import Cursor
from relaylang.repl.completion.ranking import Offer, Suggestion, quality, ranked
from relaylang.repl.opdoc import default_text, kind_text, value_text
from relaylang.repl.show import spelled
from relaylang.stdlib.library import FILES
from relaylang.syntax import parse_type
from relaylang.syntax.literals import is_dtype
from relaylang.syntax.symbols import Symbol
from relaylang.typing.terms import substitute

#: The description of an operator that nothing has used yet. A better one would need an import of its package.
ADDED = "an operator of an installed package"
_AT_TOP = ("def", "type", "import", "extern")
_STATEMENTS = ("let", "match", "if", "fn")
_OPERANDS = ("if", "match", "fn", "ref", "ref_read", "ref_write", "True", "False")
#: How many types of the text are offered where a type is written.
_WRITTEN_TYPES = 3
#: How many variables are offered, the last ones of those that the word begins.
_MOST_VARIABLES = 200
#: How many other variables are asked for shapes.
_MOST_OTHERS = 50
#: How many tokens in front of the cursor are looked at for variables whose types matter.
_MOST_TOKENS = 200
_ANY = TypeVar("A")
#: The types of the words that read and write references.
_REFERENCES: dict[str, Type] = {
    "ref_read": FuncType([RefType(_ANY)], _ANY, [_ANY]),
    "ref_write": FuncType([RefType(_ANY), _ANY], TupleType([]), [_ANY]),
}
#: The number of a value in the metadata section.
_NUMBER_OF = re.compile(r"\[\s*(\d+)\s*\]\Z")


def complete(before: str, names: Names, after: str = "") -> list[Suggestion]:
    """The completions behind a text, the best first. `after` is the text behind the cursor.

    An editor's text begins at the definition around the cursor. A string's offer has no quote where `after` has it.
    """
    cursor = Cursor(before)
    if cursor.hidden or cursor.word[:1].isdigit():
        return []
    suggestions = ranked(_Place(cursor, names).offers(), cursor.word)
    if cursor.in_string and after.startswith('"'):
        suggestions = [s._replace(text=s.text.removesuffix('"')) for s in suggestions]
    return suggestions


class _Place:
    """A cursor with the names known there."""

    def __init__(self, cursor: Cursor, names: Names) -> None:
        self.cursor = cursor
        self.names = names

    @cached_property
    def expressions(self) -> Expressions:
        return Expressions(self.cursor.text, self.names.functions(), self.names.definitions())

    def offers(self) -> Iterator[Offer]:
        cursor = self.cursor
        attribute = self._attribute()
        clause = cursor.clause()
        if cursor.in_reference:
            yield from self._metadata()
        elif cursor.behind_value:
            yield from self._parts_of_value()
        elif cursor.back() == "import":
            yield from (Offer(f'"{name}"', "file") for name in FILES)
        elif attribute is not None:
            yield from self._values(*attribute)
        elif cursor.back() == "extern":
            yield Offer("type", "keyword")
        elif cursor.in_string or cursor.defines or cursor.in_type_definition:
            return
        elif cursor.in_tensor() is not None:
            yield from self._tensor_parts()
        elif cursor.at_type:
            yield from self._types()
        elif cursor.behind_branch:
            yield Offer("else", "keyword")
        elif clause is not None:
            yield from self._patterns(*clause)
        elif cursor.word.startswith("@"):
            yield from self._functions(self._fitting(self._variables()))
        elif not cursor.behind_operand:
            yield from self._expressions()

    # -- attributes

    def _operator(self) -> Op | None:
        """The called operator. None for a broken package; the call reports the failure."""
        try:
            return extensions.find(self.cursor.call.name) if self.cursor.call is not None else None
        except RelayError:
            return None

    def _attribute(self) -> tuple[Op, AttrField] | None:
        """The attribute whose value is written here."""
        call, op = self.cursor.call, self._operator()
        if call is None or op is None or call.attribute is None or call.attribute not in op.schema:
            return None
        return op, op.schema[call.attribute]

    def _values(self, op: Op, field: AttrField) -> Iterator[Offer]:
        if self.cursor.back() != "=":
            return  # inside a list
        default = f"default of {op.name}"
        known = domains.offered(op, field)
        fitting: Sequence[object] = ()
        if len(known) > 1 and field.kind == "str":
            fitting = values_that_fit(op, field.name, known, self.cursor, self._variables(), self.expressions)
        for value in sorted(known, key=lambda value: value not in fitting):
            yield Offer(value_text(value), "value", default if value == field.default else field.name)
        if not known and field.default is not None:
            yield Offer(value_text(field.default), "value", default)
        if field.optional and not self.cursor.in_string:
            yield Offer("None", "value", default if field.default is None and not field.required else field.name)

    def _attributes(self, op: Op) -> Iterator[Offer]:
        named = self.cursor.call.given if self.cursor.call is not None else ()
        fields = [field for field in op.schema.values() if field.name not in named]
        for field in sorted(fields, key=lambda f: not f.required or f.optional):
            yield Offer(f"{field.name}=", "attribute", f"{kind_text(field)}; {default_text(field)}")

    # -- types

    def _tensor_parts(self) -> Iterator[Offer]:
        part, number = self.cursor.in_tensor() or (0, -1)
        if part:
            yield from self._dtypes()
        elif number < 0:
            yield from (Offer(shape, "type", "shape") for shape in dict.fromkeys(s for s, _ in self._tensors()))
        else:
            extents = [shape[1:-1].split(",") for shape, _ in self._tensors()]
            there = [one[number].strip() for one in extents if len(one) > number and one[number].strip()]
            others = [extent.strip() for one in extents for extent in one if extent.strip()]
            for extent in dict.fromkeys([*there, *self._type_variables(), *others, "?"]):
                yield Offer(extent, "type", "any extent" if extent == "?" else "extent")

    def _tensors(self) -> Iterator[tuple[str, str]]:
        """The shapes and texts of tensor types: those in the text, the last first, then those of known variables."""
        code, text = self.cursor.code, self.cursor.text
        for i in range(len(code) - 1, -1, -1):
            if code[i].text != "Tensor" or i + 2 >= len(code) or code[i + 2].text != "(":
                continue
            shape_end = text.find(")", code[i].start) + 1
            end = text.find("]", shape_end) + 1
            if shape_end and end and "\n" not in text[code[i].start : end]:
                yield text[code[i + 2].start : shape_end], text[code[i].start : end]
        others = self.names.variables()
        for ty in (others[name] for name in reversed(list(others)[-_MOST_OTHERS:])):
            if isinstance(ty, TensorType) and ty.shape:
                says = type_text(ty)
                yield says[len("Tensor[") : says.index(")") + 1], says

    def _type_variables(self) -> list[str]:
        """The type variables of the definition."""
        code = self.cursor.code
        for i, token in enumerate(code[:-3]):
            if token.text in ("def", "type") and code[i + 2].text == "[":
                end = next((k for k in range(i + 3, len(code)) if code[k].text == "]"), len(code))
                return [t.text for t in code[i + 3 : end] if t.kind == "name"]
        return []

    def _dtypes(self) -> Iterator[Offer]:
        used = Counter(t.text for t in self.cursor.code if t.kind == "type" and is_dtype(t.text))
        names = dict.fromkeys([*(name for name, _ in used.most_common()), *domains.ELEMENT_TYPES])
        yield from (Offer(name, "type", "element type") for name in names)

    def _types(self) -> Iterator[Offer]:
        written = list(dict.fromkeys(text for _, text in self._tensors()))
        yield from (Offer(text, "type") for text in written[:_WRITTEN_TYPES])
        yield from (Offer(name, "type", "type variable") for name in self._type_variables())
        for header, data in self.names.definitions().items():
            yield Offer(header.name_hint + "[" * bool(data.type_vars), "type", _constructors(data))
        yield from (Offer(name, "type") for name in self.cursor.table.types)
        yield Offer("Tensor[", "type", "Tensor[(2, 3), float32]")
        yield from self._dtypes()
        yield from (Offer(text, "keyword", says) for text, says in (("fn", "fn (int32) -> int32"), ("ref", "ref(int32)")))

    # -- metadata and fields

    def _metadata(self) -> Iterator[Offer]:
        """The section's kinds of values in `meta[...]`, and the numbers behind one: those that follow the text's first."""
        if self.cursor.back(2) != "]":
            yield Offer("relay.Constant", "value", "constants of the metadata section")
            return
        begun = self.cursor.back(3)
        used = [t.text for t in self.cursor.table.tokens if t.kind == "reference" and t.text[5:].startswith(begun)]
        numbers = sorted({int(match[1]) for text in used if (match := _NUMBER_OF.search(text)) is not None})
        following = numbers[-1] + 1 if numbers else 0
        yield from (Offer(str(n), "value", "number in the metadata section") for n in dict.fromkeys([following, *reversed(numbers)]))

    def _parts_of_value(self) -> Iterator[Offer]:
        """The fields of a call's result, or of an expression in brackets, behind its dot."""
        ty = self.expressions.type_of(self.cursor.operand(), self._variables())
        if isinstance(ty, TupleType):
            yield from (Offer(f".{i}", "variable", _type_says(field)) for i, field in enumerate(ty.fields))

    # -- clauses

    def _patterns(self, level: int, matched: tuple[int, int]) -> Iterator[Offer]:
        """The constructors of the matched type that no clause takes whole; inside a pattern, those of its part's type."""
        ty = self._part(self.cursor.brackets[:level], self.expressions.type_of(self.cursor.code[slice(*matched)], self._variables()))
        if level:
            yield from map(_constructor, self._of(ty))
        else:
            patterns = self.cursor.clauses(level)
            names = [[t.text for t in pattern if t.kind == "name" and t.text != "_"] for pattern in patterns]
            covered = {one[0] for one in names if len(one) == 1}
            known = self._of(ty) if ty is not None else self._siblings(covered)
            yield from (_constructor(c) for c in known if c.name_hint not in covered)
        yield Offer("_", "keyword", "anything")

    def _siblings(self, names: set[str]) -> list[Constructor]:
        """The constructors of the type that has one of these names; all constructors where none has."""
        types = [data.constructors for data in self.names.definitions().values()]
        alike = [constructors for constructors in types if any(c.name_hint in names for c in constructors)]
        return [c for constructors in alike[:1] or types for c in constructors]

    def _part(self, brackets: Sequence[Bracket], ty: Type | None) -> Type | None:
        """The type of a part of a pattern, inside brackets of constructors and tuples. `ty` is the whole's."""
        for bracket in reversed(brackets):
            name = self.cursor.code[bracket.at - 1]
            fields = self._fields_of(name.text, ty) if name.kind == "name" else ty.fields if isinstance(ty, TupleType) else ()
            ty = fields[len(bracket.commas)] if len(bracket.commas) < len(fields) else None
        return ty

    def _fields_of(self, constructor: str, ty: Type | None) -> Sequence[Type]:
        """The types of a constructor's fields in a value of a type, with its arguments where these are known."""
        c = self._constructor_named(constructor)
        data = self.names.definitions().get(c.belong_to) if c is not None else None
        if c is None or data is None:
            return ()
        arguments = ty.args if isinstance(ty, TypeCall) else ()
        return [substitute(field, {id(v): a for v, a in zip(data.type_vars, arguments)}) for field in c.inputs]

    def _of(self, ty: Type | None) -> list[Constructor]:
        """The constructors of a type."""
        head = ty.func if isinstance(ty, TypeCall) else ty
        if not isinstance(head, GlobalTypeVar):
            return []
        return [c for var, data in self.names.definitions().items() if var.name_hint == head.name_hint for c in data.constructors]

    # -- expressions

    def _variables(self) -> dict[str, Type | None]:
        """The variables that hold here, the last one first: the nearest that the word begins, and those of the statement."""
        bound = self.cursor.table.visible(len(self.cursor.text)).values()
        word_at = len(self.cursor.text) - len(self.cursor.word)
        being_bound = self.cursor.bound
        here = sorted(
            (s for s in bound if s.definition is not None and s.definition.start < word_at and s.name != being_bound),
            key=lambda s: -s.begin,
        )
        mentioned = {t.text for t in self.cursor.code[-_MOST_TOKENS:] if t.kind == "local"}
        mentioned.add(self.cursor.word.rpartition(".")[0])  # whose field is written
        near = {s.name: s for s in [s for s in here if self._begins(s.name)][:_MOST_VARIABLES]}
        near |= {s.name: s for s in here if s.name in mentioned and s.name not in near}
        known = self.names.types_of(self.cursor.text, list(near.values()))
        out = {name: known.get(name) or self._annotation(symbol) for name, symbol in near.items()}
        for name, symbol in reversed(near.items()):
            out[name] = out[name] or self._matched(symbol, out) or self._valued(symbol, out)
        self._add_session(out, mentioned)
        return out

    def _add_session(self, out: dict[str, Type | None], mentioned: set[str]) -> None:
        """Add the session's variables, the last one first, and those that the statement mentions."""
        others = self.names.variables()
        for name in reversed(list(others)):
            if len(out) >= _MOST_VARIABLES:
                break
            text = spelled("%", name)
            if text not in out and (text in mentioned or self._begins(text)):
                out[text] = others[name]
        for text in mentioned - out.keys():
            name = variable_name(text)
            if name in others:
                out[text] = others[name]

    def _matched(self, symbol: Symbol, variables: Mapping[str, Type | None]) -> Type | None:
        """The type of a variable in a pattern, from that of the matched value."""
        assert symbol.definition is not None
        cursor = self.cursor.before(symbol.definition)
        clause = cursor.clause() if cursor.back() in ("(", ",", "{") else None
        if clause is None:
            return None
        level, matched = clause
        return self._part(cursor.brackets[:level], self.expressions.type_of(cursor.code[slice(*matched)], variables))

    def _valued(self, symbol: Symbol, variables: Mapping[str, Type | None]) -> Type | None:
        """The type of a variable's value, up to the end of its statement."""
        code = self.cursor.code
        begin = bisect_left(code, symbol.value_start, key=lambda t: t.start) if symbol.value_start >= 0 else len(code)
        around = self.cursor.pairs.around
        ends = (i for i in range(begin, len(code)) if code[i].text == ";" and around[i] == around[begin])
        end = next(ends, None)
        return self.expressions.type_of(code[begin:end], variables) if end is not None else None

    def _begins(self, name: str) -> bool:
        return not self.cursor.word.startswith("%") or quality(self.cursor.word, name) is not None

    def _annotation(self, symbol: Symbol) -> Type | None:
        """The type that is written behind a variable's name."""
        assert symbol.definition is not None
        code = self.cursor.code
        at = bisect_left(code, symbol.definition.end, key=lambda t: t.start)
        if at + 1 >= len(code) or code[at].text != ":":
            return None
        around, closing = self.cursor.pairs.around, self.cursor.pairs.closing.get(self.cursor.pairs.around[at])
        ends = (i for i in range(at + 1, len(code)) if i == closing or (around[i] == around[at] and code[i].text in (",", "=", ";")))
        end = next(ends, None)
        return self._type(self.cursor.text[code[at + 1].start : code[end].start]) if end is not None else None

    def _type(self, text: str) -> Type | None:
        """The type that a text says."""
        try:
            return parse_type(text, module=IRModule({}, self.names.definitions()))
        except RelayError:
            return None

    def _expressions(self) -> Iterator[Offer]:
        cursor, call, op = self.cursor, self.cursor.call, self._operator()
        variables = self._variables()
        if cursor.word.startswith("%"):
            yield from self._fields(variables)
        fitting = self._fitting(variables)
        used = {t.text for t in cursor.code[cursor.brackets[0].at :] if t.kind == "local"} if cursor.nest else set()
        in_order = sorted(variables, key=lambda name: (*fitting.rank(variables[name]), name in used))
        shown = [Offer(name, "variable", _type_says(variables[name])) for name in in_order]
        if cursor.word.startswith("%"):
            yield from shown
            return
        if op is not None and call is not None and cursor.at_argument and (call.given or self._all_given(op, call.index)):
            yield from self._attributes(op)
            return
        if cursor.begins_statement:
            yield from (Offer(word, "keyword") for word in ((*_AT_TOP, *_STATEMENTS) if cursor.at_top else _STATEMENTS))
        yield from shown
        if op is not None and cursor.at_argument:
            yield from self._attributes(op)
        yield from self._constructors(fitting)
        yield from self._functions(fitting)
        if cursor.word:
            yield from self._operators()
        yield from (Offer(word, "keyword") for word in _OPERANDS)

    def _all_given(self, op: Op, index: int) -> bool:
        """Whether all arguments of an operator stand in front of the one with this number."""
        return not op.variadic and index >= len(op.args)

    def _fitting(self, variables: dict[str, Type | None]) -> Fitting:
        callee = self._operator() or self._callee(variables)
        module = IRModule({}, self.names.definitions())
        return Fitting(self.cursor, variables, callee, module, self.expressions, self._wanted())

    def _wanted(self) -> Type | None:
        """The type that is written behind a variable whose value begins here."""
        code = self.cursor.code
        if self.cursor.back() != "=":
            return None
        at = next((i for i in range(len(code) - 1, max(0, len(code) - _MOST_TOKENS), -1) if code[i].text in ("let", ";")), -1)
        if at < 0 or code[at].text != "let" or at + 3 >= len(code) or code[at + 2].text != ":":
            return None
        return self._type(self.cursor.text[code[at + 3].start : code[-1].start])

    def _callee(self, variables: Mapping[str, Type | None]) -> Expr | None:
        """The called constructor, or a variable of a called function's type."""
        name = self.cursor.call.name if self.cursor.call is not None else ""
        ty = _REFERENCES.get(name) or variables.get(name)
        if name.startswith("@"):
            ty = self.names.functions().get(name[1:])
        if isinstance(ty, FuncType):
            return Var("f", ty)
        return self._constructor_named(name)

    def _constructor_named(self, name: str) -> Constructor | None:
        return next((c for data in self.names.definitions().values() for c in data.constructors if c.name_hint == name), None)

    def _fields(self, variables: dict[str, Type | None]) -> Iterator[Offer]:
        """The fields of a tuple behind its dot."""
        name, dot, _ = self.cursor.word.rpartition(".")
        ty = variables.get(name) if dot else None
        if isinstance(ty, TupleType):
            yield from (Offer(f"{name}.{i}", "variable", _type_says(field)) for i, field in enumerate(ty.fields))

    def _functions(self, fitting: Fitting) -> Iterator[Offer]:
        """The functions, those first whose result fits."""
        known = self.names.functions()
        results = {name: ty.ret_type for name, ty in known.items() if isinstance(ty, FuncType)}
        for name in sorted(known, key=lambda name: not fitting.fits(results.get(name))):
            yield Offer(spelled("@", name), "function", _type_says(known[name]))

    def _constructors(self, fitting: Fitting) -> Iterator[Offer]:
        """The constructors, those of fitting types first."""
        known = self.names.definitions()
        data_types = {var: TypeCall(var, [IncompleteType() for _ in data.type_vars]) for var, data in known.items()}
        for var in sorted(known, key=lambda var: not fitting.fits(data_types[var])):
            yield from map(_constructor, known[var].constructors)
        yield from (Offer(name, "constructor") for name in self.cursor.table.constructors)

    def _operators(self) -> Iterator[Offer]:
        """The operators: those that the text uses already first, then the commoner ones."""
        used = set(self.cursor.table.operators)
        common = {name: i for i, name in enumerate(COMMON)}
        most = len(common)
        listed = sorted(extensions.names(), key=lambda n: (n not in used, common.get(n, most), OPS[n].level if n in OPS else 99, n))
        yield from (Offer(name, "operator", OPS[name].signature() if name in OPS else ADDED) for name in listed)


def _constructor(c: Constructor) -> Offer:
    inside = f"({', '.join(map(type_text, c.inputs))})" if c.inputs else ""
    return Offer(c.name_hint, "constructor", f"{c.name_hint}{inside} -> {c.belong_to.name_hint}")


def _constructors(data: TypeData) -> str:
    return " | ".join(c.name_hint for c in data.constructors)


#: The texts of types by the type itself: an editor asks for the same functions with each word.
_TEXTS: dict[int, tuple[Type, str]] = {}
_MOST_TEXTS = 4096


def _type_says(ty: Type | None) -> str:
    if ty is None:
        return ""
    if id(ty) not in _TEXTS:
        if len(_TEXTS) >= _MOST_TEXTS:
            _TEXTS.clear()
        _TEXTS[id(ty)] = ty, type_text(ty, READABLE)
    return _TEXTS[id(ty)][1]


__all__ = ["ADDED", "complete"]
