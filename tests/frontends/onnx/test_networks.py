"""Real ONNX networks compute what onnxruntime computes, interpreted and compiled, with static and with dynamic shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.frontends.common import Imported
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import structural_equal
from tests.frontends import networks
from tests.frontends.originals import difference, feed, in_double, onnx_outputs
from tests.shared import few

NAMES = networks.names(".onnx")
#: Relative to the largest value. silero_vad_half keeps its weights in float16, and computes with float32.
CLOSE = 1e-5
#: How much further from float64's values a result may be than the runtime's: the order of sums differs.
FURTHER = 8


def imported(name: str, static: bool) -> Imported:
    shapes = {key: value.shape for key, value in feed(name).items()} if static else {}
    return import_onnx(networks.data(name), Options(shapes), file=name)


def evaluated(made: Imported, inputs: dict[str, np.ndarray]) -> list[Any]:
    result = Evaluator(made.module, made.params).call("main", (), dict(inputs))
    return list(result) if isinstance(result, (tuple, list)) else [result]


def agree(name: str, found: list[Any], inputs: dict[str, np.ndarray]) -> None:
    """Hold outputs against onnxruntime's; where both round differently, against the values in float64."""
    wanted = onnx_outputs(networks.data(name), inputs)
    if difference(found, wanted) <= CLOSE:
        return
    made = import_onnx(networks.data(name), Options({key: value.shape for key, value in inputs.items()}), file=name)
    double = Imported(in_double(made.module), {}, made.listing)
    exact = [e.astype("float32") for e in evaluated(double, {k: v.astype("float64") for k, v in inputs.items()})]
    assert difference(found, exact) <= max(CLOSE, FURTHER * difference(wanted, exact))


@pytest.mark.sample(2)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_agrees(name: str, static: bool) -> None:
    agree(name, evaluated(imported(name, static), feed(name)), feed(name))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
def test_other_extents(name: str) -> None:
    inputs = feed(name, other=True)
    agree(name, evaluated(imported(name, False), inputs), inputs)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", few(NAMES, *[n for n in NAMES if not n.startswith("ch_PP-OCR")]))
def test_compiled_code_agrees(name: str) -> None:
    made = imported(name, True)
    result = compile_module(made.module, "c", params=made.params).run(**feed(name))
    agree(name, list(result) if isinstance(result, (tuple, list)) else [result], feed(name))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_text_reads_back(name: str) -> None:
    made = imported(name, False)
    text = relay.astext(made.module)
    again = relay.parse(text)
    assert structural_equal(again, made.module)
    assert relay.infer(made.module, fresh=True) == []
    assert relay.astext(relay.transform.InferType()(again)) == text
