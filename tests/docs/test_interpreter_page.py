"""The page on the interpreter has the tables of the code: operators without a value, and how near floats are."""

from __future__ import annotations

from relaylang.interpreter.kernels import KERNELS, NO_VALUE
from relaylang.interpreter.kernels.tolerance import ABSOLUTE, LOOSER, RELATIVE
from relaylang.ops import OPS
from tests.shared import ROOT

TEXT = (ROOT / "docs/interpreter.md").read_text(encoding="utf-8")
ROWS = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("|")]
BYTES = {"float64": 8, "float32": 4, "float16, bfloat16": 2, "float16": 2, "float8": 1}


def test_operators_without_a_value_stand_there_with_reasons() -> None:
    assert {row[0]: row[1] for row in ROWS if row[0] in NO_VALUE} == NO_VALUE
    assert set(KERNELS) | set(NO_VALUE) == set(OPS)


def test_tolerances_are_the_ones_that_the_tests_use() -> None:
    said = {BYTES[row[0]]: (float(row[1]), float(row[2])) for row in ROWS if row[0] in BYTES and len(row) == 3}
    assert said == {size: (RELATIVE[size], ABSOLUTE[size]) for size in RELATIVE}
    looser = {(row[0], BYTES[row[1]]): (float(row[2]), float(row[3]), row[4]) for row in ROWS if len(row) == 5 and row[1] in BYTES}
    assert looser == LOOSER
