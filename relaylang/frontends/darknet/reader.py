"""Reads Darknet's files: the sections of a `.cfg`, and the numbers of a `.weights` file in their order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.versions import Versions
from relaylang.runtime.budget import Budget


@dataclass
class Section:
    """A section of a `.cfg` file: its name, the line that it begins in, and its entries."""

    kind: str
    line: int
    entries: dict[str, str] = field(default_factory=dict)


def sections(data: bytes, file: str) -> list[Section]:
    """The sections in their order. Raises `RelayError` (R0802)."""
    parsed: list[Section] = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        # Darknet drops all spaces of a line; it takes comments in lines of their own alone.
        text = "".join(line.split())
        if not text or text[0] in "#;\0":
            continue
        if text[0] == "[":
            end = text.find("]")
            if end < 0:
                raise damaged(file, f"line {number} begins a section, and has no ]")
            parsed.append(Section(text[1:end].lower(), number))
            continue
        key, equals, value = text.partition("=")
        if not equals or not parsed:
            raise damaged(file, f"line {number} is no entry of a section: {text[:40]!r}")
        parsed[-1].entries[key] = value.partition("#")[0]
    if not parsed or parsed[0].kind not in ("net", "network"):
        raise damaged(file, "its first section is not [net]")
    return parsed


#: Darknet 0.2 counts pictures with 64 bits. Its reader takes later versions for such files.
VERSIONS = Versions("the version in the head of the weights", 0, 2, lambda number: f"{number // 10}.{number % 10}")


class Weights:
    """The numbers of a `.weights` file, which layers take one after the other.

    `turned` tells of an old form of dense layers. `version` (10 x major + minor) and `revision` are those of the Darknet
    that wrote the file. Files in the old form have other numbers there, and the version 0.
    """

    def __init__(self, data: bytes, file: str, budget: Budget) -> None:
        self.file = file
        self.budget = budget
        if len(data) < 16:
            raise damaged(file, f"it has {len(data)} bytes, and no header")
        major, minor, self.revision = np.frombuffer(data, "<i4", 3).tolist()
        self.turned = major > 1000 or minor > 1000
        self.version = 0 if self.turned else major * 10 + minor
        start = 20 if self.version >= 2 and major < 1000 and minor < 1000 else 16
        body = memoryview(data)[start:]
        self.values = np.frombuffer(body[: len(body) // 4 * 4], "<f4")
        self.at = 0

    def take(self, shape: tuple[int, ...], what: str) -> np.ndarray:
        """The next numbers as an array. Raises `Malformed` where the file has fewer."""
        count = 1
        for extent in shape:
            count *= extent
        if count > self.values.size - self.at:
            left = self.values.size - self.at
            raise Malformed(f"{what} has {count} numbers, and {self.file} has {left} more")
        numbers = self.values[self.at : self.at + count].reshape(shape)
        self.at += count
        return np.ascontiguousarray(numbers)

    @property
    def left(self) -> int:
        """The numbers that no layer has taken."""
        return int(self.values.size - self.at)


__all__ = ["VERSIONS", "Section", "Weights", "sections"]
