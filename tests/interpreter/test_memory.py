"""The limit of memory. Its count is the memory that the process takes. A recursion without an end has a limit by
default."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate, memory
from relaylang.ir import IRModule
from tests.shared import PATIENCE, ROOT

ENDLESS = {
    "calls": "def @f(%n: int32) -> int32 { add(@f(%n), 1) }\ndef @main() -> int32 { @f(1) }",
    "data": """type L { N, C(int32, L) }
def @f(%n: int32, %l: L) -> L { @f(add(%n, 1), C(%n, %l)) }
def @main() -> L { @f(1, N) }""",
    "closures": """def @f(%k: fn (int32) -> int32) -> int32 { @f(fn (%n: int32) -> int32 { add(%k(%n), 1) }) }
def @main() -> int32 { @f(fn (%n: int32) -> int32 { %n }) }""",
    "tensors": """def @f(%x: Tensor[(100, 1000), float32]) -> Tensor[(100, 1000), float32] { add(@f(add(%x, %x)), %x) }
def @main() -> Tensor[(100, 1000), float32] { @f(ones(shape=[100, 1000], dtype="float32")) }""",
    "growth": """def @f(%x: Tensor[(?), float32]) -> Tensor[(?), float32] { @f(concatenate((%x, %x))) }
def @main(%x: Tensor[(?), float32]) -> Tensor[(?), float32] { @f(%x) }""",
}
LIMIT = 12_000_000


def module(text: str) -> IRModule:
    mod = relay.parse(text)
    assert isinstance(mod, IRModule)
    return relay.transform.InferType()(mod)


def code_of(text: str, limit: float | None) -> str:
    mod = module(text)
    args = [np.ones(1000, "f4")] if mod["main"].params else []
    with pytest.raises(RelayError) as caught:
        evaluate(mod, *args, memory_limit=limit)
    (found,) = caught.value.diagnostics
    assert found.labels or found.notes
    return found.code


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ENDLESS)
def test_what_grows_without_end_is_stopped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of the caller's, and without one."""
    assert code_of(ENDLESS[name], LIMIT) == "R0408"
    monkeypatch.setattr(memory, "DEFAULT_LIMIT", LIMIT)
    monkeypatch.setattr(memory, "_LARGE", 1 << 20)
    assert code_of(ENDLESS[name], None) == "R0408"


@pytest.mark.sweep
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read as Linux shows it")
def test_the_limit_is_what_the_process_takes() -> None:
    """The peak of the process's memory, above what it had before, is the limit to a fifth."""
    script = """
import json
from tests.interpreter.test_memory import *
from relaylang.runtime.machine import resident_memory

for name in ENDLESS:
    code_of(ENDLESS[name], 1_000_000)
out = {}
for n, name in enumerate(ENDLESS):
    limit = LIMIT * (n + 1)
    before = resident_memory()
    code_of(ENDLESS[name], limit)
    status = Path("/proc/self/status").read_text()
    out[name] = [limit, int(status.partition("VmHWM:")[2].split()[0]) * 1024 - before]
print(json.dumps(out))
"""
    paths = os.pathsep.join([str(ROOT), *[p for p in sys.path if p]])
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    for name, (limit, peak) in json.loads(ran.stdout).items():
        # A value of unknown size is seen only when it is there.
        assert 0.3 * limit < peak < (2.3 if name == "growth" else 1.2) * limit, (name, limit, peak)


def test_the_default_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_taken", lambda: 0)
    for left, wanted in ((6 << 30, 3 << 30), (100 << 30, 4 << 30), (None, 4 << 30)):
        monkeypatch.setattr(memory, "available_memory", lambda left=left: left)
        assert memory.MemoryLimit().limit == wanted
    assert memory.MemoryLimit(1000).limit == 1000
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 30)
    text = 'def @main() { sum(zeros(shape=[1000, 1000000], dtype="float32")) }'
    with pytest.raises(RelayError, match=r"not enough memory for zeros: it takes 4.0 GB, and 1.1 GB are left"):
        evaluate(module(text))


def test_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DEFAULT_LIMIT", 1)
    # Memory that was freed before may serve the recursion, and the process does not grow.
    monkeypatch.setattr(memory, "_taken", count(0, 1000).__next__)
    text = """def @f(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(@f(subtract(%n, 1)), 1) } }
    def @main() -> int32 { @f(20000) }"""
    assert evaluate(module(text), memory_limit=math.inf) == 20_000
    with pytest.raises(RelayError) as caught:
        evaluate(module(text))
    assert any("--memory-limit" in note for note in caught.value.diagnostics[0].notes)


def test_memory_is_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that holds nothing never looks; a recursion looks less and less often."""
    looks: list[int] = []
    taken = memory._taken
    monkeypatch.setattr(memory, "_taken", lambda: looks.append(1) or taken())
    loop = """def @f(%n: int32, %a: int32) -> int32 { if (equal(%n, 0)) { %a } else { @f(subtract(%n, 1), add(%a, 1)) } }
    def @main() -> int32 { @f(20000, 0) }"""
    assert evaluate(module(loop)) == 20_000
    assert len(looks) == 1
    looks.clear()
    deep = """def @f(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(@f(subtract(%n, 1)), 1) } }
    def @main() -> int32 { @f(50000) }"""
    assert evaluate(module(deep)) == 50_000
    assert len(looks) < 100


def test_where_the_system_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts, and what the counting takes is counted."""
    monkeypatch.setattr(memory, "resident_memory", lambda: None)
    assert code_of(ENDLESS["calls"], 3_000_000) == "R0408"
    assert code_of(ENDLESS["data"], 3_000_000) == "R0408"
    assert evaluate(module("def @main() { 1 }"), memory_limit=3_000_000) == 1
