"""NVIDIA's TensorRT: its pattern table, and the regions that it cannot take as a whole.

TVM's rows for nn.pad, squeeze, nn.layer_norm and nn.conv3d_transpose have the wrong number of operands, and match no
call. Here they match.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relaylang.ir import Call, Constant, Expr, Function, TensorType, Tuple, TupleGetItem, TupleType, Type
from relaylang.partition.checks import Verdict, every, op_name, shape, wants_attr, wants_rank
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.inline import calls_one_of
from relaylang.partition.recipe import Recipe
from relaylang.patterns import DFPattern, is_constant, is_op, is_tuple, is_tuple_get_item, wildcard


@dataclass(frozen=True)
class Settings:
    """The attributes of TVM's target "tensorrt".

    - `version`: the version of the library.
    - `implicit_batch`: the first extent is the batch; no call may touch it, and it may be unknown.
    - `fp16`: the library may take float16.
    - `only_products`: a region without products and reductions goes back to the host.
    """

    version: tuple[int, ...] = (6, 0, 1)
    implicit_batch: bool = True
    fp16: bool = False
    only_products: bool = False


Test = Callable[[Call, Settings], Verdict]
#: A region without one of these is not worth its way, where `only_products` is set.
PRODUCTS = frozenset(
    "nn.conv1d nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.dense nn.batch_matmul sum prod max min mean".split()
)
_BATCH = "it changes the batch"
_SWAPS = {("NCHW", "NHWC"), ("NHWC", "NCHW"), ("NDHWC", "NCDHW"), ("NCDHW", "NDHWC")}


def _types(ty: Type | None, settings: Settings) -> Verdict:
    """Real numbers with known extents; the batch may be unknown where it is implicit."""
    if isinstance(ty, TupleType):
        return every(*[_types(field, settings) for field in ty.fields])
    if not isinstance(ty, TensorType):
        return "an operand is no tensor"
    allowed = ("float32", "float16") if settings.fp16 else ("float32",)
    extents = ty.shape[1:] if settings.implicit_batch else ty.shape
    return every(
        ty.dtype in allowed or f"an operand is {ty.dtype}; it takes {', '.join(allowed)}",
        all(isinstance(extent, int) for extent in extents) or f"an operand of shape {ty.shape} has an unknown extent",
    )


def _check(root: Expr, settings: Settings, since: tuple[int, ...], test: Test | None) -> Verdict:
    call = root.tuple_value if isinstance(root, TupleGetItem) else root
    assert isinstance(call, Call)
    least = ".".join(map(str, since))
    return every(
        *[_types(arg.checked_type, settings) for arg in call.args],
        settings.version >= since or f"it needs TensorRT {least} or newer",
        test is None or test(call, settings),
    )


def _layouts(**wanted: str) -> Test:
    """The attributes that must have these values; an `out_layout` may be empty."""

    def test(call: Call, settings: Settings) -> Verdict:
        return every(*[wants_attr(call, name, [value, ""] if name == "out_layout" else [value]) for name, value in wanted.items()])

    return test


def _transposed(layouts: Test) -> Test:
    def test(call: Call, settings: Settings) -> Verdict:
        dilated = any(rate != 1 for rate in call.attrs.dilation or ())
        wider = op_name(call) == "nn.conv3d_transpose" and any(call.attrs.output_padding or ())
        return every(layouts(call, settings), not dilated or "it is dilated", not wider or "output_padding is not 0")

    return test


def _axis(call: Call, settings: Settings) -> Verdict:
    """The axis is not the batch."""
    return not settings.implicit_batch or call.attrs.axis != 0 or _BATCH


def _reduction(call: Call, settings: Settings) -> Verdict:
    axes = call.attrs.axis
    axes = (axes,) if isinstance(axes, int) else tuple(axes or ())
    return every(
        bool(axes) or not settings.implicit_batch or "it reduces to a scalar",
        wants_attr(call, "exclude", [False, 0]),
        not settings.implicit_batch or 0 not in axes or _BATCH,
    )


def _add(call: Call, settings: Settings) -> Verdict:
    left, right = (shape(arg) for arg in call.args)
    if settings.implicit_batch:
        return (bool(left) and bool(right)) or "a summand is a scalar, which has no batch"
    constant = any(isinstance(arg, Constant) for arg in call.args)
    batched = bool(left) and bool(right) and left[0] == right[0] != 1 and max(len(left), len(right)) > 3
    return not (constant and batched) or "TensorRT adds constants with a batch wrongly"


def _multiply(call: Call, settings: Settings) -> Verdict:
    """TVM keeps the products of Mask R-CNN's boxes on the host."""
    shapes = [shape(arg) for arg in call.args]
    return not all(s in ((300, 64, 7, 7), (300, 1, 1, 1)) for s in shapes) or "the batch is a number of boxes"


def _dense(call: Call, settings: Settings) -> Verdict:
    return every(wants_rank(call.args[0], [2, 3, 4], "the input"), wants_rank(call.args[1], [2], "the weight"))


def _batch_matmul(call: Call, settings: Settings) -> Verdict:
    ranks = {len(shape(arg)) for arg in call.args}
    return not settings.implicit_batch or len(ranks) == 1 or "the operands have different numbers of axes"


def _bias_add(call: Call, settings: Settings) -> Verdict:
    return wants_rank(call.args[0], [2, 3, 4], "the input")


def _batch_norm(call: Call, settings: Settings) -> Verdict:
    rank = len(shape(call.args[0]))
    return every(
        rank < 5 or settings.version >= (6, 0, 1) or "five axes need TensorRT 6.0.1 or newer",
        rank <= 5 or f"the input has {rank} dimensions; it takes at most 5",
        wants_attr(call, "axis", [1, 3]),
    )


def _ceil(call: Call, settings: Settings) -> Verdict:
    ceil = call.attrs.ceil_mode and settings.version < (5, 1, 5)
    return every(wants_attr(call, "layout", ["NCHW"]), not ceil or "ceil_mode needs TensorRT 5.1.5 or newer")


def _avg_pool2d(call: Call, settings: Settings) -> Verdict:
    widths = tuple(call.attrs.padding)
    uneven = len(widths) == 4 and (widths[0] != widths[2] or widths[1] != widths[3])
    return every(_ceil(call, settings), not (call.attrs.count_include_pad and uneven) or "an average counts an uneven pad")


def _adaptive(call: Call, settings: Settings) -> Verdict:
    size = call.attrs.output_size
    size = (size,) if isinstance(size, int) else tuple(size or ())
    return (bool(size) and all(extent == 1 for extent in size)) or f"output_size is {list(size)}; it takes [1, 1]"


def _squeeze(call: Call, settings: Settings) -> Verdict:
    axes = tuple(call.attrs.axis or ())
    return every(bool(axes) or "it does not say which axes", not settings.implicit_batch or 0 not in axes or _BATCH)


def _concatenate(call: Call, settings: Settings) -> Verdict:
    parts = call.args[0]
    constant = isinstance(parts, Tuple) and any(isinstance(field, Constant) for field in parts.fields)
    return every(_axis(call, settings), not constant or "it joins a constant")


def _transpose(call: Call, settings: Settings) -> Verdict:
    axes = tuple(call.attrs.axes or range(len(shape(call.args[0])) - 1, -1, -1))
    return not settings.implicit_batch or not axes or axes[0] == 0 or _BATCH


def _layout_transform(call: Call, settings: Settings) -> Verdict:
    have = call.attrs.src_layout, call.attrs.dst_layout
    return have in _SWAPS or f"it takes {' and '.join(sorted({name for name, _ in _SWAPS}))}, and not {have[0]} to {have[1]}"


def _reshape(call: Call, settings: Settings) -> Verdict:
    old, new = shape(call.args[0]), [int(extent) for extent in call.attrs.newshape]
    if min(new, default=0) < -1:
        return "newshape has codes below -1"
    if not settings.implicit_batch:
        return True
    if not old or not new:
        return "it makes or takes a scalar"
    if not all(isinstance(extent, int) for extent in old):
        # only the batch is unknown: the other extents must stay
        kept = new[0] == 0 or (new[0] < 0 and all(a == b for a, b in zip(old[1:], new[1:], strict=False)))
        return kept or _BATCH
    new = [old[i] if extent == 0 and i < len(old) else extent for i, extent in enumerate(new)]
    if -1 in new:
        rest = math.prod(extent for extent in new if extent != -1)
        new[new.index(-1)] = math.prod(old) // rest if rest else 0
    return new[0] == old[0] or _BATCH


def _pad(call: Call, settings: Settings) -> Verdict:
    widths = [tuple(width) for width in call.attrs.pad_width]
    value = call.args[1]
    last = widths[2:] if len(widths) == 4 else widths[3:]
    return every(
        wants_attr(call, "pad_mode", ["constant"]),
        (isinstance(value, Constant) and not value.data.any()) or "the pad's value is not 0",
        len(widths) in (4, 5) or f"the input has {len(widths)} dimensions; it takes 4 or 5",
        not any(map(any, widths[: len(widths) - len(last)])) or "the pad widens more than the last two axes",
    )


def _strided_slice(call: Call, settings: Settings) -> Verdict:
    attrs, have = call.attrs, shape(call.args[0])
    axes = range(len(have)) if attrs.axes is None else [int(axis) % len(have) for axis in attrs.axes]
    if any(step is not None and step <= 0 for step in attrs.strides or ()):
        return "a stride is not positive"
    for axis, begin, end in zip(axes, attrs.begin, attrs.end, strict=False):
        extent, start = have[axis], int(begin or 0)
        stop = extent if end is None or int(end) == -1 else int(end)
        if axis == 0 and settings.implicit_batch and (start != 0 or stop != extent):
            return _BATCH
        if isinstance(extent, int) and (stop if attrs.slice_mode == "size" and end not in (None, -1) else stop - start) < 1:
            return "the slice is empty"
    return True


#: Operator, the kinds of its operands, the least version, the check. `x` is any operand, `c` a constant, `t` a tuple.
_ROWS: list[tuple[str, str, tuple[int, ...], Test | None]] = [
    ("nn.conv3d", "xc", (6, 0, 1), _layouts(data_layout="NCDHW", kernel_layout="OIDHW", out_layout="NCDHW")),
    ("nn.conv2d", "xc", (), _layouts(data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW")),
    ("nn.conv1d", "xc", (), _layouts(data_layout="NCW", kernel_layout="OIW")),
    ("nn.conv2d_transpose", "xx", (), _transposed(_layouts(data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW"))),
    ("squeeze", "x", (), _squeeze),
    ("add", "xx", (), _add),
    ("nn.dense", "xc", (), _dense),
    ("nn.bias_add", "xx", (), _bias_add),
    ("nn.batch_matmul", "xx", (), _batch_matmul),
    ("divide", "xx", (), None),
    ("multiply", "xx", (), _multiply),
    *[(name, "xx", (), None) for name in ("subtract", "power", "maximum", "minimum")],
    ("nn.relu", "x", (), None),
    ("nn.leaky_relu", "x", (5, 1, 5), None),
    *[(name, "x", (), None) for name in ("sigmoid", "tanh", "exp", "log", "sqrt", "abs", "negative", "nn.batch_flatten", "clip")],
    *[(name, "x", (5, 1, 5), None) for name in ("sin", "cos", "atan", "ceil")],
    ("floor", "x", (), None),
    ("erf", "x", (7, 0, 0), None),
    *[(name, "x", (), _reduction) for name in ("sum", "prod", "max", "min", "mean")],
    ("concatenate", "t", (), _concatenate),
    ("expand_dims", "x", (), _axis),
    ("layout_transform", "x", (), _layout_transform),
    ("transpose", "x", (), _transpose),
    ("reshape", "x", (), _reshape),
    ("split", "x", (), _axis),
    ("nn.pad", "xx", (), _pad),
    ("strided_slice", "x", (5, 1, 5), _strided_slice),
    ("nn.adaptive_avg_pool2d", "x", (), _adaptive),
    ("nn.adaptive_max_pool2d", "x", (), _adaptive),
    ("nn.max_pool3d", "x", (6, 0, 1), _layouts(layout="NCDHW")),
    ("nn.avg_pool3d", "x", (6, 0, 1), _layouts(layout="NCDHW")),
    (
        "nn.conv3d_transpose",
        "xx",
        (6, 0, 1),
        _transposed(_layouts(data_layout="NCDHW", kernel_layout="OIDHW", out_layout="NCDHW")),
    ),
    ("nn.softmax", "x", (), _axis),
    ("nn.layer_norm", "xxx", (), _axis),
    ("nn.max_pool2d", "x", (), _ceil),
    ("nn.avg_pool2d", "x", (), _avg_pool2d),
    ("nn.global_max_pool2d", "x", (), _layouts(layout="NCHW")),
    ("nn.global_avg_pool2d", "x", (), _layouts(layout="NCHW")),
    ("nn.batch_norm", "xcccc", (), _batch_norm),
]
_OPERANDS: dict[str, Callable[[], DFPattern]] = {"x": wildcard, "c": is_constant, "t": lambda: is_tuple(None)}


def pattern_table(settings: Settings = Settings()) -> list[Entry]:
    """The rows for TensorRT, in TVM's order."""
    rows: list[tuple] = []
    for name, kinds, since, test in _ROWS:
        pattern: DFPattern = is_op(name)(*[_OPERANDS[kind]() for kind in kinds])
        if name == "nn.batch_norm":
            pattern = is_tuple_get_item(pattern, 0)
        rows.append((f"tensorrt.{name}", pattern, partial(_check, settings=settings, since=since, test=test)))
    return as_entries(rows)


def keep(region: Function, settings: Settings = Settings()) -> bool:
    """Whether TensorRT takes a region as a whole: its inputs have one batch, where that is implicit."""
    types = [t for p in region.params for t in _tensors(p.checked_type)]
    batches = {t.shape[0] for t in types if t.shape and isinstance(t.shape[0], int)}
    if settings.implicit_batch and (len(batches) > 1 or not all(t.shape for t in types)):
        return False
    return not settings.only_products or calls_one_of(region, PRODUCTS)


def _tensors(ty: Type | None) -> Sequence[TensorType]:
    if isinstance(ty, TupleType):
        return [tensor for field in ty.fields for tensor in _tensors(field)]
    return [ty] if isinstance(ty, TensorType) else []


_LAYOUTS = (
    "{'nn.conv1d': ['NCW', 'default'], 'nn.conv2d': ['NCHW', 'default'],"
    " 'nn.conv3d': ['NCDHW', 'default'], 'nn.conv2d_transpose': ['NCHW', 'default']}"
)

RECIPE = Recipe(
    "tensorrt",
    prepare=f"SimplifyInference(operators=['nn.dropout']),RemoveUnusedFunctions,ConvertLayout({_LAYOUTS}),FoldConstant",
    keep=keep,
    not_worth="it could go, but the inputs of its region have no batch or different ones",
)
