"""The extents that a model names: `batch`, `past + 1`, torch's `Mul(Integer(2), Symbol('s0'))`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from relaylang.ir import ANY, TypeVar
from relaylang.ir.extents import combine, names_in, solve
from relaylang.ir.types import Dim
from relaylang.syntax.name_text import KEYWORDS

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: A longer text is a name, not an expression.
_LONGEST = 200
_SIGNS: Mapping[type[ast.operator], str] = {
    ast.Add: "tir.Add",
    ast.Sub: "tir.Sub",
    ast.Mult: "tir.Mul",
    ast.Div: "tir.FloorDiv",
    ast.FloorDiv: "tir.FloorDiv",
    ast.Mod: "tir.FloorMod",
}
#: Functions of extents in texts of SymPy, and in Relay's.
_FUNCTIONS = {
    "Add": "tir.Add",
    "Mul": "tir.Mul",
    "FloorDiv": "tir.FloorDiv",
    **dict.fromkeys(("Mod", "floormod"), "tir.FloorMod"),
    **dict.fromkeys(("Min", "min"), "tir.Min"),
    **dict.fromkeys(("Max", "max"), "tir.Max"),
}


class Extents:
    """The named extents of one model. A name that the caller fixes is a number."""

    def __init__(self) -> None:
        self._names: dict[str, Dim] = {}
        self._words: set[str] = set()
        self.fixed: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def declare(self, texts: Iterable[str]) -> None:
        """Note the texts of extents. Those that are names may stand in the others, which are expressions then."""
        for text in texts:
            if _NAME.fullmatch(text):
                self.named(text)

    def fix(self, shapes: Mapping[str, Sequence[Dim]], inputs: Mapping[str, Sequence[str]]) -> None:
        """Take what the options `shapes` say of names: `batch` is (1,), or an input is (1, 8) that has (batch, seq).

        `inputs` are the texts of the extents of each input. A name that gets two numbers stays a name. 8 for `2 * batch` is
        4 for `batch`.
        """
        numbers: dict[str, set[int]] = {}
        for name, shape in shapes.items():
            texts = inputs.get(name, [name] if name in self._names else [])
            for text, extent in zip(texts, shape):
                dim = self.dim(text)
                only = names_in(dim)
                known = solve(dim, int(extent), only[0]) if isinstance(extent, int) and len(only) == 1 else None
                if isinstance(known, int):
                    numbers.setdefault(next(t for t, n in self._names.items() if n is only[0]), set()).add(int(known))
        self.fixed.update({text: extents.pop() for text, extents in numbers.items() if len(extents) == 1})

    def named(self, text: str) -> Dim:
        """The extent with a name, whatever the name is made of; `?` for an empty one."""
        if not text or text == "?":
            return ANY
        if text in self.fixed:
            return self.fixed[text]
        known = self._names.get(text)
        if known is None:
            word = re.sub(r"\W", "_", text, flags=re.ASCII)
            word = f"n{word}" if word in KEYWORDS or not _NAME.fullmatch(word) else word
            number = 0
            while (unique := f"{word}_{number}" if number else word) in self._words:
                number += 1
            self._words.add(unique)
            known = self._names[text] = TypeVar(unique, "ShapeVar")
        return known

    def dim(self, text: str) -> Dim:
        """The extent of a text: of a name, or of an expression of names that were declared. Another text is a name, too."""
        if _NAME.fullmatch(text) or not text:
            return self.named(text)
        try:
            return self._computed(ast.parse(text.strip(), mode="eval").body) if len(text) <= _LONGEST else self.named(text)
        except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
            return self.named(text)

    def _computed(self, node: ast.expr) -> Dim:
        """The extent of an expression. Raises `KeyError` for names that nothing declares, and `ValueError` for other forms."""
        match node:
            case ast.Constant(value) if type(value) is int and abs(value) < 1 << 31:
                return value
            case ast.Name(name):
                return self.fixed[name] if name in self.fixed else self._names[name]
            case ast.BinOp(left, sign, right):
                divisor = self._computed(right)
                if divisor == 0 and not isinstance(sign, (ast.Add, ast.Sub, ast.Mult)):
                    raise ZeroDivisionError
                return combine(_SIGNS[type(sign)], self._computed(left), divisor)
            case ast.UnaryOp(ast.USub(), operand):
                return combine("tir.Mul", self._computed(operand), -1)
            case ast.Call(ast.Name("Integer" | "floor"), [operand]):
                return self._computed(operand)
            case ast.Call(ast.Name("Symbol"), [ast.Constant(str(name)), *_]):
                return self.named(name)
            case ast.Call(ast.Name(name), [first, *rest]) if rest:
                dim = self._computed(first)
                for operand in rest:
                    dim = combine(_FUNCTIONS[name], dim, self._computed(operand))
                return dim
        raise ValueError("this form computes no extent")


__all__ = ["Extents"]
