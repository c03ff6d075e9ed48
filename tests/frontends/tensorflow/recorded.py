"""What TensorFlow computed for small graphs, as `record.py` wrote it down, and the comparison with the imported program."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import relaylang as relay
from relaylang.frontends.common import Imported
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.frontends.tensorflow import import_tensorflow
from relaylang.interpreter.evaluate import Evaluator
from tests.frontends.tensorflow.inputs import made

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """A graph, its inputs and what TensorFlow gave."""

    graph: bytes
    names: list[str]
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


@cache
def cases() -> dict[str, Case]:
    """The recorded cases by name."""
    with lzma.open(FOLDER / "operators.npz.xz") as stream:
        arrays = np.load(io.BytesIO(stream.read()))
    index: dict[str, Any] = json.loads(bytes(arrays["index"]))
    found = {}
    for name, (seed, specs, names) in index.items():
        outputs = [arrays[f"{name}/{i}"] for i in range(len(names))]
        found[name] = Case(bytes(arrays[f"{name}/graph"]), names, made(specs, seed), outputs)
    return found


def run(imported: Imported, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a program whose parameters are `x0`, `x1`, ... and weights."""
    assert relay.infer(imported.module, fresh=True) == []
    params = imported.module["main"].params
    given = {f"x{i}": x for i, x in enumerate(inputs)} | imported.params
    found = Evaluator(imported.module).call("main", tuple(given[p.name_hint] for p in params))
    return [np.asarray(f) for f in found] if isinstance(found, tuple) else [np.asarray(found)]


def compare(case: Case, options: Options = DEFAULTS, close: float = 1e-5) -> Imported:
    """The same shapes and types as TensorFlow; real numbers agree to `close` of the largest, others are equal."""
    imported = import_tensorflow(case.graph, options, "net.pb", case.names)
    found = run(imported, case.inputs)
    assert len(found) == len(case.outputs)
    for f, w in zip(found, case.outputs):
        same(f, w, close)
    return imported


def same(found: np.ndarray, wanted: np.ndarray, close: float = 1e-5) -> None:
    """One output is as TensorFlow's."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind == "f":
        least = max(float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)), 1e-3)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=close * least)
    else:
        np.testing.assert_array_equal(found, wanted)


@dataclass(frozen=True)
class Network:
    """A SavedModel's folder or a graph's file, with inputs and outputs by name."""

    path: Path
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


def networks(folder: Path) -> dict[str, Network]:
    """The recorded networks by name; their files are laid out in a folder."""
    with tarfile.open(FOLDER / "networks.tar.xz") as archive:
        archive.extractall(folder)
    arrays = np.load(folder / "networks.npz")
    found: dict[str, Network] = {}
    for key in arrays.files:
        name, side, part = key.split("/", 2)
        path = folder / f"{name}.pb"
        network = found.setdefault(name, Network(path if path.is_file() else folder / name, {}, {}))
        (network.inputs if side == "in" else network.outputs)[part] = arrays[key]
    return found
