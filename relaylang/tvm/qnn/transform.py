"""Passes over the qnn dialect under the names that they have in `tvm.relay.qnn.transform`."""

from __future__ import annotations

from relaylang.passes.manager import Pass
from relaylang.passes.quantize.legalize import Legalize as _Legalize
from relaylang.passes.quantize.qnn_canonicalize_ops import QnnCanonicalizeOps


def CanonicalizeOps() -> Pass:
    """Operators of the qnn dialect as the plain integer operators that they stand for."""
    return QnnCanonicalizeOps()


def Legalize() -> Pass:
    """Turns functions of 8-bit tensors into tables, and applies the rules under "FTVMQnnLegalize" for the target."""
    return _Legalize("FTVMQnnLegalize")
