"""What many tests use. Where third-party test data lies; tests that need it skip where it is absent."""

from __future__ import annotations

import ast
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from relaylang.ir.bulk import gc_paused

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("RELAY_SHARED", ROOT.parent / "shared"))
GOLDEN = SHARED / "golden"
FRAGMENTS = SHARED / "fragments"
CORPUS = SHARED / "corpus"

#: Networks that are run in a moment.
SMALL = ("dqn", "lstm", "mlp", "synthetic")

needs_shared = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no shared data at {SHARED} (set RELAY_SHARED)")


#: Seconds after which a process or an answer counts as missing. No load of the machine makes one take that long.
PATIENCE = 600


def processor_time(process: int) -> float:
    """The processor time of a process in seconds, as Linux tells it; infinite once it has ended."""
    state, *numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return math.inf if state in "ZX" else (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK")


def wait_for_work(process: int, seconds: float = 1) -> None:
    """Wait until a process has used so much processor time. Then it is at work, on a busy machine, too."""
    if not Path("/proc/self/stat").exists():
        time.sleep(2 * seconds)
        return
    while processor_time(process) < seconds:
        time.sleep(0.02)


def syntax_tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    with gc_paused():
        return ast.parse(path.read_text(encoding="utf-8"))


def golden(kind: str) -> list[Path]:
    """The golden files of one kind ("typed", "anf", "simplified", "fused"), or an empty list."""
    return sorted(GOLDEN.glob(f"*.{kind}.relay"))


def few(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """Cases for `parametrize`: `make test` runs those of `kept`, `make sweeps` the others."""
    return [case if case in kept else pytest.param(case, marks=pytest.mark.sweep) for case in cases]


def check_each(check: Callable[[Any], object], cases: Iterable[Any], names: Iterable[Any] | None = None) -> None:
    """Check every case in one test, which costs less than a test each. Fail with the names of all that are wrong."""
    cases = list(cases)
    wrong: list[str] = []
    for case, name in zip(cases, cases if names is None else names, strict=True):
        try:
            check(case)
        except Exception as problem:
            wrong.append(f"{name}: {type(problem).__name__}: {problem}")
    assert cases
    assert not wrong, f"{len(wrong)} of {len(cases)} are wrong:\n" + "\n".join(wrong[:50])


def each_once(cases: Iterable[Any], others: Sequence[Any]) -> list[Any]:
    """Pairs for `parametrize`. `make test` runs each case with one of the others, `make sweeps` runs the rest."""
    return [
        pytest.param(case, other, marks=() if number % len(others) == place else pytest.mark.sweep)
        for number, case in enumerate(cases)
        for place, other in enumerate(others)
    ]


def networks() -> list[Any]:
    """The typed golden networks for `parametrize`; those that take seconds are left to `make sweeps`."""
    paths = golden("typed")
    return few(paths, *[path for path in paths if path.name.split(".")[0] in SMALL])
