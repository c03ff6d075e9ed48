"""Programs compiled for the CPU: a shared library, its weights and a manifest, called with numpy arrays.

A run reads C-contiguous inputs in place and writes results into new arrays or given ones; it copies nothing else.
Loading a program, or setting weights (`set_params`), computes the steps that depend on weights alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import TensorType, TupleType, Type
from relaylang.runtime.artifact import (
    MAX_THREADS,
    Artifact,
    Capability,
    TensorSpec,
    bind_arguments,
    part_of,
    read_file,
    structured,
    write_sealed,
)
from relaylang.runtime.benchmark import BenchmarkResult, timed
from relaylang.runtime.external import Calls, Parts, callables
from relaylang.runtime.failures import ERRORS, RANGE, STATUS, failure
from relaylang.runtime.interrupts import check
from relaylang.runtime.library import Library
from relaylang.runtime.machine import usable_cpus
from relaylang.runtime.manifest import Manifest, differences, read, read_text
from relaylang.runtime.packed import Packed, check_machine, unpacked
from relaylang.runtime.peaks import measured
from relaylang.runtime.profile import Profile
from relaylang.runtime.session import Session
from relaylang.runtime.tensors import aligned, at_lines, destinations, empty

_CAPABILITIES: frozenset[Capability] = frozenset(["run", "threads", "measure", "pack"])

_buffer, _place = ctypes.c_char.from_buffer, ctypes.addressof


def _address(array: np.ndarray) -> int:
    """Where an array's elements lie. `array.ctypes.data` takes five times as long."""
    try:
        return _place(_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, empty, or of a type that buffers do not know
        return int(array.ctypes.data)


def _pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*map(_address, arrays))


class _Arena:
    """The working memory of a run, with the lists of pointers that the run takes.

    `failed` is the word that a failed run sets; None where no run fails.
    """

    __slots__ = ("failed", "inputs", "memory", "outputs", "place")

    def __init__(self, size: int, inputs: int, outputs: int, may_fail: bool) -> None:
        self.memory = aligned(size)
        self.failed = ctypes.c_int64.from_address(_address(self.memory) + size - STATUS) if may_fail else None
        self.place = ctypes.c_void_p(_address(self.memory))
        self.inputs = (ctypes.c_void_p * max(1, inputs))()
        self.outputs = (ctypes.c_void_p * max(1, outputs))()


class CpuArtifact(Artifact):
    """A program compiled for the CPU.

    `manifest` describes inputs, outputs and memory, `params` are the bound weights by name. `source` is the C text,
    `graph` the JSON graph.
    Several threads may run it at once; each run has its own working memory. It runs in forked processes, too, and can be
    copied and pickled. The last reference to it and its copies ends its threads and unloads its code.
    """

    def __init__(
        self,
        library: bytes | Library,
        manifest: Mapping[str, Any] | Manifest,
        params: Mapping[str, np.ndarray],
        source: str,
        threads: int | None = None,
        graph: str = "",
        externals: Parts | None = None,
        calls: Sequence[Callable[..., Any] | None] = (),
    ) -> None:
        """A program from its parts. Raises `RelayError` (R0641) where manifest and library do not agree."""
        try:
            checked = manifest if isinstance(manifest, Manifest) else read(manifest)
            check_machine(checked)
            self._code = library if isinstance(library, Library) else Library(library)
            notes = differences(checked, read_text(self._code.about))
        except ValueError as e:
            raise RelayError(error("R0641", f"the compiled program cannot be loaded: {e}")) from None
        if notes:
            title = "the compiled program cannot be loaded: its manifest is not that of its library"
            raise RelayError(error("R0641", title, notes=notes[:5]))
        self._manifest = checked
        self.manifest = checked.record()
        self.source = source
        self.graph = graph
        self._externals = dict(externals or {})
        if checked.externals and self._code.calls is None:
            self._code.connect(Calls(checked.externals, calls))
        self._inputs = [(name, TensorSpec(*spec), list(path)) for name, spec, path in checked.inputs]
        self._names = list(dict.fromkeys(name for name, _, _ in self._inputs))
        self._simple = all(not path for _, _, path in self._inputs)
        self._outputs = [(shape, np.dtype(dtype)) for shape, dtype in checked.outputs]
        self._exact = [(spec.shape, np.dtype(spec.dtype)) for _, spec, _ in self._inputs]
        self._arenas: list[_Arena] = []
        self.params: dict[str, np.ndarray] = {}
        self.threads = threads  # type: ignore[assignment]
        self.set_params(params)

    @property
    def library(self) -> bytes:
        """The shared library."""
        return self._code.content

    @property
    def threads(self) -> int:
        """The most threads of a run, the caller's included.

        The default is the number of processors that this process may use, up to the limit of the compilation.
        None restores the default. Raises `RelayError` (R0640) for a value that is no number of threads.
        """
        return self._threads

    @threads.setter
    def threads(self, count: int | None) -> None:
        most, asked = self._manifest.threads, count is not None
        if count is None:
            cpus = usable_cpus()
            count = cpus if most is None else min(most, cpus)
        elif isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 1 <= count <= MAX_THREADS:
            raise RelayError(error("R0640", f"the number of threads must be from 1 to {MAX_THREADS}, not {count!r}"))
        elif most == 1 and count > 1:
            notes = ["compile it without -num-threads=1"]
            raise RelayError(error("R0640", "the program was compiled for one thread", notes=notes))
        self._threads = int(count)
        self._asked = asked

    def set_params(self, params: Mapping[str, np.ndarray]) -> None:
        """Bind weights: all that the program was compiled with, by name. Raises `RelayError` (R0640)."""
        values = {}
        names = [name for name, _ in self._manifest.params]
        baked = [name for name in params if name not in names] if self._manifest.fails else []
        if baked:
            notes = ["small parameters of a program with loops are numbers in its code: compile it again"]
            raise RelayError(error("R0640", f"the value of {baked[0]} cannot change", notes=notes))
        for name, spec in self._manifest.params:
            value = params[name] if name in params else self.params.get(name)
            if value is None:
                raise RelayError(error("R0640", f"no value is given for the parameter {name}"))
            values[name] = TensorSpec(*spec).check(name, value)
        lined = [self._manifest.params[number][0] for number in self._manifest.aligned]
        values.update(zip(lined, at_lines([values[name] for name in lined])))
        fixed = aligned(self._manifest.fixed)
        arena = self._arena()
        pointers = _pointers(list(values.values()))
        place = ctypes.c_void_p(_address(fixed))
        self._code.prepare(pointers, place, arena.place)
        self.params = values
        # Held together and bound at once: a run takes all of it or none.
        self._bound = (pointers, place, fixed, values)
        self._arenas.append(arena)

    def _arena(self) -> _Arena:
        """Working memory that no other run uses."""
        try:
            return self._arenas.pop()
        except IndexError:
            return _Arena(self._manifest.arena, len(self._inputs), len(self._outputs), self._manifest.may_fail)

    def memory(self) -> dict[str, np.ndarray]:
        """The bytes of the last run's working memory ("arena"), and of prepared values ("fixed"); both are the program's own."""
        if not self._arenas:
            self._arenas.append(self._arena())
        return {"arena": self._arenas[-1].memory, "fixed": self._bound[2]}

    @property
    def capabilities(self) -> frozenset[Capability]:
        return _CAPABILITIES | {"steps"} if self._manifest.steps else _CAPABILITIES

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, spec, tuple(path)) for name, spec, path in self._inputs]

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program with its inputs by position or name.

        `out=`, unless an input has this name, are arrays for the results: one, or tuples as the result has them. The run
        writes them in place and returns them. All arrays may be other libraries' tensors with `__dlpack__`.
        Raises `RelayError` (R0640) for values that do not fit, and for arrays of `out` over other memory of the run.
        """
        out = named.pop("out", None) if "out" in named and "out" not in self._names else None
        arrays = self._arrays(args, named)
        if out is None:
            outputs = [empty(shape, dtype) for shape, dtype in self._outputs]
        else:
            taken = [(f"the input {name}", array) for (name, _, _), array in zip(self._inputs, arrays)]
            outputs = destinations(self._manifest.structure, out, self._outputs, [*taken, *self.params.items()])
        self._execute(arrays, outputs)
        return structured(self._manifest.structure, outputs) if out is None else out

    __call__ = run

    def _execute(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Run the program from arrays that fit its inputs into such of its outputs. Raises `RelayError` where it fails."""
        arena = self._arena()
        bound, places, results = self._bound, arena.inputs, arena.outputs
        for n, array in enumerate(arrays):
            places[n] = _address(array)
        for n, array in enumerate(outputs):
            results[n] = _address(array)
        try:
            self._code.run(places, results, bound[0], bound[1], arena.place, self._threads)
            check()
            self._check(arena)
        finally:
            self._arenas.append(arena)

    def code(self) -> tuple[int, int, int, int] | None:
        """What other compiled code runs: the addresses of `relay_run`, weights and prepared memory, and the arena's bytes.

        None where a run can fail, or calls other people's code. The artifact must live as long as the addresses are used.
        """
        if self._manifest.may_fail or self._manifest.externals:
            return None
        weights, fixed = self._bound[:2]
        run = ctypes.cast(self._code.run, ctypes.c_void_p).value or 0
        return run, ctypes.addressof(weights), fixed.value or 0, self._manifest.arena

    def session(self, state: Mapping[str, int], /, **initial: Any) -> Session:
        """Runs that keep some inputs: `state` names each with the number of the result that is its next value.

        States begin with the values in `initial`, or with zeros. Raises `RelayError` (R0640) for names, numbers and types
        that do not fit.
        """
        return CpuSession(self, state, initial)

    def _check(self, arena: _Arena) -> None:
        """Raise `RelayError` where the run failed that had this arena: R0606 for other people's code, R0404 for values."""
        if arena.failed is None or not arena.failed.value:
            return
        record = arena.memory[-STATUS:]
        status, code = record[:8].view(np.int32)
        if status == -RANGE:
            raise failure(record, self._manifest.sites)
        if status < 0:
            raise RelayError(error("R0404", list(ERRORS.values())[-int(status) - 1]))
        if status:
            assert self._code.calls is not None
            self._code.calls.check(int(status), int(code))

    def report(self) -> str:
        """A line about the program's memory: that of a run, its lower bound, and that between runs."""
        weights = sum(v.nbytes for v in self.params.values())
        parts = (self._manifest.arena, self._manifest.live, self._manifest.fixed, weights)
        run, live, fixed, bound = (f"{part / 1e6:.3f} MB" for part in parts)
        return f"memory: {run} for a run ({live} in use at once), {fixed} prepared, {bound} of weights"

    def benchmark(
        self, *args: Any, repeat: int = 5, number: int = 5, min_repeat_ms: float = 0, inputs: Mapping[str, Any] | None = None
    ) -> BenchmarkResult:
        """The time of a run: `repeat` measurements of `number` runs each, each of `min_repeat_ms` at least.

        Inputs are given by position, or by name in `inputs`. Checks and the making of results do not count.
        Raises `RelayError` (R0640) for inputs and numbers that do not fit.
        """
        arrays = self._arrays(args, inputs or {})
        outputs = [empty(shape, dtype) for shape, dtype in self._outputs]
        places, results, arena, bound = _pointers(arrays), _pointers(outputs), self._arena(), self._bound
        code, threads = self._code, self._threads

        def run() -> None:
            code.run(places, results, bound[0], bound[1], arena.place, threads)
            check()

        try:
            timing = timed(run, repeat, number, min_repeat_ms)
            self._check(arena)
        finally:
            self._arenas.append(arena)
        return timing

    def profile(self, *args: Any, repeat: int = 10, inputs: Mapping[str, Any] | None = None) -> Profile:
        """The time of each kernel over `repeat` runs, with inputs by position, or by name in `inputs`.

        The program must be compiled for it (target `c -profile`). Raises `RelayError` (R0640) for other programs, and for
        inputs that do not fit.
        """
        steps, code = self._manifest.steps, self._code
        if code.peak is None or code.times is None:
            notes = ['compile it with the option -profile: compile_module(mod, "c -profile")']
            raise RelayError(error("R0640", "the program was compiled without the times of its kernels", notes=notes))
        if repeat < 1:
            raise RelayError(error("R0640", f"a profile wants 1 run or more, not {repeat}"))
        named = inputs or {}
        self.run(*args, **named)
        nanoseconds = np.empty((repeat, len(steps), 2), np.int64)
        # The times lie in the library, one set for all its runs.
        with code.profiling:
            peaks = measured(code.peak, self._threads, self._manifest.isa)
            self.run(*args, **named)
            for row in nanoseconds:
                self.run(*args, **named)
                row[:] = code.times()
        return Profile(steps, nanoseconds, peaks, self._threads)

    def _arrays(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[np.ndarray]:
        """The inputs as the library takes them."""
        values: Any = args
        if named or len(args) != len(self._names) or not self._simple:
            values = bind_arguments(self._names, args, named)
        if not self._simple:
            by_name = dict(zip(self._names, values))
            values = [part_of(by_name[name], path, name) for name, _, path in self._inputs]
        arrays = []
        for value, (shape, dtype), (name, spec, _) in zip(values, self._exact, self._inputs):
            if isinstance(value, np.generic):
                value = np.asarray(value)
            # `carray`: contiguous, aligned, writable and in this machine's byte order.
            plain = type(value) is np.ndarray and value.dtype == dtype and value.shape == shape and value.flags.carray
            arrays.append(value if plain else spec.check(name, value))
        return arrays

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.tar`, or under any other name the shared library with weights and manifest at its end."""
        self.packed().save(path)

    def packed(self) -> Packed:
        """The program as its file has it."""
        return Packed(self.library, self._manifest, self.params, self.source, self.graph, self._externals)

    def __reduce__(self) -> tuple[Any, ...]:
        asked = self._threads if self._asked else None
        return loads, (write_sealed(self.packed().parts()), asked, "what was pickled")

    def __deepcopy__(self, memo: dict[int, Any]) -> CpuArtifact:
        """A program with weights of its own. Its code, which nobody changes, is the same."""
        return self._with({name: value.copy() for name, value in self.params.items()})

    def __copy__(self) -> CpuArtifact:
        return self._with(self.params)

    def _with(self, params: Mapping[str, np.ndarray]) -> CpuArtifact:
        threads = self._threads if self._asked else None
        return CpuArtifact(self._code, self._manifest, params, self.source, threads, self.graph, self._externals)


class CpuSession(Session):
    """A session whose states lie in memory of its own.

    Where the program writes rows of a state, or each element where it has just read it, the state has one buffer
    (`in_place` of the manifest). Other states have two buffers in turn. No run copies a state.
    """

    def __init__(self, program: CpuArtifact, state: Mapping[str, int], initial: Mapping[str, Any]) -> None:
        self._program = program
        manifest = program._manifest
        types: list[Type] = [TensorType(shape, dtype) for shape, dtype in manifest.outputs]
        top = manifest.structure
        # A result that is a tuple is no state.
        result = types[top] if isinstance(top, int) else TupleType([types[n] if isinstance(n, int) else TupleType([]) for n in top])
        self._tops = [top] if isinstance(top, int) else top
        super().__init__(program.signature(), result, state, initial, list(program.params))

    def _begin(self, values: Mapping[str, np.ndarray]) -> None:
        numbers = {name: n for n, (name, _, _) in enumerate(self._program._manifest.inputs)}
        self._now = {name: _own(value) for name, value in values.items()}
        for name, value in values.items():
            self._now[name][...] = value
        self._next = dict(self._now)
        for name, number in self._numbers.items():
            if (numbers[name], self._tops[number]) not in self._program._manifest.in_place:
                self._next[name] = _own(values[name])

    def state(self) -> dict[str, np.ndarray]:
        return {name: value.copy() for name, value in self._now.items()}

    def _step(self, values: dict[str, Any]) -> list[Any]:
        program = self._program
        given = {**values, **self._now}
        arrays = program._arrays(tuple([given[name] for name in self._names]), {})
        kept = {self._tops[number]: self._next[name] for name, number in self._numbers.items()}
        outputs = [kept[n] if n in kept else empty(shape, dtype) for n, (shape, dtype) in enumerate(program._outputs)]
        program._execute(arrays, outputs)
        self._now, self._next = self._next, self._now
        return [structured(self._tops[number], outputs) for number in self._rest]


def _own(like: np.ndarray) -> np.ndarray:
    """Memory for an array's shape and dtype that begins at a line of the cache."""
    return aligned(like.nbytes).view(like.dtype).reshape(like.shape)


def load(path: str | os.PathLike[str], threads: int | None = None) -> CpuArtifact:
    """Read what `CpuArtifact.save` wrote. `threads` is as for `CpuArtifact.threads`. Raises `RelayError` (R0641)."""
    return loads(read_file(path), threads, os.fspath(path))


def loads(content: bytes, threads: int | None = None, name: str = "what was given") -> CpuArtifact:
    """The same from memory; `name` is what messages call it."""
    packed = unpacked(content, name)
    check_machine(packed.manifest)
    calls = callables(packed.manifest.externals, packed.externals, name)
    return CpuArtifact(packed.library, packed.manifest, packed.params, packed.source, threads, packed.graph, packed.externals, calls)
