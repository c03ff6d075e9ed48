"""TFLite's operators on segments, tables, windows, spectra and bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.tflite import import_tflite
from relaylang.frontends.tflite.table import REFUSED, table
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare

schema = pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
rng = np.random.default_rng(12)
i32 = np.int32


def real(*shape: int) -> np.ndarray:
    """Real numbers around 0."""
    return rng.normal(size=shape).astype("float32")


def layer(name: str, kind: str, given: list[Any], consts: list[Any], outs: list[T], order: str = "", **options: Any) -> Any:
    """A file of one layer and its operands. `order` puts constants (c) among given operands (x)."""
    xs, cs = [f"x{i}" for i in range(len(given))], [f"c{i}" for i in range(len(consts))]
    tensors = {x: T(np.shape(v), np.asarray(v).dtype.name) for x, v in zip(xs, given)}
    tensors |= {c: const(v) for c, v in zip(cs, consts)} | {f"y{i}": t for i, t in enumerate(outs)}
    left = {"x": iter(xs), "c": iter(cs)}
    names = [next(left[k]) for k in order] if order else xs + cs
    results = [f"y{i}" for i in range(len(outs))]
    return file(tensors, [Op(name, names, results, kind, options)], xs, results), given


segments = i32([2, 0, -1, 2, 1, 0])
three = {"StrideD": 1, "StrideH": 2, "StrideW": 1, "DilationDFactor": 1, "DilationHFactor": 1, "DilationWFactor": 1}
CASES = {
    **{
        f"segments_{k}": layer(
            f"UNSORTED_SEGMENT_{k}", f"UnsortedSegment{k.title()}Options", [real(6, 3), segments], [i32(4)], [T((4, 3))]
        )
        for k in ("SUM", "MAX", "MIN", "PROD")
    },
    "segments_int": layer(
        "UNSORTED_SEGMENT_MAX", "UnsortedSegmentMaxOptions", [i32([5, -7, 2, 1, 0, 9]), segments], [i32(4)], [T((4,), "int32")]
    ),
    "sparse_rows": layer(
        "SPARSE_TO_DENSE", "SparseToDenseOptions", [real(2)], [i32([[0, 1], [2, 3]]), i32([3, 4]), np.float32(7)], [T((3, 4))], "ccxc"
    ),
    "sparse_vector": layer(
        "SPARSE_TO_DENSE", "SparseToDenseOptions", [i32([1, 3])], [i32([5]), np.float32(2), np.float32(7)], [T((5,))]
    ),
    "unique": layer("UNIQUE", "UniqueOptions", [i32([4, 1, 4, 4, -2, 1])], [], [T((3,), "int32"), T((6,), "int32")], IdxOutType=2),
    "bucketize": layer(
        "BUCKETIZE",
        "BucketizeOptions",
        [np.float32([[-9, 0, 1], [1.5, 2, 7]])],
        [],
        [T((2, 3), "int32")],
        Boundaries=np.float32([0, 1, 2, 5]),
    ),
    "hashtable_lookup": layer("HASHTABLE_LOOKUP", "", [i32([7, 1, 5])], [i32([1, 3, 7]), real(3, 2)], [T((3, 2)), T((3,), "uint8")]),
    **{
        f"embedding_sparse_{c}": layer(
            "EMBEDDING_LOOKUP_SPARSE",
            "EmbeddingLookupSparseOptions",
            [i32([1, 3, 0])],
            [i32([[0, 0], [2, 0], [2, 1]]), i32([3, 2]), np.float32([1, 2, 4]), real(4, 3, 2)],
            [T((3, 3, 2))],
            Combiner=c,
        )
        for c in (0, 1, 2)
    },
    "bitcast": layer("BITCAST", "", [real(4)], [], [T((4,), "int32")]),
    "fake_quant": layer("FAKE_QUANT", "FakeQuantOptions", [3 * real(40)], [], [T((40,))], Min=-2.0, Max=3.1, NumBits=5),
    "fake_quant_above": layer("FAKE_QUANT", "FakeQuantOptions", [3 * real(40)], [], [T((40,))], Min=0.5, Max=3.1, NumBits=8),
    "broadcast_args": layer("BROADCAST_ARGS", "", [i32([3, 1]), i32([2, 1, 4])], [], [T((3,), "int32")]),
    "dilate": layer("DILATE", "DilateOptions", [real(2, 3)], [i32([2, 3]), np.float32(9)], [T((3, 7))]),
    **{
        f"reduce_window_{k}": layer(
            "REDUCE_WINDOW",
            "ReduceWindowOptions",
            [real(5, 6)],
            [np.float32(0.5), *(np.int64(v) for v in ([2, 3], [2, 1], [1, 2]))],
            [T((2, 2))],
            ReduceFunction=k,
        )
        for k in (1, 2, 3, 4)
    },
    "conv_3d": layer(
        "CONV_3D",
        "Conv3DOptions",
        [real(1, 4, 5, 6, 2)],
        [real(2, 3, 3, 2, 4), real(4)],
        [T((1, 4, 3, 6, 4))],
        Padding=0,
        FusedActivationFunction=1,
        **three,
    ),
    **{
        f"conv_3d_transpose_{p}": layer(
            "CONV_3D_TRANSPOSE",
            "Conv3DOptions",
            [real(1, 3, 3, 4, 2)],
            [i32([1, *s, 4]), real(2, 3, 3, 4, 2), real(4)],
            [T((1, *s, 4))],
            "ccxc",
            Padding=p,
            **three,
        )
        for p, s in ((0, (3, 6, 4)), (1, (4, 7, 6)))
    },
    "slice_computed": layer("SLICE", "SliceOptions", [real(4, 5), i32([1, 2])], [i32([2, -1])], [T((2, 3))]),
    "slice_computed_size": layer("SLICE", "SliceOptions", [real(4, 5), i32([-1, 2])], [i32([1, 0])], [T((3, 2))], "xcx"),
    "strided_slice_computed": layer(
        "STRIDED_SLICE",
        "StridedSliceOptions",
        [real(4, 5, 3), i32([-1, 3, 0]), i32([0, 0, 2])],
        [i32([1, -2, 1])],
        [T((2, 2))],
        EndMask=2,
        BeginMask=0,
        EllipsisMask=0,
        NewAxisMask=0,
        ShrinkAxisMask=1,
    ),
    "strided_slice_offset": layer(
        "STRIDED_SLICE",
        "StridedSliceOptions",
        [real(4, 5), i32([1, 2])],
        [i32([2, 3]), i32([1, 1])],
        [T((2, 3))],
        EndMask=0,
        BeginMask=0,
        EllipsisMask=0,
        NewAxisMask=0,
        ShrinkAxisMask=0,
        Offset=True,
    ),
    "tile_computed": layer("TILE", "TileOptions", [real(2, 3), i32([2, 3])], [], [T((4, 9))]),
    "to_a_scalar": layer("RESHAPE", "ReshapeOptions", [real(1)], [np.zeros(0, i32)], [T(())]),
    "right_shift": layer("RIGHT_SHIFT", "RightShiftOptions", [i32([-9, 8, 100])], [i32([1, 2, 3])], [T((3,), "int32")]),
    "relu_0_to_1": layer("RELU_0_TO_1", "", [real(9)], [], [T((9,))]),
    "matrix_diag": layer("MATRIX_DIAG", "MatrixDiagOptions", [real(2, 3)], [], [T((2, 3, 3))]),
    "matrix_set_diag": layer("MATRIX_SET_DIAG", "MatrixSetDiagOptions", [real(2, 3, 4), real(2, 3)], [], [T((2, 3, 4))]),
    "reverse_sequence": layer(
        "REVERSE_SEQUENCE", "ReverseSequenceOptions", [real(3, 4, 2), i32([2, 4, 1])], [], [T((3, 4, 2))], SeqDim=1, BatchDim=0
    ),
    "dynamic_update_slice": layer(
        "DYNAMIC_UPDATE_SLICE", "DynamicUpdateSliceOptions", [real(4, 5), real(2, 2)], [i32([3, 1])], [T((4, 5))]
    ),
    "scatter_nd": layer("SCATTER_ND", "ScatterNdOptions", [real(3, 2)], [i32([[1], [3], [1]]), i32([5, 2])], [T((5, 2))], "cxc"),
    "where": layer("WHERE", "", [np.array([[True, False], [True, True]])], [], [T((3, 2), "int64")]),
    "segment_sum": layer("SEGMENT_SUM", "SegmentSumOptions", [real(4, 2)], [i32([0, 1, 1, 2])], [T((3, 2))]),
    "atan2": layer("ATAN2", "", [real(20), real(20)], [], [T((20,))]),
    "sign": layer("SIGN", "SignOptions", [np.float32([-2, 0, 3])], [], [T((3,))]),
    "floor_mod": layer("FLOOR_MOD", "FloorModOptions", [3 * real(20), real(20)], [], [T((20,))]),
    "floor_div": layer("FLOOR_DIV", "FloorDivOptions", [i32([-7, 7, 5]), i32([2, -2, 3])], [], [T((3,), "int32")]),
    "unpack": layer("UNPACK", "UnpackOptions", [real(3, 2)], [], [T((2,)), T((2,)), T((2,))], Num=3, Axis=0),
    "pack": layer("PACK", "PackOptions", [real(3), real(3)], [], [T((3, 2))], ValuesCount=2, Axis=1),
    "split_v": layer("SPLIT_V", "SplitVOptions", [real(5, 2)], [i32([2, -1]), i32(0)], [T((2, 2)), T((3, 2))], NumSplits=2),
    "split": layer("SPLIT", "SplitOptions", [real(4, 2)], [i32(0)], [T((2, 2)), T((2, 2))], "cx", NumSplits=2),
    "one_hot": layer("ONE_HOT", "OneHotOptions", [i32([1, 0, 3])], [i32(4), np.float32(2), np.float32(-1)], [T((3, 4))], Axis=-1),
    "topk": layer("TOPK_V2", "TopKV2Options", [real(2, 6)], [i32(3)], [T((2, 3)), T((2, 3), "int32")]),
    "select_v2": layer("SELECT_V2", "SelectV2Options", [np.array([[True], [False]]), real(2, 3), real(3)], [], [T((2, 3))]),
    "embedding_lookup": layer("EMBEDDING_LOOKUP", "", [i32([2, 0])], [real(4, 3)], [T((2, 3))]),
    "fill": layer("FILL", "FillOptions", [np.float32(3)], [i32([2, 3])], [T((2, 3))], "cx"),
    "add_n": layer("ADD_N", "AddNOptions", [real(3), real(3), real(3)], [], [T((3,))]),
    "l2_pool": layer(
        "L2_POOL_2D",
        "Pool2DOptions",
        [real(1, 4, 4, 2)],
        [],
        [T((1, 2, 2, 2))],
        StrideH=2,
        StrideW=2,
        FilterHeight=2,
        FilterWidth=2,
        Padding=1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(name: str) -> None:
    data, inputs = CASES[name]
    compare(data, inputs)


@pytest.mark.parametrize("size", [(8, 8), (4, 16)])
@pytest.mark.parametrize("part", ["REAL", "IMAG", "COMPLEX_ABS"])
def test_fourier_transforms(part: str, size: tuple[int, int]) -> None:
    bins = (2, size[0], size[1] // 2 + 1)
    tensors = {"x": T((2, 6, 9)), "n": const(i32(size)), "z": T(bins, "complex64"), "y": T(bins)}
    kind = {"REAL": "", "IMAG": "", "COMPLEX_ABS": ""}[part]
    ops = [Op("RFFT2D", ["x", "n"], ["z"], "Rfft2dOptions"), Op(part, ["z"], ["y"], kind)]
    compare(file(tensors, ops, ["x"], ["y"]), [real(2, 6, 9)], close=3e-5)


def test_complex_numbers_are_moved() -> None:
    tensors = {"x": T((2, 6, 9)), "n": const(i32([8, 8])), "z": T((2, 8, 5), "complex64")}
    tensors |= {"s": const(i32([16, 5])), "w": T((16, 5), "complex64"), "y": T((16, 5))}
    ops = [
        Op("RFFT2D", ["x", "n"], ["z"], "Rfft2dOptions"),
        Op("RESHAPE", ["z", "s"], ["w"], "ReshapeOptions"),
        Op("COMPLEX_ABS", ["w"], ["y"]),
    ]
    compare(file(tensors, ops, ["x"], ["y"]), [real(2, 6, 9)], close=3e-5)


def test_every_operator_of_the_schema_is_converted_or_refused() -> None:
    builtin = {n for n, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
    missing = builtin - set(table().names()) - set(REFUSED) - {"CUSTOM", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
    assert not missing and not set(REFUSED) & set(table().names())


def test_random_numbers_are_refused() -> None:
    tensors = {"n": T((1,), "int32"), "y": T((3,))}
    with pytest.raises(RelayError, match="random numbers differ from call to call"):
        import_tflite(file(tensors, [Op("RANDOM_UNIFORM", ["n"], ["y"], "RandomOptions")], ["n"], ["y"]))
