"""Compiled programs of the Relay VM: run, saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.evaluate import bind_arguments, checked_result
from relaylang.interpreter.values import Value
from relaylang.ir import Function, FuncType, Var, parameter_names
from relaylang.runtime.artifact import Artifact, Capability, read_file
from relaylang.runtime.benchmark import BenchmarkResult, timed
from relaylang.runtime.external import Parts, callables, part_name
from relaylang.runtime.session import Session, ValueSession
from relaylang.runtime.vm import file, late
from relaylang.runtime.vm.host import Fallback
from relaylang.runtime.vm.listing import listing
from relaylang.runtime.vm.machine import Functions, Loaded
from relaylang.runtime.vm.profile import VMProfile, places_of
from relaylang.runtime.vm.program import VMProgram

#: So many forms of calls are remembered.
_FORMS = 1000


class VMExecutable(Artifact):
    """A compiled program of the Relay VM: `call("main", (x,))` runs one of its functions.

    Several threads may run it at once. `source` is the C of its kernels. `machine` and `features` are those that the
    library needs. `externals` are the files of external code, and `calls` its Python functions where they are known.
    Without `fallback`, a kernel that only the interpreter can compute is an error (R0646).
    """

    def __init__(
        self,
        program: VMProgram,
        library: bytes,
        source: str = "",
        machine: str = "",
        features: Sequence[str] = (),
        threads: int | None = None,
        externals: Parts | None = None,
        calls: Functions = (),
    ) -> None:
        self.program = program
        self.source = source
        self.threads = threads
        self.fallback = True
        self._library = library
        self._machine = machine
        self._features = tuple(features)
        self._externals = dict(externals or {})
        self._calls = calls
        self._loaded: Loaded | None = None
        #: Functions with shapes and element types of arguments, and of a result, that fit their types.
        self._fitting: set[tuple[Any, ...]] = set()

    @property
    def loaded(self) -> Loaded:
        """The program with its library in memory. Raises `RelayError`: R0641 where it cannot run here, R0403 for missing constants."""
        if self.program.late:
            notes = [f"missing: {', '.join(self.program.late)}"]
            raise RelayError(error("R0403", "the program runs once its constants have values (`give_constants`)", notes=notes))
        if self._loaded is None:
            file.check_machine({"machine": self._machine, "features": self._features})
            calls = callables(self.program.externals, self._externals, "the program", self._calls)
            self._loaded = Loaded(self.program, self._library, calls)
        self._loaded.fallback = self.fallback
        return self._loaded

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "threads"])

    @property
    def entry(self) -> str:
        """The function that `run` runs: `@main` where the program has it, or else its first."""
        return "main" if "main" in self.program.entries else next(iter(self.program.entries))

    @property
    def tensors(self) -> list[tuple[str, None, tuple[int, ...]]]:
        """The inputs of `entry`, which may be other values than tensors; `signature` has their types."""
        return [(name, None, ()) for name in parameter_names(self.signature())]

    def run(self, *args: Any, **named: Any) -> Value:
        """Run `entry` with its inputs by position or name."""
        return self.call(self.entry, args, named)

    __call__ = run

    def session(self, state: Mapping[str, int], /, **initial: Any) -> Session:
        """Runs of `entry` that keep some inputs: `state` names each with the number of the result that is its next value.

        States begin with the values in `initial`, or with zeros. Raises `RelayError` (R0640) for names, numbers and types
        that do not fit.
        """
        ty = self.function(self.entry).checked_type
        return ValueSession(self, ty.ret_type if isinstance(ty, FuncType) else None, state, initial)

    def benchmark(
        self, *args: Any, repeat: int = 5, number: int = 5, min_repeat_ms: float = 0, inputs: Mapping[str, Any] | None = None
    ) -> BenchmarkResult:
        """The time of a run: `repeat` measurements of `number` runs each, each of `min_repeat_ms` at least."""
        return timed(lambda: self.run(*args, **(inputs or {})), repeat, number, min_repeat_ms)

    def listing(self) -> str:
        """The program as text: instructions with their lines of the Relay program."""
        return listing(self.program)

    def content(self) -> bytes:
        """The file that `save` writes."""
        return file.packed(self.program, self._library, self._machine, self._features, self.source, self._externals)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program with its library to one file. Raises `RelayError` (R0001)."""
        file.save(self.content(), path)

    def take_constants(self, least: int = 0) -> dict[str, np.ndarray]:
        """Take the constants of at least so many bytes out of the program, by name. It runs again after `give_constants`."""
        self._loaded = None
        return late.take(self.program, least)

    def give_constants(self, values: Mapping[str, np.ndarray]) -> None:
        """Give the program the constants that it lacks. Raises `RelayError`: R0403 for a missing one, R0402 for another type."""
        late.give(self.program, values)

    def __reduce__(self) -> tuple[Any, ...]:
        return loads, (self.content(), self.threads, "what was pickled")

    def signature(self, name: str | None = None) -> list[Var]:
        """The parameters of a function, by default of `entry`. Raises `RelayError` (R0403) where there is none."""
        return list(self.function(self.entry if name is None else name).params)

    def function(self, name: str) -> Function:
        """A function with its parameters. Raises `RelayError` (R0403) where there is none."""
        function = self.program.signatures.get(name)
        if function is None:
            notes = [f"functions: {', '.join(self.program.signatures)}"]
            raise RelayError(error("R0403", f"there is no function @{name}", notes=notes))
        return function

    def call(
        self,
        name: str,
        args: tuple[Any, ...] = (),
        named: Mapping[str, Any] | None = None,
        *,
        threads: int | None = None,
        memory_limit: float | None = None,
        time_limit: float | None = None,
    ) -> Value:
        """Run a function with arguments by position and by name; see `relaylang.interpreter.evaluate`.

        `memory_limit` is in bytes, `time_limit` in seconds. Raises `RelayError` as the interpreter does.
        """
        return self._call(name, args, named, threads, memory_limit, None, time_limit)

    def fallbacks(self) -> list[Fallback]:
        """The kernels that the interpreter has computed so far."""
        places, fallbacks = places_of(self.program), []
        for number, host in sorted(self.loaded.hosts.items()):
            span = places.get(number)
            line = span.source.line(span.line).strip() if span is not None else ""
            fallbacks += [Fallback(f"k{number}", str(span or ""), line, calls, why) for why, calls in host.reasons.items()]
        return fallbacks

    def profile(
        self, name: str = "main", args: tuple[Any, ...] = (), named: Mapping[str, Any] | None = None, *, threads: int | None = None
    ) -> VMProfile:
        """Call a function once, and say which kernels its time went to. The first call of a program takes longer than others."""
        spent = np.zeros((max(1, len(self.program.packed)), 3), np.int64)
        cpus = self.loaded.cpus
        begin = perf_counter()
        self._call(name, args, named, threads, None, spent)
        return VMProfile(self.program, spent, perf_counter() - begin, threads or self.threads or cpus)

    def _call(
        self,
        name: str,
        args: tuple[Any, ...],
        named: Mapping[str, Any] | None,
        threads: int | None,
        memory_limit: float | None,
        spent: np.ndarray | None,
        time_limit: float | None = None,
    ) -> Value:
        function = self.function(name)
        known = None if named else _form(name, args)
        values = list(args) if known in self._fitting else bind_arguments(function, args, named or {}, f"@{name}")
        machine = self.loaded.machine()
        machine.measure(spent)
        try:
            value = machine.call(
                self.program.entries[name], values, threads=threads or self.threads, limit=memory_limit, seconds=time_limit
            )
            fields = value if type(value) is tuple else (value,)
            if (form := known and _form((known, type(value)), fields)) not in self._fitting:
                value = checked_result(function, values, value, f"@{name}")
                self._remember(known, form)
            return value
        finally:
            machine.measure(None)
            if machine.counters("handles") == [0]:
                self.loaded.give_back(machine)

    def _remember(self, *forms: tuple[Any, ...] | None) -> None:
        """Do not check a call's forms again."""
        if len(self._fitting) > _FORMS:
            self._fitting.clear()
        self._fitting.update(form for form in forms if form is not None)


def _form(head: Hashable, values: Sequence[Any]) -> tuple[Hashable, ...] | None:
    """The head, and the shapes and element types of arrays; None where a value is no array."""
    if not all([type(a) is np.ndarray for a in values]):
        return None
    return head, *[(a.shape, a.dtype) for a in values]


def load(path: str | os.PathLike[str], threads: int | None = None) -> VMExecutable:
    """Read what `VMExecutable.save` wrote. Raises `RelayError`: R0001 for an unreadable file, R0641 for a damaged one."""
    return loads(read_file(path), threads, os.fspath(path))


def loads(content: bytes, threads: int | None = None, name: str = "what was given") -> VMExecutable:
    """The same from memory; `name` is what messages call it."""
    program, parts, manifest = file.unpacked(content, name)
    externals = {file: parts[file] for file in (part_name(n, e.kind) for n, e in enumerate(program.externals))}
    return VMExecutable(
        program,
        parts["library"],
        parts["kernels.c"].decode(),
        manifest.get("machine", ""),
        manifest.get("features", ()),
        threads,
        externals,
    )
