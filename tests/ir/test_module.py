"""Modules and expressions as text."""

from __future__ import annotations

import numpy as np

import relaylang as relay


def test_text_of_modules_and_expressions() -> None:
    module = relay.parse('#[version = "0.0.5"]\ndef @main(%data: int32) {\n  %data\n}\n')
    assert module.astext() == relay.astext(module) == str(module)
    assert module["main"].astext() == relay.astext(module["main"])
    big = relay.const(np.ones((2, 3), np.float32))
    assert "#[metadata]" in big.astext() and "#[metadata]" not in big.astext(show_meta_data=False)
