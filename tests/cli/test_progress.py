"""Stages and the bar."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

import relaylang as relay
from relaylang.cli.opt import Counted
from relaylang.cli.progress import Stages, clock
from relaylang.passes.context import PassContext
from relaylang.transform import DeadCodeElimination, FoldConstant, FuseOps, InferType, Sequential

#: Each stage lasts until its bar is on the terminal, if there is one.
SLOW = """
import sys, time
from relaylang.cli.progress import Stages
seen = []
write = sys.stderr.write
sys.stderr.write = lambda text: seen.append(text) or write(text)
with Stages(delay=0.2) as stages:
    def shown(text):
        while stages.visible and text not in "".join(seen):
            time.sleep(0.01)
    with stages.stage("evaluate", total=4) as step:
        for count in range(4):
            shown(f" {count}/4 ")
            step(1)
    with stages.stage("write"):
        stages.rename("write 2 of 3")
        shown("write 2 of 3 [")
        with stages.hidden():
            print("half", flush=True)
            time.sleep(0.2)
print("done")
"""


def test_times_are_kept_by_name() -> None:
    with Stages() as stages:
        for _ in range(2):
            with stages.stage("parse"):
                time.sleep(0.01)
    assert list(stages.times) == ["parse"]
    assert stages.times["parse"] >= 0.02


def test_passes_are_shown_by_name_and_number() -> None:
    """Those of the list, and not the passes that these run themselves."""
    shown = []

    class Recorded(Stages):
        def rename(self, name: str) -> None:
            shown.append((name, self._done, self._total))

    stages = Recorded()
    passes = [InferType(), Sequential([FoldConstant(), FuseOps()]), DeadCodeElimination()]
    with stages.stage("passes", 4) as step, PassContext(4, instruments=[Counted(stages, step)]):
        Sequential(passes)(relay.parse("def @main(%x: int32) { add(%x, 1) }"))
    names = ("InferType", "FoldConstant", "FuseOps", "DeadCodeElimination")
    assert shown == [(name, number, 4) for number, name in enumerate(names)] and stages._done == 4


def test_nothing_is_drawn_where_stderr_is_no_terminal() -> None:
    run = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("half\ndone\n", "")


def test_a_bar_on_a_terminal_that_is_wiped_at_the_end() -> None:
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "60"}
    run = subprocess.run([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=slave, text=True, env=env)
    os.close(slave)
    seen = os.read(master, 100_000).decode()
    os.close(master)
    assert run.stdout == "half\ndone\n"
    assert "evaluate [" in seen and " 3/4 " in seen and "write 2 of 3 [" in seen
    assert seen.endswith("\r\x1b[K")
    assert all(len(line.removeprefix("\x1b[K")) < 60 for line in seen.split("\r"))


def test_clock() -> None:
    assert [clock(0.0123), clock(3.44), clock(125)] == ["12.3 ms", "3.4 s", "2 min 05 s"]
