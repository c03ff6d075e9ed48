"""Every kernel against TVM itself, compiled for x86-64, where `RELAY_ORACLE` names a Python that has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interpreter import recorded
from tests.interpreter.agreement import assert_agree, computed
from tests.interpreter.every_case import EVERY, KEYS
from tests.interpreter.oracle import ORACLE, Oracle, program
from tests.interpreter.values import Case

pytestmark = pytest.mark.skipif(not ORACLE, reason="RELAY_ORACLE names no Python with TVM")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    made = Oracle()
    yield made
    made.close()


@pytest.mark.parametrize("case", EVERY if ORACLE else EVERY[:1], ids=KEYS if ORACLE else KEYS[:1])
def test_kernel(case: Case, oracle: Oracle) -> None:
    name, attrs, args, constant = case
    parts = recorded.flat(args)
    bound = {f"p{i}": part for i, part in enumerate(parts) if i in constant}
    inputs = [part for i, part in enumerate(parts) if i not in constant]
    theirs = oracle.run(program(name, attrs, args), inputs, bound)
    if isinstance(theirs, str):
        pytest.skip(f"TVM refuses: {theirs[-200:]}")
    assert_agree(name, computed(case), theirs)
