"""Programs as C source: one file, a header, and perhaps a file of weights. They can be saved, and run here."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import Artifact, Capability, TensorSpec, bind_arguments, part_of, structured, write_tar
from relaylang.runtime.benchmark import BenchmarkResult, timed
from relaylang.runtime.failures import ERRORS, STATUS, Place, failure
from relaylang.runtime.files import atomic_write, together
from relaylang.runtime.library import function_in, open_library, unload
from relaylang.runtime.tensors import aligned, at_lines, empty
from relaylang.runtime.text import reason

#: An input: its parameter, its place in a tuple, its shape and element type.
Input = tuple[str, tuple[int, ...], tuple[int, ...], str]
_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_CLOSE = ctypes.CFUNCTYPE(None)


def checked_place(path: str | os.PathLike[str]) -> Path:
    """A path that C can be written to: FILE.c, FILE.tar, a folder, or FOLDER/. Raises `RelayError` (R0001) for others."""
    place = Path(path)
    if place.suffix in (".c", ".tar") or place.is_dir() or os.fspath(path).endswith(("/", os.sep)):
        return place
    notes = ['a library is the result of --runtime graph; in Python, of Runtime("cpp")']
    raise RelayError(error("R0001", f"cannot write {place}: C goes to FILE.c, FILE.tar or FOLDER/", notes=notes))


class AotProgram(Artifact):
    """A program as C. `source` and `header` are the texts, `weights` is the content of the file of weights, if there is one.

    `workspace` is the bytes of memory that a run needs. `run` compiles the C for this machine at its first call.
    `externals` are files of other compilers' code, C text and objects. `symbols` has the functions and compilers of these.
    `constants` are the bytes of the constants, wherever they are. `threads` are those of a run. `compiled` makes a library of
    a C text and `externals`. `sites` are the calls whose kernels may fail.
    """

    #: What a pickled program does without: it is made again where the program runs.
    _made_here: tuple[str, ...] = ("_end", "_constants")

    def __init__(
        self,
        name: str,
        source: str,
        header: str,
        weights: bytes,
        inputs: Sequence[Input],
        outputs: Sequence[tuple[tuple[int, ...], str]],
        structure: Any,
        workspace: int,
        compiled: Callable[[str, Mapping[str, bytes]], bytes],
        externals: Mapping[str, bytes],
        symbols: Sequence[tuple[str, str]],
        constants: int,
        threads: int,
        sites: Sequence[Place] = (),
    ) -> None:
        self.name = name
        self.source = source
        self.header = header
        self.weights = weights
        self.workspace = workspace
        self.params: dict[str, np.ndarray] = {}
        self._inputs = [(relay, path, TensorSpec(dims, dtype)) for relay, path, dims, dtype in inputs]
        self._outputs = list(outputs)
        self._structure = structure
        self._compiled = compiled
        self._externals = dict(externals)
        self._symbols = list(symbols)
        self._size = constants
        self._threads = threads
        self._sites = tuple(sites)
        self._run: Any = None

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "source"])

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, spec, path) for name, path, spec in self._inputs]

    @property
    def files(self) -> dict[str, bytes]:
        """The files by their names."""
        contents = {f"{self.name}.c": self.source.encode(), f"{self.name}.h": self.header.encode(), **self._externals}
        return {**contents, f"{self.name}.bin": self.weights} if self.weights else contents

    def report(self) -> str:
        """The memory that the program needs."""
        return f"workspace: {self.workspace} bytes, constants: {self.constant_bytes} bytes"

    @property
    def constant_bytes(self) -> int:
        """The bytes of the constants, wherever they are."""
        return self._size

    def benchmark(
        self, *args: Any, repeat: int = 5, number: int = 5, min_repeat_ms: float = 0, inputs: Mapping[str, Any] | None = None
    ) -> BenchmarkResult:
        """The time of a run: `repeat` measurements of `number` runs each, each of `min_repeat_ms` at least."""
        return timed(lambda: self.run(*args, **(inputs or {})), repeat, number, min_repeat_ms)

    def __getstate__(self) -> dict[str, Any]:
        return {**{name: value for name, value in vars(self).items() if name not in self._made_here}, "_run": None}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the files, all or none: to FILE.c and beside it, to FILE.tar, or to a folder. Raises `RelayError` (R0001)."""
        place = checked_place(path)
        try:
            if place.suffix == ".tar":
                atomic_write(place, write_tar(self.files))
                return
            folder = place.parent if place.suffix == ".c" else place
            folder.mkdir(parents=True, exist_ok=True)
            with together():
                for name, content in self.files.items():
                    atomic_write(place if name == f"{self.name}.c" and place.suffix == ".c" else folder / name, content)
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {place}: {reason(e)}")) from None

    @property
    def _called(self) -> str:
        """The C that runs the program."""
        return f"{self.name}_run(inputs, outputs, {'weights, ' if self.weights else ''}workspace)"

    #: The C of the memory that the program uses.
    _workspace = "(char*)workspace"

    def _opened(self, text: str) -> Any:
        """The library of a C text and of the code of other compilers, loaded."""
        return open_library(self._compiled(text, self._externals))

    def _function(self) -> Any:
        if self._run is None:
            # A workspace of the file's own has the words that say how kernels failed.
            place = f" + {self.workspace - STATUS}, "
            copied = f"  memcpy((char*)workspace{place}{self._workspace}{place}{STATUS});\n" if self._sites else ""
            text = self.source.replace(f'#include "{self.name}.h"', self.header)
            text += (
                '__attribute__((visibility("default")))\n'
                "int32_t relay_aot(const void* inputs, const void* outputs, const void* weights, void* workspace) {\n"
                f"  (void)weights; (void)workspace;\n  const int32_t failed = {self._called};\n{copied}  return failed;\n}}\n"
            )
            close = f"{self.name}_close();" if self._threads > 1 else ""
            text += f'__attribute__((visibility("default"))) void relay_aot_close(void) {{ {close} }}\n'
            library = self._opened(text)
            # Threads must end before their code goes.
            self._end = weakref.finalize(self, unload, library, function_in(library, "relay_aot_close", _CLOSE))
            self._end.atexit = False
            (self._constants,) = at_lines([np.frombuffer(self.weights, np.uint8)])
            self._run = function_in(library, "relay_aot", _RUN)
        return self._run

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program here, compiled by this machine's compiler. Raises `RelayError` (R0404, R0606, R0631, R0640, R0641)."""
        values = dict(zip(self.input_names, bind_arguments(self.input_names, args, named)))
        tensors = []
        for name, path, spec in self._inputs:
            tensors.append(spec.check(name, part_of(values[name], path, name)))
        results = [empty(dims, np.dtype(dtype)) for dims, dtype in self._outputs]
        run, memory = self._function(), aligned(max(1, self.workspace))
        status = run(_addresses(tensors), _addresses(results), self._constants.ctypes.data, memory.ctypes.data)
        if status:
            name, said = list(ERRORS.items())[status - 1]
            if name == "EXTERNAL":
                names = ", ".join(f"{symbol} ({compiler})" for symbol, compiler in self._symbols)
                raise RelayError(error("R0606", said, notes=[f"the code of other compilers: {names}"]))
            if name == "RANGE" and self._sites:
                raise failure(memory[self.workspace - STATUS :][:STATUS], self._sites)
            raise RelayError(error("R0404", said))
        return structured(self._structure, results)

    __call__ = run


def _addresses(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
