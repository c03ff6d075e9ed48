"""Artifacts: the results of compilers, which run, are saved and are loaded.

    artifact = load("net.tar")
    y = artifact.run(x=x)

`load` reads every kind of artifact. The manifest inside the file names the kind. Each kind belongs to a module of this
package or to a backend. `load` imports it for the first such file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import TensorType, TupleType, Type, Var
from relaylang.runtime.tensors import shared
from relaylang.runtime.text import reason
from relaylang.runtime.trust import check_trusted
from relaylang.services import service

#: The values of a manifest's "format". The service "artifact <format>" makes an artifact of a file's content, the number
#: of threads and the file's name.
FORMATS = ("relaylang-cpu", "relaylang-ethos-u", "relaylang-vm", "relaylang-mlf", "relaylang-vta")
#: Who computes an accelerator's regions where there is none: the TOSA reference model, or the simulator of a stream. Each
#: has the accelerator that it stands for.
SIMULATORS = {"tosa": "an Ethos-U", "ethosu-sim": "an Ethos-U", "vta-sim": "VTA"}
#: How a library begins that is an artifact itself: ELF, Mach-O, PE.
LIBRARY_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")


#: The most threads that may be asked for.
MAX_THREADS = 1024


#: What some programs can do. "run": run on this machine. "threads": take a number of `threads`. "measure": time a run with
#: `benchmark` and `profile`. "steps": name the kernels that take the time. "pack": give a linker its `packed()` parts.
#: "source": be C. "simulate": have an `executor` compute an NPU's regions. "observe": show an `observer` what an NPU stores.
#: "cycles": have a `profile` that counts the cycles of an accelerator.
Capability = Literal["run", "threads", "measure", "steps", "pack", "source", "simulate", "observe", "cycles"]


class Artifact(ABC):
    """A compiled program. Every kind of program is a subclass; `capabilities` says which can do more than others."""

    #: Those of `SIMULATORS` that can compute the program's regions.
    executors: ClassVar[tuple[str, ...]] = ()

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run"])

    @property
    @abstractmethod
    def tensors(self) -> Sequence[tuple[str, TensorSpec | None, tuple[int, ...]]]:
        """The tensors of the inputs: each with its input, its type (None: not known), and its place in a tuple."""

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(dict.fromkeys([name for name, _, _ in self.tensors]))

    def signature(self) -> list[Var]:
        """The inputs, in order, with their types where these are known."""
        parts: dict[str, dict[tuple[int, ...], Type | None]] = {}
        for name, spec, path in self.tensors:
            parts.setdefault(name, {})[path] = None if spec is None else TensorType(spec.shape, spec.dtype)
        return [Var(name, _nested(types)) for name, types in parts.items()]

    @abstractmethod
    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program. Inputs by position or name, as numpy arrays; tensors come back as arrays, tuples as tuples."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program, its weights and its manifest to one file."""

    def report(self) -> str:
        """The memory that the program needs, and what its accelerators do; "" where there is nothing to say."""
        return ""


def _nested(parts: Mapping[tuple[int, ...], Type | None]) -> Type | None:
    """The type whose tensors lie at these paths, deepest tuples first."""
    types: dict[tuple[int, ...], Any] = dict(parts)
    while () not in types:
        depth = max(map(len, types))
        ends: dict[tuple[int, ...], list[Type]] = {}
        for path in sorted(p for p in types if len(p) == depth):
            ends.setdefault(path[:-1], []).append(types.pop(path))
        types.update({path: TupleType(fields) for path, fields in ends.items()})
    nested: Type | None = types[()]
    return nested


class TensorSpec:
    """A tensor's shape and element type, as a manifest keeps them."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Any, dtype: str) -> None:
        self.shape = tuple(int(d) for d in shape)
        self.dtype = dtype

    @classmethod
    def of(cls, ty: Any) -> TensorSpec:
        return cls(ty.shape, ty.dtype)

    def record(self) -> list[Any]:
        return [list(self.shape), self.dtype]

    def __str__(self) -> str:
        return f"Tensor[({', '.join(map(str, self.shape))}), {self.dtype}]" if self.shape else self.dtype

    def check(self, name: str, value: Any) -> np.ndarray:
        """The value as a C-contiguous, aligned array of this type; itself where it is one. Raises `RelayError` (R0640).

        A value may share its memory by DLPack (`__dlpack__`), as PyTorch's tensors do.
        Python numbers and lists take the tensor's dtype where their kind allows it; arrays must have it.
        """
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
        elif hasattr(value, "__dlpack__"):
            array = shared(f"the input {name}", value)
        else:
            try:
                array = np.asarray(value)
                if np.can_cast(array.dtype, np.dtype(self.dtype), casting="same_kind") or array.size == 0:
                    array = array.astype(np.dtype(self.dtype))
            except (TypeError, ValueError, OverflowError):
                raise RelayError(error("R0640", f"the input {name} is no tensor")) from None
        if array.shape != self.shape or array.dtype.name != self.dtype:
            actual = TensorSpec(array.shape, array.dtype.name)
            raise RelayError(error("R0640", f"the input {name} is {actual}, not {self}"))
        if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative:
            return array
        # `ascontiguousarray` would give a scalar an axis.
        return np.array(array, np.dtype(self.dtype), order="C")


def bind_arguments(names: list[str], args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
    """The values of a program's inputs in order, from positional and named ones. Raises `RelayError` (R0640)."""
    values = dict(zip(names, args))
    if len(args) > len(names):
        raise RelayError(error("R0640", f"{len(args)} inputs are given, but the program takes {len(names)}"))
    for name, value in named.items():
        if name not in names:
            near = did_you_mean(name, names)
            notes = [f"did you mean {near}?"] if near else [f"its inputs: {', '.join(names) or 'none'}"]
            raise RelayError(error("R0640", f"the program has no input {name}", notes=notes))
        if name in values:
            raise RelayError(error("R0640", f"the input {name} is given twice"))
        values[name] = value
    missing = [n for n in names if n not in values]
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise RelayError(error("R0640", f"no value is given for the input {', '.join(missing[:4])}{more}"))
    return [values[n] for n in names]


def part_of(value: Any, path: Sequence[int], name: str) -> Any:
    """A tensor inside an input that is a tuple. Raises `RelayError` (R0640)."""
    for index in path:
        if not isinstance(value, (tuple, list)) or index >= len(value):
            raise RelayError(error("R0640", f"the input {name} must be a tuple"))
        value = value[index]
    return value


def structured(structure: Any, outputs: Sequence[np.ndarray]) -> Any:
    """The outputs as the program's type has them: a tensor or a tuple."""
    if isinstance(structure, int):
        return outputs[structure]
    return tuple([structured(item, outputs) for item in structure])


def write_tar(files: Mapping[str, bytes]) -> bytes:
    """A tar of files, the same bytes for the same contents."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def read_tar(content: bytes) -> dict[str, bytes]:
    """The files of a tar. Raises `ValueError` where it is none, or holds other things than files of its own folder."""
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for member in tar:
                if not member.isreg() or member.issparse():
                    raise ValueError(f"{member.name!a} in it is no plain file")
                name = member.name.removeprefix("./")
                if not _inside(name):
                    raise ValueError(f"the path {name!a} in it leaves its folder")
                if name in files:
                    raise ValueError(f"{name!a} is in it twice")
                stream = tar.extractfile(member)
                assert stream is not None
                files[name] = stream.read()
    except (tarfile.TarError, ValueError, OverflowError, OSError, EOFError, AttributeError, RecursionError) as e:
        raise ValueError(str(e) if type(e) is ValueError else f"it is no archive: {e}") from None
    return files


def _inside(name: str) -> bool:
    """Whether a path stays in the folder that it is read from, on every system."""
    return all(part not in ("", ".", "..") for part in re.split(r"[/\\\\]", name)) and ":" not in name


_SUMS = "sha256sums"


def write_sealed(files: Mapping[str, bytes]) -> bytes:
    """A tar of files, and of their digests as `sha256sum --check` reads them."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    return write_tar({**files, _SUMS: sums.encode()})


def read_sealed(content: bytes, name: str) -> dict[str, bytes]:
    """The files of what `write_sealed` made, whole and unchanged. Raises `RelayError` (R0641)."""
    try:
        files = read_tar(content)
    except ValueError as e:
        raise not_an_artifact(name, str(e)) from None
    if "manifest.json" not in files:
        raise not_an_artifact(name, "it holds no manifest")
    sums = files.pop(_SUMS, None)
    if sums is None:
        raise not_an_artifact(name, "it holds no checksums; an earlier relaylang may have made it: compile it again")
    digests = {member: hashlib.sha256(data).hexdigest() for member, data in files.items()}
    said: dict[str, str] = {}
    for line in sums.decode("utf-8", "replace").splitlines():
        digest, _, member = line.partition("  ")
        said[member.removeprefix("./")] = digest
    wrong = sorted(member for member in {*digests, *said} if digests.get(member) != said.get(member))
    if wrong:
        raise not_an_artifact(name, f"{wrong[0]} is damaged or missing (its checksum differs)")
    return files


def read_file(path: str | os.PathLike[str]) -> bytes:
    """A file's content. Raises `RelayError` (R0001)."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as e:
        raise RelayError(error("R0001", f"cannot read {os.fspath(path)}: {reason(e)}")) from None


def not_an_artifact(path: Any, why: str) -> RelayError:
    return RelayError(error("R0641", f"{os.fspath(path)} is not a compiled program: {why}"))


def load(path: str | os.PathLike[str], threads: int | None = None) -> Artifact:
    """Read the file of an artifact's `save`. This runs code from the file: load only files that you trust.

    `threads` limits the threads of a run, by default to the processors that this process may use.
    Raises `RelayError`: R0001 for an unreadable file, R0641 for a damaged or other file, R0640 for wrong `threads`.
    """
    return loads(read_file(path), threads, os.fspath(path))


def loads(content: bytes, threads: int | None = None, name: str = "what was given") -> Any:
    """The same from memory; `name` is what messages call it: the file's path, where there is one."""
    check_trusted(f"the compiled program {name}", name)
    if content.startswith(LIBRARY_MAGIC):
        return service("artifact relaylang-cpu")(content, threads, name)
    try:
        files = read_tar(content)
    except ValueError as e:
        raise not_an_artifact(name, str(e)) from None
    try:
        kind = FORMATS[FORMATS.index(json.loads(files["manifest.json"])["format"])]
    except (KeyError, ValueError, TypeError, RecursionError):
        raise not_an_artifact(name, "it holds no manifest of a kind that is known here") from None
    return service(f"artifact {kind}")(content, threads, name)
