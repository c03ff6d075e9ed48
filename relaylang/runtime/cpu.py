"""Programs compiled for the CPU: a shared library, its weights and a manifest, called with numpy arrays.

A run reads C-contiguous inputs in place and writes results into new arrays; it copies nothing else. Loading a program, or
setting weights (`set_params`), computes the steps that depend on weights alone.

A `.tar` file has `manifest.json`, `model.so`, `model.c`, `params.npz`, and their `sha256sums`. A file of any other name is
the library itself. Weights, manifest and their digest follow its end, where the system's loader does not look.
"""
from __future__ import annotations

import ctypes
import hashlib
import io
import os
import platform
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import (
    LIBRARY_MAGIC,
    MAX_THREADS,
    TensorSpec,
    bind_arguments,
    not_an_artifact,
    read_file,
    read_sealed,
    write_sealed,
)
from relaylang.runtime.files import atomic_write
from relaylang.runtime.library import Library
from relaylang.runtime.machine import usable_cpus
from relaylang.runtime.manifest import Manifest, differences, read, read_text
from relaylang.runtime.text import reason

_TRAILER = b"relaylang-cpu-v2"
_EARLIER = b"relaylang-cpu-v1"
_ALIGN = 64


def _aligned(size: int) -> np.ndarray:
    """Memory whose address is a multiple of 64."""
    raw = np.empty(size + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + size]


def _address(array: np.ndarray) -> int:
    """Where an array's elements lie. `array.ctypes.data` takes five times as long."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, empty, or of a type that buffers do not know
        return int(array.ctypes.data)


def _pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*map(_address, arrays))


@cache
def _lacking(isa: str) -> str | None:
    """What this machine lacks of an instruction set that a program was compiled for; None where it has it."""
    machine = platform.machine().lower()
    if isa == "neon":
        return None if machine in ("aarch64", "arm64") or machine.startswith("arm") else "ARM NEON"
    needed = {"avx512": "avx512f", "avx2": "avx2"}.get(isa)
    if needed is None:
        return None
    shown = isa.upper().replace("AVX512", "AVX-512")
    if machine not in ("x86_64", "amd64"):
        return f"x86 with {shown}"
    try:
        flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
    except OSError:
        return None  # no way to know
    return None if needed in flags or "flags" not in flags else shown


class CpuArtifact:
    """A program compiled for the CPU; see `relaylang.runtime.artifact.Artifact`.

    `manifest` describes inputs, outputs and memory, `params` are the bound weights by name, `source` is the C text.
    Several threads may run it at once; each run has its own working memory. It runs in forked processes, too, and can be
    copied and pickled. The last reference to it and its copies ends its threads and unloads its code.
    """

    def __init__(self, library: bytes | Library, manifest: Mapping[str, Any] | Manifest, params: Mapping[str, np.ndarray],
                 source: str, threads: int | None = None) -> None:  # fmt: skip
        """A program from its parts. Raises `RelayError` (R0641) where manifest and library do not agree."""
        try:
            found = manifest if isinstance(manifest, Manifest) else read(manifest)
            lacking = _lacking(found.isa)
            if lacking is not None:
                notes = ["compile it on this machine, or anywhere with the target `c -march=x86-64-v2` (or generic)"]
                raise RelayError(error("R0641", f"the program was compiled for {lacking}, which this machine lacks", notes=notes))
            self._code = library if isinstance(library, Library) else Library(library)
            notes = differences(found, read_text(self._code.about))
        except ValueError as e:
            raise RelayError(error("R0641", f"the compiled program cannot be loaded: {e}")) from None
        if notes:
            title = "the compiled program cannot be loaded: its manifest is not that of its library"
            raise RelayError(error("R0641", title, notes=notes[:5]))
        self._manifest = found
        self.manifest = found.record()
        self.source = source
        self._inputs = [(name, TensorSpec(*spec), list(path)) for name, spec, path in found.inputs]
        self._names = list(dict.fromkeys(name for name, _, _ in self._inputs))
        self._simple = all(not path for _, _, path in self._inputs)
        self._outputs = [(shape, np.dtype(dtype)) for shape, dtype in found.outputs]
        self._exact = [(spec.shape, np.dtype(spec.dtype)) for _, spec, _ in self._inputs]
        self._arenas: list[tuple[np.ndarray, ctypes.c_void_p]] = []
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
        for name, spec in self._manifest.params:
            value = params[name] if name in params else self.params.get(name)
            if value is None:
                raise RelayError(error("R0640", f"no value is given for the parameter {name}"))
            values[name] = TensorSpec(*spec).check(name, value)
        fixed = _aligned(self._manifest.fixed)
        arena = self._arena()
        pointers = _pointers(list(values.values()))
        place = ctypes.c_void_p(_address(fixed))
        self._code.prepare(pointers, place, arena[1])
        self.params = values
        # Held together and bound at once: a run takes all of it or none.
        self._bound = (pointers, place, fixed, values)
        self._arenas.append(arena)

    def _arena(self) -> tuple[np.ndarray, ctypes.c_void_p]:
        """Working memory that no other run uses, and its address."""
        try:
            return self._arenas.pop()
        except IndexError:
            memory = _aligned(self._manifest.arena)
            return memory, ctypes.c_void_p(_address(memory))

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(self._names)

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program with its inputs by position or name. Raises `RelayError` (R0640) for inputs that do not fit."""
        values: Any = args
        if named or len(args) != len(self._names) or not self._simple:
            values = bind_arguments(self._names, args, named)
        if not self._simple:
            by_name = dict(zip(self._names, values))
            values = [_pick(by_name[name], path, name) for name, _, path in self._inputs]
        arrays = []
        for value, (shape, dtype), (name, spec, _) in zip(values, self._exact, self._inputs):
            # `carray`: contiguous, aligned, writable and in this machine's byte order.
            plain = type(value) is np.ndarray and value.dtype == dtype and value.shape == shape and value.flags.carray
            arrays.append(value if plain else spec.check(name, value))
        outputs = [np.empty(shape, dtype) for shape, dtype in self._outputs]
        arena = self._arena()
        bound = self._bound
        self._code.run(_pointers(arrays), _pointers(outputs), bound[0], bound[1], arena[1], self._threads)
        self._arenas.append(arena)
        return _structured(self._manifest.structure, outputs)

    __call__ = run

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.tar`, or under any other name the shared library with weights and manifest at its end."""
        parts = self._parts()
        try:
            atomic_write(path, write_sealed(parts) if Path(path).suffix == ".tar" else _joined(parts))
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None

    def _parts(self) -> dict[str, bytes]:
        """The files of the `.tar`."""
        weights = io.BytesIO()
        np.savez(weights, **{f"p{n}": v for n, v in enumerate(self.params.values())})
        return {
            "manifest.json": self._manifest.text().encode(),
            "model.so": self.library,
            "model.c": self.source.encode(),
            "params.npz": weights.getvalue(),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        asked = self._threads if self._asked else None
        return loads, (write_sealed(self._parts()), asked, "what was pickled")

    def __deepcopy__(self, memo: dict[int, Any]) -> CpuArtifact:
        """A program with weights of its own. Its code, which nobody changes, is the same."""
        params = {name: value.copy() for name, value in self.params.items()}
        return CpuArtifact(self._code, self._manifest, params, self.source, self._threads if self._asked else None)

    def __copy__(self) -> CpuArtifact:
        return CpuArtifact(self._code, self._manifest, self.params, self.source, self._threads if self._asked else None)


def _pick(value: Any, path: list[int], name: str) -> Any:
    """A tensor inside an input that is a tuple."""
    for index in path:
        if not isinstance(value, (tuple, list)) or index >= len(value):
            raise RelayError(error("R0640", f"the input {name} must be a tuple"))
        value = value[index]
    return value


def _structured(structure: Any, outputs: list[np.ndarray]) -> Any:
    """The outputs as the program's type has them: a tensor or a tuple."""
    if isinstance(structure, int):
        return outputs[structure]
    return tuple(_structured(item, outputs) for item in structure)


def _joined(parts: Mapping[str, bytes]) -> bytes:
    """The library with the other parts behind its end: parts, lengths, digest of all that, mark."""
    content = b"".join([*(parts[name] for name in _ORDER), struct.pack("<4Q", *(len(parts[name]) for name in _ORDER))])
    return content + hashlib.sha256(content).digest() + _TRAILER


def _taken_apart(content: bytes) -> dict[str, bytes]:
    """The parts of what `_joined` made. Raises `ValueError`."""
    if content.endswith(_EARLIER):
        raise ValueError("an earlier relaylang made it; compile it again")
    if not content.endswith(_TRAILER):
        raise ValueError("it is a library, but not one that relaylang made, or its end is missing")
    end = len(content) - len(_TRAILER) - 32
    if hashlib.sha256(memoryview(content)[:max(end, 0)]).digest() != content[end : end + 32]:
        raise ValueError("it is damaged (its checksum differs)")
    sizes = struct.unpack("<4Q", content[end - 32 : end])
    if sum(sizes) != end - 32:
        raise ValueError("its parts do not fill it")
    parts, at = {}, 0
    for name, size in zip(_ORDER, sizes):
        parts[name] = content[at : at + size]
        at += size
    return parts


#: The parts as they lie in a file that is a library.
_ORDER = ("model.so", "manifest.json", "params.npz", "model.c")


def _from_parts(parts: Mapping[str, bytes], threads: int | None, name: str) -> CpuArtifact:
    """A program from the files of its archive. Raises `RelayError` (R0641)."""
    try:
        manifest = read_text(parts["manifest.json"])
        with np.load(io.BytesIO(parts["params.npz"]), allow_pickle=False) as stored:
            if len(stored.files) != len(manifest.params):
                raise ValueError(f"it has {len(stored.files)} parameters, and its manifest says {len(manifest.params)}")
            params = {key: stored[f"p{n}"] for n, (key, _) in enumerate(manifest.params)}
        library, source = parts["model.so"], parts["model.c"].decode()
    except KeyError as e:
        raise not_an_artifact(name, f"it lacks {e.args[0]}") from None
    except (OSError, ValueError, TypeError, EOFError, AttributeError, SyntaxError, NotImplementedError, OverflowError,
            MemoryError, struct.error, zipfile.BadZipFile, zlib.error) as e:  # fmt: skip
        raise not_an_artifact(name, str(e).partition("\n")[0] or type(e).__name__) from None
    for (key, (shape, dtype)), value in zip(manifest.params, params.values()):
        if value.shape != shape or value.dtype.name != dtype:
            given = TensorSpec(value.shape, value.dtype.name)
            raise not_an_artifact(name, f"its parameter {key} is {given}, not {TensorSpec(shape, dtype)}")
    return CpuArtifact(library, manifest, params, source, threads)


def load(path: str | os.PathLike[str], threads: int | None = None) -> CpuArtifact:
    """Read what `CpuArtifact.save` wrote. `threads` is as for `CpuArtifact.threads`. Raises `RelayError` (R0641)."""
    return loads(read_file(path), threads, os.fspath(path))


def loads(content: bytes, threads: int | None = None, name: str = "what was given") -> CpuArtifact:
    """The same from memory; `name` is what messages call it."""
    if content[:4] in LIBRARY_MAGIC:
        try:
            parts = _taken_apart(content)
        except ValueError as e:
            raise not_an_artifact(name, str(e)) from None
    else:
        parts = read_sealed(content, name)
    return _from_parts(parts, threads, name)
