"""Writing to places, running sums, and operators on coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics.faults import fault_text
from relaylang.interpreter.kernels.common import Kernel, KernelError, convert, is_float, norm_axis, np_dtype, wide
from relaylang.interpreter.kernels.indexing import check_range
from relaylang.interpreter.kernels.transform import collapse_sum


def _halve(out: np.ndarray, places: tuple[Any, ...], updates: Any) -> None:
    """Each place becomes the mean of itself and its update, one update after the other."""
    lead = len(places)
    flat = np.ravel_multi_index(np.broadcast_arrays(*places), out.shape[:lead]).ravel()
    rows = out.reshape(int(np.prod(out.shape[:lead])), -1)
    values = np.broadcast_to(updates, (*np.broadcast_shapes(*(np.shape(p) for p in places)), *out.shape[lead:]))
    values = values.reshape(len(flat), -1)
    order = np.argsort(flat, kind="stable")
    turn = np.arange(len(flat)) - np.searchsorted(flat[order], flat[order])  # the how-manieth of its place each is
    for t in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == t]
        if out.dtype.kind == "b":
            rows[flat[now]] &= values[now]
            continue
        both = rows[flat[now]] + values[now]
        rows[flat[now]] = both / both.dtype.type(2) if is_float(out.dtype) else np.trunc(both / 2)


def _scatter(x: Any, places: tuple[Any, ...], updates: Any, how: str) -> Any:
    out = np.array(x)
    if how == "update":
        out[places] = updates
    elif how == "mean":
        _halve(out, places, updates)
    else:
        add = np.add if out.dtype.kind != "b" else np.bitwise_xor
        {"add": add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[how].at(out, places, updates)
    return out


def scatter_elements(attrs: Any, x: Any, indices: Any, updates: Any) -> Any:
    axis = norm_axis(attrs.axis, x.ndim)
    at = np.where(indices < 0, indices + x.shape[axis], indices)
    check_range(at, x.shape[axis])
    places = list(np.broadcast_arrays(*np.ogrid[tuple(slice(n) for n in indices.shape)]))
    places[axis] = at
    return _scatter(x, tuple(places), updates, attrs.reduction)


def scatter_nd(attrs: Any, x: Any, indices: Any, updates: Any) -> Any:
    for row, extent in zip(indices, x.shape):
        check_range(row, extent)
    return _scatter(x, tuple(indices), updates, attrs.mode)


def strided_set(attrs: Any, x: Any, v: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Where begin, end or strides are shorter than the rank, the other axes are taken whole."""
    rows = [[None if n >= len(row) else int(row[n]) for row in (begin, end, strides)] for n in range(x.ndim)]
    if any(step == 0 for *_, step in rows):
        raise KernelError(fault_text("stride"))
    place = tuple(slice(*row) for row in rows)
    out = np.array(x)
    shape = out[place].shape
    if len(shape) != np.ndim(v):
        raise KernelError(f"the slice has the shape {shape}, the new value {np.shape(v)}")
    for (begin, _, step), extent, count, wanted in zip(rows, x.shape, shape, v.shape):
        if count != wanted:
            first = begin if begin is not None else extent - 1 if step is not None and step < 0 else 0
            raise KernelError(fault_text("slice", first, extent, count, wanted))
    out[place] = v
    return out


def unravel_index(attrs: Any, x: Any, shape: Any) -> Any:
    if len(shape) and min(shape) < 0:
        raise KernelError(f"the shape {tuple(int(n) for n in shape)} has a negative extent")
    check_range(x, int(np.prod(shape)))
    if not len(shape):
        return np.zeros((0, *x.shape), x.dtype)
    return np.stack(np.unravel_index(x, tuple(int(n) for n in shape))).astype(x.dtype)


def adv_index(attrs: Any, parts: tuple[Any, ...]) -> Any:
    x, *indices = parts
    at = [np.where(i < 0, i + n, i) for i, n in zip(indices, x.shape)]
    for i, n in zip(at, x.shape):
        check_range(i, n)
    return x[tuple(at)]


def _running(f: np.ufunc, start: int) -> Kernel:
    def kernel(attrs: Any, x: Any) -> Any:
        axis, flat = (0, x.ravel()) if attrs.axis is None else (attrs.axis, x)
        dtype = np_dtype(attrs.dtype) if attrs.dtype else x.dtype
        axis = norm_axis(axis, flat.ndim)
        flat = flat.astype(dtype)
        if attrs.exclusive and flat.size:
            first = np.full_like(np.take(flat, [0], axis=axis), start)
            flat = np.concatenate([first, np.take(flat, np.arange(flat.shape[axis] - 1), axis=axis)], axis=axis)
        return (f if dtype.kind != "b" or f is not np.add else np.bitwise_xor).accumulate(flat, axis=axis, dtype=dtype)

    return kernel


def trilu(attrs: Any, x: Any, k: Any) -> Any:
    return np.triu(x, int(k)) if attrs.upper else np.tril(x, int(k))


def dilate(attrs: Any, x: Any) -> Any:
    out = np.full([(n - 1) * s + 1 if n else 0 for n, s in zip(x.shape, attrs.strides)], attrs.dilation_value).astype(x.dtype)
    out[tuple(slice(None, None, s) for s in attrs.strides)] = x
    return out


def collapse_sum_to(attrs: Any, x: Any, shape: Any) -> Any:
    target = tuple(int(n) for n in shape)
    said = attrs.shape or target
    if len(said) != len(target) or any(isinstance(d, int) and d != n for d, n in zip(said, target)):
        raise KernelError(f"the shape is {target}, but the attribute shape is {list(said)}")
    return collapse_sum(x, target)


def dense(indices: Any, values: Any, default: Any, shape: Sequence[int]) -> Any:
    """`values` at their coordinates in a tensor of `default`: `indices` has a row for each of them."""
    out = np.full(tuple(shape), convert(np.asarray(default), values.dtype), values.dtype)
    places = np.asarray(indices)
    rows = places if places.ndim == 2 else places.reshape(-1, 1)
    if not len(rows):
        return out
    for column, extent in zip(rows.T, out.shape):
        check_range(column, extent)
    out[tuple(rows.T)] = values
    return out


def sparse_to_dense(attrs: Any, indices: Any, values: Any, default: Any) -> Any:
    return dense(indices, values, default, attrs.output_shape)


def sparse_reshape(attrs: Any, indices: Any, old: Any, new: Any) -> Any:
    source, shape = [int(n) for n in old], [int(n) for n in new]
    total = math.prod(source)
    if shape.count(-1) == 1:
        known = math.prod([n for n in shape if n != -1])
        shape[shape.index(-1)] = total // known if known else 0
    if min([0, *source, *shape]) < 0 or math.prod(shape) != total:
        raise KernelError(f"{total} elements do not fit into the shape {tuple(shape)}")
    new_shape = np.asarray(shape, new.dtype)
    if not indices.size or not shape or not total:
        return np.zeros((len(indices), len(shape)), indices.dtype), new_shape
    if shape == source:
        return indices, new_shape
    # An index beyond its extent counts on in the next row, as it does in TVM.
    flat = indices.astype(np.int64) @ _steps(source)
    places = flat[:, None] // _steps(shape)
    places[:, 1:] %= np.asarray(shape[1:], np.int64)
    return places.astype(indices.dtype), new_shape


def _steps(shape: Sequence[int]) -> np.ndarray:
    """How far apart neighbours along each axis stand."""
    return np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]


def einsum(attrs: Any, parts: tuple[Any, ...]) -> Any:
    """Sums in the parts' element type, of short floats in float32."""
    dtype = parts[0].dtype
    if dtype.kind == "b":
        return np.asarray(np.einsum(attrs.equation, *[p.astype(np.int64) for p in parts]) & 1, dtype=dtype)
    return np.asarray(np.einsum(attrs.equation, *[wide(p) for p in parts]), dtype=dtype)


def dft(attrs: Any, real: Any, imaginary: Any) -> Any:
    """Along the last axis, in float64."""
    if not is_float(real.dtype):
        raise KernelError("a Fourier transform needs floating-point numbers")
    if not real.size:
        return real.copy(), imaginary.copy()
    signal = real.astype(np.float64) + 1j * imaginary.astype(np.float64)
    spectrum = (np.fft.ifft if attrs.inverse else np.fft.fft)(signal, axis=-1)
    return spectrum.real.astype(real.dtype), spectrum.imag.astype(real.dtype)


def stft(attrs: Any, x: Any, window: Any) -> Any:
    """The Fourier transforms of windows of the signal, in float64. Shape (batch, bins, frames, real and imaginary)."""
    signal = np.atleast_2d(x).astype(np.float64)
    size = attrs.win_length
    if window.shape != (size,):
        raise KernelError(f"win_length is {size}, but the window has {window.shape[0]} entries")
    bins = attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft
    frames = (signal.shape[1] - attrs.n_fft) // attrs.hop_length + 1
    places = np.arange(frames)[:, None] * attrs.hop_length + np.arange(size)
    turns = np.exp(-2j * np.pi * np.arange(bins)[:, None] * np.arange(size) / size)
    spectra = np.einsum("nfw,bw->nbf", signal[:, places] * window, turns)
    if attrs.normalized:
        spectra = spectra / np.sqrt(attrs.n_fft)
    out = np.stack([spectra.real, spectra.imag], axis=-1).astype(x.dtype)
    return out.reshape(*x.shape[:-1], *out.shape[1:])


def unique(attrs: Any, x: Any) -> Any:
    """The different values, where each stands first, which one each element is, and how many there are. The rows are
    as long as the data: behind the values come zeros, behind the places the data's length."""
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    number = len(values)
    if not attrs.sorted:
        order = np.argsort(first, kind="stable")
        values, first, counts = values[order], first[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse.reshape(-1)]

    def filled(part: Any, fill: int, dtype: Any) -> Any:
        out = np.full(x.shape, fill, dtype)
        out[:number] = part
        return out

    results = (
        filled(values, 0, x.dtype),
        filled(first, x.shape[0], np.int32),
        inverse.reshape(-1).astype(np.int32),
        np.asarray([number], np.int32),
    )
    return (*results, filled(counts, 0, np.int32)) if attrs.return_counts else results


def sparse_fill_empty_rows(attrs: Any, indices: Any, values: Any, shape: Any, default: Any) -> Any:
    """An entry of the default at the start of each row that has none; and which rows those are. All in int64."""
    if not indices.shape[1]:
        raise KernelError("a tensor of no dimensions has no rows")
    rows = int(shape[0])
    if not np.size(default):
        raise KernelError("there is no default value")
    empty = np.setdiff1d(np.arange(rows), indices[:, 0])
    added = np.zeros((len(empty), indices.shape[1]), np.int64)
    added[:, 0] = empty
    places = np.concatenate([indices.astype(np.int64), added])
    order = np.argsort(places[:, 0], kind="stable")
    filled = np.full(len(empty), np.reshape(default, -1)[0]).astype(np.int64)
    marks = np.isin(np.arange(rows), empty).astype(np.int64)
    return places[order], np.concatenate([values.astype(np.int64), filled])[order], marks


KERNELS: dict[str, Kernel] = {
    "stft": stft,
    "unique": unique,
    "sparse_fill_empty_rows": sparse_fill_empty_rows,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "strided_set": strided_set,
    "unravel_index": unravel_index,
    "adv_index": adv_index,
    "cumsum": _running(np.add, 0),
    "cumprod": _running(np.multiply, 1),
    "trilu": trilu,
    "dft": dft,
    "nn.dilate": dilate,
    "collapse_sum_to": collapse_sum_to,
    "sparse_to_dense": sparse_to_dense,
    "sparse_reshape": sparse_reshape,
    "einsum": einsum,
}
