"""`tvm.contrib.cc`: linking object files with a compiler."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.backends.cpu.toolchain import ask, find_compiler, macros_of
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.features import machine_of
from relaylang.runtime.processes import run


def get_cc() -> str | None:
    """This machine's compiler; None where there is none."""
    try:
        return shlex.join(find_compiler(None))
    except RelayError:
        return None


def _call(
    output: str, inputs: Sequence[str], options: Sequence[str] | str | None, cc: str | None, cwd: str | None, flags: Sequence[str]
) -> None:
    files = [inputs] if isinstance(inputs, str) else list(inputs)
    more = shlex.split(options) if isinstance(options, str) else list(options or ())
    command = [*find_compiler(cc), *flags, "-o", output, *files, *more]
    try:
        ended = run(command, folder=cwd or os.getcwd())
    except OSError as e:
        raise RelayError(error("R0630", f"the C compiler {command[0]} does not start: {e.strerror}")) from None
    if ended.status != 0:
        said = [f"it said: {line.strip()[:300]}" for line in ended.words().splitlines()[:5] if line.strip()]
        raise RelayError(error("R0631", f"the C compiler failed: {shlex.join(command)[:300]}", notes=said))


def create_shared(
    output: str,
    objects: Sequence[str] | str,
    options: Sequence[str] | str | None = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: Any = None,
) -> None:
    """Link objects, or compile C files, to a shared library. Raises `RelayError` (R0630, R0631)."""
    _call(output, objects, options, cc, cwd, ["-shared", "-fPIC", "-O2"])


def create_executable(
    output: str,
    objects: Sequence[str] | str,
    options: Sequence[str] | str | None = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: Any = None,
) -> None:
    """Link objects, or compile C files, to a program. Raises `RelayError` (R0630, R0631)."""
    _call(output, objects, options, cc, cwd, ["-O2"])


def _is_linux_like() -> bool:
    """Whether this system's compilers are called as on Linux."""
    return sys.platform in ("darwin", "linux", "linux2") or sys.platform.startswith("freebsd")


def _linux_compile(
    output: str,
    objects: Sequence[str] | str,
    options: Sequence[str] | str | None,
    compile_cmd: str,
    cwd: str | None = None,
    ccache_env: Any = None,
    compile_shared: bool = False,
) -> None:
    """Call a compiler. The suffix of `output` tells what it makes: a shared library, an object (`.obj`) or a program."""
    shared = compile_shared or output.endswith((".so", ".dylib"))
    _call(output, objects, options, compile_cmd, cwd, ["-shared", "-fPIC"] if shared else ["-c"] if output.endswith(".obj") else [])


def _windows_compile(
    output: str, objects: Sequence[str] | str, options: Sequence[str] | str | None, cwd: str | None = None, ccache_env: Any = None
) -> None:
    """Call clang, for a library (`.dll`), an object (`.obj`) or a program."""
    flags = ["-O2", *(["-shared"] if output.endswith(".dll") else ["-c"] if output.endswith(".obj") else [])]
    _call(output, objects, options, "clang", cwd, flags)


def create_staticlib(output: str, inputs: Sequence[str], ar: str | None = None) -> None:
    """Put objects into a static library. Raises `RelayError` (R0630, R0631)."""
    command = [ar or "ar", "-crs", output, *inputs]
    try:
        ended = run(command, folder=os.getcwd())
    except OSError as e:
        raise RelayError(error("R0630", f"the archiver {command[0]} does not start: {e.strerror}")) from None
    if ended.status != 0:
        raise RelayError(error("R0631", f"the archiver failed: {ended.words().strip()[:300]}"))


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """A function that asks a compiler for its triple."""

    def triple() -> str | None:
        done = ask(shlex.split(compiler), "-dumpmachine")
        if done is None:
            return None
        return done.text().strip() or machine_of(macros_of(shlex.split(compiler)) or "") or None

    return triple


def cross_compiler(
    compile_func: str | Callable[..., Any],
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[str] | None = None,
) -> Any:
    """A linking function for `export_library`: `compile_func` is a compiler's name, or a function such as `create_shared`."""
    base, files = list(options or ()), list(add_files or ())

    def link(outputs: str, objects: Sequence[str] | str, options: Sequence[str] | None = None, **more: Any) -> None:
        all_files = [*([objects] if isinstance(objects, str) else objects), *files]
        if isinstance(compile_func, str):
            create_shared(outputs, all_files, [*base, *(options or ())], cc=compile_func, **more)
        else:
            compile_func(outputs, all_files, [*base, *(options or ())], **more)

    linker: Any = link
    linker.get_target_triple = get_target_triple or (
        get_target_by_dump_machine(compile_func) if isinstance(compile_func, str) else None
    )
    linker.output_format = output_format or "so"
    return linker


create_shared.output_format = "so"  # type: ignore[attr-defined]
create_shared.get_target_triple = get_target_by_dump_machine(os.environ.get("CC") or "cc")  # type: ignore[attr-defined]

__all__ = [
    "create_executable",
    "create_shared",
    "create_staticlib",
    "cross_compiler",
    "get_cc",
    "get_target_by_dump_machine",
]
