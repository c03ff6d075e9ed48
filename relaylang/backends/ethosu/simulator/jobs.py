"""The jobs of an operation, in order: blocks that it writes, and the parts of its inputs that these need.

`BLOCKDEP` says how far an operation runs beside the one in front. Its job and one of the other may run at once where the
sum of their numbers is less. The other's jobs are counted from the last. Such two must not meet, for the second may read
first. The parts of inputs are those that Vela counts. A job may also overwrite the table that the operation in front reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import block_of, stay_inside
from relaylang.backends.ethosu.simulator.feature_maps import Extents, FeatureMap, feature_map, is_chained, ofm_extents
from relaylang.backends.ethosu.simulator.inputs import Input, Use, inputs_of, sums_channels
from relaylang.backends.ethosu.simulator.macs import Window
from relaylang.backends.ethosu.simulator.memory import INTERNAL, meeting
from relaylang.backends.ethosu.simulator.output import stored_extents
from relaylang.backends.ethosu.simulator.shared_memory import lost_tables
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.tables import reads_table
from relaylang.backends.ethosu.simulator.weights import order_of
from relaylang.backends.ethosu.stream import Stream

#: The most jobs that `BLOCKDEP` can hold back.
_MOST = {"ethos-u55": 3, "ethos-u65": 3, "ethos-u85": 7}

#: Commands that start operations.
OPERATIONS = frozenset({"OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE", "OP_RESIZE"})


class _Part(NamedTuple):
    """A box of a tensor: its first place, and its extents."""

    fm: FeatureMap
    start: Extents
    extents: Extents

    def span(self) -> tuple[int, int]:
        """The first byte, and that behind the last one, where the box lies in the first tile."""
        ends = [start + extent for start, extent in zip(self.start, self.extents)]
        if ends[0] > min(self.fm.height0, self.fm.height1) or ends[1] > self.fm.width0:
            return 0, 1 << 62
        last = (ends[0] - 1, ends[1] - 1, ends[2] - 1)
        low, high = (int(self.fm.addresses((1, 1, 1), place)[0, 0, 0]) for place in (self.start, last))
        return low, high + self.fm.dtype.itemsize

    def bytes(self) -> list[tuple[int, np.ndarray]]:
        """The region and the addresses."""
        at = self.fm.addresses(self.extents, self.start)
        return [(self.fm.region, (at[..., None] + np.arange(self.fm.dtype.itemsize)).ravel())]

    def meets(self, other: _Part) -> tuple[int, int] | None:
        """A byte of both, by region and address."""
        if self.fm.region != other.fm.region:
            return None
        (low, high), (low2, high2) = self.span(), other.span()
        return meeting(self.bytes(), other.bytes()) if low < high2 and low2 < high else None


class Jobs:
    """The last jobs of the operation before, the very last one first."""

    def __init__(self) -> None:
        self._before: list[_Part] = []
        self._reads_table = False

    def all_done(self) -> None:
        """No operation is under way."""
        self._before, self._reads_table = [], False

    def meeting(self, state: State) -> tuple[int, int, int] | None:
        """Where an operation may begin too early: the largest `BLOCKDEP` that prevents it, and the byte, by region and address."""
        most = _MOST[state.stream.product]
        depth = state["BLOCKDEP"] if self._before else 0
        if depth > most:
            raise state.fault(f"has the BLOCKDEP {depth}, and the accelerator holds back {most} blocks")
        if depth and self._reads_table and (lost := lost_tables(state)).size:
            return 0, INTERNAL, int(lost[0])
        jobs = list(islice(_reading(state), depth)) if depth else []
        for total in range(depth):
            for first, job in enumerate(jobs[: total + 1]):
                for written in self._before[total - first : total - first + 1]:
                    met = next((met for met in (part.meets(written) for part in job) if met is not None), None)
                    if met is not None:
                        return total, *met
        return None

    def follow(self, state: State) -> None:
        """An operation begins: its jobs take the place of those before."""
        self._reads_table = reads_table(state)
        if not is_chained(state, "OFM"):
            self._before = [] if stay_inside(state) else list(_writing(state, _MOST[state.stream.product]))


def _boxes(area: Extents, size: Extents, is_backward: bool = False) -> Iterator[tuple[Extents, Extents]]:
    """The first places and extents of boxes of a size in an area: channels change fastest, then columns."""
    counts = [-(-extent // step) for extent, step in zip(area, size)]
    total = counts[0] * counts[1] * counts[2]
    for number in reversed(range(total)) if is_backward else range(total):
        rest, c = divmod(number, counts[2])
        y, x = divmod(rest, counts[1])
        start = (y * size[0], x * size[1], c * size[2])
        yield start, tuple([min(step, extent - at) for step, extent, at in zip(size, area, start)])  # type: ignore[misc]


def _writing(state: State, most: int) -> Iterator[_Part]:
    """The bytes of the last jobs, the very last first. With axes in another order, each may write all."""
    ofm, extents = feature_map(state, "OFM"), ofm_extents(state)
    stored = stored_extents(state, extents)
    if stored is not None:
        yield from [_Part(ofm, (0, 0, 0), stored)] * most
        return
    for _, (start, size) in zip(range(most), _boxes(extents, block_of(state), True)):
        yield _Part(ofm, start, size)


def _reading(state: State) -> Iterator[list[_Part]]:
    """The bytes of inputs that each job reads."""
    inputs = [i for i in inputs_of(state) if i.use != Use.ANY]
    if state.command.name == "OP_ELEMENTWISE":
        return _elementwise(state, inputs)
    return _windows(state, inputs)


def _elementwise(state: State, inputs: list[Input]) -> Iterator[list[_Part]]:
    operands = [(feature_map(state, name), extents) for name, extents, _ in inputs]
    for start, size in _boxes(ofm_extents(state), block_of(state)):
        parts = []
        for fm, extents in operands:
            at = tuple([0 if extent == 1 else place for extent, place in zip(extents, start)])
            parts.append(_Part(fm, at, tuple([min(*pair) for pair in zip(extents, size)])))  # type: ignore[arg-type]
        yield parts


def _windows(state: State, inputs: list[Input]) -> Iterator[list[_Part]]:
    if not inputs:
        return
    window, block = Window(state), block_of(state)
    height, width = ((n - 1) * stride + reach for n, stride, reach in zip(block, window.stride, window.reach))
    size = (height, width, order_of(state).input_block if sums_channels(state) else block[2])
    for jobs in zip(*[_boxes(extents, size) for _, extents, _ in inputs]):
        yield [_Part(feature_map(state, i.name), *box) for i, box in zip(inputs, jobs)]


def early_reads(stream: Stream) -> dict[int, int]:
    """The bytes of commands that set `BLOCKDEP` too high, and the largest right value of each. Raises `RelayError` (R0616)."""
    state, jobs = State(stream), Jobs()
    largest: dict[int, int] = {}
    for command in stream.commands:
        state.command = command
        if command.name.startswith("SET_"):
            state.set(command)
        elif command.name == "OP_KERNEL_WAIT" and not command.param & 15:
            jobs.all_done()
        elif command.name in OPERATIONS:
            met = jobs.meeting(state)
            if met is not None:
                at = state.place("BLOCKDEP")
                largest[at] = min(met[0], largest.get(at, met[0]))
            jobs.follow(state)
    return largest
