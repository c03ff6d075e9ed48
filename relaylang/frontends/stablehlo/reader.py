"""Reads MLIR's text with the dialects stablehlo, chlo, func and vhlo, in its generic and its pretty form."""

from __future__ import annotations

import binascii
from typing import Any

from relaylang.diagnostics.source import SourceFile
from relaylang.frontends.stablehlo.attributes import Attributes
from relaylang.frontends.stablehlo.forms import PRETTY, flattened, pretty
from relaylang.frontends.stablehlo.names import check_version, plain_name
from relaylang.frontends.stablehlo.program import Function, Op, Other, Program, Region
from relaylang.frontends.stablehlo.tokens import Tokens, unquoted
from relaylang.runtime.budget import Budget

#: Regions contain regions at most so deep.
DEEPEST = 48
#: An operation has at most so many results.
_RESULTS = 1 << 16
_FUNCTIONS = ("func.func", "func", "vhlo.func")
#: The attribute of a parameter that holds an open extent: its name.
_EXTENT = "jax.global_constant"
_RETURNS = ("func.return", "return", "stablehlo.return", "vhlo.return", "mhlo.return")


class Reader:
    """Reads one text."""

    def __init__(self, source: SourceFile, budget: Budget) -> None:
        self.tokens = Tokens(source)
        self.attributes = Attributes(self.tokens, budget)
        self.program = Program()
        self.values: dict[str, int] = {}
        #: The names that each open region has defined.
        self.scopes: list[list[str]] = []

    def run(self) -> Program:
        """All functions. Raises `RelayError` (R0802)."""
        t, depth = self.tokens, 0
        while t.kind != "end":
            if t.kind == "alias" or (t.kind == "type" and t.value.startswith("!")):
                self._alias()
            elif t.value == "{-#":
                self._resources()
            elif t.value == "}" and depth:
                depth -= 1
                t.next()
                self._tail()
            elif t.value in ("module", "builtin.module", '"builtin.module"'):
                depth += 1
                self._module()
            elif (name := plain_name(t.value.strip('"'))) in _FUNCTIONS:
                self._function(generic=t.kind == "string")
            elif t.value == "loc":
                self.attributes.skip_note()
            elif t.kind in ("word", "string") and "." in name:
                self._skip_op()
            else:
                t.fail("an operation of a module is missing here")
        if depth:
            t.fail("the module is not closed")
        if not self.program.functions:
            t.fail("it has no function")
        return self.program

    def _tail(self) -> None:
        """The end of a module in its generic form: `) {...} : () -> ()`."""
        t = self.tokens
        if t.take(")"):
            if t.value == "{":
                self.attributes.dictionary()
            if t.take(":"):
                self._signature()

    def _alias(self) -> None:
        t = self.tokens
        name = t.next()
        t.expect("=")
        if name.startswith("!"):
            self.attributes.types[name] = self.attributes.type()
        else:
            self.attributes.aliases[name] = self.attributes.attribute()

    def _module(self) -> None:
        t, a = self.tokens, self.attributes
        if t.next().startswith('"'):
            t.skip()
            if t.value == "<":
                t.next()
                a.dictionary()
                t.expect(">")
            t.expect("(")
        else:
            if t.kind == "symbol":
                t.next()
            if t.take("attributes"):
                a.dictionary()
        t.expect("{")
        if t.kind == "block":
            self._block_parameters()

    def _resources(self) -> None:
        t = self.tokens
        t.next()
        name = ""
        while not t.take("#-}"):
            if t.kind == "end":
                t.fail("the resources are not closed")
            if t.kind == "string" and name:
                text = unquoted(t.value)
                try:
                    # Four bytes with the alignment come first.
                    self.program.resources[name] = binascii.unhexlify(text.removeprefix("0x"))[4:]
                except ValueError:
                    t.fail("the bytes of a resource are no hexadecimal digits")
            if t.kind in ("word", "string"):
                name = unquoted(t.value) if t.kind == "string" else t.value
            t.next()

    def _skip_op(self) -> None:
        """Go over an operation of a module that is no function, to the next line that begins one."""
        t = self.tokens
        t.next()
        while t.kind != "end" and t.value != "}" and not (t.begins_line() and t.kind in ("word", "string", "alias", "type")):
            t.skip()

    # ---- functions

    def _function(self, generic: bool) -> None:
        t, a = self.tokens, self.attributes
        start = t.at
        t.next()
        self.values, self.scopes = {}, [[]]
        if generic:
            self._generic_function(start)
            return
        while t.kind == "word":
            t.next()  # public, private, nested
        name, names = a.symbol(), []
        region, notes = Region(), []
        t.expect("(")
        while not t.take(")"):
            if t.kind == "value":
                names.append(t.value[1:])
                self._parameter(region)
            else:
                a.type()
            notes.append(a.dictionary() if t.value == "{" else None)
            while t.value == "loc":
                a.skip_note()
            if t.value != ")":
                t.expect(",")
        types = a.type_list() if t.take("->") else []
        if t.take("attributes"):
            a.dictionary()
        if t.value == "{":
            self._add(Function(name, region, types, names, t.span(start), _extents(notes)), start)
            self._region(region)
        while t.value in ("loc", "{"):
            a.skip_note()

    def _generic_function(self, start: int) -> None:
        t = self.tokens
        op = self._generic("func.func", start, [])
        name, kind = op.attributes.get("sym_name"), op.attributes.get("function_type")
        if not isinstance(name, str) or len(op.regions) != 1:
            t.fail("a function has no name", start)
        types = list(kind[1]) if isinstance(kind, tuple) else []
        region = op.regions[0]
        names = [self.program.names[v][1:] for v in region.parameters]
        if region.ops:
            self._add(Function(name, region, types, names, t.span(start), _extents(op.attributes.get("arg_attrs"))), start)

    def _add(self, function: Function, start: int) -> None:
        if function.name in self.program.functions:
            self.tokens.fail(f"there are two functions @{function.name}", start)
        self.program.functions[function.name] = function

    # ---- regions and values

    def _region(self, region: Region, parameters: bool = True) -> None:
        """`{ operations }`, after its parameters where they stand in a `^block`."""
        t = self.tokens
        if len(self.scopes) > DEEPEST:
            t.fail(f"regions are more than {DEEPEST} deep")
        self.scopes.append([])
        t.expect("{")
        if t.kind == "block" and parameters:
            region.parameters += self._block_parameters()
        while not t.take("}"):
            if t.kind == "block":
                t.fail("a region has several blocks; Relay has none of such branches")
            region.ops.append(self._op())
        for name in self.scopes.pop():
            del self.values[name]

    def _block_parameters(self) -> list[int]:
        t = self.tokens
        t.next()
        region = Region()
        if t.take("("):
            while not t.take(")"):
                self._parameter(region)
                if t.value == "loc":
                    self.attributes.skip_note()
                if t.value != ")":
                    t.expect(",")
        t.expect(":")
        return region.parameters

    def _parameter(self, region: Region) -> None:
        """`%name: type`."""
        t = self.tokens
        at, name = t.at, t.of_kind("value", "a parameter")
        t.expect(":")
        region.parameters.append(self._define(name, self.attributes.type(), at))

    def _define(self, name: str, ty: Any, at: int) -> int:
        if name in self.values:
            self.tokens.fail(f"{name} is defined twice", at)
        self.values[name] = number = self.program.value(name, ty)
        self.scopes[-1].append(name)
        return number

    def use(self) -> int:
        """The number of the value that the current token names."""
        t = self.tokens
        at, name = t.at, t.of_kind("value", "a value")
        number = self.values.get(name)
        if number is None:
            t.fail(f"no operation before this one makes {name}", at)
        return number

    # ---- operations

    def _op(self) -> Op:
        t = self.tokens
        start, results = t.at, []
        while t.kind == "value":
            name, count = t.next(), 0
            if t.take(":"):
                text = t.of_kind("number", "the number of results")
                count = int(text) if text.isdecimal() and len(text) < 7 else _RESULTS
                if not 0 < count < _RESULTS:
                    t.fail("the number of results is wrong", start)
            results += [(name, f"{name}#{i}") for i in range(count)] if count else [(name, "")]
            if not t.take(","):
                t.expect("=")
                break
        if t.kind not in ("string", "word"):
            t.fail("an operation is missing here")
        generic = t.kind == "string"
        place = t.span(t.at)
        name = t.next().strip('"')
        check_version(name, t.source.name)
        name = plain_name(name)
        op = self._generic(name, start, results) if generic else self._pretty(name, start, results)
        op.span = place
        while t.value == "loc":
            self.attributes.skip_note()
        return op

    def _made(self, op: Op, results: list[tuple[str, str]], types: list[Any], start: int) -> Op:
        """The operation with its results defined."""
        if len(types) != len(results) and results:
            if "." in op.name and types:
                self.tokens.fail(f"{op.name} has {len(results)} results, and {len(types)} types", start)
            types = [Other("?")] * len(results)
        op.types = types
        many: dict[str, int] = {}
        for (name, numbered), ty in zip(results, types):
            if not numbered or many.setdefault(name, 0) == 0:
                result = self._define(name, ty, start)
                if numbered:
                    self.values[numbered] = result
                    self.scopes[-1].append(numbered)
            else:
                result = self._define(numbered, ty, start)
            many[name] = 1
            op.results.append(result)
        return op

    def _generic(self, name: str, start: int, results: list[tuple[str, str]]) -> Op:
        """`"name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        t, a = self.tokens, self.attributes
        op = Op(name, [], [], [], {}, [], t.span(start))
        t.expect("(")
        while not t.take(")"):
            op.operands.append(self.use())
            if t.value != ")":
                t.expect(",")
        if t.value == "[":
            t.fail("an operation has successors; Relay has none of such branches")
        if t.take("<"):
            op.attributes.update(a.dictionary())
            t.expect(">")
        if t.value == "(":
            t.next()
            while not t.take(")"):
                op.regions.append(self._inner())
                if t.value != ")":
                    t.expect(",")
        if t.value == "{":
            op.attributes.update(a.dictionary())
        t.expect(":")
        _, outs = self._signature()
        op.attributes = flattened(op.attributes)
        return self._made(op, results, outs, start)

    def _inner(self) -> Region:
        region = Region()
        self._region(region)
        return region

    def _signature(self) -> tuple[list[Any] | None, list[Any]]:
        """Types of operands (None where they are not stated) and of results."""
        a, t = self.attributes, self.tokens
        ins = a.type_list()
        if t.take("->"):
            return ins, a.type_list()
        while t.take(","):
            ins += a.type_list()
        return None, ins

    def _pretty(self, name: str, start: int, results: list[tuple[str, str]]) -> Op:
        """An operation in the form of its dialect: `PRETTY` tells what its words mean."""
        t, a = self.tokens, self.attributes
        op = Op(name, [], [], [], {}, [], t.span(start))
        if name in ("stablehlo.while", "stablehlo.reduce"):
            return self._while(op, start, results) if name == "stablehlo.while" else self._reduce(op, start, results)
        words: list[Any] = []
        self._items(op, words, 0)
        types: list[Any] = []
        if name == "stablehlo.constant":
            value = words[-1] if words else op.attributes.get("value")
            op.attributes["value"] = value
            types = [a.constant_type] if words and a.constant_type is not None else []
        if t.take(":"):
            ins, outs = self._signature()
            types = outs
            if ins is None and len(outs) != len(results):
                types = outs[-1:] * len(results)
        elif not types and results:
            t.fail(f"the types of {name} are missing here")
        op.attributes = flattened(pretty(name, op.attributes, words, t, start))
        return self._made(op, results, types, start)

    def _items(self, op: Op, words: list[Any], depth: int) -> None:
        """Operands, `name = attribute`, words and lists, up to the types."""
        t, a = self.tokens, self.attributes
        if depth > 4:
            t.fail("parentheses are too deep")
        while t.kind != "end" and t.value not in (":", ")", "}"):
            if t.kind == "value":
                op.operands.append(self.use())
            elif t.value == "(":
                t.next()
                self._items(op, words, depth + 1)
                t.expect(")")
            elif t.value == ",":
                t.next()
            elif t.value == "{":
                op.attributes.update(a.dictionary())
            elif t.value == "<":
                t.skip()
            elif t.value == "[":
                words.append(self._slices() if op.name in ("stablehlo.slice", "stablehlo.get_tuple_element") else a.attribute())
            elif t.kind == "word" and op.name == "stablehlo.constant":
                words.append(a.attribute())
                return
            elif t.kind == "word" and t.text[t.after : t.after + 2].strip()[:1] == "=":
                key = t.next()
                t.next()
                op.attributes[key] = self._entry(key)
            elif t.kind == "word":
                if op.name not in _RETURNS and t.begins_line() and t.value not in PRETTY:
                    t.fail(f"the types of {op.name} are missing here")
                words.append(t.next())
            elif t.kind in ("symbol", "string", "number", "alias"):
                words.append(a.attribute())
            else:
                t.fail(f"{op.name} has something else here than an operand or an attribute")

    def _entry(self, key: str) -> Any:
        """The value of `key = ...`: two lists with an x between them, the axes of a convolution, or an attribute."""
        t, a = self.tokens, self.attributes
        if key == "dim_numbers":
            return a.layout()
        if key == "window":
            return a.dictionary()
        attribute = a.attribute(typed=False)
        if t.value == "x" and t.kind == "word":
            t.next()
            return attribute, a.attribute()
        return attribute

    def _slices(self) -> list[list[int]]:
        """`[first:end:step, ...]`; the numbers between colons."""
        t = self.tokens
        t.expect("[")
        slices: list[list[int]] = [[]]
        while not t.take("]"):
            if t.take(","):
                slices.append([])
            elif not t.take(":"):
                text = t.of_kind("number", "a number")
                slices[-1].append(int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else -1)
        return slices if slices != [[]] else []

    def _while(self, op: Op, start: int, results: list[tuple[str, str]]) -> Op:
        """`(%a = %x, ...) : types attributes {...} cond { ... } do { ... }`."""
        t, a = self.tokens, self.attributes
        names = []
        t.expect("(")
        while not t.take(")"):
            names.append((t.at, t.of_kind("value", "a variable of the loop")))
            t.expect("=")
            op.operands.append(self.use())
            if t.value != ")":
                t.expect(",")
        types: list[Any] = []
        if t.take(":"):
            types = self._signature()[1]
        if t.take("attributes"):
            op.attributes.update(a.dictionary())
        if len(types) != len(names):
            t.fail(f"the loop has {len(names)} variables, and {len(types)} types", start)
        for word in ("cond", "do"):
            t.expect(word)
            region = Region()
            self.scopes.append([])
            region.parameters = [self._define(name, ty, at) for (at, name), ty in zip(names, types)]
            self._region(region, parameters=False)
            for name in self.scopes.pop():
                del self.values[name]
            op.regions.append(region)
        return self._made(op, results, types, start)

    def _reduce(self, op: Op, start: int, results: list[tuple[str, str]]) -> Op:
        """`(%x init: %c), ... applies op across dimensions = [0] : types`, or with `reducer(%a: t, %b: t) ... { ... }`."""
        t, a = self.tokens, self.attributes
        first: list[int] = []
        while t.take("("):
            op.operands.append(self.use())
            t.expect("init")
            t.expect(":")
            first.append(self.use())
            t.expect(")")
            t.take(",")
        op.operands += first
        applied = t.next() if t.take("applies") else ""
        t.expect("across")
        t.expect("dimensions")
        t.expect("=")
        op.attributes["dimensions"] = a.attribute()
        if t.value == "{":
            op.attributes.update(a.dictionary())
        t.expect(":")
        types = self._signature()[1]
        region = Region()
        if applied:
            self.scopes.append([])
            element = [self.program.types[v] for v in first[:1] * 2]
            region.parameters = [self.program.value(f"%{n}", ty) for n, ty in zip("ab", element)]
            result = self.program.value("%r", element[0] if element else None)
            span = t.span(start)
            region.ops = [
                Op(plain_name(applied), list(region.parameters), [result], element[:1], {}, [], span),
                Op("stablehlo.return", [result], [], [], {}, [], span),
            ]
            self.scopes.pop()
        else:
            t.expect("reducer")
            self.scopes.append([])
            pairs = Region()
            while t.take("("):
                while not t.take(")"):
                    self._parameter(pairs)
                    if t.value == "loc":
                        a.skip_note()
                    if t.value != ")":
                        t.expect(",")
            region.parameters = pairs.parameters[::2] + pairs.parameters[1::2]
            self._region(region, parameters=False)
            for name in self.scopes.pop():
                del self.values[name]
        op.regions.append(region)
        return self._made(op, results, types, start)


def _extents(notes: Any) -> dict[int, str]:
    """The names of extents that parameters hold, by their places, of the attributes of all."""
    entries = enumerate(notes if isinstance(notes, list) else [])
    return {i: note[_EXTENT] for i, note in entries if isinstance(note, dict) and isinstance(note.get(_EXTENT), str)}


def read_text(source: SourceFile, budget: Budget) -> Program:
    """The program of a text. Raises `RelayError` (R0802) with the place of the mistake."""
    return Reader(source, budget).run()


__all__ = ["DEEPEST", "Reader", "read_text"]
