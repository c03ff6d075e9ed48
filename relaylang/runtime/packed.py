"""A program compiled for the CPU as a file: library, manifest, weights and C text. It may be for another machine.

A `.tar` file has `manifest.json`, `model.so`, `model.c`, `params.npz`, `graph.json`, and their `sha256sums`. The library
is `model.dll` for Windows and `model.dylib` for macOS. A file of any other name is the library itself. The other parts, a
table of them and a digest follow its end, where the system's loader does not look.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import LIBRARY_MAGIC, Artifact, Capability, TensorSpec, not_an_artifact, read_sealed, write_sealed
from relaylang.runtime.budget import Budget
from relaylang.runtime.external import Parts, part_name, written
from relaylang.runtime.features import machine_name, why_not
from relaylang.runtime.files import atomic_write
from relaylang.runtime.manifest import Manifest, read_text
from relaylang.runtime.params import parse_npz
from relaylang.runtime.text import reason

_TRAILER = b"relaylang-cpu-v3"
_EARLIER = (b"relaylang-cpu-v1", b"relaylang-cpu-v2")


def library_suffix(machine: str) -> str:
    """How a library's name ends on a machine."""
    return {"windows": ".dll", "macos": ".dylib"}.get("".join(machine.split("-")[1:2]), ".so")


@dataclass(frozen=True, eq=False)
class Packed:
    """The parts of a program. `graph` is its JSON graph (`relaylang.backends.cpu.graph`), "" where there is none. `externals` are
    the files of other people's code (`relaylang.runtime.external`).
    """

    library: bytes
    manifest: Manifest
    params: Mapping[str, np.ndarray]
    source: str
    graph: str = ""
    externals: Parts = field(default_factory=dict)

    def parts(self) -> dict[str, bytes]:
        """The files of the `.tar`."""
        weights = io.BytesIO()
        np.savez(weights, **{f"p{n}": v for n, v in enumerate(self.params.values())})
        return {
            "manifest.json": self.manifest.text().encode(),
            self._member: self.library,
            "model.c": self.source.encode(),
            "params.npz": weights.getvalue(),
            "graph.json": self.graph.encode(),
            **written(self.externals),
        }

    def others(self) -> dict[str, bytes]:
        """The same without the library."""
        parts = self.parts()
        del parts[self._member]
        return parts

    @property
    def _member(self) -> str:
        return f"model{library_suffix(self.manifest.machine)}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.tar`, or under any other name the library with the other parts at its end. Raises `RelayError`."""
        try:
            if Path(path).suffix == ".tar":
                atomic_write(path, write_sealed(self.parts()))
            else:
                atomic_write(path, joined(self.library, self.others()))
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None


class ForeignArtifact(Artifact):
    """A program that cannot run in this process, because it is for another machine.

    It can be saved. `manifest`, `params`, `source`, `graph` and `library` are as for `relaylang.runtime.cpu.CpuArtifact`.
    """

    capabilities: frozenset[Capability] = frozenset(["pack"])

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self.manifest = packed.manifest.record()
        self.params = dict(packed.params)
        self.source = packed.source
        self.graph = packed.graph
        self.library = packed.library

    def packed(self) -> Packed:
        """The program as its file has it."""
        return self._packed

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, TensorSpec(*spec), path) for name, spec, path in self._packed.manifest.inputs]

    def run(self, *args: Any, **named: Any) -> Any:
        """Raises `RelayError` (R0641), which names both machines."""
        check_machine(self._packed.manifest)
        raise RelayError(error("R0641", "the program was compiled for another machine; save it, and load it there"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program, as `CpuArtifact.save` does."""
        self._packed.save(path)


def check_machine(manifest: Manifest) -> None:
    """Check that code for a program's machine can run in this process. Raises `RelayError` (R0641)."""
    why = why_not(manifest.machine, manifest.features)
    if why is not None:
        here = machine_name(manifest.machine)
        notes = [f"load it on {here}, or compile it for this machine (target c)"] if here else []
        notes = notes or ["compile it on this machine, or for every processor of its kind (target c -march=generic)"]
        raise RelayError(error("R0641", why, notes=notes))


def joined(library: bytes, parts: Mapping[str, bytes]) -> bytes:
    """The library with the other parts behind its end: parts, their table, its length, digest of all that, mark."""
    table = json.dumps([["library", len(library)], *([name, len(part)] for name, part in parts.items())]).encode()
    content = b"".join([library, *parts.values(), table, struct.pack("<Q", len(table))])
    return content + hashlib.sha256(content).digest() + _TRAILER


def _taken_apart(content: bytes) -> dict[str, bytes]:
    """The parts of what `joined` made. Raises `ValueError`."""
    if content.endswith(_EARLIER):
        raise ValueError("an earlier relaylang made it; compile it again")
    if not content.endswith(_TRAILER):
        raise ValueError("it is a library, but not one that relaylang made, or its end is missing")
    end = len(content) - len(_TRAILER) - 32
    if end < 8 or hashlib.sha256(memoryview(content)[:end]).digest() != content[end : end + 32]:
        raise ValueError("it is damaged (its checksum differs)")
    size = struct.unpack("<Q", content[end - 8 : end])[0]
    begin = end - 8 - size
    if begin < 0:
        raise ValueError("its table does not fit")
    parts, at = {}, 0
    for name, length in _table(content[begin : end - 8]):
        if length > begin - at or name in parts:
            raise ValueError("its parts do not fit")
        parts[name] = content[at : at + length]
        at += length
    if at != begin:
        raise ValueError("its parts do not fill it")
    return parts


def _table(text: bytes) -> list[tuple[str, int]]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("its table of parts is no JSON") from None
    rows: list[Any] = entries if isinstance(entries, list) else [None]
    if not all(isinstance(r, list) and len(r) == 2 and isinstance(r[0], str) and type(r[1]) is int and r[1] >= 0 for r in rows):
        raise ValueError("its table of parts is no list of names and lengths")
    return [(name, length) for name, length in rows]


def unpacked(content: bytes, name: str) -> Packed:
    """The parts of a file, whole and unchanged. Nothing of it runs. Raises `RelayError` (R0641)."""
    if content.startswith(LIBRARY_MAGIC):
        try:
            parts = _taken_apart(content)
        except ValueError as e:
            raise not_an_artifact(name, str(e)) from None
    else:
        parts = read_sealed(content, name)
    try:
        manifest = read_text(parts["manifest.json"])
        stored = parse_npz(parts["params.npz"], Budget(name, len(content)))
        if len(stored) != len(manifest.params):
            raise ValueError(f"it has {len(stored)} parameters, and its manifest says {len(manifest.params)}")
        params = {key: stored[f"p{n}"] for n, (key, _) in enumerate(manifest.params)}
        library = parts["library"] if "library" in parts else parts[f"model{library_suffix(manifest.machine)}"]
        source, graph = parts["model.c"].decode(), parts["graph.json"].decode()
    except KeyError as e:
        raise not_an_artifact(name, f"it lacks {e.args[0]}") from None
    except (
        OSError,
        ValueError,
        TypeError,
        EOFError,
        AttributeError,
        SyntaxError,
        NotImplementedError,
        OverflowError,
        MemoryError,
        struct.error,
    ) as e:
        raise not_an_artifact(name, str(e).partition("\n")[0] or type(e).__name__) from None
    for (key, (shape, dtype)), value in zip(manifest.params, params.values()):
        if value.shape != shape or value.dtype.name != dtype:
            actual = TensorSpec(value.shape, value.dtype.name)
            raise not_an_artifact(name, f"its parameter {key} is {actual}, not {TensorSpec(shape, dtype)}")
    try:
        externals = {file: parts[file] for file in (part_name(n, e.kind) for n, e in enumerate(manifest.externals))}
    except KeyError as e:
        raise not_an_artifact(name, f"it lacks {e.args[0]}") from None
    return Packed(library, manifest, params, source, graph, externals)


__all__ = ["ForeignArtifact", "Packed", "check_machine", "joined", "library_suffix", "unpacked"]
