"""`relay.quantize.quantize` on the classic networks: operators, attributes and constants are those of TVM 0.16."""

from __future__ import annotations

import json

import pytest

from relaylang.quantize import qconfig, quantize
from relaylang.transform import InferType
from tests.quantize.recorded_tvm import CASES, CONFIGS, FILE, digest, network
from tests.shared import few

RECORDED = json.loads(FILE.read_text())


@pytest.mark.parametrize("case", few(CASES, *[case for case in CASES if case[0] == "mlp"]))
def test_results_are_those_of_tvm(case: tuple[str, str]) -> None:
    name, config = case
    mod, params = network(name)
    with qconfig(**CONFIGS[config]):
        made = InferType()(quantize(mod, params))
    assert digest(made) == RECORDED[name][config]
