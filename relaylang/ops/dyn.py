"""Operators whose shapes come from other tensors when the program runs: the extents are `?`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import ANY, TensorType, TupleType, Type
from relaylang.ops.algorithm import TopkAttrs
from relaylang.ops.create import InitOpAttrs, OneHotAttrs, given_dtype
from relaylang.ops.image import Resize2DAttrs
from relaylang.ops.indexing import StridedSliceAttrs
from relaylang.ops.record import Ints, NestedInts, Op, OpPattern, Relation, RelationContext, String, attrs_class, tensor
from relaylang.ops.shapes import change_layout, need_pixels, need_rank, need_scalar, norm_axis, same_dim
from relaylang.ops.traits import Trait
from relaylang.ops.transform import SqueezeAttrs

E, B, I = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
OPAQUE = OpPattern.OPAQUE


@attrs_class("relay.attrs.ReshapeAttrs")
class DynReshapeAttrs:
    newshape: Ints | None
    allowzero: bool = False


@attrs_class("relay.attrs.TileAttrs")
class DynTileAttrs:
    reps: Ints | None


@attrs_class("relay.attrs.PadAttrs")
class DynPadAttrs:
    pad_width: NestedInts | None
    pad_mode: String = "constant"


@attrs_class("relay.attrs.UpSamplingAttrs")
class DynUpSamplingAttrs:
    scale_h: float | None
    scale_w: float | None
    layout: String = "NCHW"
    method: String = "nearest_neighbor"
    align_corners: bool = False


@attrs_class("relay.attrs.UpSampling3DAttrs")
class DynUpSampling3DAttrs:
    scale_d: float | None
    scale_h: float | None
    scale_w: float | None
    layout: str = "NCDHW"
    method: str = "nearest_neighbor"
    coordinate_transformation_mode: str = "half_pixel"


@attrs_class("relay.attrs.DynExpandDimsAttrs", in_metadata=True)
class DynExpandDimsAttrs:
    num_newaxis: int = 1


def length_of(types: Sequence[Type], arg: int, ctx: RelationContext) -> int:
    """The number of entries of a vector that gives a shape. An unknown number is an error."""
    ty = tensor(types, arg, ctx)
    if not ty.shape or not isinstance(ty.shape[0], int):
        ctx.fail(f"must be a vector of a known length, not `{ty!r}`", arg)
    length = ty.shape[0]
    assert isinstance(length, int)
    return length


def open_shape(rank: int, dtype: str) -> TensorType:
    return TensorType((ANY,) * rank, dtype)


def shaped_by(arg: int) -> Relation:
    """The data's element type in a shape that argument `arg` gives."""

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of any shape, and the shape, a vector of whole numbers of known length. The result has the data's
        element type and `?` for each of these numbers.
        """
        return open_shape(length_of(types, arg, ctx), tensor(types, 0, ctx).dtype)

    return rel


def tile(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, reps a vector of known length. The result has the data's element type. Its rank is the
    larger of the data's and the length of reps; each extent is `?`.
    """
    data = tensor(types, 0, ctx)
    return open_shape(max(len(data.shape), length_of(types, 1, ctx)), data.dtype)


def init(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes shape a vector of known length; the result has the attribute dtype and `?` for each of its numbers."""
    return open_shape(length_of(types, 0, ctx), given_dtype(attrs, ctx))


def full(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes fill_value a scalar, shape a vector of known length. The result has an extent `?` for each number of shape.
    Its element type is the attribute dtype, or else that of fill_value.
    """
    need_scalar(types, 0, None, ctx)
    return open_shape(length_of(types, 1, ctx), attrs.dtype or tensor(types, 0, ctx).dtype)


def topk(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, k a number. The result is values, indices, or a tuple of both where ret_type is "both".
    Both have the data's shape with `?` along axis. Values have the data's element type, indices the attribute dtype.
    """
    data, k = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if k.shape not in ((), (1,)):
        ctx.fail(f"must be a scalar or a vector of one number, not `{k!r}`", 1)
    shape = list(data.shape)
    shape[norm_axis(attrs.axis, len(shape), ctx)] = ANY
    values = TensorType(shape, data.dtype)
    if attrs.ret_type == "values":
        return values
    indices = TensorType(shape, given_dtype(attrs, ctx))
    if attrs.ret_type == "indices":
        return indices
    if attrs.ret_type != "both":
        ctx.fail(f'ret_type={attrs.ret_type!r} must be "both", "values" or "indices"')
    return TupleType((values, indices))


def one_hot(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes indices of any shape, on_value, off_value and depth numbers. The result has the shape of indices with `?`
    inserted at axis (-1: last), and the attribute dtype.
    """
    indices = tensor(types, 0, ctx)
    if attrs.axis < -1:
        ctx.fail(f"axis={attrs.axis} must be -1 or the number of a dimension")
    at = norm_axis(attrs.axis, len(indices.shape) + 1, ctx)
    return TensorType((*indices.shape[:at], ANY, *indices.shape[at:]), given_dtype(attrs, ctx))


def strided_slice(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; begin, end and strides are vectors of one known length. The result has the data's type
    with `?` for as many extents.
    """
    data = tensor(types, 0, ctx)
    count = length_of(types, 1, ctx)
    if count > len(data.shape):
        ctx.fail(f"names {count} dimensions of a tensor that has {len(data.shape)}", 1)
    return TensorType((*(ANY,) * count, *data.shape[count:]), data.dtype)


def expand_dims(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, axis a scalar. The result has the data's element type, num_newaxis more dimensions than
    the data, and `?` for each extent.
    """
    data = tensor(types, 0, ctx)
    need_scalar(types, 1, None, ctx)
    if attrs.num_newaxis < 0:
        ctx.fail(f"num_newaxis={attrs.num_newaxis} must not be negative")
    return open_shape(len(data.shape) + attrs.num_newaxis, data.dtype)


def squeeze(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, axes a vector of known length. The result has the data's element type and `?` for each
    extent that is left.
    """
    data = tensor(types, 0, ctx)
    need_rank(tensor(types, 1, ctx), 1, 1, ctx)
    count = length_of(types, 1, ctx)
    if count > len(data.shape):
        ctx.fail(f"takes {count} dimensions away from a tensor that has {len(data.shape)}", 1)
    return open_shape(len(data.shape) - count, data.dtype)


def pad(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of at least one dimension, pad_width (rank, 2), pad_value a scalar. The result has the data's element
    type and `?` for each extent.
    """
    data = tensor(types, 0, ctx)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    widths = tensor(types, 1, ctx)
    need_rank(widths, 2, 1, ctx)
    if not same_dim(widths.shape[0], len(data.shape)):
        ctx.fail(f"must have a row for each of {len(data.shape)} dimensions, not {widths.shape[0]}", 1)
    return open_shape(len(data.shape), data.dtype)


def spatial(reference: str) -> Relation:
    """The spatial axes of a reference layout (`NCHW`) are not known."""

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of a batch, channels and spatial axes in the attribute layout, the scales or the size as
        arguments. The result has `?` for the spatial extents, and out_dtype or else the data's element type.
        """
        data = tensor(types, 0, ctx)
        for arg in range(1, len(types)):
            if "size" not in attrs.schema and reference == "NCHW":  # as TVM, which lets the other one's scales be
                need_scalar(types, arg, None, ctx)
        shape = change_layout(data.shape, attrs.layout, reference, ctx)
        shape[2:] = [ANY] * (len(reference) - 2)
        need_pixels(data.shape, attrs.layout, reference, ctx)
        dtype = getattr(attrs, "out_dtype", None) or data.dtype
        return TensorType(change_layout(shape, reference, attrs.layout, ctx), dtype)

    return rel


def sparse_to_dense(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes sparse_indices (), (n,) or (n, rank) of whole numbers, sparse_values () or (n,), default_value a scalar.
    The output_shape is a vector of known length. The result has the values' element type and `?` for each extent.
    """
    check_sparse(types, ctx)
    check_coordinates(types, length_of(types, 3, ctx), ctx)
    return open_shape(length_of(types, 3, ctx), tensor(types, 1, ctx).dtype)


def check_sparse(types: Sequence[Type], ctx: RelationContext) -> None:
    """Indices of whole numbers, values of one dimension at most, a scalar default."""
    indices, values = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if not indices.dtype.startswith("int"):
        ctx.fail(f"must be a tensor of signed whole numbers, not of {indices.dtype}", 0)
    if len(indices.shape) > 3:
        ctx.fail(f"must have at most 3 dimensions, not `{indices!r}`", 0)
    if len(values.shape) > 2:
        ctx.fail(f"must have at most 2 dimensions, not `{values!r}`", 1)
    need_scalar(types, 2, None, ctx)


def check_coordinates(types: Sequence[Type], rank: int, ctx: RelationContext) -> None:
    """Sparse indices have a column for each of `rank` dimensions, and a row for each value."""
    indices, values = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if len(indices.shape) > 2 or len(values.shape) > 1:
        arg = 0 if len(indices.shape) > 2 else 1
        ctx.fail(f"must have at most {2 - arg} dimension{'s' * (not arg)}, not `{types[arg]!r}`", arg)
    columns = indices.shape[1] if len(indices.shape) == 2 else 1
    if not same_dim(columns, rank):
        ctx.fail(f"has {columns} numbers for each place in a tensor of {rank} dimensions", 0)
    rows = indices.shape[0] if indices.shape else 1
    if values.shape and not same_dim(values.shape[0], rows):
        ctx.fail(f"must have a value for each of {rows} places, not `{values!r}`", 1)


OPS = (
    Op(
        "dyn.reshape",
        ("data", "newshape"),
        DynReshapeAttrs,
        shaped_by(1),
        I,
        3,
        doc="As `reshape`, with arguments in place of attributes.",
        takes="tensor integer[_]",
        traits={Trait.DYNAMIC, Trait.RESHAPE},
        of="reshape",
        python=None,
    ),
    Op(
        "dyn.broadcast_to",
        ("data", "shape"),
        InitOpAttrs,
        shaped_by(1),
        B,
        4,
        doc="As `broadcast_to`, with arguments in place of attributes.",
        takes="tensor integer[_]",
        traits={Trait.DYNAMIC},
        of="broadcast_to",
        python=None,
    ),
    Op(
        "dyn.tile",
        ("data", "reps"),
        DynTileAttrs,
        tile,
        I,
        3,
        doc="As `tile`, with arguments in place of attributes.",
        takes="tensor number[_]",
        traits={Trait.DYNAMIC},
        of="tile",
        python=None,
    ),
    Op(
        "dyn.zeros",
        ("shape",),
        InitOpAttrs,
        init,
        E,
        3,
        doc="As `zeros`, with arguments in place of attributes.",
        takes="integer[_]",
        traits={Trait.DYNAMIC, Trait.FILL},
        of="zeros",
        python=None,
    ),
    Op(
        "dyn.ones",
        ("shape",),
        InitOpAttrs,
        init,
        E,
        3,
        doc="As `ones`, with arguments in place of attributes.",
        takes="integer[_]",
        traits={Trait.DYNAMIC, Trait.FILL},
        of="ones",
        python=None,
    ),
    Op(
        "dyn.full",
        ("fill_value", "shape"),
        InitOpAttrs,
        full,
        E,
        3,
        doc="As `full`, with arguments in place of attributes.",
        takes="tensor[] integer[_]",
        traits={Trait.DYNAMIC, Trait.FILL},
        of="full",
        python=None,
    ),
    Op(
        "dyn.topk",
        ("data", "k"),
        TopkAttrs,
        topk,
        OPAQUE,
        6,
        doc="As `topk`, with arguments in place of attributes.",
        takes="tensor number",
        traits={Trait.DYNAMIC},
        of="topk",
        python=None,
    ),
    Op(
        "dyn.one_hot",
        ("indices", "on_value", "off_value", "depth"),
        OneHotAttrs,
        one_hot,
        OpPattern.OUT_ELEMWISE_FUSABLE,
        10,
        needs=(0,),
        doc="As `one_hot`, with arguments in place of attributes.",
        takes="integer tensor[] tensor[] integer",
        traits={Trait.DYNAMIC},
        of="one_hot",
        python=None,
    ),
    Op(
        "dyn.strided_slice",
        ("data", "begin", "end", "strides"),
        StridedSliceAttrs,
        strided_slice,
        I,
        4,
        needs=(0, 1),
        doc="As `strided_slice`, with arguments in place of attributes.",
        takes="tensor integer[n] integer[n] integer[n]",
        traits={Trait.DYNAMIC},
        of="strided_slice",
        python=None,
        example="fn (%x: Tensor[(4, 6), float32], %begin: Tensor[(2), int64], %end: Tensor[(2), int64], "
        "%strides: Tensor[(2), int64]) { dyn.strided_slice(%x, %begin, %end, %strides, begin=None, end=None, "
        "strides=None, axes=None) }",
    ),
    Op(
        "dyn.expand_dims",
        ("data", "axis"),
        DynExpandDimsAttrs,
        expand_dims,
        I,
        3,
        doc="As `expand_dims`, with arguments in place of attributes.",
        takes="tensor integer[]",
        traits={Trait.DYNAMIC},
        of="expand_dims",
        python=None,
    ),
    Op(
        "dyn.squeeze",
        ("data", "axes"),
        SqueezeAttrs,
        squeeze,
        I,
        3,
        doc="As `squeeze`, with arguments in place of attributes.",
        takes="tensor integer[_]",
        traits={Trait.DYNAMIC, Trait.RESHAPE},
        of="squeeze",
        python=None,
    ),
    Op(
        "dyn.nn.pad",
        ("data", "pad_width", "pad_val"),
        DynPadAttrs,
        pad,
        I,
        2,
        doc="As `nn.pad`, with arguments in place of attributes.",
        takes="tensor integer[_,2] tensor[]",
        traits={Trait.DYNAMIC},
        of="nn.pad",
        python=None,
        example="fn (%x: Tensor[(2, 3), float32], %width: Tensor[(2, 2), int64]) { dyn.nn.pad(%x, %width, 0f, pad_width=[]) }",
    ),
    Op(
        "dyn.nn.upsampling",
        ("data", "scale_h", "scale_w"),
        DynUpSamplingAttrs,
        spatial("NCHW"),
        I,
        2,
        doc="As `nn.upsampling`, with arguments in place of attributes.",
        takes="tensor number[] number[]",
        traits={Trait.DYNAMIC},
        of="nn.upsampling",
        python=None,
    ),
    Op(
        "dyn.nn.upsampling3d",
        ("data", "scale_d", "scale_h", "scale_w"),
        DynUpSampling3DAttrs,
        spatial("NCDHW"),
        I,
        2,
        needs=(0,),
        doc="As `nn.upsampling3d`, with arguments in place of attributes.",
        takes="tensor number[] number[] number[]",
        traits={Trait.DYNAMIC},
        of="nn.upsampling3d",
        python=None,
    ),
    Op(
        "dyn.image.resize2d",
        ("data", "size", "roi"),
        Resize2DAttrs,
        spatial("NCHW"),
        I,
        5,
        needs=(0,),
        doc="As `image.resize2d`, with arguments in place of attributes.",
        takes="tensor[_,_,_,_] integer[2] float[4]",
        traits={Trait.DYNAMIC},
        of="image.resize2d",
        python=None,
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %size: Tensor[(2), int64], %roi: Tensor[(4), float32]) { "
        "dyn.image.resize2d(%x, %size, %roi) }",
    ),
    Op(
        "dyn.sparse_to_dense",
        ("sparse_indices", "sparse_values", "default_value", "output_shape"),
        None,
        sparse_to_dense,
        OPAQUE,
        3,
        doc="As `sparse_to_dense`, with arguments in place of attributes.",
        takes="integer tensor tensor[] integer[_]",
        traits={Trait.DYNAMIC},
        of="sparse_to_dense",
        python=None,
        example="fn (%indices: Tensor[(2, 1), int64], %shape: Tensor[(1), int64], %values: Tensor[(2), float32], "
        "%other: float32) { dyn.sparse_to_dense(%indices, %values, %other, %shape) }",
    ),
)
