"""Transfers: bytes in a row, rows of them with strides, and rows that indices choose."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import MOST
from relaylang.backends.ethosu.simulator.memory import INTERNAL, TABLES, Memory
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.stream import Stream

#: Bytes of an index.
_INDEX = 4
#: Bytes of a unit of transfers.
_UNIT = 16


def transfer(state: State, memory: Memory) -> None:
    """`OP_DMA_START`."""
    _check_alignment(state)
    size = state.address("DMA0_LEN")
    rows = _rows(state)
    if size * rows[0] * rows[1] > MOST:
        raise state.fault(f"copies {rows[1]} x {rows[0]} rows of {size} bytes")
    state.spend(size * rows[0] * rows[1])
    chosen = {end: bool(state.field(f"DMA0_{end}_REGION", "idx_mode")) for end in ("SRC", "DST")}
    if all(chosen.values()):
        raise state.fault("chooses the rows of both ends, which the accelerator cannot")
    indices = _indices(state, memory, rows) if any(chosen.values()) else None
    if indices is not None and chosen["DST"]:
        _check_distinct(state, indices)
    source, target = (_addresses(state, memory, end, rows, size, indices if chosen[end] else None) for end in ("SRC", "DST"))
    memory.copy(source, target)


def _check_alignment(state: State) -> None:
    """The U55 copies whole units of 16 bytes. Later products do so from and to a core's own memory alone."""
    for end in ("SRC", "DST"):
        is_internal = state.field(f"DMA0_{end}_REGION", "region_mode")
        if is_internal or state.stream.product == "ethos-u55":
            state.aligned(f"DMA0_{end}", _UNIT)
            state.aligned("DMA0_LEN", _UNIT)


def _rows(state: State) -> tuple[int, int]:
    """The rows of a transfer, and how often there are as many."""
    mode = state.field("DMA0_SRC_REGION", "stride_mode")
    if not mode and not state.is_u85:
        return 1, 1
    if not state.is_u85:
        raise state.fault("copies with strides, which the simulator does not do")
    if mode > 2:
        raise state.fault(f"has the unknown kind of strides {mode}")
    return state["DMA0_SIZE0"] if mode else 1, state["DMA0_SIZE1"] if mode == 2 else 1


def _indices(state: State, memory: Memory, rows: tuple[int, int]) -> np.ndarray:
    """The numbers of the rows that a transfer chooses."""
    inner, outer = np.arange(rows[0]), np.arange(rows[1])[:, None]
    skip = state.address("DMA0_IDX_SKIP1") if rows[1] > 1 else 0
    at = state.address("DMA0_IDX") + (outer * rows[0] + inner) * _INDEX + outer * skip
    raw = memory.read(state.field("DMA0_IDX_REGION", "region"), at[..., None] + np.arange(_INDEX))
    numbers = raw.view("<i4")[..., 0].astype(np.int64)
    most = state.payload("DMA0_IDX_MAX")
    if numbers.size and not (0 <= numbers.min() and numbers.max() <= most):
        bad = numbers.min() if numbers.min() < 0 else numbers.max()
        raise state.fault(f"chooses the row {bad} of {most + 1}")
    return numbers


def _check_distinct(state: State, indices: np.ndarray) -> None:
    """Rows that are written differ: which of two comes last is not documented."""
    ordered = np.sort(indices, axis=1)
    again = ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]]
    if again.size:
        raise state.fault(f"writes the row {again[0]} twice: the indices of replaced entries must differ")


def _addresses(
    state: State, memory: Memory, end: str, rows: tuple[int, int], size: int, indices: np.ndarray | None
) -> tuple[int, np.ndarray]:
    """The region of an end of a transfer, and the addresses of all bytes."""
    region, at = _start(state, end)
    if rows == (1, 1) and indices is None:
        return region, memory.span(region, at, size)
    inner, outer = np.arange(rows[0]) if indices is None else indices, np.arange(rows[1])[:, None]
    stride0 = state.address(f"DMA0_{end}_STRIDE0")
    stride1 = state.address(f"DMA0_{end}_STRIDE1") if rows[1] > 1 else 0
    return region, (at + outer * stride1 + inner * stride0)[..., None] + np.arange(size)


def _start(state: State, end: str) -> tuple[int, int]:
    """The region and the address at which an end of a transfer begins. Tables lie at the end of a core's own memory."""
    at = state.address(f"DMA0_{end}")
    if not state.field(f"DMA0_{end}_REGION", "region_mode"):
        return state.field(f"DMA0_{end}_REGION", "region"), at
    return INTERNAL, at if state.is_u85 else at - (state.stream.shared_kib // state.stream.cores << 10) + TABLES


def has_room_for_tables(stream: Stream) -> bool:
    """Whether all transfers to a core's own memory stay inside the part for tables."""
    state = State(stream)
    for command in stream.commands:
        if command.name.startswith("SET_"):
            state.set(command)
        elif command.name == "OP_DMA_START":
            region, at = _start(state, "DST")
            if region == INTERNAL and not 0 <= at <= TABLES - state.address("DMA0_LEN"):
                return False
    return True
