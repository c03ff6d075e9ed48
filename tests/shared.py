"""What many tests use. Where third-party test data lies; tests that need it skip where it is absent."""
from __future__ import annotations

import ast
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


def wait_for_work(process: int, seconds: float = 1) -> None:
    """Wait until a process has used so much processor time: it then does what it was started for, on a busy machine, too."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        time.sleep(2 * seconds)
        return
    while True:
        state, *numbers = stat.read_text().rpartition(")")[2].split()
        if state in "ZX" or int(numbers[10]) + int(numbers[11]) >= seconds * os.sysconf("SC_CLK_TCK"):
            return
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
    """Check every case in one test, which costs less than a test each, and fail with all that are wrong, by name."""
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
    """The pairs of cases with others for `parametrize`: `make test` runs each case with one of the others, `make sweeps` the rest."""
    return [
        pytest.param(case, other, marks=() if number % len(others) == place else pytest.mark.sweep)
        for number, case in enumerate(cases)
        for place, other in enumerate(others)
    ]


def networks() -> list[Any]:
    """The typed golden networks for `parametrize`; those that take seconds are left to `make sweeps`."""
    paths = golden("typed")
    return few(paths, *[path for path in paths if path.name.split(".")[0] in SMALL])
