"""Operators of the main domain on shapes with unknown extents, and in their old forms, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import ANY
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import theirs

rng = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def compare(
    op: str,
    inputs: dict[str, np.ndarray],
    weights: dict[str, np.ndarray],
    opset: int,
    opened: bool,
    outputs: tuple[str, ...] = ("out",),
    **attrs: Any,
) -> Any:
    """Import a model of one layer, with all extents of float inputs open or known, and compare values and shapes."""
    names = [*inputs, *weights]
    shapes = {n: [f"{n}{i}" for i in range(v.ndim)] if opened and v.dtype.kind == "f" else v.shape for n, v in inputs.items()}
    dtypes = {n: v.dtype.name for n, v in inputs.items()}
    data = model([node(op, names, outputs, **attrs)], shapes, outputs, weights, opset, dtypes)
    imported = import_onnx(data, Options())
    found = Evaluator(imported.module, imported.params).call("main", (), inputs)
    wanted = theirs(data, inputs)
    for f, w in zip(found if len(wanted) > 1 else [found], wanted):
        f = np.asarray(f)
        assert (f.shape, f.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(f, w, rtol=1e-5, atol=1e-5)
    return imported


X = floats(2, 4, 7, 6)
CASES: dict[str, tuple[str, dict[str, np.ndarray], dict[str, np.ndarray], int, dict[str, Any]]] = {
    "conv": ("Conv", {"x": X}, {"w": floats(6, 2, 3, 3), "b": floats(6)}, 11, {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]}),
    "conv_1d": ("Conv", {"x": X[..., 0]}, {"w": floats(3, 4, 2)}, 11, {"dilations": [2]}),
    "conv_same": ("Conv", {"x": X}, {"w": floats(6, 4, 2, 3)}, 11, {"auto_pad": "SAME_LOWER"}),
    "conv_transpose": ("ConvTranspose", {"x": X}, {"w": floats(4, 2, 3, 3)}, 11, {"strides": [2, 2], "output_padding": [1, 1]}),
    "max_pool": ("MaxPool", {"x": X}, {}, 12, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}),
    "average_pool": ("AveragePool", {"x": X}, {}, 19, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1}),
    "lp_pool": ("LpPool", {"x": X}, {}, 18, {"kernel_shape": [2, 2], "p": 3}),
    "global_pool": ("GlobalAveragePool", {"x": X}, {}, 11, {}),
    "global_pool_1d": ("GlobalMaxPool", {"x": X[..., 0]}, {}, 11, {}),
    "matmul": ("MatMul", {"x": X}, {"w": floats(6, 3)}, 13, {}),
    "matmul_batches": ("MatMul", {"x": X, "y": floats(2, 4, 6, 3)}, {}, 13, {}),
    "gemm": ("Gemm", {"x": floats(4, 3)}, {"w": floats(4, 5), "c": floats(5)}, 13, {"alpha": 0.5, "beta": 2.0, "transA": 1}),
    "einsum": ("Einsum", {"x": X, "y": floats(2, 4, 5, 6)}, {}, 12, {"equation": "bhid,bhjd->bhij"}),
    "batch_norm": ("BatchNormalization", {"x": X}, {n: abs(floats(4)) for n in "sbmv"}, 15, {"epsilon": 1e-3}),
    "instance_norm": ("InstanceNormalization", {"x": X}, {n: floats(4) for n in "sb"}, 6, {}),
    "layer_norm": ("LayerNormalization", {"x": X}, {n: floats(6) for n in "sb"}, 17, {}),
    "layer_norm_two_axes": ("LayerNormalization", {"x": X}, {n: floats(7, 6) for n in "sb"}, 17, {"axis": 2}),
    "lp_norm": ("LpNormalization", {"x": X}, {}, 11, {"axis": 1, "p": 1}),
    "lrn": ("LRN", {"x": X}, {}, 13, {"size": 3, "alpha": 0.1, "beta": 0.5, "bias": 2.0}),
    "old_softmax": ("Softmax", {"x": X}, {}, 11, {"axis": 2}),
    "old_log_softmax": ("LogSoftmax", {"x": X}, {}, 11, {"axis": 1}),
    "softmax": ("Softmax", {"x": X}, {}, 13, {"axis": 1}),
    "old_clip": ("Clip", {"x": X}, {}, 10, {"min": -0.5, "max": 0.25}),
    "clip": ("Clip", {"x": X, "low": np.array(-0.5, np.float32)}, {}, 13, {}),
    "prelu": ("PRelu", {"x": X}, {"s": floats(4, 1, 1)}, 16, {}),
    "celu": ("Celu", {"x": X}, {}, 12, {"alpha": 0.5}),
    "round": ("Round", {"x": np.array([0.5, 1.5, -0.5, -2.5, 2.49], np.float32)}, {}, 11, {}),
    "pow": ("Pow", {"x": abs(X)}, {"p": ints(3)}, 13, {}),
    "mod": ("Mod", {"x": ints(-7, 7, -7), "y": ints(3, -3, -3)}, {}, 13, {}),
    "cumsum": ("CumSum", {"x": X}, {"axis": ints(2)}, 14, {"reverse": 1, "exclusive": 1}),
    "reduce": ("ReduceMean", {"x": X}, {"axes": ints(1, -1)}, 18, {"keepdims": 0}),
    "old_reduce": ("ReduceL2", {"x": X}, {}, 13, {"axes": [2], "keepdims": 1}),
    "log_sum_exp": ("ReduceLogSumExp", {"x": X}, {}, 18, {}),
    "reduce_nothing": ("ReduceSum", {"x": X}, {"axes": np.zeros(0, np.int64)}, 13, {"noop_with_empty_axes": 1}),
    "arg_max": ("ArgMax", {"x": X}, {}, 13, {"axis": 2, "keepdims": 0}),
    "squeeze": ("Squeeze", {"x": X[:, :1]}, {"axes": ints(1)}, 13, {}),
    "unsqueeze": ("Unsqueeze", {"x": X}, {"axes": ints(0, -1)}, 13, {}),
    "flatten": ("Flatten", {"x": X}, {}, 13, {"axis": 2}),
    "flatten_all": ("Flatten", {"x": X}, {}, 13, {"axis": 0}),
    "concat": ("Concat", {"x": X, "y": floats(2, 4, 3, 6)}, {}, 13, {"axis": 2}),
    "slice": ("Slice", {"x": X}, {"s": ints(1, -1), "e": ints(100, -100), "a": ints(1, 2), "t": ints(1, -2)}, 13, {}),
    "old_slice": ("Slice", {"x": X}, {}, 9, {"starts": [0, -3], "ends": [1, 9999999], "axes": [0, 3]}),
    "computed_slice": ("Slice", {"x": X, "s": ints(1), "e": ints(-1)}, {"a": ints(2)}, 13, {}),
    "pad": ("Pad", {"x": X}, {"p": ints(0, 1, 0, 2, 0, 0, -1, 1), "v": np.array(2.5, np.float32)}, 18, {}),
    "pad_reflect": ("Pad", {"x": X}, {"p": ints(0, 0, 2, 1, 0, 0, 1, 1)}, 18, {"mode": "reflect"}),
    "computed_pad": ("Pad", {"x": X, "p": ints(0, 1, 0, 2, 0, 0, 1, 1)}, {}, 18, {}),
    "tile": ("Tile", {"x": X}, {"r": ints(1, 2, 1, 3)}, 13, {}),
    "computed_tile": ("Tile", {"x": X, "r": ints(1, 2, 1, 3)}, {}, 13, {}),
    "expand": ("Expand", {"x": X[:, :1]}, {"s": ints(3, 1, 4, 1, 6)}, 13, {}),
    "computed_expand": ("Expand", {"x": X[:, :1], "s": ints(4, 1, 1)}, {}, 13, {}),
    "fill": ("ConstantOfShape", {"s": ints(2, 3)}, {}, 9, {}),
    "range": ("Range", {"a": ints(1).reshape(()), "b": ints(9).reshape(()), "c": ints(3).reshape(())}, {}, 11, {}),
    "size": ("Size", {"x": X}, {}, 13, {}),
    "gather": ("Gather", {"x": X, "i": ints([0, -1], [-2, 1])}, {}, 13, {"axis": 2}),
    "gather_elements": ("GatherElements", {"x": X}, {"i": rng.integers(-7, 7, (2, 4, 2, 6))}, 13, {"axis": 2}),
    "gather_nd": ("GatherND", {"x": X}, {"i": ints([1, -1], [0, 2])}, 13, {}),
    "scatter_elements": ("ScatterElements", {"x": floats(3, 3)}, {"i": ints([0, -1, 2]), "u": floats(1, 3)}, 18, {"reduction": "mul"}),
    "scatter_nd": ("ScatterND", {"x": X}, {"i": ints([1, -1], [0, 2]), "u": floats(2, 7, 6)}, 18, {"reduction": "add"}),
    "compress": ("Compress", {"x": X, "c": np.array([True, False, True, True])}, {}, 11, {"axis": 1}),
    "non_zero": ("NonZero", {"x": np.array([[1, 0], [0, 2]], np.float32)}, {}, 13, {}),
    "one_hot": ("OneHot", {"i": ints([0, -1, 9])}, {"d": ints(3), "v": np.array([2, 5], np.float32)}, 11, {"axis": 1}),
    "computed_one_hot": ("OneHot", {"i": ints([0, -1, 9]), "d": ints(3)}, {"v": np.array([2, 5], np.float32)}, 11, {}),
    "eye_like": ("EyeLike", {"x": floats(3, 4)}, {}, 9, {"k": 1}),
    "trilu": ("Trilu", {"x": X}, {"k": ints(1).reshape(())}, 14, {"upper": 0}),
    "depth_to_space": ("DepthToSpace", {"x": X}, {}, 13, {"blocksize": 2, "mode": "CRD"}),
    "reverse_sequence": ("ReverseSequence", {"x": X, "l": ints(2, 1)}, {}, 10, {"time_axis": 1, "batch_axis": 0}),
}
SEVERAL: dict[str, tuple[str, dict[str, np.ndarray], dict[str, np.ndarray], int, tuple[str, ...], dict[str, Any]]] = {
    "split": ("Split", {"x": X}, {"l": ints(1, 3, 3)}, 13, ("a", "b", "c"), {"axis": 2}),
    "split_by_count": ("Split", {"x": X}, {}, 18, ("a", "b"), {"axis": 1, "num_outputs": 2}),
    "old_split": ("Split", {"x": X}, {}, 11, ("a", "b"), {"axis": 3}),
    "computed_split": ("Split", {"x": X, "l": ints(1, 3, 3)}, {}, 13, ("a", "b", "c"), {"axis": 2}),
    "top_k": ("TopK", {"x": X}, {"k": ints(3)}, 11, ("v", "i"), {"axis": 2, "largest": 0}),
    "computed_top_k": ("TopK", {"x": X, "k": ints(3)}, {}, 11, ("v", "i"), {}),
    "unique": ("Unique", {"x": np.array([3, 1, 3, 2, 1], np.float32)}, {}, 11, ("v", "i", "r", "c"), {}),
    "unique_unsorted": ("Unique", {"x": np.array([3, 1, 3, 2, 1], np.float32)}, {}, 11, ("v", "i", "r", "c"), {"sorted": 0}),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("opened", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("name", CASES)
def test_one_result(name: str, opened: bool) -> None:
    op, inputs, weights, opset, attrs = CASES[name]
    compare(op, inputs, weights, opset, opened, **attrs)


@pytest.mark.parametrize("opened", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_results(name: str, opened: bool) -> None:
    op, inputs, weights, opset, outputs, attrs = SEVERAL[name]
    compare(op, inputs, weights, opset, opened, outputs, **attrs)


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("order", [0, 1])
def test_max_pool_with_places(ceil: int, order: int) -> None:
    attrs = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": ceil, "storage_order": order}
    compare("MaxPool", {"x": X}, {}, 12, False, ("y", "i"), **attrs)


def test_slices_keep_known_extents() -> None:
    data = model(
        [node("Slice", ["x", "s", "e", "a"])],
        {"x": ("n", 4, 6), "e": (1,)},
        weights={"s": ints(1), "a": ints(1)},
        dtypes={"e": "int64"},
    )
    body = import_onnx(data).module["main"].body
    assert tuple(body.checked_type.shape) == (ANY, ANY, 6)
