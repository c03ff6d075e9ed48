"""Scattering, scanning, and sparse tensors as dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import ANY, Dim, TensorType, TupleType, Type
from relaylang.ops.create import InitOpAttrs
from relaylang.ops.dyn import check_coordinates, check_sparse, length_of
from relaylang.ops.indexing import index_depth
from relaylang.ops.record import Bool, Integer, Ints, Op, OpPattern, RelationContext, String, attrs_class, tensor
from relaylang.ops.shapes import (
    add_dim,
    broadcast_shapes,
    div_dim,
    is_int_dtype,
    mul_dim,
    need_entries,
    need_int,
    need_rank,
    need_scalar,
    norm_axis,
    product,
    same_dim,
)
from relaylang.ops.traits import Trait
from relaylang.ops.transform import must_broadcast_to

E, I, OPAQUE = OpPattern.ELEMWISE, OpPattern.INJECTIVE, OpPattern.OPAQUE


@attrs_class("relay.attrs.ScatterElementsAttrs", in_metadata=True)
class ScatterElementsAttrs:
    axis: Integer = 0
    reduction: String = "update"


@attrs_class("relay.attrs.ScatterNDAttrs", in_metadata=True)
class ScatterNDAttrs:
    mode: String = "update"


@attrs_class("relay.attrs.ScanopAttrs", in_metadata=True)
class ScanopAttrs:
    axis: Integer | None = None
    dtype: str | None = None
    exclusive: Bool = False


@attrs_class("relay.attrs.UniqueAttrs", in_metadata=True)
class UniqueAttrs:
    sorted: bool = True
    return_counts: bool = False


@attrs_class("relay.attrs.TriluAttrs", in_metadata=True)
class TriluAttrs:
    upper: bool = True


@attrs_class("relay.attrs.DFTAttrs", in_metadata=True)
class DFTAttrs:
    inverse: Bool = False


@attrs_class("relay.attrs.StftAttrs", in_metadata=True)
class StftAttrs:
    n_fft: int = -1
    hop_length: int = -1
    win_length: int = -1
    normalized: bool = False
    onesided: bool = True


@attrs_class("relay.attrs.DilateAttrs", in_metadata=True)
class DilateAttrs:
    strides: Ints = (1, 1)
    dilation_value: float = 0.0


@attrs_class("relay.attrs.InitOpAttrs", in_metadata=True)
class CollapseSumToAttrs(InitOpAttrs):
    pass


@attrs_class("relay.attrs.SparseToDenseAttrs")
class SparseToDenseAttrs:
    output_shape: Ints


@attrs_class("relay.attrs.EinsumAttrs")
class EinsumAttrs:
    equation: String


def scatter_elements(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data, indices of whole numbers, and updates of the shape of indices; the result has the data's type."""
    data, indices, updates = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    need_int(indices, 1, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    need_rank(indices, len(data.shape), 1, ctx)
    need_rank(updates, len(data.shape), 2, ctx)
    for i, (size, many, new) in enumerate(zip(data.shape, indices.shape, updates.shape)):
        if not same_dim(many, new):
            ctx.fail(f"has the extent {new} along axis {i}, but the indices `{indices!r}` have {many}", 2)
        if i != axis and isinstance(size, int) and isinstance(many, int) and many > size:
            ctx.fail(f"has the extent {many} along axis {i}, but the data `{data!r}` has {size}", 1)
    return data


def scatter_nd(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (d...), indices (m, i...) of whole numbers, updates (i..., data behind the first m axes). The result
    has the data's type.
    """
    data, indices, updates = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    need_int(indices, 1, ctx)
    depth = index_depth(indices, len(data.shape), ctx)
    expected = (*indices.shape[1:], *data.shape[depth:])
    need_rank(updates, len(expected), 2, ctx)
    for axis, (want, have) in enumerate(zip(expected, updates.shape)):
        if not same_dim(want, have):
            ctx.fail(f"has the extent {have} along axis {axis}, but data and indices make it {want}", 2)
    return data


def strided_set(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, v the new entries of the slice. The arguments begin, end and strides are vectors of
    whole numbers. The result has the data's type.
    """
    return types[0]


def unravel_index(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes indices (n,) or a scalar and shape (k,), of whole numbers. The result is (k, n), or (k,), of the indices'
    element type.
    """
    indices, shape = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_int(indices, 0, ctx)
    need_int(shape, 1, ctx)
    if not shape.shape:
        ctx.fail("must be a vector", 1)
    if len(indices.shape) > 1:
        ctx.fail(f"must be a scalar or a vector, not `{indices!r}`", 0)
    return TensorType((shape.shape[0], *indices.shape[:1]), indices.dtype)


def adv_index(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a tuple of data (d...) and m index tensors that broadcast to (i...). The result is (i..., data behind the
    first m axes) of the data's element type.
    """
    ty = types[0]
    fields = ty.fields if isinstance(ty, TupleType) else ()
    if len(fields) < 2 or not all(isinstance(f, TensorType) for f in fields):
        ctx.fail(f"must be a tuple of the data and at least one tensor of indices, not `{ty!r}`", 0)
    data, *indices = [f for f in fields if isinstance(f, TensorType)]
    for i, index in enumerate(indices, 1):
        if not is_int_dtype(index.dtype):
            ctx.fail(f"field {i} must be a tensor of whole numbers, not of {index.dtype}", 0)
    if len(indices) > len(data.shape):
        ctx.fail(f"has {len(indices)} indices for a tensor of {len(data.shape)} dimensions", 0)
    shape: tuple[Dim, ...] = indices[0].shape
    for index in indices[1:]:
        shape = broadcast_shapes(shape, index.shape, ctx, 0)
    shape = (*shape, *data.shape[len(indices) :])
    need_entries(data.shape[: len(indices)], shape, data, 0, ctx)
    return TensorType(shape, data.dtype)


def scan(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result has its shape, or is a vector of all elements where axis is not given. Its
    element type is the attribute dtype, or else the data's.
    """
    data = tensor(types, 0, ctx)
    dtype = attrs.dtype or data.dtype
    if attrs.axis is not None:
        norm_axis(attrs.axis, len(data.shape), ctx)
        return TensorType(data.shape, dtype)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    return TensorType((product(data.shape),), dtype)


def unique(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n,). The result is a tuple: unique (n,), indices (n,), inverse_indices (n,), num_unique (1,), and
    where return_counts, counts (n,). The first has the data's element type, the others int32.
    """
    data = tensor(types, 0, ctx)
    need_rank(data, 1, 0, ctx)
    places = TensorType(data.shape, "int32")
    fields = [data, places, places, TensorType((1,), "int32")]
    return TupleType([*fields, places] if attrs.return_counts else fields)


def trilu(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (..., rows, columns), k a scalar; the result has the data's type."""
    need_scalar(types, 1, None, ctx)
    data = tensor(types, 0, ctx)
    if len(data.shape) < 2:
        ctx.fail(f"must have at least 2 dimensions, not `{data!r}`", 0)
    return data


def dft(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes re_data and im_data of one shape, of at least one dimension; the result is a tuple of their types."""
    if not tensor(types, 0, ctx).shape:
        ctx.fail("must have at least one dimension", 0)
    return TupleType((tensor(types, 0, ctx), tensor(types, 1, ctx)))


def stft(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n,) or (batch, n), window (win_length,). The result is (batch, bins, frames, 2) of the data's element
    type. There are (n - n_fft) // hop_length + 1 frames, and n_fft bins, n_fft // 2 + 1 where onesided.
    """
    data = tensor(types, 0, ctx)
    if len(data.shape) not in (1, 2):
        ctx.fail(f"must have 1 or 2 dimensions, not `{data!r}`", 0)
    if attrs.n_fft < 1 or attrs.hop_length < 1:
        ctx.fail(f"n_fft={attrs.n_fft} and hop_length={attrs.hop_length} must be positive")
    length = data.shape[-1]
    frames = add_dim(div_dim(add_dim(length, -attrs.n_fft), attrs.hop_length), 1)
    bins = attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft
    return TensorType((*data.shape[:-1], bins, frames, 2), data.dtype)


def dilate(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, a stride for each extent. The result has its element type and (extent - 1) * stride + 1
    along each axis.
    """
    data = tensor(types, 0, ctx)
    if len(attrs.strides) != len(data.shape):
        ctx.fail(f"strides={list(attrs.strides)} must have a number for each dimension of `{data!r}`")
    if any(s < 1 for s in attrs.strides):
        ctx.fail(f"strides={list(attrs.strides)} must be positive")
    shape = [0 if d == 0 else add_dim(mul_dim(add_dim(d, -1), s), 1) for d, s in zip(data.shape, attrs.strides)]
    return TensorType(shape, data.dtype)


def collapse_sum_to(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, shape a vector of whole numbers. The result has the attribute shape, or `?` for each of
    its entries, and the data's element type. That shape broadcasts to the data's.
    """
    data = tensor(types, 0, ctx)
    rank = length_of(types, 1, ctx)
    shape: tuple[Dim, ...] = attrs.shape if attrs.shape is not None else (ANY,) * rank
    must_broadcast_to(shape, data.shape, ctx)
    return TensorType(shape, data.dtype)


def sparse_to_dense(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes sparse_indices (), (n,) or (n, rank) of whole numbers, sparse_values () or (n,), default_value a scalar.
    The result has output_shape and the values' element type.
    """
    check_sparse(types, ctx)
    indices, rank = tensor(types, 0, ctx), len(attrs.output_shape)
    wanted = indices.shape[1] if len(indices.shape) == 2 else 1
    if isinstance(wanted, int) and wanted != rank:
        ctx.fail(f"output_shape={list(attrs.output_shape)} must have {wanted} numbers, as an index has", 0)
    check_coordinates(types, len(attrs.output_shape), ctx)
    return TensorType(attrs.output_shape, tensor(types, 1, ctx).dtype)


def sparse_fill_empty_rows(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes sparse_indices (n, rank), sparse_values (n,), dense_shape (rank,), default_value a scalar. The result is a
    tuple of int64 tensors: indices (?, rank), values (?,), empty rows (?,).
    """
    indices = tensor(types, 0, ctx)
    need_rank(indices, 2, 0, ctx)
    vector = TensorType((ANY,), "int64")
    return TupleType((TensorType((ANY, indices.shape[1]), "int64"), vector, vector))


def sparse_reshape(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes sparse_indices (n, old rank), prev_shape (old rank,), new_shape (new rank,), of whole numbers. The result
    is a tuple (indices (n, new rank), shape (new rank,)).
    """
    indices, old, new = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    for arg, (ty, rank) in enumerate(((indices, 2), (old, 1), (new, 1))):
        need_rank(ty, rank, arg, ctx)
        if not ty.dtype.startswith("int"):
            ctx.fail(f"must be a tensor of signed whole numbers, not of {ty.dtype}", arg)
    return TupleType((TensorType((indices.shape[0], new.shape[0]), indices.dtype), new))


def _letters(terms: Sequence[str], parts: Sequence[TensorType], ctx: RelationContext) -> tuple[dict[str, Dim], tuple[Dim, ...]]:
    """The extents that the letters of an equation stand for, and those of the axes behind `...`."""
    extents: dict[str, Dim] = {}
    shared: tuple[Dim, ...] = ()
    for i, (term, part) in enumerate(zip(terms, parts)):
        before, dots, after = term.partition("...")
        spare = len(part.shape) - len(before) - len(after)
        if spare < 0 or (not dots and spare):
            ctx.fail(f"field {i} is `{part!r}`, but the equation names it `{term}`", 0)
        if dots:
            shared = broadcast_shapes(shared, part.shape[len(before) : len(before) + spare], ctx, 0)
        named = (*part.shape[: len(before)], *part.shape[len(part.shape) - len(after) :])
        for letter, dim in zip(before + after, named):
            have = extents.get(letter, 1)
            if have == 1 or have is ANY:
                extents[letter] = dim if dim != 1 or letter not in extents else have
            elif not same_dim(have, dim) and dim != 1:
                ctx.fail(f"the letter `{letter}` stands for {have} and for {dim} entries", 0)
    return extents, shared


def einsum(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a tuple of tensors of one element type, a term of letters for each: `ij,jk->ik`. The result has the extents
    of the letters behind `->`. By default these are the letters that occur once, in alphabetical order.

    `...` stands for the axes that a term does not name, which broadcast.
    """
    equation = attrs.equation.replace(" ", "")
    parts = tensors_of_any_rank(types, ctx)
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(parts):
        ctx.fail(f"must be a tuple of {len(terms)} tensors, as the equation says, not `{types[0]!r}`", 0)
    extents, shared = _letters(terms, parts, ctx)
    letters = inputs.replace("...", "")
    if not arrow:
        output = ("..." if "..." in inputs else "") + "".join(sorted(c for c in extents if letters.count(c) == 1))
    before, dots, after = output.partition("...")
    if any(c not in extents for c in before + after):
        ctx.fail(f"equation={equation!r} makes an axis that no input has")
    middle = shared if dots else ()
    return TensorType([*[extents[c] for c in before], *middle, *[extents[c] for c in after]], parts[0].dtype)


def tensors_of_any_rank(types: Sequence[Type], ctx: RelationContext) -> list[TensorType]:
    fields = types[0].fields if isinstance(types[0], TupleType) else ()
    tensors = [f for f in fields if isinstance(f, TensorType)]
    if not tensors or len(tensors) != len(fields) or any(f.dtype != tensors[0].dtype for f in tensors):
        ctx.fail(f"must be a tuple of tensors of one element type, not `{types[0]!r}`", 0)
    return tensors


UPDATES = ("data", "indices", "updates")

OPS = (
    Op(
        "scatter_elements",
        UPDATES,
        ScatterElementsAttrs,
        scatter_elements,
        OPAQUE,
        3,
        doc="The data with elements replaced or updated along an axis.",
        takes="tensor integer same",
    ),
    Op(
        "scatter_nd",
        UPDATES,
        ScatterNDAttrs,
        scatter_nd,
        OPAQUE,
        3,
        doc="The data with elements or slices replaced or updated by indices into the first axes.",
        takes="tensor integer same",
        example="fn (%x: Tensor[(4), float32], %indices: Tensor[(1, 2), int32], %updates: Tensor[(2), float32]) { "
        'scatter_nd(%x, %indices, %updates, mode="add") }',
    ),
    Op(
        "strided_set",
        ("data", "v", "begin", "end", "strides"),
        None,
        strided_set,
        I,
        4,
        needs=(),
        doc="The data with a slice replaced.",
        takes="tensor same integer[_] integer[_] integer[_]",
        python="(..., strides=None)",
    ),
    Op(
        "unravel_index",
        ("data", "shape"),
        None,
        unravel_index,
        I,
        3,
        doc="Flat indices as an index for each axis of a shape.",
        takes="integer integer[_]",
        python="(indices, shape)",
    ),
    Op(
        "adv_index",
        ("inputs",),
        None,
        adv_index,
        I,
        3,
        doc="Elements picked by a tensor of indices for each of the first axes, as numpy does.",
        takes="any",
        traits={Trait.PARTS_BROADCAST, Trait.OF_TUPLE},
    ),
    Op(
        "cumsum",
        ("data",),
        ScanopAttrs,
        scan,
        OPAQUE,
        3,
        doc="The sums of the elements up to each one.",
        python="(..., exclusive=None)",
    ),
    Op(
        "cumprod",
        ("data",),
        ScanopAttrs,
        scan,
        OPAQUE,
        3,
        doc="The products of the elements up to each one.",
        python="(..., exclusive=None)",
    ),
    Op(
        "unique",
        ("data",),
        UniqueAttrs,
        unique,
        OPAQUE,
        3,
        doc="The elements that differ, with where they stand.",
        results=lambda args, attrs: 5 if attrs.return_counts else 4,
        python="(data, is_sorted: sorted = True, return_counts=False)",
    ),
    Op(
        "trilu",
        ("data", "k"),
        TriluAttrs,
        trilu,
        E,
        3,
        doc="The upper or lower triangle of matrices, zero elsewhere.",
        takes="tensor integer[]",
    ),
    Op(
        "dft",
        ("re_data", "im_data"),
        DFTAttrs,
        dft,
        OPAQUE,
        3,
        doc="The discrete Fourier transform along the last axis.",
        takes="float same[=]",
        results=2,
    ),
    Op(
        "stft",
        ("data", "window"),
        StftAttrs,
        stft,
        OPAQUE,
        3,
        needs=(0,),
        doc="Fourier transforms of overlapping windows.",
        takes="float number[_]",
        python="(data, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=True)",
        example="fn (%x: Tensor[(1, 16), float32], %window: Tensor[(8), float32]) { "
        "stft(%x, %window, n_fft=8, hop_length=4, win_length=8, normalized=False, onesided=True) }",
    ),
    Op(
        "nn.dilate",
        ("x",),
        DilateAttrs,
        dilate,
        I,
        10,
        doc="Elements moved apart, with a value between them.",
        python="(data, strides, dilation_value=0.0)",
    ),
    Op(
        "collapse_sum_to",
        ("data", "shape"),
        CollapseSumToAttrs,
        collapse_sum_to,
        OpPattern.COMM_REDUCE,
        4,
        doc="The sums along broadcast axes, to a shape.",
        takes="tensor integer[_]",
        python="(data, shape)",
        traits={Trait.PARTS_BROADCAST},
    ),
    Op(
        "sparse_to_dense",
        ("sparse_indices", "sparse_values", "default_value"),
        SparseToDenseAttrs,
        sparse_to_dense,
        OPAQUE,
        3,
        doc="A dense tensor from a sparse one.",
        takes="integer tensor tensor[]",
        python="(sparse_indices, output_shape, sparse_values, default_value=0)",
    ),
    Op(
        "sparse_fill_empty_rows",
        ("sparse_indices", "sparse_values", "dense_shape", "default_value"),
        None,
        sparse_fill_empty_rows,
        OPAQUE,
        3,
        needs=(0,),
        doc="A sparse matrix with a value in each row that has none.",
        takes="integer[n,r] tensor[n] integer[r] tensor",
        results=3,
        example="fn (%indices: Tensor[(2, 2), int64], %values: Tensor[(2), float32], %shape: Tensor[(2), int64]) { "
        "sparse_fill_empty_rows(%indices, %values, %shape, 0f) }",
    ),
    Op(
        "sparse_reshape",
        ("sparse_indices", "prev_shape", "new_shape"),
        None,
        sparse_reshape,
        I,
        3,
        doc="A sparse tensor's indices in another shape.",
        takes="integer[_,r] integer[r] integer[_]",
        results=2,
        example="fn (%indices: Tensor[(5, 3), int64], %shape: Tensor[(3), int64], %new: Tensor[(2), int64]) { "
        "sparse_reshape(%indices, %shape, %new) }",
    ),
    Op(
        "einsum",
        ("data",),
        EinsumAttrs,
        einsum,
        I,
        11,
        doc="Products of tensors summed by letters, as numpy does.",
        takes="any",
        traits={Trait.OF_TUPLE},
        example='fn (%x: Tensor[(2, 3), float32], %y: Tensor[(3, 4), float32]) { einsum((%x, %y), equation="ij,jk->ik") }',
    ),
)
