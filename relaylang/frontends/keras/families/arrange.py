"""Keras 3's operations that move elements, and those of whole layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.attention import INFINITY, positions
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.common.nn import padding_of, same_padding
from relaylang.frontends.keras.families.conv import LETTERS, layout, spatial_of
from relaylang.frontends.keras.families.operations import common_dtype, floats, operand
from relaylang.frontends.keras.families.reshape import KINDS, resized
from relaylang.frontends.keras.node import Node, axes_of
from relaylang.ir import Expr

_END = (1 << 31) - 1


def reshape(n: Node, x: Expr) -> Any:
    b, shape = n.b, n.ints("newshape", least=-1)
    have = b.shape(x)
    if shape.count(-1) > 1:
        raise Malformed(f"it reshapes to {shape}")
    if 0 in shape or (all(isinstance(d, int) for d in have) and 0 in have):
        return b.reshape_exactly(x, shape)
    if all(isinstance(d, int) for d in have):
        size, other = math.prod(int(d) for d in have if isinstance(d, int)), math.prod(d for d in shape if d != -1)
        if (size % other) if -1 in shape else (size != other):
            raise Malformed(f"it reshapes {size} elements to {shape}")
        shape = [size // other if d == -1 else d for d in shape]
    return b.reshape(x, shape)


def transpose(n: Node, x: Expr) -> Any:
    rank = n.b.rank(x)
    axes = list(range(rank))[::-1] if n.value("axes", None) is None else n.axes("axes", rank)
    if len(axes) != rank:
        raise Malformed(f"its axes are {axes}, and its operand has {int(rank)}")
    return n.b.transpose(x, axes)


def expand(n: Node, x: Expr) -> Any:
    axes = n.ints("axis")
    return n.b.unsqueeze(x, axes_of(axes, n.b.rank(x) + len(axes), "axis"))


def squeeze(n: Node, x: Expr) -> Any:
    shape = n.b.shape(x)
    if n.value("axis", None) is None:
        return n.b.squeeze(x, [i for i, d in enumerate(shape) if d == 1])
    axes = n.axes("axis", len(shape))
    if any(shape[a] != 1 for a in axes):
        raise Malformed(f"it drops the axes {axes}, which are not of extent 1")
    return n.b.squeeze(x, axes)


def listed(n: Node, xs: Any) -> list[Expr]:
    """Tensors of one element type."""
    if not isinstance(xs, list) or not xs or not any(isinstance(x, Expr) for x in xs):
        raise Malformed("it takes a list of tensors")
    dtype = common_dtype(n.b, xs)
    return [operand(n.b, x, dtype) for x in xs]


def concatenate(n: Node, xs: Any) -> Any:
    parts = listed(n, xs)
    return n.b.concat(parts, n.axis("axis", n.b.rank(parts[0]), 0))


def stack(n: Node, x: Any) -> Any:
    parts = listed(n, x)
    axis = n.axis("axis", n.b.rank(parts[0]) + 1, 0)
    return n.b.op("stack", n.b.tuple(parts), axis=axis)


def unstack(n: Node, x: Expr) -> Any:
    b = n.b
    axis = n.axis("axis", b.rank(x), 0)
    count = b.extent(x, axis, "the axis that it splits")
    parts = b.fields(b.op("split", x, indices_or_sections=count, axis=axis)) if count > 1 else [x]
    return [b.squeeze(p, [axis]) for p in parts]


def split(n: Node, x: Expr) -> Any:
    b = n.b
    axis = n.axis("axis", b.rank(x), 0)
    sections = n.value("indices_or_sections")
    if isinstance(sections, int) and not isinstance(sections, bool):
        extent = b.extent(x, axis, "the axis that it splits")
        if sections < 1 or extent % sections:
            raise Malformed(f"it splits {extent} elements into {sections} parts")
        return [x] if sections == 1 else b.fields(b.op("split", x, indices_or_sections=sections, axis=axis))
    places = n.ints("indices_or_sections", least=0)
    if places != sorted(places):
        raise Malformed(f"it splits at {places}")
    return b.fields(b.op("split", x, indices_or_sections=tuple(places), axis=axis))


def _bounds(part: slice) -> tuple[int, int, int]:
    """The begin, end and step of a slice of known numbers. Raises `Unsupported` for others."""
    for v in (part.start, part.stop, part.step):
        if v is not None and (type(v) is not int or abs(v) >= 1 << 31):
            raise Unsupported("its slices are computed")
    step = 1 if part.step is None else part.step
    if step == 0:
        raise Unsupported("its slices are computed")
    ends = (0, _END) if step > 0 else (_END, -_END - 1)
    return (*(end if bound is None else bound for bound, end in zip((part.start, part.stop), ends)), step)  # type: ignore[return-value]


def item(n: Node, x: Expr, key: Any) -> Any:
    """numpy's basic indexing: numbers, slices, new axes and `...`."""
    b = n.b
    parts = key if isinstance(key, list) else [key]
    real = sum(p is not None and p is not Ellipsis for p in parts)
    rank = b.rank(x)
    if parts.count(Ellipsis) > 1 or real > rank:
        raise Malformed(f"it has {real} indices for {int(rank)} axes")
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts = [*parts[:at], *[slice(None)] * (rank - real), *parts[at + 1 :]]
    begin, end, axes, strides, gone, new = [], [], [], [], [], []
    axis = place = 0
    for part in parts:
        if part is None:
            new.append(place)
            place += 1
            continue
        extent = b.shape(x)[axis]
        if isinstance(part, int) and not isinstance(part, bool):
            if isinstance(extent, int) and not -extent <= part < extent:
                raise Malformed(f"it takes the element {part} of an axis with {extent}")
            begin.append(part)
            end.append(part + 1 if part != -1 else _END)
            axes.append(axis)
            strides.append(1)
            gone.append(axis)
        elif isinstance(part, slice):
            place += 1
            if part != slice(None):
                first, last, step = _bounds(part)
                begin.append(first)
                end.append(last)
                axes.append(axis)
                strides.append(step)
        else:
            raise Unsupported("its indices are tensors")
        axis += 1
    sliced = b.slice(x, begin, end, axes, strides) if axes else x
    return b.unsqueeze(b.squeeze(sliced, gone), new)


def flip(n: Node, x: Expr) -> Any:
    axes = list(range(n.b.rank(x))) if n.value("axis", None) is None else n.axes("axis", n.b.rank(x))
    for axis in axes:
        x = n.b.op("reverse", x, axis=axis)
    return x


def repeat(n: Node, x: Expr) -> Any:
    times = n.ints("repeats", least=1)
    if n.value("axis", None) is None:
        x, axis = n.b.reshape(x, [-1]), 0
    else:
        axis = n.axis("axis", n.b.rank(x))
    if len(times) != 1:
        raise Unsupported("it repeats elements a different number of times")
    return n.b.op("repeat", x, repeats=times[0], axis=axis)


def tile(n: Node, x: Expr) -> Any:
    return n.b.op("tile", x, reps=n.ints("repeats", least=1))


def take(n: Node, x: Any, indices: Any) -> Any:
    b = n.b
    ids = indices if isinstance(indices, Expr) else b.const(indices, "int32")
    if not b.dtype(ids).startswith(("int", "uint")):
        ids = b.cast(ids, "int32")
    if n.value("axis", None) is None:
        x, axis = b.reshape(x, [-1]), 0
    else:
        axis = n.axis("axis", b.rank(x))
    extent = b.shape(x)[axis]
    known = b.value(ids)
    if isinstance(extent, int) and (known is None or (known < 0).any()):
        ids = b.op("where", b.op("less", ids, b.const(0, b.dtype(ids))), b.op("add", ids, b.const(extent, b.dtype(ids))), ids)
    return b.op("take", x, ids, axis=axis)


def broadcast(n: Node, x: Expr) -> Any:
    shape = n.ints("shape", least=0)
    n.b.arrays.reserve(shape, "broadcasting its operand", 0)
    return n.b.op("broadcast_to", x, shape=shape)


def pad(n: Node, x: Expr, constant_values: Any = None) -> Any:
    b, rank = n.b, n.b.rank(x)
    widths = n.value("pad_width")
    widths = [widths] * rank if isinstance(widths, int) else widths
    rows = [[w, w] if isinstance(w, int) else w for w in widths] if isinstance(widths, list) else []
    rows = rows * rank if len(rows) == 1 else rows
    if len(rows) != rank or not all(
        isinstance(r, list) and len(r) == 2 and all(type(v) is int and 0 <= v < 1 << 31 for v in r) for r in rows
    ):
        raise Malformed(f"its pad_width is {repr(widths)[:60]}")
    b.arrays.reserve([int(d) + sum(r) for d, r in zip(b.shape(x), rows) if isinstance(d, int)], "padding its operand", 0)
    mode = n.choice("mode", "constant", ("constant", "reflect", "symmetric"))
    if mode != "constant":
        return b.op("nn.mirror_pad", x, pad_width=rows, mode=mode.upper())
    value = 0 if constant_values is None else constant_values
    if not isinstance(value, (int, float)):
        raise Unsupported("the value that it pads with is computed")
    return b.op("nn.pad", x, b.const(value, b.dtype(x)), pad_width=rows)


def moveaxis(n: Node, x: Expr) -> Any:
    rank = n.b.rank(x)
    source, target = n.axes("source", rank), n.axes("destination", rank)
    if len(source) != len(target):
        raise Malformed(f"it moves the axes {source} to {target}")
    order = [i for i in range(rank) if i not in source]
    for to, axis in sorted(zip(target, source)):
        order.insert(to, axis)
    return n.b.transpose(x, order)


def swapaxes(n: Node, x: Expr) -> Any:
    order = list(range(n.b.rank(x)))
    i, j = n.axis("axis1", len(order)), n.axis("axis2", len(order))
    order[i], order[j] = order[j], order[i]
    return n.b.transpose(x, order)


def filled(value: float) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        constants = n.b.op("ones_like" if value else "zeros_like", x)
        return n.b.cast(constants, n.config["dtype"]) if isinstance(n.config.get("dtype"), str) else constants

    return convert


def triangle(upper: bool) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        return n.b.op("trilu", x, n.b.const(n.int("k", 0), "int64"), upper=upper)

    return convert


def sort(n: Node, x: Expr) -> Any:
    return n.b.op("sort", x, axis=n.axis("axis", n.b.rank(x), -1), is_ascend=True)


def argsort(n: Node, x: Expr) -> Any:
    return n.b.op("argsort", x, axis=n.axis("axis", n.b.rank(x), -1), is_ascend=True, dtype="int32")


def top_k(n: Node, x: Expr) -> Any:
    largest = n.b.op("topk", x, k=n.int("k", least=1), axis=-1, ret_type="both", is_ascend=False, dtype="int32")
    return n.b.fields(largest)


def roll(n: Node, x: Expr) -> Any:
    b, shift = n.b, n.int("shift")
    if n.value("axis", None) is None:
        raise Unsupported("it rolls all elements")
    axis = n.axis("axis", b.rank(x))
    extent = b.extent(x, axis, "the axis that it rolls")
    at = -shift % extent if extent else 0
    return b.concat([b.slice(x, [at], [extent], [axis]), b.slice(x, [0], [at], [axis])], axis) if at else x


def slices(n: Node, inputs: Expr, start_indices: Any) -> Any:
    shape = n.ints("shape", least=0)
    if not isinstance(start_indices, list) or not all(type(s) is int and s >= 0 for s in start_indices):
        raise Unsupported("its starts are computed")
    if len(shape) != n.b.rank(inputs) or len(start_indices) != len(shape):
        raise Malformed(f"it takes {shape} elements of {int(n.b.rank(inputs))} axes")
    return n.b.slice(inputs, start_indices, [s + d for s, d in zip(start_indices, shape)], list(range(len(shape))))


def resize(n: Node, images: Expr) -> Any:
    how = n.choice("interpolation", "bilinear", ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"))
    if how not in KINDS or n.bool("crop_to_aspect_ratio", False) or n.bool("pad_to_aspect_ratio", False):
        raise Unsupported(f"its interpolation is {how}, or it keeps the aspect ratio")
    rank = n.b.rank(images)
    if rank not in (3, 4):
        raise Malformed(f"its operand has {int(rank)} axes")
    axes = [rank - 2, rank - 1] if n.channels_first() else [rank - 3, rank - 2]
    x = images if how == "nearest" else floats(n.b, images)
    return resized(n, x, axes, n.ints("size", 2, least=1), how, n.bool("antialias", False))


def _window(n: Node, x: Expr, kernel: Any) -> tuple[int, bool, dict[str, Any], tuple[int, ...]]:
    b = n.b
    rank = b.rank(x) - 2
    if not 1 <= rank <= 3 or b.rank(kernel) != rank + 2:
        raise Malformed(f"its operands have {int(b.rank(x))} and {int(b.rank(kernel))} axes")
    first = n.channels_first()
    shape = tuple([int(d) for d in b.static_shape(kernel, "the kernel")])
    steps, dilation = n.ints("strides", rank, 1, 1), n.ints("dilation_rate", rank, 1, 1)
    pairs = [(0, 0)] * rank
    if n.choice("padding", "valid", ("valid", "same")) == "same":
        pairs = same_padding(spatial_of(n, x, rank, first), shape[:rank], steps, dilation)
    attrs = {"strides": steps, "dilation": dilation, "padding": padding_of(pairs), "kernel_size": list(shape[:rank])}
    return rank, first, attrs, shape


def conv(n: Node, inputs: Expr, kernel: Expr) -> Any:
    b = n.b
    rank, first, attrs, shape = _window(n, inputs, kernel)
    channels = b.extent(inputs, 1 if first else -1, "the channels")
    if not shape[rank] or channels % shape[rank]:
        raise Malformed(f"its operand has {channels} channels, and its kernel takes {shape[rank]}")
    attrs |= {"groups": channels // shape[rank], "channels": shape[-1], "data_layout": layout(rank, first)}
    if first:
        kernel = b.transpose(kernel, (rank + 1, rank, *range(rank)))
    return b.op(f"nn.conv{rank}d", inputs, kernel, kernel_layout=f"OI{LETTERS[rank]}" if first else f"{LETTERS[rank]}IO", **attrs)


def attention(n: Node, query: Expr, key: Expr, value: Expr, bias: Any = None, mask: Any = None, scale: Any = None) -> Any:
    """Products of (batch, steps, heads, size); a mask is (batch, heads, queries, keys)."""
    b = n.b
    if n.value("attn_logits_soft_cap", None) is not None:
        raise Unsupported("its scores are capped")
    heads, shared = b.extent(query, 2, "the number of heads"), b.extent(key, 2, "the number of heads")
    if not shared or heads % shared:
        raise Malformed(f"its operands have {heads} and {shared} heads")
    if heads != shared:
        key, value = (b.op("repeat", x, repeats=heads // shared, axis=2) for x in (key, value))
    factor = scale if isinstance(scale, (int, float)) else 1 / math.sqrt(b.extent(query, 3, "the size of heads"))
    scores = b.op("multiply", einsum(b, "aqhz,akhz->ahqk", [query, key]), float(factor))
    scores = scores if bias is None else b.op("add", scores, bias)
    if n.bool("is_causal", False):
        seen = b.op("greater_equal", b.unsqueeze(positions(b, query, 1), [1]), b.unsqueeze(positions(b, key, 1), [0]))
        scores = b.op("where", seen, scores, b.const(-INFINITY, b.dtype(scores)))
    if isinstance(mask, Expr):
        scores = b.op("where", b.cast(mask, "bool"), scores, b.const(-1e9, b.dtype(scores)))
    return einsum(b, "ahqk,akhz->aqhz", [b.op("nn.softmax", scores, axis=-1), value])


def layer_norm(n: Node, x: Expr, gamma: Any = None, beta: Any = None) -> Any:
    b = n.b
    if n.bool("rms_scaling", False):
        raise Unsupported("it scales by the root of the mean square")
    axes = sorted(n.axes("axis", b.rank(x), -1))
    epsilon = n.float("epsilon", 1e-7) if n.value("epsilon", None) is not None else 1e-7
    return nn.scale_and_shift(b, nn.normalise(b, x, axes, epsilon), gamma, beta)


def rms_norm(n: Node, x: Expr, scale: Any = None) -> Any:
    epsilon = n.float("epsilon", 1e-7) if n.value("epsilon", None) is not None else 1e-7
    return nn.rms_norm(n.b, x, n.axes("axis", n.b.rank(x), -1), epsilon, scale)


RULES = tuple(
    Rule(rule.name, rule.convert, domain="ops")
    for rule in (
        Rule("Argsort", argsort),
        Rule("BroadcastTo", broadcast),
        Rule("Concatenate", concatenate),
        Rule("Conv", conv),
        Rule("DotProductAttention", attention),
        Rule("ExpandDims", expand),
        Rule("Flip", flip),
        Rule("GetItem", item),
        Rule("LayerNorm", layer_norm),
        Rule("Moveaxis", moveaxis),
        Rule("OnesLike", filled(1.0)),
        Rule("Pad", pad),
        Rule("RMSNorm", rms_norm),
        Rule("Ravel", lambda n, x: n.b.reshape(x, [-1])),
        Rule("Repeat", repeat),
        Rule("Reshape", reshape),
        Rule("Resize", resize),
        Rule("Roll", roll),
        Rule("Slice", slices),
        Rule("Sort", sort),
        Rule("Split", split),
        Rule("Squeeze", squeeze),
        Rule("Stack", stack),
        Rule("Swapaxes", swapaxes),
        Rule("Take", take),
        Rule("Tile", tile),
        Rule("TopK", top_k),
        Rule("Transpose", transpose),
        Rule("Tril", triangle(False)),
        Rule("Triu", triangle(True)),
        Rule("Unstack", unstack),
        Rule("ZerosLike", filled(0.0)),
    )
)
