"""The C compiler: which one, what machine it compiles for, and what it says."""
from __future__ import annotations

import errno
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from relaylang.backends.cpu.cache import cached, store
from relaylang.backends.cpu.isa import GENERIC, Isa, from_macros
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.files import atomic_write
from relaylang.runtime.library import temporary_failure
from relaylang.runtime.machine import usable_cpus
from relaylang.runtime.processes import Processes, cleaned_up

#: Products and sums are fused only where the generated code asks for it. So element-wise results have the interpreter's
#: bits. Integers wrap.
FLAGS = ("-O2", "-ftree-vectorize", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fno-strict-aliasing",
         "-fvisibility=hidden", "-fPIC", "-w")  # fmt: skip


def _words(text: str, what: str) -> list[str]:
    """A text taken apart as by a shell. Raises `RelayError` (R0602)."""
    try:
        return shlex.split(text)
    except ValueError:
        raise RelayError(error("R0602", f"a quote is not closed in {what} `{text}`")) from None


def find_compiler(name: str | None) -> list[str]:
    """The compiler's command: the one named, `$CC`, or the first of cc, gcc, clang. Raises `RelayError` (R0630)."""
    named = name or os.environ.get("CC")
    if named:
        candidates = [[named] if shutil.which(named) else _words(named, "the C compiler")]
    else:
        candidates = [["cc"], ["gcc"], ["clang"]]
    for command in candidates:
        if command and shutil.which(command[0]):
            return command
    said = f"the C compiler {named} is not there" if named else "there is no C compiler on this machine"
    notes = [
        "install one: `apt install gcc` (Debian, Ubuntu), `dnf install gcc` (Fedora), `xcode-select --install` (macOS)",
        'name one: the target "c -cc=PATH", the option --cc PATH, or the environment variable CC',
    ]
    raise RelayError(error("R0630", said, notes=notes))


def _response(paths: Sequence[str]) -> str:
    """The text of a response file (`@file`) that names these paths, with any characters in them."""
    return "\n".join('"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' for path in paths)


@cache
def _macros(command: tuple[str, ...]) -> str | None:
    """The compiler's predefined macros, None where it refuses the flags."""
    try:
        done = subprocess.run([*command, "-dM", "-E", "-x", "c", "-"], input="", capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def _version(command: tuple[str, ...]) -> str:
    """The version that the compiler prints."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


class Compiler:
    """A compiler with its flags, and the instruction set that they give."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.command = find_compiler(options.get("cc"))
        extra = _words(str(options.get("cflags") or ""), "the flags")
        march = options.get("march")
        if march is not None:
            machine = [] if march in ("", "generic") else [f"-march={march}"]
        else:
            machine = next((m for m in (["-march=native"], ["-mcpu=native"]) if _macros((*self.command, *m))), [])
        self.flags = [*FLAGS, *machine, *extra]
        macros = _macros((*self.command, *machine, *extra))
        self.macros = macros
        self.isa: Isa = from_macros(macros) if macros else GENERIC
        #: Whether it has numbers of 16 bits, or conversions of them.
        self.halves = macros is None or any(m in macros for m in ("__FLT16_MAX__", "__F16C__", "__ARM_FP16_FORMAT_IEEE"))
        if macros and "__clang__" not in macros:
            self.flags.insert(2, "-fvect-cost-model=dynamic")

    def compile(self, units: Sequence[str], text: str, keep: str | None = None) -> bytes:
        """The shared library made of several C files, which are compiled side by side.

        Files that were compiled before come from the cache. `text` is the whole as one file. It is written to the file
        `keep`, and kept if the compiler fails.
        """
        if keep:
            try:
                atomic_write(keep, text)
            except OSError as e:
                raise RelayError(error("R0001", f"cannot write {keep}: {(e.strerror or str(e)).lower()}")) from None
        if not self.halves and "r_f16" in text:
            raise RelayError(
                error("R0635", f"the C compiler {shlex.join(self.command)} has no float16 for this machine",
                      notes=["gcc 12 and clang 15 have it; on x86, so have older ones with -cflags=-mf16c",
                             "the interpreter runs it: relay run --executor interpreter"])
            )  # fmt: skip
        keys = [self._key(unit) for unit in units]
        whole = self._key(*keys)
        library = cached(whole)
        if library is None:
            with cleaned_up():
                library = self._built(units, keys, text)
            store(whole, library)
        return library

    def _built(self, units: Sequence[str], keys: Sequence[str], text: str) -> bytes:
        try:
            with tempfile.TemporaryDirectory(prefix="relay-", ignore_cleanup_errors=True) as folder:
                return self._build(Path(folder), units, keys, text)
        except OSError as e:
            raise temporary_failure(e) from None

    def _key(self, *parts: str) -> str:
        """A digest of the source, the compiler and its flags."""
        head = [*self.command, _version(tuple(self.command)), *self.flags, self.macros or "", *parts]
        return hashlib.sha256("\0".join(head).encode()).hexdigest()

    def _build(self, folder: Path, units: Sequence[str], keys: Sequence[str], text: str) -> bytes:
        processes = Processes()

        def made(number: int) -> Path:
            target = folder / f"part{number}.o"
            known = cached(keys[number]) if len(units) > 1 else None
            if known is not None:
                target.write_bytes(known)
                return target
            source = folder / f"part{number}.c"
            source.write_text(units[number], encoding="utf-8")
            self._call(processes, ["-c", "-o", str(target), str(source)], target, text)
            if len(units) > 1:
                store(keys[number], target.read_bytes())
            return target

        with ThreadPoolExecutor(min(len(units), usable_cpus())) as pool:
            try:
                parts = [str(part) for part in pool.map(made, range(len(units)))]
            except BaseException:
                # The pool waits for its threads: what they wait for must end first.
                pool.shutdown(wait=False, cancel_futures=True)
                processes.end()
                raise
        library = folder / "model.so"
        # Thousands of names do not fit a command line.
        (folder / "parts").write_text(_response(parts), encoding="utf-8")
        try:
            self._call(processes, ["-shared", "-o", str(library), f"@{folder / 'parts'}", "-lm", "-lpthread"], library, text)
        except BaseException:
            processes.end()
            raise
        return library.read_bytes()

    def _call(self, processes: Processes, arguments: Sequence[str], target: Path, text: str) -> None:
        # What the compiler writes meanwhile goes with our folder, however it ends; its words are read below.
        environment = {**os.environ, "TMPDIR": str(target.parent), "LC_ALL": "C"}
        try:
            done = processes.run([*self.command, *self.flags, *arguments], environment)
        except InterruptedError:
            raise
        except OSError as e:
            raise RelayError(error("R0630", f"the C compiler {self.command[0]} does not start: {e.strerror}")) from None
        if done.returncode != 0 or not target.exists():
            if _FULL in done.stderr or _is_full(target.parent):
                raise temporary_failure(OSError(errno.ENOSPC, _FULL))
            raise RelayError(self._failed(text, done.stderr, done.returncode))

    def _failed(self, text: str, said: str, status: int) -> Any:
        lines = [line for line in said.splitlines() if "error" in line or "fatal" in line] or said.splitlines()
        notes = [f"it said: {line.strip()[:300]}" for line in lines[:5]] or [f"it ended with status {status}"]
        try:
            handle, name = tempfile.mkstemp(prefix="relay-failed-", suffix=".c")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            notes.append(f"the C is kept in {name}")
        except OSError:
            pass  # What the compiler said is what matters.
        if any("error:" in line and "part" in line for line in lines):
            title = "the C compiler refuses relaylang's code: a fault of relaylang, please report it"
        else:
            title = f"the C compiler failed: {shlex.join(self.command)}"
        notes.append(f"flags: {shlex.join(self.flags)}")
        return error("R0631", title, notes=notes)


_FULL = "No space left on device"


def _is_full(folder: Path) -> bool:
    """Whether hardly anything can be written: a linker that maps its output dies of it without a word."""
    try:
        return shutil.disk_usage(folder).free < 4096
    except OSError:
        return False
