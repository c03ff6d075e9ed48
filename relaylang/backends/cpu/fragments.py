"""The helpers in `csrc/`: fragments of C by their names, and those that each of them needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Fragment:
    """A part of `csrc/`: its C, and the fragments that it needs."""

    text: str
    needs: tuple[str, ...]


@cache
def fragments() -> dict[str, Fragment]:
    """The helpers of `csrc/`, by name. A line in front of each has its name, other names in it, and what it needs:
    `//@ name other ...: needed ...`."""
    out: dict[str, Fragment] = {}
    for head, body in _parts():
        names, _, needs = head.partition(":")
        out[names.split()[0]] = Fragment(body.strip("\n"), tuple(needs.split()))
    return out


def _parts() -> Iterator[tuple[str, str]]:
    """The heads of the fragments and what follows them, in the order of the files."""
    folder = files(f"{__package__}.csrc")
    for name in ("prelude.h", "simd.h", "lanes.h", "threads.h", "profile.h"):
        for part in f"\n{folder.joinpath(name).read_text(encoding='utf-8')}".split("\n//@ ")[1:]:
            head, _, body = part.partition("\n")
            yield head, body


@cache
def _fragment_of() -> dict[str, str]:
    """Names in fragments -> the fragment."""
    return {name: names[0] for head, _ in _parts() for names in [head.partition(":")[0].split()] for name in names}


def needed(helpers: Iterable[str]) -> list[str]:
    """The fragments with some names, and those that these need, in the order of the files."""
    known, every = _fragment_of(), fragments()
    todo = {"prelude", *(known[name] for name in helpers if name in known)}
    wanted: set[str] = set()
    while todo:
        wanted |= todo
        todo = {need for name in todo for need in every[name].needs} - wanted
    return [name for name in every if name in wanted]
