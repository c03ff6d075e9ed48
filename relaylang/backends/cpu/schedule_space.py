"""The search space of schedules: named knobs with their choices, declared where a lowering makes a decision.

A lowering asks `space.pick(name, choices, default)`; the default is the cost model's pick. A file of choices overrides it
(`read`), and so does a tuner's log (`tuning_log`). Kernels have keys that are the same in every run, so choices find their
kernels again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from relaylang.diagnostics import RelayError, did_you_mean, error

T = TypeVar("T", int, str)
#: Values by the names of knobs.
Choice = Mapping[str, Any]

#: The key of the knobs of the whole program.
PROGRAM = "program"
_VERSION = 1
#: The extents of tiles of Winograd's convolutions.
TILES = (2, 4)


class WrongChoice(RelayError):
    """A schedule that does not fit (R0643)."""


def _wrong(what: str, notes: Sequence[str] = ()) -> WrongChoice:
    return WrongChoice(error("R0643", what, notes=notes))


class Space:
    """The knobs of a kernel, with their choices and values.

    A `lenient` space leaves out given values that fit no knob: the values of other knobs decide which knobs there are.
    """

    __slots__ = ("given", "knobs", "choice", "label", "winograd", "lenient")

    def __init__(self, given: Choice | None = None, label: str = "", winograd: int = 2, lenient: bool = False) -> None:
        self.given = given or {}
        self.lenient = lenient
        #: The extent of tiles that Winograd's convolutions may have; 0 for none.
        self.winograd = winograd
        self.label = label
        self.knobs: dict[str, tuple[Any, ...]] = {}
        self.choice: dict[str, Any] = {}

    def pick(self, name: str, choices: Sequence[T], default: T) -> T:
        """The value of a knob: the given one, else the default. Raises `RelayError` (R0643) for one that is no choice."""
        every = (*choices, *(() if default in choices else (default,)))
        value = self.given.get(name, default)
        if self.lenient and (type(value) is not type(default) or value not in every):
            value = default
        if type(value) is not type(default) or value not in every:
            raise _wrong(
                f"the schedule gives {self.label}{name} the value {json.dumps(value)}", [f"its choices: {', '.join(map(str, every))}"]
            )
        self.knobs[name] = every
        self.choice[name] = value
        return value

    def finish(self) -> None:
        """Raise `RelayError` (R0643) for values of knobs that there are not."""
        for name in self.given:
            if name not in self.knobs and not self.lenient:
                near = did_you_mean(name, self.knobs)
                known = f"did you mean {near}?" if near else f"its knobs: {', '.join(self.knobs) or 'none'}"
                raise _wrong(f"the schedule names a knob that there is not: {self.label}{name}", [known])


class Schedule:
    """Choices by the keys of kernels. Keys of other programs' kernels are ignored.

    `tuned` are choices of a tuner's log. Those of `choices` win over them.
    """

    def __init__(
        self,
        choices: Mapping[str, Choice] | None = None,
        winograd: int = 2,
        lenient: bool = False,
        tuned: Mapping[str, Choice] | None = None,
    ) -> None:
        self.choices = dict(choices or {})
        self.winograd = winograd
        self.lenient = lenient
        self.tuned = dict(tuned or {})
        #: The keys of kernels whose tuned choice does not fit their knobs.
        self.stale: set[str] = set()

    def space(self, key: str) -> Space:
        choice = self.choices.get(key)
        return Space(self.tuned.get(key) if choice is None else choice, f"{key}: ", self.winograd, self.lenient)

    def outdated(self, key: str) -> bool:
        """Whether the choice that did not fit a kernel was a log's. The kernel then goes without it."""
        is_outdated = key not in self.choices and self.tuned.pop(key, None) is not None
        if is_outdated:
            self.stale.add(key)
        return is_outdated


def winograd_of(options: Mapping[str, Any]) -> int:
    """The extent of tiles that a target's options allow Winograd's convolutions. Raises `RelayError` (R0602)."""
    winograd = options.get("winograd", 2)
    if winograd not in (0, *TILES):
        raise RelayError(error("R0602", f"option -winograd wants 0, {' or '.join(map(str, TILES))}, not {winograd}"))
    return int(winograd)


def read(path: str | None) -> dict[str, Choice]:
    """The choices in a file, as `relay compile --emit space` writes it. Raises `RelayError` (R0643)."""
    if path is None:
        return {}
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise _wrong(f"cannot read the schedule {path}: {(e.strerror or str(e)).lower()}") from None
    except (ValueError, RecursionError):
        raise _wrong(f"the schedule {path} is no JSON") from None
    rows = data.get("kernels") if isinstance(data, dict) and data.get("version") == _VERSION else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _wrong(f"{path} is no schedule", ["relay compile net.relay --emit space -o schedule.json writes one"])
    choices: dict[str, Choice] = {}
    for row in rows:
        key, choice = row.get("key"), row.get("choice", {})
        if not isinstance(key, str) or not isinstance(choice, dict):
            raise _wrong(f"{path}: a kernel has no key, or its choice is no object")
        choices[key] = choice
    return choices


def row(key: str, space: Space, operators: str = "", lines: Sequence[str] = ()) -> dict[str, Any]:
    """A kernel's entry in a file."""
    about = {"operators": operators, "lines": list(lines)} if operators else {}
    return {"key": key, **about, "knobs": {k: list(v) for k, v in space.knobs.items()}, "choice": dict(space.choice)}


def written(rows: Sequence[dict[str, Any]]) -> str:
    """The text of a file."""
    lines = ",\n".join(json.dumps(r) for r in rows)
    return f'{{"version": {_VERSION}, "kernels": [\n{lines}\n]}}\n'
