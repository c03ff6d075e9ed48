"""The rows of pattern tables: a composite's name, its pattern, and a check of what the pattern matched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from relaylang.diagnostics import Diagnostic, Label, RelayError, error
from relaylang.ir import Call, Expr
from relaylang.passes.manager import raised_in
from relaylang.patterns import DFPattern, Match

#: Says whether the accelerator takes a matched subgraph: True or None for yes; False or a reason for no.
Check = Callable[[Match], "bool | str | None"]


@dataclass(frozen=True)
class Entry:
    """A row of a pattern table: the composite's name, its pattern, and what else must hold.

    Calls above the matched ones join the composite where `joins` holds and nothing else uses them. A region of nothing but
    composites of `mover` rows goes back to the host, before regions are numbered.
    """

    name: str
    pattern: DFPattern
    check: Check | None = None
    joins: Callable[[Call], bool] | None = None
    mover: bool = False

    def __iter__(self) -> Iterator[Any]:
        """The row as TVM has it: `for name, pattern, *check in table`."""
        return iter((self.name, self.pattern) if self.check is None else (self.name, self.pattern, self.check))

    def __getitem__(self, index: int) -> Any:
        return tuple(self)[index]


def as_entries(table: Iterable[Entry | tuple]) -> list[Entry]:
    """Rows as TVM writes them, `(name, pattern)` or `(name, pattern, check)`, or entries.

    Raises `RelayError` (R0519) for other rows.
    """
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes)):
        raise RelayError(error("R0519", f"a pattern table is a list of rows, not {_what(table)}"))
    entries = []
    wrong = []
    for number, row in enumerate(table, 1):
        if isinstance(row, Entry):
            entries.append(row)
            continue
        said = _row_problem(row)
        if said is not None:
            notes = ['a row is ("accelerator.composite", pattern) or ("accelerator.composite", pattern, check)']
            wrong.append(error("R0519", f"row {number} of the pattern table {said}", notes=notes))
            continue
        name, pattern, *rest = row
        entries.append(Entry(name, pattern, _checks_root(rest[0]) if rest and rest[0] is not None else None))
    if wrong:
        raise RelayError(wrong)
    return entries


def _what(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


def _row_problem(row: object) -> str | None:
    if not isinstance(row, (tuple, list)):
        return f"is {_what(row)}"
    if len(row) not in (2, 3):
        return f"has {len(row)} parts"
    name, pattern, *rest = row
    if not isinstance(name, str):
        return f"has {_what(name)} for its name"
    if not isinstance(pattern, DFPattern):
        return f"({name}) has {_what(pattern)} for its pattern"
    if rest and rest[0] is not None and not callable(rest[0]):
        return f"({name}) has {_what(rest[0])} for its check"
    return None


def _checks_root(check: Callable[[Expr], bool | str | None]) -> Check:
    """A check of the matched root, as TVM's tables have it; it may also say why not."""
    name = getattr(check, "__name__", "<lambda>")

    def asks(match: Match) -> bool | str | None:
        verdict = check(match.root)
        if verdict is None:
            return f"{'its check' if name == '<lambda>' else name} returned nothing (None), not True"
        return verdict

    asks.__name__ = name
    return asks


def asked_about(said: Diagnostic, node: Expr) -> Diagnostic:
    """A diagnostic of a check, with the place of the call that it checked."""
    if node.span is None:
        return said
    return replace(said, labels=(*said.labels, Label(node.span, "it was asked about this", not said.labels)))


def refusal(entry: Entry, found: Match) -> str | None:
    """Why a row does not take what its pattern matched; None where it does. Raises `RelayError` where its check fails."""
    if entry.check is None:
        return None
    try:
        verdict = entry.check(found)
        taken = verdict is None or (not isinstance(verdict, str) and bool(verdict))
    except RelayError:
        raise
    except (KeyboardInterrupt, MemoryError, SystemExit):
        raise
    except Exception as problem:
        raise RelayError(asked_about(raised_in(entry.name, problem, "the check of"), found.root)) from problem
    if taken:
        return None
    name = getattr(entry.check, "__name__", "<lambda>")
    return verdict if isinstance(verdict, str) else f"{entry.name if name == '<lambda>' else name} does not take it"


__all__ = ["Check", "Entry", "as_entries", "asked_about", "refusal"]
