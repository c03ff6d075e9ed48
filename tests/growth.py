"""How work grows with a program's size, by measures that a busy machine does not change much."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType

Run = Callable[[], object]


def work(run: Run) -> int:
    """How many functions a call enters, Python's and C's together: the same count on every machine."""
    entered = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal entered
        if event in ("call", "c_call"):
            entered += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return entered


def assert_linear(prepare: Callable[[int], Run], small: int = 200, times: int = 5) -> None:
    """`prepare(n)` gives what is to be measured at size `n`; a program `times` as large may take `times` the work."""
    prepare(3)()  # what is done once, such as an import
    first, second = work(prepare(small)), work(prepare(small * times))
    assert second <= 1.25 * times * first, f"{first} functions are entered at {small}, {second} at {small * times}"


def seconds(run: Run, rounds: int = 3) -> float:
    """Processor time of a call, the least of several rounds. For ratios with a wide margin, where the work is C's."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return best
