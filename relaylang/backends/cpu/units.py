"""How the functions of a program's C are shared out to files, which compile side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: The most characters of a file of kernels. Each file costs the compiler's start and its helpers.
UNIT = 48_000


@dataclass(frozen=True)
class Piece:
    """A function of the C: its text, and what declares it in other files.

    It calls other pieces (`uses`) and `helpers` of `csrc/`.
    """

    name: str
    text: str
    declaration: str
    uses: frozenset[str]
    helpers: frozenset[str]


def reached(pieces: Mapping[str, Piece], names: Iterable[str]) -> set[str]:
    """The names of the functions with some names, and of those that they call."""
    todo = list(names)
    reached_names = set(todo)
    while todo:
        new = pieces[todo.pop()].uses - reached_names
        reached_names |= new
        todo += new
    return reached_names


def shared_out(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The functions of each file. All files are about as long, and each processor has as many."""
    total, processors = sum(len(p.text) for p in pieces), os.cpu_count() or 1
    files = processors * -(-total // (processors * UNIT)) or 1
    size = max(UNIT // 3, total // files)
    groups: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        if room <= 0:
            groups.append([])
            room = size
        groups[-1].append(piece)
        room -= len(piece.text)
    return groups
