"""The tensors in memory that an operation reads, and how its blocks use them."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from relaylang.backends.ethosu.simulator.accumulators import IFM2
from relaylang.backends.ethosu.simulator.elementwise import operand_extents, operand_names
from relaylang.backends.ethosu.simulator.feature_maps import Extents, is_chained, ofm_extents
from relaylang.backends.ethosu.simulator.macs import Window, has_given_weights
from relaylang.backends.ethosu.simulator.pooling import mode_of
from relaylang.backends.ethosu.simulator.state import State


class Use(Enum):
    """How blocks of the output use an input."""

    #: At the places of the block; along an axis of one place, at this one.
    SAME = 0
    #: Under the kernel.
    WINDOW = 1
    #: A row for each channel of the block.
    WEIGHTS = 2
    #: In an order that the registers do not tell.
    ANY = 3


class Input(NamedTuple):
    """A tensor that an operation reads: its register, its extents, and its use."""

    name: str
    extents: Extents
    use: Use


def inputs_of(state: State) -> list[Input]:
    """The inputs in memory of the operation that is executed now."""
    inputs = {"OP_ELEMENTWISE": _operands, "OP_RESIZE": _resized}.get(state.command.name, _of_sums)(state)
    return [i for i in inputs if not is_chained(state, i.name)]


def sums_channels(state: State) -> bool:
    """Whether each element of the output depends on all channels."""
    return state.command.name == "OP_CONV" or (state.command.name == "OP_POOL" and mode_of(state) == "REDUCE_SUM")


def _operands(state: State) -> list[Input]:
    extents_by_name = [(name, operand_extents(state, name)) for name in operand_names(state)]
    return [Input(name, extents, Use.SAME) for name, extents in extents_by_name if extents is not None]


def _resized(state: State) -> list[Input]:
    extents = (state["KERNEL_HEIGHT_M1"] + 1, state["KERNEL_WIDTH_M1"] + 1, state["OFM_DEPTH_M1"] + 1)
    return [Input("IFM", extents, Use.ANY)]


def _of_sums(state: State) -> list[Input]:
    channels = state["IFM_DEPTH_M1"] + 1
    inputs = []
    if state.command.name != "OP_POOL" or mode_of(state) != "NONE":
        inputs.append(Input("IFM", (*Window(state).input, channels), Use.WINDOW))  # type: ignore[arg-type]
    if has_given_weights(state):
        inputs.append(Input("IFM2", (1, state["OFM_DEPTH_M1"] + 1, channels), Use.WEIGHTS))
    if state.field("ACC_FORMAT", "acc_input") == IFM2:
        inputs.append(Input("IFM2", ofm_extents(state), Use.SAME))
    return inputs
