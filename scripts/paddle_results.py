"""Writes programs of PaddlePaddle and what it computes for them: tests/frontends/paddle/data.

    scripts/paddle_results.py [NAME...]

With names, it adds these to the files.
It needs an environment of its own. `pip install paddlepaddle` writes the .json files, 'paddlepaddle==2.6.2' the .pdmodel files.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle_cases
import paddle_networks

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.frontends.paddle.files import weight  # noqa: E402

DATA = ROOT / "tests" / "frontends" / "paddle" / "data"
NEW = paddle.__version__ >= "3"
ENDING = ".json" if NEW else ".pdmodel"
#: Files of weights up to this size are kept; larger ones are made from their names again.
KEPT = 20_000


def flat(values: Any) -> list[Any]:
    return [part for value in values for part in flat(value)] if isinstance(values, (list, tuple)) else [values]


def recorded(
    path: Path, results: Sequence[Any], inputs: Sequence[np.ndarray], archive: zipfile.ZipFile, small: bool
) -> dict[str, np.ndarray]:
    """Put a program into the archive; its inputs and results by name."""
    name = path.name
    archive.writestr(name + ENDING, path.with_name(name + ENDING).read_bytes())
    weights = path.with_name(name + ".pdiparams")
    if weights.exists() and (small or weights.stat().st_size <= KEPT):
        archive.writestr(name + ".pdiparams", weights.read_bytes())
    made = {f"{name}_in{i}": value for i, value in enumerate(inputs)}
    return made | {f"{name}_out{i}": np.asarray(value) for i, value in enumerate(results)}


def of_case(name: str, function: Callable[..., Any], inputs: Sequence[np.ndarray], folder: Path) -> list[Any]:
    """The results of a case, whose program is written into a folder."""
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start):
        given = [paddle.static.data(f"x{i}", list(v.shape), v.dtype.name) for i, v in enumerate(inputs)]
        results = flat(function(*given))
        run = paddle.static.Executor()
        run.run(start)
        fed = {f"x{i}": v for i, v in enumerate(inputs)}
        values = [np.array(v) for v in run.run(main, feed=fed, fetch_list=results, return_numpy=False)]
        paddle.static.save_inference_model(str(folder / name), given, results, run, program=main)
    return list(values)


def of_network(name: str, make: Callable[[], Any], inputs: Sequence[np.ndarray], folder: Path) -> list[Any]:
    """The results of a network with weights of their names, whose program is written into a folder.

    Quantised networks keep their own weights and results: version 3.2 computes others from what it has exported.
    """
    with paddle.utils.unique_name.guard():
        net = make()
        net.eval()
        for own in [] if name.startswith("quantised") else [*net.parameters(), *net.buffers()]:
            if "generated" not in own.name and "tmp" not in own.name:
                own.set_value(weight(own.name, own.shape, str(own.dtype).rpartition(".")[2]))
        specs = [paddle.static.InputSpec(list(v.shape), v.dtype.name, f"x{i}") for i, v in enumerate(inputs)]
        paddle.jit.save(net, str(folder / name), input_spec=specs)
    if name.startswith("quantised"):
        return flat(net(*[paddle.to_tensor(v) for v in inputs]))
    return flat(paddle.jit.load(str(folder / name))(*[paddle.to_tensor(v) for v in inputs]))


def main() -> None:
    DATA.mkdir(exist_ok=True)
    suffix = "3" if NEW else "2"
    before = DATA / f"recorded{suffix}.npz"
    found: dict[str, np.ndarray] = {}
    if sys.argv[1:] and before.exists():
        with np.load(before) as arrays:
            found.update(arrays)
    chosen = set(sys.argv[1:])
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(DATA / f"programs{suffix}.zip", "a" if chosen else "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, make, inputs in paddle_networks.networks():
            if chosen and name not in chosen:
                continue
            try:
                results = of_network(name, make, inputs, Path(folder))
            except Exception as wrong:
                print("left out:", name, str(wrong).strip()[-300:], flush=True)
                continue
            found |= recorded(Path(folder, name), results, inputs, archive, False)
            print(name, [tuple(r.shape) for r in results], flush=True)
        paddle.enable_static()
        for family in (*paddle_cases.ALL, *paddle_networks.CASES):
            for name, function, inputs in family():
                if chosen and name not in chosen:
                    continue
                try:
                    results = of_case("op_" + name, function, inputs, Path(folder))
                except Exception as wrong:
                    print("left out:", name, str(wrong).strip()[-300:], flush=True)
                    continue
                found |= recorded(Path(folder, "op_" + name), results, inputs, archive, True)
    np.savez_compressed(before, **found)


if __name__ == "__main__":
    main()
