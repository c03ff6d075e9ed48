"""The C compiler: which one, what machine it compiles for, and what it says."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from relaylang.backends.cpu.cache import cached, store
from relaylang.backends.cpu.isa import GENERIC, Isa, from_macros
from relaylang.backends.cpu.toolchain import anchored, ask, find_toolchain, macros_of, words_of
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.runtime.files import atomic_write
from relaylang.runtime.library import temporary_failure
from relaylang.runtime.machine import usable_cpus
from relaylang.runtime.packed import library_suffix
from relaylang.runtime.processes import Processes, cleaned_up

#: Products and sums are fused only where the generated code asks for it. So element-wise results have the interpreter's
#: bits. Integers wrap.
FLAGS = (
    "-O2",
    "-ftree-vectorize",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fPIC",
    "-w",
)

#: The flags in place of others where code runs once. It takes longer to compile than to run.
_ONCE = {"-O2": "-O1", "-ftree-vectorize": "-fno-tree-vectorize"}
#: Flags of one compiler alone. zig would end the process where a number wraps.
_BY_FAMILY = {"gcc": ("-fvect-cost-model=dynamic",), "clang": (), "zig": ("-fno-sanitize=undefined",)}
#: Libraries to link, by system.
_LIBRARIES = {"linux": ("-lm", "-lpthread"), "freebsd": ("-lm", "-lpthread"), "android": ("-lm",), "": ("-lm", "-lpthread")}


@cache
def version_of(command: tuple[str, ...]) -> str:
    """The version that the compiler prints."""
    done = ask(command, "--version")
    return "" if done is None else done.text()


def compiler_named(compiler: Compiler, options: Mapping[str, Any]) -> str:
    """A compiler's version and the flags that a target's options add."""
    first = version_of(tuple(compiler.command)).partition("\n")[0].strip()
    return f"{first} {options.get('cflags') or ''}".strip()


class _Failure(Exception):
    """The end of a compiler's call without its result: its words, its status, and the kernels at which it stopped."""

    def __init__(self, said: str, status: int, kernels: Sequence[str]) -> None:
        super().__init__(said)
        self.said, self.status, self.kernels = said, status, kernels


class Unit(NamedTuple):
    """A C file, and whether it runs once alone."""

    text: str
    once: bool = False


class Compiler:
    """A compiler with its flags, and the instruction set that they give."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        tools = find_toolchain(options)
        self.command = list(tools.command)
        option_names = (("cflags", "the flags"), ("cross-compiler-options", "the cross compiler's options"))
        extra = anchored([word for key, what in option_names for word in words_of(str(options.get(key) or ""), what)])
        macros = macros_of([*self.command, *tools.flags, *extra]) if extra else tools.macros
        self.macros = macros
        #: The machine that it compiles for, "" where it does not say.
        self.machine = tools.machine
        self.isa: Isa = from_macros(macros) if macros else GENERIC
        own = [*FLAGS, *_BY_FAMILY[tools.family]]
        self.flags = [*own, *tools.flags, *extra]
        self._once = [*(_ONCE.get(flag, flag) for flag in own), *tools.flags, *extra]
        self.system = self.machine.split("-")[1] if self.machine else ""
        if self.system == "windows":
            self.flags.remove("-fPIC")
            self._once.remove("-fPIC")

    def compile(self, units: Sequence[Unit], text: str, keep: str | None = None, objects: Mapping[str, bytes] | None = None) -> bytes:
        """The shared library made of several C files, which are compiled side by side, and of `objects` by file name.

        Files that were compiled before come from the cache. `text` is the whole as one file. It is written to the file
        `keep`, and kept if the compiler fails.
        """
        if keep:
            try:
                atomic_write(keep, text)
            except OSError as e:
                raise RelayError(error("R0001", f"cannot write {keep}: {(e.strerror or str(e)).lower()}")) from None
        keys = [self._key(*(["once"] if unit.once else []), unit.text) for unit in units]
        others = dict(objects or {})
        key = self._key(*keys, *(hashlib.sha256(content).hexdigest() for content in others.values()))
        library = cached(key)
        if library is None:
            with cleaned_up():
                library = self._built(units, keys, text, others)
            store(key, library)
        return library

    def _built(self, units: Sequence[Unit], keys: Sequence[str], text: str, others: Mapping[str, bytes]) -> bytes:
        try:
            with tempfile.TemporaryDirectory(prefix="relay-", ignore_cleanup_errors=True) as folder:
                return self._build(Path(folder), units, keys, others)
        except _Failure as failure:
            raise RelayError(self._failed(text, failure)) from None
        except OSError as e:
            raise temporary_failure(e) from None

    def assembly(self, text: str) -> str:
        """The assembly of a C text."""
        return self._alone(["-S"], "model.c", text.encode(), "model.s", text).decode(errors="replace")

    def object(self, text: str) -> bytes:
        """The object code of a C text, from the cache where it was compiled before."""
        key = self._key(text)
        code = cached(key)
        if code is None:
            code = self._alone(["-c"], "model.c", text.encode(), "model.o", text)
            store(key, code)
        return code

    def link(self, content: bytes, machine: str) -> bytes:
        """The shared library of an object for a machine. Raises `RelayError` (R0641) where this compiler is for another."""
        if machine != self.machine:
            raise RelayError(error("R0641", f"an object for {machine} cannot be linked for {self.machine or 'this machine'}"))
        name = f"model{library_suffix(self.machine)}"
        return self._alone(["-shared"], "model.o", content, name, "", _LIBRARIES.get(self.system, ()))

    def _alone(self, flags: Sequence[str], source: str, content: bytes, target: str, text: str, rest: Sequence[str] = ()) -> bytes:
        """What the compiler makes of one file."""
        try:
            with cleaned_up(), tempfile.TemporaryDirectory(prefix="relay-", ignore_cleanup_errors=True) as folder:
                source_file, target_file = Path(folder) / source, Path(folder) / target
                source_file.write_bytes(content)
                self._call(Processes(), [*flags, "-o", str(target_file), str(source_file), *rest], target_file)
                return target_file.read_bytes()
        except _Failure as failure:
            raise RelayError(self._failed(text, failure)) from None
        except OSError as e:
            raise temporary_failure(e) from None

    def _key(self, *parts: str) -> str:
        """A digest of the source, the compiler and its flags."""
        head = [*self.command, version_of(tuple(self.command)), *self.flags, self.macros or "", *parts]
        return hashlib.sha256("\0".join(head).encode()).hexdigest()

    def _build(self, folder: Path, units: Sequence[Unit], keys: Sequence[str], others: Mapping[str, bytes]) -> bytes:
        processes = Processes()

        def object_file(number: int) -> Path:
            target = folder / f"part{number}.o"
            known = cached(keys[number]) if len(units) > 1 else None
            if known is not None:
                target.write_bytes(known)
                return target
            source = folder / f"part{number}.c"
            source.write_text(units[number].text, encoding="utf-8")
            self._call(processes, ["-c", "-o", str(target), str(source)], target, units[number].once)
            if len(units) > 1:
                store(keys[number], target.read_bytes())
            return target

        with ThreadPoolExecutor(min(len(units), usable_cpus())) as pool:
            try:
                parts = [str(part) for part in pool.map(object_file, range(len(units)))]
            except BaseException:
                # The pool waits for its threads: what they wait for must end first.
                pool.shutdown(wait=False, cancel_futures=True)
                processes.end()
                raise
        for name, content in others.items():
            (folder / name).write_bytes(content)
            parts.append(str(folder / name))
        library = folder / f"model{library_suffix(self.machine)}"
        # Thousands of names do not fit a command line.
        quoted = ('"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' for path in parts)
        (folder / "parts").write_text("\n".join(quoted), encoding="utf-8")
        try:
            parts = ["-shared", "-o", str(library), f"@{folder / 'parts'}", *_LIBRARIES.get(self.system, ())]
            self._call(processes, parts, library)
        except BaseException:
            processes.end()
            raise
        return library.read_bytes()

    def _call(self, processes: Processes, arguments: Sequence[str], target: Path, once: bool = False) -> None:
        # What the compiler writes meanwhile goes with our folder, however it ends; its words are read below.
        folder = str(target.parent)
        try:
            command = [*anchored(self.command), *(self._once if once else self.flags), *arguments]
            done = processes.run(command, folder=folder, variables={"TMPDIR": folder, "LC_ALL": "C"})
        except InterruptedError:
            raise
        except OSError as e:
            raise RelayError(error("R0630", f"the C compiler {self.command[0]} does not start: {e.strerror}")) from None
        if done.status != 0 or not target.exists():
            said = done.words()
            if _FULL in said or _is_full(target.parent):
                raise temporary_failure(OSError(errno.ENOSPC, _FULL))
            raise _Failure(said, done.status, _kernels(said, Path(arguments[-1])))

    def _failed(self, text: str, failure: _Failure) -> Diagnostic:
        said = failure.said
        lines = [line for line in said.splitlines() if "error" in line or "fatal" in line]
        if not lines or any("linker command" in line or "ld returned" in line for line in lines):
            lines = said.splitlines()  # the linker's reason is in the lines before
        notes = _described(failure.kernels, text)
        notes += [f"it said: {line.strip()[:300]}" for line in lines[:5]] or [f"it ended with status {failure.status}"]
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


def _kernels(said: str, source: Path) -> list[str]:
    """The functions at which a compiler stopped: those of the lines in its errors, else those of the file."""
    try:
        text = source.read_text(encoding="utf-8").splitlines() if source.suffix == ".c" else []
    except OSError:
        return []
    starts = {n: match[1] for n, line in enumerate(text, 1) if (match := _KERNEL.match(line))}
    places = [int(place) for place in re.findall(rf"{re.escape(source.name)}:(\d+)", said)]
    begins = [starts[at] for place in places for at in [n for n in starts if n <= place][-1:]]
    return list(dict.fromkeys(begins)) if places else sorted(starts.values())


def _described(names: Sequence[str], text: str) -> list[str]:
    """A note with the first of some kernels, and the comments on them in a C text."""
    lines = text.splitlines()
    starts = {match[1]: n for n, line in enumerate(lines) if (match := _KERNEL.match(line))}
    described = []
    for name in names[:3]:
        docs: list[str] = []
        at = starts.get(name, 0)
        while at > 0 and lines[at - 1].startswith("// "):
            at -= 1
            docs.insert(0, lines[at][3:])
        described.append(f"{name} ({'; '.join(docs[:2])})" if docs else name)
    return [f"in the kernel {', '.join(described)}{', ...' if len(names) > 3 else ''}"] if described else []


#: How the C of a kernel's function begins.
_KERNEL = re.compile(r"(?:R_LOCAL|R_KERNEL)\b.* void ((?:kernel|pack|block)_\w+)\(.*\{$")
_FULL = "No space left on device"


def _is_full(folder: Path) -> bool:
    """Whether hardly anything can be written: a linker that maps its output dies of it without a word."""
    try:
        return shutil.disk_usage(folder).free < 4096
    except OSError:
        return False
