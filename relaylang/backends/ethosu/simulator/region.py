"""A compiled region in the simulator: the driver's memory, with weights and inputs in their places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.ethosu.simulator.machine import Observer, simulate
from relaylang.backends.ethosu.stream import read_stream
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import TensorSpec

#: The most bytes of a region that the simulator gives.
_MOST = 1 << 31


class _Regions:
    """The driver's regions by number, and which of their bytes hold something."""

    def __init__(self) -> None:
        self.bytes: dict[int, np.ndarray] = {}
        self.written: dict[int, np.ndarray] = {}

    def give(self, number: int, size: int) -> None:
        if not 0 <= size <= _MOST:
            raise _refused(f"region {number} has {size} bytes")
        if size and size >= len(self.bytes.get(number, ())):
            self.bytes[number] = np.zeros(size, np.uint8)
            self.written[number] = np.zeros(size, bool)

    def part(self, place: Mapping[str, int]) -> slice:
        """The bytes of a tensor."""
        region, start, size = place["region"], place["address"], place["bytes"]
        if region not in self.bytes or not 0 <= start <= start + size <= len(self.bytes[region]):
            raise _refused(f"a tensor has {size} bytes at {start:#x} of region {region}")
        return slice(start, start + size)

    def put(self, place: Mapping[str, int], values: np.ndarray) -> None:
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        part = self.part({**place, "bytes": content.size})
        self.bytes[place["region"]][part] = content
        self.written[place["region"]][part] = True


def run_stream(
    command_stream: bytes,
    weights: bytes,
    driver: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    outputs: Sequence[TensorSpec],
    observer: Observer | None = None,
) -> list[np.ndarray]:
    """The outputs of a region for some inputs. `driver` says where its memory, inputs and outputs are, as the manifest does.

    The simulator calls `observer` for each tensor that the stream stores.

    Raises `RelayError`: R0615 for a stream that cannot be read, R0616 where hardware would go wrong.
    """
    stream = read_stream(command_stream, "the region's command stream")
    regions = _Regions()
    try:
        for name in ("scratch", "scratch_fast"):
            regions.give(driver[name]["region"], driver[name]["bytes"])
        regions.give(driver["weights_region"], len(weights))
        if weights:
            regions.put({"region": driver["weights_region"], "address": 0}, np.frombuffer(weights, np.uint8))
        for place, value in zip(driver["inputs"], inputs):
            regions.put(place, value)
        places = [(place["region"], regions.part(place)) for place in driver["outputs"]]
        if len(places) != len(outputs):
            raise _refused(f"it has {len(places)} places for {len(outputs)} outputs")
        for (_, part), spec in zip(places, outputs):
            if part.stop - part.start != math.prod(spec.shape) * np.dtype(spec.dtype).itemsize:
                raise _refused(f"an output of the shape {spec.shape} has {part.stop - part.start} bytes")
    except (KeyError, TypeError, ValueError):
        raise _refused("a place of its memory or tensors is missing or no number") from None
    simulate(stream, regions.bytes, regions.written, observer)
    results = []
    for (region, part), spec in zip(places, outputs):
        if not regions.written[region][part].all():
            raise _refused("the stream leaves a part of an output without a value")
        results.append(regions.bytes[region][part].view(spec.dtype).reshape(spec.shape).copy())
    return results


def _refused(why: str) -> RelayError:
    return RelayError(error("R0616", f"the region cannot be simulated: {why}"))
