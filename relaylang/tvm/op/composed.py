"""TVM's functions that make several operator calls, or that take other arguments than the operators.

A function in place of an operator has the signature of the record; the caller fills in the record's defaults. The other
functions have their own signatures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, Expr, Tuple, const
from relaylang.ops import OPS
from relaylang.ops.build import op_call
from relaylang.passes.devices.virtual_device import VirtualDevice
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.tvm.op.build import TupleWrapper, function, operand

make = cache(function)


def _axes(axis: Any) -> Any:
    return [axis] if isinstance(axis, int) else axis


def _variance(data: Any, mean: Any, axis: Any, keepdims: bool, exclude: bool, unbiased: bool) -> Call:
    values = {"axis": axis, "keepdims": keepdims, "exclude": exclude, "unbiased": unbiased}
    return op_call("variance", [operand(data), operand(mean)], **values)


def variance(data: Any, axis: Any, keepdims: bool, exclude: bool, unbiased: bool, with_mean: Any) -> Any:
    mean = make("mean")(data, _axes(axis), True, exclude) if with_mean is None else with_mean
    return _variance(data, mean, _axes(axis), keepdims, exclude, unbiased)


def std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Any:
    """The standard deviation along axes."""
    return make("sqrt")(variance(data, axis, keepdims, exclude, unbiased, None))


def mean_variance(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> TupleWrapper:
    """The mean and the variance along axes."""
    axes = _axes(axis)
    kept = make("mean")(data, axes, True, exclude)
    both = kept if keepdims else make("squeeze")(kept, axis=axes), _variance(data, kept, axes, keepdims, exclude, unbiased)
    return TupleWrapper(Tuple(both), len(both))


def mean_std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> TupleWrapper:
    """The mean and the standard deviation along axes."""
    kept = make("mean")(data, _axes(axis), True, exclude)
    both = kept if keepdims else make("squeeze")(kept), make("sqrt")(_variance(data, kept, _axes(axis), keepdims, exclude, False))
    return TupleWrapper(Tuple(both), len(both))


def logsumexp(data: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(data))) along axes. The largest number is subtracted first, so that nothing overflows."""
    top = make("max")(data, _axes(axis), True)
    total = make("sum")(make("exp")(make("subtract")(data, top)), _axes(axis), True)
    logarithm = make("add")(make("log")(total), top)
    return logarithm if keepdims else make("squeeze")(logarithm, _axes(axis))


def arange(start: Any, stop: Any, step: Any, dtype: str) -> Call:
    step = const(1, dtype) if step is None else step
    if stop is None:
        start, stop = const(0, dtype), start
    bounds = [operand(x, dtype) for x in (start, stop, step)]
    return op_call("arange", bounds, **dict(zip(("start", "stop", "step"), bounds)), dtype=dtype)


def _numbers(value: Any) -> Any:
    return value.data.tolist() if isinstance(value, Constant) else value


def strided_slice(data: Any, begin: Any, end: Any, strides: Any, axes: Any, slice_mode: str) -> Call:
    begin, end, strides = _numbers(begin), _numbers(end), _numbers([1] if strides is None else strides)
    if not any(isinstance(x, Expr) for x in (begin, end, strides)):
        values = {"begin": begin, "end": end, "strides": strides, "slice_mode": slice_mode, "axes": axes}
        return op_call("strided_slice", [operand(data)], **values)
    if axes is not None:
        raise ValueError("strided_slice: axes cannot be given where begin, end or strides are expressions")
    first, last, step = operand(begin), operand(end), operand(strides)
    # A negative index counts from the end; one behind the end is the end.
    extents = make("slice_like")(make("cast_like")(make("shape_of")(data), first), first)
    zero = make("cast_like")(const(0), first)
    first = make("where")(make("less")(first, zero), make("add")(first, extents), first)
    first = make("where")(make("greater_equal")(first, extents), extents, first)
    return op_call("dyn.strided_slice", [operand(data), first, last, step], slice_mode=slice_mode)


def strided_set(data: Any, v: Any, begin: Any, end: Any, strides: Any) -> Call:
    places = [operand(x) for x in (begin, end, [1] if strides is None else strides)]
    return op_call("strided_set", [operand(data), operand(v), *places])


def matrix_set_diag(data: Any, diagonal: Any, k: Any, align: str) -> Call:
    low, high = (k[0], k[1] if len(k) > 1 else k[0]) if isinstance(k, (list, tuple)) else (k, k)
    right = {"super_diag_right_align": align.startswith("RIGHT"), "sub_diag_right_align": align.endswith("RIGHT")}
    return op_call("matrix_set_diag", [operand(data), operand(diagonal)], k1=low, k2=high, **right)


def stft(data: Any, n_fft: int, hop_length: Any, win_length: Any, window: Any, normalized: bool, onesided: bool) -> Call:
    values = {
        "n_fft": n_fft,
        "hop_length": n_fft // 4 if hop_length is None else hop_length,
        "win_length": n_fft if win_length is None else win_length,
        "normalized": normalized,
        "onesided": onesided,
    }
    window = make("ones")([n_fft], "int32") if window is None else operand(window)
    return op_call("stft", [operand(data), window], **values)


def sparse_fill_empty_rows(sparse_indices: Any, sparse_values: Any, dense_shape: Any, default_value: Any) -> Tuple:
    """The result has the element types of the arguments."""
    places, values, empty = make("sparse_fill_empty_rows")(sparse_indices, sparse_values, dense_shape, default_value)
    like = make("cast_like")
    return Tuple((like(places, sparse_indices), like(values, sparse_values), make("cast")(empty, "bool")))


def cumulative(name: str) -> Callable[..., Any]:
    def build(data: Any, axis: Any, dtype: Any, exclusive: Any) -> Any:
        return make(name)(data, axis, dtype, bool(exclusive))

    return build


def dropout(data: Any, rate: float) -> Any:
    return make("nn.dropout")(data, rate)[0]


def dropout_raw(data: Any, rate: float = 0.5) -> Any:
    """The call of `nn.dropout` with both of its results."""
    return make("nn.dropout")(data, rate).astuple()


def global_pool(kind: str, count: int) -> Callable[..., Any]:
    def build(data: Any, layout: str = "NC" + "DHW"[3 - count :], out_layout: str = "") -> Any:
        """A pool over all of the space: an adaptive pool to one place."""
        return make(f"nn.adaptive_{kind}_pool{count}d")(data, [1] * count, layout, out_layout)

    return build


def matmul(tensor_a: Any, tensor_b: Any, units: Any, out_dtype: str, transpose_a: bool, transpose_b: bool) -> Any:
    """A product with a transposed second factor only is `dense`."""
    if transpose_b and not transpose_a:
        return make("nn.dense")(tensor_a, tensor_b, units, out_dtype)
    return make("nn.matmul")(tensor_a, tensor_b, units, out_dtype, transpose_a, transpose_b)


def _parts(matrix: Any) -> list[Expr]:
    """The three arrays of a sparse matrix, scipy's or a tuple of them."""
    parts = (matrix.data, matrix.indices, matrix.indptr) if hasattr(matrix, "indptr") else tuple(matrix)
    return [operand(p) for p in parts[:3]]


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None) -> Any:
    """The sums of the rows of data that have the same number in `segment_ids`, a vector of whole numbers.

    Row i of the result is the sum for number i. It has `num_segments` rows, a number or an expression; by default as many
    as the largest number needs. Rows of data behind those that have a number do not count.
    """
    data, ids = operand(data), operand(segment_ids)
    one = make("cast_like")(const([1]), ids)
    if num_segments is None or (isinstance(num_segments, int) and not num_segments):
        rows = make("add")(make("reshape")(make("max")(ids, [0]), [-1]), one)
    else:
        rows = make("cast_like")(const([num_segments]) if isinstance(num_segments, int) else num_segments, ids)
    rest = make("strided_slice")(make("shape_of")(data, "int32"), [1], [-1], slice_mode="size")
    rest = make("cast_like")(rest, rows)
    copies = make("concatenate")([make("reverse")(rest, 0), one], 0)
    places = make("transpose")(make("tile")(ids, copies))
    start = make("cast_like")(make("zeros")(make("concatenate")([rows, rest], 0), "float64"), data)
    return make("scatter_elements")(start, places, make("slice_like")(data, places, [0]), 0, "add")


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool) -> Call:
    return op_call("nn.sparse_dense", [operand(dense_mat), *_parts(sparse_mat)], sparse_lhs=sparse_lhs)


def sparse_add(dense_mat: Any, sparse_mat: Any) -> Call:
    return op_call("nn.sparse_add", [operand(dense_mat), *_parts(sparse_mat)])


def sparse_transpose(x: Any) -> TupleWrapper:
    return TupleWrapper(op_call("nn.sparse_transpose", _parts(x)), 3)


def distribution(name: str) -> Callable[..., Any]:
    """Random numbers with two parameters, which may be plain numbers."""

    def build(key: Any, shape: Any, dtype: str, **two: Any) -> Any:
        return make(name)(key, shape, dtype, *(operand(v, dtype) for v in two.values()))

    return build


def threefry_key(seed: int) -> Constant:
    """A key for random numbers, from a number of up to 256 bits."""
    words = np.frombuffer(seed.to_bytes(32, sys.byteorder), np.uint64)
    return const(np.concatenate([words, np.asarray([0, 0, 0, 0, 1 << 63, 0], np.uint64)]))


def on_device(body: Any, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Call:
    """Marks the body with the device that computes it. Where nothing is constrained, that is any."""
    place = placed(device) if constrain_result or constrain_body else VirtualDevice()
    values = {"virtual_device": place, "constrain_result": constrain_result, "constrain_body": constrain_body}
    return op_call("on_device", [operand(body)], **values)


def device_copy(data: Any, src_device: Any, dst_device: Any) -> Call:
    values = {"src_virtual_device": placed(src_device), "dst_virtual_device": placed(dst_device)}
    return op_call("device_copy", [operand(data)], **values)


def placed(device: Any) -> MetaNode:
    """A device as an attribute has it. Raises `ValueError` for one that is not known."""
    try:
        return device if isinstance(device, MetaNode) else VirtualDevice(device)
    except RelayError as wrong:
        raise ValueError(wrong.diagnostics[0].title) from None


CODES = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
DTYPES = {code: dtype for dtype, code in CODES.items()}


def simulated(name: str, dtype: str) -> Callable[..., Any]:
    """Quantization whose element type is a value: its name, or an expression of its number."""

    def build(data: Any, axis: int, **arguments: Any) -> Call:
        code = arguments.pop(dtype)
        if isinstance(code, str):
            if code not in CODES:
                raise ValueError(f"{name}: {dtype}={code!r} is none of {', '.join(CODES)}")
            code = const(CODES[code], "int32")
        scale, zero = (make("reshape")(v, [-1]) for v in arguments.values())
        own = {"out_dtype": ""} if "out_dtype" in OPS[name].schema else {}
        return op_call(name, [operand(data), operand(code), scale, zero], axis=axis, **own)

    return build


def resize(count: int) -> Callable[..., Any]:
    """Without a region: the whole image."""

    def build(data: Any, size: Any, roi: Any, **arguments: Any) -> Any:
        return make(f"image.resize{count}d")(data, size, [0.0] * 2 * count if roi is None else roi, **arguments)

    return build


COMPOSED: dict[str, Callable[..., Any]] = {
    "variance": variance,
    "std": std,
    "mean_variance": mean_variance,
    "mean_std": mean_std,
    "logsumexp": logsumexp,
    "arange": arange,
    "strided_slice": strided_slice,
    "strided_set": strided_set,
    "matrix_set_diag": matrix_set_diag,
    "stft": stft,
    "segment_sum": segment_sum,
    "sparse_fill_empty_rows": sparse_fill_empty_rows,
    "cumsum": cumulative("cumsum"),
    "cumprod": cumulative("cumprod"),
    "nn.dropout": dropout,
    "nn.dropout_raw": dropout_raw,
    **{f"nn.global_{kind}_pool{n}d": global_pool(kind, n) for kind in ("max", "avg") for n in (1, 3)},
    "nn.matmul": matmul,
    "nn.sparse_dense": sparse_dense,
    "nn.sparse_add": sparse_add,
    "nn.sparse_transpose": sparse_transpose,
    "random.uniform": distribution("random.uniform"),
    "random.normal": distribution("random.normal"),
    "random.threefry_key": threefry_key,
    "annotation.on_device": on_device,
    "device_copy": device_copy,
    "qnn.op.simulated_quantize": simulated("qnn.simulated_quantize", "out_dtype"),
    "qnn.op.simulated_dequantize": simulated("qnn.simulated_dequantize", "in_dtype"),
    **{f"image.resize{n}d": resize(n) for n in (1, 2, 3)},
}
