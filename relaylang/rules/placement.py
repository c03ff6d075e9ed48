"""PlanDevices: the places of the operands of each operator, where these do not all lie with the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Place(Enum):
    """The place of an operand or a result."""

    #: The memory of the processor that runs the program.
    HOST = auto()
    #: The place of the call's result.
    RESULT = auto()
    #: Any place.
    FREE = auto()
    #: The attribute `virtual_device` of the call.
    ATTRIBUTE = auto()


@dataclass(frozen=True)
class Rule:
    """`operands` are the places of a call's operands, `result` that of its result; empty where they all lie together.

    `devices` are the attributes that name devices. With `calls_operand` the call is one of its first operand, with the
    fields of its second.
    """

    operands: tuple[Place, ...] = ()
    result: Place = Place.RESULT
    devices: tuple[str, ...] = ()
    calls_operand: bool = False


#: The operator that places a value, and the operator that copies a value between devices.
ON_DEVICE, DEVICE_COPY = "on_device", "device_copy"

RULES: Mapping[str, Rule] = {
    ON_DEVICE: Rule(devices=("virtual_device",)),
    DEVICE_COPY: Rule(devices=("src_virtual_device", "dst_virtual_device")),
    "call_lowered": Rule(calls_operand=True),
    "memory.alloc_storage": Rule((Place.HOST, Place.HOST, Place.HOST), Place.ATTRIBUTE, ("virtual_device",)),
    "memory.alloc_tensor": Rule((Place.RESULT, Place.HOST, Place.HOST)),
    "vm.shape_of": Rule((Place.FREE,), Place.HOST),
    "vm.reshape_tensor": Rule((Place.RESULT, Place.HOST)),
    "vm.invoke_tvm_op": Rule((Place.FREE, Place.RESULT, Place.RESULT)),
}
