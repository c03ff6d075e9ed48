"""One layer as a conversion sees it."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.darknet.reader import Section
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.darknet.importer import Importer

#: Numbers of a configuration are at most so large.
_LARGEST = 1 << 31


class Node:
    """A layer: its entries, its place in the network, the results of the layers before, and the builder `b`."""

    def __init__(self, importer: Importer, section: Section, index: builtins.int) -> None:
        self.importer = importer
        self.section = section
        self.entries = section.entries
        self.index = index
        self.b: Builder = importer.builder

    def int(self, key: str, default: builtins.int | None = None, least: builtins.int | None = None) -> builtins.int:
        """A whole number; digits are read as far as they go, as C's `atoi` does."""
        text = self.entries.get(key)
        if text is None:
            if default is None:
                raise Malformed(f"it has no {key}")
            return default
        try:
            value = int(float(text)) if "." in text or "e" in text else int(text)
        except (ValueError, OverflowError):
            raise Malformed(f"its {key} is {text[:40]!r}, and it must be a whole number") from None
        if abs(value) >= _LARGEST or (least is not None and value < least):
            raise Malformed(f"its {key} is {value}, and it must be {least if least is not None else 'smaller'} or more")
        return value

    def float(self, key: str, default: builtins.float) -> builtins.float:
        """A number."""
        text = self.entries.get(key)
        try:
            value = default if text is None else float(text)
        except ValueError:
            raise Malformed(f"its {key} is {str(text)[:40]!r}, and it must be a number") from None
        if not math.isfinite(value):
            raise Malformed(f"its {key} is {value}")
        return value

    def ints(self, key: str, default: Sequence[builtins.int] | None = None) -> list[builtins.int]:
        """Whole numbers between commas."""
        text = self.entries.get(key)
        if text is None:
            if default is None:
                raise Malformed(f"it has no {key}")
            return list(default)
        try:
            values = [int(v) for v in text.strip(",").split(",")]
        except ValueError:
            raise Malformed(f"its {key} is {text[:40]!r}, and it must be whole numbers") from None
        if any(abs(v) >= _LARGEST for v in values):
            raise Malformed(f"its {key} has numbers that are too large")
        return values

    def floats(self, key: str) -> list[builtins.float]:
        """Numbers between commas; [] where there are none."""
        text = self.entries.get(key, "").strip(",")
        try:
            return [float(v) for v in text.split(",")] if text else []
        except ValueError:
            raise Malformed(f"its {key} is {text[:40]!r}, and it must be numbers") from None

    def refuse(self, *keys: str) -> None:
        """Raise `Unsupported` where an entry that changes the layer is set."""
        for key in keys:
            if self.entries.get(key, "0") not in ("0", "none", "0.0"):
                raise Unsupported(f"its {key} is {self.entries[key][:40]}")

    def layer(self, number: builtins.int) -> Expr:
        """The result of a layer by its number, relative to this one where it is negative."""
        at = number + self.index if number < 0 else number
        if not 0 <= at < self.index:
            raise Malformed(f"it names the layer {number}, and it is the layer {self.index}")
        return self.importer.result(at)

    def take(self, shape: tuple[builtins.int, ...], name: str) -> np.ndarray:
        """The next weights of the file."""
        self.b.budget.take_bytes(4 * math.prod(shape), "reading its weights")
        return self.importer.weights.take(shape, f"the {name} of {self.section.kind} {self.index}")

    def weight(self, array: np.ndarray, name: str) -> Expr:
        """A weight as a constant or a parameter, named after the layer: `conv3_weight`."""
        return self.b.weight(f"{self.section.kind}{self.index}_{name}", array)


__all__ = ["Node"]
