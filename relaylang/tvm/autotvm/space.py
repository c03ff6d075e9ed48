"""The points of a task's space by number: `tvm.autotvm.task.space`."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.tune.space import Point, SearchSpace


class OtherOptionEntity:
    """The value of a knob, in `val`."""

    def __init__(self, val: Any) -> None:
        self.val = val

    def __repr__(self) -> str:
        return str(self.val)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OtherOptionEntity) and other.val == self.val

    def __hash__(self) -> int:
        return hash(self.val)


class ConfigEntity:
    """Values of knobs. `index` is its number in the space, None where only a log has it. `cost` are seconds, where known."""

    def __init__(self, index: int | None, choice: Mapping[str, Any], point: Point | None = None, cost: float | None = None) -> None:
        self.index, self.choice, self.point, self.cost = index, dict(choice), point, cost

    def __getitem__(self, name: str) -> OtherOptionEntity:
        return OtherOptionEntity(self.choice[name])

    def __contains__(self, name: str) -> bool:
        return name in self.choice

    def __len__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigEntity) and other.choice == self.choice

    def __hash__(self) -> int:
        return hash(frozenset(self.choice.items()))

    def __repr__(self) -> str:
        return f"{[*self.choice.items()]},{self.index}"

    def valid(self) -> bool:
        """Whether it can be measured."""
        return True

    def get_flatten_feature(self) -> np.ndarray:
        """The features of the point for a cost model: float32, none where only a log has the values."""
        return np.asarray(self.point.features if self.point is not None else (), np.float32)

    def get_other_option(self) -> dict[str, OtherOptionEntity]:
        """Each knob's value."""
        return {name: OtherOptionEntity(value) for name, value in self.choice.items()}

    def to_json_dict(self) -> dict[str, Any]:
        """The values as TVM's logs have them: a list of names, kinds and values."""
        return {"index": self.index, "code_hash": None, "entity": [[name, "ot", value] for name, value in self.choice.items()]}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """The values that `to_json_dict` has written."""
        return ConfigEntity(json_dict.get("index"), {name: value for name, _, value in json_dict["entity"]})


class FallbackConfigEntity(ConfigEntity):
    """No values: the default schedule."""

    is_fallback = True

    def __init__(self) -> None:
        super().__init__(None, {})


class ConfigSpace:
    """A task's points. `len(space)` is their number, `space.get(number)` one of them.

    The first knob is the lowest digit of a number. Values of a knob may open other knobs. Then the length is that of the
    largest part, and some numbers have the same point.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.points = space
        self._length: int | None = None

    @property
    def space_map(self) -> dict[str, Sequence[Any]]:
        """The knobs that were seen, with their choices."""
        return dict(self.points.knobs)

    @property
    def range_length(self) -> int:
        """The number of points."""
        return len(self)

    @property
    def dims(self) -> list[int]:
        """The number of choices of each knob of the default schedule."""
        return [len(choices) for choices in self.points.default.knobs.values()]

    def __len__(self) -> int:
        if self._length is None:
            default = self.points.default
            near = [{**default.choice, name: value} for name, choices in default.knobs.items() for value in choices]
            neighbours = [default, *(self.points.point(choice) for choice in near)]
            self._length = max(math.prod(len(choices) for choices in point.knobs.values()) for point in neighbours)
        return self._length

    def get(self, index: int) -> ConfigEntity:
        """The point of a number. Raises `IndexError` for one that is too large."""
        values: dict[str, Any] = {}
        rest = index
        while index >= 0:
            point = self.points.point(values)
            name = next((n for n in point.knobs if n not in values), None)
            if name is None:
                if rest and index >= len(self):
                    break
                return ConfigEntity(index, point.choice, point)
            rest, place = divmod(rest, len(point.knobs[name]))
            values[name] = point.knobs[name][place]
        raise IndexError(f"the space has {len(self)} points, and none with the number {index}")

    def entity(self, point: Point) -> ConfigEntity:
        """The point with its number."""
        index, base = 0, 1
        for name, choices in point.knobs.items():
            index += base * list(choices).index(point.choice[name])
            base *= len(choices)
        return ConfigEntity(index, point.choice, point)

    def sample_ints(self, m: int) -> np.ndarray:
        """Up to `m` different numbers of points, drawn with Python's generator: int64."""
        return np.asarray(random.sample(range(len(self)), min(m, len(self))), np.int64)

    def is_index_valid(self, index: int) -> bool:
        """Whether a number is that of a point."""
        return 0 <= index < len(self)

    def valid(self) -> bool:
        """Whether it can be searched."""
        return True

    def __repr__(self) -> str:
        rows = [f"{n:2d} {name}: {', '.join(map(str, choices))}" for n, (name, choices) in enumerate(self.space_map.items())]
        return "\n".join([f"ConfigSpace (len={len(self)}, space_map=", *rows, ")"])


__all__ = ["ConfigEntity", "ConfigSpace", "FallbackConfigEntity", "OtherOptionEntity"]
