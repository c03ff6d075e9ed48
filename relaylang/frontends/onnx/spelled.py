"""Loops over texts: the body of a loop takes and gives codes, so that what the loop carries keeps one type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.onnx.node import Body
from relaylang.frontends.onnx.texts import Texts, room, widened

#: So often the room for texts in a loop is made wider, each time for the texts of a turn.
_ROUNDS = 4


class _NoRoom(Exception):
    """A turn of a loop gives texts of more bytes than the loop has room for: `most`."""

    def __init__(self, most: int) -> None:
        self.most = most


class Spelled:
    """The body of a loop with codes in the place of texts. Those that the loop carries have the same room.

    `takes` says which of its inputs are texts, and `gives` which results its last conversion had as texts. `carried` are
    the results that the next turn takes.
    """

    def __init__(self, b: Builder, body: Body, takes: Sequence[bool], carried: slice, room: int) -> None:
        self.b = b
        self.body = body
        self.proto = body.proto
        self.inputs = body.inputs
        self.takes = list(takes)
        self.gives: list[bool] = []
        self.carried = carried
        self.room = room

    def convert(self, inputs: Sequence[Any]) -> list[Any]:
        """The results of a turn. Raises `_NoRoom`."""
        results = self.body.convert([Texts(x) if text else x for x, text in zip(inputs, self.takes)], True)
        self.gives = [isinstance(r, Texts) for r in results]
        carried = results[self.carried]
        most = max((room(self.b, r) for r in carried if isinstance(r, Texts)), default=0)
        if most > self.room:
            raise _NoRoom(most)
        results[self.carried] = [widened(self.b, r, self.room) if isinstance(r, Texts) else r for r in carried]
        return [r.codes if isinstance(r, Texts) else r for r in results]


def in_loop(
    b: Builder, body: Body, values: Sequence[Any], run: Callable[[Spelled, list[Any]], list[Any]], carried: slice, others: int = 0
) -> list[Any]:
    """The results of a loop whose values may be texts: `run` gets the body and the values with codes in their place.

    The body takes `others` more inputs before the values. Its results from the first of those that are `carried` on are
    the results of the loop. Raises `Unsupported` where texts grow from turn to turn.
    """
    takes = [isinstance(v, Texts) for v in values]
    most = max((room(b, v) for v in values if isinstance(v, Texts)), default=1)
    for _ in range(_ROUNDS):
        spelled = Spelled(b, body, [*[False] * others, *takes], carried, most)
        try:
            results = run(spelled, [widened(b, v, most) if isinstance(v, Texts) else v for v in values])
        except _NoRoom as wider:
            most = wider.most
            continue
        return [Texts(r) if text else r for r, text in zip(results, spelled.gives[carried.start :])]
    raise Unsupported("its texts grow from turn to turn")


__all__ = ["Spelled", "in_loop"]
