"""Extents that an ONNX model names, from the model to the text and to a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.export.onnx import export_onnx
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.interpreter import evaluate
from relaylang.ir import FuncType, IRModule, structural_equal, type_text
from relaylang.syntax import astext, parse
from relaylang.tvm.frontend import from_onnx
from relaylang.typing import infer

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper  # noqa: E402

make = helper.make_node
NUMBERS = {"zero": [0], "one": [1], "two": [2], "four": [4], "eight": [8], "front": [1, 2]}


def attention(total: str) -> Any:
    """Attention of two heads over a cache, as exporters write it. `total` names the keys that the mask has."""

    def value(name: str, shape: Sequence[Any]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    weight = np.random.default_rng(0).standard_normal(64).astype("float32")
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [8, 8], weight)]
    weights += [helper.make_tensor(name, TensorProto.INT64, [len(v)], v) for name, v in NUMBERS.items()]
    layers = [
        make("MatMul", ["x", "w"], ["q"]),
        make("Shape", ["x"], ["shape"]),
        make("Gather", ["shape", "zero"], ["b"]),
        make("Gather", ["shape", "one"], ["t"]),
        make("Concat", ["b", "t", "two", "four"], ["heads"], axis=0),
        make("Reshape", ["q", "heads"], ["q4"]),
        make("Transpose", ["q4"], ["qh"], perm=[0, 2, 1, 3]),
        make("Concat", ["past", "qh"], ["k"], axis=2),
        make("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        make("MatMul", ["qh", "kt"], ["scores"]),
        make("Unsqueeze", ["mask", "front"], ["mask4"]),
        make("Add", ["scores", "mask4"], ["masked"]),
        make("Softmax", ["masked"], ["p"], axis=-1),
        make("MatMul", ["p", "k"], ["o"]),
        make("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        make("Concat", ["b", "t", "eight"], ["flat"], axis=0),
        make("Reshape", ["ot", "flat"], ["y"]),
    ]
    inputs = [value("x", ["batch", "seq", 8]), value("past", ["batch", 2, "kept", 4]), value("mask", ["batch", total])]
    graph = helper.make_graph(layers, "g", inputs, [value("y", ["batch", "seq", 8])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def signature(mod: IRModule) -> str:
    ty = mod["main"].checked_type
    assert isinstance(ty, FuncType)
    return type_text(ty)


def arguments(batch: int, seq: int, kept: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype("float32") for s in ((batch, seq, 8), (batch, 2, kept, 4), (batch, kept + seq))]


@pytest.mark.parametrize(
    ("total", "types"),
    [
        ("kept + seq", ["kept + seq", "batch, seq, 8"]),
        ("total", ["total", "?, ?, 8"]),
        ("total keys", ["total_keys", "?, ?, 8"]),
    ],
)
def test_names_reach_the_text(total: str, types: list[str]) -> None:
    mod = import_onnx(attention(total)).module
    own = "" if "+" in total else f", {types[0]}"
    assert signature(mod).startswith(
        f"fn [batch, seq, kept{own}](Tensor[(batch, seq, 8), float32], Tensor[(batch, 2, kept, 4), float32], "
        f"Tensor[(batch, {types[0]}), float32])"
    )
    text = astext(mod)
    again = parse(text).module
    assert again is not None and infer(again) == [] and structural_equal(again, mod) and astext(again) == text
    args, fixed = arguments(2, 3, 5), import_onnx(attention(total), Options({"batch": (2,), "seq": (3,), "kept": (5,)})).module
    np.testing.assert_allclose(evaluate(mod, *args), evaluate(fixed, *args), rtol=1e-6, atol=1e-6)


def test_an_expression_keeps_all_extents() -> None:
    text = astext(import_onnx(attention("kept + seq")).module, show_types=False)
    assert "dyn." not in text and "shape_of" not in text and "?" not in text.partition("#[metadata]")[0]


def test_extents_that_contradict_their_names() -> None:
    mod = import_onnx(attention("kept + seq")).module
    args = arguments(2, 3, 5)
    with pytest.raises(RelayError) as wrong:
        evaluate(mod, args[0], args[1], args[2][:, 1:])
    assert wrong.value.diagnostics[0].title == (
        "the argument for %mask has the shape (2, 7): axis 1 is 7, but `kept + seq` is 8 (`kept` is 5 in %past, `seq` is 3 in %x)"
    )


def test_options_give_names_numbers() -> None:
    mod, _ = from_onnx(attention("kept + seq"), {"batch": 1, "kept": 0})
    assert "[seq](Tensor[(1, seq, 8), float32], Tensor[(1, 2, 0, 4), float32], Tensor[(1, seq), float32])" in signature(mod)
    mod = import_onnx(attention("kept + seq"), Options({"x": (1, 4, 8)})).module
    assert "[kept](Tensor[(1, 4, 8), float32], Tensor[(1, 2, kept, 4), float32], Tensor[(1, kept + 4), float32])" in signature(mod)
    mod = import_onnx(attention("kept + seq"), Options(values={"mask": np.zeros((3, 9), "float32")})).module
    assert signature(mod).startswith("fn [seq, kept](Tensor[(3, seq, 8), float32]")


def test_an_export_keeps_names() -> None:
    mod, args = import_onnx(attention("kept + seq")).module, arguments(2, 3, 5)
    back = import_onnx(export_onnx(mod)).module
    assert signature(back) == signature(mod)
    assert "?" not in astext(back, show_types=False).partition("#[metadata]")[0]
    np.testing.assert_allclose(evaluate(back, *args), evaluate(mod, *args), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options({"bach": (1,)}), "has no input bach"),
        (Options({"batch": (1, 2)}), "batch is an extent, and its number must be one, not (1, 2)"),
        (Options(dtypes={"batch": "int8"}), "has no input batch"),
    ],
)
def test_wrong_options(options: Options, said: str) -> None:
    with pytest.raises(RelayError) as wrong:
        import_onnx(attention("kept + seq"), options)
    assert said in wrong.value.diagnostics[0].title


@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers_of_named_length_and_batch_on_the_vm(kind: str, gates: int) -> None:
    """Their weights are large enough to lie outside the kernels, whose types have the names."""
    rng = np.random.default_rng(0)
    shapes = {"w": (2, gates * 8, 8), "r": (2, gates * 8, 8), "b": (2, 2 * gates * 8)}
    weights = [
        helper.make_tensor(n, TensorProto.FLOAT, s, rng.standard_normal(s).astype("float32").ravel() / 3) for n, s in shapes.items()
    ]
    layer = make(kind, ["x", *shapes], ["y"], hidden_size=8, direction="bidirectional")
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in {"x": ["steps", "batch", 8], "y": ["steps", 2, "batch", 8]}.items()
    ]
    graph = helper.make_graph([layer], kind, ends[:1], ends[1:], weights)
    mod = import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)).module
    executable = compile_vm(mod)
    for steps, batch in [(3, 2), (5, 1)]:
        x = rng.standard_normal((steps, batch, 8)).astype("float32")
        np.testing.assert_allclose(executable.run(x), evaluate(mod, x), rtol=1e-5, atol=1e-6)
    assert not executable.fallbacks()
