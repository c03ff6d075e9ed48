"""Random programs on the VM, and some as C, against the interpreter: `make fuzz-vm COUNT=100000`.

Programs of every construct come in batches, one module each (`relaylang.testing.generators.typed`). With each batch comes one
program of smooth operators (`functional`). The first seed is given, so that several processes may share the work. A program
that differs is printed, and ends the search.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from relaylang.ir.bulk import gc_paused
from relaylang.syntax import parse
from relaylang.testing.generators.functional import Functional
from relaylang.typing import check
from tests.backends.aot.agree import assert_c_agrees
from tests.backends.vm.agree import assert_agrees, assert_programs_agree

#: Programs of a module, and those of them whose kernels are compiled in some batches.
BATCH, NATIVE = 200, 10


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


def batch(seeds: range, native: bool) -> None:
    """Compare programs of some seeds. With `native`, some of them have compiled kernels, and one of loops becomes C."""
    first = seeds[0]
    size = random.Random(first).randint(2, 20)
    text = Functional(first, references=first // BATCH % 2 == 1, data=first // BATCH % 3 != 0).text(size)
    compare(first, text, partial(assert_agrees, native=native))
    if native:
        compare(first, Functional(first, loops=True).text(size), assert_c_agrees)
        assert_programs_agree(seeds[:NATIVE], native=True)
        seeds = seeds[NATIVE:]
    assert_programs_agree(seeds)


def main() -> None:
    """Compare programs until the count or the time is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most seconds")
    parser.add_argument("--native", type=int, default=20, help="every so many batches, kernels are compiled, too (default: 20)")
    given = parser.parse_args()
    end, done = time.monotonic() + given.seconds, 0
    last = given.seed + given.count
    for first in range(given.seed, last, BATCH):
        if time.monotonic() > end:
            break
        seeds = range(first, min(last, first + BATCH))
        with gc_paused():
            batch(seeds, first // BATCH % given.native == 0)
        gc.collect()
        done += len(seeds)
    print(f"{done} programs from seed {given.seed} on: no difference")


if __name__ == "__main__":
    main()
