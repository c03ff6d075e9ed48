"""Programs of the VM that fail or are interrupted: a diagnostic with its place, and a program that runs again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter.memory import size_text
from relaylang.runtime.artifact import loads, read_sealed, write_sealed
from relaylang.runtime.external import CODEGENS, Region, codegen
from tests.backends.vm.test_programs import module
from tests.shared import PATIENCE, ROOT, few


@pytest.fixture
def fragile() -> Iterator[None]:
    """A code generator whose functions refuse negative numbers."""

    def generate(region: Region) -> Any:
        def call(x: np.ndarray, out: np.ndarray) -> None:
            if (x < 0).any():
                raise ValueError("it takes no negative numbers")
            np.sqrt(x, out=out)

        return call

    codegen("fragile", generate)
    yield
    del CODEGENS["fragile"]


def test_a_python_function_that_raises(fragile: None) -> None:
    """In the last turn of a loop. The next run is not its concern."""
    made = compile_vm(
        module("""
    def @root(%x: Tensor[(2), float32], Compiler="fragile", Primitive=1, global_symbol="root") { sqrt(%x) }
    def @main(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (less(%n, 1)) { %x } else { @main(subtract(%n, 1), subtract(@root(%x), 1f)) } }
    """)
    )
    with pytest.raises(RelayError, match="it takes no negative numbers") as failed:
        made.run(4, np.float32([4, 4]))
    first = failed.value.diagnostics[0]
    assert first.code == "R0606" and first.span is not None and "root" in first.title
    assert any("in @main" in note for note in first.notes)
    assert made.run(1, np.float32([4, 9])).tolist() == [1, 2]
    machine = made.loaded.machine()
    assert machine.state()["live"] == machine._fixed


def test_recursion_without_an_end() -> None:
    """It ends at the limit of memory, with its place and the calls before. The same program runs again."""
    made = compile_vm(
        module("""
    def @deep(%n: int32) -> int32 { add(1, @deep(add(%n, 1))) }
    def @main(%n: int32) -> int32 { if (less(%n, 0)) { %n } else { @deep(%n) } }
    """)
    )
    for _ in range(2):
        with pytest.raises(RelayError, match="needs more than the 10") as failed:
            made.call("main", (0,), memory_limit=10e6)
        first = failed.value.diagnostics[0]
        assert first.code == "R0408" and first.span is not None and "@deep(add(%n, 1))" in first.span.text
        assert any("@deep" in note for note in first.notes)
        assert made.run(-1) == -1


def test_a_kernel_that_needs_more_memory_than_it_may_use() -> None:
    made = compile_vm(module("def @main(%x: Tensor[(?, ?), float32]) { sum(sort(exp(%x), axis=1)) }"))
    x = np.zeros((500, 500), "float32")
    with pytest.raises(RelayError) as failed:
        made.call("main", (x,), memory_limit=5e5)
    assert failed.value.diagnostics[0].code == "R0408" and failed.value.diagnostics[0].span is not None
    assert made.run(x) == 250_000


def test_a_value_that_is_too_large_leaves_the_session_as_it_was() -> None:
    made = compile_vm(
        module("""
    def @main(%n: int64, %c: Tensor[(2), float32]) {
      let %z = dyn.zeros(reshape(%n, newshape=[1]), shape=[], dtype="float32");
      (add(%c, 1f), cumsum(%z)) }
    """)
    )
    session = made.session({"c": 0})
    for size in (10**11, 10**12):
        with pytest.raises(RelayError) as failed:
            session.run(np.int64(size))
        first = failed.value.diagnostics[0]
        assert first.code == "R0408" and first.span is not None and first.span.text == "cumsum(%z)"
        assert first.notes[0] == f"asked for: {size_text(4 * size)}"
        assert session.state()["c"].tolist() == [0, 0]
    assert session.run(np.int64(3)).tolist() == [0, 0, 0]
    assert session.state()["c"].tolist() == [1, 1] and made.fallbacks() == []


LOOPS = {
    "a loop": ("def @main(%n: int32, %x: int32) -> int32 { if (less(%n, 1)) { %x } else { @main(subtract(%n, 1), %x) } }", 0),
    "kernels": (
        """
def @main(%n: int32, %x: Tensor[(300, 300), float32]) -> Tensor[(300, 300), float32] {
  if (less(%n, 1)) { %x } else { @main(subtract(%n, 1), nn.dense(%x, %x)) } }
""",
        np.eye(300, dtype="float32"),
    ),
    "the interpreter": (
        """
def @main(%n: int32, %x: Tensor[(3, 3), float32]) -> Tensor[(3, 3), float32] {
  let %found = argwhere(%x); if (less(%n, 1)) { %x } else { @main(subtract(%n, 1), add(%x, cast(max(%found), dtype="float32"))) } }
""",
        np.eye(3, dtype="float32"),
    ),
}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", few(LOOPS, next(iter(LOOPS))))
def test_an_interrupted_program_runs_again(name: str) -> None:
    text, argument = LOOPS[name]
    made = compile_vm(module(text))
    wanted = made.run(2, argument)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        made.run(2_000_000_000, argument)
    np.testing.assert_array_equal(made.run(2, argument), wanted)
    machine = made.loaded.machine()
    assert machine.state()["live"] == machine._fixed


@pytest.mark.sweep
@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    """The key ends a saved program with a line, and no traceback."""
    compile_vm(module(LOOPS["a loop"][0])).save(tmp_path / "p.vm")
    script = (
        "import os, pty, sys\nfrom relaylang.cli import main\nfrom tests.shared import wait_for_work\n"
        "pid, master = pty.fork()\n"
        "if not pid:\n"
        "    print('ready', flush=True)\n"
        f"    sys.exit(main(['run', {str(tmp_path / 'p.vm')!r}, '--input', 'n=2000000000', '--input', 'x=7']))\n"
        "seen = b''\n"
        "while b'ready' not in seen:\n    seen += os.read(master, 1000)\n"
        "wait_for_work(pid)\nos.write(master, b'\\x03')\n"
        "try:\n    while piece := os.read(master, 1000):\n        seen += piece\n"
        "except OSError:\n    pass\n"  # the end of a terminal
        "sys.stdout.buffer.write(seen)\nsys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE)
    assert ran.returncode == 130, ran.stderr
    assert ran.stdout.rstrip().endswith("interrupted") and "Traceback" not in ran.stdout


def test_an_extent_that_a_kernel_of_sizes_knows() -> None:
    """`?` may stand for any extent in a call: the kernel of the callee reads no more than there is."""
    made = compile_vm(
        module("""
    def @f(%r: ref(Tensor[(?, 3), float32])) { exp(ref_read(%r)) }
    def @main(%x: Tensor[(?, ?), float32]) { @f(ref(%x)) }
    """)
    )
    assert made.run(np.zeros((2, 3), "float32")).tolist() == [[1, 1, 1]] * 2
    for columns in (2, 4):
        with pytest.raises(RelayError) as failed:
            made.run(np.zeros((2, columns), "float32"))
        assert failed.value.diagnostics[0].code == "R0403" and failed.value.diagnostics[0].span is not None


def test_a_file_whose_kernels_take_other_values() -> None:
    """Types of a kernel in a file whose sums are right must be those of its library. Nothing of it runs."""
    content = compile_vm(
        module("def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { exp(concatenate((%x, %y))) }")
    ).content()
    files = read_sealed(content, "x")
    x = np.ones((2, 3), "float32")
    for field, value in (
        ("takes", [["float32", [-1]]] * 2),
        ("takes", [["float64", [-1, 3]]] * 2),
        ("sizes", 1),
        ("outputs", [["float32", [-1, 4]]]),
        ("arena", 1 << 20),
        ("fixed", 64),
    ):
        manifest = json.loads(files["manifest.json"])
        manifest["packed"][0][field] = value
        made = loads(write_sealed({**files, "manifest.json": json.dumps(manifest).encode()}))
        with pytest.raises(RelayError, match="its kernels are not those that the program describes") as failed:
            made.run(x, x)
        assert failed.value.diagnostics[0].code == "R0641"
