"""All of the kernels' cases, and a short key for each."""

from __future__ import annotations

from tests.interpreter.cases import CASES
from tests.interpreter.cases_rare import rare
from tests.interpreter.cases_wide import wide
from tests.interpreter.recorded import keys

EVERY = [*CASES, *rare(), *wide()]
KEYS = keys(EVERY)
