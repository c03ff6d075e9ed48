"""Ctrl-C in programs that do not end: the run ends with what the signal's handler raises, and the program runs again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.shared import PATIENCE, ROOT

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the tests' timers are those of Unix")

T = "Tensor[(16, 16), float32]"
#: A loop over tensors, whose limit is an input; the same with scalars alone.
TENSORS = f"""
def @main(%x: {T}, %n: int32) -> {T} {{
  let %loop = fn (%i: int32, %a: {T}) -> {T} {{
    if (less(%i, %n)) {{ %loop(add(%i, 1), tanh(nn.dense(%a, %x))) }} else {{ %a }}
  }};
  %loop(0, %x)
}}"""
SCALARS = """
def @loop(%i: int32, %a: int32, %n: int32) -> int32 {
  if (less(%i, %n)) { @loop(bitwise_and(add(%i, 1), 1023), add(%a, %i), %n) } else { %a }
}
def @main(%n: int32) -> int32 { @loop(0, 1, %n) }"""
#: One operator of known turns, and one kernel.
TURNS = TENSORS.replace(", %n: int32", "").replace("%n", "1000000000")
KERNEL = "def @main(%x: Tensor[(1, 1), float32]) { sum(exp(tanh(broadcast_to(%x, shape=[500000, 500000]))), axis=[1]) }"

_HEAD = """
import json, signal, sys, threading
import numpy as np
import relaylang as relay
from relaylang.backends import compile_module

kind, text, options = json.loads(sys.argv[1])
mod = relay.parse(text)
if kind == "c":
    run = compile_module(mod, options).run
elif kind == "vm":
    executable = relay.vm.compile(mod, options)
    machine = relay.vm.VirtualMachine(executable)
    run = lambda *args: machine.invoke("main", *args).numpy()
else:
    run = relay.create_executor("debug", mod).evaluate()

def signals(after, again=0):
    signal.setitimer(signal.ITIMER_REAL, after, again)
signal.signal(signal.SIGALRM, signal.default_int_handler)
"""


def _ran(script: str, kind: str, text: str, options: str) -> list[object]:
    command = [sys.executable, "-c", _HEAD + script, json.dumps([kind, text, options])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (0, "")
    result = json.loads(ran.stdout)
    assert isinstance(result, list)
    return result


#: Interrupts two runs that do not end, then makes one that does.
_TWICE = """
ended = []
for _ in range(2):
    signals(0.3)
    try:
        run(*[np.full((16, 16), 0.01, np.float32)] * %d, 2**31 - 1)
    except KeyboardInterrupt:
        ended.append("interrupted")
x = np.eye(16, dtype=np.float32)
ended.append(np.asarray(%s).tolist())
print(json.dumps(ended))
"""
_WAYS = [("interpreter", ""), ("vm", "llvm"), ("vm", "llvm -num-threads=1"), ("c", "c"), ("c", "c -num-threads=1")]


@pytest.mark.sweep
@pytest.mark.parametrize(("kind", "options"), _WAYS)
def test_loops_over_tensors(kind: str, options: str) -> None:
    first, second, result = _ran(_TWICE % (1, "run(x, 1)[0, :2]"), kind, TENSORS, options)
    assert (first, second) == ("interrupted", "interrupted")
    assert result == pytest.approx([0.76159416, 0.0], abs=1e-6)


@pytest.mark.sweep
@pytest.mark.parametrize(("kind", "options"), _WAYS)
def test_loops_over_scalars(kind: str, options: str) -> None:
    assert _ran(_TWICE % (0, "run(5)"), kind, SCALARS, options) == ["interrupted", "interrupted", 11]


#: A handler that lets the run go on, then one that raises.
_HANDLERS = """
seen = []
def handler(number, frame):
    seen.append("signal")
    if len(seen) == 3:
        signals(0)
        raise LookupError("a handler's own")
signal.signal(signal.SIGALRM, handler)
signals(0.1, 0.1)
try:
    run(%s)
except LookupError as problem:
    seen.append(str(problem))
print(json.dumps(seen))
"""


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["vm", "c"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [TURNS, KERNEL], ids=["turns", "kernel"])
def test_handlers_of_others(kind: str, threads: int, text: str) -> None:
    script = _HANDLERS % f"np.full({(16, 16) if text is TURNS else (1, 1)}, 0.01, np.float32)"
    wanted = ["signal", "signal", "signal", "a handler's own"]
    assert _ran(script, kind, text, f"{'llvm' if kind == 'vm' else kind} -num-threads={threads}") == wanted


#: A run in another thread than the main one, which alone has handlers.
_THREAD = """
seen, results = [], []
signal.signal(signal.SIGALRM, lambda *_: seen.append("signal"))
signals(0.01, 0.01)
x = np.full((16, 16), 0.01, np.float32)
work = threading.Thread(target=lambda: results.append(run(x, 20000)))
work.start()
work.join()
while len(seen) < 2:
    signal.pause()
signals(0)
print(json.dumps([bool((results[0] == run(x, 20000)).all())]))
"""


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["vm", "c"])
def test_other_threads_go_on(kind: str) -> None:
    assert _ran(_THREAD, kind, TENSORS, "llvm" if kind == "vm" else kind) == [True]


#: What the machine of a program holds before and behind an interrupted run.
_HELD = """
from relaylang.backends.vm import compile_vm

program = compile_vm(mod, entries=["main"])
def held():
    (one,) = program._loaded._idle
    return one.state()["live"], one.state()["used"]
x = np.ones((16, 16), np.float32)
program.run(x, 5)
before = held()
signals(0.3)
try:
    program.run(x, 2**31 - 1)
except KeyboardInterrupt:
    print(json.dumps([before, held()]))
"""


@pytest.mark.sweep
def test_nothing_leaks() -> None:
    before, after = _ran(_HELD, "vm", TENSORS, "llvm")
    assert before == after
