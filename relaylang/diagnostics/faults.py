"""What operators say of values that they cannot take: the same words in the interpreter and in compiled code."""

from __future__ import annotations

from collections.abc import Mapping

#: A sentence for each kind of fault, with places for its numbers.
FAULTS: Mapping[str, str] = {
    "index": "the index {} is outside an axis of extent {}",
    "slice": "the slice from {} of an axis of extent {} has {} elements, the new value {}",
    "stride": "a stride is 0",
}


def fault_text(kind: str, *numbers: int) -> str:
    """The sentence of a fault."""
    return FAULTS[kind].format(*numbers)


__all__ = ["FAULTS", "fault_text"]
