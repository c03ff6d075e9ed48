"""Programs as C source: one file, a header, and perhaps a file of weights. They can be saved, and run here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import TensorSpec, bind_arguments, write_tar
from relaylang.runtime.files import atomic_write
from relaylang.runtime.library import function_in, open_library, unload
from relaylang.runtime.tensors import aligned
from relaylang.runtime.text import reason

#: An input: its parameter, its place in a tuple, its shape and element type.
Input = tuple[str, tuple[int, ...], tuple[int, ...], str]
_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
#: The errors of a run, in the order of their numbers from 1 on.
ERRORS: dict[str, str] = {
    "MEMORY": "there is no memory for the workspace",
    "ALIGNMENT": "the workspace is at no multiple of 64",
    "WEIGHTS": "the weights are not those of this program, or lie at no multiple of 64",
    "DIVISION": "division by zero",
    "SHIFT": "a shift by a negative number of bits",
    "POWER": "a negative power of 0",
    "EXTERNAL": "external code failed",
}


def checked_place(path: str | os.PathLike[str]) -> Path:
    """A path that C can be written to: FILE.c, FILE.tar, a folder, or FOLDER/. Raises `RelayError` (R0001) for others."""
    place = Path(path)
    if place.suffix in (".c", ".tar") or place.is_dir() or os.fspath(path).endswith(("/", os.sep)):
        return place
    notes = ['a library is the result of --runtime graph; in Python, of Runtime("cpp")']
    raise RelayError(error("R0001", f"cannot write {place}: C goes to FILE.c, FILE.tar or FOLDER/", notes=notes))


class AotProgram:
    """A program as C. `source` and `header` are the texts, `weights` is the content of the file of weights, if there is one.

    `workspace` is the bytes of memory that a run needs. `run` compiles the C for this machine at its first call.
    `externals` are files of other compilers' code, C text and objects. `symbols` has the functions and compilers of these.
    """

    def __init__(self, name: str, source: str, header: str, weights: bytes, inputs: Sequence[Input],
                 outputs: Sequence[tuple[tuple[int, ...], str]], structure: Any, workspace: int,
                 compiled: Callable[[str], bytes], externals: Mapping[str, bytes],
                 symbols: Sequence[tuple[str, str]]) -> None:  # fmt: skip
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
        self._symbols = symbols
        self._run: Any = None

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(dict.fromkeys(name for name, _, _ in self._inputs))

    @property
    def files(self) -> dict[str, bytes]:
        """The files by their names."""
        found = {f"{self.name}.c": self.source.encode(), f"{self.name}.h": self.header.encode(), **self._externals}
        return {**found, f"{self.name}.bin": self.weights} if self.weights else found

    def report(self) -> str:
        """The memory that the program needs."""
        return f"workspace: {self.workspace} bytes"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the files: to FILE.c and beside it, to FILE.tar, or to a folder. Raises `RelayError` (R0001)."""
        place = checked_place(path)
        try:
            if place.suffix == ".tar":
                atomic_write(place, write_tar(self.files))
                return
            folder = place.parent if place.suffix == ".c" else place
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in reversed(self.files.items()):
                atomic_write(place if name == f"{self.name}.c" and place.suffix == ".c" else folder / name, content)
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {place}: {reason(e)}")) from None

    def _function(self) -> Any:
        if self._run is None:
            text = self.source.replace(f'#include "{self.name}.h"', self.header)
            weights = "weights, " if self.weights else ""
            text += (
                '__attribute__((visibility("default")))\n'
                "int32_t relay_aot(const void* inputs, const void* outputs, const void* weights, void* workspace) {\n"
                f"  (void)weights;\n  return {self.name}_run(inputs, outputs, {weights}workspace);\n}}\n"
            )
            self._library = open_library(self._compiled(text))
            self._run = function_in(self._library, "relay_aot", _RUN)
            self._memory = aligned(max(1, self.workspace))
            self._constants = aligned(len(self.weights))
            self._constants[...] = np.frombuffer(self.weights, np.uint8)
        return self._run

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program here, compiled by this machine's compiler. Raises `RelayError` (R0404, R0606, R0631, R0640, R0641)."""
        values = dict(zip(self.input_names, bind_arguments(self.input_names, args, named)))
        given = []
        for name, path, spec in self._inputs:
            value = values[name]
            for place in path:
                value = value[place]
            given.append(spec.check(name, value))
        results = [np.empty(dims, np.dtype(dtype)) for dims, dtype in self._outputs]
        run = self._function()
        status = run(_addresses(given), _addresses(results), self._constants.ctypes.data, self._memory.ctypes.data)
        if status:
            name, said = list(ERRORS.items())[status - 1]
            if name == "EXTERNAL":
                names = ", ".join(f"{symbol} ({compiler})" for symbol, compiler in self._symbols)
                raise RelayError(error("R0606", said, notes=[f"the code of other compilers: {names}"]))
            raise RelayError(error("R0404", said))
        return _shaped(self._structure, results)

    __call__ = run

    def __del__(self) -> None:
        if self._run is not None:
            self._run = None
            unload(self._library, None)


def _addresses(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])


def _shaped(structure: Any, results: Sequence[np.ndarray]) -> Any:
    if not isinstance(structure, list):
        return results[structure]
    return tuple([_shaped(item, results) for item in structure])


