"""Every operator of the export to ONNX, with operands of every rank, attribute and element type, against onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from relaylang.diagnostics import RelayError
from relaylang.export import export_onnx
from relaylang.export.onnx.packing import LAYERS
from relaylang.export.onnx.table import RULES
from relaylang.ir import IRModule
from relaylang.typing import infer
from tests.consistency.calls import Made, bases_by_operator, changed_types
from tests.consistency.outcome import Refused, function
from tests.consistency.ranks import ranked
from tests.export.peers import onnx_outputs
from tests.export.programs import Case, difference, interpreted

#: Tests of layers that are found among several operators are in test_recurrent.py.
OPERATORS = [name for name in sorted(RULES) if name not in {op.name for op in LAYERS.values()}]
SHARDS = 16
#: Operators whose results differ, and why.
APART = {
    "cast": "numbers beyond the range of integers, and those that are no numbers, become others",
    "cast_like": "as cast",
    "reverse_sequence": "onnxruntime refuses lengths beyond the sequence, which the operator takes",
    **{
        f"qnn.{name}": "numbers that are none, or infinite, become other integers"
        for name in ("log", "sqrt", "rsqrt", "quantize", "requantize")
    },
    "qnn.softmax": "the operator approximates exponentials by shifts of integers",
}


def calls(name: str, bases: int, each: int) -> Iterator[Made]:
    """Right calls of ranks to 5. onnxruntime takes no arrays of bfloat16 from Python."""
    yield from ranked(name, bases=bases, each=each)
    for base in bases_by_operator().get(name, [])[:1]:
        yield from changed_types(base)


def cases(name: str, bases: int, each: int) -> Iterator[Case]:
    for made in calls(name, bases, each):
        try:
            checked, inputs = function(made)
        except Refused:
            continue
        if any(x.ndim > 5 or x.dtype.name == "bfloat16" for x in inputs) or "bfloat16" in made[1].values():
            continue
        module = IRModule.from_expr(checked)
        infer(module)
        yield Case(name, made[1], module, inputs)


def differences(name: str, bases: int = 2, each: int = 2) -> dict[str, str]:
    """The cases whose results differ from the interpreter's. The exporter may refuse a case, with a reason (R0806)."""
    failed: dict[str, str] = {}
    for case in cases(name, bases, each):
        try:
            interpreted(case.module, case.inputs)
        except RelayError:
            continue  # a division by zero, a place beyond an axis
        try:
            model = export_onnx(case.module)
        except RelayError as refused:
            if [d.code for d in refused.diagnostics] != ["R0806"]:
                failed[case.says] = str(refused)
            continue
        try:
            said = difference(case, onnx_outputs(model, case.inputs))
        except Exception as wrong:
            said = str(wrong)[-300:]
        if said and name not in APART:
            failed[case.says] = said
    return failed


@pytest.mark.parametrize("name", ["transpose", "prod", "concatenate", "nn.batch_matmul", "nn.depth_to_space", "topk", "full_like"])
def test_some_operators(name: str) -> None:
    assert differences(name, bases=1, each=1) == {}


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_operator(shard: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        failed = {name: found for name in OPERATORS[shard::SHARDS] if (found := differences(name))}
    assert failed == {}
