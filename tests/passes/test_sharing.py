"""Each pass visits shared nodes once: programs of few lines have two to the power of their number of paths."""

from __future__ import annotations

import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.syntax import astext
from relaylang.transform import InferType, PassContext
from tests.growth import SHARED, within
from tests.passes.test_growth import CASES, made

#: Lines of a program, and the most functions that a pass and the printing of its result enter.
LINES, MOST = 22, 250_000
#: PartialEvaluate unfolds calls up to a bound that a small program does not reach.
UNFOLDS, MOST_UNFOLDED = "PartialEvaluate", 2_000_000
#: Lines of a long program, and how many functions are entered for each.
LONG, EACH = 20_000, 1_000
#: What passes say to programs that they take no part in.
REFUSALS = {"R0511", "R0515"}
#: Those that have calls, and types that are shared.
FEW = ("calls", "tuples", "functions", "references")


def transformed(name: str, mod: IRModule) -> str:
    with PassContext(opt_level=4):
        try:
            return astext(made(name)(mod))
        except RelayError as wrong:
            assert wrong.diagnostics[0].code in REFUSALS
            return ""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", list(dict.fromkeys(name for name, _ in CASES)))
@pytest.mark.parametrize("shape", [s if s in FEW else pytest.param(s, marks=pytest.mark.sweep) for s in SHARED])
def test_a_pass_looks_at_what_is_shared_once(name: str, shape: str) -> None:
    transformed(name, InferType()(relay.parse(SHARED[shape](3))))
    mod = InferType()(relay.parse(SHARED[shape](LINES)))
    text = within(MOST_UNFOLDED if name == UNFOLDS else MOST, lambda: transformed(name, mod))
    assert isinstance(text, str) and len(text) < 250_000


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("name", list(dict.fromkeys(name for name, _ in CASES)))
def test_long_programs_of_shared_values(name: str) -> None:
    mod = InferType()(relay.parse(SHARED["calls"](LONG)))
    assert isinstance(within(EACH * LONG, lambda: transformed(name, mod)), str)
