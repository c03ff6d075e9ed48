"""Writes what MXNet computes for the cases of tests/frontends/mxnet: tests/frontends/mxnet/data/*.npz.

    scripts/mxnet_results.py [FOLDER]

It needs an environment of its own, with Python 3.11 and `pip install --no-deps mxnet==1.9.1 numpy==1.23.5`, and
`pip install requests graphviz`. MXNet runs its own kernels there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
warnings.filterwarnings("ignore")
#: MXNet 1.9 uses the names that numpy had for Python's own types.
for _name, _kind in (("bool", bool), ("object", object), ("int", int), ("float", float)):
    if _name not in np.__dict__:
        setattr(np, _name, _kind)

os.environ |= {"MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"}

import mxnet as mx  # noqa: E402

from tests.frontends.mxnet.cases import Case, cases  # noqa: E402


def results(symbol: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a symbol for its variables' values."""
    arrays = {name: mx.nd.array(value, dtype=value.dtype) for name, value in values.items()}
    states = {name: arrays[name] for name in symbol.list_auxiliary_states()}
    bound = symbol.bind(mx.cpu(), {name: arrays[name] for name in symbol.list_arguments()}, aux_states=states)
    return [output.asnumpy() for output in bound.forward(is_train=False)]


def layer(case: Case) -> list[np.ndarray]:
    """A case's results, in which two runs agree: at times MXNet reads memory that it does not own."""
    before: list[np.ndarray] = []
    for _ in range(5):
        with mx.util.np_shape(case.op.startswith("_np")):
            found = results(mx.sym.load_json(case.symbol()), {f"x{i}": x for i, x in enumerate(case.inputs)})
        if before and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, found)):
            return found
        before = found
    raise RuntimeError("its results differ from run to run")


def layers(names: Iterable[str]) -> dict[str, np.ndarray]:
    """The results of cases by name and number, of those that MXNet computes."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        try:
            found.update({f"{name}/{i}": value for i, value in enumerate(layer(cases()[name]))})
        except Exception as wrong:
            print(f"{name}: {str(wrong).splitlines()[-1][:160]}", flush=True)
    return found


def apart(names: Sequence[str], folder: Path, mkldnn: str) -> dict[str, np.ndarray]:
    """The results of cases, from a process of their own. One that ends by a fault of memory gives its cases to two others."""
    place = folder / "part.npz"
    place.unlink(missing_ok=True)
    call = [sys.executable, __file__, "--some", str(place), *names]
    subprocess.run(call, env={**os.environ, "MXNET_MKLDNN_ENABLED": mkldnn}, check=False)
    if place.exists():
        with np.load(place) as data:
            found = {name: data[name] for name in data.files}
        place.unlink()
        return found
    if len(names) == 1:
        print(f"{names[0]}: MXNet ends by a fault", flush=True)
        return {}
    half = len(names) // 2
    return {**apart(names[:half], folder, mkldnn), **apart(names[half:], folder, mkldnn)}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = list(cases())
    found: dict[str, np.ndarray] = {}
    for start in range(0, len(names), 40):
        found.update(apart(names[start : start + 40], folder, "1"))
    # oneDNN's kernels refuse a few layers, which MXNet's own compute.
    found.update(apart([name for name in names if f"{name}/0" not in found], folder, "0"))
    np.savez_compressed(folder / "layers.npz", **found)
    print(f"{len(found)} results, {os.path.getsize(folder / 'layers.npz')} bytes", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--some"]:
        np.savez(sys.argv[2], **layers(sys.argv[3:]))
        os._exit(0)  # the end of a process is a fault of memory in MXNet, too
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "frontends" / "mxnet" / "data")
