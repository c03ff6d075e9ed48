"""Small models that ask for everything, and layers that are wrong: each ends in a diagnostic that names the fault."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import helper  # noqa: E402

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.onnx import import_onnx  # noqa: E402
from relaylang.frontends.options import Options  # noqa: E402
from tests.frontends.onnx.models import model, node  # noqa: E402
from tests.shared import SHARED  # noqa: E402

X = {"x": (2, 3)}


def wrong(data: object, **options: Any) -> tuple[str, str]:
    """The code of the first diagnostic, and all text."""
    with pytest.raises(RelayError) as raised:
        import_onnx(data, Options(**options), file="net.onnx")
    return raised.value.diagnostics[0].code, str(raised.value)


def calling(twice: int, itself: bool = False) -> bytes:
    """Functions that each call the one before them twice; the first calls itself, or is a Relu."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("c", 1)]
    first = helper.make_node("f0" if itself else "Relu", ["a"], ["r"], domain="c" if itself else "")
    functions = [helper.make_function("c", "f0", ["a"], ["r"], [first], opsets)]
    for i in range(twice):
        calls = [helper.make_node(f"f{i}", ["a"], ["t"], domain="c"), helper.make_node(f"f{i}", ["t"], ["r"], domain="c")]
        functions.append(helper.make_function("c", f"f{i + 1}", ["a"], ["r"], calls, opsets))
    proto = onnx.ModelProto.FromString(model([helper.make_node(f"f{twice}", ["x"], ["y"], domain="c")], X))
    proto.functions.extend(functions)
    proto.opset_import.append(helper.make_opsetid("c", 1))
    return proto.SerializeToString()


def test_functions_that_call_each_other_twice() -> None:
    code, text = wrong(calling(40), nodes=500)
    assert code == "R0016" and "writing its" in text and "RELAY_BUDGET_NODES" in text
    assert "graphs and functions are nested more than 64 deep" in wrong(calling(0, itself=True))[1]
    assert import_onnx(calling(4)).module["main"].ret_type.shape == (2, 3)


def doubling(levels: int) -> bytes:
    names = ["w", *(f"a{i}" for i in range(levels))]
    nodes = [node("Concat", [one, one], [two], axis=0) for one, two in pairwise(names)]
    return model([*nodes, node("Reshape", ["x", names[-1]])], X, weights={"w": np.array([1, 2, 3])})


def test_constants_that_double() -> None:
    code, text = wrong(doubling(40), bytes=1 << 20)
    assert code == "R0016" and "computing its constants needs" in text and "Options(bytes=" in text


def test_a_range_without_end() -> None:
    numbers = {"a": np.int64(0), "b": np.int64(3_000_000_000), "c": np.int64(1)}
    code, text = wrong(model([node("Range", ["a", "b", "c"], ["r"]), node("Reshape", ["x", "r"])], X, weights=numbers))
    assert code == "R0805" and "its result would have 3000000000 axes" in text


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "circle", "nul", "long", "short", "negative", "text", "absent"])
def test_external_data_is_a_regular_file_of_its_folder(tmp_path: Path, kind: str) -> None:
    proto = onnx.ModelProto.FromString(model([node("Add", ["x", "w"])], X, weights={"w": np.ones(3, "float32")}))
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = 1
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "short").write_bytes(bytes(8))
    (tmp_path / "in" / "folder").mkdir()
    (tmp_path / "outside").write_bytes(bytes(12))
    os.mkfifo(tmp_path / "in" / "pipe")
    os.symlink(tmp_path / "outside", tmp_path / "in" / "link")
    os.symlink("circle", tmp_path / "in" / "circle")
    location = {"nul": "a\0b", "long": "x" * 5000, "negative": "short", "text": "short"}.get(kind, kind)
    weight.external_data.add(key="location", value=location)
    if kind in ("negative", "text"):
        weight.external_data.add(key="offset", value="-1" if kind == "negative" else str(2**70))
    path = tmp_path / "in" / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    code, text = wrong(str(path))
    expected = {
        "pipe": "which is a pipe, not a regular file",
        "folder": "which is a directory, not a regular file",
        "link": "outside the model's folder",
        "circle": "w",
        "nul": r"whose path 'a\x00b' is none",
        "long": "w",
        "short": "has the bytes 0 to 12 of short, which has 8",
        "negative": "has an offset below 0",
        "text": "which has 8",
        "absent": "cannot read absent: No such file",
    }
    assert code == "R0802" and expected[kind] in text


def test_a_shape_that_no_array_has() -> None:
    proto = onnx.ModelProto.FromString(model([node("Add", ["x", "w"])], X, weights={"w": np.ones(0, "float32")}))
    proto.graph.initializer[0].dims[:] = [0, 1 << 62]
    assert "the tensor w has the impossible shape (0, 4611686018427387904)" in wrong(proto)[1]


IMAGE = {"x": (1, 1, 4, 4)}
LAYERS: dict[str, tuple[Any, dict[str, tuple[int, ...]], dict[str, Any], str]] = {
    "missing operand": (node("Reshape", ["x"]), X, {}, "the operand 1 (shape) is missing"),
    "empty operand": (node("MatMul", ["x", ""]), X, {}, "the operand 1 (B) is missing"),
    "too many operands": (node("Relu", ["x", "x"]), X, {}, "it has 2 operands, and the operator takes at most 1"),
    "missing attribute": (node("Concat", ["x"]), X, {}, "the attribute axis is missing; it is a whole number"),
    "kind of attribute": (
        node("Concat", ["x"], axis=1.5),
        X,
        {},
        "the attribute axis is a number with a point; it must be a whole number",
    ),
    "axis": (node("Softmax", ["x"], axis=7), X, {}, "axis"),
    "pads": (node("MaxPool", ["x"], kernel_shape=[2, 2], pads=[1]), IMAGE, {}, "pads has 1 numbers; it must have 4"),
    "strides": (
        node("MaxPool", ["x"], kernel_shape=[2, 2], strides=[0, 1]),
        IMAGE,
        {},
        "the strides [0, 1] must be numbers from 1 on",
    ),
    "kernel": (node("MaxPool", ["x"], kernel_shape=[0, 0]), IMAGE, {}, "the kernel [0, 0] must be numbers from 1 on"),
    "steps": (node("Range", ["a", "b", "a"]), {}, {"a": np.int64(0), "b": np.int64(10)}, "it counts from 0 to 10 by steps of 0"),
    "scale": (node("Resize", ["x", "", "s"]), IMAGE, {"s": np.float32([1, 1, 1e30, 1e30])}, "R0016"),
    "mode": (
        node("Resize", ["x", "", "s"], mode="best"),
        IMAGE,
        {"s": np.float32([1, 1, 2, 2])},
        "it resizes by 'best', which is none of nearest",
    ),
    "rank": (node("Conv", ["x", "w"]), X, {"w": np.ones((1, 2, 3), "float32")}, "1, 2 or 3 spatial axes, not 0"),
    "dtype": (node("GridSample", ["x", "x"], mode="x"), IMAGE, {}, "the attribute mode is 'x'; it must be one of"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_fault_of_a_layer_is_named(name: str) -> None:
    layer, inputs, weights, expected = LAYERS[name]
    code, text = wrong(model([layer], inputs, weights=weights, opset=20 if name in ("dtype", "mode") else 17))
    assert code in ("R0801", "R0805", "R0016", "R0301") and expected in text and "do not fit the operator" not in text


def test_a_fault_of_ours_is_no_fault_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from relaylang.frontends.onnx.table import table

    def broken(n: Any, x: Any) -> Any:
        raise KeyError("oops")

    rule = table().find("Relu", 17)
    monkeypatch.setitem(rule.__dict__, "convert", broken)
    code, text = wrong(model([node("Relu", ["x"])], X))
    assert code == "R0900" and "Relu y: internal error of relaylang: KeyError: 'oops' (test_hostile_models.py:" in text
    assert "y = Relu(x)" in text


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", sorted((SHARED / "reports" / "reliability").glob("*/*.onnx")), ids=lambda p: p.name)
def test_reported_models(path: Path) -> None:
    code, text = wrong(str(path))
    assert code in ("R0016", "R0801", "R0802", "R0805", "R0301") and "do not fit the operator" not in text
