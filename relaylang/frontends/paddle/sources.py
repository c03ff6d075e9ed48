"""Where a program and its weights come from: files, bytes, and objects of PaddlePaddle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.inputs import no_model
from relaylang.frontends.options import Options
from relaylang.frontends.paddle.descriptions import read_description
from relaylang.frontends.paddle.pir import read_pir
from relaylang.frontends.paddle.program import Program
from relaylang.frontends.paddle.weights import combined, missing, separate
from relaylang.runtime.budget import Budget
from relaylang.runtime.params import read_view
from relaylang.runtime.text import read_bytes

_WANTED = "the importer takes a .pdmodel or .json file, its bytes, a Program or a TranslatedLayer"
#: The files of weights beside a program: of its own name, else under these names.
_ENDING, _NAMES = ".pdiparams", ("__params__", "params")


@dataclass
class Source:
    """A program's bytes, its name in diagnostics, and the values that an object of PaddlePaddle has."""

    data: bytes
    name: str
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    #: The names of the inputs and results of a layer, whose program does not feed and fetch them itself.
    ends: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def program(self) -> Program:
        """The program. Raises `RelayError` (R0802)."""
        is_json = self.data[:64].lstrip().startswith(b"{")
        return read_pir(self.data, self.name) if is_json else read_description(self.data, self.name, *self.ends)


def source_of(model: Any, file: str) -> Source:
    """Where a program comes from. Raises `RelayError`."""
    name = file or "the program"
    if isinstance(model, (str, os.PathLike)):
        return Source(read_bytes(os.fspath(model)), name)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return Source(bytes(model), name)
    if isinstance(model, type):
        raise RelayError(no_model(model, "program of PaddlePaddle", _WANTED))
    if callable(getattr(model, "program", None)) and hasattr(model, "parameters"):
        values = {v.name: np.asarray(v) for v in [*model.parameters(), *model.buffers()]}
        specs = [getattr(model, side)() if hasattr(model, side) else () for side in ("_input_spec", "_output_spec")]
        ends = [tuple([spec.name for spec in side if isinstance(spec.name, str)]) for side in specs]
        return Source(_serialised(model.program()), name, values, (ends[0], ends[1]))
    if hasattr(model, "global_block"):
        return Source(_serialised(model), name)
    raise RelayError(no_model(model, "program of PaddlePaddle", _WANTED))


def _serialised(program: Any) -> bytes:
    """The bytes of a Program of PaddlePaddle 2, or of a program in PIR, which PaddlePaddle writes to files alone."""
    if hasattr(program, "desc"):
        return bytes(program.desc.serialize_to_string())
    from paddle.base import core

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.json")
        core.serialize_pir_program(program, path, True, False, False)
        return read_bytes(path)


def values_in(scope: Any, program: Program) -> dict[str, np.ndarray]:
    """The weights of a program in a scope of PaddlePaddle, or in a mapping."""
    if isinstance(scope, Mapping):
        return {w.name: np.asarray(scope[w.name]) for w in program.weights if w.name in scope}
    variables = {w.name: scope.find_var(w.name) for w in program.weights}
    return {name: np.asarray(value.get_tensor()) for name, value in variables.items() if value is not None}


def weights_of(source: Source, program: Program, options: Options, budget: Budget, given: Any) -> Mapping[str, np.ndarray]:
    """The weights of a program by name. Raises `RelayError`."""
    names = {w.name for w in program.weights}
    if not names:
        return {}
    given = given if given is not None else options.weights or None
    if given is None and source.values:
        values: Mapping[str, np.ndarray] = source.values
    elif isinstance(given, (bytes, bytearray, memoryview)):
        budget.grant(len(given))
        values = combined(bytes(given), "the file of weights", program.weights)
    elif given is None or isinstance(given, (str, os.PathLike)):
        path = os.fspath(given) if given is not None else _beside(source.name, options.folder)
        if not path:
            raise missing(source.name, len(names))
        if os.path.isdir(path):
            values = separate(path, program.weights, budget)
        else:
            data = read_view(path)
            budget.grant_file(path, len(data))
            values = combined(data, path, program.weights)
    else:
        values = values_in(given, program)
    lacking = sorted(names - set(values))
    if lacking:
        raise damaged(source.name, f"{len(lacking)} of its weights have no value: {', '.join(lacking[:3])[:200]}")
    return values


def _beside(name: str, folder: str) -> str:
    """The file of weights beside a program, or its folder where each weight has a file; "" where there is none."""
    if not folder:
        return ""
    base = os.path.basename(name)
    stem = os.path.splitext(base)[0]
    for own in (stem + _ENDING, *_NAMES):
        if own != base and os.path.isfile(os.path.join(folder, own)):
            return os.path.join(folder, own)
    return folder if stem == "__model__" else ""


__all__ = ["Source", "source_of", "values_in", "weights_of"]
