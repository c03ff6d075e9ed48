"""What a compiler makes: something that runs, is saved and is loaded again.

    artifact = load("net.tar")
    y = artifact.run(x=x)

`load` reads every kind that this project writes. A kind is named in the manifest inside the file and belongs to a module
of this package or a backend, which is imported when such a file is met.
"""
from __future__ import annotations

import importlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from relaylang.diagnostics import RelayError, define_codes, did_you_mean, error

define_codes({"R0640": "wrong input of a compiled program", "R0641": "not a compiled program"})

#: The value of a manifest's "format", and the function that makes an artifact from a file of that kind.
FORMATS: dict[str, tuple[str, str]] = {
    "relaylang-cpu": ("relaylang.runtime.cpu", "load"),
    "relaylang-ethos-u": ("relaylang.backends.ethosu", "load"),
}


class Artifact(Protocol):
    """A compiled program."""

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program. Inputs by position or name, as numpy arrays; tensors come back as arrays, tuples as tuples."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program, its weights and its manifest to one file."""


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

        Python numbers and lists take the tensor's dtype where their kind allows it; arrays must have it.
        """
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
        else:
            try:
                array = np.asarray(value)
                if np.can_cast(array.dtype, np.dtype(self.dtype), casting="same_kind") or array.size == 0:
                    array = array.astype(np.dtype(self.dtype))
            except (TypeError, ValueError, OverflowError):
                raise RelayError(error("R0640", f"the input {name} is no tensor")) from None
        if array.shape != self.shape or array.dtype.name != self.dtype:
            given = TensorSpec(array.shape, array.dtype.name)
            raise RelayError(error("R0640", f"the input {name} is {given}, not {self}"))
        if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative:
            return array
        # `ascontiguousarray` would give a scalar an axis.
        return np.array(array, np.dtype(self.dtype), order="C")


def bind_arguments(names: list[str], args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
    """The values of a program's inputs in order, from positional and named ones. Raises `RelayError` (R0640)."""
    given = dict(zip(names, args))
    if len(args) > len(names):
        raise RelayError(error("R0640", f"{len(args)} inputs are given, but the program takes {len(names)}"))
    for name, value in named.items():
        if name not in names:
            near = did_you_mean(name, names)
            notes = [f"did you mean {near}?"] if near else [f"its inputs: {', '.join(names) or 'none'}"]
            raise RelayError(error("R0640", f"the program has no input {name}", notes=notes))
        if name in given:
            raise RelayError(error("R0640", f"the input {name} is given twice"))
        given[name] = value
    missing = [n for n in names if n not in given]
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise RelayError(error("R0640", f"no value is given for the input {', '.join(missing[:4])}{more}"))
    return [given[n] for n in names]


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
    """The files of a tar."""
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is not None:
                files[member.name] = stream.read()
    return files


def not_an_artifact(path: Any, why: str) -> RelayError:
    return RelayError(error("R0641", f"{os.fspath(path)} is not a compiled program: {why}"))


def load(path: str | os.PathLike[str]) -> Any:
    """Read what an artifact's `save` wrote. It runs code from the file: load only what you trust.

    Raises `RelayError` (R0001 where the file cannot be read, R0641 where it is something else).
    """
    try:
        content = Path(path).read_bytes()
    except OSError as e:
        raise RelayError(error("R0001", f"cannot read {os.fspath(path)}: {(e.strerror or str(e)).lower()}")) from None
    from relaylang.runtime import cpu

    if content[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe"):
        return cpu.load(path)
    try:
        files = read_tar(content)
        manifest = json.loads(files["manifest.json"])
        module, function = FORMATS[manifest["format"]]
    except (tarfile.TarError, KeyError, ValueError, TypeError, EOFError):
        raise not_an_artifact(path, "it holds no manifest of a kind that is known here") from None
    reader: Callable[[Any], Any] = getattr(importlib.import_module(module), function)
    return reader(path)
