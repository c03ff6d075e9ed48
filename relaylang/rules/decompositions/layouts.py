"""Windowed operators of other layouts (channels in blocks, `CHWN`, another layout of the result).

They are the operators of NCHW between changes of layout, and these are reshapes and transpositions.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from relaylang.ir import Call, Expr
from relaylang.ir.typed import typed
from relaylang.ops import Trait, get, having, make_attrs
from relaylang.ops.nn_conv import own_layout
from relaylang.ops.shapes import split_layout
from relaylang.rules.decompositions.common import Decomposition, known, reshape, transpose
from relaylang.rules.layout.rule import named

_SPACE = {1: "W", 2: "HW", 3: "DHW"}
#: Each convolution, and the one of plain layouts that it becomes.
CONVOLUTIONS = {name: name for name in having(Trait.CONV, without={Trait.BLOCKED})}
CONVOLUTIONS |= {name: get(name).of for name in having(Trait.CONV, Trait.BLOCKED)}
#: Those whose channels lie in blocks.
BLOCKED = frozenset(having(Trait.CONV, Trait.BLOCKED))
POOLS = [name for kind in (Trait.POOL, Trait.ADAPTIVE_POOL, Trait.GLOBAL_POOL) for name in having(kind, without={Trait.QUANTISED})]

#: Operators that are compiled in one layout. Each of the first arguments has the attribute that names its layout, and
#: the layout to convert it to. The first argument's layout is the result's, too.
PLAIN: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(["image.crop_and_resize", "image.grid_sample", "vision.roi_align", "vision.roi_pool"], (("layout", "NCHW"),)),
    "image.dilation2d": (("data_layout", "NCHW"), ("kernel_layout", "IHW")),
    **dict.fromkeys(["nn.max_pool2d_grad", "nn.avg_pool2d_grad"], (("layout", "NCHW"), ("layout", "NCHW"))),
    "nn.deformable_conv2d": (("data_layout", "NCHW"), ("data_layout", "NCHW"), ("kernel_layout", "OIHW")),
}


def turned(x: Expr, source: str, target: str) -> Expr | None:
    """A typed value in another layout: blocks are joined to their axes, these reordered, and cut into the new blocks.
    None where the layouts have other axes, or an extent does not divide into blocks."""
    if source == target:
        return x
    try:
        have, want = split_layout(source), split_layout(target)
    except ValueError:
        return None
    order = [letter for letter, _ in have if letter.isupper()]
    held = known(x)
    if sorted(order) != sorted(letter for letter, _ in want if letter.isupper()) or len(held) != len(have):
        return None
    where = [n for c in order for letter in (c, c.lower()) for n, (part, _) in enumerate(have) if part == letter]
    full = {c: math.prod(held[n] for n, (letter, _) in enumerate(have) if letter.upper() == c) for c in order}
    cut: list[tuple[str, int]] = []
    for c in order:
        blocks = [(letter, size) for letter, size in want if letter == c.lower()]
        count, rest = divmod(full[c], math.prod(size for _, size in blocks))
        if rest:
            return None
        cut += [(c, count), *blocks]
    places: dict[str, list[int]] = {}
    for n, (letter, _) in enumerate(cut):
        places.setdefault(letter, []).append(n)
    axes = [places[letter].pop(0) for letter, _ in want]
    shape = [n for _, n in cut]
    x = transpose(x, where)
    if shape != list(known(x)):
        x = reshape(x, shape)
    return transpose(x, axes)


def layout_transform(call: Call, args: list[Expr]) -> Expr | None:
    return turned(args[0], call.attrs.src_layout, call.attrs.dst_layout)


def _plain(layout: str) -> str:
    """The layout with its batch first, its channels second (or last, where they are) and no blocks."""
    axes = [letter for letter, _ in split_layout(layout)]
    order = "".join(letter for letter in axes if letter.isupper())
    space = _SPACE[len(order) - 2]
    return f"N{space}C" if order == f"N{space}C" else f"NC{space}"


def _again(call: Call, name: str, args: list[Expr | None], layout: str, result: str, /, **changed: Any) -> Expr | None:
    """The call in a plain layout, with the result converted back to the call's own layout."""
    cls = type(call.attrs)
    attrs = make_attrs(cls, {**{n: getattr(call.attrs, n) for n in cls.schema}, **changed})
    back = turned(call, result, layout)
    operands = [a for a in args if a is not None]
    if back is None or len(operands) < len(args):
        return None
    plain_call = typed(Call(get(name), operands, attrs, (), call.span), back.checked_type)
    return turned(plain_call, layout, result)


def convolution(call: Call, args: list[Expr], last: bool = False) -> Expr | None:
    """A convolution of any layout in a plain one, with `last` channels last; None where it has that."""
    attrs = own_layout(call.attrs, known(args[1])) if named(call) in BLOCKED else call.attrs
    try:
        layout = _plain(attrs.data_layout)
        kernel = [letter for letter, _ in split_layout(attrs.kernel_layout)]
    except (ValueError, KeyError):
        return None
    if last:
        layout = layout.replace("C", "") + "C"
    name = CONVOLUTIONS[named(call)]
    result = attrs.out_layout or attrs.data_layout
    blocked = any(letter.islower() for letter in kernel)
    if name == named(call) and attrs.data_layout == result == layout and not blocked:
        return None
    own = attrs.kernel_layout
    if blocked:
        own = "OI" + _SPACE[len(layout) - 2]
    operands = [turned(args[0], attrs.data_layout, layout), turned(args[1], attrs.kernel_layout, own), *args[2:]]
    return _again(call, name, operands, layout, result, data_layout=layout, kernel_layout=own, out_layout="")


def pool(call: Call, args: list[Expr]) -> Expr | None:
    """A pool of any layout; None where its layout is one that is compiled as it is. Its result is in the data's layout,
    whatever `out_layout` says, as its type is."""
    attrs = call.attrs
    try:
        layout = _plain(attrs.layout)
    except (ValueError, KeyError):
        return None
    if attrs.layout == layout:
        return None
    changed = {"out_layout": ""} if "out_layout" in type(attrs).schema else {}
    operands = [turned(args[0], attrs.layout, layout), *args[1:]]
    return _again(call, named(call), operands, layout, attrs.layout, layout=layout, **changed)


def plain(call: Call, args: list[Expr]) -> Expr | None:
    """An operator of `PLAIN` in its own layout; None where it has that already."""
    attrs = call.attrs
    wanted = PLAIN[named(call)]
    if len(known(args[0])) == 5:
        wanted = tuple((name, layout.replace("NC", "NCD")) for name, layout in wanted)
    have = [getattr(attrs, name) for name, _ in wanted]
    result = getattr(attrs, "out_layout", "") or have[0]
    if all(own == layout for own, (_, layout) in zip([*have, result], [*wanted, wanted[0]])):
        return None
    changed = {**({"out_layout": ""} if "out_layout" in type(attrs).schema else {}), **dict(wanted)}
    operands = [turned(a, own, layout) for a, own, (_, layout) in zip(args, have, wanted)]
    return _again(call, named(call), [*operands, *args[len(operands) :]], wanted[0][1], result, **changed)


RULES: dict[str, Decomposition] = {
    "layout_transform": layout_transform,
    **dict.fromkeys(CONVOLUTIONS, convolution),
    **dict.fromkeys(POOLS, pool),
    **dict.fromkeys(PLAIN, plain),
}
#: The changes of layout that `channels_last` makes, and convolutions that keep other layouts.
LAST: dict[str, Decomposition] = {
    **dict.fromkeys(CONVOLUTIONS, partial(convolution, last=True)),
    "layout_transform": layout_transform,
}
