"""`tvm.contrib.cc`: linking object files with a compiler."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.backends.cpu.toolchain import find_compiler, macros_of
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.features import machine_of


def get_cc() -> str | None:
    """This machine's compiler; None where there is none."""
    try:
        return shlex.join(find_compiler(None))
    except RelayError:
        return None


def _call(output: str, inputs: Sequence[str], options: Sequence[str] | str | None, cc: str | None, cwd: str | None,
          flags: Sequence[str]) -> None:  # fmt: skip
    files = [inputs] if isinstance(inputs, str) else list(inputs)
    more = shlex.split(options) if isinstance(options, str) else list(options or ())
    command = [*find_compiler(cc), *flags, "-o", output, *files, *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=cwd, stdin=subprocess.DEVNULL)
    except OSError as e:
        raise RelayError(error("R0630", f"the C compiler {command[0]} does not start: {e.strerror}")) from None
    if done.returncode != 0:
        said = [f"it said: {line.strip()[:300]}" for line in done.stderr.splitlines()[:5] if line.strip()]
        raise RelayError(error("R0631", f"the C compiler failed: {shlex.join(command)[:300]}", notes=said))


def create_shared(output: str, objects: Sequence[str] | str, options: Sequence[str] | str | None = None, cc: str | None = None,
                  cwd: str | None = None, ccache_env: Any = None) -> None:  # fmt: skip
    """Link objects, or compile C files, to a shared library. Raises `RelayError` (R0630, R0631)."""
    _call(output, objects, options, cc, cwd, ["-shared", "-fPIC", "-O2"])


def create_executable(output: str, objects: Sequence[str] | str, options: Sequence[str] | str | None = None, cc: str | None = None,
                      cwd: str | None = None, ccache_env: Any = None) -> None:  # fmt: skip
    """Link objects, or compile C files, to a program. Raises `RelayError` (R0630, R0631)."""
    _call(output, objects, options, cc, cwd, ["-O2"])


def create_staticlib(output: str, inputs: Sequence[str], ar: str | None = None) -> None:
    """Put objects into a static library. Raises `RelayError` (R0630, R0631)."""
    command = [ar or "ar", "-crs", output, *inputs]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as e:
        raise RelayError(error("R0630", f"the archiver {command[0]} does not start: {e.strerror}")) from None
    if done.returncode != 0:
        raise RelayError(error("R0631", f"the archiver failed: {done.stderr.strip()[:300]}"))


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """A function that asks a compiler for its triple."""

    def triple() -> str | None:
        try:
            done = subprocess.run([*shlex.split(compiler), "-dumpmachine"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() or machine_of(macros_of(shlex.split(compiler)) or "") or None

    return triple


def cross_compiler(compile_func: str | Callable[..., Any], options: Sequence[str] | None = None, output_format: str | None = None,
                   get_target_triple: Callable[[], str | None] | None = None,
                   add_files: Sequence[str] | None = None) -> Any:  # fmt: skip
    """A linking function for `export_library`: `compile_func` is a compiler's name, or a function such as `create_shared`."""
    base, files = list(options or ()), list(add_files or ())

    def link(outputs: str, objects: Sequence[str] | str, options: Sequence[str] | None = None, **more: Any) -> None:
        all_files = [*([objects] if isinstance(objects, str) else objects), *files]
        if isinstance(compile_func, str):
            create_shared(outputs, all_files, [*base, *(options or ())], cc=compile_func, **more)
        else:
            compile_func(outputs, all_files, [*base, *(options or ())], **more)

    made: Any = link
    made.get_target_triple = get_target_triple or (get_target_by_dump_machine(compile_func) if isinstance(compile_func, str) else None)
    made.output_format = output_format or "so"
    return made


create_shared.output_format = "so"  # type: ignore[attr-defined]
create_shared.get_target_triple = get_target_by_dump_machine(os.environ.get("CC") or "cc")  # type: ignore[attr-defined]

__all__ = [
    "create_executable", "create_shared", "create_staticlib", "cross_compiler", "get_cc", "get_target_by_dump_machine",
]  # fmt: skip
