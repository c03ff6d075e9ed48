"""Automatic quantisation: where a float network is cut (`partition`), rounded (`annotate`), and made whole numbers (`realise`).

Each has a mapping `RULES`. A rule gets a call, what its operands became, and the state of the run. It returns the new value
of the call. None leaves the call as it is, with plain operands. A `Mark` holds a value with known facts. An operand that is a
tuple of marked values is a Python tuple of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.rules.quantization import annotate, partition, realise
from relaylang.rules.quantization.common import Rules

#: Step -> its table.
STEPS: Mapping[str, Rules] = {"partition": partition.RULES, "annotate": annotate.RULES, "realise": realise.RULES}
#: Operator -> the steps that have a rule for it.
RULES: Mapping[str, list[str]] = {
    name: [step for step, table in STEPS.items() if name in table] for table in STEPS.values() for name in table
}

__all__ = ["RULES", "STEPS"]
