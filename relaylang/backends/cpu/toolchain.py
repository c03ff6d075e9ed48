"""Which C compiler to call for a machine, and with which flags for its processor.

A target names a machine by a triple (`-mtriple=aarch64-linux-gnu`), a processor (`-mcpu`) and its features (`-mattr`).
Candidates are the compilers of this machine, cross compilers by their names, zig, and clang where it finds headers.
A compiler's predefined macros announce its machine.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from relaylang.backends.cpu.cpus import ANY, machine_flags, unknown_processor, zig_flags
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.runtime.features import PROCESSORS, announced, machine_of, processor_named, this_machine
from relaylang.runtime.processes import Ended, program, run
from relaylang.runtime.trust import check_trusted

#: How a word of a triple begins, and the system that it names; the first that fits.
_SYSTEMS = (
    ("android", "android"),
    ("linux", "linux"),
    ("darwin", "macos"),
    ("macos", "macos"),
    ("apple", "macos"),
    ("windows", "windows"),
    ("win32", "windows"),
    ("mingw", "windows"),
    ("freebsd", "freebsd"),
    ("none", "none"),
    ("elf", "none"),
    ("eabi", "none"),
)
#: The first words of compilers' names for a processor, where they are not the processor's.
_PREFIXES = {"i386": ("i686", "i386"), "arm": ("arm",), "powerpc64le": ("powerpc64le",)}
#: The options that describe a machine.
_MACHINE = ("mtriple", "mcpu", "march", "mattr", "mfloat-abi", "mabi")
#: gcc's flags, by version, for NEON's vectors where SVE is there, too. gcc 12 compiles some loops wrong for SVE.
_NEON_ALONE = (
    ["-mautovec-preference=asimd-only"],
    ["--param=aarch64-autovec-preference=asimd-only"],
    ["--param=aarch64-autovec-preference=1"],
)
_INSTALL = [
    "install one: `apt install gcc` (Debian, Ubuntu), `dnf install gcc` (Fedora), `xcode-select --install` (macOS)",
    "or zig, a C compiler from PyPI: `pip install 'relaylang[zig]'`",
    'name one: the target "c -cc=PATH", the option --cc PATH, or the environment variable CC',
]


@dataclass(frozen=True)
class Triple:
    """A machine as LLVM and gcc name it: its words, and the machine as `relaylang.runtime.features` names it."""

    text: str
    word: str
    processor: str
    system: str
    environment: str

    @property
    def machine(self) -> str:
        return f"{self.processor}-{self.system}"

    @property
    def clang(self) -> str:
        """The triple as clang has it, which finds a cross compiler's libraries by the processor's plain name."""
        return f"{self.processor}-linux-{self.environment}" if self.system == "linux" else self.text

    @property
    def zig(self) -> str:
        """The triple as zig has it."""
        processor = "x86" if self.processor == "i386" else self.processor
        if self.system == "android":
            return f"{processor}-linux-{self.environment}"
        system = "freestanding" if self.system == "none" else self.system
        return f"{processor}-{system}" + (f"-{self.environment}" if self.environment else "")


def parse_triple(text: str) -> Triple:
    """The machine of a triple: `aarch64-linux-gnu`, `x86_64-pc-windows-msvc`. Raises `RelayError` (R0602)."""
    words = text.lower().replace("x86-64", "x86_64").split("-")
    system_word = next(((kind, w) for start, kind in _SYSTEMS for w in words[1:] if w.startswith(start)), None)
    processor = processor_named(words[0])
    known = {*PROCESSORS.values(), "riscv64", "riscv32", "powerpc64le"}
    if system_word is None or processor not in known or not re.fullmatch(r"[\w.-]+", text):
        wrong = f"{words[0]} is no processor that is known here" if processor not in known else "it names no system"
        near = did_you_mean(words[0], sorted(known)) if processor not in known else None
        notes = [f"did you mean {'-'.join([near, *words[1:]])}?"] if near else []
        notes.append("a triple has a processor, a system and an environment: aarch64-linux-gnu, x86_64-windows-gnu, aarch64-macos")
        notes += [f"processors: {', '.join(sorted(known))}"] if processor not in known else []
        raise RelayError(error("R0602", f"option -mtriple={text}: {wrong}", notes=notes))
    system, word = system_word
    last = words[-1]
    environment = last if last != word and re.match(r"gnu|musl|android|msvc|eabi", last) else ""
    if system == "windows":
        environment = "gnu"  # what gcc, clang and zig link without Microsoft's tools
    elif system == "linux" and not environment:
        environment = "gnu"
    elif system == "android":
        environment = "androideabi" if processor == "arm" else "android"
    if processor == "arm" and environment in ("gnu", "musl"):
        environment += "eabihf"
    return Triple(text, words[0], processor, system, environment)


@dataclass(frozen=True)
class Toolchain:
    """A compiler's command, its kind (gcc, clang, zig), its flags for the machine, and its predefined macros.

    `macros` is None where the compiler does not list them.
    """

    command: tuple[str, ...]
    family: str
    flags: tuple[str, ...]
    macros: str | None
    musl: bool = False

    @property
    def machine(self) -> str:
        """What it compiles for, "" where it does not say."""
        triple = machine_of(self.macros or "")
        return f"{triple}-musl" if self.musl and triple.endswith("-linux") else triple


def words_of(text: str, what: str) -> list[str]:
    """A text taken apart as by a shell. Raises `RelayError` (R0602)."""
    try:
        return shlex.split(text)
    except ValueError:
        raise RelayError(error("R0602", f"a quote is not closed in {what} `{text}`")) from None


def _zig() -> list[list[str]]:
    """The commands of zig as a C compiler: a program of this name, or the package ziglang."""
    commands = [["zig", "cc"]] if program("zig") else []
    # `python -m relaylang` has the working directory on its path, which is no place for a package.
    here = os.getcwd()
    spec = PathFinder.find_spec("ziglang", [folder for folder in sys.path if folder not in ("", here)])
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = program(os.path.join(folder, "zig"))
        commands += [[path, "cc"]] if path else []
    return commands


def is_zig(command: Sequence[str]) -> bool:
    """Whether a command calls zig."""
    return any(Path(word).stem in ("zig", "ziglang") for word in command[:3])


def _named(name: str) -> list[str]:
    """The command that a compiler's name stands for: a program, or a program and its arguments. Raises `RelayError`."""
    command = [name] if program(name) else words_of(name, "the C compiler")
    if command == ["zig"]:
        return next(iter(_zig()), ["zig", "cc"])
    return command


def _there(command: Sequence[str]) -> bool:
    return bool(command) and program(command[0]) is not None


def find_compiler(name: str | None) -> list[str]:
    """The command of this machine's compiler: the one named, `$CC`, or the first of cc, gcc, clang and zig.

    Raises `RelayError` (R0630).
    """
    named = name or os.environ.get("CC")
    candidates = [_named(named)] if named else [["cc"], ["gcc"], ["clang"], *_zig()]
    for command in candidates:
        if _there(command):
            return command
    said = f"the C compiler {named} is not there" if named else "there is no C compiler on this machine"
    raise RelayError(error("R0630", said, notes=_INSTALL))


#: Options of compilers that paths follow, in the same word or the next one.
_BEFORE_PATHS = (
    "-I",
    "-L",
    "-B",
    "-F",
    "-T",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-isysroot",
    "--sysroot=",
    "-specs=",
    "-fplugin=",
    "-fprofile-use=",
    "@",
)
_FILES = (".c", ".h", ".o", ".a", ".so", ".py")


def anchored(words: Sequence[str]) -> list[str]:
    """Words of a command with their relative paths made absolute, since compilers run in folders of their own."""
    out = []
    for word, before in zip(words, ("", *words)):
        option = max((o for o in _BEFORE_PATHS if word.startswith(o)), key=len, default="")
        path = word[len(option) :]
        named = option or before in _BEFORE_PATHS or (path[:1] != "-" and (os.path.dirname(path) or path.endswith(_FILES)))
        out.append(option + os.path.abspath(path) if path and named and os.path.exists(path) else word)
    return out


def ask(command: Sequence[str], *flags: str, text: str = "") -> Ended | None:
    """A compiler's answer in English to a question; None where it gives none.

    It gets a folder of its own, since zig leaves an object file in its folder for some questions.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="relay-", ignore_cleanup_errors=True) as folder:
            return run([*anchored(command), *flags], text.encode(), 60, folder=folder, variables={"LC_ALL": "C"})
    except OSError:
        return None


@cache
def said_of(command: tuple[str, ...]) -> tuple[str | None, str]:
    """The compiler's predefined macros, None where it refuses the flags, and what it wrote meanwhile."""
    done = ask(command, "-dM", "-E", "-x", "c", os.devnull)
    return (None, "") if done is None else (done.text() if done.status == 0 else None, done.words())


def macros_of(command: Sequence[str]) -> str | None:
    return said_of(tuple(command))[0]


@cache
def _has_headers(command: tuple[str, ...]) -> bool:
    """Whether a compiler finds the C library's headers of its machine."""
    text = "#include <math.h>\n#include <stdlib.h>\n"
    done = ask(command, "-E", "-x", "c", "-", text=text)
    return done is not None and done.status == 0


def _for_triple(triple: Triple) -> Iterator[list[str]]:
    """Commands that may compile for a machine, the most fitting first."""
    if os.environ.get("CC"):
        yield _named(os.environ["CC"])
    if triple.environment in ("", "gnu", "gnueabihf"):
        yield from (["cc"], ["gcc"], ["clang"])
    names = [triple.text]
    for prefix in _PREFIXES.get(triple.processor, (triple.processor,)):
        if triple.system == "windows":
            names.append(f"{prefix}-w64-mingw32")
        elif triple.system == "none":
            names.append(f"{prefix}-none-{triple.environment or 'elf'}")
        else:
            names.append(f"{prefix}-{triple.system}-{triple.environment}")
    for name in dict.fromkeys(names):
        yield from ([f"{name}-gcc"], [f"{name}-clang"])
    for command in _zig():
        yield [*command, "-target", triple.zig]
    yield ["clang", f"--target={triple.clang}"]


def _pointed(command: list[str], triple: Triple) -> list[str]:
    """A compiler that was named, with the machine to compile for where its command does not fix it."""
    if is_zig(command):
        return command if "-target" in command else [*command, "-target", triple.zig]
    macros = macros_of(command)
    if macros is None or machine_of(macros) == triple.machine:
        return command
    if "__clang__" in macros and not any(word.startswith("--target") for word in command):
        command = [*command, f"--target={triple.clang}"]
        macros = macros_of(command)
        if macros is not None and machine_of(macros) == triple.machine:
            return command
    makes = machine_of(macros or "") or "another machine"
    notes = [f"name a compiler for it: -cross-compiler={triple.text}-gcc, or zig (`pip install 'relaylang[zig]'`)"]
    title = f"the C compiler {shlex.join(command)} compiles for {makes}, not for {triple.machine}"
    raise RelayError(error("R0602", title, notes=notes))


def _command(named: str | None, triple: Triple | None) -> list[str]:
    """The command of the compiler for a machine, this one without a triple. Raises `RelayError` (R0630, R0602)."""
    if triple is None:
        return find_compiler(named)
    if named:
        return _pointed(find_compiler(named), triple)
    for command in _for_triple(triple):
        if not _there(command):
            continue
        macros = macros_of(command)
        if macros is None or machine_of(macros) != triple.machine:
            continue
        if not any(w.startswith("--target") for w in command) or triple.system == "none" or _has_headers(tuple(command)):
            return command
    notes = [
        "install zig, which compiles for it: `pip install 'relaylang[zig]'`",
        f"or a cross compiler: `apt install gcc-{triple.processor.replace('_', '-')}-linux-gnu` (Debian), and so on",
        "name one: the target option -cross-compiler=PATH, or the option --cross-compiler PATH",
    ]
    raise RelayError(error("R0630", f"there is no C compiler for {triple.text} on this machine", notes=notes))


def _family(command: Sequence[str]) -> str:
    if is_zig(command):
        return "zig"
    return "clang" if "__clang__" in (macros_of(command) or "") else "gcc"


def find_toolchain(options: Mapping[str, Any]) -> Toolchain:
    """The compiler, with its flags, for the machine that a target's options describe. Raises `RelayError`."""
    for name in ("cc", "cross-compiler", "cflags", "cross-compiler-options"):
        if options.get(name):
            check_trusted(f"-{name}={options[name]}")
    triple = parse_triple(options["mtriple"]) if options.get("mtriple") else None
    command = _command(options.get("cross-compiler") or options.get("cc"), triple)
    family = _family(command)
    flags = _processor_flags(command, family, triple, options)
    flags += [f"-m{name}={options['m' + name]}" for name in ("float-abi", "abi") if options.get("m" + name) and family != "zig"]
    macros, said = said_of((*command, *flags))
    # A compiler that lists its macros without the flags refuses the flags.
    if macros is None and flags and macros_of(command) is not None:
        asked = " ".join(f"-{key}={options[key]}" for key in _MACHINE if options.get(key))
        raise unknown_processor(shlex.join(command), asked, said, _listed(command, said), did_you_mean)
    if family == "gcc" and "sve" in announced(macros or ""):
        flags += next((f for f in _NEON_ALONE if macros_of([*command, *flags, *f]) is not None), [])
    musl = triple.environment.startswith("musl") if triple else this_machine().endswith("-musl")
    return Toolchain(tuple(command), family, tuple(flags), macros, musl)


def _processor_flags(command: Sequence[str], family: str, triple: Triple | None, options: Mapping[str, Any]) -> list[str]:
    """The flags for the processor: that of `-mcpu` and `-mattr`, of `-march`, of the triple, or this machine's own."""
    cpu, mattr, march = options.get("mcpu"), options.get("mattr"), options.get("march")
    flags: list[str] = []
    if cpu in ("native", "host") or (cpu is mattr is march is triple is None):
        natives = [["-mcpu=native"]] if family == "zig" else [["-march=native"], ["-mcpu=native"]]
        flags = next((m for m in natives if macros_of([*command, *m])), [])
        cpu = None
    if cpu or mattr:
        processor = triple.processor if triple else machine_of(macros_of(command) or "").partition("-")[0]
        word = triple.word if triple else ""
        flags += machine_flags(family, processor, word, cpu or "", mattr or "")
    if march is not None:
        wanted = "" if march in ANY else march
        if family == "zig":
            flags = zig_flags(wanted) if wanted in ("", *ANY) or "+" not in wanted else [f"-march={wanted}"]
        elif wanted:
            flags.append(f"-march={wanted}")
    return flags


def _listed(command: Sequence[str], said: str) -> list[str]:
    """The processors that clang prints when it is asked; other compilers name them in their error."""
    if "__clang__" not in (macros_of(command) or "") or is_zig(command) or "valid" in said or "mcpu" not in said:
        return []
    done = ask(command, "--print-supported-cpus")
    return [line.strip() for line in done.words().splitlines() if line.startswith("\t")] if done is not None else []
