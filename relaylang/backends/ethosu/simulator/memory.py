"""The memories that a command stream reads and writes: the driver's regions, and those inside of the accelerator.

Each byte knows whether anything was written to it. Operations that are under way know what they read and write, so that a
missing wait is found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from relaylang.backends.ethosu.simulator.state import State

#: The number of the memory inside the accelerator, which holds tables.
INTERNAL = -1
#: Bytes of the memory for tables.
TABLES = 2048


@dataclass
class Traffic:
    """What an operation under way reads and writes: (region, addresses of bytes)."""

    what: str
    reads: list[tuple[int, np.ndarray]] = field(default_factory=list)
    writes: list[tuple[int, np.ndarray]] = field(default_factory=list)
    #: What each block of it may read: weights and scales.
    constants: list[tuple[int, np.ndarray]] = field(default_factory=list)


def meeting(one: list[tuple[int, np.ndarray]], other: list[tuple[int, np.ndarray]]) -> tuple[int, int] | None:
    """A byte that is in both: its region and address."""
    for region, addresses in one:
        for region2, addresses2 in other:
            if region != region2 or not addresses.size or not addresses2.size:
                continue
            low, high = max(addresses.min(), addresses2.min()), min(addresses.max(), addresses2.max())
            if low > high:
                continue
            marks = np.zeros(int(high - low) + 1, bool)
            marks[addresses[(addresses >= low) & (addresses <= high)] - low] = True
            second = addresses2[(addresses2 >= low) & (addresses2 <= high)]
            hit = second[marks[second - low]]
            if hit.size:
                return region, int(hit.min())
    return None


def _repeated(addresses: np.ndarray) -> int | None:
    """An address that is there more than once."""
    if not addresses.size:
        return None
    low = int(addresses.min())
    marks = np.zeros(int(addresses.max()) - low + 1, bool)
    marks[addresses - low] = True
    if np.count_nonzero(marks) == addresses.size:
        return None
    unique, counts = np.unique(addresses, return_counts=True)
    return int(unique[counts > 1][0])


class Memory:
    """The regions by number. `most` are the operations of each kind that the accelerator has under way at once."""

    def __init__(self, state: State, regions: Mapping[int, np.ndarray], written: Mapping[int, np.ndarray], transfers: int) -> None:
        self.state = state
        self._bytes = {**regions, INTERNAL: np.zeros(TABLES, np.uint8)}
        self._written = {**written, INTERNAL: np.zeros(TABLES, bool)}
        self._most = {"kernel": 2, "transfer": transfers}
        self.under_way: dict[str, deque[Traffic]] = {"kernel": deque(), "transfer": deque()}
        self.traffic = Traffic("kernel")
        self._is_chain = False
        self._chained: dict[int, np.ndarray] = {}
        #: The accumulators that the last operation left, if it has any.
        self.accumulators: np.ndarray | None = None
        #: The tensor that the last operation stored, if any.
        self.output: np.ndarray | None = None

    # ---- operations under way

    def begin(self, what: str) -> None:
        """An operation starts: a `kernel` or a `transfer`. The operations of a chain are one kernel."""
        if not self._is_chain:
            self.traffic = Traffic(what)

    def end(self, is_chain: bool = False) -> None:
        """All of the operation's accesses are known: those of others that are under way must not meet them.

        Operations of one kind do not meet but for transfers, where there may be several. `is_chain`: more of it follows.
        """
        done = self.traffic
        others = self.under_way["transfer" if done.what == "kernel" else "kernel"]
        if done.what == "transfer":
            others = others + self.under_way["transfer"]
        for other in others:
            for mine, theirs in ((done.reads, other.writes), (done.writes, other.writes), (done.writes, other.reads)):
                met = meeting(mine, theirs)
                if met is not None:
                    wait = "OP_DMA_WAIT" if other.what == "transfer" else "OP_KERNEL_WAIT"
                    what = "a DMA transfer" if other.what == "transfer" else "an operation"
                    raise self.state.fault(
                        f"uses byte {met[1]:#x} of {name_of(met[0])} while {what} on it is under way: {wait} is missing"
                    )
        self._is_chain = is_chain
        if is_chain:
            return
        queue = self.under_way[done.what]
        queue.append(done)
        while len(queue) > self._most[done.what]:
            queue.popleft()

    def wait(self, what: str, most: int) -> None:
        """Until at most so many operations of a kind are under way."""
        queue = self.under_way[what]
        while len(queue) > most:
            queue.popleft()

    # ---- chains

    def chain(self, buffer: int, values: np.ndarray) -> None:
        """Keep the output of an operation for the next ones of its chain."""
        self._chained[buffer] = values

    def chained(self, buffer: int, extents: tuple[int, int, int]) -> np.ndarray:
        """The tensor in a buffer of chains."""
        tensor = self._chained.get(buffer)
        if tensor is None:
            raise self.state.fault(f"reads buffer {buffer} of chains, to which nothing was written")
        if tensor.shape != extents:
            needed, present = (" x ".join(map(str, shape)) for shape in (extents, tensor.shape))
            raise self.state.fault(f"reads {needed} elements of buffer {buffer} of chains, which has {present}")
        return tensor

    # ---- accesses

    def _checked(self, region: int, addresses: np.ndarray, what: str) -> np.ndarray:
        store = self._bytes.get(region)
        if store is None:
            raise self.state.fault(f"{what} region {region}, which the driver does not give")
        if addresses.size:
            low, high = int(addresses.min()), int(addresses.max())
            if low < 0 or high >= len(store):
                bad = high if high >= len(store) else low
                raise self.state.fault(f"{what} byte {bad:#x} of {name_of(region)}, which has {len(store):#x} bytes")
        return store

    def span(self, region: int, start: int, size: int) -> np.ndarray:
        """The addresses of bytes in a row, of which the region has all."""
        self._checked(region, np.asarray([start, start + size - 1] if size else []), "uses")
        return start + np.arange(size)

    def read(self, region: int, addresses: np.ndarray) -> np.ndarray:
        """The bytes at some addresses, in the shape of `addresses`."""
        store = self._checked(region, addresses, "reads")
        written = self._written[region][addresses]
        if not written.all():
            first = int(addresses[~written].min())
            raise self.state.fault(f"reads byte {first:#x} of {name_of(region)}, to which nothing was written")
        self.traffic.reads.append((region, addresses.ravel()))
        return store[addresses]

    def read_constant(self, region: int, addresses: np.ndarray) -> np.ndarray:
        """The bytes at some addresses, which each block of an operation may read again."""
        self.traffic.constants.append((region, addresses.ravel()))
        return self.read(region, addresses)

    def write(self, region: int, addresses: np.ndarray, values: np.ndarray) -> None:
        """Store bytes at addresses that differ."""
        store = self._checked(region, addresses, "writes")
        twice = _repeated(addresses)
        if twice is not None:
            raise self.state.fault(f"writes byte {twice:#x} of {name_of(region)} twice")
        store[addresses] = values
        self._written[region][addresses] = True
        self.traffic.writes.append((region, addresses.ravel()))

    def lose(self, region: int, addresses: np.ndarray) -> None:
        """Bytes at addresses that differ hold anything from now on."""
        self.write(region, addresses, np.zeros(addresses.shape, np.uint8))
        self._written[region][addresses] = False

    def copy(self, source: tuple[int, np.ndarray], target: tuple[int, np.ndarray]) -> None:
        """Copy bytes. Those to which nothing was written stay such."""
        values, written = self._checked(*source, "reads")[source[1]], self._written[source[0]][source[1]]
        met = meeting([(source[0], source[1].ravel())], [(target[0], target[1].ravel())])
        if met is not None:
            raise self.state.fault(f"copies byte {met[1]:#x} of {name_of(met[0])}, to which it writes")
        self.traffic.reads.append((source[0], source[1].ravel()))
        self.write(*target, values)
        self._written[target[0]][target[1]] = written


def name_of(region: int) -> str:
    """What messages call a region."""
    return "the table memory" if region == INTERNAL else f"region {region}"
