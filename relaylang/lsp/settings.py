"""The settings that an editor may send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Settings:
    """An editor's wishes. `types` and `defaults` are hints: inferred types, and attributes that a call leaves out."""

    types: bool = True
    defaults: bool = False
    lenses: bool = True

    def take(self, given: Any) -> None:
        """Take settings as an editor sends them: `{"hints": {"types": true, "defaults": false}, "lenses": true}`.

        Values of other kinds and unknown names change nothing.
        """
        table = given if isinstance(given, dict) else {}
        table = table.get("relay", table)
        hints = table.get("hints") if isinstance(table, dict) else None
        for place, name in ((hints, "types"), (hints, "defaults"), (table, "lenses")):
            value = place.get(name) if isinstance(place, dict) else None
            if isinstance(value, bool):
                setattr(self, name, value)


__all__ = ["Settings"]
