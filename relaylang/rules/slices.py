"""Operators that work on slices: the first entries of their arguments give the first entries of the result.

A rule gets a typed call and, for each argument, whether it is sliced along its first axis. A tuple of tensors is sliced as a
whole. The rule returns whether each slice of the result comes from the same slice of these arguments. It may come from all
of the other arguments. The first axis of the result is then as long as theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from relaylang.ir import Call, TensorType, Type
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ops import Trait, having
from relaylang.ops.indexing import INT64_MAX, slice_entries
from relaylang.ops.reduce import taken_axes

Rule = Callable[[Call, Sequence[bool]], bool]


def _rank(call: Call, arg: int = 0) -> int:
    ty = tensor_type(call.args[arg])
    return 0 if ty is None else len(ty.shape)


def _only(*wanted: int) -> Callable[[Sequence[bool]], bool]:
    return lambda along: [n for n, sliced in enumerate(along) if sliced] == list(wanted)


_first = _only(0)


def _data(call: Call, along: Sequence[bool]) -> bool:
    """The first argument is sliced, and no other."""
    return _first(along)


def _aligned(call: Call, along: Sequence[bool]) -> bool:
    """Arguments that are broadcast: the sliced ones have the result's rank, and the others nothing along its first axis."""
    rank = max(_rank(call, n) for n in range(len(call.args)))
    for arg, sliced in zip(call.args, along):
        ty = tensor_type(arg)
        if ty is None or (len(ty.shape) == rank and not sliced and ty.shape[0] != 1) or (sliced and len(ty.shape) != rank):
            return False
    return any(along)


def _axis(call: Call, along: Sequence[bool]) -> bool:
    """The first argument is sliced; the operator works along another axis than its first one."""
    return _first(along) and call.attrs.axis is not None and call.attrs.axis % _rank(call) != 0


def _scaled(call: Call, along: Sequence[bool]) -> bool:
    """The same; or scales and zero points are numbers, whichever axis is named."""
    return _axis(call, along) or (_first(along) and all(_rank(call, n) == 0 for n in range(1, len(call.args))))


def _reduction(call: Call, along: Sequence[bool]) -> bool:
    axes = taken_axes(_rank(call), call.attrs.axis, call.attrs.exclude)
    return along[0] and all(along) and 0 not in axes


def _layout(call: Call, along: Sequence[bool]) -> bool:
    """Images in a row: the layout begins with N."""
    layout = getattr(call.attrs, "data_layout", None) or call.attrs.layout
    return _first(along) and layout.startswith("N")


def _layouts(call: Call, along: Sequence[bool]) -> bool:
    both = (call.attrs.src_layout, call.attrs.dst_layout)
    return _first(along) and all(layout[:2].isupper() and layout[0] == "N" for layout in both)


def _rows(call: Call, along: Sequence[bool]) -> bool:
    """Rows times a matrix."""
    return _first(along) and _rank(call) > 1 and not getattr(call.attrs, "transpose_a", False)


def _products(call: Call, along: Sequence[bool]) -> bool:
    """Products side by side; of one factor there may be one for all."""
    return not any(along[2:]) and _aligned(Call(call.op, call.args[:2]), along[:2])


def _rest(ty: Type | None) -> int | None:
    """The elements of one slice."""
    rest = static_shape(TensorType(ty.shape[1:])) if isinstance(ty, TensorType) and ty.shape else None
    return None if rest is None else prod(rest)


def _reshape(call: Call, along: Sequence[bool]) -> bool:
    """A slice keeps its number of elements, so the first axis stays."""
    result_type = call.checked_type
    rest = _rest(result_type)
    if not isinstance(result_type, TensorType) or isinstance(result_type.shape[0], int):
        return False
    return _first(along) and rest is not None and rest > 0 and rest == _rest(call.args[0].checked_type)


def _squeeze(call: Call, along: Sequence[bool]) -> bool:
    return call.attrs.axis is not None and _reshape(call, along)


def _transpose(call: Call, along: Sequence[bool]) -> bool:
    return _first(along) and bool(call.attrs.axes) and call.attrs.axes[0] % _rank(call) == 0


def _strided_slice(call: Call, along: Sequence[bool]) -> bool:
    first_axis = [entry[1:] for entry in slice_entries(call.attrs, _rank(call)) if entry[0] == 0]
    return _first(along) and all(first == 0 and last >= INT64_MAX and step == 1 for first, last, step in first_axis)


def _take(call: Call, along: Sequence[bool]) -> bool:
    """Entries of a table by sliced indices, or of sliced data by fixed ones."""
    axis = call.attrs.axis
    if call.attrs.batch_dims:
        return False
    if _only(1)(along):
        return axis is None or axis % _rank(call) == 0
    return _first(along) and axis is not None and axis % _rank(call) != 0


def _gather(call: Call, along: Sequence[bool]) -> bool:
    return all(along) and call.attrs.axis % _rank(call) != 0


def _pad(call: Call, along: Sequence[bool]) -> bool:
    return _first(along) and not any(call.attrs.pad_width[0])


def _tile(call: Call, along: Sequence[bool]) -> bool:
    reps = call.attrs.reps
    return _first(along) and (len(reps) < _rank(call) or (len(reps) == _rank(call) and reps[0] == 1))


def _images(call: Call, along: Sequence[bool]) -> bool:
    """Images, and as many grids or offsets."""
    layout = getattr(call.attrs, "data_layout", None) or call.attrs.layout
    return _only(0, 1)(along) and layout.startswith("N")


def _normalised(call: Call, along: Sequence[bool]) -> bool:
    """Channels along another axis than the first; each slice has its own mean."""
    return _axis(call, along) and _rank(call) > 2


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(having(Trait.UNARY), _data),
    **dict.fromkeys(having(Trait.BROADCAST), _aligned),
    **dict.fromkeys(having(Trait.VECTOR), _axis),
    **dict.fromkeys((*having(Trait.CONV), *having(Trait.CONV_TRANSPOSE)), _layout),
    **dict.fromkeys((*having(Trait.POOL), *having(Trait.GLOBAL_POOL), *having(Trait.ADAPTIVE_POOL)), _layout),
    **dict.fromkeys(having(Trait.REDUCTION), _reduction),
    **dict.fromkeys((*having(Trait.IDENTITY, without=(Trait.MARK,)), "debug"), _data),
    **dict.fromkeys(("nn.deformable_conv2d", "image.grid_sample"), _images),
    **dict.fromkeys(("nn.dense", "nn.matmul", "nn.contrib_dense_pack", "qnn.dense"), _rows),
    **dict.fromkeys(("nn.batch_matmul", "qnn.batch_matmul"), _products),
    **dict.fromkeys(("reshape", "contrib_reverse_reshape", "expand_dims", "nn.batch_flatten"), _reshape),
    "squeeze": _squeeze,
    "transpose": _transpose,
    "layout_transform": _layouts,
    "split": _axis,
    # The first argument is sliced; the result's axis that the operator makes is another than the first.
    **dict.fromkeys(
        ("concatenate", "stack", "one_hot"),
        lambda call, along: (
            _first(along) and isinstance(call.checked_type, TensorType) and call.attrs.axis % len(call.checked_type.shape) != 0
        ),
    ),
    "tile": _tile,
    "strided_slice": _strided_slice,
    "take": _take,
    "gather": _gather,
    **dict.fromkeys(("repeat", "reverse", "cumsum", "cumprod", "sort", "argsort", "topk"), _axis),
    **dict.fromkeys(("nn.pad", "nn.mirror_pad"), _pad),
    **dict.fromkeys(("nn.softmax", "nn.log_softmax", "nn.fast_softmax", "nn.layer_norm", "nn.batch_norm"), _axis),
    **dict.fromkeys(("nn.instance_norm", "nn.group_norm"), _normalised),
    "nn.lrn": _axis,
    "nn.l2_normalize": lambda call, along: _first(along) and bool(call.attrs.axis) and all(a % _rank(call) for a in call.attrs.axis),
    **dict.fromkeys(("nn.upsampling", "nn.upsampling3d", "nn.depth_to_space", "nn.space_to_depth"), _layout),
    **dict.fromkeys(("image.resize1d", "image.resize2d", "image.resize3d"), _layout),
    **dict.fromkeys(("qnn.quantize", "qnn.dequantize", "qnn.requantize"), _scaled),
    # The first arguments are broadcast; those after them are numbers, or lie along another axis.
    **dict.fromkeys(
        ("qnn.add", "qnn.subtract", "qnn.mul"),
        lambda call, along: not any(along[2:]) and _aligned(Call(call.op, call.args[:2]), along[:2]),
    ),
    **dict.fromkeys(
        (
            "qnn.abs",
            "qnn.erf",
            "qnn.exp",
            "qnn.hardswish",
            "qnn.leaky_relu",
            "qnn.log",
            "qnn.rsqrt",
            "qnn.sigmoid",
            "qnn.sqrt",
            "qnn.tanh",
        ),
        _data,
    ),
    "qnn.softmax": _axis,
}
