"""Random regions of the Ethos-U in its simulator, against the interpreter, and damage: `make fuzz-npu COUNT=10000`.

The networks come from `tests.backends.ethosu.generator`, one of each seed. The accelerators take turns. A difference is
printed with its seed and accelerator, and ends the search. Then as many streams, archives and files are damaged and run: each
ends in a diagnostic or gives numbers. The first seed is given, so that several processes may share the work.
"""

from __future__ import annotations

import argparse
import itertools

from relaylang.backends.ethosu.vela import ACCELERATORS
from relaylang.ir import IRModule
from relaylang.syntax import astext
from tests.backends.ethosu.damage import is_refused, targets
from tests.backends.ethosu.generator import compare, random_region


def regions(count: int, first: int) -> None:
    """Compare so many regions of seeds from `first` on."""
    names, done = tuple(ACCELERATORS), dict.fromkeys(ACCELERATORS, 0)
    for seed in itertools.count(first):
        if sum(done.values()) >= count:
            break
        accelerator = names[seed % len(names)]
        try:
            done[accelerator] += compare(seed, accelerator)
        except BaseException:
            network = random_region(seed)
            print(f"seed {seed}, {accelerator}, {', '.join(network.rows)}:\n{astext(IRModule.from_expr(network.function))}")
            raise
    print(f"{sum(done.values())} regions of the seeds {first} to {seed - 1}: no difference")
    print("\n".join(f"  {name}: {number}" for name, number in done.items()))


def damage(count: int, first: int) -> None:
    """Damage streams, weights, archives and files, and run them."""
    runs, refused = targets(), 0
    for seed in range(first, first + count):
        try:
            refused += is_refused(runs[seed % len(runs)], seed)
        except BaseException:
            print(f"damage of seed {seed}")
            raise
    print(f"{count} damaged inputs from seed {first} on: {refused} refused, no other failure")


def main() -> None:
    """Compare regions, then run damaged inputs, until the count is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="regions, and damaged inputs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args()
    regions(given.count, given.seed)
    damage(given.count, given.seed)


if __name__ == "__main__":
    main()
