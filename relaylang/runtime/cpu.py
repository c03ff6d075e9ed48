"""Programs compiled for the CPU: a shared library, its weights and a manifest, called with numpy arrays.

Inputs that are C-contiguous are read where they lie, results are written into fresh arrays; nothing else is copied.
What depends on weights alone is computed when the program is loaded or gets other weights (`set_params`).

Saved as `.tar`: `manifest.json`, `model.so`, `model.c` and `params.npz`. Saved under any other name: the library itself,
with weights and manifest behind its end, where the system's loader does not look.
"""
from __future__ import annotations

import ctypes
import io
import json
import os
import platform
import re
import struct
import tarfile
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import TensorSpec, bind_arguments, not_an_artifact, read_tar, write_tar
from relaylang.runtime.files import atomic_write

FORMAT = "relaylang-cpu"
VERSION = 1
_TRAILER = b"relaylang-cpu-v1"
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


def _open(library: bytes) -> ctypes.CDLL:
    """Load a library from memory. The file that this takes is gone afterwards."""
    handle, name = tempfile.mkstemp(prefix="relay-", suffix=".so")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(library)
        return ctypes.CDLL(name)
    except OSError as e:
        raise RelayError(error("R0641", f"the compiled program cannot be loaded: {e}")) from None
    finally:
        Path(name).unlink(missing_ok=True)


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
    It may be run from several threads at once; each run has working memory of its own.
    """

    def __init__(self, library: bytes, manifest: Mapping[str, Any], params: Mapping[str, np.ndarray], source: str) -> None:
        self.library = library
        self.manifest = {"format": FORMAT, "version": VERSION, **manifest}
        self.source = source
        lacking = _lacking(str(manifest.get("isa", "")))
        if lacking is not None:
            notes = ["compile it on this machine, or anywhere with the target `c -march=x86-64-v2` (or generic)"]
            raise RelayError(error("R0641", f"the program was compiled for {lacking}, which this machine lacks", notes=notes))
        self._code = _open(library)
        self._code.relay_run.restype = None
        self._code.relay_prepare.restype = None
        self._inputs = [(name, TensorSpec(*spec), list(path)) for name, spec, path in manifest["inputs"]]
        self._names = list(dict.fromkeys(name for name, _, _ in self._inputs))
        self._simple = all(not path for _, _, path in self._inputs)
        self._outputs = [(tuple(shape), np.dtype(dtype)) for shape, dtype in manifest["outputs"]]
        self._exact = [(spec.shape, np.dtype(spec.dtype)) for _, spec, _ in self._inputs]
        self._arenas: list[tuple[np.ndarray, ctypes.c_void_p]] = []
        self._lock = threading.Lock()
        self.params: dict[str, np.ndarray] = {}
        self.set_params(params)

    def set_params(self, params: Mapping[str, np.ndarray]) -> None:
        """Bind weights: all that the program was compiled with, by name. Raises `RelayError` (R0640)."""
        values = {}
        for name, spec in self.manifest["params"]:
            value = params[name] if name in params else self.params.get(name)
            if value is None:
                raise RelayError(error("R0640", f"no value is given for the parameter {name}"))
            values[name] = TensorSpec(*spec).check(name, value)
        fixed = _aligned(self.manifest["fixed"])
        arena = self._arena()
        pointers = _pointers(list(values.values()))
        place = ctypes.c_void_p(_address(fixed))
        self._code.relay_prepare(pointers, place, arena[1])
        with self._lock:
            self.params = values
            # Held together: a run takes all of it or none.
            self._bound = (pointers, place, fixed, values)
        self._arenas.append(arena)

    def _arena(self) -> tuple[np.ndarray, ctypes.c_void_p]:
        """Working memory that no other run uses, and its address."""
        try:
            return self._arenas.pop()
        except IndexError:
            memory = _aligned(self.manifest["arena"])
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
        self._code.relay_run(_pointers(arrays), _pointers(outputs), bound[0], bound[1], arena[1])
        self._arenas.append(arena)
        return _structured(self.manifest["structure"], outputs)

    __call__ = run

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.tar`, or under any other name the shared library with weights and manifest at its end."""
        manifest = json.dumps(self.manifest).encode()
        weights = io.BytesIO()
        np.savez(weights, **{f"p{n}": v for n, v in enumerate(self.params.values())})
        if Path(path).suffix == ".tar":
            files = {"manifest.json": manifest, "model.so": self.library, "model.c": self.source.encode(),
                     "params.npz": weights.getvalue()}  # fmt: skip
            content = write_tar(files)
        else:
            parts = [self.library, manifest, weights.getvalue(), self.source.encode()]
            content = b"".join([*parts, struct.pack("<4Q", *map(len, parts)), _TRAILER])
        try:
            atomic_write(path, content)
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {(e.strerror or str(e)).lower()}")) from None


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


def load(path: str | os.PathLike[str]) -> CpuArtifact:
    """Read what `CpuArtifact.save` wrote. Raises `RelayError` (R0641)."""
    content = Path(path).read_bytes()
    try:
        if content.endswith(_TRAILER):
            end = len(content) - len(_TRAILER) - 32
            sizes = struct.unpack("<4Q", content[end : end + 32])
            if sum(sizes) != end:
                raise ValueError("its parts do not fill it")
            parts, at = [], 0
            for size in sizes:
                parts.append(content[at : at + size])
                at += size
            library, manifest, weights, source = parts
        else:
            files = read_tar(content)
            library, manifest = files["model.so"], files["manifest.json"]
            weights, source = files["params.npz"], files["model.c"]
        data = json.loads(manifest)
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ValueError(f"format {data.get('format')} {data.get('version')}")
        with np.load(io.BytesIO(weights), allow_pickle=False) as stored:
            params = {name: stored[f"p{n}"] for n, (name, _) in enumerate(data["params"])}
        return CpuArtifact(library, data, params, source.decode())
    except (OSError, KeyError, ValueError, TypeError, EOFError, AttributeError, struct.error, tarfile.TarError,
            zipfile.BadZipFile, zlib.error) as e:  # fmt: skip
        raise not_an_artifact(path, str(e).partition("\n")[0]) from None
