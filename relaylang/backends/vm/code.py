"""Code of one function while it is made: instructions over values, which get their registers at the end.

A value is a number. Jumps go forwards only, to labels; a loop is a tail call. So the order of the code is an order of
evaluation. A value's life is the stretch from its first instruction to its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relaylang.ir import Expr
from relaylang.runtime.vm.instructions import TAKE

#: The kinds of operands that are values.
_VALUES = frozenset("dsrt")
#: Sets of live values hold so many numbers altogether. Beyond that, values may stay longer than they are used.
_MOST = 4_000_000


@dataclass
class Item:
    """An instruction: its operands with their kinds (`relaylang.runtime.vm.instructions`), values by number. A `label` has none."""

    name: str
    operands: list[tuple[str, int]]
    node: Expr | None = None
    label: int = -1


@dataclass
class FunctionCode:
    """A function: its items, and for each value whether it is a scalar."""

    name: str
    params: int = 0
    captured: int = 0
    node: Expr | None = None
    items: list[Item] = field(default_factory=list)
    scalar: list[bool] = field(default_factory=list)
    labels: int = 0

    def value(self, scalar: bool) -> int:
        self.scalar.append(scalar)
        return len(self.scalar) - 1

    def label(self) -> int:
        self.labels += 1
        return self.labels - 1

    def emit(self, name: str, *operands: tuple[str, int], node: Expr | None = None) -> None:
        self.items.append(Item(name, list(operands), node))

    def place(self, label: int) -> None:
        self.items.append(Item("", [], None, label))


@dataclass
class Placed:
    """A function with registers: words, the node of each instruction by its offset, and the counts of registers."""

    words: list[int]
    nodes: list[tuple[int, Expr | None]]
    #: the places of words that are offsets in the function's own code
    jumps: list[int]
    generals: int
    registers: int


def placed(code: FunctionCode, numbers: dict[str, int]) -> Placed:
    """Give values registers, drop objects behind their last use, and write the words."""
    items = _with_drops(code)
    registers, generals, total = _registers(code, items)
    words: list[int] = []
    nodes: list[tuple[int, Expr | None]] = []
    jumps: list[int] = []
    at: dict[int, int] = {}
    for item in items:
        if item.label >= 0:
            at[item.label] = len(words)
            continue
        nodes.append((len(words), item.node))
        words.append(numbers[item.name])
        for kind, operand in item.operands:
            if kind == "j":
                jumps.append(len(words))
            elif kind == "T":
                operand = registers[operand] | TAKE
            elif kind in _VALUES:
                operand = registers[operand]
            words.append(operand)
    for place in jumps:
        words[place] = at[words[place]]
    return Placed(words, nodes, jumps, generals, total)


def _with_drops(code: FunctionCode) -> list[Item]:
    """The items with values taken at their last use, or dropped behind it. One walk from the end."""
    live: set[int] = set()
    at: dict[int, set[int]] = {}
    behind_label: dict[int, dict[int, None]] = {}
    room = _MOST
    out: list[Item] = []
    scalar = code.scalar
    for item in reversed(code.items):
        if item.label >= 0:
            room -= len(live)
            at[item.label] = set(live) if room > 0 else live
            out.append(item)
            continue
        jump = next((n for kind, n in item.operands if kind == "j"), None)
        drops_after: list[int] = []
        if item.name == "Goto":
            assert jump is not None
            live = set(at[jump]) if room > 0 else at[jump] | live
            room -= len(live)
        elif item.name in ("Ret", "Fatal", "InvokeTail", "InvokeClosureTail"):
            if room > 0:
                live = set()
        elif jump is not None:
            # What only one way needs is dropped at the beginning of the other.
            there = at[jump]
            if room > 0:
                drops_after += sorted(there - live)
                behind = sorted(live - there)
                behind_label.setdefault(jump, {}).update(dict.fromkeys(behind))
                live = live | there
                room -= len(live)
        defined = [n for kind, n in item.operands if kind == "d" and not scalar[n]]
        drops_after += [n for n in dict.fromkeys(defined) if n not in live]
        live.difference_update(defined)
        seen: set[int] = set()
        last: list[int] = []
        for place in range(len(item.operands) - 1, -1, -1):
            kind, n = item.operands[place]
            if kind not in "rt" or scalar[n] or n in seen:
                continue
            seen.add(n)
            if n in live or (n in defined and kind == "r"):
                continue
            if kind == "t":
                item.operands[place] = ("T", n)
            else:
                last.append(n)
        drops_after += sorted(n for n in last if n not in defined)
        live |= seen
        for n in reversed(drops_after):
            out.append(Item("Drop", [("d", n)], item.node))
        out.append(item)
    return [item for kept in reversed(out) for item in (kept, *(Item("Drop", [("d", n)]) for n in behind_label.get(kept.label, ())))]


def _registers(code: FunctionCode, items: Sequence[Item]) -> tuple[list[int], int, int]:
    """A register for each value: parameters first, then values that may be objects, then scalars."""
    first: dict[int, int] = dict.fromkeys(range(code.params), -1)
    last: dict[int, int] = dict.fromkeys(range(code.params), -1)
    for place, item in enumerate(items):
        for kind, n in item.operands:
            if kind in "dsrtT":
                first.setdefault(n, place)
                last[n] = place
    ends: dict[int, list[int]] = {}
    for n, place in last.items():
        ends.setdefault(place, []).append(n)
    begins: dict[int, list[int]] = {}
    for n, place in first.items():
        if place >= 0:
            begins.setdefault(place, []).append(n)
    registers = [0] * len(code.scalar)
    free: dict[bool, list[int]] = {False: [], True: []}
    count = {False: code.params, True: 0}
    for n in range(code.params):
        registers[n] = n
    for n in sorted(ends.get(-1, [])):
        free[False].append(n)
    for place in range(len(items)):
        # A result never lies where an operand of its instruction does.
        for n in begins.get(place, ()):
            room = code.scalar[n]
            if free[room]:
                registers[n] = free[room].pop()
            else:
                registers[n] = count[room]
                count[room] += 1
        for n in ends.get(place, ()):
            free[code.scalar[n] and n >= code.params].append(registers[n])
    generals = count[False]
    for n in range(code.params, len(registers)):
        if code.scalar[n]:
            registers[n] += generals
    return registers, generals, generals + count[True]
