"""The instruments of passes, as in `tvm.instrument`."""

from __future__ import annotations

from relaylang.passes.context import PassInstrument
from relaylang.passes.instruments import PassTimingInstrument, PrintAfterAll, PrintBeforeAll, pass_instrument

__all__ = ["PassInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll", "pass_instrument"]
