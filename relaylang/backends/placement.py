"""Devices that a program names: compiled code runs on the CPU alone."""

from __future__ import annotations

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call
from relaylang.ops.record import Op
from relaylang.passes.devices.virtual_device import DEVICE_TYPES, VirtualDevice
from relaylang.rules.placement import RULES


def check_on_cpu(call: Call) -> None:
    """Raise `RelayError` (R0608) for an operator's call that names another device than a CPU."""
    assert isinstance(call.op, Op)
    rule = RULES.get(call.op.name)
    for name in rule.devices if rule is not None else ():
        device = VirtualDevice.of(getattr(call.attrs, name))
        if device.device_type > DEVICE_TYPES["cpu"]:
            what = f"{call.op.name} wants {device}, and compiled code runs on the CPU"
            raise RelayError(error("R0608", what, call.span, notes=["name a CPU, or no device"]))
