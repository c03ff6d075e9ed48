"""Compilations that are cut off, and machines without room: no files are left behind, and a message names the fault."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.runtime import library
from relaylang.runtime.processes import Processes, Terminated, cleaned_up
from relaylang.syntax import parse
from tests.shared import PATIENCE, ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and scripts are those of Unix")

#: A compiler that starts a process and waits for it; the numbers of both are noted.
_SLOW = """#!/bin/sh
case "$*" in *-E*|*--version*) exec cc "$@";; esac
echo half > "$TMPDIR/cc-of-its-own.s"
sleep 300 &
echo $$ $! > {place}/started.new && mv {place}/started.new {place}/started
wait
"""
_COMPILE = """
import signal, sys
from relaylang.backends import compile_module
from relaylang.syntax import parse
{before}
compile_module(parse("fn (%x: float32) {{ nn.relu(%x) }}").expr, "c -cc={place}/slow-cc")
"""


def gone(number: int, seconds: float = PATIENCE) -> bool:
    """Whether a process ends in time. One that nobody has waited for yet has ended, too."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


def cut_off(place: Path, number: int, before: str = "") -> int:
    """Send a signal to a process that compiles, check that nothing is left, and give its status."""
    script = place / "slow-cc"
    script.write_text(_SLOW.format(place=place))
    script.chmod(0o755)
    (place / "tmp").mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(place / "tmp"),
        "RELAYLANG_CACHE": str(place / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *[p for p in sys.path if p]]),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _COMPILE.format(place=place, before=before)], env=environment, stderr=subprocess.PIPE
    )
    try:
        end = time.monotonic() + PATIENCE
        while not (place / "started").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        compiler, child = map(int, (place / "started").read_text().split())
        assert gone(compiler) and gone(child)
        assert list((place / "tmp").iterdir()) == []
        return process.returncode
    finally:
        process.kill()


@pytest.mark.sweep
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked for as Linux shows them")
@pytest.mark.parametrize(
    ("number", "before", "status"),
    [
        (signal.SIGTERM, "", -signal.SIGTERM),
        (signal.SIGINT, "", -signal.SIGINT),
        (signal.SIGTERM, "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", 7),
    ],
)
def test_a_signal_during_a_compilation(tmp_path: Path, number: int, before: str, status: int) -> None:
    assert cut_off(tmp_path, number, before) == status


def test_handlers_are_as_before() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)]
    with cleaned_up():
        with pytest.raises(Terminated), cleaned_up():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        # The interruption inside is caught here; a second signal is ignored meanwhile.
        os.kill(os.getpid(), signal.SIGTERM)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)] == before
    with pytest.raises(ValueError), cleaned_up():
        raise ValueError
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)] == before


def test_nothing_is_started_once_it_is_given_up() -> None:
    processes = Processes()
    assert processes.run(["sh", "-c", "echo out; echo err >&2; exit 3"]).status == 3
    processes.end()
    with pytest.raises(OSError):
        processes.run(["true"])


def message(target: str) -> tuple[str, str]:
    with pytest.raises(RelayError) as caught:
        compile_module(parse("fn (%x: float32) { nn.relu(%x) }").expr, target)  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    return found.code, str(caught.value)


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "cache"))
    script = tmp_path / "cc"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *-E*|*--version*) exec cc "$@";; esac\n'
        "echo 'part0.c:1:1: fatal error: error writing to /tmp/cc1.s: No space left on device' >&2\nexit 1\n"
    )
    script.chmod(0o755)
    code, said = message(f"c -cc={script}")
    assert code == "R0642" and "no space left" in said and "TMPDIR" in said and "mistake" not in said
    # The disk fills up before the compiler is called.
    write_text = Path.write_text

    def full(path: Path, *args: str, **options: str) -> int:
        if path.suffix == ".c":
            raise OSError(28, "No space left on device")
        return write_text(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)
    code, said = message("c")
    assert code == "R0642" and "no space left" in said


def test_a_temporary_directory_without_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RelayError) as caught:
        library.Library(b"\x7fELF but no library")
    assert caught.value.diagnostics[0].code == "R0641"
    assert str(tmp_path) not in str(caught.value)
    monkeypatch.setattr(library, "_forbids_code", lambda folder: folder == str(tmp_path))
    with pytest.raises(RelayError) as caught:
        library.Library(b"\x7fELF but no library")
    assert caught.value.diagnostics[0].code == "R0642"
    assert "noexec" in str(caught.value) and "TMPDIR" in str(caught.value) and str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(RelayError, match="cannot be used: no such file"):
        library.Library(b"")
