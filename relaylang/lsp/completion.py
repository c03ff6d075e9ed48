"""Completion in an editor's text. A request follows a keystroke at once, so the text is not read again for it.

Names come from the tokens between the definition's beginning and the cursor. Types come from the last read version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from relaylang.ir import GlobalTypeVar, Type, TypeData
from relaylang.lsp import standard
from relaylang.lsp.analysis import Analysis
from relaylang.repl.completion import Suggestion, complete
from relaylang.syntax.symbols import Symbol

_BEGINS = re.compile(r"^[ \t]*(?:def|type|data|extern)\b", re.M)


class TextNames:
    """The names of a text whose last read version is known. `begin` is where the definition around the cursor begins."""

    def __init__(self, text: str, begin: int, known: Analysis) -> None:
        self._begin = begin
        self._versions = [version for version in (known, known.before) if version is not None and version.reading is not None]
        self._library = standard.imported(text)

    def variables(self) -> Mapping[str, Type | None]:
        return {}

    def functions(self) -> Mapping[str, Type | None]:
        out: dict[str, Type | None] = {}
        for version in self._versions:
            assert version.reading is not None
            out |= {name: ty for name, ty in version.reading.functions().items() if out.get(name) is None}
        for module in self._library:
            out |= {var.name_hint: f.checked_type for var, f in module.functions.items() if var.name_hint not in out}
        return out

    def definitions(self) -> Mapping[GlobalTypeVar, TypeData]:
        out: dict[GlobalTypeVar, TypeData] = {}
        for version in self._versions:
            assert version.reading is not None
            out = dict(version.reading.definitions())
            if out:
                break
        for module in self._library:
            out |= module.type_definitions
        return out

    def types_of(self, text: str, symbols: Sequence[Symbol]) -> Mapping[str, Type | None]:
        return {symbol.name: self._type_of(symbol) for symbol in symbols}

    def _type_of(self, symbol: Symbol) -> Type | None:
        """The type at the same offset of a version, else that of the same name."""
        assert symbol.definition is not None
        start = self._begin + symbol.definition.start
        value = self._begin + symbol.value_start if symbol.value_start >= 0 else -1
        for version in self._versions:
            if version.text.startswith(symbol.name, start):
                ty = version.bound_type(start, value)
                if ty is not None:
                    return ty
        found = (version.known_type(symbol.kind, symbol.name) for version in self._versions if version.good)
        return next((ty for ty in found if ty is not None), None)


def completion(text: str, offset: int, known: Analysis) -> list[Suggestion]:
    """The completions at an offset of a text, the best first. `known` is the last version that was read."""
    begin = max((found.start() for found in _BEGINS.finditer(text, 0, offset)), default=0)
    return complete(text[begin:offset], TextNames(text, begin, known), text[offset : offset + 1])


__all__ = ["completion"]
