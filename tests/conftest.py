"""The tests import the installed package: the checkout stands at the end of the path, for `tests.shared` only."""

from __future__ import annotations

import collections
import gc
import os
import re
import signal
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from relaylang.backends.cpu import cc

# The collected tests live as long as the process: the garbage collector need not walk them again and again.
gc.disable()

ROOT = str(Path(__file__).resolve().parent.parent)

sys.path[:] = [p for p in sys.path if os.path.realpath(p or os.curdir) != ROOT] + [ROOT]

# A shell starts what runs in the background with Ctrl-C ignored, and so would be what the tests start.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Import relaylang as it is: pytest rewrites the asserts of every distribution that has a plugin, in each worker."""
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("relaylang")
    # The compiler's results and the parser's tables serve every worker of a run, and no later run.
    if config.option.markexpr and "RELAYLANG_CACHE" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="relay-tests-")
        os.environ["RELAYLANG_CACHE"] = folder.name
        config.add_cleanup(folder.cleanup)
    # `make test` asks for values: compilers give them without optimisation, in half the time. Sweeps have users' flags.
    if config.option.markexpr == "not sweep":
        cc.FLAGS = tuple("-O0" if flag == "-O2" else flag for flag in cc.FLAGS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave cases of a function with a mark `sample(n)` to a longer run, all but one of each n.
    `make test` leaves them to the sweeps, and these to the searches.
    Refuse names of tests that differ from process to process: pytest-xdist wants the same ones in each.
    """
    cases = collections.Counter[tuple[str, str]]()
    for item in items:
        if mark := item.get_closest_marker("sample"):
            case = item.nodeid.partition("[")[0], "search" if item.get_closest_marker("sweep") else "sweep"
            turn, place = divmod(cases[case], mark.args[0])
            if (turn + place) % mark.args[0]:
                item.add_marker(case[1])
            cases[case] += 1
    bad = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]{6,}", item.nodeid)]
    if bad:
        raise pytest.UsageError(f"names of tests hold an address: {bad[0]}")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
