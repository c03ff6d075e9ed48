"""Attributes in MLIR's text: numbers, lists, dictionaries, constants, and those of the dialects."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from relaylang.frontends.stablehlo.program import Resource, Splat, Symbol, Tensor
from relaylang.frontends.stablehlo.tokens import Tokens, unquoted
from relaylang.frontends.stablehlo.types import WrongType, read_type
from relaylang.runtime.budget import Budget

#: Attributes contain attributes at most so deep.
_DEEPEST = 32
#: Dialects whose attributes are read; others are passed over.
_DIALECTS = ("#stablehlo", "#vhlo", "#chlo", "#mhlo")
_ELEMENTS = re.compile(r"[\[\]\s]+")
_LAYOUT = re.compile(r"[\w, -]*\]x\[[\w, -]*\]->\[[\w, -]*")
_WORDS = {"true": True, "false": False, "unit": True}


class Attributes:
    """Reads attributes of a text. `aliases` are those that the text has given names."""

    def __init__(self, tokens: Tokens, budget: Budget) -> None:
        self.tokens = tokens
        self.budget = budget
        self.aliases: dict[str, Any] = {}
        self.types: dict[str, Any] = {}
        #: The type of the constant that was read last.
        self.constant_type: Any = None

    # ---- types

    def type(self) -> Any:
        """A type that is no function's."""
        t = self.tokens
        at, text = t.at, t.next()
        if text in self.types:
            return self.types[text]
        if text == "complex" and t.value == "<":
            start = t.at
            t.skip()
            text += t.text[start : t.at].strip()
        try:
            return read_type(text)
        except WrongType as wrong:
            t.fail(str(wrong), at)

    def type_list(self) -> list[Any]:
        """Types between parentheses, or one type."""
        t = self.tokens
        if not t.take("("):
            return [self.type()]
        types = []
        while not t.take(")"):
            types.append(self.type())
            while t.value in ("{", "loc"):
                self.skip_note()
            if t.value != ")":
                t.expect(",")
        return types

    def skip_note(self) -> None:
        """Go over a dictionary, or over a place `loc(...)`."""
        if self.tokens.value == "loc":
            self.tokens.next()
        self.tokens.skip()

    # ---- attributes

    def dictionary(self, depth: int = 0) -> dict[str, Any]:
        """`{name = attribute, ...}`; a name alone is true."""
        t = self.tokens
        t.expect("{")
        entries: dict[str, Any] = {}
        while not t.take("}"):
            if t.kind == "word":
                name = t.next()
            elif t.kind not in ("string", "alias") or not isinstance(name := self.attribute(depth + 1, typed=False), str):
                t.fail("the name of an attribute is missing here")
            entries[name] = self.attribute(depth + 1) if t.take("=") else True
            if t.value != "}":
                t.expect(",")
        return entries

    def attribute(self, depth: int = 0, typed: bool = True) -> Any:
        """Any attribute; None for one of another dialect. A type may come after a number or a text where it is `typed`."""
        t = self.tokens
        if depth > _DEEPEST:
            t.fail(f"attributes are more than {_DEEPEST} deep")
        if t.kind == "number":
            return self._number(typed)
        if t.kind == "string":
            text = unquoted(t.next())
            if typed and t.take(":"):
                self.type()
            return text
        if t.kind == "symbol":
            name = Symbol(self.symbol())
            while t.take("::"):
                name = Symbol(self.symbol())
            return name
        if t.kind == "alias":
            return self._dialect(depth)
        if t.value == "[":
            return self._list(depth)
        if t.value == "{":
            return self.dictionary(depth + 1)
        if t.value == "(":
            ins = self.type_list()
            t.expect("->")
            return ins, self.type_list()
        if t.kind == "type":
            return self.type()
        if t.kind == "word":
            return self._word(typed)
        if t.value in ("-", "<"):
            t.skip()
            return None
        t.fail("an attribute is missing here")

    def symbol(self) -> str:
        """The name of a function, without its `@`."""
        text = self.tokens.of_kind("symbol", "a name with @")[1:]
        return unquoted(text) if text.startswith('"') else text

    def _number(self, typed: bool = True) -> Any:
        t = self.tokens
        at, text = t.at, t.next()
        dtype = "float64" if re.search(r"[.eE]", text) and "x" not in text else "int64"
        if typed and t.take(":"):
            ty = self.type()
            dtype = ty.dtype if isinstance(ty, Tensor) else dtype
        value = self._elements([text], dtype, at)[0]
        return value.item() if value.dtype.kind in "iufb" else float(value)

    def _list(self, depth: int) -> list[Any]:
        t = self.tokens
        t.expect("[")
        items = []
        while not t.take("]"):
            items.append(self.attribute(depth + 1))
            if t.value != "]":
                t.expect(",")
        return items

    def _word(self, typed: bool) -> Any:
        t = self.tokens
        word = t.next()
        if word in _WORDS:
            if typed and t.take(":"):
                self.type()
            return _WORDS[word]
        if word == "array" and t.value == "<":
            return self._array()
        if word == "dense" and t.value == "<":
            return self.dense()
        if word == "dense_resource" and t.value == "<":
            return self._resource()
        if word == "loc":
            t.skip()
            return None
        if t.value == "<" and word not in ("complex",):
            t.skip()
            return None
        return word

    def _array(self) -> list[Any]:
        """`array<i64: 1, 2>`."""
        t = self.tokens
        t.expect("<")
        t.next()
        items = []
        if t.take(":"):
            while t.value != ">":
                items.append(_WORDS[t.next()] if t.value in _WORDS else self._number())
                if t.value != ">":
                    t.expect(",")
        t.expect(">")
        return items

    def _dialect(self, depth: int) -> Any:
        t = self.tokens
        name = t.next()
        if t.value != "<":
            return self.aliases.get(name)
        if not name.startswith(_DIALECTS):
            t.skip()
            return None
        t.expect("<")
        layout = _LAYOUT.match(t.text, t.at + 1) if t.value == "[" else None
        if layout is not None:
            attribute: Any = self.layout()
        elif t.kind == "word" and t.text[t.after : t.after + 3].lstrip().startswith("=") and "vhlo" not in name:
            attribute = self._fields(depth)
        elif t.kind == "word" and "." not in name and "<" not in t.text[t.at : t.after + 1]:
            attribute = self._enum()
        else:
            attribute = None if t.value == ">" else self.attribute(depth + 1)
        if t.value != ">":
            while t.value not in (">", ""):
                t.skip()
        t.expect(">")
        return attribute

    def _enum(self) -> str:
        """`comparison_direction LT`: the value is the last word."""
        word = self.tokens.next()
        return self.tokens.next() if self.tokens.kind == "word" else word

    def _fields(self, depth: int) -> dict[str, Any]:
        t = self.tokens
        fields = {}
        while t.value != ">":
            name = t.of_kind("word", "the name of a field")
            t.expect("=")
            fields[name] = self.attribute(depth + 1)
            if t.value != ">":
                t.expect(",")
        return fields

    def layout(self) -> dict[str, Any]:
        """The axes of a convolution: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
        t = self.tokens
        at, sides = t.at, []
        for after in ("x", "->", ""):
            sides.append([str(v) for v in self._list(0)])
            if after:
                t.expect(after)
        fields: dict[str, Any] = {}
        for side, axes, (first, second) in zip(
            ("input", "kernel", "output"), sides, (("b", "f"), ("o", "i"), ("b", "f")), strict=True
        ):
            space = {int(a): i for i, a in enumerate(axes) if a.isdecimal() and len(a) < 3}
            if axes.count(first) != 1 or axes.count(second) != 1 or sorted(space) != list(range(len(space))):
                t.fail("the axes of a convolution are wrong", at)
            names = ("output_feature", "input_feature") if side == "kernel" else ("batch", "feature")
            fields[f"{side}_{names[0]}_dimension"] = axes.index(first)
            fields[f"{side}_{names[1]}_dimension"] = axes.index(second)
            fields[f"{side}_spatial_dimensions"] = [space[i] for i in range(len(space))]
        return fields

    # ---- constants

    def dense(self) -> Any:
        """`dense<...> : type`: an array, or a `Splat` of one element."""
        t = self.tokens
        at, start = t.at, t.after
        end = t.text.find('">' if t.text[start : start + 1] == '"' else ">", start)
        if end < 0:
            t.fail("the constant has no end", at)
        end += t.text[end] == '"'
        body = t.text[start:end].strip()
        t.after = end + 1
        t.next()
        t.expect(":")
        ty = self.constant_type = self.type()
        if not isinstance(ty, Tensor) or None in ty.shape or ty.quantised is not None:
            t.fail("the type of a constant must be a tensor of known extents", at)
        return self.elements(body, ty, at)

    def elements(self, body: str, ty: Tensor, at: int) -> Any:
        """The array that the text inside `dense<...>` states."""
        t = self.tokens
        kind = np.dtype(("complex64" if ty.dtype == "float32" else "complex128") if ty.is_complex else ty.dtype)
        shape = tuple([int(d) for d in ty.shape if d is not None])
        count = 1
        for extent in shape:
            count *= extent
        if body.startswith('"'):
            try:
                data = bytes.fromhex(body[1:-1].removeprefix("0x"))
            except ValueError:
                t.fail("the bytes of a constant are no hexadecimal digits", at)
            self.budget.take_bytes(len(data), "reading its constants")
            return self.from_bytes(data, kind, shape, at)
        parts = [p.strip() for p in _ELEMENTS.sub(" ", body).split(",")] if body.strip("[] \n") else []
        if ty.is_complex:
            numbers = self._elements([p.strip("() ") for p in parts], ty.dtype, at)
            flat = numbers[::2] + 1j * numbers[1::2] if numbers.size % 2 == 0 else numbers
            flat = flat.astype(kind)
        else:
            flat = self._elements(parts, ty.dtype, at)
        if flat.size == 1 and "[" not in body and count != 1:
            return Splat(flat[0], shape)
        if flat.size != count:
            t.fail(f"a constant has {flat.size} elements, and its type {count}", at)
        return flat.reshape(shape)

    def from_bytes(self, data: bytes, kind: np.dtype, shape: tuple[int, ...], at: int = 0) -> Any:
        """The array of an attribute's bytes, in the order of the file; bools of bytes have eight to a byte."""
        count = 1
        for extent in shape:
            count *= extent
        if kind == np.bool_ and len(data) == -(-count // 8) != count:
            return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count].astype(bool).reshape(shape)
        if len(data) == kind.itemsize and count != 1:
            return Splat(np.frombuffer(data, kind)[0], shape)
        if len(data) != count * kind.itemsize:
            self.tokens.fail(f"a constant has {len(data)} bytes, and its type {count * kind.itemsize}", at)
        return np.frombuffer(data, kind).reshape(shape)

    def _elements(self, texts: list[str], dtype: str, at: int) -> np.ndarray:
        """Numbers of a text. Hexadecimal ones are the bits of real numbers."""
        kind = np.dtype(dtype)
        self.budget.take_bytes(len(texts) * 8, "reading its constants")
        try:
            if dtype == "bool":
                return np.array([{"true": True, "false": False, "1": True, "-1": True, "0": False}[s] for s in texts], bool)
            if kind.kind in "iu" or dtype in ("int4", "uint4"):
                wide = "uint64" if dtype == "uint64" else "int64"
                values = np.array([int(s, 0) for s in texts], wide)
                return values.astype(kind)
            bits = f"uint{8 * kind.itemsize}"
            if any("x" in s for s in texts):
                parts = [np.array(int(s, 16), bits).view(kind) if "x" in s else np.array(float(s)).astype(kind) for s in texts]
                return np.array(parts, kind)
            return np.array([float(s) for s in texts], np.float64).astype(kind)
        except (ValueError, KeyError, OverflowError):
            self.tokens.fail(f"the elements of a constant are no numbers of {dtype}", at)

    def _resource(self) -> Resource:
        """`dense_resource<name> : type`."""
        t = self.tokens
        t.expect("<")
        name = unquoted(t.next()) if t.kind == "string" else t.next()
        t.expect(">")
        t.expect(":")
        self.constant_type = self.type()
        return Resource(name, self.constant_type)


__all__ = ["Attributes"]
