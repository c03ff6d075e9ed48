"""Names in Relay text: which may stand bare, and how each variable gets a name of its own."""

from __future__ import annotations

import re

from relaylang.syntax.literal_text import string_text

#: A local name that reads back as it stands behind a `%`.
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[./][A-Za-z0-9_]+|:[0-9][A-Za-z0-9_]*)*\Z")
#: A global name that reads back as it stands behind an `@`, and an attribute's key.
_GLOBAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_KEY = _GLOBAL

#: The words that TVM reads nowhere else, not even behind `%` and `@`.
_RESERVED = frozenset("let fn def if else match type extern ref ref_read ref_write free_var inff".split())
KEYWORDS = _RESERVED | frozenset("data case True False None meta nanf inf nan Tensor".split())


def local_text(name: str) -> str:
    """`%name`, quoted where the bare name would not read back, here or in TVM."""
    return "%" + name if _LOCAL.match(name) and name not in _RESERVED else "%" + string_text(name)


def global_text(name: str) -> str:
    """`@name`, quoted where the bare name would not read back, here or in TVM."""
    return "@" + name if _GLOBAL.match(name) and name not in _RESERVED else "@" + string_text(name)


def key_text(name: str) -> str:
    """An attribute's key, quoted where the bare name would not read back."""
    return name if _KEY.match(name) and name not in KEYWORDS else string_text(name)


class Names:
    """Gives every variable a name of its own: the name hint, with a number if the hint is taken."""

    __slots__ = ("_next", "_tvm")

    def __init__(self, style: str = "lossless") -> None:
        self._next: dict[str, int] = {}
        self._tvm = style == "tvm"

    def __contains__(self, name: str) -> bool:
        return name in self._next

    def unique(self, name: str) -> str:
        """The name, or the name with the first free number behind it."""
        known = self._next
        if name not in known:
            known[name] = 0
            return name
        number = known[name]
        while True:
            number += 1
            candidate = f"{name}{number}"
            if candidate not in known:
                break
        known[name] = number
        known[candidate] = 0
        return candidate

    def local(self, hint: str) -> str:
        """A fresh local name as it stands in the text, `%` included."""
        if self._tvm:
            first = hint[:1]
            return "%" + self.unique(hint if first.isascii() and first.isalpha() else "v" + hint)
        return local_text(self.unique(hint))
