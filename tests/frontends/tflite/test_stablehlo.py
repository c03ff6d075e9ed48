"""StableHLO's operators in TFLite files: against the runtime where it has them, else against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.tflite import import_tflite
from relaylang.interpreter.evaluate import Evaluator
from tests.frontends.tflite.files import Graph, Op, T, const, file
from tests.frontends.tflite.runtime import compare, same

pytest.importorskip("tflite")
flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
rng = np.random.default_rng(3)
i32, i64 = np.int32, np.int64


def real(*shape: int) -> np.ndarray:
    """Real numbers around 0."""
    return rng.normal(size=shape).astype("float32")


def layer(name: str, given: list[Any], out: T, kind: str = "", consts: tuple[Any, ...] = (), *graphs: Graph, **options: Any) -> Any:
    """A file of one layer, and its operands."""
    tensors = {f"x{i}": T(np.shape(v), np.asarray(v).dtype.name) for i, v in enumerate(given)}
    tensors |= {f"c{i}": const(v) for i, v in enumerate(consts)}
    names = list(tensors)
    op = Op(f"STABLEHLO_{name}", names, ["y"], f"Stablehlo{kind}Options" if kind else "", options)
    return file({**tensors, "y": out}, [op], names[: len(given)], ["y"], *graphs), given


def joining(name: str, kind: str = "") -> Graph:
    """A graph of one layer of two scalars."""
    return {"a": T(), "b": T(), "r": T()}, [Op(name, ["a", "b"], ["r"], kind)], ["a", "b"], ["r"]


x, y, bits = real(2, 3), real(2, 3), np.array([[True, False], [True, True]])
numbers = i32([[7, -7, 5], [9, -2, 1]])
ADD = joining("STABLEHLO_ADD")
RUN = {
    **{n.lower(): layer(n, [x, y], T((2, 3))) for n in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM")},
    "and": layer("AND", [bits, ~bits], T((2, 2), "bool")),
    "shift_left": layer("SHIFT_LEFT", [numbers, i32([[1, 2, 3]] * 2)], T((2, 3), "int32"), "ShiftLeft"),
    "pad": layer(
        "PAD",
        [real(3, 4)],
        T((6, 5)),
        "Pad",
        (np.float32(2),),
        EdgePaddingLow=i64([1, -1]),
        EdgePaddingHigh=i64([0, 2]),
        InteriorPadding=i64([1, 0]),
    ),
    "reduce_window": layer(
        "REDUCE_WINDOW",
        [real(5, 6)],
        T((3, 5)),
        "ReduceWindow",
        (np.float32(0),),
        ADD,
        BodySubgraphIndex=1,
        WindowDimensions=i64([2, 3]),
        WindowStrides=i64([2, 1]),
        BaseDilations=i64([1, 1]),
        WindowDilations=i64([1, 1]),
        Padding=i64([1, 0, 0, 1]),
    ),
    "gather": layer(
        "GATHER",
        [real(5, 4, 3), i32([[0, 1], [4, 3], [9, 0]])],
        T((2, 3, 3)),
        "Gather",
        OffsetDims=i64([0, 2]),
        CollapsedSliceDims=i64([0]),
        StartIndexMap=i64([0, 1]),
        IndexVectorDim=1,
        SliceSizes=i64([1, 2, 3]),
    ),
    "scatter": layer(
        "SCATTER",
        [real(5, 4), i32([[0, 1], [3, 0], [0, 1]]), real(3, 2)],
        T((5, 4)),
        "Scatter",
        (),
        ADD,
        UpdateWindowDims=i64([1]),
        InsertedWindowDims=i64([0]),
        ScatterDimsToOperandDims=i64([0, 1]),
        IndexVectorDim=1,
        UpdateComputationSubgraphIndex=1,
    ),
}


@pytest.mark.parametrize("name", RUN)
def test_operators_that_the_runtime_has(name: str) -> None:
    data, inputs = RUN[name]
    pytest.importorskip("ai_edge_litert")
    compare(data, inputs)


def numpy_case(wanted: Any, *args: Any, **options: Any) -> Any:
    """A layer and its value."""
    return (*layer(*args, **options), np.asarray(wanted))


def unary(name: str, f: Callable[[Any], Any], v: np.ndarray) -> Any:
    return numpy_case(f(v), name, [v], T(v.shape, v.dtype.name))


three, four = real(2, 3, 4), real(4, 2, 5)
image, kernel = real(1, 4, 5, 2), real(3, 3, 2, 4)
ends = {"StartIndices": i64([0, 1]), "LimitIndices": i64([2, 3]), "Strides": i64([1, 2])}
NUMPY = {
    "abs": unary("ABS", np.abs, x),
    "cbrt": unary("CBRT", np.cbrt, x),
    "cosine": unary("COSINE", np.cos, x),
    "exponential": unary("EXPONENTIAL", np.exp, x),
    "floor": unary("FLOOR", np.floor, x),
    "log": unary("LOG", np.log, np.abs(x)),
    "logistic": unary("LOGISTIC", lambda v: 1 / (1 + np.exp(-v)), x),
    "negate": unary("NEGATE", np.negative, x),
    "rsqrt": unary("RSQRT", lambda v: 1 / np.sqrt(v), np.abs(x)),
    "tanh": unary("TANH", np.tanh, x),
    "divide": numpy_case(x / y, "DIVIDE", [x, y], T((2, 3))),
    "divide_int": numpy_case(np.trunc(numbers / 2).astype(i32), "DIVIDE", [numbers, i32([[2] * 3] * 2)], T((2, 3), "int32")),
    "remainder": numpy_case(np.fmod(x, y), "REMAINDER", [x, y], T((2, 3))),
    "subtract": numpy_case(x - y, "SUBTRACT", [x, y], T((2, 3))),
    "power": numpy_case(np.abs(x) ** y, "POWER", [np.abs(x), y], T((2, 3))),
    "or": numpy_case(bits | ~bits, "OR", [bits, ~bits], T((2, 2), "bool")),
    "or_int": numpy_case(numbers | 6, "OR", [numbers, np.full((2, 3), 6, i32)], T((2, 3), "int32")),
    "select": numpy_case(np.where(x > 0, x, y), "SELECT", [x > 0, x, y], T((2, 3))),
    "clamp": numpy_case(np.clip(x, -0.3, 0.4), "CLAMP", [np.float32(-0.3), x, np.float32(0.4)], T((2, 3))),
    "compare": numpy_case(x >= y, "COMPARE", [x, y], T((2, 3), "bool"), "Compare", ComparisonDirection=2),
    "convert": numpy_case(x.astype(i32), "CONVERT", [x], T((2, 3), "int32")),
    "reshape": numpy_case(x.reshape(3, 2), "RESHAPE", [x], T((3, 2))),
    "broadcast": numpy_case(
        np.broadcast_to(x.T[:, None], (3, 4, 2)),
        "BROADCAST_IN_DIM",
        [x],
        T((3, 4, 2)),
        "BroadcastInDim",
        BroadcastDimensions=i64([2, 0]),
    ),
    "concatenate": numpy_case(np.concatenate([x, y], 1), "CONCATENATE", [x, y], T((2, 6)), "Concatenate", Dimension=1),
    "slice": numpy_case(x[0:2, 1:3:2], "SLICE", [x], T((2, 1)), "Slice", **ends),
    "transpose": numpy_case(three.transpose(2, 0, 1), "TRANSPOSE", [three], T((4, 2, 3)), "Transpose", Permutation=i64([2, 0, 1])),
    "iota": numpy_case(np.arange(6, dtype=i32).reshape(2, 3) % 3, "IOTA", [], T((2, 3), "int32"), "Iota", IotaDimension=1),
    "dynamic_slice": numpy_case(
        three[1:2, 2:3, 1:4], "DYNAMIC_SLICE", [three, i32(1), i32(9), i32(1)], T((1, 1, 3)), "DynamicSlice", SliceSizes=i64([1, 1, 3])
    ),
    "dynamic_update_slice": numpy_case(
        np.concatenate([three[:, :1], np.ones((2, 1, 4), "float32"), three[:, 2:]], 1),
        "DYNAMIC_UPDATE_SLICE",
        [three, np.ones((2, 1, 4), "float32"), i32(-3), i32(1), i32(0)],
        T((2, 3, 4)),
    ),
    "dot_general": numpy_case(
        np.einsum("bij,jbk->bik", three, four),
        "DOT_GENERAL",
        [three, four],
        T((2, 3, 5)),
        "DotGeneral",
        LhsBatchingDimensions=i64([0]),
        RhsBatchingDimensions=i64([1]),
        LhsContractingDimensions=i64([2]),
        RhsContractingDimensions=i64([0]),
    ),
    "reduce": numpy_case(
        three.sum((0, 2)) + 1, "REDUCE", [three], T((3,)), "Reduce", (np.float32(1),), ADD, Dimensions=i64([0, 2]), BodySubgraphIndex=1
    ),
    "sort": numpy_case(
        -np.sort(-x, 1),
        "SORT",
        [x],
        T((2, 3)),
        "Sort",
        (),
        (
            {"a": T(), "b": T(), "r": T((), "bool")},
            [Op("STABLEHLO_COMPARE", ["a", "b"], ["r"], "StablehloCompareOptions", {"ComparisonDirection": 3})],
            ["a", "b"],
            ["r"],
        ),
        Dimension=1,
        ComparatorSubgraphIndex=1,
    ),
    "convolution": numpy_case(
        sum(np.einsum("nhwc,co->nhwo", image[:, i : i + 2, j : j + 3], kernel[i, j]) for i in range(3) for j in range(3)),
        "CONVOLUTION",
        [image, kernel],
        T((1, 2, 3, 4)),
        "Convolution",
        WindowStrides=i64([1, 1]),
        Padding=i64([0] * 4),
        LhsDilation=i64([1, 1]),
        RhsDilation=i64([1, 1]),
        WindowReversal=np.array([False, False]),
        InputBatchDimension=0,
        InputFeatureDimension=3,
        InputSpatialDimensions=i64([1, 2]),
        KernelInputFeatureDimension=2,
        KernelOutputFeatureDimension=3,
        KernelSpatialDimensions=i64([0, 1]),
        OutputBatchDimension=0,
        OutputFeatureDimension=3,
        OutputSpatialDimensions=i64([1, 2]),
        FeatureGroupCount=1,
        BatchGroupCount=1,
    ),
}


@pytest.mark.parametrize("name", NUMPY)
def test_operators_that_the_runtime_lacks(name: str) -> None:
    data, inputs, wanted = NUMPY[name]
    mod = import_tflite(data).module
    assert relay.infer(mod, fresh=True) == []
    found = np.asarray(Evaluator(mod).call("main", tuple(inputs)))
    same(found, wanted.astype("float32") if wanted.dtype == np.float64 else wanted)


def test_a_composite_is_its_decomposition() -> None:
    tensors = {"x": T((3,)), "y": T((3,))}
    attributes = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    options = {"Name": "own.abs", "DecompositionSubgraphIndex": 1, "CompositeAttributes": attributes}
    op = Op("STABLEHLO_COMPOSITE", ["x"], ["y"], "StableHLOCompositeOptions", options)
    inner: Graph = ({"a": T((3,)), "r": T((3,))}, [Op("ABS", ["a"], ["r"])], ["a"], ["r"])
    compare(file(tensors, [op], ["x"], ["y"], inner), [real(3)])


def test_a_window_outside_the_data_changes_nothing() -> None:
    data, (operand, _, updates) = RUN["scatter"]
    rows = i32([[0, 3], [4, 2], [-1, 0]])
    wanted = operand.copy()
    wanted[4, 2:4] += updates[1]
    same(np.asarray(Evaluator(import_tflite(data).module).call("main", (operand, rows, updates))), wanted)
