"""Programs of the VM as files: saved, loaded, listed, damaged; and the verbs of the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay_face
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import load, loads, read_sealed, write_sealed
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.file import unpacked
from relaylang.runtime.vm.instructions import NUMBERS
from relaylang.runtime.vm.verify import verify
from relaylang.tvm.runtime.vm import Executable, VirtualMachine
from tests.backends.vm.agree import assert_same, outcome
from tests.backends.vm.programs import LISTS, PROGRAMS
from tests.backends.vm.test_programs import module
from tests.cli.command import one_diagnostic, relay
from tests.shared import PATIENCE, ROOT, few

FOLD = PROGRAMS["fold"]


@pytest.fixture(scope="module")
def content() -> bytes:
    return compile_vm(module(FOLD[0])).content()


@pytest.mark.parametrize("name", few(PROGRAMS, *list(PROGRAMS)[::4]))
def test_a_loaded_program_does_the_same(name: str, tmp_path: Path) -> None:
    text, *args = PROGRAMS[name]
    made = compile_vm(module(text), native=False)
    made.save(tmp_path / "p.vm")
    again = load(tmp_path / "p.vm")
    assert isinstance(again, VMExecutable) and again.listing() == made.listing()
    (wanted, failure), (got, code) = outcome(lambda: made.run(*args)), outcome(lambda: again.run(*args))
    assert failure == code
    if failure is None and name != "references":
        assert_same(got, wanted)


def test_an_error_of_a_loaded_program_shows_its_line(tmp_path: Path) -> None:
    text = "def @main(%x: int32) -> int32 { add(2, divide(%x, 0)) }"
    compile_vm(module(text)).save(tmp_path / "p.vm")
    with pytest.raises(RelayError) as failed:
        load(tmp_path / "p.vm").run(1)
    assert "divide(%x, 0)" in str(failed.value) and "test.relay:1:40" in str(failed.value)


def test_the_listing_of_a_program() -> None:
    text = "def @main(%n: int32) -> int32 {\n  if (less(%n, 1)) { 0 } else { @main(subtract(%n, 1)) }\n}"
    shown = compile_vm(module(text)).listing()
    lines = [line.split("#")[0].rstrip() for line in shown.splitlines()]
    assert "@main(int32): 3 registers, 2 of scalars" in lines
    for wanted in ("LoadConsti           $1, int32, 1", "less.int32           $2, $0, $1", "InvokeTail           @main, $1"):
        assert any(wanted in line for line in lines), shown
    assert "# test.relay:2:33  if (less(%n, 1)) { 0 } else { @main(subtract(%n, 1)) }" in shown


def test_damaged_files(content: bytes) -> None:
    rng = np.random.default_rng(0)
    for place in [*rng.integers(0, len(content), 20).tolist(), 0, 600]:
        changed = bytearray(content)
        changed[place] ^= 0x55
        try:
            loads(bytes(changed))
        except RelayError as failed:
            assert failed.diagnostics[0].code == "R0641"
        # What lies between the members of the archive says nothing.
    for size in (0, 1, 511, 4096, len(content) // 2):
        with pytest.raises(RelayError) as failed:
            loads(content[:size])
        assert failed.value.diagnostics[0].code == "R0641"


@pytest.mark.sample(4)
@pytest.mark.parametrize("turn", few(range(40), 0))
def test_damaged_files_with_right_checksums(content: bytes, turn: int) -> None:
    """Bytes of each part change, go or come twice, and the sums are made again. The file is refused, or it is a program."""
    files = read_sealed(content, "x")
    rng = np.random.default_rng(turn)
    refused = 0
    for name, part in files.items():
        if name in ("library", "kernels.c"):
            continue
        for _ in range(4):
            first, last = sorted(rng.integers(0, len(part) + 1, 2).tolist())
            last = min(last, first + int(rng.integers(1, 40)))
            noise = bytes(rng.integers(0, 256, last - first).tolist())
            digits = bytes(rng.choice(list(b'0123456789-[]{}"e'), last - first).tolist())
            for middle in (noise, digits, b"", 2 * part[first:last]):
                try:
                    loads(write_sealed({**files, name: part[:first] + middle + part[last:]}))
                except RelayError as failed:
                    assert failed.diagnostics[0].code == "R0641"
                    refused += 1
    assert refused


def _changed(content: bytes, **fields: Any) -> bytes:
    files = read_sealed(content, "x")
    manifest = json.loads(files["manifest.json"])
    manifest.update(fields)
    return write_sealed({**files, "manifest.json": json.dumps(manifest).encode()})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"version": 99}, "version 99"),
        ({"functions": []}, "no function"),
        ({"scalars": []}, "no instruction"),
        ({"entries": {"main": 77}}, "no function 77"),
        ({"specs": [["float99", [1]]]}, "float99"),
        ({"places": 3}, ""),
        ({"packed": None}, ""),
    ],
)
def test_tables_out_of_range(content: bytes, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(RelayError, match=said or None) as failed:
        loads(_changed(content, **fields))
    assert failed.value.diagnostics[0].code == "R0641"


def test_a_program_for_another_machine(content: bytes) -> None:
    other = loads(_changed(content, machine="riscv64-linux-gnu", features=[]))
    assert "@main" in other.listing()
    with pytest.raises(RelayError, match="riscv64"):
        other.run(1, FOLD[2])


def test_no_word_of_the_code_can_hurt(content: bytes) -> None:
    """Each word set to other numbers: the check refuses it, or it is a number that the program may have."""
    program, _, _ = unpacked(content, "x")
    refused = 0
    for place in range(len(program.code)):
        kept = int(program.code[place])
        for value in (-1, 1 << 29, kept + 1, 5, 1 << 20):
            program.code[place] = value
            try:
                verify(program)
            except ValueError:
                refused += 1
        program.code[place] = kept
    verify(program)
    assert refused > 2 * len(program.code)
    # A jump back would be a loop that nothing stops.
    starts = [n for n in range(len(program.code)) if program.code[n] == NUMBERS["If"]]
    assert all(program.operands(n)[1][1] > n for n in starts if len(program.operands(n)) == 2)


def test_verbs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, file = tmp_path / "p.relay", tmp_path / "p.vm"
    text.write_text("def @main(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { add(%n, @main(subtract(%n, 1))) } }")
    assert "inputs: %n" in relay(capsys, "compile", text, "--runtime", "vm", "-o", file).out
    assert relay(capsys, "run", file, "--input", "n=10").out == "55 : int32\n"
    assert relay(capsys, "run", text, "--executor", "vm", "--input", "n=10").out == "55 : int32\n"
    assert "Invoke " in relay(capsys, "disasm", file).out
    assert "mean (ms)" in relay(capsys, "run", file, "--input", "n=10", "--benchmark").out
    one_diagnostic(relay(capsys, "run", file, "--input", "n=1000000000", "--memory-limit", "1M"), 1, "R0408")
    assert relay(capsys, "run", ROOT / "examples" / "numbers.relay", "--executor", "vm").out == "42 : int32\n"
    file.write_bytes(file.read_bytes()[:5000])
    one_diagnostic(relay(capsys, "run", file, "--input", "n=10"), 1, "R0641")
    one_diagnostic(relay(capsys, "disasm", file), 1, "R0641")
    one_diagnostic(relay(capsys, "disasm", tmp_path / "none.vm"), 2, "R0001")


ENDLESS = {
    "a loop": ("def @main(%n: int32) -> int32 { @main(add(%n, 1)) }", "0"),
    "kernels that take long": (
        """
def @main(%x: Tensor[(800, 800), float32]) -> Tensor[(800, 800), float32] { @main(nn.dense(%x, %x, units=None)) }
""",
        "np.eye(800, dtype='float32')",
    ),
}


@pytest.mark.sweep
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", few(ENDLESS, "a loop"))
def test_an_interrupt_ends_a_program_without_an_end(name: str) -> None:
    text, argument = ENDLESS[name]
    script = (
        "import numpy as np\nimport relaylang as relay\nfrom relaylang.backends.vm import compile_vm\n"
        f"mod = relay.parse({text!r})\n"
        f"made = compile_vm(mod, 'c -cflags=-O0')\nmade.loaded\nx = {argument}\nprint('ready', flush=True)\nmade.run(x)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert b"KeyboardInterrupt" in said


def test_kernels_of_unknown_extents_are_compiled_once_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaylang.runtime.vm.host.PATIENCE", 0.0)
    mod = module("def @main(%x: Tensor[(?, 3), float32]) { sum(%x, axis=[0]) }")
    made = compile_vm(mod)
    x = np.ones((0, 3), "float32")  # a sum of no rows, for which there is no code
    for _ in range(2):
        assert_same(made.run(x), relay_face.evaluate(mod, x))
    (host,) = made.loaded.hosts.values()
    assert list(host.compiled) == [((0, 3),)] and None not in host.compiled.values()


def test_the_machine_as_in_tvm(tmp_path: Path) -> None:
    mod = module(LISTS + "def @main(%x: Tensor[(2), float32], %n: int32) { (add(%x, %x), @build(%n, Nil)) }")
    exe = relay_face.vm.compile(mod, "llvm")
    machine = VirtualMachine(exe)
    machine.set_input("main", np.float32([1, 2]), n=2)
    doubled, made = machine.run()
    assert doubled.numpy().tolist() == [2, 4] and made.fields[0].numpy() == 1
    machine.invoke_stateful("main", np.float32([3, 4]), 0)
    assert machine.get_outputs()[0].numpy().tolist() == [6, 8] and machine.get_input_index("n") == 1
    assert machine.benchmark(None, np.float32([1, 2]), 1, repeat=2, number=2).mean > 0
    code, lib = exe.save()
    again = Executable.load_exec(code, lib)
    assert again.bytecode == exe.bytecode and "Globals (#4)" in again.stats and again.get_function_params("main") == ["x", "n"]
    lib.export_library(tmp_path / "lib.so")
    assert load(tmp_path / "lib.so").run(np.float32([1, 2]), 0)[0].tolist() == [2, 4]
