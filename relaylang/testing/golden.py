"""Golden files: the reviewed text of a program.

Two texts are equal if their lines are equal up to consistent renaming of variables. So an inserted line does not change the
comparison of later lines, whose numbers differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relaylang.grammar import compiled
from relaylang.ir import Expr, IRModule
from relaylang.syntax import astext, parse
from relaylang.typing import infer

#: How many lines around a difference are shown, and how many lines of a difference at most.
_AROUND = 3
_MOST = 200


@dataclass(frozen=True)
class Form:
    """How a program is written down. `metadata`: with the values of its constants; `types`: with `/* ty=... */`."""

    types: bool = True
    metadata: bool = False

    def text(self, node: IRModule | Expr) -> str:
        """The program's text in this form, with a line end."""
        text = astext(node, show_types=self.types, show_meta_data=self.metadata)
        return text if text.endswith("\n") else text + "\n"

    def again(self, text: str, name: str) -> str:
        """The text after reading and printing it, so that its layout and comments do not count.

        Raises `RelayError` for a wrong text. A well-typed text gets types; others have none.
        """
        result = parse(text, name)
        if self.types:
            infer(result.value, fragment=not isinstance(result.value, IRModule))
        return self.text(result.value)


def difference(golden: str, actual: str, *, names: bool = False) -> str:
    """What differs between two texts, as lines that begin with `-` (golden) and `+`, or "" where nothing does.

    `names`: variables must have the same names.
    """
    old, new = golden.splitlines(), actual.splitlines()
    if old == new:
        return ""
    shown = list(_changes(old, new, names))
    if len(shown) > _MOST:
        shown = [*shown[:_MOST], f"... and {len(shown) - _MOST} more lines"]
    return "\n".join(shown)


def _blind(line: str) -> str:
    """The line without the names of its variables."""
    if "%" not in line:
        return line
    return compiled("LOCAL", "STRING").sub(lambda m: "%" if m.lastgroup == "LOCAL" else m[0], line)


def _changes(old: Sequence[str], new: Sequence[str], names: bool) -> Iterator[str]:
    renaming = _Renaming()
    lines: list[tuple[str, str, int]] = []
    for kind, a, b, c, d in _opcodes(old if names else [_blind(s) for s in old], new if names else [_blind(s) for s in new]):
        if kind == "equal":
            for i, line in enumerate(new[c:d]):
                if names or renaming.same(old[a + i], line):
                    lines.append((" ", line, c + i + 1))
                else:
                    lines += [("-", old[a + i], c + i + 1), ("+", line, c + i + 1)]
        else:
            lines += [("-", line, c + 1) for line in old[a:b]]
            lines += [("+", line, c + i + 1) for i, line in enumerate(new[c:d])]
    near = [False] * len(lines)
    for i, (sign, _, _) in enumerate(lines):
        if sign != " ":
            near[max(0, i - _AROUND) : i + _AROUND + 1] = [True] * len(near[max(0, i - _AROUND) : i + _AROUND + 1])
    if not any(near):
        return
    shown_before = False
    for (sign, line, number), shown in zip(lines, near):
        if shown:
            if not shown_before:
                yield f"@@ line {number} @@"
            yield f"{sign} {line}"
        shown_before = shown


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """difflib's opcodes. The equal lines at both ends are not compared, so that thousands of them cost nothing."""
    least = min(len(old), len(new))
    head = 0
    while head < least and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < least - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    yield "equal", 0, head, 0, head
    one, two = old[head : len(old) - tail], new[head : len(new) - tail]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=len(one) * len(two) > 1 << 20).get_opcodes():
        yield kind, head + a, head + b, head + c, head + d
    yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)


class _Renaming:
    """Which name stands for which, one for one, within a function."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}
        self.back: dict[str, str] = {}

    def same(self, old: str, new: str) -> bool:
        """Whether two lines that are the same but for names are so with the names that are known so far."""
        if old.startswith("def "):
            self.there, self.back = {}, {}
        if "%" not in old:
            return True
        pairs = list(zip(_names(old), _names(new)))
        good = all(self.there.get(a, b) == b and self.back.get(b, a) == a for a, b in pairs)
        if good:
            for a, b in pairs:
                self.there[a] = b
                self.back[b] = a
        return good


def _names(line: str) -> list[str]:
    return [m[0] for m in compiled("LOCAL", "STRING").finditer(line) if m.lastgroup == "LOCAL"]
