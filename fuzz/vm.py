"""Random programs on the VM, and some as C, against the interpreter: `make fuzz-vm COUNT=100000`.

The first seed is given, so that several processes may share the work. A program that differs is printed, and ends the search.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from relaylang.syntax import parse
from relaylang.testing.generators.functional import Functional
from relaylang.typing import check
from tests.backends.aot.agree import assert_c_agrees
from tests.backends.vm.agree import assert_agrees


def compare(seed: int, text: str, agrees: Callable[..., object]) -> None:
    """Call `agrees` with a program and its arguments; print the program where it raises."""
    mod = parse(text).module
    assert mod is not None
    check(mod)
    rng = np.random.default_rng(seed)
    try:
        agrees(mod, *[(rng.integers(-8, 9, (2, 3)) / 4).astype("float32") for _ in range(2)])
    except BaseException:
        print(f"seed {seed}:\n{text}")
        raise


def main() -> None:
    """Compare programs until the count or the time is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most seconds")
    parser.add_argument("--native", type=int, default=50, help="every so many programs, kernels are compiled, too (default: 50)")
    parser.add_argument("--aot", type=int, default=50, help="every so many programs, one of loops becomes C (default: 50)")
    given = parser.parse_args()
    end, done = time.monotonic() + given.seconds, 0
    for seed in range(given.seed, given.seed + given.count):
        if time.monotonic() > end:
            break
        text = Functional(seed, references=seed % 2 == 1, data=seed % 3 != 0).text(random.Random(seed).randint(2, 20))
        compare(seed, text, partial(assert_agrees, native=seed % given.native == 0))
        if seed % given.aot == 0:
            compare(seed, Functional(seed, loops=True).text(random.Random(seed).randint(2, 20)), assert_c_agrees)
        done += 1
    print(f"{done} programs from seed {given.seed} on: no difference")


if __name__ == "__main__":
    main()
