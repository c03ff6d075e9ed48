"""The command stream, executed: registers are set, operations run, waits end operations under way, branches are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from relaylang.backends.ethosu.simulator.elementwise import elementwise
from relaylang.backends.ethosu.simulator.feature_maps import is_chained
from relaylang.backends.ethosu.simulator.jobs import Jobs
from relaylang.backends.ethosu.simulator.macs import convolve
from relaylang.backends.ethosu.simulator.memory import INTERNAL, Memory, name_of
from relaylang.backends.ethosu.simulator.overlaps import Overlaps
from relaylang.backends.ethosu.simulator.pooling import pool
from relaylang.backends.ethosu.simulator.resize import resize
from relaylang.backends.ethosu.simulator.shared_memory import lost_tables
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.transfers import transfer
from relaylang.backends.ethosu.stream import Command, Stream

#: Transfers that a product has under way at once.
_TRANSFERS = {"ethos-u55": 1, "ethos-u65": 2, "ethos-u85": 4}
#: The units by the commands that start them.
_OPERATIONS: dict[str, Callable[[State, Memory], None]] = {
    "OP_CONV": convolve,
    "OP_DEPTHWISE": convolve,
    "OP_POOL": pool,
    "OP_ELEMENTWISE": elementwise,
    "OP_RESIZE": resize,
}
#: A function of each command that stores a tensor, and of this tensor: height, width, channels, as int64.
Observer = Callable[[Command, np.ndarray], None]
#: The conditions of `OP_BRANCH`: none, and that the last operation's result is not zero (`COND_STATUS`).
_ALWAYS = 0
#: The most branches that a stream may take: a loop without an end is refused.
_MOST_BRANCHES = 1 << 15
#: Commands that count time, or tell the host.
_IGNORED = frozenset({"OP_IRQ", "OP_PMU_MASK"})


def simulate(
    stream: Stream, regions: Mapping[int, np.ndarray], written: Mapping[int, np.ndarray], observer: Observer | None = None
) -> None:
    """Execute a command stream on the driver's regions, arrays of bytes by number, in place.

    `written` says which bytes hold something at the start: weights and inputs. Raises `RelayError` (R0616) where
    hardware would go wrong, and for units that the simulator lacks.
    """
    state = State(stream)
    memory = Memory(state, regions, written, _TRANSFERS[stream.product])
    jobs, overlaps, branches = Jobs(), Overlaps(), _Branches(stream)
    at = 0
    while at < len(stream.commands):
        command = state.command = stream.commands[at]
        at += 1
        if command.name.startswith("SET_"):
            state.set(command)
        elif command.name == "OP_STOP":
            return
        elif command.name in ("OP_DMA_WAIT", "OP_KERNEL_WAIT"):
            memory.wait("transfer" if command.name == "OP_DMA_WAIT" else "kernel", command.param & 15)
            if not memory.under_way["kernel"]:
                jobs.all_done()
        elif command.name == "OP_DMA_START":
            memory.begin("transfer")
            transfer(state, memory)
            memory.end()
        elif command.name in _OPERATIONS:
            memory.begin("kernel")
            memory.lose(INTERNAL, lost_tables(state))
            memory.output = None
            _OPERATIONS[command.name](state, memory)
            overlaps.follow(state, memory)
            met = jobs.meeting(state)
            if met is not None:
                raise state.fault(
                    f"may use byte {met[2]:#x} of {name_of(met[1])} before the operation in front has done so: at most "
                    f"BLOCKDEP {met[0]} is right"
                )
            jobs.follow(state)
            memory.end(is_chained(state, "OFM"))
            if observer is not None and memory.output is not None:
                observer(command, memory.output)
        elif command.name == "OP_BRANCH":
            at = branches.next(state, memory, at)
        elif command.name not in _IGNORED:
            raise state.fault("starts a unit that the simulator lacks")
    raise state.fault("is the last one, and there is no OP_STOP behind it")


class _Branches:
    """The places that branches go to: the U85 alone has these. `OP_BRANCH` names the byte behind the driver's header."""

    def __init__(self, stream: Stream) -> None:
        self._commands = stream.commands
        self._taken = 0
        self._places: dict[int, int] = {}

    def next(self, state: State, memory: Memory, at: int) -> int:
        """The number of the command to execute next; `at` is that of the one behind the branch."""
        if state.command.param & 1 != _ALWAYS and not _is_true(state, memory):
            return at
        self._taken += 1
        if self._taken > _MOST_BRANCHES:
            raise state.fault(f"is where the stream exceeds {_MOST_BRANCHES} branches, the most that are simulated")
        self._places = self._places or {command.at: number for number, command in enumerate(self._commands)}
        target = self._commands[0].at + (state.command.payload or 0)
        if target not in self._places:
            raise state.fault(f"goes to byte {target:#x}, where no command begins")
        return self._places[target]


def _is_true(state: State, memory: Memory) -> bool:
    """Whether the last operation's result is not zero."""
    if memory.output is None or memory.output.size != 1:
        raise state.fault("depends on the last operation's result, and there is none of one element")
    return bool(memory.output.any())
