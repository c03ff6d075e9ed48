"""The lifetimes of slots: a large value is dropped behind its last use."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from relaylang.interpreter.code import Block


class Scope:
    """A chain of lets. For the time of each instruction, `places` has where a drop behind it would stand."""

    __slots__ = ("places", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.places: list[tuple[Block, int] | None] = []


class Lifetimes:
    """Notes when the slots of one function are made and used. Its clock counts instructions and ends of blocks."""

    def __init__(self) -> None:
        self._clock = 0
        self._home: dict[int, Scope] = {}  # scopes of the slots that are dropped
        self._last_use: dict[int, int] = {}
        self._held: set[int] = set()  # slots whose values closures hold
        self._calls: set[int] = set()  # times of calls, which let go of their operands themselves

    def own(self, slot: int, scope: Scope) -> None:
        """Have a slot dropped in a scope."""
        self._home[slot] = scope

    def use(self, slot: int, ahead: int = 0) -> None:
        """Note a use of a slot by the next instruction, or one so many further ahead."""
        self._last_use[slot] = self._clock + ahead

    def made(self, slot: int) -> None:
        """Note that the next instruction fills a slot, which nothing may use."""
        self._last_use.setdefault(slot, self._clock)

    def hold(self, slots: Iterable[int]) -> None:
        """Never drop slots that a closure captures: the value lives as long as the closure."""
        self._held.update(slots)

    def tick(self, scope: Scope, place: tuple[Block, int] | None, call: bool = False) -> int:
        """Count an instruction or a block's end, behind which drops stand at a place. Returns its time."""
        now = self._clock
        scope.times.append(now)
        scope.places.append(place)
        if call:
            self._calls.add(now)
        self._clock = now + 1
        return now

    def dies(self, slot: int, scope: Scope, when: int) -> bool:
        """Whether a slot is used at a time for the last time, in its own scope."""
        return self._home.get(slot) is scope and slot not in self._held and self._last_use.get(slot) == when

    def drops(self) -> dict[tuple[int, int], list[int]]:
        """The slots whose last use is behind them, by the block's id and the position in it."""
        drops: dict[tuple[int, int], list[int]] = {}
        for slot, scope in self._home.items():
            if slot in self._held or not scope.times:
                continue
            when = self._last_use.get(slot, scope.times[0])
            at = bisect_right(scope.times, when) - 1
            if at >= 0 and when in self._calls and scope.times[at] == when:
                continue  # the call itself lets go of it
            place = scope.places[at] if at >= 0 else None
            if place is not None:
                drops.setdefault((id(place[0]), place[1]), []).append(slot)
        return drops


__all__ = ["Lifetimes", "Scope"]
