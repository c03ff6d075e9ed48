"""A plugin of pytest for `tvm_suite.py`: writes each test's outcome to a file, and ends tests that take too long."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

_RESULTS = os.environ["RELAY_TVM_RESULTS"]
_SECONDS = int(os.environ.get("RELAY_TVM_SECONDS", "60"))


def _write(name: str, outcome: str, message: str = "") -> None:
    with open(_RESULTS, "a", encoding="utf-8") as out:
        out.write(json.dumps([name, outcome, message]) + "\n")


def _stop(number: int, frame: Any) -> None:
    raise TimeoutError(f"longer than {_SECONDS} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Note the test before it runs: the process may end in it."""
    _write(item.nodeid, "started")
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report: Any) -> None:
    """Write a test's outcome; a failure to set up is one of the test."""
    if report.when == "call" or (report.outcome != "passed" and report.when == "setup"):
        message = ""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(getattr(crash, "message", None) or report.longrepr)
            path = getattr(crash, "path", "")
            message = f"{os.path.basename(path)}:{getattr(crash, 'lineno', '')} {message}"
        outcome = "passed" if report.outcome == "skipped" and hasattr(report, "wasxfail") else report.outcome
        _write(report.nodeid, outcome, message)


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported fails as one test."""
    if report.failed:
        _write(report.nodeid, "failed", f"not collected: {str(report.longrepr)[-600:]}")
