"""PrintIR: a look at the module between two passes."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.transform import InferType, PrintIR, Sequential


def test_the_module_is_printed_and_stays(capsys: pytest.CaptureFixture[str]) -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(np.ones(2, "float32")))))
    made = Sequential([InferType(), PrintIR("here"), PrintIR(show_meta_data=True)])(mod)
    said = capsys.readouterr()
    first, second = said.err.split("PrintIR():\n")
    assert said.out == "" and first.startswith("PrintIR(here):\n") and "add(%x, meta[relay.Constant][0]" in first
    assert "#[metadata]" in second and "#[metadata]" not in first and made["main"].body.op is relay.ops.get("add")
