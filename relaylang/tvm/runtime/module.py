"""Modules of functions as scripts for TVM see them, and files of compiled programs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relaylang.backends import parse_target
from relaylang.backends.registry import find_backend
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.benchmark import BenchmarkResult, timed
from relaylang.runtime.machine import usable_cpus
from relaylang.tvm.runtime.ndarray import Device
from relaylang.tvm.runtime.packed_func import PackedFunc


class Module:
    """Functions by name. `module["f"]` is a function, and calling the module calls its entry function."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]] | None = None, type_key: str = "python", entry: str = "") -> None:
        self._functions = dict(functions or {})
        self._imports: list[Module] = []
        self._entry = entry
        self.type_key = type_key

    #: What the file of a module is.
    format = "so"

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether there is a function of this name; with `query_imports` also in imported modules."""
        return self._find(name, query_imports) is not None

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function of a name. Raises `AttributeError`."""
        function = self._find(name, query_imports)
        if function is None:
            known = ", ".join(sorted(self._functions)) or "none"
            raise AttributeError(f"the module has no function {name!r}; its functions: {known}")
        return PackedFunc(function, name)

    def _find(self, name: str, query_imports: bool) -> Callable[..., Any] | None:
        function = self._functions.get(name)
        if function is None and query_imports:
            return next((f for m in self._imports if (f := m._find(name, True)) is not None), None)
        return function

    @property
    def entry_func(self) -> PackedFunc:
        """The function that a call of the module calls."""
        return self.get_function(self._entry or "main")

    def import_module(self, module: Module) -> None:
        """Let functions of another module be found here, too."""
        self._imports.append(module)

    @property
    def imported_modules(self) -> list[Module]:
        return list(self._imports)

    def clear_imports(self) -> None:
        """Forget the imported modules."""
        self._imports.clear()

    is_binary_serializable = is_dso_exportable = False
    is_runnable = True

    def get_source(self, fmt: str = "") -> str:
        """The source text, "" where there is none."""
        return ""

    def save(self, file_name: str, fmt: str = "") -> None:
        """Raises `RelayError` (R0609): a module of Python functions has no file."""
        raise RelayError(error("R0609", f"a module of the kind {self.type_key} cannot be saved"))

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures a function of the module, called with its arguments; see `relaylang.runtime.benchmark`.

        After every `repeats_to_cooldown` measurements it waits `cooldown_interval_ms`. Options about caches and zero times
        have no effect. Raises `RelayError` (R0608) for a device that is not here.
        """
        dev.check()
        function = self.get_function(func_name)

        def evaluate(*args: Any) -> BenchmarkResult:
            return _measured(
                lambda count, every: self._timed(function, args, count, number, every),
                repeat,
                min_repeat_ms,
                cooldown_interval_ms,
                repeats_to_cooldown,
            )

        return evaluate

    def _timed(self, function: Callable[..., Any], args: Sequence[Any], repeat: int, number: int, least: float) -> BenchmarkResult:
        return timed(lambda: function(*args), repeat, number, least)

    def export_library(
        self,
        file_name: str,
        *,
        fcompile: Any = None,
        fpack_imports: Any = None,
        addons: Any = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write the module to a file; see `Program.export_library`."""
        return self.save(file_name)

    def __getitem__(self, name: str) -> PackedFunc:
        if not isinstance(name, str):
            raise ValueError("a function of a module is named by a text")
        return self.get_function(name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.entry_func(*args, **named)

    def __repr__(self) -> str:
        return f"<Module {self.type_key}: {', '.join(self._functions)}>"


class SourceModule(Module):
    """C text from a code generator, and the names of constants that its function takes behind the inputs."""

    def __init__(self, code: str, fmt: str = "c", func_names: Sequence[str] = (), const_vars: Sequence[str] = ()) -> None:
        super().__init__(type_key="c")
        self.code = code
        self.format = fmt
        self.symbols = tuple(func_names or ())
        self.constants = tuple(const_vars or ())

    def get_source(self, fmt: str = "") -> str:
        return self.code


def _measured(measure: Callable[[int, float], BenchmarkResult], repeat: int, least: float, wait: float, every: int) -> BenchmarkResult:
    """The measurements, with pauses where they are wanted."""
    if wait <= 0:
        return measure(repeat, least)
    results: list[float] = []
    while len(results) < repeat:
        results += measure(min(max(1, every), repeat - len(results)), least).results
        time.sleep(wait / 1e3)
    return BenchmarkResult(tuple(results))


def exported(
    path: str | os.PathLike[str],
    fcompile: Callable[..., Any],
    objects: Mapping[str, bytes],
    addons: Sequence[str],
    workspace: str | None,
    options: Mapping[str, Any],
) -> tuple[bytes, Any]:
    """What `fcompile(output, objects, **options)` writes, and what it returns. Raises `RelayError` (R0631) where it fails."""
    folder = Path(tempfile.mkdtemp(prefix="relay-", dir=workspace))
    try:
        files = []
        for name, content in objects.items():
            (folder / name).write_bytes(content)
            files.append(str(folder / name))
        output = folder / Path(path).name
        try:
            result = fcompile(str(output), [*files, *map(str, addons)], **options)
        except RelayError:
            raise
        except Exception as e:
            raise RelayError(error("R0631", f"the linking function failed: {type(e).__name__}: {str(e)[:300]}")) from e
        if not output.exists():
            raise RelayError(error("R0631", f"the linking function wrote no file {output.name}"))
        return output.read_bytes(), result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def enabled(target: str) -> bool:
    """Whether there is a backend for a target."""
    try:
        return find_backend(parse_target(target)[0].name) is not None
    except RelayError:
        return False


def num_threads() -> int:
    """The number of threads that a run takes by default."""
    return usable_cpus()


def system_lib(symbol_prefix: str = "") -> Module:
    """Raises `RelayError` (R0609): programs are files of their own, or C text to link by hand."""
    notes = ["load a compiled program: runtime.load_module(path)", "C text for a firmware: relay compile --emit c"]
    raise RelayError(error("R0609", "a program is never part of the interpreter's own code", notes=notes))


def load_static_library(path: str, func_names: Any) -> Module:
    """Raises `RelayError` (R0609): object code reaches a program through a code generator."""
    notes = ["return the object code from a code generator: tvm.register_func('relay.ext.NAME')"]
    raise RelayError(error("R0609", "a static library cannot be imported into a module", notes=notes))


__all__ = ["BenchmarkResult", "Module", "SourceModule", "enabled", "load_static_library", "num_threads", "system_lib"]
