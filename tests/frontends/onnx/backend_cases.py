"""ONNX's own backend tests, run through the backend class.

Usage:

    python -m tests.frontends.onnx.backend_cases            count the cases that pass
    python -m tests.frontends.onnx.backend_cases CONV       run the cases whose names contain CONV, with the errors
    python -m tests.frontends.onnx.backend_cases --compiled run compiled programs
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx.backend import prepare

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
GAPS = Path(__file__).with_name("gaps.tsv")


class Wrong(Exception):
    """The outputs are not the expected ones."""


@cache
def cases() -> dict[str, Any]:
    """Every case by kind and name."""
    from onnx.backend.test import loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {f"{kind}/{case.name}": case for kind in KINDS for case in loader.load_model_tests(kind=kind)}


def _array(value: Any) -> Any:
    """A value of a data set; element types that numpy lacks stand there as TensorProtos."""
    from onnx import numpy_helper

    return numpy_helper.to_array(value) if hasattr(value, "data_type") else value


def _read(data: bytes, kind: Any) -> Any:
    """The value of a file, by the type that the model states."""
    import onnx
    from onnx import numpy_helper

    form = kind.WhichOneof("value")
    if form == "tensor_type":
        return numpy_helper.to_array(onnx.TensorProto.FromString(data))
    if form == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    optional = onnx.OptionalProto.FromString(data)
    if optional.elem_type in (onnx.OptionalProto.UNDEFINED, onnx.OptionalProto.TENSOR) and not optional.HasField("tensor_value"):
        return None
    return numpy_helper.to_optional(optional)


def _arrays(path: Path, pattern: str, types: list[Any]) -> list[Any]:
    """The values of a data set's files."""
    count = len(list(path.glob(pattern)))
    return [_read((path / pattern.replace("*", str(i))).read_bytes(), v.type) for i, v in enumerate(types[:count])]


def data_sets(case: Any, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Inputs and expected outputs."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield [_array(v) for v in inputs], [_array(v) for v in outputs]
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set*")):
        yield _arrays(folder, "input_*.pb", list(model.graph.input)), _arrays(folder, "output_*.pb", list(model.graph.output))


def same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    """Raise `Wrong` where a value is not the expected one, within ONNX's own tolerance of the case."""
    if isinstance(wanted, (list, tuple)):
        if len(found) != len(wanted):
            raise Wrong(f"{len(found)} values, not {len(wanted)}")
        for f, w in zip(found, wanted):
            same(f, w, rtol, atol)
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        raise Wrong(f"the shape {found.shape}, not {wanted.shape}")
    if found.dtype != wanted.dtype and found.dtype.name != wanted.dtype.name:
        raise Wrong(f"the dtype {found.dtype}, not {wanted.dtype}")
    if wanted.dtype == object:
        if not np.array_equal(found, wanted):
            raise Wrong(f"the texts {found}, not {wanted}"[:300])
        return
    if wanted.dtype.kind not in "fiub" or wanted.dtype.name in dir(ml_dtypes):
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    try:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    except AssertionError as wrong:
        raise Wrong(" ".join(str(wrong).split())[:300]) from None


def run(case: Any, compiled: bool = False) -> None:
    """Run one case. Raises `RelayError` or `Wrong`."""
    import onnx

    model = case.model if case.model is not None else onnx.load(str(Path(case.model_dir) / "model.onnx"))
    folder = case.model_dir or ""
    for inputs, outputs in data_sets(case, model):
        shapes = {}
        for value, given in zip(model.graph.input, inputs):
            if isinstance(given, np.ndarray) and value.type.WhichOneof("value") == "tensor_type":
                shapes[value.name] = given.shape
        options = {"folder": folder, "shapes": shapes} if compiled else {"folder": folder}
        found = prepare(model, "CPU:1" if compiled else "CPU", **options).run(inputs)
        same(list(found), list(outputs), case.rtol, case.atol)


def failure(case: Any, compiled: bool = False) -> str:
    """Why a case fails, in one line; "" where it passes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(case, compiled)
    except Wrong as wrong:
        return f"wrong: {wrong}"
    except RelayError as wrong:
        first = wrong.diagnostics[0]
        return " ".join((first.code, first.title, *first.notes[:1]))
    except Exception as wrong:
        return f"{type(wrong).__name__}: {' '.join(str(wrong).split())[:300]}"
    return ""


def gaps() -> dict[str, str]:
    """The cases that do not pass, with the reason. A third column names the last release of onnx that has the gap."""
    import onnx

    release = tuple(int(n) for n in onnx.__version__.split(".")[:2])
    rows = [line.split("\t") for line in GAPS.read_text().splitlines()]
    return {name: why for name, why, *last in rows if not last or release <= tuple(int(n) for n in last[0].split("."))}


def main() -> None:
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    compiled = "--compiled" in sys.argv
    failed: dict[str, str] = {}
    chosen = {n: c for n, c in cases().items() if not words or any(w.lower() in n.lower() for w in words)}
    for name, case in chosen.items():
        why = failure(case, compiled)
        if why:
            failed[name] = why
            print(f"{name}\t{why}")
    print(f"{len(chosen) - len(failed)} of {len(chosen)} pass ({1 - len(failed) / max(len(chosen), 1):.1%})")


if __name__ == "__main__":
    main()
