"""The command stream, executed: registers are set, operations run, waits end operations under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.ethosu.simulator.elementwise import elementwise
from relaylang.backends.ethosu.simulator.macs import convolve
from relaylang.backends.ethosu.simulator.memory import INTERNAL, TABLES, Memory
from relaylang.backends.ethosu.simulator.pooling import pool
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.stream import Stream

#: Bit 8 of a transfer's region: the memory inside the accelerator.
_INSIDE = 1 << 8
#: Transfers that a product has under way at once.
_TRANSFERS = {"ethos-u55": 1, "ethos-u65": 2}


def simulate(stream: Stream, regions: Mapping[int, np.ndarray], written: Mapping[int, np.ndarray]) -> None:
    """Execute a command stream on the driver's regions, arrays of bytes by number, in place.

    `written` says which bytes hold something at the start: weights and inputs. Raises `RelayError` (R0616) where
    hardware would go wrong, and for units that the simulator lacks.
    """
    state = State()
    if stream.product not in _TRANSFERS:
        raise state.fault(f"is for {stream.accelerator}; the simulator has ethos-u55 and ethos-u65")
    memory = Memory(state, regions, written, _TRANSFERS[stream.product])
    for command in stream.commands:
        state.command = command
        if command.name.startswith("SET_"):
            state.set(command)
        elif command.name == "OP_STOP":
            return
        elif command.name in ("OP_DMA_WAIT", "OP_KERNEL_WAIT"):
            memory.wait("transfer" if command.name == "OP_DMA_WAIT" else "kernel", command.param & 15)
        elif command.name == "OP_DMA_START":
            memory.begin("transfer")
            _transfer(state, memory, stream)
            memory.end()
        elif command.name in _OPERATIONS:
            memory.begin("kernel")
            _OPERATIONS[command.name](state, memory, stream)
            memory.end()
    raise state.fault("is the last one, and there is no OP_STOP behind it")


_OPERATIONS: dict[str, Any] = {
    "OP_CONV": lambda state, memory, stream: convolve(state, memory, stream, False),
    "OP_DEPTHWISE": lambda state, memory, stream: convolve(state, memory, stream, True),
    "OP_POOL": pool,
    "OP_ELEMENTWISE": lambda state, memory, stream: elementwise(state, memory),
}


def _transfer(state: State, memory: Memory, stream: Stream) -> None:
    """`OP_DMA_START`: copy bytes between regions, or to the tables inside."""
    ends: Sequence[str] = ("SRC", "DST")
    places = []
    for end in ends:
        region = state[f"DMA0_{end}_REGION"]
        if region >> 9 & 3:
            raise state.fault("copies with strides, which the simulator does not do")
        at = state.address(f"DMA0_{end}")
        if region & _INSIDE:
            at -= (stream.shared_kib // stream.cores << 10) - TABLES
            places.append((INTERNAL, at))
        else:
            places.append((region & 7, at))
    size = state.address("DMA0_LEN")
    source, target = (memory.span(region, at, size) for region, at in places)
    memory.write(places[1][0], target, memory.read(places[0][0], source))
