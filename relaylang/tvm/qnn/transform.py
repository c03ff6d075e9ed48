"""Passes over the qnn dialect under the names that they have in `tvm.relay.qnn.transform`."""

from __future__ import annotations

from relaylang.tvm.transform import Legalize as _Legalize
from relaylang.tvm.transform import Pass, QnnCanonicalizeOps


def CanonicalizeOps() -> Pass:
    """Operators of the qnn dialect as the plain integer operators that they stand for."""
    return QnnCanonicalizeOps()


def Legalize() -> Pass:
    """Functions of 8-bit tensors as tables, and rules registered under "FTVMQnnLegalize" for what a target does not have."""
    return _Legalize("FTVMQnnLegalize")
